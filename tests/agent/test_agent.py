#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The node agent as a process, against simulated GPUs and an API server in memory."""
import json
import os

from fake_api import Api
from box import NODES, STATES, Box, Checks, condition, found_layouts, reason, spec_gpu, wait_for

checks = Checks()
STATE = f"{STATES}/n0"
NODE = f"{NODES}/n0"


class World:
    """An API server with one node, and the agent's box."""

    def __init__(self, fleet="a100-40gb:2", layouts=()):
        self.api = Api()
        self.api.put(NODE, {"metadata": {"name": "n0"}, "status": {"capacity": {"cpu": "8"}}})
        self.box = Box("n0", fleet, self.api)
        for index, layout in enumerate(layouts):
            self.box.apply(layout, index)
        self.gpus = self.box.uuids()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.box.close()
        self.api.close()

    def state(self):
        return self.api.find(STATE)

    def ask(self, layouts, epoch=1, gpus=None):
        wait_for("the object", self.state, self.box.tail)
        boards = {one["uuid"]: one["board"] for one in self.box.gpus()}
        gpus = gpus or self.gpus
        self.api.put(STATE, dict(self.state(), spec={"epoch": epoch, "gpus": [
            spec_gpu(uuid, layout, boards[uuid]) for uuid, layout in zip(gpus, layouts)]}))

    def spoken(self):
        """The state when the status speaks of the spec as it is."""
        state = self.state()
        if state and state.get("status", {}).get("observedGeneration") == state["metadata"]["generation"]:
            return state
        return None

    def wait_reason(self, want):
        return wait_for(want, lambda: reason(self.spoken()) == want and self.spoken(),
                        lambda: f"{self.box.tail()}\n{json.dumps(self.state(), indent=1)}")


def test_life():
    with World(layouts=("1g.5gb@6", "-")) as world:
        box = world.box.start()
        state = wait_for("an inventory", lambda: found_layouts(world.state()) and world.state(), box.tail)
        checks.equal(found_layouts(state), ["1g.5gb@6", "-"], "inventory of what is there, before anything is asked")
        checks.equal(state["status"]["observedEpoch"], 0, "the epoch is kept before it is followed")
        world.ask(["4g.20gb@0 1g.5gb@6", "3g.20gb@4"], gpus=world.gpus)
        state = world.wait_reason("AsOrdered")
        checks.equal(box.layouts(), ["4g.20gb@0 1g.5gb@6", "3g.20gb@4"], "instances at their starts")
        checks.equal(found_layouts(state), ["4g.20gb@0 1g.5gb@6", "3g.20gb@4"], "and the status says so")
        checks.equal(condition(state, "Ready")["status"], "True", "Ready")
        node = wait_for("resources", lambda: "tranche.dev/mig-4g.20gb" in world.api.find(NODE)["status"]["capacity"]
                        and world.api.find(NODE))
        checks.equal(node["status"]["capacity"], {"cpu": "8", "tranche.dev/mig-4g.20gb": "1",
                                                  "tranche.dev/mig-1g.5gb": "1", "tranche.dev/mig-3g.20gb": "1"},
                     "extended resources on the node")
        check_cdi(box)
        check_rest(world)
        world.ask(["-", "3g.20gb@4"], gpus=world.gpus)
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts(), ["-", "3g.20gb@4"], "instances that are not asked for go")
        checks.equal(len(os.listdir(box.cdi)), 1, "and their specifications")
        node = wait_for("resources", lambda: len(world.api.find(NODE)["status"]["capacity"]) == 2
                        and world.api.find(NODE))
        checks.equal(node["status"]["capacity"], {"cpu": "8", "tranche.dev/mig-3g.20gb": "1"}, "and their resources")
        checks.equal(box.get("/readyz")[0], 200, "/readyz")
        checks.equal(box.get("/healthz")[0], 200, "/healthz")
        checks.equal(box.end(), 0, "SIGTERM ends it")


def check_cdi(box):
    devices = set(box.devices().values())
    checks.equal(set(os.listdir(box.cdi)), {f"tranche-{uuid}.json" for uuid in devices}, "a specification a device")
    uuid = box.devices()["1 3g.20gb@4"]
    with open(f"{box.cdi}/tranche-{uuid}.json") as file:
        text = json.load(file)
    checks.equal((text["kind"], text["devices"][0]["name"]), ("nvidia.com/gpu", uuid), "named by its UUID")
    gi = [one for one in box.gpus()[1]["instances"] if one["start"] == 4][0]["id"]
    minor = 3 + 135 + 9 * gi
    checks.equal([one["path"] for one in text["devices"][0]["containerEdits"]["deviceNodes"]],
                 ["/dev/nvidia1", f"/dev/nvidia-caps/nvidia-cap{minor}", f"/dev/nvidia-caps/nvidia-cap{minor + 1}"],
                 "with the three nodes of a MIG device")


