#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Case tables of the actuators: a world in, what is observed and wanted done out. The DRA cases
have the ResourceSlices that NVIDIA's driver publishes, in its own words.

    test_actuators.py ACTUATOR_PROBE"""
import json
import os
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Checks  # noqa: E402

PROBE = sys.argv[1]
checks = Checks()
equal = checks.equal
GPU0, GPU1 = "GPU-00000000-0000-0000-0000-000000000000", "GPU-11111111-0000-0000-0000-000000000000"


def probe(actuator, **world):
    pool = {"apiVersion": "tranche.dev/v1alpha1", "kind": "GpuPool", "metadata": {
        "name": "night", "annotations": world.pop("notes", {})},
        "spec": {"actuator": actuator} | world.pop("pool", {})}
    world = {"pool": pool, "epoch": 3, "now": 1000} | world
    done = subprocess.run([PROBE], input=json.dumps(world), capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def node(name="n0", labels=None, notes=None, ready=True):
    return {"apiVersion": "v1", "kind": "Node", "metadata": {
        "name": name, "resourceVersion": "7", "labels": labels or {}, "annotations": notes or {}},
        "status": {"conditions": [{"type": "Ready", "status": "True" if ready else "False"}]}}


def words(text):
    return [{"slice": w.split("@")[0], "start": int(w.split("@")[1])} for w in text.split() if w != "-"]


def state(found, desired=None, synced="AsOrdered", failed=(), **more):
    """NodeGpuState of n0: found and desired are layouts by GPU; failed: the GPUs that say so."""
    spec = [{"uuid": u, "board": "a100-40gb", "instances": words(t)} for u, t in (desired or {}).items()]
    gpus = [{"uuid": u, "board": "a100-40gb", "migEnabled": True, "instances": [
        i | {"uuid": f"MIG-{u[4]}-{i['start']}", "ready": True} for i in words(t)]} | (
            {"message": "why not"} if u in failed else {}) for u, t in found.items()]
    conditions = [{"type": "Synced", "status": "True" if synced == "AsOrdered" else "False", "reason": synced}]
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": "NodeGpuState", "metadata": {
        "name": "n0", "resourceVersion": "42", "generation": 5}, "spec": {"epoch": 3, "gpus": spec} | more.pop("spec", {}),
        "status": {"observedEpoch": 3, "observedGeneration": 5, "gpus": gpus, "message": "why not",
                   "conditions": conditions + more.pop("conditions", [])}}


def slot(gpu, slice_, start, transition="night-1"):
    return {"gpu": gpu, "slice": slice_, "start": start, "transition": transition}


def phases(answer):
    return {g["uuid"]: {f"{i['slice']}@{i['start']}": i["phase"] for i in g["instances"]} for g in answer["gpus"]}


def layouts(effect):
    return {g["uuid"]: " ".join(f"{i['slice']}@{i['start']}" for i in g.get("instances", [])) or "-"
            for g in effect["body"]["spec"]["gpus"]}


def agent_observes():
    for name, found, desired, synced, failed, want in [
            ("as found", {GPU0: "3g.20gb@4"}, None, "AsOrdered", (), {GPU0: {"3g.20gb@4": "ready"}}),
            ("wanted and not there", {GPU0: "-"}, {GPU0: "1g.5gb@6"}, "InUse", (), {GPU0: {"1g.5gb@6": "pending"}}),
            ("wanted and failed", {GPU0: "-"}, {GPU0: "1g.5gb@6"}, "Failed", [GPU0], {GPU0: {"1g.5gb@6": "failed"}}),
            ("wanted beside a GPU that failed", {GPU0: "-", GPU1: "-"}, {GPU0: "1g.5gb@6", GPU1: "1g.5gb@0"}, "Failed", [GPU0],
             {GPU0: {"1g.5gb@6": "failed"}, GPU1: {"1g.5gb@0": "pending"}}),
            ("wanted beside a GPU that is not there", {GPU0: "-"}, {GPU0: "1g.5gb@6", GPU1: "1g.5gb@0"}, "InvalidSpec", (),
             {GPU0: {"1g.5gb@6": "pending"}}),
            ("there and not wanted", {GPU0: "1g.5gb@6"}, {GPU0: "-"}, "InUse", (), {GPU0: {"1g.5gb@6": "leaving"}}),
            ("a GPU that was lost", {GPU1: "-"}, {GPU0: "1g.5gb@6"}, "Failed", (), {GPU1: {}})]:
        answer = probe("agent", nodes=[node()], nodeStates=[state(found, desired, synced, failed)])
        equal(phases(answer), want, f"agent observes: {name}")
    answer = probe("agent", nodes=[node(ready=False)], nodeStates=[state({GPU0: "-"})])
    equal([g["lost"] for g in answer["gpus"]], [True], "agent observes: a node that is not ready")


def twice():
    """A server under a new name, or a card that was moved: the old Node is there for a while."""
    def named(object_, name):
        return object_ | {"metadata": object_["metadata"] | {"name": name}}

    for old_ready, new_ready, want in [(False, True, "n1"), (True, False, "n0"), (True, True, "n0"), (False, False, "n0")]:
        nodes = [node("n0", ready=old_ready), node("n1", ready=new_ready)]
        other = {"n0": "n1", "n1": "n0"}[want]
        states = [state({GPU0: "1g.5gb@0", GPU1: "-"}), named(state({GPU0: "1g.5gb@0"}), "n1")]
        answer = probe("agent", nodes=nodes, nodeStates=states)
        equal(([(g["uuid"], g["node"]) for g in answer["gpus"]], list(answer["doubts"])),
              ([(GPU0, want), (GPU1, "n0")], [other]), f"agent: a GPU of two nodes, ready {old_ready} and {new_ready}")
        there = slices() + [{"spec": s["spec"] | {"nodeName": "n1", "pool": s["spec"]["pool"] | {"name": "n1"}}} for s in slices()]
        answer = probe("dra", nodes=nodes, slices=there, claims=[])
        equal(([(g["uuid"], g["node"]) for g in answer["gpus"]], list(answer["doubts"])), ([(GPU0, want)], [other]),
              f"dra: a GPU of two nodes, ready {old_ready} and {new_ready}")


def agent_refuses():
    partition = {"name": "gpu-0-mig-1g5gb-19-0", "attributes": {"type": {"string": "mig"}}}
    slices = [{"spec": {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": {"name": "n0"}, "devices": [partition]}}]
    whole = [{"spec": {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": {"name": "n0"}, "devices": [
        {"name": "gpu-0", "attributes": {"type": {"string": "gpu"}}}]}}]
    conflict = [{"type": "DriverConflict", "status": "True", "reason": "OtherOwner"}]
    for name, world, free in [
            ("mig-manager's label", {"nodes": [node(labels={"nvidia.com/mig.config": "x"})]}, False),
            ("partitions of a DRA driver", {"slices": slices}, False),
            ("whole GPUs of a DRA driver", {"slices": whole}, True),
            ("what its agent says", {"nodeStates": [state({GPU0: "-"}, conditions=conflict)]}, False)]:
        answer = probe("agent", **({"nodes": [node()], "nodeStates": [state({GPU0: "-"})]} | world))
        equal((len(answer["gpus"]), list(answer["conflicts"])), (1, []) if free else (0, ["n0"]), f"agent: {name}")


def agent_changes():
    world = {"nodes": [node()], "nodeStates": [state({GPU0: "3g.20gb@4", GPU1: "7g.40gb@0"})]}
    answer = probe("agent", **world, creates=[slot(GPU0, "1g.5gb", 0)])
    equal([(e["do"], e["kind"], e["name"], e["manager"], e["destructive"]) for e in answer["effects"]],
          [("apply", "NodeGpuState", "n0", "tranche-controller", False)], "agent: one apply")
    equal(answer["effects"][0]["body"]["metadata"]["resourceVersion"], "42", "tied to what was read")
    equal(layouts(answer["effects"][0]), {GPU0: "1g.5gb@0 3g.20gb@4"}, "what is there stays; other GPUs are not named")
    answer = probe("agent", **world, creates=[slot(GPU0, "1g.5gb", 0)], deletes=[slot(GPU0, "3g.20gb", 4),
                                                                                  slot(GPU1, "7g.40gb", 0)])
    equal((layouts(answer["effects"][0]), answer["effects"][0]["destructive"], len(answer["effects"])),
          ({GPU0: "1g.5gb@0", GPU1: "-"}, True, 1), "all of a node in one apply; deletion is destructive")
    settled = {"nodes": [node()], "nodeStates": [state({GPU0: "-"}, {GPU0: "1g.5gb@0"}, "InUse")]}
    equal(probe("agent", **settled, creates=[slot(GPU0, "1g.5gb", 0)])["effects"], [], "asked for already: no effect")
    answer = probe("agent", **settled, epoch=4, creates=[slot(GPU0, "1g.5gb", 0)])
    equal([e["body"]["spec"]["epoch"] for e in answer["effects"]], [4], "a new leader writes its epoch")
    equal(probe("agent", **settled, epoch=2, creates=[slot(GPU0, "3g.20gb", 4)])["effects"], [], "a late one nothing")
    equal(probe("agent", **world)["effects"], [], "no slot: no effect")
    replaced = state({GPU0: "-"}, {GPU0: "-", GPU1: "7g.40gb@0"}, "InvalidSpec")
    answer = probe("agent", nodes=[node()], nodeStates=[replaced], creates=[slot(GPU0, "1g.5gb", 0)])
    equal(layouts(answer["effects"][0]), {GPU0: "1g.5gb@0"}, "a GPU that was replaced is not asked for any more")
    replaced["metadata"]["generation"] = 6
    answer = probe("agent", nodes=[node()], nodeStates=[replaced], creates=[slot(GPU0, "1g.5gb", 0)])
    equal(layouts(answer["effects"][0]), {GPU0: "1g.5gb@0", GPU1: "7g.40gb@0"}, "but for one that was not looked for yet")
    owned = node()
    owned["metadata"]["uid"] = "u-n0"
    answer = probe("agent", nodes=[owned], nodeStates=[replaced], creates=[slot(GPU0, "1g.5gb", 0)])
    equal(answer["effects"][0]["body"]["metadata"]["ownerReferences"],
          [{"apiVersion": "v1", "kind": "Node", "name": "n0", "uid": "u-n0"}], "the node's object goes with the node")


def agent_binds():
    template = {"metadata": {"name": "p"}, "spec": {"containers": [
        {"name": "a", "env": [{"name": "NVIDIA_VISIBLE_DEVICES", "value": "all"}]}, {"name": "b"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [{"matchExpressions": []}, {}]}}}}}
    pod = probe("agent", nodes=[node()], nodeStates=[state({GPU0: "1g.5gb+me@4"})], bind=template)["pod"]
    equal(pod["metadata"]["annotations"], {"cdi.k8s.io/tranche_gpu": "nvidia.com/gpu=MIG-0-4"}, "agent binds: CDI")
    equal([c["env"] for c in pod["spec"]["containers"]],
          [[{"name": "NVIDIA_VISIBLE_DEVICES", "value": "MIG-0-4"}]] * 2, "its device, and no other, is visible")
    equal(pod["spec"]["containers"][0]["resources"]["limits"], {"tranche.dev/mig-1g.5gb.me": "1"}, "one resource")
    terms = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    equal([t["matchFields"][0]["values"] for t in terms["nodeSelectorTerms"]], [["n0"]] * 2,
          "every alternative is on the node")


# --- dra ---

H100 = [("1g.10gb", 19, range(7), 16), ("1g.10gb+me", 20, range(7), 16), ("1g.20gb", 15, (0, 2, 4, 6), 26),
        ("2g.20gb", 14, (0, 2, 4), 32), ("3g.40gb", 9, (0, 4), 60), ("4g.40gb", 5, (0,), 64), ("7g.80gb", 0, (0,), 132)]


def slices(cc="9.0.0", profiles=H100, generation=1):
    devices = [{"name": f"gpu-3-mig-{name.replace('.', '').replace('+', '-')}-{identity}-{start}", "attributes": {
        "type": {"string": "mig"}, "parentUUID": {"string": GPU0}, "profile": {"string": name},
        "cudaComputeCapability": {"version": cc}}, "capacity": {"multiprocessors": {"value": str(sm)}}}
        for name, identity, starts, sm in profiles for start in starts]
    pool = {"name": "n0", "generation": generation, "resourceSliceCount": 2}
    return [{"spec": {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": pool, "sharedCounters": []}},
            {"spec": {"driver": "gpu.nvidia.com", "nodeName": "n0", "pool": pool, "devices": devices}}]


def claim(name, slice_="1g.10gb", start=6, device=None, ours=True, **more):
    labels = {"app.kubernetes.io/managed-by": "tranche"} if ours else {}
    body = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {
        "name": name, "namespace": "shop", "uid": f"u-{name}", "resourceVersion": "9", "labels": labels, "annotations": {
            "tranche.dev/gpu-uuid": GPU0, "tranche.dev/slice": slice_, "tranche.dev/start": str(start),
            "tranche.dev/exact-placement": "true"}} | more}
    if not ours:
        body["metadata"]["annotations"] = {}
    if device:
        body["status"] = {"allocation": {"devices": {"results": [
            {"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": device}]}}}
    return body


def dra_observes():
    a100 = [(n, i, s, 14 * int(n[0])) for n, i, s, _ in H100]
    for name, world, board in [("an H100 by its capability", slices(), "h100-80gb-sxm5"),
                               ("an A100 with the same profiles", slices("8.0.0", a100), "a100-80gb")]:
        answer = probe("dra", nodes=[node()], slices=world, claims=[])
        equal([(g["uuid"], g["board"], g["id"]) for g in answer["gpus"]], [(GPU0, board, "3")], f"dra observes: {name}")
    equal(probe("auto", nodes=[node()], slices=slices(), claims=[])["actuator"], "dra", "auto: dra where it is")
    equal(probe("auto", nodes=[node()])["actuator"], "agent", "auto: else the agent")
    admin = claim("x", device="gpu-3", ours=False)
    admin["status"]["allocation"]["devices"]["results"][0]["adminAccess"] = True
    replaced = slices() + slices(generation=2)[:1]
    equal(probe("dra", nodes=[node()], slices=replaced, claims=[])["gpus"], [], "slices of an old generation do not count")
    for name, claims, want in [
            ("claims are instances", [claim("a"), claim("b", "3g.40gb", 0, deletionTimestamp="2026-01-01T00:00:00Z")],
             [{"3g.40gb@0": "leaving", "1g.10gb@6": "ready"}]),
            ("a GPU that others use is left alone", [claim("x", device="gpu-3-mig-1g10gb-19-0", ours=False)], []),
            ("a whole GPU of others too", [claim("x", device="gpu-3", ours=False)], []),
            ("another GPU of others does not matter", [claim("x", device="gpu-33", ours=False)], [{}]),
            ("a look with admin access holds nothing", [admin], [{}])]:
        answer = probe("dra", nodes=[node()], slices=slices(), claims=claims)
        equal(list(phases(answer).values()), want, f"dra observes: {name}")
    both = probe("dra", nodes=[node()], slices=slices(), claims=[
        claim("a"), claim("x", device="gpu-3-mig-1g10gb-19-0", ours=False)])
    equal(([(g["shared"], [i["start"] for i in g["instances"]]) for g in both["gpus"]], list(both["doubts"])),
          ([(True, [6])], ["n0"]), "dra observes: ours beside others' is still there, and said to be shared")
    answer = probe("dra", nodes=[node(labels={"nvidia.com/mig.config": "x"})], slices=slices(), claims=[])
    equal((answer["gpus"], list(answer["conflicts"])), ([], ["n0"]), "dra: mig-manager's node is refused")


def partition_plan():
    item = {"gpuUUID": GPU0, "node": "n0", "board": "h100-80gb-sxm5", "slice": "2g.20gb", "start": 4,
            "service": "shop/ranker", "batch": 1, "procs": 1, "rateRps": 10}
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": "PartitionPlan", "metadata": {"name": "night-p"},
            "spec": {"pool": "night", "plan": "night-p", "part": 0, "parts": 1, "inputHash": "x", "algorithm": "exact",
                     "items": [item]}}


def transition():
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": "Transition", "metadata": {"name": "night-1"}, "spec": {
        "pool": "night", "from": "", "to": "night-p", "gpus": [{"uuid": GPU0, "board": "h100-80gb-sxm5", "node": "n0"}],
        "services": [{"name": "shop/ranker", "floorRps": 0}], "actions": [
            {"id": "a1", "kind": "create_instance", "group": "create", "seconds": 1, "gpuUUID": GPU0, "slice": "2g.20gb", "start": 4},
            {"id": "a2", "kind": "start", "group": "create", "seconds": 1, "gpuUUID": GPU0, "slice": "2g.20gb", "start": 4, "service": "shop/ranker",
             "batch": 1, "procs": 1, "rateRps": 10, "after": ["a1"]}]}}


def dra_changes():
    world = {"nodes": [node()], "slices": slices(), "transitions": [transition()], "plans": [partition_plan()]}
    answer = probe("dra", **world, claims=[], creates=[slot(GPU0, "2g.20gb", 4)])
    equal([(e["do"], e["kind"], e["namespace"]) for e in answer["effects"]], [("ensure", "ResourceClaim", "shop")],
          "dra: one claim an instance, in its service's namespace")
    body = answer["effects"][0]["body"]
    equal(body["spec"]["devices"]["requests"][0]["exactly"], {
        "deviceClassName": "mig.nvidia.com", "selectors": [{"cel": {"expression":
            f"device.attributes['gpu.nvidia.com'].parentUUID == '{GPU0}' && "
            "device.attributes['gpu.nvidia.com'].profile == '2g.20gb'"}}]}, "by GPU and profile")
    equal(body["metadata"]["finalizers"], ["resource.kubernetes.io/delete-protection"], "protected from the start")
    again = probe("dra", **world, claims=[], creates=[slot(GPU0, "2g.20gb", 4)])["effects"][0]["body"]
    equal(again["metadata"]["name"], body["metadata"]["name"], "the same name each time")
    there = [claim("c", "2g.20gb", 4)]
    equal(probe("dra", **world, claims=there, creates=[slot(GPU0, "2g.20gb", 4)])["effects"], [], "there: no effect")
    answer = probe("dra", **world, claims=there, deletes=[slot(GPU0, "2g.20gb", 4)])
    equal([(e["do"], e["name"], e["destructive"]) for e in answer["effects"]], [("delete", "c", True)], "dra: deletion")


def dra_tenants():
    """A slot goes from a service to one of another namespace: a claim is in its pod's namespace."""
    world = {"nodes": [node()], "slices": slices(), "transitions": [transition()], "plans": [partition_plan()]}
    wish = [slot(GPU0, "2g.20gb", 4) | {"service": "lab/vision"}]
    old = claim("c", "2g.20gb", 4)
    answer = probe("dra", **world, claims=[old], creates=wish)
    equal([(e["do"], e["namespace"], e["name"], e["destructive"]) for e in answer["effects"]],
          [("delete", "shop", "c", True)], "dra: the claim of the tenant before goes")
    leaving = claim("c", "2g.20gb", 4, deletionTimestamp="2026-01-01T00:00:00Z")
    equal(probe("dra", **world, claims=[leaving], creates=wish)["effects"], [], "it is waited for")
    answer = probe("dra", **world, claims=[], creates=wish)
    equal([(e["do"], e["namespace"]) for e in answer["effects"]], [("ensure", "lab")], "and made anew where the pod is")
    there = claim("c", "2g.20gb", 4)
    there["metadata"]["namespace"] = "shop-2"
    equal(len(probe("dra", **world, claims=[there], creates=[wish[0] | {"service": "shop/ranker"}])["effects"]), 1,
          "a namespace is known by its whole name")

    started = transition()
    started["spec"]["actions"] = [started["spec"]["actions"][1] | {"after": []}]
    started["status"] = {"epoch": 3, "actions": [{"id": "a2", "phase": "Started", "attempts": 1,
                                                  "startedAt": "2026-01-01T00:00:00Z"}]}
    service = {"apiVersion": "tranche.dev/v1alpha1", "kind": "GpuService", "metadata": {
        "name": "ranker", "namespace": "shop", "uid": "u-s", "resourceVersion": "1"}, "spec": {
        "pool": "night", "model": "ranker", "rateRps": 10, "latencyMs": 100,
        "podTemplate": {"spec": {"containers": [{"name": "a", "image": "i"}]}}}}
    world |= {"transitions": [started], "services": [service], "pool": {"paused": True}, "step": True}
    for namespace, want in [("shop", ("ensure", "Pod")), ("lab", ("delete", "ResourceClaim"))]:
        there["metadata"]["namespace"] = namespace
        acts = [(e["do"], e["kind"]) for e in probe("dra", **world, claims=[there])["effects"] if e["kind"] in (
            "Pod", "ResourceClaim")]
        equal(acts, [want], f"dra: a start on an instance of namespace {namespace}")


