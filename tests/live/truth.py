#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Planner truth: what `queue` promises against what is measured. Models are measured on CPU
slices, three plans are made, brought up, and every service is asked for just the rate that
the plan promises it; the share answered within the objective is held against the percentile.

    truth.py [SECONDS [DERATE [bare]]]

In a CPU slice the server's own work (HTTP, batching, copying) takes from the share, so the rows
are measured through the server (`bench sweep --served`), and DERATE is 1; `bare` plans from
rows of the model alone, to see what that work costs.

Exit 1 when a share is below 0.99 of its percentile. For `make bench`: needs a quiet machine of
two cores or more.
"""
import json
import os
import subprocess
import sys

from live import MAKE_MODEL, Machine, idle_share, put_first

seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20
derate = float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
served = ["--served"] if "bare" not in sys.argv else []
FULL_SLICE = 0.5
# Objective in ms, percentile, required rate of each service: three plans.
PLANS = {
    "tight": {"light": (150, 99, 90), "heavy": (300, 95, 60)},
    "usual": {"light": (300, 99, 140), "heavy": (600, 99, 40)},
    "loose": {"light": (1000, 90, 250), "heavy": (2000, 90, 110)},
}
MODELS = {"light": (4, 1024), "heavy": (16, 1024)}


machine = Machine(gpus=2, planned=2, full_slice=FULL_SLICE)
models = []
for name, (layers, width) in MODELS.items():
    subprocess.run([MAKE_MODEL, f"{machine.folder}/{name}.onnx", str(layers), str(width)], check=True)
    models += ["--model", f"{machine.folder}/{name}.onnx"]
rows = f"{machine.folder}/rows.csv"
done = machine.run("bench", "sweep", "--board", "a100-40gb", "--cpu-full-slice", str(FULL_SLICE), "--slices",
                   "1g,2g,3g,4g", "--batches", "1,4", "--duration", "3", "--allow-invalid", *served, *models, "-o", rows,
                   timeout=600)
print(done.stderr.strip())
for line in open(rows).read().splitlines():
    print("#   " + ",".join(line.split(",")[:12]))
bad = 0
print(f"{'plan':<8}{'service':<9}{'promised':>9}{'objective':>11}{'percentile':>11}{'requests':>9}{'within':>9}{'of promise':>11}{'p50 ms':>9}{'p99 ms':>9}")
for plan, wanted in PLANS.items():
    services = f"{machine.folder}/{plan}.yaml"
    with open(services, "w") as file:
        file.write("services:\n")
        for name, (objective, percentile, rate) in wanted.items():
            file.write(f"  - {{name: {name}, model: {name}, rate_rps: {rate}, latency_ms: {objective}, "
                       f"percentile: {percentile}}}\n")
        file.write(f"fleet:\n  - {{board: a100-40gb, count: 2}}\nlatency_rule: queue\nderate: {derate}\n")
    made = f"{machine.folder}/{plan}.json"
    done = machine.run("plan", "-s", services, "-m", rows, "-o", made)
    if done.returncode:
        print(f"{plan}: {done.stderr.strip()}")
        bad += 1
        continue
    document = json.load(open(made))
    for gpu in document["gpus"]:
        for i in gpu["instances"]:
            print(f"#   {gpu['id']} {i['slice']}@{i['start']} {i['service']} batch {i['batch']} wait {i.get('max_wait_ms')} "
                  f"{i['rate_rps']:.1f}/s {i['latency_ms']:.0f} ms")
    promised = {s["name"]: s["provided_rps"] for s in document["services"]}
    done = machine.run("up", made, "-s", services, "--models", machine.folder, "--port", str(machine.port),
                       "--cpu-full-slice", str(FULL_SLICE))
    assert done.returncode == 0, done.stderr
    put_first(machine.status()["router_pid"])
    # Each service by a client of its own width, at the same time.
    with idle_share() as share:
        loads = {name: subprocess.Popen([os.environ["OPEN_LOOP_CLIENT"], str(machine.port), str(seconds), "1",
                                         f"{name}={promised[name]}={wanted[name][0]}={MODELS[name][1]}"],
                                        stdout=subprocess.PIPE, text=True, preexec_fn=put_first) for name in wanted}
        results = {name: json.loads(load.communicate(timeout=seconds + 60)[0])[name] for name, load in loads.items()}
    for name, result in results.items():
        objective, percentile, _ = wanted[name]
        ratio = result["attainment"] / (percentile / 100)
        bad += ratio < 0.99
        print(f"{plan:<8}{name:<9}{promised[name]:>9.1f}{objective:>11}{percentile:>11}{result['requests']:>9}"
              f"{result['attainment']:>9.4f}{ratio:>11.4f}{result['p50']:>9.1f}{result['p99']:>9.1f}", flush=True)
    print(f"#   the machine's cores were idle for {share.value:.0%} of the time" +
          (": too busy to tell" if share.value < 0.1 else ""))
    done = machine.down()
    assert done.returncode == 0, done.stderr
sys.exit(1 if bad else 0)
