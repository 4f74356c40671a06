# SPDX-License-Identifier: Apache-2.0
"""A cluster with GPU nodes, services and controllers, for tests of `tranche controller`.

    with Cluster(scheduler=True, controllers=True) as cluster:
        world = World(cluster, actuator="agent", nodes=4, fleet="a100-40gb:1")
        world.demand({"ranker": 400, "vision": 300, "speech": 100})
        world.start_controller("a")
        world.settle()
        world.demand({...}); world.settle()      # the floor is watched all the time
        checks.equal(world.floor.breaches, [], "the floor was held")
        world.watcher_sees(checks)

When it is closed a world judges by itself: that its watcher saw changes and met nothing that it
does not know, and that no breach is left that the test has not looked at.

With the actuator "agent" each node runs `tranche agent` on a simulated driver of its own; with
"sim" the controller's own stand-in takes that part, which is faster. Pods are run by kubelet.py.
Short times: Leases of 5 s, drains of 1 s. A controller that ends is started again, as a kubelet
does.
"""
import copy
import http.client
import json
import os
import threading
import time
import traceback

from api import BOUND_S, BUSY, ApiError, wait_for
from cluster import Process

TRANCHE = os.environ.get("TRANCHE", "build/tranche")
SOURCE = os.environ.get("TRANCHE_SOURCE_ROOT", ".")
GROUP = "/apis/tranche.dev/v1alpha1"
NAMESPACE = "shop"
SELECTOR = "app.kubernetes.io/managed-by=tranche"
LEASE_S = 5

# Requests a second of one instance by compute slices; latency of a batch in ms.
MODELS = {"bert": (60, 20), "resnet": (100, 12), "whisper": (25, 40)}
SERVICES = {"ranker": "bert", "vision": "resnet", "speech": "whisper"}
SLICES = {"a100-40gb": {"1g.5gb": 1, "2g.10gb": 2, "3g.20gb": 3, "4g.20gb": 4, "7g.40gb": 7},
          "h100-80gb-sxm5": {"1g.10gb": 1, "2g.20gb": 2, "3g.40gb": 3, "4g.40gb": 4, "7g.80gb": 7}}
SPANS = {"1g": 1, "2g": 2, "3g": 4, "4g": 4, "7g": 8}  # memory slices, which no two instances share


def profile(model, board):
    rate, latency = MODELS[model]
    entries = []
    for name, slices in SLICES[board].items():
        for batch in (1, 4):
            share = slices ** 0.9 * (1 if batch == 1 else 1.5)
            entries.append({"slice": name, "batch": batch, "procs": 1, "throughputRps": round(rate * share, 3),
                            "latencyMsP99": round(batch / (rate * share) * 1000 + latency / slices, 3)})
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": "PerfProfile", "metadata": {"name": f"{model}-{board}"},
            "spec": {"model": model, "board": board, "entries": entries}}


