#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tranche serve as a program, and what up, apply, status and down say when there is nothing.
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh" || exit 99
export TRANCHE_RUNTIME_DIR=$work/run TRANCHE_SIM_FLEET=a100-40gb:1 TRANCHE_SIM_STATE=$work/gpus.state

fails 2 "MODEL.onnx" "serve without a model" serve
fails 2 "letters, digits" "serve: a name that no path takes" serve small.onnx --name 'a/b'
fails 2 "batch" "serve: a batch out of range" serve small.onnx --batch 0
fails 4 "no runtime answers" "status: nothing is up" status
fails 4 "nothing was brought up" "down: nothing is up" down
fails 4 "nothing was brought up" "up without a plan: nothing to carry on" up
fails 4 "nowhere.json" "up: a plan that is not there" up nowhere.json
echo '{"schema": "tranche.plan/1"' >cut.json
fails 3 "cut.json:" "up: a plan that is cut off" up cut.json
echo '{"schema": "tranche.plan/1", "algorithm": "exact", "status": "infeasible", "gpus": [], "services": []}' >no.json
fails 1 "infeasible" "up: an infeasible plan" up no.json
fails 2 "HH:MM" "autopilot: quiet hours that are none" autopilot -s s.yaml -m m.csv --quiet 7
ok "$([ -e "$work/run/journal.jsonl" ] && echo 1 || echo 0)" "none of it left a journal"

build=$(dirname "$TRANCHE")
if [ -z "$(ls "$build"/ort/libonnxruntime.so* 2>/dev/null)" ]; then
    skip_missing "no ONNX Runtime (tools/fetch_packages.sh)" "serve answers"
    finish
fi
fails 4 "nothing.onnx" "serve: a model that is not there" serve nothing.onnx
run "$MAKE_MODEL" small.onnx
"$TRANCHE" serve small.onnx --batch 4 >served 2>served.err &
server=$!
for _ in $(seq 600); do
    [ -s served ] && break
    sleep 0.1
done
file_has served '"event":"ready","model":"small"' "serve says when it answers"
port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' served)
fails 4 "cannot listen" "serve: a port that is taken" serve small.onnx --port "$port"
kill -TERM "$server"
status=0
wait "$server" || status=$?
is_status 0 "SIGTERM ends it with 0"

# Measured through the server.
run "$TRANCHE" bench sweep --served -m small.onnx -S 1g -b 1,4 -d 0.3 --longest 5 --allow-invalid -o served.csv
is_status 0 "bench sweep --served"
python3 - served.csv <<'EOF'
import csv, sys
rows = list(csv.DictReader(open(sys.argv[1])))
assert [r["batch"] for r in rows] == ["1", "4"], rows
for r in rows:
    assert "served over HTTP" in r["how"] and int(r["steps"]) >= 4, r
    # As many requests as fill a batch are in flight: rate x latency is the batch (Little).
    in_flight = float(r["throughput_rps"]) * float(r["latency_ms_mean"]) / 1e3
    assert 0.5 < in_flight / int(r["batch"]) < 1.5, r
EOF
ok $? "its rows are of full batches, one at a time"
fails 2 "ONNX files" "--served of a built-in model" bench sweep --served -m cnn -S 1g
fails 2 "ONNX files" "--served of training" bench sweep --served -m small.onnx --task training -S 1g
finish
