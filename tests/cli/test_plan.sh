#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tranche plan and plan verify: the paper's example, planted faults, bad input.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

paper=$TRANCHE_SOURCE_ROOT/examples/paper
s=$paper/services.yaml
m=$paper/measurements.csv
json() { python3 -c "import json, sys; x = json.load(open('$1')); assert $2, x"; }
edit() { python3 -c "import json; x = json.load(open('plan.json')); $1; json.dump(x, open('bad.json', 'w'))"; }

# The paper's models: proved optimal and verified.
tranche plan -s "$s" -m "$m" -o plan.json
is_status 0 "plan the sixteen services"
out_has "proved optimal" "it is proved optimal"
json plan.json 'x["schema"] == "tranche.plan/1" and x["status"] == "optimal" and x["bound"]["gpus"] == x["gpus_used"] == x["cost"]'
ok $? "the bound, rounded up, is the cost"
tranche plan verify plan.json -s "$s" -m "$m"
is_status 0 "plan verify accepts it"
cp "$out" said
tranche plan verify plan.json -s "$s" -m "$m" -o verified
same_file said verified "plan verify -o writes what it would print"
tranche plan verify plan.json -s "$s" -m "$m" -o nowhere/verified
is_status 4 "an -o that cannot be written"
tranche plan classify -m "$m" -o classes
[ -s classes ] && [ ! -s "$out" ]
ok $? "plan classify -o writes to the file alone"
tranche plan simulate plan.json -s "$s" -m "$m" --duration 1 --json -o simulated
json simulated '"services" in x'
ok $? "plan simulate -o writes to the file"
tranche plan -s "$s" -m "$m" --json
is_status 0 "plan --json"
same_file "$out" plan.json "the document on standard output is that of -o"
tranche plan -s "$s" -m "$m" --threads 4 -o again.json
same_file again.json plan.json "threads change no byte"
tranche plan -s "$s" -m "$m" --from plan.json -o next.json
json next.json 'x["changes"]["moved"] == 0 and x["changes"]["created"] == 0'
ok $? "planning again from a plan moves nothing"
tranche plan -s "$s" -m "$m" --rules paper -o paper.json
json paper.json 'not any({i["slice"][0] for i in g["instances"]} >= {"4", "3"} for g in x["gpus"])'
ok $? "the paper's rules never put a 4g beside a 3g"
tranche plan -s "$s" -m "$m" --budget 0.000001 -o hasty.json
[ "$status" -eq 0 ]
ok $? "a budget of nothing ends at once"
json hasty.json 'x["stopped_by"] == "budget" and x["status"] == "feasible"'
ok $? "and says so"

# A budget is kept with ten thousand services: the quick fill completes what was begun.
python3 - >many.yaml <<'PYTHON'
models = ["resnet50", "vgg19", "densenet121", "inceptionv3"]
print("latency_rule: batch\nservices:")
for i in range(10000):
    print(f"- {{name: s{i}, model: pytorch/{models[i % 4]}, rate_rps: {10 + i * 37 % 890}, latency_ms: 100, percentile: 90}}")
PYTHON
for algorithm in greedy mcts ga jormungandr; do
    tranche plan -s many.yaml -m "$m" --algorithm "$algorithm" --budget 0.2 -o many.json
    is_status 0 "$algorithm plans ten thousand services within a budget"
    json many.json 'x["stopped_by"] == "budget" and x["status"] == "feasible" and len(x["services"]) == 10000'
    ok $? "$algorithm says that the budget stopped it"
done
tranche plan verify many.json -s many.yaml -m "$m"
is_status 0 "a plan completed in haste is valid"

