#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A workload that only burns CPU, for tests: docs/spec/workload-protocol.md."""
import json
import signal
import sys
import time


def say(**event):
    print(json.dumps(event), flush=True)


def main():
    stop = []
    signal.signal(signal.SIGTERM, lambda *_: stop.append(True))
    say(event="ready", framework="fake", version="1", device="cpu", waits=True)
    sys.stdin.readline()
    count = 0
    while not stop:
        start = time.monotonic_ns()
        while time.monotonic_ns() - start < 5_000_000:
            pass
        say(event="step", i=count, t_ns=start, dur_ns=time.monotonic_ns() - start, items=1)
        count += 1
    say(event="done", steps=count)


main()
