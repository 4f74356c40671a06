# SPDX-License-Identifier: Apache-2.0
"""The controller and the node agents on a real API server: four nodes, each with a `tranche
agent` on a simulated driver; two controllers, one of which leads. The floor of every service is
watched from the first plan to the end.
"""
import itertools
import json
import subprocess
import time

from api import BOUND_S, wait_for
from cluster import Checks, Cluster
from controller_world import GROUP, SERVICES, TRANCHE, World, dump

DAY = {"ranker": 500, "vision": 300, "speech": 60}
NIGHT = {"ranker": 120, "vision": 700, "speech": 100}


def machine(world, node):
    """The instances that a node's driver has, as (slice, start) by GPU."""
    done = subprocess.run([TRANCHE, "gpu", "list", "--driver", "sim", "--json"], capture_output=True, text=True,
                          env=world.agent_environment(node), timeout=BOUND_S)
    assert done.returncode == 0, done.stderr
    return {gpu["uuid"]: sorted((i["profile"], i["start"]) for i in gpu["instances"])
            for gpu in json.loads(done.stdout)["gpus"]}


def planned(world):
    """The instances that pods are bound to, by GPU."""
    wanted = {}
    for pod in world.pods():
        notes = pod["metadata"]["annotations"]
        wanted.setdefault(notes["tranche.dev/gpu-uuid"], []).append(
            (notes["tranche.dev/slice"], int(notes["tranche.dev/start"])))
    return {gpu: sorted(slots) for gpu, slots in wanted.items()}


def drivers_agree(world):
    """Whether every pod has its instance on the driver of its node."""
    found = {}
    for node in world.nodes:
        found.update(machine(world, node))
    return all(set(slots) <= set(found.get(gpu, [])) for gpu, slots in planned(world).items())


def preflight(checks, world):
    done = subprocess.run([TRANCHE, "controller", "--check", "--json", "--namespace=tranche-system",
                           f"--kubeconfig={world.cluster.kubeconfig('admin')}"], capture_output=True, text=True,
                          timeout=BOUND_S)
    checks.ok(done.returncode == 0 and json.loads(done.stdout)["ok"], "controller --check: ready",
              done.stdout[:2000] + done.stderr)


def install(checks, world):
    world.start_controller("a")
    world.start_controller("b")
    wait_for("a leader", world.holder)
    world.demand(DAY, floor=False)
    world.settle()
    checks.ok(True, "three services on four nodes: settled")
    checks.ok(drivers_agree(world), "each pod has its instance on its node's driver", planned(world))
    for name in SERVICES:
        service = world.admin.find(f"/api/v1/namespaces/shop/services/{name}")
        checks.ok(service and not service["spec"].get("selector"), f"{name}: a Service without selector")


def steady(checks, world):
    """What a slow machine still had to do may come late; what is written again and again does not
    end."""
    def rests():
        before = len(world.writes())
        time.sleep(13)
        return len(world.writes()) == before
    checks.ok(wait_for("rest", rests), "steady state makes no writes")


def change(checks, world, rates, name):
    world.demand(rates)
    world.settle()
    checks.equal(world.floor.breaches, [], f"{name}: the floor was held")
    checks.equal(world.duplicates(), [], f"{name}: one pod an instance")


def infeasible(checks, world):
    """More than there is, for the service that matters least: the others keep their rates."""
    world.demand(NIGHT | {"ranker": 1e6}, priority=0)
    world.floor.set({name: NIGHT[name] for name in ("vision", "speech")} | {"ranker": NIGHT["ranker"]})

    def said():
        item = world.admin.get(f"{GROUP}/namespaces/shop/gpuservices/ranker")
        return world.condition(item, "SLOFeasible")["status"] == "False" and item["status"]
    status = wait_for("ranker is said to be infeasible", said)
    reason = next(c for c in status["conditions"] if c["type"] == "SLOFeasible")["reason"]
    checks.ok(reason, f"infeasible demand is said, with a reason ({reason})")
    world.rates = dict(NIGHT)
    change(checks, world, NIGHT, "back from infeasible")


def upgrade(checks, world):
    """The leader ends in mid-transition, and a new one of its name comes."""
    demands = itertools.cycle([DAY, NIGHT])
    checks.ok(world.under_way(lambda: world.demand(next(demands))), "a Transition is under way")
    leading = wait_for("a leader", world.leader)
    epoch = world.epoch()
    checks.equal(world.end_controller(leading), 0, "SIGTERM in mid-transition: exit 0")
    world.start_controller(leading)
    world.settle()
    checks.ok(wait_for("another epoch", lambda: world.epoch() > epoch), "another epoch leads")
    checks.equal(world.floor.breaches, [], "upgrade: the floor was held")
    checks.equal(world.duplicates(), [], "upgrade: one pod an instance")


def uninstall(checks, world):
    world.demand({})
    wait_for("no service, pod or instance left", lambda: not world.services() and not world.pods())
    wait_for("no instance on any driver", lambda: not any(
        slots for node in world.nodes for slots in machine(world, node).values()))
    checks.ok(True, "services deleted: pods and instances are gone")
    kinds = ("gpupools", "gpuservices", "perfprofiles", "partitionplans", "transitions")

    def left():
        return [f"{GROUP}/{kind}/{item['metadata']['name']}" for kind in kinds
                for item in world.admin.items(f"{GROUP}/{kind}")]

    def deleted():
        """Again and again: a last plan can be written while its pool goes, and it falls to the
        garbage collector, which this cluster has not."""
        for path in left():
            world.admin.delete(path)
        if not left():
            time.sleep(3)
        return not left()
    wait_for("no object with a finalizer left", deleted)
    checks.ok(True, "everything deleted: no finalizer holds anything, and nothing is made without a pool")
    for name in ("a", "b"):
        checks.equal(world.end_controller(name), 0, f"controller {name} ends with 0")


def main():
    checks = Checks()
    with Cluster(scheduler=True) as cluster:
        world = World(cluster, actuator="agent", nodes=4, proxied=True, lease_s=30)
        try:
            preflight(checks, world)
            install(checks, world)
            steady(checks, world)
            change(checks, world, DAY | {"speech": 140}, "demand up")
            change(checks, world, DAY | {"ranker": 200}, "demand down")
            change(checks, world, NIGHT, "day to night")
            change(checks, world, DAY, "night to day")
            change(checks, world, NIGHT, "day to night again")
            infeasible(checks, world)
            upgrade(checks, world)
            checks.ok(drivers_agree(world), "each pod has its instance on its node's driver, still")
            world.watcher_sees(checks)
            uninstall(checks, world)
        except Exception:
            dump(world)
            raise
        print(f"# lowest capacities {world.floor.lowest}, {world.floor.changes} changes seen, "
              f"{len(world.writes())} writes")
    checks.finish()


main()
