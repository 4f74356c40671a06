#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Figures of the serving demo.

    serve_summary.py rates PLAN.json…         prints SERVICE RATE SHAPE lines, the least required
    serve_summary.py summary STATE DEMO          prints a table, writes DEMO/summary.json

Exit 1 when a request failed or the floor was not held.
"""
import glob
import json
import sys

SHAPES = {"turn-text": "x=Nx3x48x192", "find-text": "x=Nx3x320x320"}
PHASES = ["before", "during", "after"]


def read(path):
    with open(path) as file:
        return json.load(file)


def rates(*plans):
    required = [{s["name"]: s["required_rps"] for s in read(path)["services"]} for path in plans]
    for name in required[0]:
        print(name, min(plan[name] for plan in required), SHAPES[name])


def counts(status):
    return {s["name"]: s for s in status["services"]}


def client_requests(state):
    """Requests that the clients were to send, and those without a good answer."""
    scheduled = completed = 0
    for path in glob.glob(f"{state}/load-*.json"):
        for cell in read(path)["cells"]:
            for run in cell["runs"]:
                scheduled += run["counts"]["scheduled"]
                completed += run["counts"]["completed"]
    return scheduled, scheduled - completed


def attainment(before, after):
    requests = after["requests"] - before["requests"]
    bad = after["late"] - before["late"] + after["failed"] - before["failed"]
    return 1 - bad / requests if requests else 1.0


def summary(state, demo):
    looks = [counts(read(f"{state}/status-{i}.json")) for i in range(4)]
    changes = [read(f"{demo}/change-to-{plan}.json") for plan in ("night", "day")]
    held = all(s["minimum_rps"] >= s["floor_rps"] * (1 - 1e-9) for c in changes for s in c["services"])
    requests, failed = client_requests(state)
    services = []
    print(f"{'service':<12}{'requests':>9}{'failed':>8}{'before':>9}{'during':>9}{'after':>9}")
    for name, last in looks[-1].items():
        share = [attainment(looks[i][name], looks[i + 1][name]) for i in range(3)]
        print(f"{name:<12}{last['requests']:>9}{last['failed']:>8}" + "".join(f"{x:>9.4f}" for x in share))
        services.append({"name": name, "required_rps": last["required_rps"], "promised_rps": last["promised_rps"],
                         "requests": last["requests"], "failed": last["failed"],
                         "attainment": attainment(looks[0][name], last),
                         **{f"attainment_{phase}": x for phase, x in zip(PHASES, share)}})
    actions = " and ".join(f"{c['actions']} actions in {c['seconds']:.1f} s" for c in changes)
    print(f"{requests} requests, {failed} failed; changed by {actions}; floor {'held' if held else 'NOT held'}")
    with open(f"{demo}/summary.json", "w") as file:
        json.dump({"schema": "tranche.summary/1", "requests": requests, "failed": failed, "floor_held": held, "services": services}, file, indent=2)
        file.write("\n")
    sys.exit(0 if failed == 0 and held else 1)


if __name__ == "__main__":
    {"rates": rates, "summary": summary}[sys.argv[1]](*sys.argv[2:])
