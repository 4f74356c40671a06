#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""NVIDIA's DRA driver, with its gate DynamicMIG, on the simulated NVML: it publishes
ResourceSlices, the real scheduler allocates from them, and the driver makes and destroys the
GPU instances. What the actuator `dra` relies on, without the actuator."""
import glob
import json
import os
import re

from cluster import ApiError, Checks, Cluster, wait_for
from dra_node import DRIVER, DraNode, install_device_classes

CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
DELETE_PROTECTION = "resource.kubernetes.io/delete-protection"
checks = Checks()
ok, equal = checks.ok, checks.equal


def expected_devices(node):
    """Names that the driver must publish, from what `tranche gpu list` knows of the boards."""
    names = set()
    for gpu in json.loads(node.tranche("gpu", "list", "--json"))["gpus"]:
        names.add(f"gpu-{gpu['index']}")
        for profile in gpu["profiles"]:
            word = profile["name"].replace(".", "").replace("+", "-")
            names |= {f"gpu-{gpu['index']}-mig-{word}-{profile['profile_id']}-{start}" for start in profile["starts"]}
    return names


def claim(name, profile, parent=None):
    wanted = [f"device.attributes['{DRIVER}'].profile == '{profile}'"]
    if parent:
        wanted.append(f"device.attributes['{DRIVER}'].parentUUID == '{parent}'")
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": name}, "spec": {
        "devices": {"requests": [{"name": "mig", "exactly": {
            "deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression": " && ".join(wanted)}}]}}]}}}


def pod(name, of, gated=False):
    spec = {"terminationGracePeriodSeconds": 1, "resourceClaims": [{"name": "gpu", "resourceClaimName": of}],
            "containers": [{"name": "c", "image": "none", "resources": {"claims": [{"name": "gpu"}]}}]}
    if gated:
        spec["schedulingGates"] = [{"name": "tranche.dev/allocated"}]
    return {"metadata": {"name": name}, "spec": spec}


class World:
    def __init__(self, cluster, kubelets):
        self.cluster = cluster
        self.admin = cluster.admin
        self.kubelets = kubelets

    def start(self, name, profile, parent=None):
        self.admin.create(CLAIMS, claim(name, profile, parent))
        self.admin.create(PODS, pod(name, name))

    def phase(self, name):
        return (self.admin.find(f"{PODS}/{name}") or {}).get("status", {}).get("phase")

    def wait(self, name, what, check):
        try:
            wait_for(f"pod {name} {what}", check)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; kubelet: {self.kubelets.errors[-5:]}; "
                               f"{json.dumps(self.admin.find(f'{PODS}/{name}'))[-800:]}") from None

    def wait_running(self, name):
        self.wait(name, "running", lambda: self.phase(name) == "Running")

    def device(self, name):
        results = self.admin.get(f"{CLAIMS}/{name}")["status"]["allocation"]["devices"]["results"]
        return [(r["driver"], r["pool"], r["device"]) for r in results]

    def end(self, name):
        self.admin.delete(f"{PODS}/{name}")
        self.wait(name, "ended", lambda: self.admin.find(f"{PODS}/{name}") is None)
        self.admin.delete(f"{CLAIMS}/{name}")
        wait_for(f"end of claim {name}", lambda: self.admin.find(f"{CLAIMS}/{name}") is None)

    def wait_avoided(self, node):
        """Until the scheduler knows that the node takes no pods: one that it would place is refused."""
        spec = {"nodeSelector": {"kubernetes.io/hostname": node.name}, "terminationGracePeriodSeconds": 0,
                "containers": [{"name": "c", "image": "none"}]}

        def is_refused():
            self.admin.create(PODS, {"metadata": {"name": "canary"}, "spec": spec})
            wait_for("a decision", lambda: self.unschedulable("canary") or
                     self.admin.get(f"{PODS}/canary")["spec"].get("nodeName"))
            refused = self.unschedulable("canary")
            self.admin.delete(f"{PODS}/canary", grace_s=0)
            wait_for("its end", lambda: self.admin.find(f"{PODS}/canary") is None)
            return refused
        wait_for("a node that is avoided", is_refused)

    def unschedulable(self, name):
        got = self.admin.get(f"{PODS}/{name}")
        return any(c["type"] == "PodScheduled" and c["status"] == "False" and c["reason"] == "Unschedulable"
                   for c in got["status"].get("conditions", []))


def test_slices(node):
    equal((node.registered["name"], node.registered["type"]), (DRIVER, "DRAPlugin"), "the driver registers itself")
    ok("v1.DRAPlugin" in node.registered["versions"], "with the stable version of its interface")
    wanted = expected_devices(node)
    wait_for("all slices", lambda: len(node.devices()) >= len(wanted))
    have = set(node.devices())
    equal((sorted(have - wanted), sorted(wanted - have)), ([], []),
          f"it publishes every profile at every start of our tables: {len(wanted)} devices")
    parents = {g["index"]: g["uuid"] for g in json.loads(node.tranche("gpu", "list", "--json"))["gpus"]}
    wrong = [name for name, device in node.devices().items() if "-mig-" in name
             and device["attributes"]["parentUUID"]["string"] != parents[int(re.match(r"gpu-(\d+)", name)[1])]]
    equal(wrong, [], "each with the UUID of its GPU")
    wait_for("all slices", lambda: len(node.slices()) >= 1 + len(parents))
    counters = [s for s in node.slices() if s["spec"].get("sharedCounters")]
    equal((len(counters), len(node.slices())), (1, 1 + len(parents)), "one slice of counters, one a GPU")


def test_scheduler_places(world, node, parents):
    world.start("a", "3g.40gb", parents[1])
    world.wait_running("a")
    equal([(d, p) for d, p, _ in world.device("a")], [(DRIVER, "node-0")], "the scheduler allocates from them")
    ok(world.device("a")[0][2].startswith("gpu-1-mig-3g40gb-"), "on the GPU that CEL asks for", world.device("a"))
    equal([[profile for profile, _ in gpu] for gpu in node.instances()], [[], ["3g.40gb"]],
          "the driver makes exactly that instance")
    start = int(world.device("a")[0][2].rsplit("-", 1)[1])
    equal(node.instances()[1], [("3g.40gb", start)], "where the device's name says")
    uuids = node.uuids()
    world.start("b", "3g.40gb", parents[1])
    world.wait_running("b")
    equal(node.instances()[1], [("3g.40gb", 0), ("3g.40gb", 4)], "a second one takes the other place")
    ok(set(uuids) < set(node.uuids()), "and its neighbour stays what it was")
    world.start("c", "3g.40gb", parents[1])
    wait_for("c to be refused", lambda: world.unschedulable("c"))
    ok(world.phase("c") == "Pending" and "allocation" not in world.admin.get(f"{CLAIMS}/c").get("status", {}),
       "a third has no place and gets no allocation")
    world.end("a")
    world.wait_running("c")
    equal((node.instances()[1], world.device("c")[0][2].rsplit("-", 1)[1]), ([("3g.40gb", 0), ("3g.40gb", 4)],
                                                                            str(start)),
          "when the first one ends, the third takes its place")


def test_device_nodes(node):
    files = glob.glob(f"{node.folder}/cdi/*")
    equal(len(files), 2, "there is a CDI file for each prepared claim")
    paths = set(re.findall(r"path: (/dev/nvidia\S*)", "".join(open(f).read() for f in files)))
    caps = {path for path in paths if "nvidia-cap" in path}
    equal(len(caps), 4, "with the capability nodes of each GPU instance and compute instance")


def test_ends(world, node):
    for name in ("b", "c"):
        world.end(name)
    equal(node.instances(), [[], []], "when all pods have ended no instance is left")
    equal(glob.glob(f"{node.folder}/cdi/*"), [], "and no CDI file")
    gpu = json.loads(node.tranche("gpu", "list", "--json"))["gpus"][1]
    equal(gpu["mig_enabled"], False, "the driver has switched MIG off on the empty GPU")


def allocation(node, device):
    return {"devices": {"results": [{"request": "mig", "driver": DRIVER, "pool": node.name, "device": device}]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [
                {"key": "metadata.name", "operator": "In", "values": [node.name]}]}]}}


def allocate(client, world, name, node, device):
    """What a planner does that wants an exact place: gated pod, claim, allocation with
    reservation, gate off."""
    world.admin.create(CLAIMS, claim(name, "2g.20gb"))
    made = world.admin.create(PODS, pod(name, name, gated=True))
    world.admin.merge(f"{CLAIMS}/{name}", {"metadata": {"finalizers": [DELETE_PROTECTION]}})
    client.merge(f"{CLAIMS}/{name}/status", {"status": {
        "allocation": allocation(node, device), "reservedFor": [
            {"resource": "pods", "name": name, "uid": made["metadata"]["uid"]}]}})


def test_planner_places(world, node):
    # Starts 4 and 2: the scheduler by itself would begin with 0.
    for name, start in (("x", 4), ("y", 2)):
        allocate(world.admin, world, name, node, f"gpu-0-mig-2g20gb-14-{start}")
        world.admin.merge(f"{PODS}/{name}", {"spec": {"schedulingGates": None}})
        world.wait_running(name)
        equal(world.device(name), [(DRIVER, node.name, f"gpu-0-mig-2g20gb-14-{start}")],
              f"an allocation that we wrote stays: start {start}")
    equal(node.instances()[0], [("2g.20gb", 2), ("2g.20gb", 4)], "and the driver makes the instances there")
    world.start("z", "2g.20gb", node.parents()[0])
    world.wait_running("z")
    equal(node.instances()[0], [("2g.20gb", 0), ("2g.20gb", 2), ("2g.20gb", 4)],
          "the scheduler goes round what we placed")
    for name in ("x", "y", "z"):
        world.end(name)
    equal(node.instances()[0], [], "they end like all others")


def test_binding_right(world, node):
    rules = [{"apiGroups": ["resource.k8s.io"], "resources": ["resourceclaims", "resourceclaims/status"],
              "verbs": ["get", "list", "watch", "create", "delete", "patch", "update"]}]
    user = world.cluster.user("tranche", rules)
    wait_for("rights", lambda: user.request("GET", CLAIMS)[0] == 200)
    try:
        allocate(user, world, "r", node, "gpu-0-mig-2g20gb-14-0")
        ok(False, "an allocation needs the right to resourceclaims/binding")
    except ApiError as error:
        equal(error.status, 422, "an allocation needs the right to resourceclaims/binding")
        ok("binding" in error.message, "and the API server says so", error.message)
    rules[0]["resources"].append("resourceclaims/binding")
    world.cluster.user("tranche", rules)
    owner = world.admin.get(f"{PODS}/r")["metadata"]["uid"]
    body = {"status": {"allocation": allocation(node, "gpu-0-mig-2g20gb-14-0"),
                       "reservedFor": [{"resource": "pods", "name": "r", "uid": owner}]}}
    ok(wait_for("the right", lambda: user.request("PATCH", f"{CLAIMS}/r/status", body,
                                                  "application/merge-patch+json")[0] == 200), "with it, it is taken")
    world.end("r")


def test_lost_allocation(world, node):
    """A claim that is allocated but whose pod cannot be placed: does the scheduler take it back?"""
    world.admin.create(CLAIMS, claim("u", "2g.20gb"))
    made = world.admin.create(PODS, pod("u", "u", gated=True) | {})
    world.admin.merge(f"{CLAIMS}/u", {"metadata": {"finalizers": [DELETE_PROTECTION]}})
    world.admin.merge(f"{CLAIMS}/u/status", {"status": {
        "allocation": allocation(node, "gpu-0-mig-2g20gb-14-2"),
        "reservedFor": [{"resource": "pods", "name": "u", "uid": made["metadata"]["uid"]}]}})
    world.admin.merge(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": True}})
    world.wait_avoided(node)
    world.admin.merge(f"{PODS}/u", {"spec": {"schedulingGates": None}})
    wait_for("u to be refused", lambda: world.unschedulable("u"))
    equal(world.device("u"), [(DRIVER, node.name, "gpu-0-mig-2g20gb-14-2")],
          "an allocation with its reservation survives a pod that cannot be placed")
    world.admin.merge(f"/api/v1/nodes/{node.name}", {"spec": {"unschedulable": None}})
    world.wait_running("u")
    equal(node.instances()[0], [("2g.20gb", 2)], "and is used once it can")
    world.end("u")


def test_driver_restart(world, node):
    world.start("k", "1g.10gb")
    world.wait_running("k")
    before = node.uuids()
    node.driver.kill()
    node.start_driver()
    equal(node.uuids(), before, "an instance of a prepared claim survives the driver's SIGKILL")
    world.end("k")
    equal(node.instances(), [[], []], "and the new driver destroys it in its time")
    node.driver.kill()
    node.tranche("gpu", "enable-mig", "--gpu", "0", "--state-dir", f"{node.folder}/tranche")
    node.tranche("gpu", "apply", "--gpu", "0", "--layout", "3g@0", "--state-dir", f"{node.folder}/tranche")
    equal(node.instances()[0], [("3g.40gb", 0)], "(an instance by another hand)")
    node.start_driver()
    wait_for("its end", lambda: node.instances()[0] == [])
    equal(node.instances()[0], [], "what the driver does not know it destroys at its start: one owner a node")


def test_half_a_preparation(world, node):
    """A compute instance that cannot be made after its GPU instance was. v0.4.1 never gets over it:
    what it does at each further try cannot find the GPU (the name of a device does not hold the
    PCI address that it looks for). The controller has to treat such a step as stalled."""
    world.start("f", "4g.40gb", node.parents()[0])
    wait_for("the failure", lambda: any("unprepare failed for partially prepared" in e
                                        for e in world.kubelets.errors))
    ok(any("compute instance" in e.lower() for e in world.kubelets.errors), "a compute instance fails",
       world.kubelets.errors)
    equal((node.instances()[0], node.uuids(), world.phase("f")), ([("4g.40gb", 0)], [], "Pending"),
          "its GPU instance stays, and no try of the driver takes it away")
    world.start("g", "3g.40gb", node.parents()[0])
    world.wait_running("g")
    equal(node.instances()[0], [("3g.40gb", 4), ("4g.40gb", 0)], "its neighbours are served all the same")
    world.end("g")


def test_way_out(world, node):
    """What an administrator does then: no driver, no checkpoint, no instances, driver."""
    node.driver.kill()
    os.unlink(f"{node.plugins}/{DRIVER}/checkpoint.json")
    node.tranche("gpu", "clear", "--gpu", "0", "--state-dir", f"{node.folder}/tranche")
    node.environment["TRANCHE_SIM_FAULTS"] = "GpuInstanceDestroy nth 1: error IN_USE"
    node.start_driver()
    world.wait_running("f")
    equal(node.instances()[0], [("4g.40gb", 0)], "without its checkpoint the driver begins anew")
    world.end("f")
    equal(node.instances()[0], [], "a GPU instance that is in use when it should go is destroyed later")
    ok(any("error destroying GPU Instance: In use" in e for e in world.kubelets.errors), "(it was in use)",
       world.kubelets.errors)


def test_ampere(world, cluster, kubelets):
    """The driver never changes the MIG mode of an A100: what it is at its start decides."""
    off = DraNode(cluster, kubelets, "a100-off", fleet="a100-40gb:1")
    wait_for("its slices", off.devices)
    equal(sorted(off.devices()), ["gpu-0"], "an A100 with MIG off is a whole GPU and nothing else")
    on = DraNode(cluster, kubelets, "a100-on", fleet="a100-40gb:1", mig=True)
    wanted = expected_devices(on) - {"gpu-0"}
    wait_for("its slices", lambda: len(on.devices()) >= len(wanted))
    equal(sorted(on.devices()), sorted(wanted), f"with MIG on it is {len(wanted)} MIG devices, and no whole GPU")
    world.start("m", "1g.5gb")
    world.wait_running("m")
    equal(len(on.instances()[0]), 1, "its instances are made as on Hopper")
    world.end("m")
    equal((on.instances()[0], on.gpus()[0]["mig_enabled"]), ([], True), "and MIG stays on when the last one goes")


def main():
    with Cluster(scheduler=True, controllers=True) as cluster:
        kubelets = cluster.kubelets()
        world = World(cluster, kubelets)
        install_device_classes(cluster)
        node = DraNode(cluster, kubelets, "node-0", fleet="h100-80gb-sxm5:2")
        test_slices(node)
        test_scheduler_places(world, node, node.parents())
        test_device_nodes(node)
        test_ends(world, node)
        test_planner_places(world, node)
        test_binding_right(world, node)
        test_lost_allocation(world, node)
        test_driver_restart(world, node)
        weak = DraNode(cluster, kubelets, "node-1", fleet="h100-80gb-sxm5:1",
                       faults="GpuInstanceCreateComputeInstance nth 1: error UNKNOWN")
        wait_for("its slices", lambda: len(weak.devices()) >= len(expected_devices(weak)))
        test_half_a_preparation(world, weak)
        test_way_out(world, weak)
        test_ampere(world, cluster, kubelets)
    checks.finish()


if __name__ == "__main__":
    main()
