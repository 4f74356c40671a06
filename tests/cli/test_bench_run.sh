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
for file in result.json measurements.csv migperf.csv summary.txt metrics.prom runs.jsonl samples.jsonl; do
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
echo $$ >whole/journal.jsonl.lock
run flock whole/journal.jsonl.lock "$TRANCHE" bench run e.yaml -o whole
is_status 4 "two at a time"
err_has "tranche bench run: whole/journal.jsonl.lock: in use by process $$; wait for it or stop it" "are refused"

# Interrupted at ten random points, by turns cleanly and not. The workload itself sends the
# signal (fake_workload.py), so what is interrupted does not depend on the machine's speed: at
# most two runs are done between two interruptions, fewer than there are.
sed 's/repetitions: 2/repetitions: 4/' e.yaml >parts.yaml
RANDOM=7
points=(start ready middle end)
export TRANCHE_TEST_KILL=$work/in/kill
interruptions=0
for round in $(seq 10); do
    signal=$([ $((round % 2)) = 0 ] && echo 9 || echo 2)
    order="$signal ${points[RANDOM % 4]} $((RANDOM % 2))"
    "$TRANCHE" bench run parts.yaml -o parts --quiet >"$out" 2>"$err" </dev/null &
    pid=$!
    echo "$pid $order" >kill.new
    mv kill.new kill
    status=0
    wait $pid 2>/dev/null || status=$?
    last_command="round $round: $order"
    if [ ! -e kill ] && { [ $status = 4 ] || [ $status = 137 ]; }; then
        interruptions=$((interruptions + 1))
    else
        break
    fi
done
[ $interruptions = 10 ]
ok $? "ten interruptions end it with status 4, or at once"
unset TRANCHE_TEST_KILL
tranche bench run parts.yaml -o parts
[ "$status" -le 1 ]
ok $? "then it comes to its end"
keys whole/result.json | sed 's/ 2$/ 4/' >whole.keys
keys parts/result.json >parts.keys
same_file whole.keys parts.keys "with the same cells and runs as without interruptions"
[ "$(tail -n +2 parts/journal.jsonl | sed 's/,"samples_bytes.*//' | sort -u | wc -l)" = 24 ] && [ "$(wc -l <parts/journal.jsonl)" = 25 ]
ok $? "no run was done twice"
python3 - <<'END'
import collections
import json
import os

lines = [json.loads(line) for line in open("parts/journal.jsonl")][1:]
found = collections.Counter()
for sample in map(json.loads, open("parts/samples.jsonl")):
    assert sample["end_ns"] > sample["start_ns"] and sample["every"] == 1, sample
    found[sample["cell"], sample["repetition"], sample["instance"]] += 1
for line in lines:
    assert "samples" not in line["run"]
    for number, run in enumerate(line["run"].get("instances", [line["run"]])):
        assert found.pop((line["cell"], line["repetition"], number)) == run["counts"]["steps"]
assert not found
assert os.path.getsize("parts/samples.jsonl") == max(line["samples_bytes"] for line in lines)
END
ok $? "every step of every run is a sample, once"

printf '{"cell":0,"repet' >>parts/journal.jsonl
tranche bench run parts.yaml -o parts --dry-run
out_has "24 of 24 runs done" "a line cut off by a crash is ignored"
fails 3 "another experiment" "the journal of another experiment is refused" bench run e.yaml -o parts

# Phases that the workload times, and samples evenly chosen.
cat >phases.yaml <<END
experiment: phases
models:
  - {name: told, command: [$workload, --phases]}
  - {name: untold, command: [$workload]}
slices: [3g]
modes: [alone, busy]
measure: {duration_s: 0.3, longest_s: 3, warmup_s: 0.02, min_steps: 10, ready_timeout_s: 30, silence_timeout_s: 30}
END
tranche bench run phases.yaml -o phases --samples 4
[ "$status" -le 1 ]
ok $? "a closed loop whose workload times its phases"
python3 - <<'END'
import collections
import json

for cell in json.load(open("phases/result.json"))["cells"]:
    (run,) = cell["runs"]
    figures = run["figures"]
    if cell["key"]["model"] == "told":
        for name, ms in (("input", 1), ("compute", 3), ("output", 1)):
            assert abs(figures[f"{name}_ms_mean"] - ms) < 0.002 * ms, figures
            assert name in run["histograms"]
    else:
        assert figures["compute_ms_mean"] == figures["latency_ms_mean"]
        assert "input_ms_mean" not in figures
samples = collections.Counter((s["cell"], s["instance"]) for s in map(json.loads, open("phases/samples.jsonl")))
assert len(samples) == 6 and all(1 <= count <= 4 for count in samples.values()), samples
END
ok $? "has them in the result, and at most the samples asked for"
tranche bench run phases.yaml -o phases.none --samples 0
[ "$status" -le 1 ] && [ ! -e phases.none/samples.jsonl ]
ok $? "no samples, no file"
echo 'experiment: x' >bad.yaml
fails 3 "bad.yaml:1:1: models is missing" "models are needed" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [9g]\n' >bad.yaml
fails 3 'bad.yaml:3:10: ' "a slice that the board lacks" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [1g]\nmodes: [shared]\n' >bad.yaml
fails 3 'mode "shared", expected one of whole, alone' "a mode that there is not" bench run bad.yaml
printf 'experiment: x\nmodels: [resnet]\nslices: [1g]\nbatchs: [1]\n' >bad.yaml
fails 3 'batches' "a key mistyped" bench run bad.yaml

# The built-in workload: each repetition has inputs of its own, and outputs are right in all.
for library in "${TRANCHE%/*}"/ort/libonnxruntime.so* "$TRANCHE_SOURCE_ROOT"/build/ort/libonnxruntime.so*; do
    [ -z "${TRANCHE_ORT_LIBRARY:-}" ] && [ -e "$library" ] && export TRANCHE_ORT_LIBRARY=$library
done
if [ -n "${TRANCHE_ORT_LIBRARY:-}" ]; then
    cat >outputs.yaml <<END
experiment: outputs
models: ["cnn:size=16"]
slices: [3g]
modes: [alone, busy]
repetitions: 3
measure: {duration_s: 0.05, longest_s: 2, warmup_s: 0, min_steps: 1, ready_timeout_s: 60, silence_timeout_s: 60}
END
    tranche bench run outputs.yaml -o outputs
    [ "$status" -le 1 ]
    ok $? "three repetitions of the built-in workload"
    python3 -c 'import json
runs = [run for cell in json.load(open("outputs/result.json"))["cells"] for run in cell["runs"]]
assert len(runs) == 6 and all(run["status"] == "ok" for run in runs)
assert not any("wrong-output" in run["verdict_reasons"] for run in runs)'
    ok $? "none of them has wrong outputs"
    tranche report outputs/result.json -o outputs.html
    is_status 0 "their report"
    grep -q '<h3>Answer</h3>' outputs.html && grep -q 'Everything fitted: all 2 cells ran.' outputs.html
    ok $? "answers in words"
else
    skip_missing "no ONNX Runtime (tools/fetch_packages.sh)" "repetitions of the built-in workload"
fi

for file in "$TRANCHE_SOURCE_ROOT"/experiments/*.yaml; do
    tranche bench run "$file" --dry-run
    is_status 0 "$(basename "$file") can be run"
done

finish
