#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Fetches and builds the real NVML clients that the suite 'peers' runs, pinned by checksum:
#
#     tools/setup_peers.sh BUILD
#
#     BUILD/peers/python               environment with nvidia-ml-py, nvitop and gpustat (PyPI)
#     BUILD/peers/tritonclient         environment with tritonclient (PyPI)
#     BUILD/peers/perf_analyzer        environment with NVIDIA's perf_analyzer (PyPI; glibc 2.38 or later)
#     BUILD/peers/mlserver             environment with mlserver and onnxruntime (PyPI)
#     BUILD/peers/tensorflow           environment with tensorflow-cpu (PyPI), when PEERS_TENSORFLOW is 1:
#                                      270 MB to fetch, 1.6 GB on disk
#     BUILD/peers/nvidia-mig-parted    NVIDIA/mig-parted, built from its Go module
#
# Both are links into ${XDG_CACHE_HOME:-~/.cache}/tranche/peers, where what was fetched and
# built stays, keyed by the pins in tools/peers: a second run does nothing. Go: tools/find_go.sh.
# Exit 0, 2 (usage) or 4.
set -euo pipefail

fail() {
    echo "setup_peers: $*" >&2
    exit 4
}

if [ $# -ne 1 ] || [ -z "$1" ]; then
    echo "usage: setup_peers.sh BUILD" >&2
    exit 2
fi
mkdir -p "$1/peers" || fail "cannot write to $1"
build=$(cd "$1" && pwd)
cd "$(dirname "$0")/peers"
cache=${XDG_CACHE_HOME:-$HOME/.cache}/tranche/peers
mkdir -p "$cache" || fail "cannot write to $cache"
exec 9>"$cache/lock" # two builds at once would fetch twice into one folder
flock 9

# key FILE...: a name that changes with the pins and with what they are built for.
key() {
    { cat "$@" && uname -m; } | sha256sum | cut -c1-16
}

pip_install() {
    "$1" -m pip install --quiet --disable-pip-version-check --require-hashes "${@:2}" >&2
}

find_python() {
    local candidate
    for candidate in "${PYTHON:-}" /usr/bin/python3 python3; do
        if [ -n "$candidate" ] && "$candidate" -c 'import venv, ensurepip' 2>/dev/null; then
            echo "$candidate"
            return
        fi
    done
    fail "no Python 3 with venv found; install it with: apt-get install python3-venv"
}

# new_environment FOLDER: an empty environment; a half-made one is replaced.
new_environment() {
    rm -rf "$1"
    "$(find_python)" -m venv "$1" || fail "cannot make a Python environment in $1"
}

setup_python() {
    local folder
    folder=$cache/python-$(key requirements.txt requirements-build.txt)
    if [ ! -f "$folder/complete" ]; then
        echo "setup_peers: nvidia-ml-py, nvitop, gpustat" >&2
        new_environment "$folder"
        pip_install "$folder/bin/python" --only-binary=:all: -r requirements-build.txt ||
            fail "cannot install what builds gpustat: see pip's message above"
        pip_install "$folder/bin/python" --no-build-isolation -r requirements.txt ||
            fail "cannot install the Python clients: see pip's message above"
        touch "$folder/complete"
    fi
    ln -sfn "$folder" "$build/peers/python"
}

# setup_wheels NAME [optional]: an environment of what requirements-NAME.txt pins. Machines and
# versions of Python for which no wheel is pinned go without; in CI only with what is optional.
setup_wheels() {
    local folder
    rm -f "$build/peers/$1" # of other pins: without these the test must not find it
    folder=$cache/$1-$(key "requirements-$1.txt")
    if [ ! -f "$folder/complete" ]; then
        echo "setup_peers: $1" >&2
        new_environment "$folder"
        if ! pip_install "$folder/bin/python" --only-binary=:all: -r "requirements-$1.txt"; then
            [ -z "${CI:-}" ] || [ "${2:-}" = optional ] || fail "cannot install $1: see pip's message above"
            echo "setup_peers: no $1 on this machine: see pip's message above" >&2
            return
        fi
        touch "$folder/complete"
    fi
    ln -sfn "$folder" "$build/peers/$1"
}

setup_mig_parted() {
    local folder go
    folder=$cache/mig-parted-$(key mig-parted/go.mod mig-parted/go.sum)
    if [ ! -x "$folder/nvidia-mig-parted" ]; then
        go=$(../find_go.sh 1.22) || exit 4
        echo "setup_peers: mig-parted, with $("$go" env GOVERSION)" >&2
        mkdir -p "$folder"
        (cd mig-parted && GOTOOLCHAIN=local GOFLAGS=-mod=readonly CGO_ENABLED=1 "$go" build -trimpath \
            -o "$folder/nvidia-mig-parted.new" github.com/NVIDIA/mig-parted/cmd/nvidia-mig-parted) ||
            fail "cannot build NVIDIA/mig-parted: see go's message above"
        mv "$folder/nvidia-mig-parted.new" "$folder/nvidia-mig-parted"
    fi
    ln -sfn "$folder/nvidia-mig-parted" "$build/peers/nvidia-mig-parted"
}

setup_python
setup_wheels tritonclient
setup_wheels perf_analyzer optional # NVIDIA's wheels are for newer systems than some that we have
setup_wheels mlserver
[ "${PEERS_TENSORFLOW:-0}" != 1 ] || setup_wheels tensorflow
setup_mig_parted