def check_rest(world):
    """Ten looks at GPUs at rest: no write."""
    before = len(world.api.writes), world.box.metric("looks_total")
    wait_for("ten looks", lambda: world.box.metric("looks_total") >= before[1] + 10, world.box.tail)
    checks.equal(len(world.api.writes), before[0], "ten looks at rest write nothing")


def test_others_are_left_alone():
    with World(layouts=("2g.10gb@0", "2g.10gb@0")) as world:
        box = world.box.start()
        world.ask(["1g.5gb@6"], gpus=world.gpus[1:])
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts(), ["2g.10gb@0", "1g.5gb@6"], "a GPU that is not named is not touched")
        world.api.delete(STATE)
        wait_for("it is made anew", lambda: found_layouts(world.state()), box.tail)
        checks.equal(box.layouts(), ["2g.10gb@0", "1g.5gb@6"], "a deleted object takes nothing away")


def test_in_use():
    with World(layouts=("3g.20gb@0 1g.5gb@6", "-")) as world:
        box = world.box.start()
        before = box.devices()
        holder = box.hold(before["0 3g.20gb@0"])
        world.ask(["2g.10gb@0 1g.5gb@5 1g.5gb@6", "1g.5gb@0"])
        state = world.wait_reason("InUse")
        wait_for("the rest", lambda: box.layouts() == ["3g.20gb@0 1g.5gb@5 1g.5gb@6", "1g.5gb@0"], box.tail)
        checks.ok(True, "what is in use stays; what does not touch it is done")
        checks.ok("3g.20gb@0" in state["status"]["message"], "the message names it", state["status"]["message"])
        after = box.devices()
        checks.equal((after["0 3g.20gb@0"], after["0 1g.5gb@6"]), (before["0 3g.20gb@0"], before["0 1g.5gb@6"]),
                     "neighbours are the very same instances")
        holder.terminate()
        holder.wait()
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts()[0], "2g.10gb@0 1g.5gb@5 1g.5gb@6", "once it is free, the rest follows")
        checks.equal(box.devices()["0 1g.5gb@6"], before["0 1g.5gb@6"], "and the neighbour still is the same")


def test_epoch():
    with World() as world:
        box = world.box.start()
        world.ask(["1g.5gb@0", "-"], epoch=7)
        world.wait_reason("AsOrdered")
        checks.equal(world.state()["status"]["observedEpoch"], 7, "the epoch is kept")
        world.ask(["7g.40gb@0", "-"], epoch=6)
        world.wait_reason("StaleEpoch")
        checks.equal(box.layouts(), ["1g.5gb@0", "-"], "a lower epoch is refused")
        box.kill()
        box.start()
        before = box.metric("looks_total")
        wait_for("looks", lambda: box.metric("looks_total") >= before + 3, box.tail)
        checks.equal((reason(world.state()), box.layouts()), ("StaleEpoch", ["1g.5gb@0", "-"]), "after a kill too")
        world.ask(["7g.40gb@0", "-"], epoch=8)
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts(), ["7g.40gb@0", "-"], "a higher one is followed")


def test_conflict():
    slices = "/apis/resource.k8s.io/v1/resourceslices"
    with World(layouts=("1g.5gb@0", "-")) as world:
        world.api.patch(NODE, {"metadata": {"labels": {"nvidia.com/mig.config": "all-1g.5gb"}}})
        box = world.box.start()
        world.ask(["7g.40gb@0", "-"])
        state = world.wait_reason("DriverConflict")
        checks.equal(condition(state, "DriverConflict")["status"], "True", "mig-manager's label: refused")
        checks.equal(box.layouts(), ["1g.5gb@0", "-"], "nothing is changed")
        world.api.patch(NODE, {"metadata": {"labels": {"nvidia.com/mig.config": None}}})
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts(), ["7g.40gb@0", "-"], "the label gone, the spec is followed")
        world.api.put(f"{slices}/s0", {"spec": {
            "driver": "gpu.nvidia.com", "nodeName": "n0", "pool": {"name": "n0"}, "devices": [
                {"name": "gpu-0-mig-1g5gb-19-0", "attributes": {"type": {"string": "mig"}}}]}})
        world.ask(["-", "-"])
        world.wait_reason("DriverConflict")
        checks.equal(box.layouts(), ["7g.40gb@0", "-"], "a DRA driver's partitions: refused")
        world.api.delete(f"{slices}/s0")
        world.wait_reason("AsOrdered")
        checks.equal(condition(world.state(), "DriverConflict")["status"], "False", "and followed after it")