def dra_binds():
    template = {"metadata": {"name": "p"}, "spec": {"containers": [{"name": "a"}]}}
    pod = probe("dra", nodes=[node()], slices=slices(), claims=[claim("c")], bind=template)["pod"]
    equal((pod["spec"]["resourceClaims"], pod["spec"]["containers"][0]["resources"]["claims"],
           pod["spec"]["schedulingGates"]),
          ([{"name": "tranche-gpu", "resourceClaimName": "c"}], [{"name": "tranche-gpu"}],
           [{"name": "tranche.dev/allocation"}]), "dra binds: the claim, and a gate")


def gated(gates):
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {
        "name": "p", "namespace": "shop", "uid": "u-p", "resourceVersion": "11", "labels": {
            "app.kubernetes.io/managed-by": "tranche", "tranche.dev/service": "ranker"},
        "ownerReferences": [{"apiVersion": "tranche.dev/v1alpha1", "kind": "GpuService", "name": "ranker", "uid": "u-s"}],
        "annotations": {
            "tranche.dev/gpu-uuid": GPU0, "tranche.dev/slice": "1g.10gb", "tranche.dev/start": "6"}},
        "spec": {"schedulingGates": [{"name": g} for g in gates], "containers": []}}


def dra_tends():
    world = {"nodes": [node()], "slices": slices()}
    ours = "tranche.dev/allocation"
    answer = probe("dra", **world, claims=[claim("c")], pods=[gated([ours])])
    equal([(e["do"], e["kind"], e.get("subresource"), e["resourceVersion"], e["destructive"]) for e in answer["effects"]],
          [("patch", "ResourceClaim", "status", "9", True)], "dra: a gated pod: the allocation is written")
    equal(probe("dra", **world, fresh=False, claims=[claim("c")], pods=[gated([ours])])["effects"], [],
          "but not on a view that may be old")
    for device, clear in [("gpu-3-mig-1g10gb-19-6", False), ("gpu-3", False), ("gpu-3-mig-1g10gb-19-0", True)]:
        others = claim("x", device=device, ours=False)
        others["status"]["allocation"]["devices"]["results"].insert(0, {"driver": "net.example.com", "pool": "n0", "device": "eth-0"})
        answer = probe("dra", **world, claims=[claim("c"), others], pods=[gated([ours])])
        equal(len(answer["effects"]), int(clear), f"beside {device} of somebody else's claim")
    status = answer["effects"][0]["body"]["status"]
    equal((status["allocation"]["devices"]["results"], status["reservedFor"]),
          ([{"request": "gpu", "driver": "gpu.nvidia.com", "pool": "n0", "device": "gpu-3-mig-1g10gb-19-6"}],
           [{"resource": "pods", "name": "p", "uid": "u-p"}]), "exactly there, for that pod")
    allocated = claim("c", device="gpu-3-mig-1g10gb-19-6")
    answer = probe("dra", **world, claims=[allocated], pods=[gated(["other", ours])])
    equal([(e["kind"], e["body"]) for e in answer["effects"]],
          [("Pod", {"spec": {"schedulingGates": [{"name": "other"}]}})], "then our gate is lifted, and no other")
    for name, others, back in [
            ("another on the place", claim("x", device="gpu-3-mig-1g10gb-19-6", ours=False), True),
            ("another that overlaps it", claim("x", "7g.80gb", 0, "gpu-3-mig-7g80gb-0-0", ours=False), True),
            ("another that has the whole GPU", claim("x", device="gpu-3", ours=False), True),
            ("another beside it", claim("x", device="gpu-3-mig-1g10gb-19-5", ours=False), False),
            ("an older one of ours", claim("a", device="gpu-3-mig-1g10gb-19-6"), True),
            ("a newer one of ours", claim("d", device="gpu-3-mig-1g10gb-19-6"), False)]:
        answer = probe("dra", **world, claims=[allocated, others], pods=[gated([ours])])
        have = [(e["do"], e["kind"], e["name"], e["body"], e.get("subresource"), e["resourceVersion"], e["destructive"])
                for e in answer["effects"] if e["do"] != "event"]
        want = [("patch", "ResourceClaim", "c", {"status": {"allocation": None, "reservedFor": None}}, "status", "9", True)]
        equal(have == want, back, f"dra: allocated, and {name}: {'given back' if back else 'the gate is lifted'}")
        equal([e["reason"] for e in answer["effects"] if e["do"] == "event"], ["AllocationLost"] if back else [], "and told")
    equal(probe("dra", **world, claims=[allocated, claim("x", device="gpu-3-mig-1g10gb-19-6", ours=False)],
                pods=[gated([])])["effects"], [], "dra: without a gate nothing is given back")
    equal(probe("dra", **world, claims=[claim("c")], pods=[gated([])])["effects"], [], "no gate: the scheduler's business")
    leaving = claim("d", "1g.20gb", 6, device="gpu-3-mig-1g20gb-15-6", deletionTimestamp="2026-01-01T00:00:00Z")
    equal(probe("dra", **world, claims=[claim("c"), leaving], pods=[gated([ours])])["effects"], [],
          "what still lies there is waited for")


