# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# bench run: cells, files, resumption after interruptions at random points; bench compare.
# shellcheck source=tests/cli/lib.sh
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"
workload=$TRANCHE_SOURCE_ROOT/tests/cli/fake_workload.py

cat >e.yaml <<END
experiment: fake
question: Does it run?
models:
  - {name: a, command: [$workload]}
  - {name: b, command: [$workload]}
slices: [1g, 3g]
modes: [alone, busy]
exclude:
  - {slice: 1g, mode: busy}
repetitions: 2
measure: {duration_s: 0.1, longest_s: 0.2, warmup_s: 0.02, min_steps: 1, ready_timeout_s: 30, silence_timeout_s: 3}
END

keys() { # FILE: the cells and how many runs each has
    python3 -c 'import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]: print(json.dumps(cell["key"]), len(cell["runs"]))' "$1"
}

tranche bench run e.yaml --dry-run
is_status 0 "a dry run measures nothing"
out_has "6 cells, 2 repetitions, 0 of 12 runs done" "and says how much there is to do"
[ ! -e fake.results ]
ok $? "it makes no folder"

tranche bench run e.yaml -o whole
[ "$status" -le 1 ] # INVALID where others take the CPU
ok $? "the experiment runs"
for file in result.json measurements.csv migperf.csv summary.txt metrics.prom runs.jsonl; do
    [ -s "whole/$file" ]
    ok $? "$file is written"
done
[ "$(keys whole/result.json | grep -c '} 2$')" = 6 ]
ok $? "every cell has its runs"
python3 -c 'import json
cells = json.load(open("whole/result.json"))["cells"]
busy = [c for c in cells if c["key"]["mode"] == "busy"]
assert all(len(r["instances"]) == 2 for c in busy for r in c["runs"] if r["status"] == "ok")'
ok $? "a busy run has all its slices"
tranche bench run e.yaml -o whole --dry-run
out_has "12 of 12 runs done, about 0 s to go" "nothing is left to do"

# Interrupted at ten random points, by turns cleanly and not; the seed is said on failure.
RANDOM=7
interruptions=0
for round in $(seq 60); do
    "$TRANCHE" bench run e.yaml -o parts --quiet >parts.out 2>parts.err &
    pid=$!
    if [ $interruptions -lt 10 ]; then
        sleep "0.$((RANDOM % 7 + 2))"
        signal=$([ $((round % 2)) = 0 ] && echo KILL || echo INT)
        kill "-$signal" $pid 2>/dev/null && interruptions=$((interruptions + 1))
    fi
    parts_status=0
    wait $pid || parts_status=$?
    [ $interruptions -ge 10 ] && [ $parts_status -le 1 ] && break
done
[ $interruptions = 10 ]
ok $? "ten interruptions"
[ "$parts_status" -le 1 ]
ok $? "then it comes to its end (in round $round)"
keys whole/result.json >whole.keys
keys parts/result.json >parts.keys
same_file whole.keys parts.keys "with the same cells and runs"
[ "$(sort parts/journal.jsonl | uniq -d | wc -l)" = 0 ] && [ "$(wc -l <parts/journal.jsonl)" = 13 ]
ok $? "no run was done twice"

printf '{"cell":0,"repet' >>parts/journal.jsonl
tranche bench run e.yaml -o parts --dry-run
out_has "12 of 12 runs done" "a line cut off by a crash is ignored"
sed -i 's/repetitions: 2/repetitions: 3/' e.yaml
fails 3 "another experiment" "the journal of another experiment is refused" bench run e.yaml -o parts
echo 'experiment: x' >bad.yaml
fails 3 "bad.yaml:1:1: models is missing" "models are needed" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [9g]\n' >bad.yaml
fails 3 'bad.yaml:3:10: ' "a slice that the board lacks" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [1g]\nmodes: [shared]\n' >bad.yaml
fails 3 'mode "shared", expected one of whole, alone' "a mode that there is not" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [1g]\nbatchs: [1]\n' >bad.yaml
fails 3 'batches' "a key mistyped" bench run bad.yaml

for file in "$TRANCHE_SOURCE_ROOT"/experiments/*.yaml; do
    tranche bench run "$file" --dry-run
    is_status 0 "$(basename "$file") can be run"
done

finish
