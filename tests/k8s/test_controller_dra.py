#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller over NVIDIA's own DRA driver with dynamic MIG (on simulated GPUs), with the real
scheduler: claims for every instance, day to night and back, the floor watched; with the
allocation written by the controller (the default), also where another claim is given the same place
just before or just after it is written: ours is given back before its pod may start. And a first plan with the placement left to
the scheduler: it takes the first place that is free, so a 1g may lie where a 2g was to go; services
of one slice profile cannot get into each other's way."""
import json

from cluster import Checks, Cluster, wait_for
from controller_world import NAMESPACE, World, dump
from dra_node import DRIVER, DraNode, install_device_classes

CLAIMS = "/apis/resource.k8s.io/v1/resourceclaims"
BOARD = "h100-80gb-sxm5"
DAY = {"ranker": 220, "vision": 150}
NIGHT = {"ranker": 60, "vision": 420}
checks = Checks()


class DraWorld(World):
    """Nodes with the driver in place of our agent."""

    def add_node(self, node):
        self.dra = getattr(self, "dra", {})
        self.dra[node] = DraNode(self.cluster, self.kubelets, node, fleet=self.fleet)
        self.admin.merge(f"/api/v1/nodes/{node}", {"metadata": {"labels": {"test/gpus": "yes"}}})

    def claims(self):
        return self.admin.items(CLAIMS, labelSelector="app.kubernetes.io/managed-by=tranche")

    def devices(self):
        """Names of the devices that are allocated, by node."""
        found = {}
        for claim in self.claims():
            results = claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", [])
            for result in results:
                found.setdefault(result["pool"], []).append(result["device"])
        return {node: sorted(names) for node, names in found.items()}

    def made(self):
        """The same names from what the drivers made on the GPUs."""
        found = {}
        for node, dra in self.dra.items():
            ids = {profile["name"]: profile["profile_id"] for gpu in json.loads(dra.tranche("gpu", "list", "--json"))["gpus"]
                   for profile in gpu["profiles"]}
            for index, instances in enumerate(dra.instances()):
                for profile, start in instances:
                    word = profile.replace(".", "").replace("+", "-")
                    found.setdefault(node, []).append(f"gpu-{index}-mig-{word}-{ids[profile]}-{start}")
        return {node: sorted(names) for node, names in found.items()}

    def misplaced(self):
        """Claims whose device is not at the start that was planned."""
        wrong = []
        for claim in self.claims():
            for result in claim["status"]["allocation"]["devices"]["results"]:
                if result["device"].rsplit("-", 1)[1] != claim["metadata"]["annotations"]["tranche.dev/start"]:
                    wrong.append((claim["metadata"]["name"], result["device"]))
        return wrong


def round_(world, name, step, rates, **fields):
    world.demand(rates, floor=step != "day", **fields)
    world.settle()
    wait_for("as allocated", lambda: world.made() == world.devices())
    checks.ok(world.devices(), f"{name}, {step}: settled; the drivers made what is allocated, and no more",
              world.devices())


def exact_rounds(world, name):
    for step, rates in (("day", DAY), ("night", NIGHT), ("day again", DAY)):
        round_(world, name, step, rates)
        checks.equal(world.misplaced(), [], f"{name}, {step}: every instance at the start that was planned")
    checks.equal(world.floor.breaches, [], f"{name}: the floor was held")
    checks.equal(world.duplicates(), [], f"{name}: one pod an instance")
    world.watcher_sees(checks)
    world.demand({}, floor=False)
    wait_for("the end", lambda: not world.claims() and not world.pods())
    wait_for("empty GPUs", lambda: world.made() == {})
    checks.ok(True, f"{name}: when the services are gone no claim and no instance is left")


class Competitor:
    """Is given the device that the controller is writing for a claim of ours: as the scheduler
    would, which has not seen that yet."""

    def __init__(self, world, when):
        self.world = world
        self.device = None
        self.rival = f"rival-{when}"
        world.proxy.fault("PATCH", "/resourceclaims/[^/]*/status", **{when: self.take})

    def path(self, name=""):
        return f"/apis/resource.k8s.io/v1/namespaces/{NAMESPACE}/resourceclaims/{name}"

    def take(self, *_):
        admin = self.world.admin
        name = next(p for m, p, _ in reversed(list(self.world.proxy.requests)) if m == "PATCH" and "/resourceclaims/" in p)
        notes = admin.get(self.path(name.split("/")[-2]))["metadata"]["annotations"]
        self.device = next(
            {"request": "gpu", "driver": DRIVER, "pool": one["spec"]["pool"]["name"], "device": device["name"]}
            for one in admin.items("/apis/resource.k8s.io/v1/resourceslices") for device in one["spec"].get("devices", [])
            if device["attributes"].get("parentUUID", {}).get("string") == notes["tranche.dev/gpu-uuid"]
            and device["attributes"]["profile"]["string"] == notes["tranche.dev/slice"]
            and device["name"].endswith("-" + notes["tranche.dev/start"]))
        admin.create(self.path()[:-1], {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {
            "name": self.rival}, "spec": {"devices": {"requests": [
                {"name": "gpu", "exactly": {"deviceClassName": "mig.nvidia.com"}}]}}})
        admin.merge(self.path(self.rival) + "/status", {"status": {"allocation": {"devices": {"results": [self.device]}}}})

    def is_told(self):
        return any(event["reason"] == "AllocationLost" and self.rival in event["note"]
                   for event in self.world.admin.items("/apis/events.k8s.io/v1/events"))

    def device_of_rival(self):
        return self.world.admin.get(self.path(self.rival))["status"]["allocation"]["devices"]["results"][0]["device"]

    def go(self):
        self.world.admin.delete(self.path(self.rival))
        wait_for("the rival gone", lambda: not self.world.admin.find(self.path(self.rival)))


def race(world, when):
    competitor = Competitor(world, when)
    world.demand({"ranker": NIGHT["ranker"]}, floor=False)
    wait_for("the lost race is told", competitor.is_told)
    world.settle()
    wait_for("as allocated", lambda: world.made() == world.devices())
    taken = competitor.device
    checks.equal(competitor.device_of_rival(), taken["device"], f"a rival {when} the write: it keeps its place")
    checks.ok(taken["device"] not in world.devices().get(taken["pool"], []) and world.devices(),
              f"a rival {when} the write: ours was given back, told, and serves elsewhere", world.devices())
    checks.equal(world.misplaced(), [], f"a rival {when} the write: at the start that was planned")
    world.demand({}, floor=False)
    wait_for("the end", lambda: not world.claims() and not world.pods())
    competitor.go()


def run(exact):
    name = "exact placement" if exact else "scheduler's choice"
    with Cluster(scheduler=True, controllers=True) as cluster:
        install_device_classes(cluster)
        world = DraWorld(cluster, actuator="dra", nodes=2, fleet=f"{BOARD}:1", board=BOARD,
                         pool={"exactPlacement": exact}, proxied=exact)
        try:
            world.start_controller("a")
            if exact:
                exact_rounds(world, name)
                race(world, "before")
                race(world, "after")
            else:
                round_(world, name, "day", DAY, allowedSlices=["1g.10gb"])
        except Exception:
            dump(world)
            print("# " + json.dumps({"claims": world.devices(), "made": world.made(), "driver": DRIVER}))
            print("# " + "# ".join(str(one) + "\n" for one in world.kubelets.errors[-5:]))
            raise


run(exact=True)
run(exact=False)
checks.finish()
