#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The committed definitions and the reference of their fields are those that the tables make.
#
#     test_definitions.sh WRITE_DEFINITIONS
set -euo pipefail
root=${TRANCHE_SOURCE_ROOT:?}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

"$1" "$root" "$made"
mapfile -t files < <(cd "$made" && find . -type f | sed 's|^\./||' | sort)
echo "1..$((${#files[@]} + 1))"
number=0
for file in "${files[@]}"; do
    number=$((number + 1))
    if diff -u "$root/$file" "$made/$file" >"$made/diff" 2>&1; then
        echo "ok $number - $file"
    else
        sed 's/^/# /; 40q' "$made/diff"
        echo "# run: make definitions"
        echo "not ok $number - $file"
    fi
done
# A kind that is gone leaves no file behind.
if [ "$(cd "$root" && find deploy/crds/ -name '*.yaml' | wc -l)" = "$((${#files[@]} - 1))" ]; then
    echo "ok $((number + 1)) - no definition without a kind"
else
    echo "not ok $((number + 1)) - no definition without a kind"
fi
