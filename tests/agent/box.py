# SPDX-License-Identifier: Apache-2.0
"""A node for the node agent's tests: simulated GPUs in a folder, the agent as a process."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Checks  # noqa: E402, F401 - for those who import this module

TRANCHE = os.environ["TRANCHE"]
SIM = os.environ.get("TRANCHE_SIM") or os.environ["TRANCHE_BUILD"] + "/sim/tranche-sim"
STATES = "/apis/tranche.dev/v1alpha1/nodegpustates"
NODES = "/api/v1/nodes"
LONG_S = 120  # only a hung test waits that long


def wait_for(what, condition, detail=lambda: ""):
    until = time.monotonic() + LONG_S
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > until:
            raise TimeoutError(f"{what} did not come\n{detail()}")
        time.sleep(0.02)


class Box:
    """One node. api: a fake_api.Api, or None when `kubeconfig` is given to start()."""

    def __init__(self, name="n0", fleet="a100-40gb:2", api=None):
        self.name = name
        self.api = api
        base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.folder = tempfile.mkdtemp(prefix="tranche-agent-", dir=base)
        self.environment = dict(os.environ, TRANCHE_SIM_STATE=f"{self.folder}/state", TRANCHE_SIM_FLEET=fleet,
                                TRANCHE_SIM_SEED=name)
        for variable in ("KUBECONFIG", "NODE_NAME", "TRANCHE_SIM_FAULTS", "TRANCHE_STATE_DIR"):
            self.environment.pop(variable, None)
        self.agent = None
        self.log = f"{self.folder}/log"
        self.cdi = f"{self.folder}/cdi"
        self.children = []
        self.make_host()

    def make_host(self):
        """What the driver shows of the instances' capabilities on its host."""
        os.makedirs(f"{self.folder}/host/proc/driver/nvidia-caps")
        os.makedirs(f"{self.folder}/host/dev/nvidia-caps")
        lines, minor = [], 3
        for gpu in range(2):
            for gi in range(15):
                lines.append((f"gpu{gpu}/gi{gi}/access", minor))
                lines += [(f"gpu{gpu}/gi{gi}/ci{ci}/access", minor + 1 + ci) for ci in range(8)]
                minor += 9
        with open(f"{self.folder}/host/proc/driver/nvidia-caps/mig-minors", "w") as file:
            file.writelines(f"{name} {number}\n" for name, number in lines)
        for _, number in lines:
            open(f"{self.folder}/host/dev/nvidia-caps/nvidia-cap{number}", "w").close()

    def start(self, kubeconfig=None, faults=None, interval="0.1", more=()):
        assert self.agent is None
        kubeconfig = kubeconfig or self.api.kubeconfig(f"{self.folder}/kubeconfig")
        environment = dict(self.environment, **({"TRANCHE_SIM_FAULTS": faults} if faults else {}))
        with open(self.log, "ab") as log:
            self.log_start = log.tell()
            self.agent = subprocess.Popen(
                [TRANCHE, "agent", "--node-name", self.name, "--driver", "sim", "--kubeconfig", kubeconfig,
                 "--cdi-folder", self.cdi, "--host-root", f"{self.folder}/host", "--listen", "127.0.0.1:0",
                 "--interval", interval, *more],
                env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
        return self

    def running(self):
        return self.agent is not None and self.agent.poll() is None

    def end(self):
        """SIGTERM. The exit status."""
        self.agent.terminate()
        try:
            status = self.agent.wait(LONG_S)
        except subprocess.TimeoutExpired:
            self.agent.kill()
            status = self.agent.wait()
        self.agent = None
        return status

    def wait_end(self):
        status = self.agent.wait(LONG_S)
        self.agent = None
        return status

    def kill(self):
        self.agent.kill()
        self.agent.wait()
        self.agent = None

    def close(self):
        if self.agent:
            self.agent.kill()
            self.agent.wait()
        for child in self.children:
            child.kill()
            child.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def tail(self):
        with open(self.log, errors="replace") as file:
            file.seek(self.log_start)
            return "".join(file.readlines()[-25:])

    # The machine, past the agent.

    def sim(self, *words):
        done = subprocess.run([SIM, *words], env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def hold(self, device):
        """A process on a MIG device, until its end."""
        child = subprocess.Popen([SIM, "run", "--device", device, "--", "sleep", "1000"], env=self.environment,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.children.append(child)
        wait_for("the process", lambda: any(
            one["processes"] for one in self.gpus()))
        return child

    def gpus(self):
        done = subprocess.run([TRANCHE, "gpu", "list", "--driver", "sim", "--json"], env=self.environment,
                              capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["gpus"]

    def layouts(self):
        return [one["layout"] if one["mig_enabled"] else "off" for one in self.gpus()]

    def uuids(self):
        return [one["uuid"] for one in self.gpus()]

    def devices(self):
        """MIG UUID by "GPU index slice@start"."""
        return {f"{one['index']} {gi['profile']}@{gi['start']}": ci["uuid"] for one in self.gpus()
                for gi in one.get("instances", []) for ci in gi["compute_instances"]}

    def apply(self, layout, gpu):
        done = subprocess.run([TRANCHE, "gpu", "apply", "--driver", "sim", "--layout", layout, "--gpu", str(gpu)],
                              env=self.environment, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    # The agent over HTTP.

    def port(self):
        with open(self.log, errors="replace") as file:
            file.seek(self.log_start)
            found = re.search(r"port=\"?(\d+)", file.read())
        return found and int(found.group(1))

    def get(self, path):
        port = wait_for("the port", self.port, self.tail)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(f"http://127.0.0.1:{port}{path}", timeout=LONG_S) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metric(self, name):
        text = self.get("/metrics")[1]
        found = re.search(rf"^tranche_agent_{name} (\S+)$", text, re.M)
        return float(found.group(1))


def spec_gpu(uuid, layout, board="a100-40gb"):
    """A GPU of a NodeGpuState's spec from "3g.20gb@4 1g.5gb@0"."""
    instances = [dict(zip(("slice", "start"), (word.split("@")[0], int(word.split("@")[1]))))
                 for word in layout.split() if word != "-"]
    return {"uuid": uuid, "board": board, "instances": instances}


def condition(state, kind):
    for one in (state or {}).get("status", {}).get("conditions", []):
        if one["type"] == kind:
            return one
    return {}


def reason(state):
    return condition(state, "Synced").get("reason")


def found_layouts(state):
    return [" ".join(f"{one['slice']}@{one['start']}" for one in sorted(gpu.get("instances", []), key=lambda i: i["start"]))
            or "-" for gpu in (state or {}).get("status", {}).get("gpus", [])]