# Planted faults.
refused() {
    edit "$2"
    tranche plan verify bad.json -s "$s" -m "$m"
    is_status 1 "refused: $1"
}
refused "more GPUs than the bound proves" 'x["bound"]["gpus"] += 1'
refused "a rate short by 0.1%" 'x["gpus"][0]["instances"][0]["rate_rps"] *= 0.999'
refused "a start out of place" 'x["gpus"][0]["instances"][-1]["start"] = 7'
refused "another board" 'x["gpus"][0]["board"] = "h100-80gb-sxm5"'
refused "another board with the same slices" 'x["gpus"][0]["board"] = "a30-24gb"'
refused "a service missing" 'x["services"].pop(); n = {i["name"] for i in x["services"]}; [g.update(instances=[i for i in g["instances"] if i["service"] in n]) for g in x["gpus"]]'
refused "an unknown service" 'x["gpus"][0]["instances"][0]["service"] = "nobody"'
refused "a GPU missing" 'x["gpus"].pop()'
refused "another latency rule" 'x["options"]["latency_rule"] = "half"'
refused "an unknown algorithm" 'x["algorithm"] = "magic"'
refused "another derate" 'x["options"]["derate"] = 0.5'
refused "stopped by something unknown" 'x["stopped_by"] = "magic"'
refused "an unknown slice" 'x["gpus"][0]["instances"][0]["slice"] = "5g.25gb"'
tranche plan verify plan.json -s "$s" -m "$m" --fleet a100-40gb:5
is_status 1 "refused: stock over"
tranche plan verify bad.json -s "$s" -m "$m" --json
is_status 1 "violations in JSON"
json "$out" 'x["valid"] is False and x["violations"]'
ok $? "they are listed"

malformed() {
    edit "$1"
    tranche plan verify bad.json -s "$s" -m "$m"
    is_status 3 "malformed: $1"
    err_has "bad.json: $2" "with its place"
}
malformed 'x["cost"] = None' "cost: found null"
malformed 'x["gpus_used"] = "5"' "gpus_used: "
malformed 'x["options"]["derate"] = "1"' "options.derate: "
malformed 'x["options"]["fleet"] = 7' "options.fleet: "
malformed 'x["options"]["rules"] = None' "options.rules: found null"
malformed 'x["inputs"]["services"] = 12' "inputs.services: "
malformed 'x["inputs"] = []' "inputs: "
edit 'x["inputs"]["measurements"] = "sha256:" + "0" * 64'
tranche plan verify bad.json -s "$s" -m "$m"
is_status 0 "other measurements are no violation in themselves"
err_has "made from other measurements" "but a warning"

# Infeasible.
cat >slow.yaml <<'YAML'
services:
- {name: fast, model: pytorch/resnet50, rate_rps: 100, latency_ms: 1, percentile: 90}
- {name: fine, model: pytorch/resnet50, rate_rps: 100, latency_ms: 100, percentile: 90}
latency_rule: batch
YAML
tranche plan -s slow.yaml -m "$m" -o slow.json
is_status 1 "a latency that nothing meets"
json slow.json 'x["status"] == "infeasible" and x["gpus"] == [] and x["infeasible"][0]["service"] == "fast" and x["infeasible"][0]["reason"] == "latency" and x["infeasible"][0]["nearest_latency_ms"] > 1'
ok $? "the document says which and how near"
[ "$(cat "$out" "$err" | grep -c infeasible)" -eq 1 ] && [ "$(cat "$out" "$err" | grep -c fast)" -eq 1 ]
ok $? "it is said once"
printf 'services:\n- {name: easy, model: pytorch/resnet50, rate_rps: 100, latency_ms: 1000, percentile: 90}\n' >easy.yaml
tranche plan -s easy.yaml -m "$m" -o easy.json
tranche plan simulate easy.json -s easy.yaml -m "$m"
is_status 0 "simulate a plan that keeps its objective"
tranche plan simulate slow.json -s slow.yaml -m "$m"
is_status 1 "simulate an infeasible plan"
err_has "the plan is infeasible" "simulate says so"
tranche plan compare -s slow.yaml -m "$m" -a ones
is_status 1 "compare without any plan"
out_has "no plan" "compare: no plan in the rows"
! grep -q "proved" "$out"
ok $? "compare: nothing is proved"
tranche plan verify slow.json -s slow.yaml -m "$m"
is_status 1 "verify an infeasible plan"
out_is "status: the plan is infeasible: nothing to verify" "no word is doubled"
tranche plan -s "$s" -m "$m" --fleet a100-40gb:3 -o small.json
is_status 1 "too small a fleet"
json small.json 'all(i["reason"] == "stock" for i in x["infeasible"]) and x["infeasible"]'
ok $? "the reason is stock"

