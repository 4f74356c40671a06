#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's mig-parted exports, applies and asserts against the simulated library. For each
# config one machine is brought there by mig-parted and one by tranche: each program must
# agree with the other's work, and both exports must be equal. Where the two should differ,
# the last part says how and why.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer nvidia-mig-parted

configs=$TRANCHE_SOURCE_ROOT/tests/peers/mig_parted_configs.yaml

machine 'a100-40gb:1'
on_machine true 2>"$err" || skip_all_anywhere "$(cat "$err")"

theirs() {
    run on_machine "$peers/nvidia-mig-parted" "$@"
}

ours() {
    tranche gpu "$@" --driver sim
}

# both CONFIG FLEET: the two machines, the cross-checks and the exports.
both() {
    local config=$1
    machine "$2"
    theirs apply -f "$configs" -c "$config"
    is_status 0 "$config: mig-parted applies"
    ours assert -f "$configs" -c "$config"
    is_status 0 "$config: tranche finds it so"
    theirs export
    cp "$out" "$work/theirs.theirs"
    ours export
    cp "$out" "$work/theirs.ours"

    machine "$2"
    ours apply -f "$configs" -c "$config"
    is_status 0 "$config: tranche applies"
    theirs assert -f "$configs" -c "$config"
    is_status 0 "$config: mig-parted finds it so"
    theirs export
    same_file "$work/theirs.theirs" "$out" "$config: mig-parted exports both machines alike"
    ours export
    same_file "$work/theirs.ours" "$out" "$config: tranche exports both machines alike"
    # We quote the names of profiles, the usual way to write them; they do not.
    sed 's/^\( *\)"\([^"]*\)": /\1\2: /' "$out" >"$work/ours.unquoted"
    same_file "$work/theirs.theirs" "$work/ours.unquoted" "$config: the exports of both programs are equal"
}

both mig-off 'a100-40gb:2'
both a100-balanced 'a100-40gb:2'
both a100-seven 'a100-40gb:1'
both a100-small-first 'a100-40gb:1'
both a100-different 'a100-40gb:3'
both a30 'a30-24gb:2'
both h100 'h100-80gb-sxm5:2'
both filtered 'a100-40gb:1,h100-80gb-sxm5:1'
both rtxpro6000 'rtxpro6000-96gb:1'

# From one config to another, and a config that is not so.
machine 'a100-40gb:2'
theirs apply -f "$configs" -c a100-balanced
theirs apply -f "$configs" -c a100-seven
is_status 0 "mig-parted changes a layout"
ours assert -f "$configs" -c a100-balanced
is_status 1 "tranche sees that it is another one"
theirs assert -f "$configs" -c a100-balanced
is_status 1 "so does mig-parted"
ours apply -f "$configs" -c mig-off
is_status 0 "tranche switches MIG off"
theirs assert -f "$configs" -c mig-off
is_status 0 "mig-parted agrees"

# A mode that is pending on Ampere: mig-parted resets through nvidia-smi.
machine 'a100-40gb:1'
run "$sim/tranche-sim" add --keep --pid 4000000
theirs apply -f "$configs" -c a100-balanced
is_status 1 "mig-parted cannot reset a GPU with a process on it"
run "$sim/tranche-sim" remove 4000000
theirs apply -f "$configs" -c a100-balanced
is_status 0 "mig-parted applies once the process is gone"

# --- where they should differ -----------------------------------------------------------

# An impossible layout. mig-parted tries every order on the device, clearing it each time, and
# leaves it empty; tranche proves it impossible first and touches nothing.
machine 'a100-40gb:1'
ours apply -f "$configs" -c a100-seven
theirs apply -f "$configs" -c infeasible
is_status 1 "infeasible: mig-parted fails"
run "$sim/tranche-sim" show
! grep -q 'gi ' "$out"
ok $? "infeasible: and leaves the GPU empty"
machine 'a100-40gb:1'
ours apply -f "$configs" -c a100-seven
run "$sim/tranche-sim" show
cp "$out" "$work/before"
ours apply -f "$configs" -c infeasible
[ "$status" -ne 0 ]
ok $? "infeasible: tranche refuses"
run "$sim/tranche-sim" show
same_file "$work/before" "$out" "infeasible: and touches nothing"

# A busy instance that both layouts share. mig-parted replaces all instances of a GPU, so it
# fails; tranche leaves the 4g alone (user-reports R6).
busy() {
    machine 'a100-40gb:1'
    ours apply -f "$configs" -c busy-before
    run "$sim/tranche-sim" show
    gi=$(sed -n 's/^ *gi \([0-9]*\): 4g.*/\1/p' "$out")
    run "$sim/tranche-sim" add --keep --pid 4000000 --device "0/$gi/0"
}
busy
theirs apply -f "$configs" -c busy-after
is_status 1 "busy 4g: mig-parted fails"
busy
uuid=$("$sim/tranche-sim" show | sed -n 's/^ *ci 0: 4g.20gb //p')
ours apply -f "$configs" -c busy-after
is_status 0 "busy 4g: tranche changes the rest"
run "$sim/tranche-sim" show
out_has "$uuid" "busy 4g: it is the same device as before"
ours assert -f "$configs" -c busy-after
is_status 0 "busy 4g: and the layout is as asked"

# One name, two boards (user-reports N10). mig-parted looks a name up among the profiles of
# all GPUs of the node and takes the A100's double-memory 1g.10gb for the H100's plain one.
machine 'a100-40gb:1,h100-80gb-sxm5:1'
theirs apply -f "$configs" -c one-name-two-boards
is_status 1 "1g.10gb on two boards: mig-parted fails"
ours apply -f "$configs" -c one-name-two-boards
is_status 0 "1g.10gb on two boards: tranche goes by the board"
run "$sim/tranche-sim" show
[ "$(grep -c '1g.10gb@' "$out")" = 7 ]
ok $? "1g.10gb on two boards: the H100 has seven"
finish
