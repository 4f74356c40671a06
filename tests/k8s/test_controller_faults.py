# SPDX-License-Identifier: Apache-2.0
"""Faults while a cluster changes between two demands: in each case the floor of every service is
held all the time, the cluster comes to what was asked for, and no instance has two pods.

Between the controller and the API server is a proxy, which sees every write and can kill the
controller before and after it. The nodes' GPUs are those of the actuator `sim`. Each case says how
often its fault was seen to happen; too seldom is a failure.
"""
import itertools
import json
import random
import sys
import threading
import time

from api import BOUND_S, wait_for
from cluster import Checks, Cluster
from controller_world import World, dump, is_write

DAY = {"ranker": 500, "vision": 300, "speech": 60}
NIGHT = {"ranker": 120, "vision": 700, "speech": 100}


class Faults:
    def __init__(self, world, checks):
        self.world = world
        self.checks = checks
        self.cases = {}
        self.demands = itertools.cycle([NIGHT, DAY])

    def count(self, name, cases=1):
        self.cases[name] = self.cases.get(name, 0) + cases

    def often(self, name, least):
        """At the end of a case: its fault did happen."""
        self.checks.ok(self.cases.get(name, 0) >= least, f"{name}: {self.cases.get(name, 0)} times, at least {least}")

    def flip_often(self, name, least, flips=1):
        """That many changes, and more until the fault was met often enough."""
        for number in range(flips + 4):
            if number >= flips and self.cases.get(name, 0) >= least:
                break
            self.flip()
            self.settled(name)
        self.often(name, least)

    def flip(self):
        """The other demand; the change begins."""
        self.world.demand(next(self.demands))

    def settled(self, name):
        world = self.world
        world.settle()
        self.checks.equal(world.floor.breaches, [], f"{name}: the floor was held")
        self.checks.equal(world.duplicates(), [], f"{name}: one pod an instance")
        world.floor.breaches.clear()

    def under_way(self, name, least):
        """A change of which that many actions are begun."""
        self.checks.ok(self.world.under_way(self.flip, least), f"{name}: {least} actions of a Transition are begun")

    # One method a fault.

    def kill_at_every_write(self, after):
        """One life of the controller changes one object: it is killed right after that write was
        carried out, or (two objects) before the next one is. A write that changes nothing, as the
        creation of what is there, does not count."""
        world, name = self.world, f"killed {'after' if after else 'before'} every write"
        world.end_controller("a")
        process = world.start_controller("a", elect=False)
        state = {"pid": 0, "changes": 0}
        versions = set()
        lock = threading.Lock()

        def kill():
            if process.child.pid == state["pid"] and process.running():
                process.kill()
                self.count(name)

        def note(status, text):
            """After a write."""
            with lock:
                metadata = json.loads(text).get("metadata", {}) if status < 300 else {}
                version = metadata.get("resourceVersion") or metadata.get("uid") or text
                if status >= 300 or version in versions:
                    return False
                versions.add(version)
                state["changes"] += 1
                if after:
                    kill()
                return after

        def before():
            """Whether the write is lost: its sender is dead."""
            with lock:
                if not after and state["changes"] >= 1:
                    kill()
                    return True
            return False

        def decide(method, path, number):
            if not is_write(method, path):
                return None
            with lock:
                if process.child.pid != state["pid"]:
                    state.update(pid=process.child.pid, changes=0)
            return {"before": before, "after": note}

        world.proxy.decide = decide
        self.flip_often(name, 20, flips=2)
        world.proxy.decide = None
        world.end_controller("a")
        world.start_controller("a")

    def half_of_writes(self, name, **effect):
        """Each write meets the fault, or not: the same choices in every run."""
        world, choice = self.world, random.Random(name)

        def decide(method, path, number):
            if not is_write(method, path) or choice.random() < 0.5:
                return None
            self.count(name)
            return dict(effect)

        world.proxy.decide = decide
        self.flip_often(name, 8)
        world.proxy.decide = None

    def server_killed_in_every_step(self):
        """The API server is killed whenever another action was begun."""
        world, name = self.world, "API server killed in every step"
        seen = set()

        def step():
            progress = world.progress()
            if progress and progress not in seen and progress[0] > 0:
                seen.add(progress)
                world.cluster.api.kill()
                self.count(name)
                world.cluster.api.start()
                world.cluster.wait_ready()
            return world.unsettled() == ""

        for _ in range(4):
            seen.clear()
            self.flip()
            wait_for("steps", step, 2 * BOUND_S, every_s=0.02)
            self.settled(name)
            if self.cases.get(name, 0) >= 3:
                break
        self.often(name, 3)

    def watches_cut(self, flips=3):
        """Every stream of a watch is cut a few times, each time some bytes later."""
        world, name = self.world, "watch cut"
        offsets, cuts = itertools.count(0, 23), {}

        def decide(method, path, number):
            if method != "GET" or "watch=" not in path:
                return None
            plural = path.split("?")[0]
            if cuts.get(plural, 0) >= 3:
                return None
            cuts[plural] = cuts.get(plural, 0) + 1
            return {"cut_after": next(offsets), "chunk": 7}

        before = world.proxy.cuts
        for number in range(flips + 4):
            if number >= flips and world.proxy.cuts - before >= 20:
                break
            world.proxy.cut_all()  # what is open was not cut by plan
            cuts.clear()
            world.proxy.decide = decide
            self.flip()
            self.settled(name)
        world.proxy.decide = None
        self.count(name, world.proxy.cuts - before)
        self.often(name, 20)

    def hold_watches(self, name, least):
        """All watches are broken off in mid-transition, and wait to resume. Without a connection they
        would list anew. Once more where the Transition was over before."""
        world = self.world
        for _ in range(10):
            self.under_way(name, least)
            rule = world.proxy.fault("GET", "watch=", hold_request=True, times=-1)
            world.proxy.cut_all()
            wait_for("watches that would resume", lambda: rule.hits >= 8)
            if world.open_transition():
                self.checks.ok(True, f"{name}: a Transition is open")
                return
            world.proxy.clear()
            world.settle()
        raise TimeoutError(f"{name}: no watch was held in mid-transition")

    def versions_expire(self):
        """What the watches know is compacted away and the server is a new one, in mid-transition:
        it has nothing to resume from, and says 410. Without election, since the controller shall
        live through it and not be a new one too."""
        world, name = self.world, "410"
        world.end_controller("a")
        process = world.start_controller("a", elect=False)
        pid = process.child.pid
        for least in (1, 4, 8):
            self.hold_watches(name, least)
            told = world.proxy.expired()
            world.admin.merge("/api/v1/namespaces/shop", {"metadata": {"annotations": {"n": str(least)}}})
            world.cluster.compact()
            world.cluster.api.kill()
            world.cluster.api.start()
            world.cluster.wait_ready()
            world.proxy.clear()
            wait_for("410", lambda: world.proxy.expired() > told)
            self.settled(name)
            self.count(name, world.proxy.expired() - told)
        self.checks.equal(process.child.pid, pid, f"{name}: the controller lived through it")
        self.often(name, 3)
        world.end_controller("a")
        world.start_controller("a")

    def events_late(self):
        """Events of pods and slices are held back: the caches are old, and say nothing of it."""
        world, name = self.world, "stale reads"
        for pattern in ("/pods\\?.*watch=", "/endpointslices\\?.*watch=", "/transitions\\?.*watch="):
            rule = world.proxy.fault("GET", pattern, hold=True, times=-1)
            world.proxy.cut_all()
            wait_for("the watch", lambda: rule.hits)
            self.flip()
            wait_for("events that are held back", lambda: rule.held)
            time.sleep(4)
            world.proxy.clear()
            self.count(name, rule.held)
            self.settled(f"{name} ({pattern.split('?')[0][1:-1]})")
        self.often(name, 3)

    def stop_leader(self, name, least):
        """SIGSTOP of the leader in mid-transition: its name and epoch. Once more where the Transition
        was over before, or another one leads by then."""
        world = self.world
        for _ in range(10):
            self.under_way(name, least)
            epoch, leader = world.epoch(), wait_for("a leader", world.leader)
            world.wanted.discard(leader)
            world.processes[leader].stop_signal()
            if world.open_transition() and world.leader() == leader and world.epoch() == epoch:
                self.checks.ok(True, f"{name}: a Transition is open")
                return leader, epoch
            world.processes[leader].continue_signal()
            world.wanted.add(leader)
            world.settle()
        raise TimeoutError(f"{name}: no leader was stopped in mid-transition")

    def leader_stopped(self):
        """SIGSTOP of the leader for longer than its Lease; the second takes over; SIGCONT: the
        first ends, and does nothing."""
        world, name = self.world, "leader stopped"
        world.start_controller("b")
        wait_for("a leader", world.holder)
        for least in (1, 5):
            leader, epoch = self.stop_leader(name, least)
            process, pid = world.processes[leader], world.processes[leader].child.pid
            wait_for("another leader", lambda: world.epoch() > epoch)
            process.continue_signal()
            status = process.child.wait(BOUND_S)
            self.checks.equal(status, 1, f"{name}: the first one ends with 1")
            self.checks.ok(process.child.pid == pid, f"{name}: it was the one that was stopped")
            world.start_controller(leader)
            self.count(name)
            self.settled(name)
        self.often(name, 2)
        world.end_controller("b")

    def two_without_election(self):
        world, name = self.world, "two controllers without election"
        world.end_controller("a")
        world.start_controller("a", elect=False)
        world.start_controller("b", elect=False)
        for _ in range(2):
            self.flip()
            self.settled(name)
            self.count(name)
        for one in ("a", "b"):
            world.end_controller(one)
        world.start_controller("a")

    def pod_stuck(self):
        """A pod that never ends makes its Transition Stalled; the others go on; it ends at last."""
        world, name = self.world, "pod stuck in Terminating"
        world.admin.merge("/apis/tranche.dev/v1alpha1/gpupools/default", {"spec": {"actionTimeoutSeconds": 3}})
        world.kubelets.hold_end("")
        self.flip()

        def stalled():
            item = world.open_transition()
            if item and world.condition(item, "Stalled")["status"] == "True":
                return "Stalled"
            return "over" if world.unsettled() == "" else ""
        self.checks.equal(wait_for("Stalled", stalled), "Stalled", f"{name}: Stalled is said")
        self.count(name)
        world.kubelets.release_end("")
        world.admin.merge("/apis/tranche.dev/v1alpha1/gpupools/default", {"spec": {"actionTimeoutSeconds": 120}})
        self.settled(name)

    def node_lost(self):
        """A node with pods is lost: its capacity is made elsewhere, nothing of it is deleted by
        force; it comes back and all is well."""
        world, name = self.world, "node lost"
        victims = {}
        for pod in world.pods():
            victims.setdefault(pod["spec"].get("nodeName"), []).append(pod["metadata"]["uid"])
        node = max((n for n in victims if n), key=lambda n: len(victims[n]))
        lost = set(victims[node])
        floor = world.floor
        floor.excused = lost  # the others serve what they served
        world.cluster.manager.start()
        world.kubelets.lose(node)

        def elsewhere():
            have = floor.capacity(without=lost)
            return all(have.get(s, 0) >= rate * (1 - 1e-9) for s, rate in world.rates.items())
        wait_for("the lost capacity is made elsewhere", elsewhere)
        floor.excused = set()  # nothing that was lost is needed any more
        self.checks.ok(True, f"{name}: its capacity is made on the other nodes")
        left = {p["metadata"]["uid"] for p in world.pods()}
        self.checks.ok(lost <= left, f"{name}: its pods are not removed by force")
        world.kubelets.find(node)
        wait_for("the node is back", lambda: world.node_is_well(node))
        world.cluster.manager.kill()
        self.count(name)
        self.settled(f"{name}, and back")