for algorithm in exact greedy ones; do
    printf 'services:\n- {name: huge, model: pytorch/resnet50, rate_rps: 1e12, latency_ms: 100, percentile: 90}\nlatency_rule: batch\n' >huge.yaml
    tranche plan -s huge.yaml -m "$m" --algorithm "$algorithm" -o huge.json
    is_status 1 "$algorithm: more GPUs than a plan may hold"
    err_has "more GPUs than a plan may hold, 250000" "$algorithm: the limit is named"
    json huge.json 'x["infeasible"][0]["reason"] == "stock"'
    ok $? "$algorithm: the reason is stock"
done

# Bad input: exit 3 or 4, the place, nothing written.
bad() {
    rm -f bad.json
    tranche plan -s "$2" -m "$3" -o bad.json
    is_status "$4" "$1"
    err_has "$5" "$1: the place"
    [ ! -e bad.json ]
    ok $? "$1: nothing written"
}
: >empty
head -c 300 /bin/ls >binary
printf 'services:\n- {name: a, model: no-such, rate_rps: 1, latency_ms: 5}\n' >unknown.yaml
printf 'model,board,slice,batch,procs,throughput_rps,latency_ms_p90\nx,a100-40gb,1g,1,1,nan,5\n' >nan.csv
{ head -1 "$m"; head -c 10000000 /dev/zero | tr '\0' x; } >long.csv
bad "an empty services file" empty "$m" 3 "empty"
bad "an empty measurements file" "$s" empty 3 "empty"
bad "a binary file" "$s" binary 3 "binary:"
bad "a line of 10 MB" "$s" long.csv 3 "long.csv:2"
bad "a number that is none" "$s" nan.csv 3 "nan.csv:2:20"
bad "an unknown model" unknown.yaml "$m" 3 "unknown.yaml:2:20:"
bad "a directory" . "$m" 4 "."
bad "a file that is not there" none.yaml "$m" 4 "none.yaml"
tranche plan -s "$s" -m "$m" -o /no/such/folder/plan.json
is_status 4 "a folder that is not there"
if [ -e /dev/full ]; then
    tranche plan -s "$s" -m "$m" -o /dev/full
    is_status 4 "a full disk"
fi
head -c 400 plan.json >cut.json
tranche plan verify cut.json -s "$s" -m "$m"
is_status 3 "a truncated plan"
err_has "cut.json:" "a truncated plan: the place"
tranche plan -s "$s"
is_status 2 "no measurements named"

# All slots are of one kind and some are kept: what is left to plan has no price at all.
cat >one_kind.csv <<'END'
model,board,slice,batch,procs,throughput_rps,latency_ms_p99
bert,h100-80gb-sxm5,1g.10gb,1,1,60,36.667
bert,h100-80gb-sxm5,1g.10gb,4,1,90,64.444
resnet,h100-80gb-sxm5,1g.10gb,1,1,100,22
resnet,h100-80gb-sxm5,1g.10gb,4,1,150,38.667
END
rates() {
    cat <<END
services:
  - {name: ranker, model: bert, rate_rps: $1, latency_ms: 200}
  - {name: vision, model: resnet, rate_rps: $2, latency_ms: 200}
fleet: [{board: h100-80gb-sxm5, count: 2}]
END
}
rates 220 150 >day.yaml
rates 60 420 >night.yaml
tranche plan -s day.yaml -m one_kind.csv -o day.json
tranche plan -s night.yaml -m one_kind.csv --from day.json -o night.json
is_status 0 "planning again where nothing has a price ends"
tranche plan verify night.json -s night.yaml -m one_kind.csv
is_status 0 "and the plan is right"

finish
