#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Leader election of src/kube with processes against a real API server: SIGSTOP past the Lease's
end and SIGCONT, SIGKILL, release, a server that is away. Durations are client-go's defaults."""
import signal

from cluster import Checks, Cluster, wait_for
from probe import Probe, kind

CONFIG_MAP = kind("", "v1", "configmaps", "ConfigMap")
LEASE = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/tranche"
FENCE = "/api/v1/namespaces/default/configmaps/fence"
checks = Checks()
ok, equal = checks.ok, checks.equal


class Candidate:
    def __init__(self, cluster, name):
        self.cluster = cluster
        self.name = name
        self.probe = Probe(cluster.kubeconfig("admin"))
        self.probe.send(op="lease", namespace="kube-system", name="tranche", identity=name)

    def leader(self):
        return self.probe.ask("leader")

    def wait_started(self):
        return self.probe.hear(lambda m: m["heard"] == "started")["epoch"]

    def wait_stopped(self):
        self.probe.hear(lambda m: m["heard"] == "stopped")

    def effect(self, version, epoch):
        """One that is tied to what was seen before. HTTP's status."""
        return self.probe.call("merge", CONFIG_MAP, namespace="default", name="fence", body={
            "metadata": {"resourceVersion": version}, "data": {"by": self.name, "epoch": str(epoch)}})["status"]


def version_of(cluster):
    return cluster.admin.get(FENCE)["metadata"]["resourceVersion"]


def main():
    with Cluster() as cluster:
        cluster.admin.create("/api/v1/namespaces/default/configmaps", {"metadata": {"name": "fence"}})
        a = Candidate(cluster, "a")
        first = a.wait_started()
        equal(first, 0, "the first leader has epoch 0")
        b = Candidate(cluster, "b")
        wait_for("b's view", lambda: b.leader()["holder"] == "a")
        equal(b.leader()["holds"], False, "the second one waits")
        equal(a.effect(version_of(cluster), first), 200, "the leader acts")

        seen = version_of(cluster)  # what a has in its hands when it is stopped
        a.probe.signal(signal.SIGSTOP)
        second = b.wait_started()
        ok(second > first, "a leader that is stopped past its Lease's end is followed, with a higher epoch")
        equal(b.effect(version_of(cluster), second), 200, "the new leader acts")
        question = a.probe.send(op="leader")
        a.probe.signal(signal.SIGCONT)
        equal(a.probe.answer(question)["holds"], False, "the first thing the old one knows is that it leads no more")
        a.wait_stopped()
        equal(a.effect(seen, first), 409, "what it had in its hands is refused")
        equal(cluster.admin.get(FENCE)["data"], {"by": "b", "epoch": str(second)}, "there was exactly one effect")
        equal((b.leader()["holds"], a.leader()["holds"]), (True, False), "there is one leader")

        equal(b.probe.ask("release")["error"], "E_NONE", "a leader gives the Lease up")
        third = a.wait_started()
        ok(third > second, "and the other takes it at once, with a higher one")
        lease = cluster.admin.get(LEASE)["spec"]
        equal((lease["holderIdentity"], lease["leaseTransitions"], lease["leaseDurationSeconds"]), ("a", third, 15),
              "the Lease says so")

        c = Candidate(cluster, "c")
        wait_for("c's view", lambda: c.leader()["holder"] == "a")
        a.probe.child.kill()
        fourth = c.wait_started()
        ok(fourth > third, "a leader that was killed is followed when its Lease has run out")

        cluster.api.kill()
        c.wait_stopped()
        equal(c.leader()["holds"], False, "a leader that cannot renew stops by itself")
        cluster.api.start()
        cluster.wait_ready()
        fifth = c.wait_started()
        ok(fifth > fourth, f"when the server is back it leads with a new epoch: {fifth}")
        for candidate in (a, b, c):
            candidate.probe.__exit__()
    checks.finish()


if __name__ == "__main__":
    main()
