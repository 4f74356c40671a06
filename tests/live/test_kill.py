#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the runtime at random moments of a change: another start finishes it, no
request is answered wrongly, and in the end nothing is left.

    test_kill.py [KILLS [SEED]]
"""
import json
import random
import subprocess
import sys
import time

from live import TRANCHE, Checks, Machine, random_rates

kills = int(sys.argv[1]) if len(sys.argv) > 1 else 5
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
print(f"# seed {seed}")
checks = Checks()
generator = random.Random(seed)
machine = Machine()
found = machine.layouts()
day_rates, night_rates = random_rates(generator), random_rates(generator)
plans = [machine.plan("day", day_rates), machine.plan("night", night_rates, "ones")]
done = machine.up(plans[0], day_rates)
checks.ok(done.returncode == 0, "up", done.stderr)
offered = {name: max(1, 0.6 * min(day_rates[name], night_rates[name])) for name in day_rates}
load = machine.load(3600, offered, seed=seed)
# How long a change takes here, to spread the kills over it.
started = time.monotonic()
done = machine.apply(plans[1])
checks.ok(done.returncode == 0, "a change without a kill", done.stderr)
length = time.monotonic() - started
at = 1
finished = 0
killed = 0
for number in range(kills):
    target = plans[1 - at]
    change = subprocess.Popen([TRANCHE, "apply", target, "--spare", str(machine.spare)], env=machine.environment,
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(generator.uniform(0, length * 1.1))
    killed += machine.kill_runtime()
    change.wait(timeout=60)
    if generator.random() < 0.3:  # and again while it finds its way
        again = subprocess.Popen([TRANCHE, "up"], env=machine.environment, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL)
        time.sleep(generator.uniform(0, 0.5))
        killed += machine.kill_runtime()
        again.wait(timeout=60)
    done = machine.run("up")
    if done.returncode != 0 and "is up in" not in done.stderr:  # a kill that came too early
        checks.ok(False, f"kill {number}: up carries on", done.stderr)
        continue
    for _ in range(1200):
        status = machine.status()
        if status and status["phase"] == "serving":
            break
        time.sleep(0.05)
    wanted = json.load(open(target))["gpus"]
    old = json.load(open(plans[at]))["gpus"]
    now = status["plan"]["gpus"]
    # Killed before the change was recorded, the old plan still stands.
    good = now in (wanted, old) and all(i["state"] == "serving" for g in status["gpus"] for i in g["instances"])
    running = sum(len(g["instances"]) for g in status["gpus"])
    if now == wanted:
        at = 1 - at
        finished += 1
    good = good and running == sum(len(g["instances"]) for g in now)
    checks.ok(good, f"kill {number}: the change is finished", json.dumps(status["events"], indent=1))
print(f"# {killed} kills, {finished} changes finished by a restart")
load.terminate()
result = json.loads(load.communicate(timeout=60)[0])
checks.ok(not any(s["wrong"] for s in result.values()), "no request was answered wrongly", json.dumps(result))
checks.ok(not any(s["failed"] for s in result.values()), "no request failed", json.dumps(result))
print(f"# {sum(s['requests'] for s in result.values())} requests, {sum(s['late'] for s in result.values())} late")
machine.kill_runtime()  # down must do without it, too
done = machine.down()
checks.ok(done.returncode == 0, "down after a kill", done.stderr)
checks.ok(machine.layouts() == found, "the layout found is back", machine.layouts())
left = machine.leftovers()
checks.ok(not left, "nothing is left", left)
checks.finish()
