#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""SIGKILL of the node agent at every fault point of a change: before, in the middle of and after
each call that changes the GPU. The next agent must reach the spec, and an instance that both
layouts have must be the very same one as before.

    test_kill.py [all]    every call to NVML, not only those that change something
"""
import sys

from fake_api import Api
from box import NODES, STATES, Box, Checks, reason, spec_gpu, wait_for

checks = Checks()
BEFORE = "1g.5gb@0 2g.10gb@2 3g.20gb@4"
AFTER = "1g.5gb@0 1g.5gb@1 1g.5gb@2 1g.5gb@3 2g.10gb@4 1g.5gb@6"
CALLS = {"ComputeInstanceDestroy": 2, "GpuInstanceDestroy": 2, "DeviceCreateGpuInstanceWithPlacement": 5,
         "GpuInstanceCreateComputeInstance": 5}
KINDS = ["kill", "kill after", "kill commit"]


def run(faults):
    """Whether the first agent was killed."""
    api = Api()
    api.put(f"{NODES}/n0", {"metadata": {"name": "n0"}, "status": {}})
    box = Box("n0", "a100-40gb:1", api)
    try:
        box.apply(BEFORE, 0)
        shared = box.devices()["0 1g.5gb@0"]
        api.put(f"{STATES}/n0", {"spec": {"epoch": 1, "gpus": [spec_gpu(box.uuids()[0], AFTER)]},
                                 "status": {"observedEpoch": 1}})
        box.start(faults=faults, interval="1")
        wait_for("an end", lambda: not box.running() or reason(api.find(f"{STATES}/n0")) == "AsOrdered", box.tail)
        killed = not box.running()
        if killed:
            assert box.wait_end() == -9, box.tail()
            box.start(interval="1")
        else:
            return False
        wait_for("the spec", lambda: reason(api.find(f"{STATES}/n0")) == "AsOrdered", box.tail)
        good = box.layouts() == [AFTER] and box.devices()["0 1g.5gb@0"] == shared
        checks.ok(good, f"{faults}: the next one reaches the spec", f"{box.layouts()}\n{box.devices()}\n{box.tail()}")
        return True
    finally:
        box.close()
        api.close()


runs = 0
if "all" in sys.argv[1:]:
    while run(f"call {runs + 1}: kill"):
        runs += 1
else:
    for call, count in CALLS.items():
        for number in range(1, count + 1):
            for kind in KINDS:
                checks.ok(run(f"{call} nth {number}: {kind}"), f"{call} {number}: {kind}: it was killed")
                runs += 1
print(f"# killed {runs} times")
checks.finish()
