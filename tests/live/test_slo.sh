#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# The highest rate within an objective of a running plan on CPU slices: of the whole layout through
# the router, and of each slice at its server's own port (docs/spec/http-load.md has the recipe).
. "$TRANCHE_SOURCE_ROOT/tests/cli/lib.sh" || exit 99
[ -n "$(ls "$TRANCHE_BUILD"/ort/libonnxruntime.so* 2>/dev/null)" ] ||
    skip_all "no ONNX Runtime (tools/fetch_packages.sh)"
command -v haproxy >/dev/null || skip_all "no haproxy (Debian: haproxy)"
run "$MAKE_MODEL" "$work/small.onnx" 1 16
is_status 0 "a model is written"
export TRANCHE_SIM_FLEET=a100-40gb:1 TRANCHE_SIM_STATE=$work/machine.state TRANCHE_STATE_DIR=$work/state
export TRANCHE_RUNTIME_DIR=$work/run
cat >"$work/services.yaml" <<'EOF'
services:
  - {name: ranker, model: small, rate_rps: 30, latency_ms: 500}
latency_rule: batch
EOF
printf 'model,board,slice,batch,procs,throughput_rps,latency_ms_p99\nsmall,a100-40gb,1g,8,1,20,20\n' >"$work/m.csv"
router=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
trap '"$TRANCHE" down >/dev/null 2>&1; rm -rf "$work"' EXIT
run "$TRANCHE" up "$work/services.yaml" -m "$work/m.csv" --models "$work" --cpu-full-slice 0.5 --port "$router"
is_status 0 "a plan is up"

# search NAME MODEL URL: p50 within ten generous seconds at 4 requests/s or more.
search() {
    run "$TRANCHE" bench slo "$3" --api kserve -m "$2" -l 10000 -p 50 --first-rate 4 --highest-rate 8 -d 1.5 \
        --warmup 0.3 --confirmations 1 --max-failures 0 --max-runs 6 -o "$work/slo.json"
    is_status 0 "$1: a rate holds"
    python3 -c 'import json, sys
slo = json.load(open(sys.argv[1]))["slo"]
sys.exit(not (4 <= slo["rate_rps"] <= 8 and slo["confirmed"]))' "$work/slo.json"
    ok $? "$1: 4 requests/s or more, confirmed"
}
search "the whole layout" ranker "http://127.0.0.1:$router"
run "$TRANCHE" status --json
cp "$out" "$work/status.json"
ports=$(python3 -c 'import json, sys
def walk(value):
    if isinstance(value, dict):
        if "port" in value and "slice" in value:
            yield value["port"]
        for part in value.values():
            yield from walk(part)
    elif isinstance(value, list):
        for part in value:
            yield from walk(part)
print(*walk(json.load(open(sys.argv[1]))))' "$work/status.json")
[ -n "$ports" ]
ok $? "status names the port of each slice"
for port in $ports; do
    search "the slice at its own port" ranker "http://127.0.0.1:$port"
done
# An objective that no network keeps.
run "$TRANCHE" bench slo "http://127.0.0.1:$router" --api kserve -m ranker -l 0.001 --first-rate 4 --least-rate 2 -d 0.5 --warmup 0
is_status 1 "a microsecond is met at no rate"
run "$TRANCHE" down
is_status 0 "down"
finish
