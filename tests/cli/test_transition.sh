#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
#
# tranche transition plan|verify|simulate|rollback.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

json() { python3 -c "import json, sys; x = json.load(open('$1')); assert $2, x"; }
# edit FILE STATEMENTS… changes the JSON document x in place
edit() { python3 -c "
import json, sys
x = json.load(open('$1'))
$2
json.dump(x, open('$1', 'w'))"; }

instance() { # SLICE START SERVICE RATE
    echo "{\"slice\": \"$1\", \"start\": $2, \"service\": \"$3\", \"batch\": 8, \"procs\": 1, \"rate_rps\": $4}"
}
plan() { # SERVICES GPU…: each GPU a list of instances
    local services=$1 id=0 gpus=
    shift
    for gpu in "$@"; do
        gpus+="${gpus:+, }{\"id\": \"g$id\", \"board\": \"a100-40gb\", \"node\": \"n0\", \"instances\": [$gpu]}"
        id=$((id + 1))
    done
    echo "{\"schema\": \"tranche.plan/1\", \"status\": \"feasible\", \"gpus\": [$gpus], \"services\": [$services]}"
}
services='{"name": "a", "required_rps": 100, "provided_rps": 120}, {"name": "b", "required_rps": 50, "provided_rps": 60}'
plan "$services" "$(instance 4g 0 a 120), $(instance 3g 4 b 60)" >from.json
plan "$services" "$(instance 4g 0 b 60), $(instance 3g 4 a 120)" >to.json
plan "$services" "$(instance 4g 0 a 120), $(instance 3g 4 b 60)" "$(instance 3g 0 a 120)" >more.json

# plan
fails 1 "service \"b\" gives 60 rps" "no order without a spare" transition plan from.json to.json
err_has "1 spare GPU would do (--spare 1)" "how many would do"
err_has "g0" "which GPU"
tranche transition plan from.json to.json --spare 1 -o t.json
is_status 0 "with a spare GPU"
out_has "1 borrowed GPU" "the text says what is borrowed"
out_has "create_instance" "the text lists the actions"
json t.json 'x["schema"] == "tranche.transition/1" and x["extra_gpus"] == 1'
ok $? "the document"
json t.json 'x["floor_rps"] == {"a": 100, "b": 50} and x["match"] == {"g0": "g0"}'
ok $? "floor and match"
json t.json '[g["id"] for g in x["gpus"]] == ["g0", "spare0"]'
ok $? "GPUs touched and borrowed"
json t.json 'all(set(a) == {"id", "kind", "gpu", "slice", "start", "service", "batch", "procs", "rate_rps", "after", "seconds", "group"} for a in x["actions"])'
ok $? "members of an action"
json t.json 'x["from"]["gpus"][0]["instances"][0]["slice"] == "4g.20gb" and len(x["to"]["services"]) == 2'
ok $? "both plans are inside"
tranche transition plan from.json more.json --json
is_status 0 "growth"
json "$out" '[g["id"] for g in x["gpus"]] == ["new0"] and x["match"]["g1"] == "new0" and x["extra_gpus"] == 0'
ok $? "a new GPU"
tranche transition plan from.json from.json
out_has "0 actions in 0 s" "nothing to do"
tranche transition plan from.json to.json --spare 1 -a exchange-compact -o paper.json
is_status 0 "exchange-compact"
json paper.json 'x["algorithm"] == "exchange-compact" and any(a["group"].startswith("migrate") for a in x["actions"])'
ok $? "its groups"
fails 1 "would do (--spare" "exchange-compact without a spare" transition plan from.json to.json -a exchange-compact
cp t.json again.json
tranche transition plan from.json to.json --spare 1 -o again.json
same_file t.json again.json "the same inputs give the same bytes"
tranche transition plan from.json to.json --spare 1 --times paper -o p.json
json p.json 'x["makespan_seconds"] > 100'
ok $? "the paper's times"
printf 'seconds: {start: 100}\nservices: [{name: b, start: 1}]\n' >times.yaml
tranche transition plan from.json more.json --times times.yaml --json
json "$out" '[a["seconds"] for a in x["actions"] if a["kind"] == "start"] == [100]'
ok $? "times from a file"
printf 'seconds: {begin: 100}\n' >times.yaml
fails 3 "times.yaml:1:11: " "an unknown kind of action" transition plan from.json to.json --times times.yaml
fails 4 "missing.yaml" "no such file of times" transition plan from.json to.json --times missing.yaml
fails 4 "missing.json" "no such plan" transition plan missing.json to.json
plan "$services" "$(instance 4g 0 a 120), $(instance 3g 4 c 60)" >bad.json
fails 3 "bad.json: gpus[0].instances[1].service: " "a plan that is wrong" transition plan bad.json to.json
plan "$services" "$(instance 3g 4 b 60)" >less.json
fails 1 'service "a": to gives 0 rps' "a plan that gives too little" transition plan from.json less.json
plan "$services" "$(instance 3g 4 a 120), $(instance 3g 0 b 60)" >smaller.json
tranche transition plan from.json smaller.json --spare 1 --allow-larger-slice --json
json "$out" 'x["actions"] == [] and any(i["slice"] == "4g.20gb" for i in x["to"]["gpus"][0]["instances"])'
ok $? "a larger slice that stays is in to"

# verify
tranche transition verify t.json
is_status 0 "verify"
out_has "safe in every order" "verify says what it proved"
cp "$out" said
tranche transition verify t.json -o verified
same_file said verified "verify -o writes what it would print"
tranche transition verify t.json --json
json "$out" 'x["valid"] and len(x["services"]) == 2 and all(s["minimum_rps"] >= s["floor_rps"] for s in x["services"])'
ok $? "verify in JSON"
cp t.json broken.json
edit broken.json '
drain = next(a for a in x["actions"] if a["kind"] == "drain" and a["after"])
drain["after"] = []'
tranche transition verify broken.json
is_status 1 "an edge removed"
out_has "floor: " "names the rule"
err_has "violation" "counts violations"
cp t.json broken.json
edit broken.json 'x["actions"][0]["after"] = [x["actions"][-1]["id"]]'
fails 3 "waits for itself" "a cycle" transition verify broken.json
cp t.json broken.json
edit broken.json 'x["actions"][1]["kind"] = "begin"'
fails 3 "broken.json: actions[1].kind: \"begin\"" "an unknown kind" transition verify broken.json
cp t.json broken.json
edit broken.json 'x["makespan_seconds"] = 1'
tranche transition verify broken.json
out_has "figures: makespan_seconds" "a wrong makespan"
fails 2 "--json" "verify without a file" transition verify --jso

# simulate
tranche transition simulate t.json
is_status 0 "simulate"
out_has "least_rps" "the text has the least capacity"
tranche transition simulate t.json --jitter --fail 0.2 --seed 5 --json
json "$out" 'x["makespan_seconds"] > 0 and x["extra_gpu_seconds"] > 0'
ok $? "simulate in JSON"
cp "$out" first
tranche transition simulate t.json --jitter --fail 0.2 --seed 5 --json
same_file first "$out" "the same seed gives the same run"
tranche transition simulate t.json --lose g0@1 -o on.json
is_status 0 "a lost GPU"
out_has "g0 was lost at 1 s" "says when"
out_has "unavoidable: a had 120 rps there and is left with 0, below its floor of 100" "says what was unavoidable"
tranche transition verify on.json
is_status 0 "the way on is safe"
fails 3 '"g9" is not a GPU' "an unknown GPU is lost" transition simulate t.json --lose g9@1
fails 2 "GPU@SECONDS" "wrong --lose" transition simulate t.json --lose g0
tranche transition simulate again.json --times paper --json
json "$out" 'x["makespan_seconds"] > 100'
ok $? "simulate with other times"

# rollback
tranche transition rollback t.json --done a1 -o back.json
is_status 0 "rollback"
tranche transition verify back.json
is_status 0 "the way back is safe"
json back.json 'x["to"]["gpus"][0]["instances"][0]["service"] == "a" and x["match"] == {"g0": "g0"}'
ok $? "the way back ends in from"
all=$(python3 -c 'import json; print(",".join(a["id"] for a in json.load(open("t.json"))["actions"]))')
tranche transition rollback t.json --done "$all" -o back.json
is_status 0 "rollback from the end"
fails 3 '"zz" is not an action' "an unknown action" transition rollback t.json --done zz
fails 3 "waits for" "a state that cannot be reached" transition rollback t.json --done "${all##*,}"
fails 2 "--done" "rollback needs --done" transition rollback t.json
tranche transition rollback t.json --done - --json
json "$out" 'x["actions"] == []'
ok $? "nothing done, nothing to take back"

finish
