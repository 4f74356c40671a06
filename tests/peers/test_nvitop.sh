#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# nvitop, on a terminal, shows the simulated GPUs, their MIG devices and the processes on
# them. It lists MIG devices once, when it starts (1.7.2), so it is started again after a change.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer python/bin/nvitop
command -v tmux >/dev/null || skip_all "no tmux: apt-get install tmux"

machine 'a100-40gb:1,h100-80gb-sxm5:1'
run "$TRANCHE" gpu apply --driver sim --gpu 0 --layout '3g@4,2g@0,1g@2'
is_status 0 "tranche partitions GPU 0"
sleep 120 &
sleeper=$!
socket=tranche-nvitop-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null; kill "$sleeper" 2>/dev/null; rm -rf "$work"' EXIT
run "$sim/tranche-sim" add --device 0/2/0 --pid "$sleeper" --memory-mib 4096 --sm 100
is_status 0 "a process is put on the 3g"

screen() {
    tmux -L "$socket" capture-pane -p >"$out" 2>"$err"
}

# shows TEXT NAME: within 30 s the screen has the text.
shows() {
    last_command="nvitop in tmux"
    for _ in $(seq 150); do
        screen
        grep -qF -e "$1" "$out" && break
        sleep 0.2
    done
    file_has "$out" "$1" "$2"
}

start_nvitop() {
    tmux -L "$socket" -f /dev/null new-session -d -x 120 -y 60 \
        "LD_LIBRARY_PATH='$sim' '$peers/python/bin/nvitop' --monitor full --ascii"
}

start_nvitop
shows 'A100-SXM4-40GB' "GPU 0 is shown"
shows 'H100 80GB HBM3' "GPU 1 is shown"
shows '1g.5gb @ GI/CI: 9/0' "its 1g is a MIG device"
shows '2g.10gb @ GI/CI: 3/0' "its 2g is a MIG device"
shows '3g.20gb @ GI/CI: 2/0' "its 3g is a MIG device"
shows '4096MiB' "the memory of the process is shown"
shows "$sleeper" "the process is shown"
grep -qE 'A100-SXM4-40GB' "$out" && grep -qE 'Enabled' "$out"
ok $? "the MIG mode is shown"

tmux -L "$socket" send-keys q
for _ in $(seq 50); do
    tmux -L "$socket" has-session 2>/dev/null || break
    sleep 0.1
done
! tmux -L "$socket" has-session 2>/dev/null
ok $? "nvitop ends with q"
run "$TRANCHE" gpu apply --driver sim --gpu 0 --layout '7g@0'
is_status 4 "a busy 3g is not destroyed"
kill "$sleeper"
wait "$sleeper" 2>/dev/null
run "$TRANCHE" gpu apply --driver sim --gpu 0 --layout '7g@0'
is_status 0 "tranche repartitions GPU 0"
start_nvitop
shows '7g.40gb @ GI/CI: 0/0' "nvitop shows the new layout"
finish
