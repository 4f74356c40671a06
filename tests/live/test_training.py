#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training service beside one that answers: it trains on its slice, is not routed, comes back
after a crash and goes on from what it has learnt."""
import glob
import os
import signal
import struct
import time

from live import Checks, Machine

checks = Checks()
machine = Machine(gpus=2, planned=1, full_slice=0.7)
with open(f"{machine.folder}/m.csv", "w") as file:
    file.write("model,board,slice,batch,procs,throughput_rps,latency_ms_p99,task\n"
               "small,a100-40gb,1g,8,1,20,20,inference\n"
               "cnn,a100-40gb,1g,4,1,10,,training\ncnn,a100-40gb,2g,4,2,20,,training\n")


def services(name, requests, samples):
    path = f"{machine.folder}/{name}.yaml"
    with open(path, "w") as file:
        file.write(f"services:\n  - {{name: alpha, model: small, rate_rps: {requests}, latency_ms: 1000}}\n"
                   f"  - {{name: tune, model: cnn, task: training, rate_rps: {samples}}}\n"
                   "fleet:\n  - {board: a100-40gb, count: 1}\nlatency_rule: batch\n")
    return path


def plan(name, requests, samples):
    path = f"{machine.folder}/{name}.json"
    done = machine.run("plan", "-s", services(name, requests, samples), "-m", f"{machine.folder}/m.csv", "-o", path)
    assert done.returncode == 0, done.stderr
    return path


def trainers(status):
    return [i for gpu in status["gpus"] for i in gpu["instances"] if i["service"] == "tune"]


def wait_for(test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status = machine.status()
        if status and test(status):
            return status
        time.sleep(0.2)
    return None


def progress(status):
    return next(s for s in status["services"] if s["name"] == "tune")


def steps_of(status):
    return progress(status)["steps"]


def checkpoint(path):
    """Its steps, as the file itself says."""
    magic, _, steps = struct.unpack("=8sQQ", open(path, "rb").read(24))
    assert magic == b"trncheck", magic
    return steps


def saved_steps():
    """Of the newest checkpoint, which an instance that starts takes up."""
    return checkpoint(max(glob.glob(f"{machine.state}/checkpoints/tune/*"), key=lambda path: os.stat(path).st_mtime_ns))


def has_learnt(status):
    """So much that whoever begins at zero is not there by his first report, a second or two after his start."""
    return progress(status)["steps_per_s"] > 0 and steps_of(status) > max(20, 5 * progress(status)["steps_per_s"])


day, night = plan("day", 20, 8), plan("night", 60, 15)
done = machine.run("up", day, "-s", services("day", 20, 8), "--models", machine.folder, "--port", str(machine.port),
                   "--cpu-full-slice", "0.7")
checks.ok(done.returncode == 0, "up", done.stderr)
load = machine.load(600, {"alpha": 10})
status = wait_for(has_learnt)
checks.ok(status is not None, "it trains, and status says how fast", machine.status())
checks.ok(status and all(i["state"] == "training" and i["port"] == 0 for i in trainers(status)), "it is not routed", status)
done = machine.run("status")
checks.ok("tune trains:" in done.stdout, "for people, too", done.stdout)

learnt = steps_of(machine.status())  # by its only instance
done = machine.apply(night)
checks.ok(done.returncode == 0, "apply moves and adds instances", done.stderr)
checks.ok(glob.glob(f"{machine.state}/checkpoints/tune/*"), "one that ended has left a checkpoint")
checks.ok(saved_steps() >= learnt, "… with all that it had learnt", f"{saved_steps()}, before {learnt}")
status = wait_for(lambda s: trainers(s) and all(i["steps"] > 0 for i in trainers(s)))
checks.ok(status is not None, "all train", machine.status())

# The first step after a start is not zero: the checkpoint's steps count. What was learnt since then, a minute at
# most, is lost.
victim, saved = trainers(status)[0], saved_steps()
os.kill(victim["pid"], signal.SIGKILL)
status = wait_for(lambda s: any(i["start"] == victim["start"] and i["pid"] not in (0, victim["pid"]) and i["steps"] > 0
                                for i in trainers(s)))
checks.ok(status is not None and any("the training died" in e["text"] for e in status["events"]), "a crash: it comes back", machine.status())
again = [i for i in trainers(status or machine.status()) if i["start"] == victim["start"]]
saved = min(saved, saved_steps())  # the other one may have left a newer one
checks.ok(again and again[0]["steps"] >= saved, "… and goes on from a checkpoint", f"{again}, saved {saved}")

machine.kill_runtime()
pids = sorted(i["pid"] for i in trainers(status))
done = machine.run("up")
checks.ok(done.returncode == 0 and sorted(i["pid"] for i in trainers(machine.status())) == pids,
          "the runtime killed: up carries on with the same processes", done.stderr)
before = {i["server"]: i["steps"] for i in trainers(machine.status())}
load.terminate()
load.communicate(timeout=60)
done = machine.down()
left = machine.leftovers()
checks.ok(done.returncode == 0 and not left, "down; nothing is left", f"exit {done.returncode}: {done.stderr}, {left}")
after = {name: checkpoint(f"{machine.state}/checkpoints/tune/{name}.0") for name in before}
checks.ok(len(after) == 2 and all(after[name] >= before[name] for name in before), "… and what was learnt is in checkpoints",
          f"{before}, saved {after}")
saved = saved_steps()

# Without the services file the plan tells that it trains.
done = machine.run("up", day, "--models", machine.folder, "--model", f"alpha={machine.folder}/small.onnx",
                   "--model", "tune=cnn", "--port", str(machine.port), "--cpu-full-slice", "0.7")
checks.ok(done.returncode == 0, "up from the plan alone, later: it goes on from the checkpoint", done.stderr)
status = wait_for(lambda s: steps_of(s) > 0)
checks.ok(status is not None and steps_of(status) >= saved, "… whose steps count", f"saved {saved}, {machine.status()}")
machine.down()
checks.finish()
