#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The chart and the plain YAML on a real API server: what is installed, that the schemas refuse
what is wrong, rights, printer columns, upgrade, and that nothing is left after uninstalling."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import ApiError, Checks, Cluster, program, wait_for  # noqa: E402

ROOT = os.environ.get("TRANCHE_SOURCE_ROOT", os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
TRANCHE = os.environ.get("TRANCHE", f"{ROOT}/build/tranche")
CHART = f"{ROOT}/deploy/chart/tranche"
API = "/apis/tranche.dev/v1alpha1"
KINDS = ["gpupools", "gpuservices", "nodegpustates", "partitionplans", "perfprofiles", "transitions"]
checks = Checks()


def helm(cluster, *words):
    environment = dict(os.environ, HOME=cluster.folder, HELM_CACHE_HOME=f"{cluster.folder}/helm",
                       HELM_CONFIG_HOME=f"{cluster.folder}/helm", HELM_DATA_HOME=f"{cluster.folder}/helm")
    return subprocess.run([program("helm"), f"--kubeconfig={cluster.kubeconfig('admin')}", *words],
                          capture_output=True, text=True, timeout=600, env=environment)


# What people may write, and what the API server refuses.

TEMPLATE = {"spec": {"containers": [{"name": "serve", "image": "serve:1", "args": ["--port=8000"]}]}}
SERVICE = {"model": "bert", "rateRps": 100, "latencyMs": 50, "podTemplate": TEMPLATE}
ENTRY = {"slice": "3g.20gb", "batch": 8, "procs": 1, "throughputRps": 900.5, "latencyMsP99": 20}
PROFILE = {"model": "bert", "board": "a100-40gb", "entries": [ENTRY]}
ITEM = {"gpuUUID": "GPU-1", "board": "a100-40gb", "slice": "3g.20gb", "start": 4}
PLAN = {"pool": "default", "plan": "default-1", "items": [ITEM]}
ACTION = {"id": "a", "kind": "create_instance", "group": "create", "gpuUUID": "GPU-1", "slice": "1g.5gb", "start": 0,
          "seconds": 1}
TRANSITION = {"pool": "default", "to": "default-1", "gpus": [{"uuid": "GPU-1", "board": "a100-40gb"}],
              "services": [], "actions": [ACTION]}
STATE = {"epoch": 1, "gpus": [{"uuid": "GPU-1", "board": "a100-40gb", "instances": [{"slice": "1g", "start": 0}]}]}
SPECS = {"gpuservices": SERVICE, "perfprofiles": PROFILE, "gpupools": {}, "partitionplans": PLAN,
         "transitions": TRANSITION, "nodegpustates": STATE}

GOOD = [
    ("gpuservices", {}), ("gpuservices", {"percentile": 95}), ("gpuservices", {"percentile": "99.9"}),
    ("gpuservices", {"percentile": "mean", "spread": "node", "priority": -5, "allowedSlices": ["3g", "1g.5gb+me"]}),
    ("gpuservices", {"task": "training", "latencyMs": None}), ("gpuservices", {"gateway": "infra/main"}),
    ("perfprofiles", {}), ("perfprofiles", {"entries": [dict(ENTRY, throughputRps=0, status="oom")]}),
    ("gpupools", {}), ("gpupools", {"nodeSelector": {"a": "b"}, "actuator": "dra", "exactPlacement": True}),
    ("gpupools", {"window": {"start": "22:30", "end": "00:00"}}),
    ("gpupools", {"window": {"start": "02:00", "end": "04:00", "days": ["Mon", "Sun"]}}),
    ("partitionplans", {}), ("partitionplans", {"items": []}), ("transitions", {}), ("nodegpustates", {}),
]

# The field that is refused, by its full path; for a rule over several fields also what it says.
BAD = [
    ("gpuservices", {"model": None}, "spec.model"), ("gpuservices", {"model": ""}, "spec.model"),
    ("gpuservices", {"rateRps": None}, "spec.rateRps"), ("gpuservices", {"rateRps": 0}, "spec.rateRps"),
    ("gpuservices", {"rateRps": -1}, "spec.rateRps"), ("gpuservices", {"rateRps": "many"}, "spec.rateRps"),
    ("gpuservices", {"latencyMs": None}, "spec: Invalid value: latencyMs is missing"),
    ("gpuservices", {"latencyMs": 0}, "spec.latencyMs"), ("gpuservices", {"task": "dance"}, "spec.task"),
    ("gpuservices", {"task": "training"}, "spec: Invalid value: a training service has no latency objective"),
    ("gpuservices", {"percentile": 98}, "spec.percentile"), ("gpuservices", {"percentile": 99.9}, "spec.percentile"),
    ("gpuservices", {"percentile": "median"}, "spec.percentile"), ("gpuservices", {"spread": "rack"}, "spec.spread"),
    ("gpuservices", {"minInstances": 0}, "spec.minInstances"), ("gpuservices", {"minInstances": 1.5}, "spec.minInstances"),
    ("gpuservices", {"drainSeconds": -1}, "spec.drainSeconds"), ("gpuservices", {"port": 70000}, "spec.port"),
    ("gpuservices", {"allowedSlices": ["huge"]}, "spec.allowedSlices[0]"), ("gpuservices", {"pool": ""}, "spec.pool"),
    ("gpuservices", {"allowedSlices": ["3g", "3g"]}, "spec.allowedSlices[1]"),
    ("gpuservices", {"gateway": "main"}, "spec.gateway"), ("gpuservices", {"podTemplate": None}, "spec.podTemplate"),
    ("gpuservices", {"podTemplate": {"spec": {"containers": []}}}, "spec.podTemplate.spec.containers"),
    ("gpuservices", {"podTemplate": {"spec": {"containers": [{"image": "x"}]}}}, "spec.podTemplate.spec.containers[0].name"),
    ("perfprofiles", {"board": None}, "spec.board"), ("perfprofiles", {"entries": []}, "spec.entries"),
    ("perfprofiles", {"board": "A100!"}, "spec.board"),
    ("perfprofiles", {"entries": [dict(ENTRY, batch=0)]}, "spec.entries[0].batch"),
    ("perfprofiles", {"entries": [dict(ENTRY, status="fine")]}, "spec.entries[0].status"),
    ("perfprofiles", {"entries": [dict(ENTRY, throughputRps=0)]},
     "spec: Invalid value: an entry that is ok has a throughputRps above 0"),
    ("perfprofiles", {"entries": [ENTRY, dict(ENTRY, throughputRps=1)]}, "spec.entries[1]"),
    ("gpupools", {"actuator": "magic"}, "spec.actuator"), ("gpupools", {"derate": 0}, "spec.derate"),
    ("gpupools", {"derate": 1.2}, "spec.derate"), ("gpupools", {"headroom": 0.5}, "spec.headroom"),
    ("gpupools", {"window": {"start": "02:00"}}, "spec.window: Invalid value: a window has a start"),
    ("gpupools", {"window": {"start": "02:00", "end": "02:00"}}, "spec.window: Invalid value: a window has a start"),
    ("gpupools", {"window": {"start": "2:00", "end": "04:00"}}, "spec.window.start"),
    ("gpupools", {"window": {"start": "02:00", "end": "24:00"}}, "spec.window.end"),
    ("gpupools", {"window": {"start": "02:00", "end": "04:00", "days": ["Monday"]}}, "spec.window.days[0]"),
    ("gpupools", {"nodeSelector": {"a": 1}}, "spec.nodeSelector.a"), ("gpupools", {"spareGpus": -1}, "spec.spareGpus"),
    ("partitionplans", {"items": [dict(ITEM, start=12)]}, "spec.items[0].start"),
    ("partitionplans", {"items": [dict(ITEM, service="ranker")]}, "spec.items[0].service"),
    ("partitionplans", {"pool": None}, "spec.pool"), ("partitionplans", {"parts": 0}, "spec.parts"),
    ("transitions", {"actions": [dict(ACTION, kind="leap")]}, "spec.actions[0].kind"),
    ("transitions", {"actions": [dict(ACTION, seconds=-1)]}, "spec.actions[0].seconds"),
    ("transitions", {"to": ""}, "spec.to"),
    ("nodegpustates", {"epoch": -1}, "spec.epoch"),
    ("nodegpustates", {"gpus": [STATE["gpus"][0], STATE["gpus"][0]]}, "spec.gpus[1]"),
]


def collection(plural):
    return f"{API}/namespaces/default/{plural}" if plural == "gpuservices" else f"{API}/{plural}"


def body(plural, changes, name="sample"):
    kind = {"gpuservices": "GpuService", "perfprofiles": "PerfProfile", "gpupools": "GpuPool",
            "partitionplans": "PartitionPlan", "transitions": "Transition", "nodegpustates": "NodeGpuState"}[plural]
    spec = {key: value for key, value in dict(SPECS[plural], **changes).items() if value is not None}
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_schemas(cluster):
    for number, (plural, changes) in enumerate(GOOD):
        try:
            cluster.admin.create(collection(plural), body(plural, changes, f"good-{number}"))
            checks.ok(True, f"{plural} takes {json.dumps(changes)}")
        except ApiError as error:
            checks.ok(False, f"{plural} takes {json.dumps(changes)}", error)
    for plural, changes, told in BAD:
        status, answer = cluster.admin.request("POST", collection(plural), body(plural, changes))
        message = answer.get("message", "")
        first = message.partition(" is invalid: ")[2].removeprefix("[")
        checks.ok(status in (400, 422) and first.startswith(told if ": " in told else f"{told}: "),
                  f"{plural} refuses {json.dumps(changes)[:90]} by {told}", f"{status}: {message}")
    status, answer = cluster.admin.request("POST", collection("gpuservices"), body("gpuservices", {}, "x" * 51))
    checks.ok(status == 422 and "at most 50" in answer["message"], "a GpuService's name is bounded", answer)
    status, answer = cluster.admin.request("POST", collection("gpupools"), body("gpupools", {}, "x" * 41))
    checks.ok(status == 422 and "at most 40" in answer["message"], "a GpuPool's name is bounded", answer)


def test_defaults(cluster):
    spec = cluster.admin.create(collection("gpuservices"), body("gpuservices", {}, "defaults"))["spec"]
    have = {key: spec.get(key) for key in ("pool", "task", "percentile", "minInstances", "spread", "priority",
                                           "drainSeconds", "port")}
    checks.equal(have, {"pool": "default", "task": "inference", "percentile": 99, "minInstances": 1, "spread": "none",
                        "priority": 0, "drainSeconds": 15, "port": 8000}, "defaults of a GpuService")
    checks.equal(spec["podTemplate"], TEMPLATE, "the pod template is kept as it is")


def test_immutable(cluster):
    for plural, change in (("partitionplans", {"items": []}), ("transitions", {"to": "other"})):
        path = f"{collection(plural)}/fixed"
        cluster.admin.create(collection(plural), body(plural, {}, "fixed"))
        status, answer = cluster.admin.request("PATCH", path, {"spec": change}, "application/merge-patch+json")
        checks.ok(status == 422 and "cannot be changed" in answer["message"], f"{plural}: the spec is immutable", answer)
        cluster.admin.merge(path, {"metadata": {"labels": {"a": "b"}}})
        cluster.admin.merge(f"{path}/status", {"status": {"observedGeneration": 1}})
        checks.ok(True, f"{plural}: labels and status are not")


def test_pool_stays(cluster):
    """Another pool would begin with no pods of the service, while the first gives its up."""
    path = f"{collection('gpuservices')}/stays"
    cluster.admin.create(collection("gpuservices"), body("gpuservices", {}, "stays"))
    status, answer = cluster.admin.request("PATCH", path, {"spec": {"pool": "other"}}, "application/merge-patch+json")
    checks.ok(status == 422 and "stays in its pool" in answer["message"], "a GpuService's pool is immutable", answer)
    cluster.admin.merge(path, {"spec": {"pool": "default", "rateRps": 3}})
    checks.ok(True, "the rest of its spec is not")


def api_server_seconds(cluster):
    """CPU time that the API server has taken so far."""
    with open(f"/proc/{cluster.api.child.pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_large(cluster):
    """The largest objects that we write: the rules' cost is within the API server's budget."""
    uuid = "GPU-00000000-0000-0000-0000-%012d"
    items = [dict(ITEM, gpuUUID=uuid % index, node=f"node-{index // 8}", service="shop/ranker", batch=8, procs=1,
                  maxWaitMs=25.125, rateRps=971.25, latencyMs=83.0625) for index in range(4000)]
    for count in (1000, 4000):
        name = f"large-{count}"
        cluster.admin.ensure(collection("partitionplans"), body("partitionplans", {"items": items[:count]}, name))
        before_s = api_server_seconds(cluster)
        cluster.admin.merge(f"{collection('partitionplans')}/{name}", {"metadata": {"labels": {"a": "b"}}})
        print(f"# its update: {api_server_seconds(cluster) - before_s:.1f} s of the API server's CPU")
        checks.ok(True, f"a PartitionPlan of {count} items")
    actions = [dict(ACTION, id=f"a{index}", gpuUUID=uuid % index, service="shop/ranker", kind="start", batch=8,
                    procs=1, rateRps=971.25, after=[f"a{other}" for other in range(max(0, index - 8), index)])
               for index in range(1000)]
    cluster.admin.ensure(collection("transitions"), body("transitions", {"actions": actions}, "large"))
    states = [{"id": f"a{index}", "phase": "Done", "attempts": 1, "startedAt": "2026-03-01T12:00:00Z",
               "finishedAt": "2026-03-01T12:00:00Z"} for index in range(1000)]
    cluster.admin.merge(f"{collection('transitions')}/large/status", {"status": {"epoch": 3, "actions": states}})
    checks.ok(True, "a Transition of 1000 actions and their states")


def condition(kind, status="True"):
    return {"type": kind, "status": status, "reason": "Testing", "message": "", "lastTransitionTime": "2026-03-01T12:00:00Z"}


def test_columns(cluster):
    path = f"{collection('gpuservices')}/defaults"
    cluster.admin.merge(f"{path}/status", {"status": {"capacityRps": 120.5, "readyInstances": 2, "gpus": 1,
                                                      "conditions": [condition("Ready")]}})
    lines = cluster.kubectl("get", "gsvc", "defaults").splitlines()
    checks.equal(lines[0].split(), ["NAME", "MODEL", "RATE", "LATENCY", "AT", "CAPACITY", "INSTANCES", "GPUS", "READY",
                                    "AGE"], "columns of a GpuService")
    checks.equal(lines[1].split()[:9], ["defaults", "bert", "100", "50", "99", "120.5", "2", "1", "True"], "and its values")
    done = cluster.kubectl("wait", "gpuservice/defaults", "--for=condition=Ready", "--timeout=600s", check=False)
    checks.equal(done.returncode, 0, "kubectl wait --for=condition=Ready")
    names = cluster.kubectl("get", "tranche", "-A", "-o", "name")
    checks.ok(all(f"{kind[:-1]}.tranche.dev/" in names for kind in KINDS), "kubectl get tranche shows every kind", names)
    for short in ("gpool", "prof", "pplan", "trans", "ngs"):
        done = cluster.kubectl("get", short, "-o", "wide", check=False)
        checks.equal((done.returncode, "NAME" in done.stdout), (0, True), f"kubectl get {short}")
    checks.ok(wait_for("the fields' descriptions", lambda: "Required rate" in cluster.kubectl(
        "explain", "gpuservice.spec.rateRps", check=False).stdout), "kubectl explain knows the fields")


# Rights: those of the chart, tried as the service accounts of the chart.

def may(cluster, account, verb, resource, **more):
    return cluster.may(account, verb, resource, groups=["system:serviceaccounts"], **more)


def test_rights(cluster, namespace):
    controller = f"system:serviceaccount:{namespace}:tranche-controller"
    agent = "system:serviceaccount:tranche-agents:tranche-agent"
    cluster.wait_account(namespace, "tranche-controller")
    cluster.wait_account("tranche-agents", "tranche-agent")
    for account in (controller, agent):
        for verb, resource, more in (("get", "secrets", {}), ("list", "secrets", {}), ("create", "pods", {"subresource": "exec"}),
                                     ("delete", "nodes", {}), ("escalate", "clusterroles", {"group": "rbac.authorization.k8s.io"}),
                                     ("patch", "nodes", {}), ("get", "configmaps", {}),
                                     ("delete", "customresourcedefinitions", {"group": "apiextensions.k8s.io"}),
                                     ("create", "serviceaccounts", {"subresource": "token"})):
            checks.ok(not may(cluster, account, verb, resource, namespace="default", **more),
                      f"{account.split(':')[-1]} may not {verb} {resource} {more.get('subresource', '')}".rstrip())
    for verb, resource, more in (("create", "pods", {}), ("list", "gpuservices", {"group": "tranche.dev"}),
                                 ("delete", "partitionplans", {"group": "tranche.dev"}),
                                 ("patch", "transitions", {"group": "tranche.dev", "subresource": "status"}),
                                 ("patch", "resourceclaims", {"group": "resource.k8s.io", "subresource": "binding"}),
                                 ("create", "endpointslices", {"group": "discovery.k8s.io"}),
                                 ("patch", "httproutes", {"group": "gateway.networking.k8s.io"})):
        checks.ok(may(cluster, controller, verb, resource, namespace="default", **more), f"the controller may {verb} {resource}")
    checks.ok(not may(cluster, controller, "create", "gpuservices", group="tranche.dev", namespace="default"),
              "the controller may not create what people write")
    checks.ok(may(cluster, controller, "patch", "leases", group="coordination.k8s.io", namespace=namespace, name="tranche-controller")
              and not may(cluster, controller, "patch", "leases", group="coordination.k8s.io", namespace=namespace, name="other")
              and not may(cluster, controller, "get", "leases", group="coordination.k8s.io", namespace="kube-system", name="x"),
              "the controller may patch its own Lease and no other")
    checks.ok(not may(cluster, agent, "patch", "gpuservices", group="tranche.dev", namespace="default") and
              not may(cluster, agent, "create", "pods", namespace="default"), "the agent may not touch services or pods")


def agent_client(cluster, node):
    """As the agent's pod on a node: the API server puts the node's name into its tokens."""
    from api import Client
    account = cluster.admin.get("/api/v1/namespaces/tranche-agents/serviceaccounts/tranche-agent")
    cluster.admin.ensure("/api/v1/nodes", {"metadata": {"name": node}})
    pod = cluster.admin.create("/api/v1/namespaces/tranche-agents/pods", {
        "metadata": {"name": f"agent-{node}"}, "spec": {"nodeName": node, "serviceAccountName": "tranche-agent",
                                                        "containers": [{"name": "a", "image": "a"}]}})
    token = cluster.admin.create("/api/v1/namespaces/tranche-agents/serviceaccounts/tranche-agent/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {
            "apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}})
    assert account
    return Client(cluster.port, cluster.authority.certificate, token["status"]["token"])


def test_agent_policy(cluster):
    client = agent_client(cluster, "gpu-1")
    cluster.admin.ensure("/api/v1/nodes", {"metadata": {"name": "gpu-2"}})
    path = f"{API}/nodegpustates"

    def refused():
        status, answer = client.request("PATCH", f"{path}/gpu-2", body("nodegpustates", {}, "gpu-2"),
                                        "application/apply-patch+yaml", {"fieldManager": "tranche-agent", "force": "true"})
        return answer if status >= 400 else None

    # A new policy takes the API server a moment to learn.
    answer = wait_for("the admission policy", lambda: refused() or (cluster.admin.delete(f"{path}/gpu-2"), None)[1], every_s=0.5)
    checks.ok("may not write gpu-2" in answer["message"], "an agent may not write another node's state", answer)
    client.apply(f"{path}/gpu-1", body("nodegpustates", {"gpus": []}, "gpu-1"), "tranche-agent")
    client.merge(f"{path}/gpu-1/status", {"status": {"driverVersion": "1"}})
    checks.ok(True, "but its own, and its status")
    client.merge("/api/v1/nodes/gpu-1/status", {"status": {"capacity": {"tranche.dev/mig-1g.5gb": "2"}}})
    checks.ok(True, "and its node's extended resources")
    for node, patch in (("gpu-2", {"status": {"capacity": {"tranche.dev/mig-1g.5gb": "2"}}}),
                        ("gpu-1", {"metadata": {"labels": {"role": "mine"}}}),
                        ("gpu-1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})):
        status, answer = client.request("PATCH", f"/api/v1/nodes/{node}/status", patch, "application/strategic-merge-patch+json")
        checks.ok(status >= 400 and "agent" in answer["message"], f"but not {json.dumps(patch)} of {node}", f"{status} {answer}")
    # No kubelet is there to end it.
    cluster.admin.delete("/api/v1/namespaces/tranche-agents/pods/agent-gpu-1", grace_s=0)


def test_values():
    """values.schema.json refuses what is misspelt or of the wrong type."""
    for setting in ("controller.replica=3", "controller.replicas=0", "controller.replicas=two", "crds.install=maybe",
                    "image.pullPolicy=Sometimes", "agent.cdiFolder=relative", "image.digest=sha256:1"):
        done = subprocess.run([program("helm"), "template", "t", CHART, "--set", setting], capture_output=True, text=True)
        checks.ok(done.returncode != 0, f"helm refuses {setting}", done.stdout[:200])
    for settings in (["actuators.agent=false"], ["actuators.migManager=true", "actuators.dra=false"],
                     ["networkPolicy.enabled=true"], ["crds.install=false"], ["agent.namespace="], ["cleanup.enabled=false"]):
        words = [word for setting in settings for word in ("--set", setting)]
        done = subprocess.run([program("helm"), "template", "t", CHART, *words], capture_output=True, text=True)
        checks.ok(done.returncode == 0, f"helm renders with {', '.join(settings)}", done.stderr)
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([f"{ROOT}/tools/render_install.sh", folder], capture_output=True, text=True,
                              env=dict(os.environ, HELM=program("helm")))
        checks.ok(done.returncode == 0, "render_install.sh", done.stderr)
        for name in ("install.yaml", "cleanup.yaml"):
            with open(f"{ROOT}/deploy/{name}") as kept, open(f"{folder}/{name}") as made:
                checks.ok(kept.read() == made.read(), f"deploy/{name} is what the chart renders", "run: tools/render_install.sh")


def ours(cluster):
    """Whatever in the cluster bears our name."""
    names = []
    for kind in ("namespaces", "clusterroles", "clusterrolebindings", "validatingadmissionpolicies",
                 "validatingadmissionpolicybindings", "crd"):
        names += cluster.kubectl("get", kind, "-o", "name").split()
    for kind in ("deployments", "daemonsets", "services", "serviceaccounts", "roles", "rolebindings", "jobs", "pdb", "pods"):
        names += cluster.kubectl("get", kind, "-A", "-o", "name").split()
    return [name for name in names if "tranche" in name and "test-" not in name]


def test_plain(cluster):
    done = cluster.kubectl("apply", "--server-side", "-f", f"{ROOT}/deploy/install.yaml", check=False)
    checks.equal(done.returncode, 0, "kubectl apply --server-side -f install.yaml")
    print("\n".join(f"# {line}" for line in done.stderr.splitlines()[:10]))
    checks.ok("Warning" not in done.stderr, "without a warning", done.stderr)
    cluster.wait_served()
    again = cluster.kubectl("apply", "--server-side", "-f", f"{ROOT}/deploy/install.yaml", check=False)
    checks.equal(again.returncode, 0, "and once more")
    labels = cluster.admin.get("/api/v1/namespaces/tranche-system")["metadata"]["labels"]
    checks.equal(labels["pod-security.kubernetes.io/enforce"], "restricted", "the controller's namespace is restricted")
    pod = cluster.admin.get("/apis/apps/v1/namespaces/tranche-system/deployments/tranche-controller")["spec"]["template"]
    status, answer = cluster.admin.request("POST", "/api/v1/namespaces/tranche-system/pods?dryRun=All", {
        "metadata": {"name": "try", "labels": pod["metadata"]["labels"]}, "spec": pod["spec"]})
    checks.equal(status, 201, "restricted pod security takes the controller's pod")
    job = json.loads(cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", f"{ROOT}/deploy/cleanup.yaml"))
    status, answer = cluster.admin.request("POST", "/api/v1/namespaces/tranche-system/pods?dryRun=All", {
        "metadata": {"name": "try"}, "spec": job["spec"]["template"]["spec"]})
    checks.ok(status == 201, "and the clean-up's", answer)
    agent = cluster.admin.get("/apis/apps/v1/namespaces/tranche-agents/daemonsets/tranche-agent")["spec"]["template"]
    agent["spec"].pop("runtimeClassName", None)  # the GPU Operator's
    status, answer = cluster.admin.request("POST", "/api/v1/namespaces/tranche-agents/pods?dryRun=All", {
        "metadata": {"name": "try"}, "spec": agent["spec"]})
    checks.ok(status == 201, "and the agent's in its namespace", answer)


def as_account(cluster, namespace, account):
    """A kubeconfig of a service account."""
    token = cluster.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}})["status"]["token"]
    path = f"{cluster.folder}/token-{account}"
    with open(path, "w") as file:
        file.write(token)
    return cluster.kubeconfig(account, token_file=path, name=account)


def tranche(cluster, config, *words):
    return subprocess.run([TRANCHE, *words], capture_output=True, text=True, timeout=600,
                          env=dict(os.environ, KUBECONFIG=config, HOME=cluster.folder))


def test_check(cluster):
    config = as_account(cluster, "tranche-system", "tranche-controller")
    words = ("controller", "--check", "--json", "--namespace=tranche-system")
    done = tranche(cluster, config, *words)
    checks.ok(done.returncode == 1 and "both select node" in done.stdout,
              "controller --check: a node of two pools, those of the schemas' cases", done.stdout)
    pools = [item["metadata"]["name"] for item in cluster.admin.items(collection("gpupools"))]
    for name in pools[1:]:
        cluster.admin.delete(f"{collection('gpupools')}/{name}")
    done = tranche(cluster, config, *words)
    checks.equal(done.returncode, 0, "controller --check with exactly the chart's rights")
    print("\n".join(f"# {line}" for line in done.stderr.splitlines()[:10]))
    report = json.loads(done.stdout) if done.stdout else {}
    checks.ok(report.get("ok") is True, "its report", done.stdout)
    definitions = {entry["name"]: entry["state"] for entry in report.get("definitions", [])}
    checks.equal(definitions, {f"{kind}.tranche.dev": "current" for kind in KINDS},
                 "the definitions are those of the program")
    asked = {(right["group"], right["resource"] + ("/" + right["subresource"]).rstrip("/"), right["verb"])
             for right in report.get("rights", [])}
    granted = set()
    for role in ("/apis/rbac.authorization.k8s.io/v1/clusterroles/tranche-controller",
                 "/apis/rbac.authorization.k8s.io/v1/namespaces/tranche-system/roles/tranche-controller"):
        for rule in cluster.admin.get(role)["rules"]:
            granted |= {(group, resource, verb) for group in rule["apiGroups"] for resource in rule["resources"]
                        for verb in rule["verbs"]}
    granted -= {("apiextensions.k8s.io", "customresourcedefinitions", "get")}  # of the check itself
    asked -= {("", "nodes", "patch")}  # with actuators.migManager alone
    checks.equal((sorted(granted - asked), sorted(asked - granted)), ([], []), "the chart grants what the check asks for, and no more")
    poor = cluster.kubeconfig("nobody")
    done = tranche(cluster, poor, "controller", "--check", "--namespace=tranche-system")
    checks.ok(done.returncode == 1 and "pods" in done.stdout, "without rights it says no and which are missing", done.stdout)
    return config


def test_profiles(cluster):
    """A measurement file becomes PerfProfiles that the API server takes."""
    done = tranche(cluster, "/nowhere", "controller", "--profiles", f"{ROOT}/examples/paper/measurements.csv")
    checks.equal(done.returncode, 0, "controller --profiles")
    applied = cluster.kubectl("apply", "-f", "-", data=done.stdout, check=False)
    checks.equal((applied.returncode, applied.stdout.count(" created")), (0, done.stdout.count("\nkind: PerfProfile")),
                 "kubectl applies them all")
    print("\n".join(f"# {line}" for line in applied.stderr.splitlines()[:10]))


def test_examples(cluster):
    cluster.admin.ensure("/api/v1/namespaces", {"metadata": {"name": "shop"}})
    for name in ("pool", "services", "day-night"):
        done = cluster.kubectl("apply", "--server-side", "--dry-run=server", "-f", f"{ROOT}/examples/kubernetes/{name}.yaml", check=False)
        checks.ok(done.returncode == 0, f"examples/kubernetes/{name}.yaml", done.stderr)


def test_arguments(cluster):
    """The program knows every option that the chart gives it: it gets as far as its kubeconfig."""
    job = json.loads(cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", f"{ROOT}/deploy/cleanup.yaml"))
    for name, workload in (
            ("controller", cluster.admin.get("/apis/apps/v1/namespaces/tranche-system/deployments/tranche-controller")),
            ("agent", cluster.admin.get("/apis/apps/v1/namespaces/tranche-agents/daemonsets/tranche-agent")),
            ("clean-up", job)):
        words = [word.replace("$(NODE_NAME)", "n").replace("$(POD_IP)", "127.0.0.1").replace("/run/tranche", cluster.folder)
                 for word in workload["spec"]["template"]["spec"]["containers"][0]["args"]]
        done = tranche(cluster, "/nowhere", *words, "--kubeconfig=/nowhere")
        checks.ok(done.returncode == 4 and "/nowhere" in done.stderr, f"the program takes the {name}'s arguments",
                  f"{done.returncode}: {done.stderr}")


def test_clean_up(cluster, config):
    """No controller runs: objects keep their finalizer until the clean-up takes it off."""
    for plural in KINDS:
        cluster.admin.create(collection(plural), dict(body(plural, {}), metadata={
            "name": "held", "finalizers": ["tranche.dev/finalizer"]}))
    cluster.admin.create(collection("gpupools"), dict(body("gpupools", {}), metadata={
        "name": "theirs", "finalizers": ["tranche.dev/finalizer", "example.org/theirs"]}))
    done = tranche(cluster, config, "controller", "--clean-up", "--clean-up-seconds=1")
    checks.equal(done.returncode, 1, "clean-up: another's finalizer is left alone, and that is said")
    checks.ok("theirs" in done.stderr + done.stdout, "with the object's name", done.stderr + done.stdout)
    left = [f"{plural}/{item['metadata']['name']}" for plural in KINDS for item in cluster.admin.items(f"{API}/{plural}")]
    checks.equal(left, ["gpupools/theirs"], "everything else is gone")
    cluster.admin.merge(f"{collection('gpupools')}/theirs", {"metadata": {"finalizers": None}})
    done = tranche(cluster, config, "controller", "--clean-up", "--clean-up-seconds=1")
    checks.equal(done.returncode, 0, "clean-up once more")
    checks.equal([plural for plural in KINDS if cluster.admin.items(f"{API}/{plural}")], [], "nothing is left")


class HookPods:
    """What a kubelet does with the pods of the clean-up's Job: runs the container's arguments as the
    pod's service account, which it finds where a pod does, and says how that ended."""

    SHELL = "mount -t tmpfs none /run && mkdir -p /run/secrets/kubernetes.io && cp -r \"$0\" /run/secrets/kubernetes.io/serviceaccount && exec \"$@\""

    def __init__(self, cluster, namespace):
        self.cluster = cluster
        self.namespace = namespace
        self.ended = {}  # by pod: the process that it was
        self.closed = threading.Event()
        self.thread = threading.Thread(target=self.follow, daemon=True)
        self.thread.start()

    def path(self, rest):
        return f"/api/v1/namespaces/{self.namespace}/{rest}"

    def follow(self):
        while not self.closed.wait(0.2):
            for pod in self.cluster.admin.items(self.path("pods"), labelSelector="app.kubernetes.io/component=cleanup"):
                if pod["metadata"]["name"] not in self.ended:
                    self.run(pod)

    def account(self, pod):
        """The folder that the pod has at /var/run/secrets/kubernetes.io/serviceaccount."""
        folder = tempfile.mkdtemp(dir=self.cluster.folder)
        account = pod["spec"]["serviceAccountName"]
        answer = self.cluster.admin.create(self.path(f"serviceaccounts/{account}/token"), {
            "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"boundObjectRef": {
                "apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}}})
        shutil.copy(self.cluster.authority.certificate, f"{folder}/ca.crt")
        for name, text in (("token", answer["status"]["token"]), ("namespace", self.namespace)):
            with open(f"{folder}/{name}", "w") as file:
                file.write(text)
        return folder

    def run(self, pod):
        name, container = pod["metadata"]["name"], pod["spec"]["containers"][0]
        environment = {"PATH": os.environ["PATH"], "KUBERNETES_SERVICE_HOST": "127.0.0.1",
                       "KUBERNETES_SERVICE_PORT": str(self.cluster.port)}
        done = subprocess.run(["unshare", "--mount", "sh", "-c", self.SHELL, self.account(pod), TRANCHE, *container["args"]],
                              capture_output=True, text=True, timeout=600, env=environment)
        self.cluster.admin.merge(self.path(f"pods/{name}/status"), {"status": {
            "phase": "Failed" if done.returncode else "Succeeded", "containerStatuses": [
                {"name": container["name"], "image": container["image"], "imageID": "", "ready": False, "restartCount": 0,
                 "state": {"terminated": {"exitCode": done.returncode}}}]}})
        self.ended[name] = done

    def close(self):
        self.closed.set()
        self.thread.join()


def test_hook(cluster):
    """helm uninstall runs the clean-up as a Job before anything is deleted."""
    cluster.admin.create(collection("gpupools"), dict(body("gpupools", {}), metadata={
        "name": "held", "finalizers": ["tranche.dev/finalizer"]}))
    pods = HookPods(cluster, "blue")
    done = helm(cluster, "uninstall", "tranche", "-n", "blue")
    pods.close()
    ended = list(pods.ended.values())
    checks.ok(done.returncode == 0, "helm uninstall, with its hook", done.stderr)
    checks.equal([one.returncode for one in ended], [0], "the hook's pod ran the clean-up once, with its own account")
    print("".join(f"# {line}\n" for line in (ended[0].stdout + ended[0].stderr).splitlines()), end="")
    checks.ok(not cluster.admin.find("/apis/batch/v1/namespaces/blue/jobs/tranche-cleanup"), "its Job is gone")


def test_plain_uninstall(cluster):
    done = cluster.kubectl("delete", "-f", f"{ROOT}/deploy/install.yaml", "--wait=false", check=False)
    checks.equal(done.returncode, 0, "kubectl delete -f install.yaml")
    wait_for("deletion", lambda: not [name for name in ours(cluster) if not name.startswith("namespace/")])
    checks.ok(True, "nothing but namespaces on their way out is left")


def test_chart(cluster):
    done = helm(cluster, "lint", "--strict", CHART)
    checks.ok(done.returncode == 0, "helm lint --strict", done.stdout + done.stderr)
    settings = ["--set", "agent.namespace=blue-agents", "--set", "namespaces.create=false"]
    cluster.admin.ensure("/api/v1/namespaces", {"metadata": {"name": "blue-agents"}})
    done = helm(cluster, "install", "tranche", CHART, "-n", "blue", "--create-namespace", *settings)
    checks.ok(done.returncode == 0, "helm install", done.stderr)
    checks.ok("WARNING" not in done.stderr.upper(), "without a warning", done.stderr)
    cluster.wait_served()
    deployment = "/apis/apps/v1/namespaces/blue/deployments/tranche-controller"
    checks.equal(cluster.admin.get(deployment)["spec"]["replicas"], 2, "two replicas")
    cluster.admin.create(collection("gpupools"), body("gpupools", {}, "kept"))
    cluster.admin.merge("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpupools.tranche.dev",
                        {"metadata": {"annotations": {"tranche.dev/schema-hash": "old"}}})
    done = helm(cluster, "upgrade", "tranche", CHART, "-n", "blue", *settings, "--set", "controller.replicas=3",
                "--force-conflicts")
    checks.ok(done.returncode == 0, "helm upgrade", done.stderr)
    checks.equal(cluster.admin.get(deployment)["spec"]["replicas"], 3, "three replicas")
    note = cluster.admin.get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/gpupools.tranche.dev")
    checks.ok(note["metadata"]["annotations"]["tranche.dev/schema-hash"] != "old", "the upgrade brings the definitions along")
    done = helm(cluster, "uninstall", "tranche", "-n", "blue", "--no-hooks")
    checks.ok(done.returncode == 0, "helm uninstall", done.stderr)
    wait_for("deletion", lambda: all(name.startswith(("customresourcedefinition", "namespace/")) for name in ours(cluster)))
    checks.ok(cluster.admin.find(f"{collection('gpupools')}/kept"), "definitions and objects stay (crds.keep)")
    cluster.kubectl("delete", "crd", *[f"{kind}.tranche.dev" for kind in KINDS])
    done = helm(cluster, "install", "tranche", CHART, "-n", "blue", *settings, "--set", "crds.keep=false", "--set", "cleanup.waitSeconds=1")
    checks.ok(done.returncode == 0, "helm install again", done.stderr)
    cluster.kubectl("wait", "--for=condition=Established", "crd", "--all", "--timeout=300s")
    test_hook(cluster)
    wait_for("deletion", lambda: not ours(cluster))
    checks.ok(True, "nothing is left with crds.keep=false")


def main():
    test_values()
    with Cluster(controllers="namespace-controller,serviceaccount-controller,garbage-collector-controller,job-controller,validatingadmissionpolicy-status-controller") as cluster:
        test_plain(cluster)
        test_schemas(cluster)
        test_defaults(cluster)
        test_immutable(cluster)
        test_pool_stays(cluster)
        test_large(cluster)
        test_columns(cluster)
        test_rights(cluster, "tranche-system")
        test_agent_policy(cluster)
        config = test_check(cluster)
        test_profiles(cluster)
        test_examples(cluster)
        test_arguments(cluster)
        test_clean_up(cluster, config)
        test_plain_uninstall(cluster)
        test_chart(cluster)
    checks.finish()


if __name__ == "__main__":
    main()
