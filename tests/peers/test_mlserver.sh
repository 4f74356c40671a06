#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# `tranche bench http` on MLServer, a KServe v2 server that is not ours, with a real ONNX model,
# closed and open loop.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer mlserver/bin/mlserver

for model in "$TRANCHE_BUILD"/models/ppocr_cls.onnx "$TRANCHE_SOURCE_ROOT"/build/models/ppocr_cls.onnx; do
    [ -f "$model" ] && break
done
[ -f "$model" ] || skip_all "no ppocr_cls.onnx: run tools/fetch_packages.sh"

# Three ports that are free now: HTTP, gRPC, metrics.
read -r http grpc metrics < <(python3 -c '
import socket
sockets = [socket.socket() for _ in range(3)]
for s in sockets:
    s.bind(("127.0.0.1", 0))
print(*[s.getsockname()[1] for s in sockets])')
mkdir -p "$work/served/cls"
cp "$TRANCHE_SOURCE_ROOT/tests/peers/kserve_model.py" "$work/served/cls/"
cat >"$work/served/settings.json" <<EOF
{"host": "127.0.0.1", "http_port": $http, "grpc_port": $grpc, "metrics_port": $metrics, "debug": false,
 "parallel_workers": 0}
EOF
cat >"$work/served/cls/model-settings.json" <<EOF
{"name": "cls", "implementation": "kserve_model.OnnxModel", "parameters": {"uri": "$model"}}
EOF
(cd "$work/served/cls" && exec "$peers/mlserver/bin/mlserver" start "$work/served") >"$work/server.log" 2>&1 &
server=$!
trap 'kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; rm -rf "$work"' EXIT
url=http://127.0.0.1:$http
for _ in $(seq 600); do
    curl -sf "$url/v2/models/cls/ready" >/dev/null 2>&1 && break
    kill -0 "$server" 2>/dev/null || break
    sleep 0.1
done
curl -sf "$url/v2/models/cls/ready" >/dev/null 2>&1
ok $? "MLServer is ready"
kill -0 "$server" 2>/dev/null || sed 's/^/# /' "$work/server.log"

# number FILE FIGURE: of the only cell's first run.
number() {
    python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))["cells"][0]["runs"][0]
print(run["figures"].get(sys.argv[2], run["counts"].get(sys.argv[2])))' "$1" "$2"
}

# above A B NAME: A > B.
above() {
    python3 -c 'import sys; sys.exit(not float(sys.argv[1]) > float(sys.argv[2]))' "$1" "$2"
    ok $? "$3"
}

# A busy machine may make the client late (INVALID); answers and failures are what counts here.
run "$TRANCHE" bench http "$url" --api kserve -m cls -b 2 --shape x=Nx3x48x192 -c 2 -d 2 --min-requests 10 --json
cp "$out" "$work/closed.json"
out_has '"schema": "tranche.result/1"' "closed loop: a result document"
above "$(number "$work/closed.json" completed)" 9 "closed loop: requests are answered"
[ "$(number "$work/closed.json" failed)" = 0 ]
ok $? "closed loop: none failed"
run "$TRANCHE" bench http "$url" --api kserve -m cls --shape x=Nx3x48x192 -r constant:5 -d 2 --min-requests 10 --json
cp "$out" "$work/open.json"
[ "$(number "$work/open.json" completed)" = 10 ]
ok $? "open loop: all 10 scheduled requests are answered"
above "$(number "$work/open.json" latency_ms_p50)" 0 "open loop: they have a latency"

# Its own page says how long its part took.
run "$TRANCHE" bench http "$url" --api kserve -m cls --shape x=Nx3x48x192 -c 1 -d 2 --min-requests 10 --json \
    --server-metrics "http://127.0.0.1:$metrics/metrics"
cp "$out" "$work/phases.json"
above "$(number "$work/phases.json" server_requests)" 0 "MLServer's page: it counted the requests"
above "$(number "$work/phases.json" server_total_ms_mean)" 0 "MLServer's page: and their time"

# MLServer does not have the binary tensor extension (SeldonIO/MLServer#324, open): it reads the whole
# body as JSON, whatever Inference-Header-Content-Length says, and answers 500. It does not claim it
# either. test_tritonclient.sh has that form, written by Triton's own client, on our server.
run curl -sf "$url/v2"
! grep -q binary_tensor_data "$out"
ok $? "binary form: MLServer does not list the extension"
run "$TRANCHE" bench http "$url" --api kserve -m cls --shape x=Nx3x48x192 --binary -c 1 -d 1 --json
is_status 1 "binary form: MLServer refuses it"
out_has '"first_failure": "status: 500"' "binary form: the failure is said"
out_has '"completed": 0' "binary form: and no failure is a latency"

run "$TRANCHE" bench http "$url" --api kserve -m nobody -d 1
is_status 4 "a model that MLServer does not have"
err_has "404" "what it said"
finish
