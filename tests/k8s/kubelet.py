# SPDX-License-Identifier: Apache-2.0
"""Kubelets without containers, under exact control of a test.

    kubelets.add("node-0", resources={"nvidia.com/mig-1g.10gb": "7"}, labels={...})
    kubelets.lose("node-0")          # no heartbeats, nothing is done to its pods
    kubelets.find("node-0")          # back: status and pods are made good
    kubelets.hold_start("a")         # pods whose name begins so stay Pending...
    kubelets.release_start("a")
    kubelets.hold_end("a")           # ...or Terminating
    kubelets.release_end("a")

What a real one does and these do: Node and its Lease in kube-node-lease; a bound pod becomes
Running with its own address, and Ready when its readiness gates are; claims of the pod must be
reserved for it, and are prepared first (hooks `prepare` and `unprepare` of the node, see
dra_node.py); a deleted pod ends, claims are unprepared, and it is removed with grace 0.
A preparation that fails is tried again, as the kubelet does.
"""
import datetime
import threading
import time

HEARTBEAT_S = 1.5
RETRY_S = 0.5


def now():
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def condition(kind, status, reason=""):
    return {"type": kind, "status": status, "reason": reason, "lastTransitionTime": now()[:19] + "Z"}


class Node:
    def __init__(self, name, prepare, unprepare):
        self.name = name
        self.prepare = prepare  # (namespace, claim object) -> None; raises when it fails
        self.unprepare = unprepare  # (namespace, claim name, claim UID) -> None
        self.lost = False
        self.prepared = {}  # pod UID -> [(namespace, claim name, claim UID)]


