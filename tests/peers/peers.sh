# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# For tests that run real clients of NVML against the simulated library: lib.sh of
# tests/cli, and
#
#   $peers, $sim              BUILD/peers (tools/setup_peers.sh) and BUILD/sim
#   need_peer FILE            skips the whole test when the peer is not set up; in CI it fails
#   may_lack_peer FILE        … skips there too: for what not every machine can have
#   machine FLEET             a new simulated machine for what follows
#   on_machine COMMAND…       run it where /proc and /sys show the simulated GPUs
#
# The build sets TRANCHE_BUILD.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

# Read by the tests that source this file.
# shellcheck disable=SC2034
peers=$TRANCHE_BUILD/peers
sim=$TRANCHE_BUILD/sim
machines=0

need_peer() {
    [ -x "$peers/$1" ] || skip_all "no $peers/$1: run tools/setup_peers.sh (make check-peers does)"
}

may_lack_peer() {
    [ -x "$peers/$1" ] || skip_all_anywhere "no $peers/$1: run tools/setup_peers.sh (make check-peers does)"
}

machine() {
    machines=$((machines + 1))
    export TRANCHE_SIM_FLEET=$1 TRANCHE_SIM_STATE=$work/machine$machines.state
    export TRANCHE_STATE_DIR=$work/state
    unset TRANCHE_SIM_FAULTS TRANCHE_SIM_TRACE TRANCHE_SIM_PRIVILEGE TRANCHE_SIM_SEED
}

on_machine() {
    "$TRANCHE_SOURCE_ROOT/tools/simulated_machine.sh" "$TRANCHE_BUILD" "$@"
}

with_library() {
    LD_LIBRARY_PATH=$sim "$@"
}
