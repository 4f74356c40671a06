#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The controller and the agents with exactly the rights of deploy/install.yaml, under its
admission policy: services come, change and go, the clean-up runs beside the controller, and the
API server refuses nothing that they ask for."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from cluster import BOUND_S, Checks, Client, Cluster, Process, wait_for  # noqa: E402
from controller_world import GROUP, SOURCE, TRANCHE, World, dump  # noqa: E402

DAY = {"ranker": 400, "vision": 300, "speech": 60}
NIGHT = {"ranker": 120, "vision": 600, "speech": 60}
LEASE_S = 30  # nobody dies here: no Lease may run out on a slow machine
STATES = f"{GROUP}/nodegpustates"


def account_config(cluster, namespace, account, pod=None, proxy=None):
    """A kubeconfig of a service account; bound to a pod, the token names the pod's node."""
    spec = {"expirationSeconds": 7200}
    name = account
    if pod:
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"],
                                  "uid": pod["metadata"]["uid"]}
        name = pod["metadata"]["name"]
    answer = cluster.admin.create(f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token", {
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec})
    path = f"{cluster.folder}/token-{name}"
    with open(path, "w") as file:
        file.write(answer["status"]["token"])
    return cluster.kubeconfig(name, token_file=path, name=name, proxy=proxy)


class InstalledWorld(World):
    """As World, but controller and agents are who the chart makes them."""

    def wait_policy(self, node, config):
        """Until the admission policy keeps the agent of a node from writing for another."""
        with open(config) as file:
            path = json.load(file)["users"][0]["user"]["tokenFile"]
        with open(path) as file:
            client = Client(self.cluster.port, self.cluster.authority.certificate, file.read())
        state = {"apiVersion": "tranche.dev/v1alpha1", "kind": "NodeGpuState", "metadata": {"name": "other"},
                 "spec": {"epoch": 1, "gpus": []}}

        def is_refused():
            status, answer = client.request("POST", f"{STATES}?dryRun=All", state)
            return status >= 400 and f"an agent on node {node} may not write other" in answer["message"]
        wait_for("the admission policy", is_refused)

    def start_agent(self, node):
        folder = f"{self.cluster.folder}/agent-{node}"
        pod = self.admin.create("/api/v1/namespaces/tranche-agents/pods", {
            "metadata": {"name": f"agent-{node}"}, "spec": {
                "nodeName": node, "serviceAccountName": "tranche-agent", "containers": [{"name": "a", "image": "a"}]}})
        config = account_config(self.cluster, "tranche-agents", "tranche-agent", pod, self.proxy)
        self.wait_policy(node, config)
        environment = self.agent_environment(node)
        command = [TRANCHE, "agent", f"--node-name={node}", "--driver=sim", "--no-cdi", f"--state-dir={folder}/state",
                   "--interval=1", "--listen=127.0.0.1:0", f"--kubeconfig={config}"]
        self.agents[node] = self.cluster.add_process(f"agent-{node}", command, environment)

    def start_installed_controller(self):
        self.config = account_config(self.cluster, "tranche-system", "tranche-controller", proxy=self.proxy)
        command = [TRANCHE, "controller", f"--kubeconfig={self.config}", "--namespace=tranche-system", "--elect",
                   f"--lease-seconds={LEASE_S}", "--listen=127.0.0.1:0", "--plan-budget=2"]
        process = Process("controller-installed", command, self.cluster.folder)
        self.cluster.processes.append(process)
        self.processes["installed"] = process
        process.start()
        self.wanted.add("installed")

    def refused(self):
        """What the API server did not take: rights, the admission policy (422), a request that is
        wrong. An object that is gone, a version that is old and a busy server are not that."""
        return sorted({(method, path.split("?")[0], status) for method, path, status in list(self.proxy.requests)
                       if status and 400 <= status < 500 and status not in (404, 409, 410, 429)})


def main():
    checks = Checks()
    with Cluster(scheduler=True, controllers=True) as cluster:
        done = cluster.kubectl("apply", "--server-side", "-f", f"{SOURCE}/deploy/install.yaml", check=False)
        checks.ok(done.returncode == 0, "install.yaml is applied", done.stderr)
        cluster.wait_account("tranche-system", "tranche-controller")
        cluster.wait_account("tranche-agents", "tranche-agent")
        world = InstalledWorld(cluster, actuator="agent", nodes=4, proxied=True)
        try:
            world.start_installed_controller()
            world.demand(DAY, floor=False)
            world.settle()
            checks.ok(True, "three services on four nodes, with the chart's rights")
            world.demand(NIGHT)
            world.settle()
            checks.equal(world.floor.breaches, [], "day to night: the floor was held")
            checks.equal(world.refused(), [], "nothing that controller and agents asked for was refused")
            asked = sum(1 for _ in list(world.proxy.requests))
            checks.ok(asked > 100, f"{asked} requests were seen")
            world.watcher_sees(checks)
            world.floor.set({})
            done = subprocess.run([TRANCHE, "controller", "--clean-up", f"--kubeconfig={world.config}"],
                                  capture_output=True, text=True, timeout=2 * BOUND_S)
            checks.ok(done.returncode == 0, "the clean-up beside the controller", done.stdout + done.stderr)
            print("".join(f"# {line}\n" for line in done.stdout.splitlines()), end="")
            kinds = ("gpuservices", "gpupools", "transitions", "partitionplans", "perfprofiles")
            wait_for("none of our objects", lambda: not any(cluster.admin.items(f"{GROUP}/{kind}") for kind in kinds))
            wait_for("no pod of ours", lambda: not world.pods())
            checks.ok(True, "no object and no pod is left")
            checks.equal(world.refused(), [], "and still nothing was refused")
            checks.equal(world.end_controller("installed"), 0, "the controller ends with 0")
        except Exception:
            print(f"# refused: {world.refused()}")
            dump(world)
            for process in world.agents.values():
                print("".join(f"# {process.name}: {line}\n" for line in process.tail(6).splitlines()), end="")
            raise
    checks.finish()


if __name__ == "__main__":
    main()
