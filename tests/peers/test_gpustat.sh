#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# gpustat lists simulated GPUs and the processes on them.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer python/bin/gpustat

machine 'a100-40gb:2,h100-80gb-sxm5:1'
sleep 60 &
sleeper=$!
trap 'kill "$sleeper"; rm -rf "$work"' EXIT
run "$sim/tranche-sim" add --device 1 --pid "$sleeper" --memory-mib 2048 --sm 60 --name trainer
is_status 0 "a process is put on GPU 1"
run with_library "$peers/python/bin/gpustat" --no-color --show-pid --show-power
is_status 0 "gpustat ends well"
out_has '[0] NVIDIA A100-SXM4-40GB' "GPU 0 is listed"
out_has '[2] NVIDIA H100 80GB HBM3' "GPU 2 is listed"
grep -qE "^\[1\].* 57.C, +60 %.* 2048 / 40960 MB \|.*/$sleeper\(2048M\)" "$out"
ok $? "GPU 1 shows its load, memory and process"

run with_library "$peers/python/bin/gpustat" --json
python3 - "$out" <<'EOF'
import json, sys
gpus = json.load(open(sys.argv[1]))["gpus"]
assert [gpu["index"] for gpu in gpus] == [0, 1, 2]
assert gpus[1]["utilization.gpu"] == 60 and gpus[0]["utilization.gpu"] == 0
assert gpus[1]["power.draw"] > gpus[0]["power.draw"]
assert gpus[1]["processes"][0]["gpu_memory_usage"] == 2048
EOF
ok $? "its JSON has the same numbers"

# Utilisation of a whole GPU is not supported in MIG mode: gpustat shows no number.
run "$TRANCHE" gpu apply --driver sim --gpu 0 --layout '3g@0,3g@4'
is_status 0 "tranche partitions GPU 0"
run with_library "$peers/python/bin/gpustat" --no-color
grep -qE '^\[0\] NVIDIA A100-SXM4-40GB \|.* \?\? %' "$out"
ok $? "a partitioned GPU has no utilisation"
finish
