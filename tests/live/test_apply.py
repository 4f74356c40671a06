#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What `apply` does beside moving instances: a new batch waiting time is told to servers that
stay, a new batch size restarts them above the floor, and what happened is measured."""
import json
import urllib.request

from live import Checks, Machine, floors_held

checks = Checks()
machine = Machine(gpus=2, planned=1)
rates = {"alpha": 35, "beta": 15}
plan = machine.plan("day", rates, "ones")


def instances(status, service=None):
    return [i for gpu in status["gpus"] for i in gpu["instances"] if service in (None, i["service"])]


def batching(instance):
    with urllib.request.urlopen(f"http://127.0.0.1:{instance['port']}/v2/models/{instance['service']}/config") as answer:
        return json.load(answer)


def changed(name, change):
    document = json.load(open(plan))
    for gpu in document["gpus"]:
        for instance in gpu["instances"]:
            change(instance)
    path = f"{machine.folder}/{name}.json"
    json.dump(document, open(path, "w"))
    return path


plan = changed("batched", lambda i: i.update(batch=4))
done = machine.up(plan, rates)
checks.ok(done.returncode == 0, "up", done.stderr)
# Late requests and percentiles are of all requests, however fast they come.
burst = machine.load(2, {"alpha": 400, "beta": 200}, seed=2)
burst.communicate(timeout=90)
services = machine.status()["services"]
checks.ok(all(s["observed"] == s["requests"] > 0 for s in services), "every request is observed", services)
before = machine.status()
load = machine.load(600, {"alpha": 15, "beta": 8})
longer = changed("longer", lambda i: i.update(max_wait_ms=123.5))
done = machine.apply(longer)
after = machine.status()
checks.ok(done.returncode == 0, "apply: only the waiting time is new", done.stderr)
checks.ok(json.loads(done.stdout)["actions"] == 0, "… without an action", done.stdout)
checks.ok([i["pid"] for i in instances(before)] == [i["pid"] for i in instances(after)], "… and without a restart", after)
waits = [batching(i)["dynamic_batching"]["max_queue_delay_microseconds"] for i in instances(after)]
checks.ok(waits and set(waits) == {123500}, "every server has it once apply returns", waits)

machine.kill_runtime()
done = machine.run("up")
checks.ok(done.returncode == 0, "the runtime killed: up carries on", done.stderr)
waits = [batching(i)["dynamic_batching"]["max_queue_delay_microseconds"] for i in instances(machine.status())]
checks.ok(set(waits) == {123500}, "… and the waiting time stands", waits)

done = machine.apply(changed("batch", lambda i: i.update(batch=2) if i["service"] == "alpha" else None))
result = json.loads(done.stdout) if done.returncode == 0 else {}
checks.ok(done.returncode == 0 and floors_held(result), "a new batch size: the floor is held", done.stderr + done.stdout)
sizes = [batching(i)["max_batch_size"] for i in instances(machine.status(), "alpha")]
checks.ok(set(sizes) == {2}, "… and every server has it", sizes)
load.terminate()
answers = json.loads(load.communicate(timeout=60)[0])
checks.ok(not any(s["failed"] or s["wrong"] for s in answers.values()), "no request failed", answers)

# ---- what was measured --------------------------------------------------------------
timeline = result.get("timeline", [])
checks.ok(timeline and all(0 <= a["begun_s"] <= a["done_s"] <= result["seconds"] + 0.001 for a in timeline),
          "each action has its times", result)
for service in result.get("services", []):
    times = [at for at, _ in service["ready"]]
    least = min((rate for _, rate in service["ready"] if rate is not None), default=-1)
    checks.ok(times == sorted(times) and least == service["minimum_rps"],
              f"{service['name']}: what was ready, and its least", service)
path = f"{machine.folder}/change.json"
json.dump(result, open(path, "w"))
done = machine.run("report", path, "-o", f"{machine.folder}/report.html")
checks.ok(done.returncode == 0 and "Actions, measured" in open(f"{machine.folder}/report.html").read(), "report draws it", done.stderr)
done = machine.down()
left = machine.leftovers()
checks.ok(done.returncode == 0 and not left, "down; nothing is left", f"exit {done.returncode}: {done.stderr}, {left}")
checks.finish()
