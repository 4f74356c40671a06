#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The main job on this machine: measure real models on slices, plan, verify, draw, compare,
# then serve, and change what serves under load (serve.sh).
# Without a GPU a slice is a CPU quota, and the results say so.
#
#     examples/demo/run.sh BUILD        leaves its files in BUILD/demo
set -euo pipefail
build=$1
here=$(dirname "$0")
demo=$build/demo
tranche=$build/tranche
mkdir -p "$demo"

step() { printf '\n== %s\n' "$*"; }

step "measure three models on the slices of an A100-40GB (CPU quotas stand for slices)"
"$tranche" bench sweep --allow-invalid --board a100-40gb --batches 1,4 \
    --model "$build/models/ppocr_det.onnx" --model "$build/models/ppocr_rec.onnx" \
    --model "$build/models/ppocr_cls.onnx" -o "$demo/measurements.csv"
awk -F, '{ printf "%-10s %-9s %5s %15s %15s\n", $1, $3, $4, $6, $9 }' "$demo/measurements.csv"

step "plan the fewest GPUs for examples/demo/services.yaml"
inputs=(-s "$here/services.yaml" -m "$demo/measurements.csv")
"$tranche" plan "${inputs[@]}" -o "$demo/plan.json"
"$tranche" plan "${inputs[@]}"

step "verify it independently"
"$tranche" plan verify "$demo/plan.json" "${inputs[@]}"

step "draw it"
"$tranche" plan draw "$demo/plan.json"
"$tranche" plan draw "$demo/plan.json" --format svg -o "$demo/layout.svg"
echo "$demo/layout.svg"

step "against fixed partitions and the other planners"
"$tranche" plan compare "${inputs[@]}"

# It answers requests, and is changed while it does: summary.json.
"$here/serve.sh" "$build"

step "one page of it all"
"$tranche" report "$demo/measurements.csv" "$demo/plan.json" "$demo/plan-day.json" "$demo/plan-night.json" \
    "$demo/summary.json" "$demo/change-to-night.json" "$demo/change-to-day.json" --title "tranche demo" -o "$demo/report.html"
echo "$demo/report.html"
