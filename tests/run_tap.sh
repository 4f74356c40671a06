#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test program for Meson. cmocka 1.1.5 reports a skipped test as "not ok 3 # SKIP
# name", which TAP readers count as failed: a skipped one is "ok".
set -o pipefail
"$@" | sed -u 's/^not ok \([0-9]* # SKIP\)/ok \1/'
