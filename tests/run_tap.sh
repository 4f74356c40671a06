#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Runs a test program for Meson. cmocka 1.1.5 reports a skipped test as "not ok 3 # SKIP
# name", which TAP readers count as failed: a skipped one is "ok". What a cmocka program
# prints beside its results becomes a TAP comment.
set -o pipefail
if [ "${CMOCKA_MESSAGE_OUTPUT:-}" = TAP ]; then
    "$@" | sed -u -e 's/^not ok \([0-9]* # SKIP\)/ok \1/' \
        -e '/^\(ok \|not ok \|#\|[0-9]*\.\.[0-9]\|$\)/!s/^/# /'
else
    exec "$@"
fi
