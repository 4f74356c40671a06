#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# NVIDIA's perf_analyzer loads `tranche serve` as it loads Triton, and its results are imported.
# $PERF_ANALYZER may name another binary than tools/setup_peers.sh's.
. "$TRANCHE_SOURCE_ROOT/tests/peers/peers.sh" || exit 99
analyzer=${PERF_ANALYZER:-$peers/perf_analyzer/bin/perf_analyzer}
[ -x "$analyzer" ] || may_lack_peer perf_analyzer/bin/perf_analyzer
[ -n "$(ls "$TRANCHE_BUILD"/ort/libonnxruntime.so* 2>/dev/null)" ] ||
    skip_all "no ONNX Runtime (tools/fetch_packages.sh)"
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

# Any spread of latency is stable enough: what counts here is that they understand each other.
run "$analyzer" -m small -u "127.0.0.1:$port" -i http --concurrency-range 1:9:8 --measurement-interval 500 \
    --max-trials 3 -s 900 -f "$work/analyzer.csv"
is_status 0 "perf_analyzer runs"
out_has "Execution count" "it reads the server's own figures"
run python3 - "$work/analyzer.csv" <<'EOF'
import csv, sys
rows = {int(row["Concurrency"]): row for row in csv.DictReader(open(sys.argv[1]))}
assert set(rows) == {1, 9}, rows
assert all(float(row["Inferences/Second"]) > 0 for row in rows.values()), rows
# Alone, a request waits out the 2 ms for its batch; of nine, eight fill it.
assert float(rows[1]["Server Queue"]) >= 1900, rows[1]
EOF
is_status 0 "its figures are the server's batching"
run "$TRANCHE" bench import --format perf-analyzer --model small --board a100-40gb --slice 1g "$work/analyzer.csv" -o "$work/m.csv"
is_status 0 "bench import reads its file"
kill -TERM "$server"
wait "$server"
ok $? "SIGTERM ends it well"
finish
