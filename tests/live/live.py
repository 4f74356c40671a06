#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What the live tests of a running plan share: a machine of simulated GPUs in a folder of
its own, plans over a small model, load from outside, and checks that nothing is left.

Set by the build: TRANCHE, OPEN_LOOP_CLIENT, MAKE_MODEL.
"""
import atexit
import glob
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Checks, skip_all  # noqa: E402, F401 - for those who import this module

TRANCHE = os.environ["TRANCHE"]
if not glob.glob(f"{os.path.dirname(TRANCHE)}/ort/libonnxruntime.so*"):
    skip_all("no ONNX Runtime beside the program (tools/fetch_packages.sh)")
if not shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin"):
    skip_all("no HAProxy (Debian: haproxy)")
CLIENT = os.environ["OPEN_LOOP_CLIENT"]
MAKE_MODEL = os.environ["MAKE_MODEL"]
SERVICES = ["alpha", "beta", "gamma"]
# Rates that the test model holds on a small share of a core.
MEASUREMENTS = """model,board,slice,batch,procs,throughput_rps,latency_ms_p99
small,a100-40gb,1g,1,1,20,20
small,a100-40gb,2g,4,1,42,20
small,a100-40gb,3g,4,1,64,20
small,a100-40gb,4g,8,1,88,20
small,a100-40gb,7g,8,1,160,20
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def put_first(pid=0, children=False):
    """For what is timed and stands in no control group: a process and its threads, and what it will
    start, do not wait for the machine's other work. Where that is not allowed (root only),
    idle_share tells how busy it was."""
    policy = os.SCHED_FIFO | (0 if children else os.SCHED_RESET_ON_FORK)
    try:
        for thread in os.listdir(f"/proc/{pid}/task") if pid else [0]:
            os.sched_setscheduler(int(thread), policy, os.sched_param(10))
    except OSError:
        pass


class idle_share:
    """with idle_share() as share: …; then share.value is the idle part of all cores meanwhile."""

    def __enter__(self):
        self.began, self.idle, self.value = time.monotonic(), self.idle_s(), None
        return self

    def __exit__(self, *_):
        self.value = (self.idle_s() - self.idle) / (time.monotonic() - self.began) / os.cpu_count()

    @staticmethod
    def idle_s():
        return int(open("/proc/stat").readline().split()[4]) / os.sysconf("SC_CLK_TCK")


class Machine:
    """A folder, a simulated machine in it, and the commands on it."""

    def __init__(self, gpus=4, planned=2, full_slice=0.35):
        self.folder = tempfile.mkdtemp(prefix="tranche-live-")
        self.state = f"{self.folder}/state"
        self.port = free_port()
        self.full_slice = full_slice
        self.loads = []
        self.environment = dict(os.environ, TRANCHE_SIM_FLEET=f"a100-40gb:{gpus}",
                                TRANCHE_SIM_STATE=f"{self.folder}/sim.json",
                                TRANCHE_RUNTIME_DIR=self.state)
        self.planned = planned  # the others are spare: to be borrowed during a change
        self.spare = gpus - planned
        atexit.register(self.clean)
        subprocess.run([MAKE_MODEL, f"{self.folder}/small.onnx", "2", "64"], check=True)
        with open(f"{self.folder}/m.csv", "w") as file:
            file.write(MEASUREMENTS)

    def clean(self):
        """Whatever a failed test left."""
        for load in self.loads:
            load.kill()
        if os.path.exists(f"{self.state}/journal.jsonl"):
            self.down()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self, *words, timeout=180, **more):
        return subprocess.run([TRANCHE, *words], env=self.environment, capture_output=True, text=True,
                              timeout=timeout, **more)

    def write_services(self, rates, objective_ms=1000):
        path = f"{self.folder}/services-{'-'.join(str(r) for r in rates.values())}.yaml"
        with open(path, "w") as file:
            file.write("services:\n")
            for name, rate in rates.items():
                file.write(f"  - {{name: {name}, model: small, rate_rps: {rate}, "
                           f"latency_ms: {objective_ms}}}\n")
            file.write(f"fleet:\n  - {{board: a100-40gb, count: {self.planned}}}\nlatency_rule: batch\n")
        return path

    def plan(self, name, rates, algorithm="exact", start=None):
        services = self.write_services(rates)
        path = f"{self.folder}/{name}.json"
        words = ["plan", "-s", services, "-m", f"{self.folder}/m.csv", "-o", path]
        words += ["--from", start] if start else []
        done = self.run(*words, "-a", algorithm)
        if done.returncode == 1:  # a baseline that needs more GPUs
            done = self.run(*words)
        assert done.returncode == 0, done.stderr
        return path

    def up(self, plan, rates, *more):
        return self.run("up", plan, "-s", self.write_services(rates), "--models", self.folder, "--port",
                        str(self.port), "--cpu-full-slice", str(self.full_slice), *more)

    def apply(self, plan, rates=None, *more):
        told = ["-s", self.write_services(rates), "--models", self.folder] if rates else []
        return self.run("apply", plan, "--json", "--spare", str(self.spare), *told, *more)

    def status(self):
        done = self.run("status", "--json")
        return json.loads(done.stdout) if done.returncode == 0 else None

    def down(self):
        return self.run("down")

    def load(self, seconds, rates, objective_ms=1000, seed=1):
        words = [CLIENT, str(self.port), str(seconds), str(seed)]
        words += [f"{name}={rate}={objective_ms}=64" for name, rate in rates.items()]
        self.loads.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        return self.loads[-1]

    def kill_runtime(self, sig=signal.SIGKILL):
        """Ends the process that steers, wherever it is."""
        try:
            pid = int(open(f"{self.state}/runtime.lock").read().split()[0])
            os.kill(pid, sig)
        except (OSError, ValueError, IndexError):
            return False
        for _ in range(500):
            try:
                os.kill(pid, 0)
                if open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0] == "Z":
                    return True
            except OSError:
                return True
            time.sleep(0.002)
        return False

    def layouts(self):
        done = self.run("gpu", "export", "--format", "layout")
        return done.stdout

    def leftovers(self):
        """Processes of this machine, files in its state, control groups of nobody."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            try:
                words = open(f"/proc/{pid}/cmdline").read().split("\0")
            except OSError:
                continue
            if int(pid) != os.getpid() and any(self.folder in word for word in words):
                found.append(f"process {pid}: {' '.join(words)}")
        for name in os.listdir(f"{self.state}/units"):
            found.append(f"unit file {name}")
        for name in ("journal.jsonl", "haproxy.sock", "control.sock"):
            if os.path.exists(f"{self.state}/{name}"):
                found.append(f"state file {name}")
        for root in ("/sys/fs/cgroup/cpu", "/sys/fs/cgroup"):
            for group in os.listdir(root) if os.path.isdir(root) else []:
                if group.startswith("tranche-") and not os.path.exists(f"/proc/{group.split('-')[1]}"):
                    found.append(f"control group {root}/{group}")
        return found


def random_rates(generator, low=4, high=60):
    return {name: generator.randint(low, high) for name in SERVICES}


def floors_held(result):
    return all(s["minimum_rps"] >= s["floor_rps"] * (1 - 1e-9) for s in result["services"])
