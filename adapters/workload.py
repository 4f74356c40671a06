# SPDX-License-Identifier: Apache-2.0
"""The workload protocol (docs/spec/workload-protocol.md) for Python frameworks.

An adapter makes a function that runs one step and calls main(); everything else is here:
options, events, signals, grouping, errors. Only the standard library is used.
"""
import argparse
import json
import os
import signal
import sys
import time

GROUP_NS = 20_000_000  # steps are said in groups, at most this long
GROUP_STEPS = 512


class Stop:
    """Set by SIGTERM: finish the step, say done."""

    wanted = False


def say(event, **members):
    print(json.dumps({"v": 1, "event": event, **members}), flush=True)


def parse(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--task", choices=["inference", "training"], default="inference")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--size", type=int, default=224, help="of pictures")
    parser.add_argument("--phases", action="store_true",
                        help="time the parts of a step too, with a wait for the device after each")
    parser.add_argument("--steps", type=int, default=0, help="0: until told to stop")
    return parser.parse_args()


class Phases:
    """Times parts of a step: in step(), `with phases("forward"):` …  Names are those of the protocol.
    Unless --phases was given it does nothing, so that nothing waits for the device in between."""

    def __init__(self, enabled, wait):
        self.enabled, self.wait, self.times = enabled, wait, {}

    def __call__(self, name):
        self.name = name
        return self

    def __enter__(self):
        self.begin = time.monotonic_ns()

    def __exit__(self, *_):
        if self.enabled:
            self.wait()
            self.times.setdefault(self.name, []).append(time.monotonic_ns() - self.begin)

    def take(self):
        """What was timed since the last time: nanoseconds of each step by name."""
        times, self.times = self.times, {}
        return times


def run(target, batch, steps):
    """Runs steps until told to stop."""
    group = {"i": 0, "t_ns": [], "dur_ns": [], "loss": []}
    flushed, count = time.monotonic_ns(), 0
    step, wait, phases = target["step"], target["wait"], target.get("phases")

    def flush():
        if group["t_ns"]:
            event = {k: v for k, v in group.items() if k != "loss" or v[0] is not None}
            times = phases.take() if phases else {}
            if times:
                event["phases"] = times
            say("steps", items=batch, cpu_ns=time.process_time_ns(), **event)
            group.update(i=count, t_ns=[], dur_ns=[], loss=[])

    while not Stop.wanted and (steps == 0 or count < steps):
        begin = time.monotonic_ns()
        loss = step()
        wait()
        end = time.monotonic_ns()
        group["t_ns"].append(begin)
        group["dur_ns"].append(end - begin)
        group["loss"].append(loss)
        count += 1
        if end - flushed >= GROUP_NS or len(group["t_ns"]) == GROUP_STEPS:
            flush()
            flushed = end
    flush()
    return count


def main(description, load):
    """load(options) gives a dictionary: framework, version, device, name, step (a function: a loss or
    None), wait (waits for the device), peak (a function: bytes or None), phases (a Phases that step
    uses; may be left out)."""
    signal.signal(signal.SIGTERM, lambda *_: setattr(Stop, "wanted", True))
    options = parse(description)
    started = False
    try:
        target = load(options)
        if options.task == "inference":
            target["step"]()
            target["wait"]()
            if "phases" in target:
                target["phases"].take()
        say("ready", waits=options.steps == 0, workload=options.model, task=options.task,
            batch=options.batch, visible=os.environ.get("CUDA_VISIBLE_DEVICES"),
            **{k: target[k] for k in ("framework", "version", "device", "name")})
        if options.steps == 0 and not sys.stdin.readline():
            return 0
        started = True
        steps = run(target, options.batch, options.steps)
        say("done", steps=steps, peak_mem_bytes=target["peak"]())
        return 0
    except ImportError as error:
        say("error", **{"class": "init"}, text=str(error)[:500])
    except Exception as error:  # frameworks have exceptions of their own
        text = str(error) or type(error).__name__
        memory = isinstance(error, MemoryError) or "ResourceExhausted" in type(error).__name__ \
            or "out of memory" in text.lower() or "can't allocate memory" in text.lower()
        kind = "oom" if memory else "crash" if started else "init"
        say("error", **{"class": kind}, text=text[:500])
    return 3 if started else 2