class Kubelets:
    """One thread follows all pods, one sends all heartbeats, and each pod that something is to be
    done about has one of its own, so that a slow driver holds up nobody."""

    def __init__(self, client):
        self.client = client
        self.nodes = {}
        self.pods = {}  # UID -> the newest object
        self.busy = set()  # UIDs at work
        self.again = set()  # UIDs that changed meanwhile
        self.held_start = set()
        self.held_end = set()
        self.addresses = {}
        self.errors = []  # what went wrong in the last tries, for a test's message
        self.lock = threading.RLock()
        self.closed = threading.Event()
        self.threads = [threading.Thread(target=loop, daemon=True)
                        for loop in (self.heartbeats, self.follow, self.look_again)]
        for thread in self.threads:
            thread.start()

    # For tests.

    def add(self, name, resources=None, labels=None, prepare=None, unprepare=None):
        sizes = {"cpu": "64", "memory": "512Gi", "pods": "110"} | (resources or {})
        self.client.ensure("/api/v1/nodes", {"metadata": {
            "name": name, "labels": {"kubernetes.io/hostname": name, "kubernetes.io/os": "linux"} | (labels or {})}})
        self.set_resources(name, sizes)
        with self.lock:
            self.nodes[name] = Node(name, prepare, unprepare)
        self.beat(self.nodes[name])

    def set_resources(self, name, sizes):
        """Extended resources that are not named stay."""
        self.client.strategic(f"/api/v1/nodes/{name}/status", {"status": {"capacity": sizes, "allocatable": sizes}})

    def lose(self, name):
        self.nodes[name].lost = True

    def find(self, name):
        self.nodes[name].lost = False
        self.beat(self.nodes[name])
        self.look_at_all()

    def hold_start(self, prefix):
        self.held_start.add(prefix)

    def release_start(self, prefix):
        self.held_start.discard(prefix)
        self.look_at_all()

    def hold_end(self, prefix):
        self.held_end.add(prefix)

    def release_end(self, prefix):
        self.held_end.discard(prefix)
        self.look_at_all()

    def close(self):
        self.closed.set()

    # Heartbeats.

    def beat(self, node):
        path = f"/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/{node.name}"
        self.client.apply(path, {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
                                 "metadata": {"name": node.name}, "spec": {
                                     "holderIdentity": node.name, "leaseDurationSeconds": 8,
                                     "renewTime": now()}}, manager="kubelet")
        have = self.client.find(f"/api/v1/nodes/{node.name}") or {}
        ready = [c["status"] for c in have.get("status", {}).get("conditions", []) if c["type"] == "Ready"]
        if ready != ["True"]:
            self.client.strategic(f"/api/v1/nodes/{node.name}/status", {"status": {"conditions": [
                condition("Ready", "True", "KubeletReady")
                | {"lastHeartbeatTime": now()[:19] + "Z", "message": "simulated"}]}})

    def heartbeats(self):
        while not self.closed.wait(HEARTBEAT_S):
            for node in list(self.nodes.values()):
                if node.lost:
                    continue
                try:
                    self.beat(node)
                except Exception as error:  # whatever it was: the next heartbeat tries again
                    self.note(f"{node.name}: {error}")

    # Pods.

    def note(self, text):
        self.errors = self.errors[-50:] + [text]

    def follow(self):
        while not self.closed.is_set():
            try:
                listed = self.client.get("/api/v1/pods")
                with self.lock:
                    self.pods = {pod["metadata"]["uid"]: pod for pod in listed["items"]}
                self.look_at_all()
                for event in self.client.watch("/api/v1/pods", listed["metadata"]["resourceVersion"], 300):
                    if self.closed.is_set():
                        return
                    if event["type"] == "ERROR":
                        break
                    if event["type"] != "BOOKMARK":
                        self.heard(event)
            except Exception as error:
                self.note(f"pods: {error}")
                self.closed.wait(RETRY_S)

    def heard(self, event):
        pod = event["object"]
        uid = pod["metadata"]["uid"]
        with self.lock:
            if event["type"] == "DELETED":
                self.pods.pop(uid, None)
            else:
                self.pods[uid] = pod
        if event["type"] == "DELETED":
            self.gone(pod)  # removed by force: the kubelet still cleans up
        else:
            self.look(uid)

    def gone(self, pod):
        node = self.nodes.get(pod["spec"].get("nodeName"))
        if node and node.prepared.get(pod["metadata"]["uid"]):
            threading.Thread(target=self.unprepare_all, args=(node, pod["metadata"]["uid"]), daemon=True).start()

    def look_at_all(self):
        for uid in list(self.pods):
            self.look(uid)

    def look_again(self):
        """What failed is tried anew, also when nothing tells of a change."""
        while not self.closed.wait(RETRY_S):
            self.look_at_all()

    def look(self, uid):
        with self.lock:
            pod = self.pods.get(uid)
            node = self.nodes.get(pod["spec"].get("nodeName")) if pod else None
            if not node or node.lost or not self.wants(pod):
                return
            if uid in self.busy:
                self.again.add(uid)
                return
            self.busy.add(uid)
        threading.Thread(target=self.work, args=(node, uid), daemon=True).start()

    def held(self, pod, prefixes):
        return any(pod["metadata"]["name"].startswith(prefix) for prefix in prefixes)

    def wants(self, pod):
        """Whether something is to be done about the pod now."""
        if pod["metadata"].get("deletionTimestamp"):
            return not self.held(pod, self.held_end)
        phase = pod.get("status", {}).get("phase", "Pending")
        if phase == "Pending":
            return not self.held(pod, self.held_start)
        return phase == "Running" and self.ready_of(pod) != self.ready_wanted(pod)

    def work(self, node, uid):
        try:
            pod = self.pods.get(uid)
            if pod is None or node.lost:
                return
            if pod["metadata"].get("deletionTimestamp"):
                self.finish(node, pod)
            elif pod.get("status", {}).get("phase", "Pending") == "Pending":
                self.begin(node, pod)
            else:
                self.set_ready(pod)
        except Exception as error:  # whatever it was: the next look tries again, the test hears of it
            self.note(f"{node.name}: {error}")
        finally:
            with self.lock:
                self.busy.discard(uid)
                again = uid in self.again
                self.again.discard(uid)
            if again:
                self.look(uid)

    def path_of(self, pod):
        return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"

    def claims_of(self, pod):
        """Names of the pod's ResourceClaims; None while some have none yet."""
        names = {s["name"]: s.get("resourceClaimName") for s in pod.get("status", {}).get("resourceClaimStatuses", [])}
        claims = []
        for entry in pod["spec"].get("resourceClaims", []):
            name = entry.get("resourceClaimName") or names.get(entry["name"])
            if not name:
                return None
            claims.append(name)
        return claims

    def begin(self, node, pod):
        claims = self.claims_of(pod)
        if claims is None:
            return
        namespace = pod["metadata"]["namespace"]
        for name in claims:
            claim = self.client.get(f"/apis/resource.k8s.io/v1/namespaces/{namespace}/resourceclaims/{name}")
            reserved = [r.get("uid") for r in claim.get("status", {}).get("reservedFor", [])]
            if pod["metadata"]["uid"] not in reserved:
                raise RuntimeError(f"{pod['metadata']['name']}: claim {name} is not reserved for it")
            if node.prepare:
                entry = (namespace, name, claim["metadata"]["uid"])
                held = node.prepared.setdefault(pod["metadata"]["uid"], [])
                if entry not in held:
                    held.append(entry)  # before: half a preparation is undone too
                node.prepare(namespace, claim)
        self.patch_status(pod, {"phase": "Running", "podIP": self.address(pod), "startTime": now()[:19] + "Z",
                                "podIPs": [{"ip": self.address(pod)}], "containerStatuses": [
                                    {"name": c["name"], "image": c["image"], "imageID": "", "ready": True,
                                     "restartCount": 0, "started": True,
                                     "state": {"running": {"startedAt": now()[:19] + "Z"}}}
                                    for c in pod["spec"]["containers"]],
                                "conditions": [condition("Initialized", "True"), condition("ContainersReady", "True"),
                                               condition("Ready", self.ready_wanted(pod))]})

    def patch_status(self, pod, status):
        self.client.strategic(self.path_of(pod) + "/status",
                              {"metadata": {"uid": pod["metadata"]["uid"]}, "status": status})

    def ready_of(self, pod):
        return next((c["status"] for c in pod.get("status", {}).get("conditions", []) if c["type"] == "Ready"), None)

    def ready_wanted(self, pod):
        have = {c["type"]: c["status"] for c in pod.get("status", {}).get("conditions", [])}
        gates = [gate["conditionType"] for gate in pod["spec"].get("readinessGates", [])]
        return "True" if all(have.get(gate) == "True" for gate in gates) else "False"

    def set_ready(self, pod):
        self.patch_status(pod, {"conditions": [condition("Ready", self.ready_wanted(pod))]})

    def address(self, pod):
        with self.lock:
            number = self.addresses.setdefault(pod["metadata"]["uid"], len(self.addresses) + 1)
        return f"10.244.{number // 250}.{number % 250 + 1}"

    def unprepare_all(self, node, uid):
        while not self.closed.is_set():
            try:
                for entry in node.prepared.get(uid, []):
                    if node.unprepare:
                        node.unprepare(*entry)
                node.prepared.pop(uid, None)
                return
            except Exception as error:
                self.note(f"{node.name}: {error}")
                time.sleep(RETRY_S)

    def finish(self, node, pod):
        self.unprepare_all(node, pod["metadata"]["uid"])
        self.client.delete(self.path_of(pod), grace_s=0, uid=pod["metadata"]["uid"])
