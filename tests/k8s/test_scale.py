#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Many nodes and pods by kwok, and how src/kube follows them: the ground for a controller's
evidence at scale. Figures are printed, not judged."""
import time

from cluster import Checks, Cluster, wait_for
from probe import Probe, kind

NODES = 300
PODS = 600
NODE = kind("", "v1", "nodes", "Node", False)
POD = kind("", "v1", "pods", "Pod")
checks = Checks()
ok, equal = checks.ok, checks.equal


def memory_mib(pid):
    for line in open(f"/proc/{pid}/status"):
        if line.startswith("VmRSS"):
            return int(line.split()[1]) // 1024
    return 0


def ready(item):
    return any(c["type"] == "Ready" and c["status"] == "True" for c in item["status"].get("conditions", []))


def main():
    with Cluster() as cluster, Probe(cluster.kubeconfig("admin")) as nodes, Probe(cluster.kubeconfig("admin")) as pods:
        kwok = cluster.kwok(NODES, gpus=8)
        nodes.send(op="watch", kind=NODE, backoff_ms=20)
        nodes.hear(lambda m: m["heard"] == "synced")
        equal(len(nodes.ask("cache")["objects"]), NODES, f"{NODES} nodes are in the cache")
        wait_for("nodes", lambda: sum(map(ready, cluster.admin.items("/api/v1/nodes"))) == NODES, every_s=1)
        ok(True, "kwok makes them Ready")
        for index in range(PODS):
            cluster.admin.create("/api/v1/namespaces/default/pods", {"metadata": {"name": f"p{index}"}, "spec": {
                "nodeName": f"kwok-{index % NODES}", "containers": [{"name": "c", "image": "none"}]}})
        wait_for("pods", lambda: sum(map(ready, cluster.admin.items("/api/v1/pods"))) == PODS, every_s=1)
        ok(True, f"{PODS} pods are Running and Ready")
        started = time.monotonic()
        pods.send(op="watch", kind=POD, backoff_ms=20)
        pods.hear(lambda m: m["heard"] == "synced")
        took_ms = (time.monotonic() - started) * 1000
        state = pods.ask("cache")
        equal((len(state["objects"]), state["pages"]), (PODS, 2), "a list of them comes in pages")
        cluster.admin.call("DELETE", "/api/v1/namespaces/default/pods")
        wait_for("an empty cache", lambda: not pods.ask("cache")["objects"], every_s=1)
        equal(pods.ask("cache")["lists"], 1, "their end is followed without another list")
        print(f"# list of {PODS} pods: {took_ms:.0f} ms; resident MiB: client {memory_mib(pods.child.pid)}, "
              f"kube-apiserver {memory_mib(cluster.api.child.pid)}, etcd {memory_mib(cluster.etcd.child.pid)}, "
              f"kwok {memory_mib(kwok.child.pid)}", flush=True)
    checks.finish()


if __name__ == "__main__":
    main()
