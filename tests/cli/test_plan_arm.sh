#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# plan compare, simulate, classify, and the reference algorithms' options.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

paper=$TRANCHE_SOURCE_ROOT/examples/paper
files=(-s "$paper/services.yaml" -m "$paper/measurements.csv")

tranche plan compare "${files[@]}" --rounds 2
is_status 0 "compare"
for name in exact greedy mcts ga parvagpu jormungandr whole ones mix; do
    out_has "$name" "compare lists $name"
done
out_has "proved bound: " "compare prints the proved bound"
out_has "lower bound, without MIG's rules" "compare prints the paper's bound"

tranche plan compare "${files[@]}" -a greedy -a whole --json
is_status 0 "compare --json"
python3 - "$out" <<'PYTHON'
import json, sys
document = json.load(open(sys.argv[1]))
rows = {row["algorithm"]: row for row in document["algorithms"]}
assert set(rows) == {"exact", "greedy", "whole"}, rows.keys()
assert rows["exact"]["status"] == "optimal" and rows["exact"]["gap"] == 0
assert rows["exact"]["cost"] <= rows["greedy"]["cost"] <= rows["whole"]["cost"]
assert document["paper_bound"] <= document["bound_cost"] <= rows["exact"]["cost"]
assert all(row["seconds"] >= 0 and row["memory_mib"] > 0 for row in rows.values())
PYTHON
ok $? "compare's JSON is in order"
fails 2 "algorithm \"simplex\" is not known" "an unknown algorithm" \
    plan compare "${files[@]}" -a simplex
fails 2 "mcts-services" "a parameter out of range" \
    plan "${files[@]}" --algorithm mcts --mcts-services 99

for name in greedy mcts ga whole ones mix parvagpu jormungandr; do
    tranche plan "${files[@]}" --algorithm "$name" --rules paper --rounds 2 -o "$work/$name.json"
    is_status 0 "plan --algorithm $name"
    tranche plan verify "$work/$name.json" "${files[@]}"
    is_status 0 "the plan of $name holds"
done
tranche plan "${files[@]}" --algorithm ga --rounds 3 --seed 5 --threads 1 -o "$work/one.json"
tranche plan "${files[@]}" --algorithm ga --rounds 3 --seed 5 --threads 3 -o "$work/three.json"
same_file "$work/one.json" "$work/three.json" "threads change nothing"

tranche plan simulate "$work/greedy.json" "${files[@]}" --duration 5
is_status 1 "simulate: rule batch knows no waiting, so objectives are missed"
err_has "miss their objective" "simulate says so"
out_has "resnet50-pytorch" "simulate lists the services"
tranche plan simulate "$work/greedy.json" "${files[@]}" --requests 2000 --json
is_status 1 "simulate --json"
python3 - "$out" <<'PYTHON'
import json, sys
services = json.load(open(sys.argv[1]))["services"]
assert len(services) == 16
for service in services:
    assert 0 <= service["attainment"] <= 1
    assert service["met"] == (service["attainment"] >= 0.9)
    assert service["latency_ms"]["p50"] <= service["latency_ms"]["p99.9"]
PYTHON
ok $? "simulate's JSON is in order"
cp "$out" "$work/first"
tranche plan simulate "$work/greedy.json" "${files[@]}" --requests 2000 --json
same_file "$out" "$work/first" "the same seed simulates the same"

printf 'time_s,resnet50-pytorch\n0,10\n5,20\n' >trace.csv
tranche plan simulate "$work/greedy.json" "${files[@]}" --duration 10 --trace trace.csv
is_status 1 "simulate --trace"
printf 'time_s,nobody\n0,10\n' >trace.csv
fails 3 "column \"nobody\" is neither time_s nor a service" "a trace of an unknown service" \
    plan simulate "$work/greedy.json" "${files[@]}" --trace trace.csv
printf 'time_s,resnet50-pytorch\n0,10\n0,20\n' >trace.csv
fails 3 "trace.csv:3:1: time_s must begin at 0 and rise" "a trace that stands still" \
    plan simulate "$work/greedy.json" "${files[@]}" --trace trace.csv
fails 4 "no-such.csv" "a trace that is not there" \
    plan simulate "$work/greedy.json" "${files[@]}" --trace no-such.csv

tranche plan classify -m "$paper/measurements.csv"
golden plan_classify.txt "classify"
tranche plan classify -m "$paper/measurements.csv" --json
out_has '"class": "super-linear"' "classify --json"

finish
