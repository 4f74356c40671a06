#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The MIG-serving paper's transitions, in shape: five models, day (16 GPUs) and night (5) of 24
# A100 40GB, eight a machine. Both algorithms side by side, with the paper's action times.
#
#     bench_transition_day_night.sh TRANCHE SOURCE_ROOT
set -eu
tranche=$1
measurements=$2/examples/paper/measurements.csv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# services NAME:MODEL:RATE… — one scale for day, one for night
services() {
    local scale=$1
    echo "services:"
    while IFS=: read -r name model rate; do
        echo "  - {name: $name, model: $model, rate_rps: $(awk "BEGIN { print $rate * $scale }")," \
            "latency_ms: 100, percentile: 90}"
    done <<END
roberta-large:pytorch/roberta-large:260
bert-base-uncased:pytorch/bert-base-uncased:1300
albert-large-v2:pytorch/albert-large-v2:320
densenet121:pytorch/densenet121:900
resnet50:pytorch/resnet50:1900
END
    echo "fleet: [{board: a100-40gb, count: 24, gpus_per_node: 8}]"
    echo "latency_rule: batch"
}
services 5.4 >"$work/day.yaml"
services 1.65 >"$work/night.yaml"
for time in day night; do
    "$tranche" plan -s "$work/$time.yaml" -m "$measurements" -o "$work/$time.json" | head -1
done

# The paper's actions: a create is a start, a delete a stop, a migration a start; a GPU counts as
# repartitioned as often as its most often created instance was (once at least).
cat >"$work/count.py" <<'END'
import collections, json, sys
t, simulated = (json.load(open(path)) for path in sys.argv[1:])
groups = collections.Counter((a["group"].split("-")[0], a["kind"]) for a in t["actions"])
created = collections.defaultdict(collections.Counter)
for a in t["actions"]:
    if a["group"] == "repartition":
        created[a["gpu"]][a["slice"], a["start"]] += a["kind"] == "create_instance"
print(t["extra_gpus"], groups["create", "start"], groups["delete", "stop"], groups["migrate", "start"],
      sum(max(1, *counts.values()) for counts in created.values()), len(t["actions"]),
      round(t["makespan_seconds"], 1), round(simulated["makespan_seconds"], 1))
END

row='%-14s %-16s %6s %6s %6s %7s %11s %8s %7s %9s\n'
# shellcheck disable=SC2059
printf "$row" transition algorithm extra create delete migrate repartition actions time_s sim_s
show() {
    local from=$1 to=$2 algorithm=$3 file=$work/$1-$3.json
    "$tranche" transition plan "$work/$from.json" "$work/$to.json" -a "$algorithm" --spare 24 \
        --times paper -o "$file" >"$work/out"
    "$tranche" transition verify "$file" >"$work/verified"
    "$tranche" transition simulate "$file" --json >"$work/simulated"
    # shellcheck disable=SC2059,SC2046
    printf "$row" "$from to $to" "$algorithm" $(python3 "$work/count.py" "$file" "$work/simulated")
}
for algorithm in dag exchange-compact; do
    show day night $algorithm
    show night day $algorithm
done
echo "in the paper: day to night 22 create, 63 delete, 16 migrate, 6 repartition, about 1021 s;"
echo "              night to day 52 create, 11 delete, 5 migrate, 13 repartition, about 1595 s"
