#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing of the groups named, from the distribution's packages.
#
#     tools/setup.sh GROUP...        groups: see tools/packages.txt
#
# Debian 12 and later by its names, Ubuntu 24.04 by its own (those were not run). Elsewhere
# it says what is needed and goes on, since the build names what it lacks.
set -euo pipefail
cd "$(dirname "$0")/.."

column=2
grep -qs '^ID=ubuntu$' /etc/os-release && column=3
mapfile -t wanted < <(awk -v groups=" $* " -v column=$column \
    '$1 !~ /^#/ && NF >= 3 && index(groups, " " $1 " ") { print $column }' tools/packages.txt | sort -u)

if ! command -v dpkg-query >/dev/null; then
    echo "setup: no dpkg here; needed (Debian's names): ${wanted[*]}" >&2
    exit 0
fi
missing=()
for package in "${wanted[@]}"; do
    state=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
    [ "$state" = "install ok installed" ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

echo "setup: installing ${missing[*]}" >&2
as_root=()
if [ "$(id -u)" != 0 ]; then
    command -v sudo >/dev/null || {
        echo "setup: not root and no sudo: install by hand: ${missing[*]}" >&2
        exit 4
    }
    as_root=(sudo)
fi
export DEBIAN_FRONTEND=noninteractive
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends \
        "${missing[@]}" >"$log" 2>&1
}
{ "${as_root[@]}" apt-get update >"$log" 2>&1 && install; } || {
    tail -n 20 "$log" >&2
    echo "setup: apt-get failed" >&2
    exit 4
}
