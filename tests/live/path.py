#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the path through HAProxy and server costs at batch 8: throughput against the bare model
loop, and the latency that is added at half load.

    path.py [SECONDS [ROUNDS]]

The instance is a whole core without a quota, so that nothing stalls what is timed. At half load the same Poisson
requests (one seed a round) go to the server's own port and through HAProxy in turn; what is added
is the difference of each round's percentiles, of which the median is told. The server's own
share is the mean time of a request less what it waited for its batch and computed.

Exit 1 when HAProxy adds more than 1 ms to the 99th percentile. For `make bench`: needs a quiet
machine of two cores or more.
"""
import json
import os
import statistics
import subprocess
import sys
import urllib.request

from live import MAKE_MODEL, Machine, idle_share, put_first

seconds = sys.argv[1] if len(sys.argv) > 1 else "5"
rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 5
FULL_SLICE = 1.0
ADDED_MS_MOST = 1.0
machine = Machine(gpus=1, planned=1, full_slice=FULL_SLICE)
# Some 10 ms a batch of 8 on a whole core: a small real model.
subprocess.run([MAKE_MODEL, f"{machine.folder}/small.onnx", "8", "1024"], check=True)
rows = f"{machine.folder}/rows.csv"
machine.run("bench", "sweep", "--board", "a100-40gb", "--cpu-full-slice", str(FULL_SLICE), "--slices", "7g",
            "--slice-method", "paced", "--batches", "8", "--duration", seconds, "--allow-invalid",
            "--model", f"small={machine.folder}/small.onnx", "-o", rows, preexec_fn=lambda: put_first(children=True))
header, row = [line.split(",") for line in open(rows).read().splitlines()[:2]]
bare = dict(zip(header, row))
services = f"{machine.folder}/services.yaml"
with open(services, "w") as file:
    file.write("services:\n  - {name: alpha, model: small, rate_rps: 1, latency_ms: 5000, max_wait_ms: 2}\n"
               "fleet:\n  - {board: a100-40gb, count: 1}\nlatency_rule: batch\n")
done = machine.run("up", services, "-m", rows, "--models", machine.folder, "--port", str(machine.port),
                   "--cpu-full-slice", str(FULL_SLICE), "--slice-method", "paced")
assert done.returncode == 0, done.stderr
status = machine.status()
instance, router_pid = status["gpus"][0]["instances"][0], status["router_pid"]
server = instance["port"]
for pid in (router_pid, instance["pid"]):
    put_first(pid)


def http(port, *more):
    """The figures of one run. Exit 1 is INVALID: where others take the CPU the client is late."""
    out = f"{machine.folder}/http.json"
    if os.path.exists(out):
        os.unlink(out)  # of the run before: a run that fails must not be told by it
    done = machine.run("bench", "http", "--api", "kserve", "--model", "alpha", "--binary", "-d", seconds, "--min-requests",
                       "1", f"http://127.0.0.1:{port}", "-o", out, *more, preexec_fn=put_first)
    if done.returncode not in (0, 1) or not os.path.exists(out):
        sys.exit(f"path: bench http on port {port}: exit {done.returncode}, {done.stderr}")
    return json.load(open(out))["cells"][0]["runs"][0]["figures"]


def router_cpu_s():
    """CPU time that HAProxy has used: tells its cost however busy the machine is."""
    fields = open(f"/proc/{router_pid}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def server_times():
    """Requests, and milliseconds of them in all and in queue and model, since the start."""
    with urllib.request.urlopen(f"http://127.0.0.1:{server}/v2/models/alpha/stats") as answer:
        stats = json.load(answer)["model_stats"][0]["inference_stats"]
    inside = stats["queue"]["ns"] + stats["compute_infer"]["ns"]
    return stats["success"]["count"], stats["success"]["ns"] / 1e6, inside / 1e6


model = float(bare["throughput_rps"])
before = router_cpu_s()
full = http(machine.port, "--concurrency", "32")["throughput_rps"]
requests = machine.status()["services"][0]["requests"]
print(f"HAProxy: {(router_cpu_s() - before) / requests * 1e6:.0f} us of CPU a request")
direct = http(server, "--concurrency", "32")["throughput_rps"]
print(f"batch 8: bare model loop {model:.0f}/s, server {direct:.0f}/s, through HAProxy {full:.0f}/s: "
      f"{full / model:.3f} of the loop, {full / direct:.3f} of the server alone")
added = {p: [] for p in ("mean", "p50", "p90", "p99")}
own, idle = [], []
for number in range(rounds):
    load = ["-r", f"poisson:{full / 2:.1f}", "--seed", str(number + 1)]
    with idle_share() as share:
        first = server_times()
        alone = http(server, *load)
        last = server_times()
        routed = http(machine.port, *load)
    idle.append(share.value)
    count, whole, inside = (b - a for a, b in zip(first, last))
    own.append(alone["latency_ms_mean"] - inside / count)
    for p, values in added.items():
        values.append(routed[f"latency_ms_{p}"] - alone[f"latency_ms_{p}"])
print(f"half load: server p50 {alone['latency_ms_p50']:.2f} ms, p99 {alone['latency_ms_p99']:.2f} ms; HTTP, tensors and "
      f"the way there and back {statistics.median(own):.2f} ms of the mean")
for p, values in added.items():
    print(f"half load, {p}: HAProxy adds {statistics.median(values):+.2f} ms (rounds: {', '.join(f'{v:+.2f}' for v in values)})")
share = statistics.median(idle)
print(f"the machine's cores were idle for {share:.0%} of the time" + (": too busy to tell" if share < 0.1 else ""))
machine.down()
sys.exit(statistics.median(added["p99"]) > ADDED_MS_MOST)
