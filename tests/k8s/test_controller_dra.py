#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller over NVIDIA's own DRA driver with dynamic MIG (on simulated GPUs), with the real
scheduler: claims for every instance, day to night and back, the floor watched; with the
allocation written by the controller (the default). And a first plan with the placement left to
the scheduler: it takes the first place that is free, so a 1g may lie where a 2g was to go; services
of one slice profile cannot get into each other's way."""
import json

from cluster import Checks, Cluster, wait_for
from controller_world import World, dump
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


def run(exact):
    name = "exact placement" if exact else "scheduler's choice"
    with Cluster(scheduler=True, controllers=True) as cluster:
        install_device_classes(cluster)
        world = DraWorld(cluster, actuator="dra", nodes=2, fleet=f"{BOARD}:1", board=BOARD,
                         pool={"exactPlacement": exact})
        try:
            world.start_controller("a")
            if exact:
                exact_rounds(world, name)
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
