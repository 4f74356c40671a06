#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""List and watch of src/kube against a real API server: resume, bookmarks, 410 after a restart,
SIGKILL of the server, and a stream that is cut at every byte."""
import json
import os

from cluster import ApiError, Checks, Cluster, wait_for
from probe import Probe, kind

CONFIG_MAP = kind("", "v1", "configmaps", "ConfigMap")
PATH = "/api/v1/namespaces/default/configmaps"
GPU_SERVICE = kind("tranche.dev", "v1alpha1", "gpuservices", "GpuService")
SERVICES = "/apis/tranche.dev/v1alpha1/namespaces/default/gpuservices"
SOURCE = os.environ["TRANCHE_SOURCE_ROOT"]
BACKOFF_MS = 20
checks = Checks()
ok, equal = checks.ok, checks.equal


def body(name, **data):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"set": "watched"}},
            "data": {key: str(value) for key, value in data.items()}}


class Watched:
    """A probe that watches the config maps labelled set=watched."""

    def __init__(self, cluster, proxy=None, **options):
        self.cluster = cluster
        self.probe = Probe(cluster.kubeconfig("admin", proxy=proxy))
        self.probe.send(**({"op": "watch", "kind": CONFIG_MAP, "namespace": "default", "label_selector": "set=watched",
                            "backoff_ms": BACKOFF_MS} | options))
        self.probe.hear(lambda m: m["heard"] == "synced")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.probe.__exit__()

    def cache(self):
        return self.probe.ask("cache")

    def truth(self):
        return {f"default/{item['metadata']['name']}": item["metadata"]["resourceVersion"]
                for item in self.cluster.admin.items(PATH, labelSelector="set=watched")}

    def have(self):
        return {key: item["metadata"]["resourceVersion"] for key, item in self.cache()["objects"].items()}

    def converged(self):
        """Until the cache is fresh and equal to what is in the API server."""
        return wait_for("the cache", lambda: self.cache()["fresh"] and self.have() == self.truth())

    def put(self, name, **data):
        """The version that it has then."""
        return self.cluster.admin.apply(f"{PATH}/{name}", body(name, **data))["metadata"]["resourceVersion"]

    def hear(self, what, name):
        return self.probe.hear(lambda m: m["heard"] == what and m.get("key") == f"default/{name}")


def test_list_and_changes(cluster):
    for index in range(10):
        cluster.admin.apply(f"{PATH}/w{index}", body(f"w{index}"))
    with Watched(cluster, page=3) as watched:
        equal(sorted(watched.have()), [f"default/w{i}" for i in range(10)], "a list in pages fills the cache")
        equal(watched.cache()["pages"], 4, "in four pages")
        first = watched.put("x", step=1)
        equal(watched.hear("added", "x")["version"], first, "a new object is heard of")
        second = watched.put("x", step=2)
        equal(watched.hear("modified", "x")["version"], second, "so is its change")
        cluster.admin.merge(f"{PATH}/x", {"metadata": {"labels": {"set": "other"}}})
        watched.hear("deleted", "x")
        ok("default/x" not in watched.have(), "an object that the selector drops is gone")
        cluster.admin.delete(f"{PATH}/w9")
        watched.hear("deleted", "w9")
        ok(watched.converged(), "the cache is what the server has")
        ok(all("managedFields" not in o["metadata"] for o in watched.cache()["objects"].values()),
           "without managedFields")


def nested(levels):
    return {"inner": nested(levels - 1)} if levels else "end"


def service(name, model, **template):
    return {"apiVersion": "tranche.dev/v1alpha1", "kind": "GpuService", "metadata": {"name": name},
            "spec": {"model": model, "rateRps": 1, "latencyMs": 10,
                     "podTemplate": {"spec": {"containers": [{"name": "serve"}]} | template}}}


def test_hostile_text(cluster):
    """What anyone can write into one object, and the server hands on, must not cost the others."""
    hostile = {"text": "a\u0000b\x7f\ufffd"}
    cluster.admin.apply(f"{PATH}/hostile", body("hostile", **hostile))
    with Watched(cluster) as watched:
        ok(watched.converged() and "default/hostile" in watched.have(), "a list with U+0000 is read")
        version = watched.put("hostile-too", **hostile)
        equal(watched.hear("added", "hostile-too")["version"], version, "so is an event")
        counts = watched.cache()
        equal((counts["lists"], counts["failures"]), (1, 0), "without a failure")
    for name in ("hostile", "hostile-too"):
        cluster.admin.delete(f"{PATH}/{name}")
    cluster.install_definitions(f"{SOURCE}/deploy/chart/tranche/definitions/gpuservices.yaml")
    try:
        cluster.admin.apply(f"{SERVICES}/zero", service("zero", "a\u0000b"))
        ok(False, "a model with U+0000 is refused")
    except ApiError as error:
        equal(error.status, 422, "a model with U+0000 is refused")
    cluster.admin.apply(f"{SERVICES}/listed", service("listed", "m", deep=nested(200), huge=10**19, zero="\u0000"))
    with Watched(cluster, kind=GPU_SERVICE, label_selector="") as watched:
        ok("default/listed" in watched.have(), "a list with a huge number and deep nesting is read")
        cluster.admin.apply(f"{SERVICES}/later", service("later", "m", deep=nested(200), huge=10**19, **{"k\u0000": 1}))
        watched.hear("added", "later")
        counts = watched.cache()
        equal((counts["fresh"], counts["lists"], counts["failures"]), (True, 1, 0), "so is an event")


def test_ends_in_order(cluster):
    with Watched(cluster, least_s=1, most_s=1) as watched:
        versions = []
        for step in range(4):
            before = watched.cache()["streams"]
            versions.append(watched.put("w0", step=step))
            wait_for("another stream", lambda: watched.cache()["streams"] > before)
        for version in versions:
            watched.probe.hear(lambda m: m.get("version") == version)
        counts = watched.cache()
        equal((counts["lists"], counts["failures"], counts["streams"] >= 4), (1, 0, True),
              "streams that end in order are resumed without a list")
        heard = [version for _, version in watched.probe.changes("default/w0")]
        ok(len(heard) == len(set(heard)), "and no change is heard twice", heard)


def test_bookmarks(cluster):
    with Watched(cluster, least_s=5, most_s=5) as watched:
        ok(wait_for("a bookmark", lambda: watched.cache()["bookmarks"] > 0), "bookmarks come")
        equal(watched.cache()["lists"], 1, "and are no reason to list")


def test_cut(cluster):
    proxy = cluster.proxy()
    with Watched(cluster, proxy) as watched:
        for step in range(5):
            proxy.cut_all()
            version = watched.put("w1", cut=step)
            watched.probe.hear(lambda m: m.get("version") == version)
        equal(watched.cache()["lists"], 1, "a stream that breaks is resumed without a list")
        cuts = watched.cache()["failures"]
        proxy.refuse(True)
        proxy.cut_all()
        cluster.admin.delete(f"{PATH}/w8")
        version = watched.put("w1", cut="refused")
        wait_for("failures", lambda: watched.cache()["failures"] >= cuts + 3)
        state = watched.cache()
        ok(not state["fresh"] and state["synced"] and "default/w8" in state["objects"],
           "without a connection the cache keeps what it had, and is not fresh")
        proxy.fault("GET", "limit=", status=500, times=3)
        proxy.refuse(False)
        watched.hear("deleted", "w8")
        ok(watched.converged(), "with one it lists anew, through errors, and makes up the deletion")
        ok(watched.cache()["lists"] >= 2, "(it did)")
        equal([m for m in watched.probe.log if m["heard"] == "deleted"],
              [m for m in watched.probe.log if m.get("key") == "default/w8" and m["heard"] == "deleted"],
              "nothing else was taken for deleted")
    proxy.close()


def is_gone(cluster, version):
    """Whether the server says 410 of that version; a new one first says that it is not ready."""
    try:
        event = next(cluster.admin.watch(PATH, version, seconds=5), {})
    except ApiError as error:
        return error.status == 410
    return event.get("type") == "ERROR" and event["object"]["code"] == 410


def forget(cluster, proxy, watched, attempt):
    """The server is started anew while a client waits to resume."""
    version = cluster.admin.get(PATH)["metadata"]["resourceVersion"]
    held = proxy.fault("GET", "watch=", hold_request=True)
    proxy.cut_all()
    wait_for("the request", lambda: held.hits)
    cluster.admin.delete(f"{PATH}/w7")
    watched.put("w1", gone=attempt)
    watched.put("new", gone=attempt)
    cluster.compact()
    cluster.api.kill()
    cluster.api.start()
    cluster.wait_ready()
    wait_for("410", lambda: is_gone(cluster, version))
    held.release()


def test_gone(cluster):
    """A version that is too old. The request that waits can be on a connection that is cut too: the
    client lists then, and resumes nothing; once more in that case."""
    proxy = cluster.proxy()
    with Watched(cluster, proxy) as watched:
        for attempt in range(5):
            forget(cluster, proxy, watched, attempt)
            watched.converged()
            if watched.cache()["expired"]:
                break
        watched.hear("deleted", "w7")
        ok(watched.converged(), "410: it lists anew and makes up what it missed")
        counts = watched.cache()
        ok(counts["expired"] == 1 and counts["lists"] >= 2, "(it was 410)", counts)
    proxy.close()


def test_server_killed(cluster):
    with Watched(cluster) as watched:
        before = watched.have()
        cluster.api.kill()
        wait_for("the loss", lambda: not watched.cache()["fresh"])
        equal(watched.have(), before, "while the server is away nothing is taken for deleted")
        cluster.api.start()
        cluster.wait_ready()
        version = watched.put("w2", killed=1)
        watched.probe.hear(lambda m: m.get("version") == version)
        ok(watched.converged(), "after it is back the cache is fresh and right")
        equal([m for m in watched.probe.log if m["heard"] == "deleted"], [], "and nothing was ever deleted")


def test_every_byte(cluster):
    proxy = cluster.proxy()
    with Watched(cluster, proxy) as watched:
        length = len(json.dumps({"type": "MODIFIED", "object": cluster.admin.get(f"{PATH}/w3")},
                                separators=(",", ":"))) + 16
        versions = []
        for offset in range(length):
            rule = proxy.fault("GET", "watch=", cut_after=offset)
            proxy.cut_all()
            wait_for("the watch", lambda: rule.hits, every_s=0.002)
            version = watched.put("w3", offset=f"{offset:06}")
            versions.append(version)
            watched.probe.hear(lambda m: m.get("version") == version)
        heard = [version for _, version in watched.probe.changes("default/w3")][1:]
        equal(heard, versions, f"a stream that is cut at each of its {length} bytes: every change once, in order")
        ok(watched.converged(), "and the cache is right at the end")
        print(f"# {length} offsets, {watched.cache()['lists']} lists, {watched.cache()['streams']} streams", flush=True)
    proxy.close()


def main():
    with Cluster() as cluster:
        test_list_and_changes(cluster)
        test_hostile_text(cluster)
        test_ends_in_order(cluster)
        test_bookmarks(cluster)
        test_cut(cluster)
        test_gone(cluster)
        test_server_killed(cluster)
        test_every_byte(cluster)
    checks.finish()


if __name__ == "__main__":
    main()
