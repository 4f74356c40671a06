#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The autopilot on a running plan: it says why it keeps, grows when demand does, and changes
nothing in a dry run or in quiet hours."""
import json
import time

from live import Checks, Machine

checks = Checks()
machine = Machine(gpus=3, planned=2)
rates = {"alpha": 15, "beta": 10}
plan = machine.plan("day", rates)
services = machine.write_services(rates)
done = machine.up(plan, rates)
checks.ok(done.returncode == 0, "up", done.stderr)


def look(*more, interval_s=2):
    done = machine.run("autopilot", "-s", services, "-m", f"{machine.folder}/m.csv", "--interval", str(interval_s),
                       "--looks", "1", "--json", "--spare", "1", *more)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return done, lines


load = machine.load(600, {"alpha": 12, "beta": 6})
done, lines = look(interval_s=8)  # so long that a second in which others have the CPU does not matter
checks.ok(done.returncode == 0 and lines[0]["verdict"] == "keep", "it keeps a plan that holds", done.stdout + done.stderr)
rate = lines[0]["services"]["alpha"]["rate_rps"]
checks.ok(6 < rate < 24, "it sees the arrival rate", rate)
load.terminate()
load.communicate(timeout=60)

load = machine.load(600, {"alpha": 40, "beta": 6})
before = machine.status()["plan"]["gpus"]
done, lines = look("--dry-run")
checks.ok(lines and lines[0]["verdict"] == "would change" and "alpha" in lines[0]["reason"],
          "dry run: it says what it would do and why", done.stdout + done.stderr)
done, lines = look("--quiet", "00:00-24:00")
checks.ok(lines and lines[0]["verdict"] == "wait" and "quiet" in lines[0]["reason"], "quiet hours: it waits", done.stdout)
checks.ok(machine.status()["plan"]["gpus"] == before, "… and neither changed anything")
done, lines = look()
checks.ok(lines and lines[0]["verdict"] == "change", "demand grows: it changes the plan", done.stdout + done.stderr)
for _ in range(600):
    status = machine.status()
    if status["phase"] == "serving" and status["last_change"]:
        break
    time.sleep(0.1)
promised = {s["name"]: s["promised_rps"] for s in status["services"]}
checks.ok(promised["alpha"] >= 40, "… and the new plan promises more", promised)
load.terminate()
result = json.loads(load.communicate(timeout=60)[0])
checks.ok(not any(s["failed"] or s["wrong"] for s in result.values()), "no request failed", result)
done, lines = look("--fleet", "a100-40gb:0")
checks.ok(lines and lines[0]["verdict"] in ("wait", "keep") or done.returncode == 3, "no fleet at all is said", done.stdout + done.stderr)
done = machine.run("autopilot", "-s", services, "-m", f"{machine.folder}/m.csv", "--quiet", "25:00-26:00")
checks.ok(done.returncode == 2, "wrong quiet hours: exit 2", done.stderr)
done = machine.down()
left = machine.leftovers()
checks.ok(done.returncode == 0 and not left, "down; nothing is left", f"exit {done.returncode}: {done.stderr}, {left}")
checks.finish()
