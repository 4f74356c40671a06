#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workload that only burns CPU, for tests: docs/spec/workload-protocol.md.

--phases says that each step was 1 ms of input, 3 of compute and 1 of output. Where the
environment names a file TRANCHE_TEST_KILL with "PID SIGNAL POINT SKIP" in it, the workload
that comes after SKIP others sends the signal to the process when it is at the point: start, ready,
middle or end. So a test interrupts at places that it chose, however slow the machine is.
"""
import json
import os
import signal
import sys
import time


def say(**event):
    print(json.dumps(event), flush=True)


def take_order(path):
    """The order, when it is for this workload: [pid, signal, point]."""
    claimed = f"{path}.{os.getpid()}"
    try:
        os.rename(path, claimed)  # another workload of the same time may be faster
    except FileNotFoundError:
        return None
    with open(claimed) as file:
        pid, number, point, skip = file.read().split()
    os.unlink(claimed)
    if int(skip) > 0:
        with open(claimed, "w") as file:
            file.write(f"{pid} {number} {point} {int(skip) - 1}")
        os.rename(claimed, path)
        return None
    return int(pid), int(number), point


ORDER = take_order(os.environ["TRANCHE_TEST_KILL"]) if "TRANCHE_TEST_KILL" in os.environ else None


def be_at(*points):
    global ORDER
    if ORDER and ORDER[2] in points:
        os.kill(ORDER[0], ORDER[1])
        ORDER = None


def main():
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    be_at("start")
    say(event="ready", framework="fake", version="1", device="cpu", waits=True)
    be_at("ready")
    sys.stdin.readline()
    count = 0
    phases = {"input": 1_000_000, "compute": 3_000_000, "output": 1_000_000}
    told = {"phases": phases} if "--phases" in sys.argv else {}
    while not stop:
        start = time.monotonic_ns()
        while time.monotonic_ns() - start < 5_000_000:
            pass
        say(event="step", i=count, t_ns=start, dur_ns=time.monotonic_ns() - start, items=1, **told)
        count += 1
        if count == 5:
            be_at("middle")
    be_at("middle", "end")  # it may have been too short to have a middle
    say(event="done", steps=count)


main()
