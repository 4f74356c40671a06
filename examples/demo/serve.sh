#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The second half of the demo: the day plan answers requests, is changed to the night plan
# and back under load, and what came of it is counted.
#
#     examples/demo/serve.sh BUILD        leaves BUILD/demo/summary.json, the day and night plans, and both
#                                     changes as they were measured
#
# GPUs are simulated; each instance is a CPU quota. A whole GPU is 0.4 cores, so that the
# servers, HAProxy and the clients fit on two. Rows are measured at that size and through the
# server, whose own work takes from the same quota.
set -euo pipefail
build=$1
here=$(dirname "$0")
demo=$build/demo
tranche=$build/tranche
full_slice=0.4
phase_seconds=${DEMO_PHASE_SECONDS:-8}
change_seconds=${DEMO_CHANGE_SECONDS:-20}
shapes=(ppocr_cls=x=Nx3x48x192 ppocr_det=x=Nx3x320x320)
mkdir -p "$demo"
# Sockets want a short path; the simulated machine is this run's own.
state=$(mktemp -d)
export TRANCHE_RUNTIME_DIR=$state/run TRANCHE_SIM_STATE=$state/gpus.json

finish() {
    "$tranche" down >/dev/null 2>&1 || true
    rm -rf "$state"
}
trap finish EXIT

step() { printf '\n== %s\n' "$*"; }

step "measure what will serve, a whole GPU being $full_slice cores"
options=()
for shape in "${shapes[@]}"; do
    options+=(--model "$build/models/${shape%%=*}.onnx" --shape "${shape/=//}")
done
"$tranche" bench sweep --served --allow-invalid --board a100-40gb --cpu-full-slice $full_slice --slices 1g,2g,3g,4g --batches 1 \
    "${options[@]}" -o "$demo/measurements-serving.csv" || [ $? -eq 1 ] # unsteady rows are told, and kept

step "a plan for the day and one for the night"
"$tranche" plan -s "$here/services-day.yaml" -m "$demo/measurements-serving.csv" -o "$demo/plan-day.json"
"$tranche" plan -s "$here/services-night.yaml" -m "$demo/measurements-serving.csv" -o "$demo/plan-night.json"
"$tranche" transition plan "$demo/plan-day.json" "$demo/plan-night.json" --spare 1 -o "$demo/transition.json"
gpus=$(python3 -c 'import json, sys
print(1 + max(len(json.load(open(name))["gpus"]) for name in sys.argv[1:]))' "$demo/plan-day.json" "$demo/plan-night.json")
export TRANCHE_SIM_FLEET=a100-40gb:$gpus # one is spare: a change may borrow it

step "up: the day plan on simulated GPUs"
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$tranche" up "$demo/plan-day.json" -s "$here/services-day.yaml" --models "$build/models" \
    --cpu-full-slice $full_slice --port "$port"

# load SECONDS NAME PLAN...: open-loop traffic on every service at the least rate that the plans require.
load() {
    local pids=() service rate shape seconds=$1 name=$2
    shift 2
    while read -r service rate shape; do
        "$tranche" bench http --api kserve --model "$service" --binary --shape "$shape" \
            -r "poisson:$rate" -d "$seconds" --warmup 0 --timeout 30 --min-requests 1 --seed 1 \
            "http://127.0.0.1:$port" -o "$state/load-$name-$service.json" >"$state/load-$name-$service.txt" 2>&1 &
        pids+=($!)
    done < <(python3 "$here/serve_summary.py" rates "$@")
    wait "${pids[@]}" || true # what failed is counted below
}
snapshot() { "$tranche" status --json >"$state/status-$1.json"; }

step "open-loop traffic: before, while day changes to night and back, after"
snapshot 0
load "$phase_seconds" before "$demo/plan-day.json"
snapshot 1
load "$change_seconds" during "$demo/plan-day.json" "$demo/plan-night.json" &
loading=$!
sleep 1
for plan in night day; do
    "$tranche" apply "$demo/plan-$plan.json" --spare 1 --json >"$demo/change-to-$plan.json"
    echo "changed to $plan"
done
wait $loading
snapshot 2
load "$phase_seconds" after "$demo/plan-day.json"
snapshot 3
"$tranche" status

step "what came of it"
python3 "$here/serve_summary.py" summary "$state" "$demo"

step "down: the layout found is restored"
"$tranche" down
"$tranche" gpu list
