#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What a reader should never have to find: warnings of the second compiler, clang-tidy's
# findings, unformatted lines, includes against the layers, misspellings, shell slips.
# Closes with "N passed, N failed", one for each tool.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
passed=0
failed=0
try() { # try NAME COMMAND...
    local name=$1
    shift
    echo "== $name"
    if "$@"; then passed=$((passed + 1)); else
        failed=$((failed + 1))
        echo "failed: $name"
    fi
}

[ -f build-clang/build.ninja ] || CC=clang meson setup build-clang >/dev/null
mapfile -t sources < <(git ls-files '*.c' '*.h')
mapfile -t scripts < <(git ls-files '*.sh')
mapfile -t units < <(git ls-files 'src/*.c')
mapfile -t texts < <(git ls-files '*.c' '*.h' '*.md' '*.py' '*.sh' 'meson.build' '*/meson.build')

clang_tidy() {
    printf '%s\n' "${units[@]}" | xargs -P "$(nproc)" -n 4 clang-tidy --quiet -p build-clang \
        --warnings-as-errors='*' 2>/dev/null
}
try 'clang builds without a warning' ninja -C build-clang
try 'clang-tidy' clang_tidy
try 'clang-format' clang-format --dry-run --Werror "${sources[@]}"
try 'layers' python3 tools/check_layers.py
try 'codespell' codespell --ignore-words-list=inout,parms,fo,ans,te,nd,sting,ore,crate,hist "${texts[@]}"
[ ${#scripts[@]} -eq 0 ] || try 'shellcheck' shellcheck -S style -x "${scripts[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
