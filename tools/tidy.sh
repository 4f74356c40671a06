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
mapfile -t texts < <(git ls-files '*.c' '*.h' '*.md' '*.py' '*.sh' 'meson.build' '*/meson.build')

# Words that codespell does not know, then those that tests of suggestions misspell.
known=inout,parms,fo,ans,te,nd,sting,ore,crate,hist,trough
misspelt=verfy,verfiy,palce,transistions,sampel,modle,hel

try 'clang builds without a warning' ninja -C build-clang
try 'clang-tidy' tools/clang_tidy.py build-clang
try 'clang-format' clang-format --dry-run --Werror "${sources[@]}"
try 'layers' python3 tools/check_layers.py
try 'codespell' codespell --ignore-words-list="$known,$misspelt" "${texts[@]}"
[ ${#scripts[@]} -eq 0 ] || try 'shellcheck' shellcheck -S style -x "${scripts[@]}"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
