#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# The HTTP load client beside wrk and hey on the same server in the same run:
#
#   - 64 keep-alive connections in a closed loop: answers a second, and CPU time of the client for
#     each, which on a busy machine is what can be compared;
#   - the send lag of an open loop at 10,000 requests a second;
#   - coordinated omission: the server does nothing for 200 ms, once. A closed loop (ours, hey with
#     -q) then waits with it and measures a handful of late answers; those that were due meanwhile
#     are in no percentile. The open loop counts from when they were due. wrk, a closed loop, adds
#     by a formula what it should have measured.
#
# Client and server have a core each where there are two. Usage: bench_http.sh TRANCHE HTTP_SERVER.
# On a machine that others use, `nice -n -19` and `chrt -f 50` before it take their place.
set -eu
tranche=$1
server=$2
seconds=${BENCH_SECONDS:-3}
folder=$(mktemp -d)
mkfifo "$folder/orders"
on_core() { # CORE COMMAND…
    local core=$1
    shift
    if [ "$(nproc)" -gt 1 ]; then taskset -c "$core" "$@"; else "$@"; fi
}
on_core 0 "$server" 0 <"$folder/orders" >"$folder/port" &
exec 3>"$folder/orders"
trap 'exec 3>&-; wait; rm -rf "$folder"' EXIT
until [ -s "$folder/port" ]; do sleep 0.05; done
url=http://127.0.0.1:$(cat "$folder/port")/

# client NAME COMMAND…: runs it on its core; its words and CPU seconds stay in files. Ours may exit
# with 1, INVALID: where others take the CPU it is late.
client() {
    local name=$1 status=0 most=0
    shift
    [ "$1" != "$tranche" ] || most=1
    TIMEFORMAT='%U %S'
    rm -f "$folder/$name.json"
    { time on_core 1 "$@" >"$folder/$name.out" 2>&1 || status=$?; } 2>"$folder/$name.cpu"
    [ "$most" -eq 0 ] || [ -s "$folder/$name.json" ] || status="$status without a result"
    [ "$status" = 0 ] || [ "$status" = "$most" ] || {
        echo "bench_http: $name: exit $status:" >&2
        cat "$folder/$name.out" >&2
        exit 1
    }
}

figure() { # FILE NAME
    python3 -c 'import json, sys; print("%.4g" % json.load(open(sys.argv[1]))["cells"][0]["runs"][0]["figures"][sys.argv[2]])' "$1" "$2"
}

# row NAME: answers a second and CPU microseconds for each, by what the tool itself counted.
row() {
    python3 - "$folder" "$1" <<'END'
import json
import re
import sys

folder, name = sys.argv[1:]
text = open(f"{folder}/{name}.out").read()
cpu_s = sum(map(float, open(f"{folder}/{name}.cpu").read().split()))
if name == "tranche":
    run = json.load(open(f"{folder}/tranche.json"))["cells"][0]["runs"][0]
    rate, count = run["figures"]["throughput_rps"], run["counts"]["completed"]
elif name == "wrk":
    rate = float(re.search(r"Requests/sec: *([\d.]+)", text)[1])
    count = int(re.search(r"(\d+) requests in", text)[1])
else:
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", text)[1])
    count = sum(map(int, re.findall(r"\[200\]\s+(\d+) responses", text)))
print(f"  {name:8} {rate:8.0f} answers/s, {cpu_s / count * 1e6:5.1f} us of CPU for each")
END
}

has() { command -v "$1" >/dev/null; }

echo "machine: $(nproc) cores, load average $(cut -d ' ' -f 1 /proc/loadavg)"
for round in 1 2 3; do
    echo "round $round, 64 connections"
    client tranche "$tranche" bench http "$url" -c 64 -d "$seconds" --warmup 0 -o "$folder/tranche.json"
    row tranche
    if has wrk; then
        client wrk wrk -t 1 -c 64 -d "$seconds" "$url"
        row wrk
    fi
    if has hey; then
        client hey hey -cpus 1 -z "${seconds}s" -c 64 "$url"
        row hey
    fi
done

client open "$tranche" bench http "$url" -r constant:10000 -d "$seconds" -o "$folder/open.json"
echo "open loop, 10000/s: $(figure "$folder/open.json" throughput_rps) answers/s, send lag p99" \
    "$(figure "$folder/open.json" send_lag_ms_p99) ms, latency p99 $(figure "$folder/open.json" latency_ms_p99) ms"

# stalled NAME COMMAND…: the server stalls in the middle of the run.
stalled() {
    (sleep 1.5 && echo "stall 200" >&3) &
    client "$@"
    wait $!
}
echo "a stall of 200 ms within 3 s at 1000 requests/s: p99 as each sees it"
stalled omission "$tranche" bench http "$url" -r constant:1000 -d 3 --warmup 0 -o "$folder/omission.json"
echo "  tranche, open loop: $(figure "$folder/omission.json" latency_ms_p99) ms"
stalled closed "$tranche" bench http "$url" -c 10 -d 3 --warmup 0 -o "$folder/closed.json"
echo "  tranche, closed loop: $(figure "$folder/closed.json" latency_ms_p99) ms"
if has wrk; then
    stalled wrk wrk -t 1 -c 10 -d 3 --latency "$url"
    echo "  wrk, closed loop, corrected: $(sed -n 's/^ *99% *//p' "$folder/wrk.out")"
fi
if has hey; then
    stalled hey hey -cpus 1 -z 3s -c 10 -q 100 "$url"
    echo "  hey -q, ten times 100/s: $(awk '$1 == "99%" { print $3 * 1000 }' "$folder/hey.out") ms"
fi
