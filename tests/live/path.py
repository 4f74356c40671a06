#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the path through HAProxy and server costs, against the bare model loop: throughput at
batch 8, and the p99 that is added at half load.

    path.py [SECONDS]
"""
import json
import os
import subprocess
import sys

from live import MAKE_MODEL, Machine

seconds = sys.argv[1] if len(sys.argv) > 1 else "5"
FULL_SLICE = 0.8
machine = Machine(gpus=1, planned=1, full_slice=FULL_SLICE)
# Some 10 ms a batch of 8 on a whole core: a small real model.
subprocess.run([MAKE_MODEL, f"{machine.folder}/small.onnx", "8", "1024"], check=True)
rows = f"{machine.folder}/rows.csv"
machine.run("bench", "sweep", "--board", "a100-40gb", "--cpu-full-slice", str(FULL_SLICE), "--slices", "7g",
            "--batches", "8", "--duration", seconds, "--model", f"small={machine.folder}/small.onnx", "-o", rows)
header, row = [line.split(",") for line in open(rows).read().splitlines()[:2]]
bare = dict(zip(header, row))
services = f"{machine.folder}/services.yaml"
with open(services, "w") as file:
    file.write("services:\n  - {name: alpha, model: small, rate_rps: 1, latency_ms: 5000, max_wait_ms: 2}\n"
               "fleet:\n  - {board: a100-40gb, count: 1}\nlatency_rule: batch\n")
done = machine.run("up", services, "-m", rows, "--models", machine.folder, "--port", str(machine.port),
                   "--cpu-full-slice", str(FULL_SLICE))
assert done.returncode == 0, done.stderr
server = machine.status()["gpus"][0]["instances"][0]["port"]


def http(port, *more):
    out = f"{machine.folder}/http.json"
    machine.run("bench", "http", "--api", "kserve", "--model", "alpha", "--binary", "-d", seconds, "--min-requests", "1",
                f"http://127.0.0.1:{port}", "-o", out, *more)
    return json.load(open(out))["cells"][0]["runs"][0]["figures"]


def router_cpu_s():
    """CPU time that HAProxy has used: tells its cost however busy the machine is."""
    fields = open(f"/proc/{machine.status()['router_pid']}/stat").read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


model = float(bare["throughput_rps"])
before = router_cpu_s()
full = http(machine.port, "--concurrency", "32")["throughput_rps"]
requests = machine.status()["services"][0]["requests"]
print(f"HAProxy: {(router_cpu_s() - before) / requests * 1e6:.0f} us of CPU a request")
direct = http(server, "--concurrency", "32")["throughput_rps"]
print(f"batch 8: bare model loop {model:.0f}/s, server {direct:.0f}/s, through HAProxy {full:.0f}/s: "
      f"{full / model:.3f} of the loop, {full / direct:.3f} of the server alone")
half = f"poisson:{full / 2:.1f}"
routed, alone = http(machine.port, "-r", half), http(server, "-r", half)
for p in ("p50", "p99"):
    a, b = alone[f"latency_ms_{p}"], routed[f"latency_ms_{p}"]
    print(f"half load, {p}: server {a:.2f} ms, through HAProxy {b:.2f} ms: {b - a:+.2f} ms")
machine.down()
