#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# The exact planner beside HiGHS (PyPI highspy, into the build folder) and CBC, both on the
# compact aggregate model of the same problems, one thread each, 60 s each: our cost is
# never higher, our bound (rounded up) never lower. Times: ours of the whole program,
# theirs of solving alone.
#
#     bench_plan_peers.sh TRANCHE BENCH_PLAN FOLDER
set -euo pipefail

tranche=$1
bench=$2
folder=$3/plan_peers
rows=$TRANCHE_SOURCE_ROOT/examples/paper/measurements.csv
mkdir -p "$folder"
python=$folder/environment/bin/python
if ! [ -x "$python" ]; then
    python3 -m venv "$folder/environment"
    "$folder/environment/bin/pip" install --quiet --disable-pip-version-check highspy==1.16.0 \
        pyyaml==6.0.4
fi
failed=0
printf '%-22s %28s %28s %28s\n' case 'tranche cost bound s' 'HiGHS cost bound s' 'CBC cost bound s'
for words in 'normal 8 1 4' 'lognormal 8 2 4' 'normal 16 1 12' 'lognormal 16 2 12' \
    'normal 24 1 12' 'lognormal 24 3 12' 'normal 24 2 2.5'; do
    # shellcheck disable=SC2086
    set -- $words
    "$bench" yaml "$@" >"$folder/services.yaml"
    start=$(date +%s.%N)
    "$tranche" plan -s "$folder/services.yaml" -m "$rows" -o "$folder/plan.json" >"$folder/text"
    end=$(date +%s.%N)
    ours=$("$python" -c "
import json, sys
plan = json.load(open(sys.argv[1]))
print(plan['cost'], plan['bound']['cost'], round(float(sys.argv[3]) - float(sys.argv[2]), 3))
" "$folder/plan.json" "$start" "$end")
    highs=$("$python" "$TRANCHE_SOURCE_ROOT/bench/compact_highs.py" "$folder/services.yaml" "$rows" | tail -1)
    cbc=$("$bench" cbc "$@")
    printf '%-22s %28s %28s %28s\n' "$words" "$ours" "$highs" "$cbc"
    "$python" - "$ours" "$highs" "$cbc" <<'END' || failed=1
import math, sys
(cost, bound, seconds), *peers = ([float(x) for x in words.split()] for words in sys.argv[1:])
for name, (peer_cost, peer_bound, peer_seconds) in zip(("HiGHS", "CBC"), peers):
    print(f"    {name}: {peer_seconds / seconds:.2g} times our time")
    if cost > peer_cost + 1e-6 or math.ceil(bound - 1e-6) < math.ceil(peer_bound - 1e-4):
        sys.exit(f"    {name} is better")
END
done
exit $failed