class Floor:
    """Watches pods and EndpointSlices, and at every change whether each service has its floor: the
    rates of the pods that are listed as ready and were not seen to go. Rates are on the pods. And
    whether two pods are on one instance, or on two that overlap: each from binding until gone."""

    def __init__(self, client):
        self.client = client
        self.pods = {}  # UID -> (service, rate, ready)
        self.unready = set()
        self.listed = set()  # UIDs of the list that is being heard
        self.places = {}  # UID of a bound pod -> (name, GPU, memory slices)
        self.slices = {}  # name -> (service, [UID])
        self.floors = {}
        self.lowest = {}
        self.breaches = []
        self.doubles = []
        self.told = set()  # pairs of UIDs that are in doubles
        self.changes = 0
        self.errors = []  # what no watch may meet
        self.excused = set()  # UIDs whose loss is the test's doing: they count as if they served
        self.lock = threading.RLock()
        self.closed = threading.Event()
        self.threads = [threading.Thread(target=self.follow, args=args, daemon=True) for args in (
            ("/api/v1/pods", self.pod), ("/apis/discovery.k8s.io/v1/endpointslices", self.endpoints))]
        for thread in self.threads:
            thread.start()

    def close(self):
        self.closed.set()

    def follow(self, path, hear):
        while not self.closed.is_set():
            try:
                self.follow_once(path, hear)
            except Exception as error:
                if not self.closed.is_set() and not self.is_expected(error):
                    self.errors.append(f"{path}: {traceback.format_exc()}")
                self.closed.wait(0.2)

    @staticmethod
    def is_expected(error):
        """A server that is away, one that starts, and a version that is too old."""
        if isinstance(error, ApiError):
            return error.status in (410, *BUSY)
        return isinstance(error, (OSError, http.client.HTTPException))

    def follow_once(self, path, hear):
        listed = self.client.get(path, labelSelector=SELECTOR)
        with self.lock:
            hear("LIST", None)
            for item in listed["items"]:
                hear("ADDED", item)
            hear("LISTED", None)
            self.check()
        for event in self.client.watch(path, listed["metadata"]["resourceVersion"], 300, labelSelector=SELECTOR):
            if self.closed.is_set() or event["type"] == "ERROR":
                return
            if event["type"] != "BOOKMARK":
                with self.lock:
                    self.changes += 1
                    hear(event["type"], event["object"])
                    self.check()

    def pod(self, change, pod):
        if change == "LIST":  # it tells of all that are there
            self.listed = set()
            return
        if change == "LISTED":
            for uid in set(self.pods) - self.listed:
                self.gone(uid)
            return
        uid = pod["metadata"]["uid"]
        self.listed.add(uid)
        labels = pod["metadata"].get("labels", {})
        notes = pod["metadata"].get("annotations", {})
        ready = any(c["type"] == "Ready" and c["status"] == "True" for c in pod.get("status", {}).get("conditions", []))
        was = self.pods.get(uid)
        self.pods[uid] = (labels.get("tranche.dev/service"), float(notes.get("tranche.dev/rate-rps", 0)), ready)
        if change == "DELETED":
            self.gone(uid)
            return
        if was and was[2] and not ready:
            self.unready.add(uid)
        elif ready:
            self.unready.discard(uid)
        if pod["spec"].get("nodeName"):
            start = int(notes["tranche.dev/start"])
            self.places[uid] = (pod["metadata"]["name"], notes["tranche.dev/gpu-uuid"],
                                range(start, start + SPANS[notes["tranche.dev/slice"].split(".")[0]]))

    def gone(self, uid):
        self.unready.add(uid)
        self.places.pop(uid, None)

    def endpoints(self, change, item):
        if change == "LIST":
            self.slices = {}
        if change in ("LIST", "LISTED"):
            return
        name = item["metadata"]["name"]
        if change == "DELETED":
            self.slices.pop(name, None)
            return
        self.slices[name] = [e["targetRef"]["uid"] for e in item.get("endpoints") or []
                             if e.get("conditions", {}).get("ready") is not False and e.get("targetRef")]

    def serving(self):
        """UIDs of the pods that are listed as ready and were not seen to go."""
        with self.lock:
            return {uid for uids in self.slices.values() for uid in uids} - self.unready

    def capacity(self, without=frozenset()):
        with self.lock:
            capacity = {}
            for uid in (self.serving() | self.excused) - without:
                service, rate, _ = self.pods.get(uid, (None, 0, False))
                if service:
                    capacity[service] = capacity.get(service, 0) + rate
            return capacity

    def check(self):
        capacity = self.capacity()
        for service, floor in self.floors.items():
            have = capacity.get(service, 0)
            self.lowest[service] = min(self.lowest.get(service, have), have)
            if have < floor * (1 - 1e-9) and len(self.breaches) < 100:
                self.breaches.append(f"{time.time():.3f} {service}: {have} of {floor} requests/s")
        self.check_places()

    def check_places(self):
        by_gpu = {}
        for uid, (name, gpu, slices) in self.places.items():
            for other, name2, slices2 in by_gpu.setdefault(gpu, []):
                pair = frozenset((uid, other))
                if max(slices.start, slices2.start) < min(slices.stop, slices2.stop) and pair not in self.told:
                    self.told.add(pair)
                    self.doubles.append(f"{time.time():.3f} {name2} and {name} on {gpu}, slices {slices2} and {slices}")
            by_gpu[gpu].append((uid, name, slices))

    def set(self, floors):
        with self.lock:
            self.floors = dict(floors)

    def judge(self):
        """For the end of a world: whether what it told can be believed, and was looked at."""
        with self.lock:
            assert not self.errors, "\n".join(["a watcher met what it does not know", *self.errors[:5]])
            assert self.changes > 0, "the watcher saw no change"
            assert not self.breaches, "\n".join(["the floor was not held", *self.breaches[:10]])
            assert not self.doubles, "\n".join(["two pods on one instance", *self.doubles[:10]])


