#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Day, night, day under open-loop load, with random plans: no request fails or is answered
wrongly, and no service's ready capacity falls below the floor.

    test_rounds.py [ROUNDS [SEED]]
"""
import json
import random
import sys

from live import Checks, Machine, floors_held, random_rates

rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
print(f"# seed {seed}")
checks = Checks()
generator = random.Random(seed)
machine = Machine()
found = machine.layouts()
rates = random_rates(generator)
plan = machine.plan("plan0", rates)
done = machine.up(plan, rates)
checks.ok(done.returncode == 0, "up", done.stderr)
total = late = 0
for number in range(rounds):
    night_rates = random_rates(generator)
    algorithm = generator.choice(["exact", "exact", "greedy", "ones", "mix"])
    night = machine.plan(f"night{number}", night_rates, algorithm)
    # What both plans promise may be asked for all the time.
    offered = {name: max(1, 0.8 * min(rates[name], night_rates[name])) for name in rates}
    load = machine.load(600, offered, seed=seed + number)
    there = machine.apply(night)
    back = machine.apply(plan)
    load.terminate()
    result = json.loads(load.communicate(timeout=60)[0])
    applied = there.returncode == 0 and back.returncode == 0
    checks.ok(applied, f"round {number}: both changes are carried out ({algorithm})", there.stderr + back.stderr)
    bad = {name: s for name, s in result.items() if s["failed"] or s["wrong"]}
    checks.ok(not bad, f"round {number}: no request failed", json.dumps(bad))
    held = applied and floors_held(json.loads(there.stdout)) and floors_held(json.loads(back.stdout))
    checks.ok(held, f"round {number}: the floor is held", there.stdout + back.stdout)
    total += sum(s["requests"] for s in result.values())
    late += sum(s["late"] for s in result.values())
print(f"# {total} requests, {late} late")
done = machine.down()
checks.ok(done.returncode == 0, "down", done.stderr)
checks.ok(machine.layouts() == found, "the layout found is back", machine.layouts())
left = machine.leftovers()
checks.ok(not left, "nothing is left", left)
checks.finish()