def test_no_dra():
    with World() as world:
        world.api.missing.add("/apis/resource.k8s.io")
        world.box.start()
        world.ask(["1g.5gb@0", "-"])
        world.wait_reason("AsOrdered")
        checks.ok(True, "a server without resource.k8s.io is fine")
        world.api.broken.add("/apis/resource.k8s.io")
        looks = world.box.metric("looks_total")
        wait_for("more looks", lambda: world.box.metric("looks_total") > looks + 50, world.box.tail)
        world.box.apply("-", 0)
        wait_for("the instance anew", lambda: world.box.layouts()[0] == "1g.5gb@0", world.box.tail)
        checks.ok(True, "also while that server restarts")


MALFORMED = [
    {"gpus": "all"}, {"gpus": [{}]}, {"gpus": [None]}, {"gpus": [7]}, {"epoch": "x", "gpus": []},
    {"gpus": [{"uuid": "GPU-none", "board": "a100-40gb", "instances": []}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": [{"slice": "9g.1gb", "start": 0}]}]},
    {"gpus": [{"uuid": 0, "board": "h100-80gb-sxm5", "instances": []}]},
    {"gpus": [{"uuid": 0, "board": "x", "instances": []}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": [{"slice": "3g.20gb", "start": 1}]}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": [{"slice": "3g.20gb", "start": -1}]}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": [{"slice": "3g.20gb", "start": 400}]}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": [{"slice": "3g.20gb", "start": 4}] * 2}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb",
               "instances": [{"slice": "1g.5gb", "start": i} for i in range(12)]}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb", "instances": {"slice": "1g.5gb"}}]},
    {"gpus": [{"uuid": 0, "board": "a100-40gb",
               "instances": [{"slice": "4g.20gb", "start": 0}, {"slice": "3g.20gb", "start": 0}]}]},
]


def test_malformed():
    with World(layouts=("1g.5gb@6", "-")) as world:
        box = world.box.start()
        wait_for("an inventory", lambda: found_layouts(world.state()), box.tail)
        for spec in MALFORMED:
            spec = json.loads(json.dumps(spec))
            for gpu in spec["gpus"] if isinstance(spec["gpus"], list) else []:
                if isinstance(gpu, dict) and gpu.get("uuid") == 0:
                    gpu["uuid"] = world.gpus[0]
            world.api.put(STATE, dict(world.state(), spec=spec))
            state = world.wait_reason("InvalidSpec")
            checks.ok(state["status"]["message"] and box.running() and box.layouts() == ["1g.5gb@6", "-"],
                      f"refused: {json.dumps(spec)[:90]}", state["status"]["message"])
        world.ask(["2g.10gb@0", "-"])
        world.wait_reason("AsOrdered")
        checks.equal(box.layouts()[0], "2g.10gb@0", "a right one is followed after them")


def test_foreign_change():
    with World() as world:
        box = world.box.start()
        world.ask(["3g.20gb@0 3g.20gb@4", "-"])
        world.wait_reason("AsOrdered")
        first = box.devices()
        box.apply("3g.20gb@0", 0)
        wait_for("it is made again", lambda: box.layouts()[0] == "3g.20gb@0 3g.20gb@4", box.tail)
        world.wait_reason("AsOrdered")
        checks.equal(box.devices()["0 3g.20gb@0"], first["0 3g.20gb@0"], "an instance that somebody deleted is made again")
        wait_for("the status", lambda: len(os.listdir(box.cdi)) == 2 and
                 {f"tranche-{uuid}.json" for uuid in box.devices().values()} == set(os.listdir(box.cdi)), box.tail)
        checks.ok(True, "with a specification of its own")


def test_one_gpu_fails():
    with World() as world:
        box = world.box.start()
        world.ask(["1g.5gb@0", "3g.20gb@0 2g.10gb@2"])
        state = world.wait_reason("InvalidSpec")
        checks.equal(["message" in one for one in state["status"]["gpus"]], [False, True], "the GPU that fails says so")
        checks.equal(found_layouts(state), ["1g.5gb@0", "-"], "and the other one goes on")
        world.ask(["1g.5gb@0", "3g.20gb@4"])
        state = world.wait_reason("AsOrdered")
        checks.equal(["message" in one for one in state["status"]["gpus"]], [False, False], "once it is well, it is silent")
        world.api.put(STATE, dict(world.state(), spec={"epoch": 1, "gpus": [
            spec_gpu(f"GPU-ä{i:02}-" + 'ä' * 20, "-") for i in range(40)]}))
        message = world.wait_reason("InvalidSpec")["status"]["message"]
        checks.ok(900 < len(message.encode()) <= 1024 and message.startswith("GPU-ä00"), "a long message is clipped",
                  (len(message.encode()), message))


def test_lost_gpu():
    with World() as world:
        box = world.box.start()
        world.ask(["1g.5gb@0", "1g.5gb@0"])
        world.wait_reason("AsOrdered")
        box.sim("set", "1", "--lost")
        state = world.wait_reason("Failed")
        checks.equal([one["uuid"] for one in state["status"]["gpus"]], world.gpus[:1], "a lost GPU leaves the inventory")
        checks.ok(world.gpus[1] in state["status"]["message"], "and is named", state["status"]["message"])
        world.api.patch(STATE, {"spec": {"gpus": [spec_gpu(world.gpus[0], "2g.10gb@2"),
                                                  spec_gpu(world.gpus[1], "1g.5gb@0")]}})
        wait_for("the other one", lambda: found_layouts(world.spoken()) == ["2g.10gb@2"], box.tail)
        checks.ok(True, "the other one goes on")
        box.sim("set", "1", "--found")
        state = world.wait_reason("AsOrdered")
        checks.equal(found_layouts(state), ["2g.10gb@2", "1g.5gb@0"], "a GPU that is back is back")


def test_xid():
    """A critical error of one GPU: the others go on; after the next start it is looked at anew."""
    with World() as world:
        box = world.box.start()
        world.ask(["1g.5gb@0", "1g.5gb@0"])
        world.wait_reason("AsOrdered")
        box.sim("xid", "1", "31")
        check_rest(world)
        checks.equal(found_layouts(world.state()), ["1g.5gb@0", "1g.5gb@0"], "an Xid of an application changes nothing")
        box.sim("xid", "1", "48")
        state = world.wait_reason("Failed")
        checks.equal([one["uuid"] for one in state["status"]["gpus"]], world.gpus[:1], "a GPU with a critical Xid leaves the inventory")
        checks.ok(f"{world.gpus[1]} reported Xid 48" in state["status"]["message"], "and is named", state["status"]["message"])
        world.ask(["2g.10gb@2", "2g.10gb@2"])
        wait_for("the other one", lambda: found_layouts(world.spoken()) == ["2g.10gb@2"], box.tail)
        checks.equal(box.layouts(), ["2g.10gb@2", "1g.5gb@0"], "it is changed no more, the other one is")
        box.sim("xid", "0", "79")
        wait_for("none", lambda: world.spoken() and not world.spoken()["status"]["gpus"], box.tail)
        checks.equal(reason(world.state()), "Failed", "all broken: an empty inventory, not a missing driver")
        box.end()
        box.start()
        state = world.wait_reason("AsOrdered")
        checks.equal(found_layouts(state), ["2g.10gb@2", "2g.10gb@2"], "started anew, it looks anew")


def test_driver_gone():
    with World() as world:
        box = world.box
        os.rename(f"{box.folder}/state", f"{box.folder}/away")
        with open(f"{box.folder}/state", "w") as file:
            file.write("no machine")
        box.start()
        wait_for("the word", lambda: reason(world.state()) == "DriverUnavailable", box.tail)
        checks.equal(box.get("/readyz")[0], 503, "without a driver it is not ready")
        checks.equal(box.get("/healthz")[0], 200, "and yet alive")
        os.rename(f"{box.folder}/away", f"{box.folder}/state")
        world.ask(["1g.5gb@0", "-"])
        world.wait_reason("AsOrdered")
        checks.ok(True, "the driver is looked for again")


def test_whole_boards():
    with World(fleet="t4-16gb:1,a30-24gb:1") as world:
        box = world.box.start()
        world.ask(["whole@0", "2g.12gb@0"])
        state = world.wait_reason("AsOrdered")
        checks.equal(found_layouts(state), ["whole@0", "2g.12gb@0"], "a board without MIG; MIG switched on where it is off")
        checks.equal(state["status"]["gpus"][0]["instances"][0]["uuid"], world.gpus[0], "its device is the GPU")
        world.ask(["-", "2g.12gb@0"])
        state = world.wait_reason("AsOrdered")
        checks.equal(found_layouts(state), ["-", "2g.12gb@0"], "and goes by word alone")
        box.end()


for test in (test_life, test_others_are_left_alone, test_in_use, test_epoch, test_conflict, test_no_dra,
             test_malformed, test_foreign_change, test_one_gpu_fails, test_lost_gpu, test_xid, test_driver_gone,
             test_whole_boards):
    test()
checks.finish()
