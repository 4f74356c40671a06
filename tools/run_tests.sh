#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of one suite of a build folder and closes with "N passed, N failed".
#
#     tools/run_tests.sh BUILD SUITE [MESON TEST OPTION...]
set -uo pipefail
build=$1
suite=$2
shift 2
status=0
meson test -C "$build" --no-rebuild --suite "$suite" --print-errorlogs "$@" || status=$?
python3 "$(dirname "$0")/count_tests.py" "$build/meson-logs/testlog.junit.xml" || status=1
exit $status