class World:
    def __init__(self, cluster, actuator="sim", nodes=4, fleet="a100-40gb:1", proxied=False, board="a100-40gb",
                 pool=None, lease_s=LEASE_S):
        self.cluster = cluster
        self.admin = cluster.admin
        self.actuator = actuator
        self.board = board
        self.fleet = fleet
        self.lease_s = lease_s
        self.proxy = cluster.proxy() if proxied else None
        self.rates = {}
        self.processes = {}
        self.agents = {}
        self.starts = 0
        self.wanted = set()  # names of controllers that are started again when they end
        self.closed = threading.Event()
        cluster.install_definitions(f"{SOURCE}/deploy/crds/*.yaml")
        for name in (NAMESPACE, "tranche-system"):
            self.admin.ensure("/api/v1/namespaces", {"metadata": {"name": name}})
        self.kubelets = cluster.kubelets()
        self.nodes = [f"gpu-{i}" for i in range(nodes)]
        for node in self.nodes:
            self.add_node(node)
        for model in MODELS:
            body = profile(model, board)
            self.admin.apply(f"{GROUP}/perfprofiles/{body['metadata']['name']}", body)
        spec = {"actuator": actuator, "replanSeconds": 0, "actionTimeoutSeconds": 120, "spareGpus": 1,
                "nodeSelector": {"test/gpus": "yes"}} | (pool or {})
        self.admin.apply(f"{GROUP}/gpupools/default", {"apiVersion": "tranche.dev/v1alpha1", "kind": "GpuPool",
                                                       "metadata": {"name": "default"}, "spec": spec})
        self.floor = Floor(cluster.client("admin", patience_s=0))
        cluster.helpers += [self.floor, self]
        self.supervisor = threading.Thread(target=self.supervise, daemon=True)
        self.supervisor.start()

    def close(self):
        self.closed.set()
        self.supervisor.join()
        self.floor.close()
        self.floor.judge()

    def supervise(self):
        while not self.closed.wait(0.05):
            for name in list(self.wanted):
                process = self.processes[name]
                if not process.running() and name in self.wanted:
                    self.starts += 1
                    try:
                        process.start()
                    except OSError:  # the program is being replaced
                        pass

    # Nodes.

    def add_node(self, node):
        self.kubelets.add(node, labels={"test/gpus": "yes"})
        self.admin.merge(f"/api/v1/nodes/{node}", {"spec": {"taints": None}})  # "not ready", that of a new one
        if self.actuator == "sim":
            self.admin.merge(f"/api/v1/nodes/{node}", {"metadata": {"annotations": {
                "tranche.dev/simulated-gpus": self.fleet, "tranche.dev/simulation": "create 0;delete 0"}}})
        else:
            self.start_agent(node)

    def agent_environment(self, node):
        folder = f"{self.cluster.folder}/agent-{node}"
        os.makedirs(folder, exist_ok=True)
        return dict(os.environ, TRANCHE_SIM_STATE=f"{folder}/machine", TRANCHE_SIM_FLEET=self.fleet,
                    TRANCHE_SIM_SEED=node, TMPDIR=folder)

    def start_agent(self, node):
        folder = f"{self.cluster.folder}/agent-{node}"
        command = [TRANCHE, "agent", f"--node-name={node}", "--driver=sim", "--no-cdi", f"--state-dir={folder}/state",
                   "--interval=1", "--listen=127.0.0.1:0", f"--kubeconfig={self.cluster.kubeconfig('admin')}"]
        environment = self.agent_environment(node)
        self.agents[node] = self.cluster.add_process(f"agent-{node}", command, environment)

    def node_is_well(self, node):
        item = self.admin.get(f"/api/v1/nodes/{node}")
        return self.condition(item, "Ready")["status"] == "True" and not item["spec"].get("taints")

    # What is asked for.

    def demand(self, rates, floor=True, **fields):
        """Changes the services' rates; a service that is left out goes. The floor of each is from
        now on the lower of what it had to have and what it shall have."""
        floors = {name: min(self.rates[name], rates[name]) for name in rates if name in self.rates}
        self.floor.set(floors if floor else {})
        for name, rate in rates.items():
            spec = {"pool": "default", "model": SERVICES[name.split("-")[0]], "rateRps": rate, "latencyMs": 200,
                    "drainSeconds": 1, "podTemplate": {"spec": {"terminationGracePeriodSeconds": 5, "containers": [
                        {"name": "server", "image": "registry.invalid/server:1"}]}}} | fields
            self.admin.apply(f"{GROUP}/namespaces/{NAMESPACE}/gpuservices/{name}", {
                "apiVersion": "tranche.dev/v1alpha1", "kind": "GpuService", "metadata": {"name": name}, "spec": spec})
        for name in set(self.rates) - set(rates):
            self.admin.delete(f"{GROUP}/namespaces/{NAMESPACE}/gpuservices/{name}")
        self.rates = dict(rates)

    # Controllers.

    def start_controller(self, name="a", elect=True, proxied=None, words=()):
        proxy = self.proxy if (self.proxy and proxied is not False) else None
        command = [TRANCHE, "controller", f"--kubeconfig={self.cluster.kubeconfig('admin', proxy=proxy)}",
                   "--namespace=tranche-system", f"--lease-seconds={self.lease_s}", "--listen=127.0.0.1:0",
                   "--plan-budget=2", *(["--elect"] if elect else []), *words]
        process = self.processes.get(name)
        if process is None:
            process = Process(f"controller-{name}", command, self.cluster.folder)
            self.cluster.processes.append(process)
            self.processes[name] = process
        process.command = command
        self.starts += 1
        process.start()
        self.wanted.add(name)
        return process

    def end_controller(self, name="a"):
        """SIGTERM. The exit status."""
        self.wanted.discard(name)
        return self.processes[name].end()

    def holder(self):
        lease = self.admin.find("/apis/coordination.k8s.io/v1/namespaces/tranche-system/leases/tranche-controller")
        return (lease or {}).get("spec", {}).get("holderIdentity", "")

    def leader(self):
        """The name of the controller that holds the Lease; None when it is one that ended."""
        holder = self.holder()
        return next((n for n, p in self.processes.items() if p.running() and f"_{p.child.pid}_" in holder), None)

    def epoch(self):
        lease = self.admin.find("/apis/coordination.k8s.io/v1/namespaces/tranche-system/leases/tranche-controller")
        return (lease or {}).get("spec", {}).get("leaseTransitions", -1)

    # What is there.

    def services(self):
        return self.admin.items(f"{GROUP}/gpuservices")

    def transitions(self):
        return self.admin.items(f"{GROUP}/transitions")

    def pods(self):
        return self.admin.items(f"/api/v1/namespaces/{NAMESPACE}/pods", labelSelector=SELECTOR)

    @staticmethod
    def condition(item, kind):
        for entry in item.get("status", {}).get("conditions", []):
            if entry["type"] == kind:
                return entry
        return {"status": "Unknown"}

    def is_true(self, item, kind):
        entry = self.condition(item, kind)
        return entry["status"] == "True" and \
            entry.get("observedGeneration", 0) >= item["metadata"].get("generation", 0)

    def unsettled(self):
        """Why the world is not as it is asked to be; "" when it is."""
        pool = self.admin.get(f"{GROUP}/gpupools/default")
        services = {s["metadata"]["name"]: s for s in self.services()}
        if set(services) != set(self.rates):
            return f"services {sorted(services)}"
        for name, item in services.items():
            if item["status"].get("requiredRps") != self.rates[name] if item.get("status") else True:
                return f"{name}: planned for {item.get('status', {}).get('requiredRps')}"
            if not self.is_true(item, "Ready"):
                return f"{name}: {self.condition(item, 'Ready')}"
        for item in self.transitions():
            done = self.condition(item, "Complete")
            if done["status"] != "True" and done.get("reason") != "Superseded":
                return f"{item['metadata']['name']}: {[(a['id'], a['phase']) for a in item.get('status', {}).get('actions', []) if a['phase'] != 'Done']}"
        if not self.is_true(pool, "Ready"):
            return f"pool: {self.condition(pool, 'Ready')}"
        capacity = self.floor.capacity()
        for name, rate in self.rates.items():
            if capacity.get(name, 0) < rate * (1 - 1e-9):
                return f"{name}: {capacity.get(name, 0)} of {rate} requests/s in the endpoints"
        return ""

    def settle(self, timeout_s=BOUND_S):
        last = [""]

        def settled():
            try:
                last[0] = self.unsettled()
            except (ApiError, OSError, KeyError) as error:
                last[0] = repr(error)
            return last[0] == ""

        try:
            wait_for("the world as it is asked to be", settled, timeout_s)
        except TimeoutError as error:
            logs = "\n".join(p.tail(12) for p in self.processes.values())
            raise TimeoutError(f"{error}: {last[0]}\n{logs}") from None
        self.floor.set(self.rates)

    def open_transition(self):
        """The Transition under way, or None."""
        for item in self.transitions():
            done = self.condition(item, "Complete")
            if done["status"] != "True" and done.get("reason") != "Superseded":
                return item
        return None

    def progress(self):
        """(actions begun or done, actions) of the Transition under way, or None."""
        item = self.open_transition()
        if not item:
            return None
        states = item.get("status", {}).get("actions", [])
        return sum(a["phase"] in ("Started", "Done") for a in states), len(item["spec"]["actions"])

    def wait_progress(self, least=1):
        """Waits until that many actions of a Transition were begun, or none is open any more.
        Whether one is open."""
        def begun():
            progress = self.progress()
            if progress is not None and progress[0] >= least:
                return "open"
            return "over" if self.unsettled() == "" else ""
        return wait_for(f"{least} actions begun", begun, every_s=0.02) == "open"

    def under_way(self, change, least=1):
        """Calls change(), which asks for something else, until a Transition is seen with that many
        actions begun: one can be over too soon. Whether it was."""
        for _ in range(10):
            change()
            if self.wait_progress(least):
                return True
            self.settle()
        return False

    def duplicates(self):
        """Pods that were on one instance at once, since this was last asked: none may."""
        with self.floor.lock:
            doubles, self.floor.doubles = self.floor.doubles, []
            return doubles

    def watcher_sees(self, checks):
        """The watcher is no stub: a pod that the test itself takes away is a breach, and so is a
        second pod on an instance (which it is only told of). Then all is made anew."""
        floor = self.floor
        checks.equal((floor.breaches, self.duplicates()), ([], []), "no breach that nobody looked at")
        with floor.lock:
            uid = next(iter(floor.serving()))
            name, gpu, _ = floor.places[uid]
            twin = copy.deepcopy(next(pod for pod in self.pods() if pod["metadata"]["uid"] == uid))
            twin["metadata"] |= {"uid": "twin", "name": f"twin-of-{name}"}
            floor.pod("ADDED", twin)
            floor.check()
            floor.pod("DELETED", twin)
        doubles = self.duplicates()
        checks.ok(len(doubles) == 1 and name in doubles[0] and gpu in doubles[0],
                  "a second pod on an instance is seen as a breach", doubles)
        floor.set(floor.capacity())
        self.admin.delete(f"/api/v1/namespaces/{NAMESPACE}/pods/{name}", grace_s=0)
        checks.ok(wait_for("a breach", lambda: list(floor.breaches)), "a pod taken away is seen as a breach")
        with floor.lock:
            floor.set({})
            floor.breaches.clear()
        self.settle()
        checks.equal((floor.breaches, self.duplicates()), ([], []), "and made anew")

    def writes(self):
        return [(m, p) for m, p, s in list(self.proxy.requests) if is_write(m, p)]


def is_write(method, path):
    return method in ("POST", "PATCH", "DELETE") and "/leases" not in path and "/events" not in path


def dump(world):
    """For a person who looks at a failure."""
    for item in world.transitions() + world.services() + world.admin.items(f"{GROUP}/gpupools"):
        print("# " + json.dumps({"kind": item["kind"], "name": item["metadata"]["name"],
                                 "status": item.get("status", {})})[:2000], flush=True)
