#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The HTTP load client beside hey on the same server in the same run: answers a second with 64
# keep-alive connections, and the send lag of an open loop at 10,000 requests a second. Client
# and server have a core each where there are two. Usage: bench_http.sh TRANCHE HTTP_SERVER
set -eu
tranche=$1
server=$2
seconds=${BENCH_SECONDS:-3}
folder=$(mktemp -d)
mkfifo "$folder/hold"
on_core() { # CORE COMMAND…
    local core=$1
    shift
    if [ "$(nproc)" -gt 1 ]; then taskset -c "$core" "$@"; else "$@"; fi
}
on_core 0 "$server" 0 <"$folder/hold" >"$folder/port" &
exec 3>"$folder/hold"
trap 'exec 3>&-; wait; rm -rf "$folder"' EXIT
until [ -s "$folder/port" ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat "$folder/port")/

figure() { # FILE NAME
    python3 -c 'import json, sys; print("%.4g" % json.load(open(sys.argv[1]))["cells"][0]["runs"][0]["figures"][sys.argv[2]])' "$1" "$2"
}

echo "machine: $(nproc) cores, load average $(cut -d ' ' -f 1 /proc/loadavg)"
for round in 1 2 3; do
    on_core 1 "$tranche" bench http "$url" -c 64 -d "$seconds" -o "$folder/closed.json" >/dev/null 2>&1 || true
    echo "round $round: tranche $(figure "$folder/closed.json" throughput_rps) answers/s," \
        "$(figure "$folder/closed.json" client_cpu_share) of a core"
    if command -v hey >/dev/null; then
        echo "round $round: hey $(on_core 1 hey -cpus 1 -z "${seconds}s" -c 64 "$url" |
            sed -n 's/.*Requests\/sec:[^0-9]*//p') answers/s"
    fi
done
on_core 1 "$tranche" bench http "$url" -r constant:10000 -d "$seconds" -o "$folder/open.json" >/dev/null 2>&1 || true
echo "open loop, 10000/s: $(figure "$folder/open.json" throughput_rps) answers/s, send lag p99" \
    "$(figure "$folder/open.json" send_lag_ms_p99) ms, latency p99 $(figure "$folder/open.json" latency_ms_p99) ms"
