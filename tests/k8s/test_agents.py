#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Four node agents, one process a node, each on simulated GPUs of its own, with a real API
server, scheduler and the definitions of deploy/: create and destroy with placement while
neighbours serve, kills of the agent and of the API server in the middle of changes."""
import os
import sys

from cluster import ApiError, Checks, Cluster, wait_for

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "agent"))
from box import Box, condition, found_layouts, reason, spec_gpu  # noqa: E402

SOURCE = os.environ.get("TRANCHE_SOURCE_ROOT", ".")
STATES = "/apis/tranche.dev/v1alpha1/nodegpustates"
NODE_NAMES = ["node-0", "node-1", "node-2", "node-3"]
# As in deploy/chart/tranche/templates/agent-rights.yaml.
RIGHTS = [
    {"apiGroups": ["tranche.dev"], "resources": ["nodegpustates"],
     "verbs": ["get", "list", "watch", "create", "patch"]},
    {"apiGroups": ["tranche.dev"], "resources": ["nodegpustates/status"], "verbs": ["get", "patch"]},
    {"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": [""], "resources": ["nodes/status"], "verbs": ["patch"]},
    {"apiGroups": ["resource.k8s.io"], "resources": ["resourceslices"], "verbs": ["get", "list", "watch"]},
    {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["create", "patch"]},
]
checks = Checks()


class Node:
    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.path = f"{STATES}/{name}"
        self.box = Box(name, "a100-40gb:2")
        for index in (0, 1):
            self.box.apply("-", index)
        self.gpus = self.box.uuids()
        self.start()

    def start(self, faults=None):
        self.box.start(self.cluster.kubeconfig("tranche"), faults=faults, interval="0.5")

    def state(self):
        return self.cluster.admin.find(self.path)

    def apply(self, layouts, epoch=1, version=None):
        """As the controller does: server-side apply, tied to the version it has read."""
        version = version or wait_for(f"object of {self.name}", self.state)["metadata"]["resourceVersion"]
        return self.cluster.admin.apply(self.path, {
            "apiVersion": "tranche.dev/v1alpha1", "kind": "NodeGpuState",
            "metadata": {"name": self.name, "resourceVersion": version},
            "spec": {"epoch": epoch, "gpus": [spec_gpu(uuid, layout) for uuid, layout in zip(self.gpus, layouts)]},
        }, manager="tranche-controller")

    def ask(self, layouts, epoch=1):
        """The agent writes its status meanwhile, so the version may be an old one."""
        def applied():
            try:
                return self.apply(layouts, epoch)
            except ApiError as error:
                if error.status != 409:
                    raise
                return None

        wait_for("an apply", applied)

    def synced(self):
        state = self.state()
        return state if state and reason(state) == "AsOrdered" and \
            state["status"]["observedGeneration"] == state["metadata"]["generation"] else None

    def wait_synced(self):
        return wait_for(f"{self.name} as ordered", self.synced)


def pod(name, node, resource):
    """As the actuator binds it."""
    return {"metadata": {"name": name}, "spec": {
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}]}}},
        "containers": [{"name": "server", "image": "none", "resources": {
            "limits": {resource: "1"}, "requests": {resource: "1"}}}]}}


def test_inventory(nodes):
    for node in nodes:
        state = wait_for("inventory", lambda node=node: found_layouts(node.state()) and node.state())
        checks.equal([gpu["uuid"] for gpu in state["status"]["gpus"]], node.gpus, f"{node.name}: inventory")


def test_layouts(nodes):
    layouts = [["3g.20gb@4 2g.10gb@0", "7g.40gb@0"], ["1g.5gb@6", "4g.20gb@0 3g.20gb@4"],
               ["2g.10gb@2", "1g.5gb@0 1g.5gb@3"], ["-", "3g.20gb@0"]]
    for node, wanted in zip(nodes, layouts):
        node.ask(wanted)
    for node, wanted in zip(nodes, layouts):
        state = node.wait_synced()
        wanted = [" ".join(sorted(one.split(), key=lambda word: word[-1])) for one in wanted]
        checks.equal((node.box.layouts(), found_layouts(state)), (wanted, wanted), f"{node.name}: starts as asked")


def test_tied(node):
    old = node.state()["metadata"]["resourceVersion"]
    node.ask(["2g.10gb@4 2g.10gb@0", "7g.40gb@0"])
    node.wait_synced()
    try:
        node.apply(["-", "-"], version=old)
        checks.ok(False, "an apply on an old version is refused")
    except ApiError as error:
        checks.equal(error.status, 409, "an apply on an old version is refused")
    try:
        node.cluster.admin.merge(node.path, {"spec": {"gpus": [{"uuid": "GPU-1", "board": "a100-40gb",
                                                                "instances": [{"slice": 3, "start": 0}]}]}})
        checks.ok(False, "the definition refuses a spec of wrong form")
    except ApiError as error:
        checks.equal(error.status, 422, "the definition refuses a spec of wrong form")


def test_neighbours(node):
    """On the GPU of a neighbour that serves, layouts come and go."""
    node.ask(["3g.20gb@4", "7g.40gb@0"])
    node.wait_synced()
    serving = node.box.devices()["0 3g.20gb@4"]
    node.box.hold(serving)
    rounds = ["3g.20gb@4 4g.20gb@0", "3g.20gb@4 2g.10gb@0 2g.10gb@2", "3g.20gb@4 1g.5gb@0 1g.5gb@1 2g.10gb@2",
              "3g.20gb@4"]
    for layout in rounds:
        node.ask([layout, "7g.40gb@0"])
        node.wait_synced()
    checks.equal(node.box.devices()["0 3g.20gb@4"], serving, f"{len(rounds)} changes beside a neighbour that serves")
    node.ask(["7g.40gb@0", "7g.40gb@0"])
    wait_for("the word", lambda: reason(node.state()) == "InUse")
    checks.equal(node.box.layouts()[0], "3g.20gb@4", "it stays as long as it serves")


def test_kill(nodes):
    """Each agent dies at another call of its change; its successor finishes it."""
    faults = ["GpuInstanceDestroy: kill after", "DeviceCreateGpuInstanceWithPlacement nth 2: kill commit",
              "GpuInstanceCreateComputeInstance: kill"]
    for node, fault in zip(nodes, faults):
        node.box.end()
        node.start(faults=fault)
        node.ask(["2g.10gb@0 2g.10gb@2 1g.5gb@6", "2g.10gb@4"])
        wait_for("its end", lambda node=node: not node.box.running())
        node.box.wait_end()
        node.start()
        node.wait_synced()
        checks.equal(node.box.layouts(), ["2g.10gb@0 2g.10gb@2 1g.5gb@6", "2g.10gb@4"], f"{node.name}: after {fault}")


def test_server_killed(cluster, nodes):
    for node in nodes:
        node.ask(["7g.40gb@0", "7g.40gb@0"])
    cluster.api.kill()
    cluster.api.start()
    cluster.wait_ready()
    for node in nodes:
        node.wait_synced()
    checks.equal([node.box.layouts() for node in nodes], [["7g.40gb@0"] * 2] * len(nodes),
                 "the API server was killed in the middle of changes: all arrive")


def test_rest(cluster, nodes):
    """After what the kill of the server delayed."""
    for node in nodes:
        wait_for("resources", lambda node=node: cluster.admin.get(f"/api/v1/nodes/{node.name}")["status"]["allocatable"]
                 .get("tranche.dev/mig-7g.40gb") == "2")

    def versions():
        return [(node.state()["metadata"]["resourceVersion"], node.box.metric("resource_writes_total")) for node in nodes]

    def rest():
        """A last status may come late on a slow machine; what is written at every look does not end."""
        before, looks = versions(), [node.box.metric("looks_total") for node in nodes]
        for node, count in zip(nodes, looks):
            wait_for("ten looks", lambda node=node, count=count: node.box.metric("looks_total") >= count + 10)
        return versions() == before

    checks.ok(wait_for("ten looks without a write", rest), "ten looks at rest: no write")


def test_scheduling(cluster, node):
    node.ask(["1g.5gb@0 1g.5gb@1", "-"])
    node.wait_synced()
    path = "/api/v1/namespaces/default/pods"
    for index in range(3):
        cluster.admin.create(path, pod(f"p{index}", node.name, "tranche.dev/mig-1g.5gb"))

    def placed():
        pods = cluster.admin.items(path)
        names = [one["spec"].get("nodeName") for one in pods]
        waits = [one for one in pods if any(c.get("reason") == "Unschedulable"
                                            for c in one.get("status", {}).get("conditions", []))]
        return names.count(node.name) == 2 and len(waits) == 1 and waits

    waits = wait_for("two pods", placed)
    checks.ok("tranche.dev/mig-1g.5gb" in str(waits[0]["status"]), "two instances, two pods; the third waits for one")
    node.ask(["1g.5gb@0 1g.5gb@1 1g.5gb@2", "-"])
    wait_for("the third", lambda: all(one["spec"].get("nodeName") for one in cluster.admin.items(path)))
    checks.ok(True, "a further instance, and it runs")
    for index in range(3):
        cluster.admin.delete(f"{path}/p{index}", grace_s=0)


def test_conflict(cluster, node):
    layouts = node.box.layouts()
    cluster.admin.merge(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.5gb"}}})
    node.ask(["7g.40gb@0", "7g.40gb@0"])
    state = wait_for("refusal", lambda: reason(node.state()) == "DriverConflict" and node.state())
    checks.equal((condition(state, "DriverConflict")["status"], node.box.layouts()), ("True", layouts),
                 "mig-manager's label: refused")
    events = wait_for("an event", lambda: [one for one in cluster.admin.items("/apis/events.k8s.io/v1/events")
                                           if one["reason"] == "DriverConflict"])
    checks.equal(events[0]["regarding"]["name"], node.name, "and an event says so")
    cluster.admin.merge(f"/api/v1/nodes/{node.name}", {"metadata": {"labels": {"nvidia.com/mig.config": None}}})
    node.wait_synced()
    node.ask(["-", "-"], epoch=5)
    node.wait_synced()
    node.ask(["7g.40gb@0", "-"], epoch=4)
    wait_for("refusal", lambda: reason(node.state()) == "StaleEpoch")
    checks.equal(node.box.layouts(), ["-", "-"], "a lower epoch: refused")


with Cluster(scheduler=True) as cluster:
    cluster.install_definitions(f"{SOURCE}/deploy/chart/tranche/definitions/*.yaml")
    cluster.user("tranche", RIGHTS)
    kubelets = cluster.kubelets()
    for name in NODE_NAMES:
        kubelets.add(name)
        # There is no controller that takes a new node's taint away.
        cluster.admin.merge(f"/api/v1/nodes/{name}", {"spec": {"taints": None}})
    nodes = [Node(cluster, name) for name in NODE_NAMES]
    try:
        test_inventory(nodes)
        test_layouts(nodes)
        test_tied(nodes[0])
        test_neighbours(nodes[0])
        test_kill(nodes[1:])
        test_server_killed(cluster, nodes[1:])
        test_rest(cluster, nodes[1:])
        test_scheduling(cluster, nodes[1])
        test_conflict(cluster, nodes[2])
    except Exception:
        for node in nodes:
            print(f"# {node.name}: {reason(node.state())} {found_layouts(node.state())} {node.box.layouts()}\n# " +
                  "# ".join(node.box.tail().splitlines(True)), flush=True)
        raise
    finally:
        for node in nodes:
            node.box.close()
checks.finish()
