#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# tritonclient (HTTP) talks to `tranche serve`, and to a running plan, as it does to Triton.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
need_peer tritonclient/bin/python
[ -n "$(ls "$TRANCHE_BUILD"/ort/libonnxruntime.so* 2>/dev/null)" ] ||
    skip_all "no ONNX Runtime (tools/fetch_packages.sh)"
python=$peers/tritonclient/bin/python
run "$MAKE_MODEL" "$work/small.onnx" 1 16
is_status 0 "a model is written"

"$TRANCHE" serve "$work/small.onnx" --batch 8 --max-wait-ms 2 >"$work/serve.out" 2>"$work/serve.err" &
server=$!
trap 'kill "$server" 2>/dev/null; rm -rf "$work"' EXIT
for _ in $(seq 100); do
    [ -s "$work/serve.out" ] && break
    sleep 0.1
done
port=$(sed -n 's/.*"port":\([0-9]*\).*/\1/p' "$work/serve.out")

cat >"$work/client.py" <<'EOF'
import sys

import numpy as np
import tritonclient.http as http
from tritonclient.utils import InferenceServerException

url, model, steps = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
client = http.InferenceServerClient(url)


def infer(binary, rows=3):
    x = np.arange(rows * 16, dtype=np.float32).reshape(rows, 16)
    given = http.InferInput("x", list(x.shape), "FP32")
    given.set_data_from_numpy(x, binary_data=binary)
    wanted = [http.InferRequestedOutput("y", binary_data=binary), http.InferRequestedOutput("z", binary_data=binary)]
    result = client.infer(model, [given], outputs=wanted, request_id="7")
    assert np.array_equal(result.as_numpy("y"), x + 1), result.as_numpy("y")
    assert result.as_numpy("z").shape == (rows, 16)
    assert result.get_response()["id"] == "7"


if "health" in steps:
    assert client.is_server_live() and client.is_server_ready() and client.is_model_ready(model)
if "metadata" in steps:
    assert client.get_server_metadata()["name"] == "tranche"
    metadata = client.get_model_metadata(model)
    assert metadata["inputs"] == [{"name": "x", "datatype": "FP32", "shape": [-1, 16]}], metadata
if "config" in steps:
    config = client.get_model_config(model)
    assert config["max_batch_size"] == 8 and config["input"][0]["dims"] == [16], config
if "binary" in steps:
    infer(True)
if "json" in steps:
    infer(False)
if "many" in steps:
    parallel = http.InferenceServerClient(url, concurrency=8)
    x = np.ones((1, 16), dtype=np.float32)
    given = http.InferInput("x", [1, 16], "FP32")
    given.set_data_from_numpy(x)
    for answer in [parallel.async_infer(model, [given]) for _ in range(200)]:
        assert np.array_equal(answer.get_result().as_numpy("y"), x + 1)
if "statistics" in steps:
    stats = client.get_inference_statistics(model)["model_stats"][0]
    assert stats["inference_stats"]["success"]["count"] >= 1, stats
if "errors" in steps:
    for name, shape in (("nobody", [1, 16]), (model, [1, 3])):
        wrong = http.InferInput("x", shape, "FP32")
        wrong.set_data_from_numpy(np.zeros(shape, dtype=np.float32))
        try:
            client.infer(name, [wrong])
            raise AssertionError("no error")
        except InferenceServerException as error:
            assert error.message(), error
EOF
for step in health metadata config binary json many statistics errors; do
    run "$python" "$work/client.py" "127.0.0.1:$port" small $step
    is_status 0 "tranche serve: $step"
done
kill -TERM "$server"
wait "$server"
ok $? "SIGTERM ends it well"

# The same client through HAProxy, a service for a model.
machine a100-40gb:1
export TRANCHE_RUNTIME_DIR=$work/run
cat >"$work/services.yaml" <<'EOF'
services:
  - {name: ranker, model: small, rate_rps: 30, latency_ms: 500}
latency_rule: batch
EOF
printf 'model,board,slice,batch,procs,throughput_rps,latency_ms_p99\nsmall,a100-40gb,1g,8,1,20,20\n' >"$work/m.csv"
router=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run "$TRANCHE" up "$work/services.yaml" -m "$work/m.csv" --models "$work" --cpu-full-slice 0.5 --port "$router"
is_status 0 "a plan is up"
for step in health metadata config binary json many errors; do
    run "$python" "$work/client.py" "127.0.0.1:$router" ranker $step
    is_status 0 "through the router: $step"
done
run "$TRANCHE" down
is_status 0 "down"
finish
