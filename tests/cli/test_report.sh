# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
#
# tranche report and tranche plan draw.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh"

examples=$TRANCHE_SOURCE_ROOT/examples/paper
tranche plan -s "$examples/services.yaml" -m "$examples/measurements.csv" -o plan.json
is_status 0 "a plan to show"

tranche plan draw plan.json
is_status 0 "draw in text"
out_has "27 GPUs for 16 services, proved optimal" "the title counts"
out_has "bert-base-uncased-pytorch" "services are named"
tranche plan draw plan.json -o plan.svg
is_status 0 "draw in SVG by the file's name"
grep -q '^<svg' plan.svg
ok $? "it is SVG"
tranche plan -s "$examples/services.yaml" -m "$examples/measurements.csv" --fleet a100-40gb:1 -o none.json
is_status 1 "a plan without GPUs"
tranche plan draw none.json
is_status 0 "may be drawn"
out_is "no plan: infeasible" "as what it is"
fails 4 "nothing.json" "a plan that is not there" plan draw nothing.json
echo '{' >broken.json
fails 3 "broken.json:2:1" "a plan that is no JSON" plan draw broken.json

tranche report "$examples/measurements.csv" plan.json --title 'A & B' -o report.html
is_status 0 "one page of both"
grep -q '<title>A &amp; B</title>' report.html
ok $? "the title is escaped"
grep -q 'pytorch/gpt2 on a100-40gb (inference)' report.html
ok $? "a section for each model"
[ "$(grep -c '<svg' report.html)" -ge 33 ]
ok $? "figures of 16 models and the plan"
! grep -qE '(src|href)="?https?:' report.html
ok $? "nothing is fetched from elsewhere"
! grep -q '<script' report.html
ok $? "no script"
! grep -qE '[">]-?(nan|inf)' report.html
ok $? "no value that is none"

sed 's/rate_rps: [0-9]*/rate_rps: 300/' "$examples/services.yaml" >night.yaml
tranche plan -s night.yaml -m "$examples/measurements.csv" -o night.json
tranche transition plan plan.json night.json -o change.json
is_status 0 "a transition to show"
cat >results.json <<'END'
{"schema": "tranche.result/1", "kind": "experiment", "provenance": {"tranche": "0", "seed": 1},
 "experiment": {"name": "e", "question": "Does sharing pay?"},
 "cells": [
  {"key": {"mode": "alone", "slice": "1g.5gb", "batch": 1}, "runs": [{"status": "ok", "verdict": "VALID",
    "verdict_reasons": [], "figures": {"throughput_rps": 10}}],
   "summary": {"throughput_rps": {"count": 3, "mean": 10, "low": 9, "high": 11}}},
  {"key": {"mode": "shared <2>", "slice": "7g.40gb", "batch": 1}, "runs": [{"status": "ok", "verdict": "INVALID",
    "verdict_reasons": ["cpu-short"], "figures": {}}], "summary": {}}]}
END
tranche report change.json results.json -o both.html
is_status 0 "a page of a transition and results"
grep -q 'shared &lt;2&gt;' both.html && grep -q 'INVALID: cpu-short' both.html
ok $? "cells with their verdicts"
grep -q '10 ± 1' both.html
ok $? "means with intervals"
grep -q 'Does sharing pay?' both.html
ok $? "the question of the experiment"
# The mode says the slice: the modes stand beside each other, in one category.
grep -q '>all<' both.html && ! grep -q '>1g.5gb<' both.html
ok $? "keys that follow the series are not on the axis"
[ "$(grep -c '>floor<' both.html)" -ge 16 ]
ok $? "capacity against the floor of each service"


cat >measured.json <<'END'
{"schema": "tranche.change/1", "number": 3, "started": "2026-01-02T03:04:05Z", "seconds": 4.5, "actions": 2,
 "timeline": [
  {"id": "a1", "kind": "create_instance", "gpu": "g0", "slice": "1g.5gb", "start": 3, "service": null, "begun_s": 0.1, "done_s": 0.4},
  {"id": "a2", "kind": "start", "gpu": "g0", "slice": "1g.5gb", "start": 3, "service": "ranker", "begun_s": 0.4, "done_s": null}],
 "services": [{"name": "ranker", "floor_rps": 10, "minimum_rps": 12, "ready": [[0, 12], [1.5, null], [2, 30]]}]}
END
tranche report measured.json -o measured.html
is_status 0 "a change as it was measured"
grep -q '2 actions in 4.5 s, from 2026-01-02T03:04:05Z' measured.html && grep -q 'g0 1g.5gb@3' measured.html
ok $? "its actions at their times"
grep -q '>floor<' measured.html && ! grep -qE '[">]-?(nan|inf)' measured.html
ok $? "what was ready against the floor; gaps are no values"
sed 's/\[1.5, null\]/[1.5]/' measured.json >wrong.json
fails 3 "services[0].ready[1]" "a point that is none" report wrong.json -o page.html
sed 's/"kind": "start"/"kind": "begin"/' measured.json >wrong.json
fails 3 "timeline[1]" "an action of no kind" report wrong.json -o page.html
cat >summary.json <<'END'
{"schema": "tranche.summary/1", "requests": 1000, "failed": 0, "floor_held": true,
 "services": [{"name": "ranker", "required_rps": 10, "promised_rps": 12, "requests": 1000, "failed": 0, "attainment": 0.995}]}
END
tranche report summary.json -o summary.html
is_status 0 "a summary of what was served"
grep -q '1000 requests, 0 failed; the floor was held' summary.html && grep -q '>0.995<' summary.html
ok $? "its counts and shares"
sed 's/"floor_held": true, *//' summary.json >wrong.json
fails 3 "floor_held" "a summary without the floor" report wrong.json -o page.html
fails 4 "missing.csv" "a file that is not there" report missing.csv -o page.html
echo '{"schema": "other/1"}' >other.json
fails 3 "schema is other/1" "JSON of another kind" report other.json -o page.html
printf "a,b\n1,2\n" >other.csv
fails 3 "other.csv:1" "a CSV of another kind" report other.csv -o page.html
[ ! -e page.html ]
ok $? "a failure leaves no page"
fails 2 "FILE" "no file at all" report
finish