CASES = {
    "kill-after": lambda f: f.kill_at_every_write(True),
    "kill-before": lambda f: f.kill_at_every_write(False),
    "lose-answer": lambda f: f.half_of_writes("answer lost", lose_answer=True),
    "lose-request": lambda f: f.half_of_writes("request lost", lose_request=True),
    "409": lambda f: f.half_of_writes("409", status=409),
    "429": lambda f: f.half_of_writes("429 with Retry-After", status=429, retry_after=1),
    "500": lambda f: f.half_of_writes("500", status=500),
    "api-killed": lambda f: f.server_killed_in_every_step(),
    "watch-cut": lambda f: f.watches_cut(),
    "410": lambda f: f.versions_expire(),
    "stale": lambda f: f.events_late(),
    "stopped": lambda f: f.leader_stopped(),
    "two": lambda f: f.two_without_election(),
    "stuck": lambda f: f.pod_stuck(),
    "lost": lambda f: f.node_lost(),
}


def main():
    checks = Checks()
    chosen = sys.argv[1:] or list(CASES)
    with Cluster(scheduler=True, controllers=True, node_grace_s=30) as cluster:
        # Who says that a node is lost runs only where that is the case: on a slow machine it would
        # say so of late heartbeats, and of every outage of the API server.
        cluster.manager.kill()
        world = World(cluster, actuator="sim", nodes=4, proxied=True)
        faults = Faults(world, checks)
        try:
            world.start_controller("a")
            world.demand(DAY, floor=False)
            world.settle()
            world.watcher_sees(checks)
            for name in chosen:
                began = time.time()
                CASES[name](faults)
                print(f"# {name}: {time.time() - began:.0f} s", flush=True)
        except Exception:
            dump(world)
            raise
        total = sum(faults.cases.values())
        print(f"# {total} cases: " + ", ".join(f"{n} {name}" for name, n in faults.cases.items()))
        print(f"# lowest capacities {world.floor.lowest}; {world.floor.changes} changes seen; "
              f"{world.starts} starts of controllers")
    checks.finish()


main()
