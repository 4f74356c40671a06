#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The exact planner beside HiGHS (PyPI highspy, into the build folder) and CBC, both on the
# compact aggregate model of the same problems, one thread each, LIMIT seconds each: our cost
# is never higher, our bound (rounded up) never lower, whether a peer finished or not. Times:
# ours of the whole program, theirs of solving alone. Some three minutes in all.
#
#     bench_plan_peers.sh TRANCHE BENCH_PLAN FOLDER [LIMIT]
set -euo pipefail

tranche=$1
bench=$2
folder=$3/plan_peers
limit=${4:-12}
rows=$TRANCHE_SOURCE_ROOT/examples/paper/measurements.csv
mkdir -p "$folder"
python=$folder/environment/bin/python
if ! "$python" -c 'import highspy, yaml' 2>/dev/null; then
    python3 -m venv "$folder/environment"
    "$folder/environment/bin/pip" install --quiet --disable-pip-version-check highspy==1.16.0 \
        pyyaml==6.0.4
fi
: >"$folder/results"
for words in 'normal 8 1 4' 'lognormal 8 2 4' 'normal 16 1 12' 'lognormal 16 2 12' \
    'normal 24 1 12' 'lognormal 24 3 12' 'normal 24 2 2.5'; do
    # shellcheck disable=SC2086
    set -- $words
    "$bench" yaml "$@" >"$folder/services.yaml"
    start=$(date +%s.%N)
    "$tranche" plan -s "$folder/services.yaml" -m "$rows" -o "$folder/plan.json" >"$folder/text"
    end=$(date +%s.%N)
    highs=$("$python" "$TRANCHE_SOURCE_ROOT/bench/compact_highs.py" "$folder/services.yaml" \
        "$rows" "$limit" | tail -1)
    cbc=$("$bench" cbc "$@" "$limit")
    echo "$words|$start $end|$highs|$cbc" >>"$folder/results"
    "$python" "$TRANCHE_SOURCE_ROOT/bench/compare_peers.py" "$folder/plan.json" "$folder/results" last
done
"$python" "$TRANCHE_SOURCE_ROOT/bench/compare_peers.py" "$folder/plan.json" "$folder/results" all