# --- mig-manager and sim ---

def retries(labels, name, notes):
    """mig-manager goes by changes of the label's value: what failed needs another name."""
    wish = [slot("n0/1", "3g.20gb", 4)]

    def failed(label, now):
        at = labels | {"nvidia.com/mig.config": label, "nvidia.com/mig.config.state": "failed"}
        return probe("mig-manager", now=now, nodes=[node(labels=at, notes=notes)], creates=wish)

    equal(failed(name, 1030)["effects"], [], "mig-manager failed a moment ago: it is left in peace")
    for label, next_label in [(name, f"{name}-again"), (f"{name}-again", name)]:
        answer = failed(label, 1060)
        equal(phases(answer)["n0/1"]["3g.20gb@4"], "failed", "it failed by either name")
        config, patch = answer["effects"]
        equal(patch["body"]["metadata"]["labels"], {"nvidia.com/mig.config": next_label, "nvidia.com/mig.config.state": None},
              "then it is told again, by the other name, and its old word is taken away")
        equal(patch["body"]["metadata"]["annotations"], notes | {"tranche.dev/mig-tried": "1060"}, "the layout is the same")
        equal(f"  {next_label}:" in config["body"]["data"]["config.yaml"].splitlines(), True, "the config is there by that name")
    equal(probe("mig-manager", now=9000, nodes=[node(labels=labels | {
        "nvidia.com/mig.config": name, "nvidia.com/mig.config.state": "failed"}, notes=notes)])["effects"], [],
        "what nobody wants is not tried")
    other = node("m0", labels | {"nvidia.com/mig.config": name, "pool": "day"}, notes)
    answer = probe("mig-manager", pool={"nodeSelector": {"pool": "night"}}, nodes=[node(labels=labels | {"pool": "night"}), other],
                   creates=[slot("n0/0", "7g.40gb", 0)])
    equal(f"  {name}:" in answer["effects"][0]["body"]["data"]["config.yaml"].splitlines(), True,
          "the configs of other pools stay in the ConfigMap")


def manager():
    labels = {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB", "nvidia.com/gpu.count": "2"}
    answer = probe("mig-manager", nodes=[node(labels=labels)], creates=[slot("n0/1", "3g.20gb", 4), slot("n0/1", "1g.5gb", 0)])
    equal([(g["uuid"], g["board"]) for g in answer["gpus"]], [("n0/0", "a100-40gb"), ("n0/1", "a100-40gb")],
          "mig-manager: GPUs by the node's labels")
    config, patch = answer["effects"]
    equal((config["kind"], config["namespace"], config["name"]),
          ("ConfigMap", "gpu-operator", "tranche-mig-parted-config"), "first the config")
    name = patch["body"]["metadata"]["labels"]["nvidia.com/mig.config"]
    body = ("    - devices: [0]\n      mig-enabled: true\n      mig-devices: {}\n"
            "    - devices: [1]\n      mig-enabled: true\n      mig-devices:\n        \"1g.5gb\": 1\n        \"3g.20gb\": 1\n")
    equal(config["body"]["data"]["config.yaml"],
          f"version: v1\nmig-configs:\n  {name}:\n{body}  {name}-again:\n{body}",
          "in mig-parted's words")
    equal((patch["kind"], patch["resourceVersion"], patch["destructive"]), ("Node", "7", True), "then the label")
    notes = patch["body"]["metadata"]["annotations"]
    for status, want in [("", "pending"), ("pending", "pending"), ("rebooting", "pending"), ("success", "ready"),
                         ("failed", "failed")]:
        more = {"nvidia.com/mig.config": name} | ({"nvidia.com/mig.config.state": status} if status else {})
        answer = probe("mig-manager", nodes=[node(labels=labels | more, notes=notes)])
        equal(phases(answer)["n0/1"], {"1g.5gb@0": want, "3g.20gb@4": want}, f"mig-manager: state {status or 'none yet'}")
    busy = labels | {"nvidia.com/mig.config": name, "nvidia.com/mig.config.state": "pending"}
    equal(probe("mig-manager", nodes=[node(labels=busy, notes=notes)], creates=[slot("n0/0", "1g.5gb", 0)])["effects"], [],
          "at work: it is not disturbed")
    retries(labels, name, notes)
    foreign = node(labels=labels | {"nvidia.com/mig.config": "all-1g.5gb"})
    equal(list(probe("mig-manager", nodes=[foreign])["conflicts"]), ["n0"], "somebody else's config is theirs")


def simulated():
    def world(rules, object_=None, **more):
        notes = {"tranche.dev/simulated-gpus": "a100-40gb:1", "tranche.dev/simulation": rules}
        return probe("sim", nodes=[node(notes=notes)], nodeStates=[object_] if object_ else [], **more)

    gpu = world("")["gpus"][0]["uuid"]
    answer = world("create 5", creates=[slot(gpu, "1g.5gb", 0)])
    equal([(e["kind"], e.get("subresource")) for e in answer["effects"]], [("NodeGpuState", None)], "sim: first the wish")
    body = answer["effects"][0]["body"]
    body["metadata"] |= {"resourceVersion": "1", "generation": 1}
    body["status"] = {"gpus": []}
    equal(world("create 5", body, creates=[slot(gpu, "1g.5gb", 0)], now=1004)["effects"], [], "sim: it takes its time")
    answer = world("create 5", body, creates=[slot(gpu, "1g.5gb", 0)], now=1005)
    status = [e["body"]["status"] for e in answer["effects"] if e.get("subresource") == "status"]
    equal([(i["slice"], i["start"], i["ready"]) for i in status[0]["gpus"][0]["instances"]], [("1g.5gb", 0, True)],
          "sim: then it is there")
    answer = world("create 5;create 1g.5gb@0 fail", body, now=2000, creates=[slot(gpu, "1g.5gb", 0)])
    equal((phases(answer)[gpu], answer["effects"]), ({"1g.5gb@0": "failed"}, []), "sim: a rule lets it fail")
    equal(world("create hang", body, now=2000, creates=[slot(gpu, "1g.5gb", 0)])["effects"], [], "sim: or hang")
    answer = world("nonsense;create;create 1 2 3;delete @x fail", creates=[slot(gpu, "1g.5gb", 0)])
    equal(len(answer["effects"]), 1, "sim: rules that cannot be read are passed over")


for test in (agent_observes, twice, agent_refuses, agent_changes, agent_binds, dra_observes, dra_changes, dra_tenants, dra_binds, dra_tends,
             manager, simulated):
    test()
checks.finish()
