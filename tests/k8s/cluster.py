# SPDX-License-Identifier: Apache-2.0
"""A real Kubernetes control plane in a folder of its own, for tests.

    from cluster import Cluster, Checks, wait_for
    with Cluster(scheduler=True, controllers=True) as cluster:
        cluster.admin.create("/api/v1/namespaces", {"metadata": {"name": "shop"}})
        path = cluster.kubeconfig("admin")                  # for the program under test
        user = cluster.user("tranche", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}])
        path = cluster.kubeconfig("tranche")                # with those rights only
        cluster.api.kill(); cluster.api.start()             # SIGKILL, again on the same data
        cluster.api.stop_signal(); cluster.api.continue_signal()
        proxy = cluster.proxy()                             # proxy.py: faults between the two
        path = cluster.kubeconfig("admin", proxy=proxy)
        kubelets = cluster.kubelets()                       # kubelet.py: nodes under exact control
        kubelets.add("node-0", resources={"nvidia.com/mig-1g.10gb": "7"})
        kubelets.lose("node-0"); kubelets.find("node-0")    # its heartbeats
        cluster.kwok(1000, gpus=8)                          # many nodes, by kwok
        cluster.compact()                                   # etcd: old versions are gone

Everything listens on loopback at ports that were free, and is ended by process id when the
`with` ends, or by atexit. dra_node.py adds NVIDIA's DRA driver on simulated GPUs. The programs
are in $TRANCHE_K8S (tools/setup_k8s.sh BUILD makes BUILD/k8s); without them tests fail in CI.

All waits have bounds that only a hung test meets; no test may depend on time.
"""
import atexit
import base64
import glob
import http.client
import itertools
import json
import os
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request

from api import BOUND_S, ApiError, Client, wait_for  # noqa: F401 - for those who import this module
from kubelet import Kubelets
from proxy import Proxy

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from tap import Checks, skip_all  # noqa: E402, F401 - for those who import this module

PROGRAMS = os.environ.get("TRANCHE_K8S", "build/k8s")
START_ATTEMPTS = 5  # a port that was free can be taken by the time it is used


def program(name):
    path = f"{PROGRAMS}/{name}"
    if not os.access(path, os.X_OK):
        skip_all(f"no {path}: run tools/setup_k8s.sh on the build folder (make check-k8s does)")
    return path


def free_ports(count):
    """Below those that the kernel gives to outgoing connections: while a server is away, one of
    its clients could get the server's own port, and be connected to itself."""
    with open("/proc/sys/net/ipv4/ip_local_port_range") as file:
        lowest = int(file.read().split()[0])
    candidates = range(10000, lowest) if lowest > 11000 else range(1024, 65536)
    ports = []
    while len(ports) < count:
        port = random.SystemRandom().choice(candidates)
        with socket.socket() as one:
            try:
                one.bind(("127.0.0.1", port))
            except OSError:
                continue
        if port not in ports:
            ports.append(port)
    return ports


class Process:
    """A program with its log; ended by its process id. `command` may be a function, called at
    each start."""

    def __init__(self, name, command, folder, environment=None):
        self.name = name
        self.command = command
        self.log = f"{folder}/{name}.log"
        self.environment = environment
        self.child = None

    def start(self):
        assert not self.running(), f"{self.name} runs already"
        command = self.command() if callable(self.command) else self.command
        with open(self.log, "ab") as log:
            self.child = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                          env=self.environment, start_new_session=True)
        return self

    def running(self):
        return self.child is not None and self.child.poll() is None

    # Another thread may start it again as soon as it has ended: `child` is then another one.

    def signal(self, number):
        if self.running():
            self.child.send_signal(number)

    def kill(self):
        """SIGKILL, to the whole of its session: a wrapper's child too."""
        child = self.child
        if child is None:
            return
        try:
            os.killpg(child.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        child.wait()

    def end(self, timeout_s=BOUND_S):
        """SIGTERM, then SIGKILL. The exit status."""
        child = self.child
        self.signal(signal.SIGTERM)
        try:
            child.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
        return child.returncode

    def stop_signal(self):
        self.signal(signal.SIGSTOP)

    def continue_signal(self):
        self.signal(signal.SIGCONT)

    def tail(self, lines=25):
        try:
            with open(self.log, errors="replace") as log:
                return "".join(log.readlines()[-lines:])
        except OSError:
            return ""


class Authority:
    """A certificate authority of the folder, with what it signed."""

    def __init__(self, folder):
        self.folder = folder
        self.certificate = f"{folder}/ca.crt"
        self.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                     "-days", "30", "-subj", "/CN=test authority", "-keyout", "ca.key", "-out", "ca.crt",
                     "-addext", "keyUsage=critical,keyCertSign,cRLSign")
        self.openssl("genrsa", "-out", "sa.key", "2048")
        self.openssl("rsa", "-in", "sa.key", "-pubout", "-out", "sa.pub")

    def openssl(self, *words, data=None):
        done = subprocess.run(["openssl", *words], cwd=self.folder, capture_output=True, input=data)
        assert done.returncode == 0, done.stderr.decode()
        return done.stdout

    def sign(self, name, subject, alternatives=None):
        """The files NAME.crt and NAME.key."""
        usage = "serverAuth" if alternatives else "clientAuth"
        with open(f"{self.folder}/{name}.ext", "w") as file:
            file.write(f"extendedKeyUsage={usage}\nsubjectKeyIdentifier=hash\nauthorityKeyIdentifier=keyid\n")
            file.write(f"subjectAltName={alternatives}\n" if alternatives else "")
        self.openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
                     "-keyout", f"{name}.key", "-out", f"{name}.csr")
        self.openssl("x509", "-req", "-in", f"{name}.csr", "-CA", "ca.crt", "-CAkey", "ca.key",
                     "-CAcreateserial", "-days", "30", "-extfile", f"{name}.ext", "-out", f"{name}.crt")
        return f"{self.folder}/{name}.crt", f"{self.folder}/{name}.key"

    def service_account_token(self, account, seconds, issuer):
        """A token as the API server's own, valid for that long: it refuses to make short ones."""
        def part(value):
            return base64.urlsafe_b64encode(value).rstrip(b"=")

        now = int(time.time())
        payload = {"iss": issuer, "aud": [issuer], "iat": now - 60, "nbf": now - 60, "exp": now + seconds,
                   "sub": f"system:serviceaccount:{account['metadata']['namespace']}:{account['metadata']['name']}",
                   "kubernetes.io": {"namespace": account["metadata"]["namespace"], "serviceaccount": {
                       "name": account["metadata"]["name"], "uid": account["metadata"]["uid"]}}}
        head = part(b'{"alg":"RS256","typ":"JWT"}') + b"." + part(json.dumps(payload).encode())
        return (head + b"." + part(self.openssl("dgst", "-sha256", "-sign", "sa.key", data=head))).decode()


class Cluster:
    """etcd and kube-apiserver, and on request kube-scheduler and kube-controller-manager.

    controllers: True for all of them, or the text of --controllers. node_grace_s: how late a
    node's heartbeat may be; what is not about lost nodes must not lose one on a slow machine.
    api_flags: more flags of kube-apiserver. admin: a Client with all rights."""

    ISSUER = "https://kubernetes.default.svc"

    def __init__(self, scheduler=False, controllers=False, node_grace_s=BOUND_S, api_flags=(), keep=False):
        for name in ("etcd", "kube-apiserver"):
            program(name)
        self.folder = tempfile.mkdtemp(prefix="tranche-k8s-")
        self.keep = keep or bool(os.environ.get("TRANCHE_K8S_KEEP"))
        self.processes = []
        self.helpers = []  # with a close()
        self.users = {"admin": "admin-token"}
        atexit.register(self.stop)
        if threading.current_thread() is threading.main_thread():  # what ends a test that hangs
            signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
        self.authority = Authority(self.folder)
        self.certificate = self.authority.sign("server", "/CN=kube-apiserver", "IP:127.0.0.1,DNS:localhost")
        self.admin_certificate = self.authority.sign("admin", "/O=system:masters/CN=admin-by-certificate")
        self.api_flags = list(api_flags)
        self.controllers = controllers
        self.node_grace_s = node_grace_s
        with open(f"{self.folder}/tokens.csv", "w") as file:
            file.write('admin-token,admin,admin,"system:masters"\n')
            for name in ("tranche", "other", "nobody"):
                file.write(f"{name}-token,{name},{name}\n")
                self.users[name] = f"{name}-token"
        self.start_servers()
        self.admin = self.client("admin")
        self.scheduler = self.add_process("kube-scheduler", self.scheduler_command()) if scheduler else None
        self.manager = self.add_process("kube-controller-manager", self.manager_command()) if controllers else None
        for name in ("default", "kube-system", "kube-node-lease"):  # it makes them by and by
            wait_for(f"namespace {name}", lambda name=name: self.admin.find(f"/api/v1/namespaces/{name}"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # Servers.

    def add_process(self, name, command, environment=None):
        process = Process(name, command, self.folder, environment)
        self.processes.append(process)
        return process.start()

    def start_servers(self):
        """On free ports; should one have been taken meanwhile, on others."""
        for attempt in range(START_ATTEMPTS):
            self.etcd_port, self.etcd_peer_port, self.port = free_ports(3)
            shutil.rmtree(f"{self.folder}/etcd", ignore_errors=True)
            self.etcd = self.add_process("etcd", self.etcd_command())
            self.api = self.add_process("kube-apiserver", self.api_command())
            self.api.wait_ready = self.wait_ready
            try:
                self.wait_ready()
                return
            except ChildProcessError:
                if attempt == START_ATTEMPTS - 1:
                    raise
                self.api.kill()
                self.etcd.kill()

    def etcd_command(self):
        client, peer = (f"http://127.0.0.1:{port}" for port in (self.etcd_port, self.etcd_peer_port))
        return [program("etcd"), "--data-dir", f"{self.folder}/etcd", "--unsafe-no-fsync", "--log-level=warn",
                "--listen-client-urls", client, "--advertise-client-urls", client, "--listen-peer-urls", peer,
                "--initial-advertise-peer-urls", peer, "--initial-cluster", f"default={peer}"]

    def api_command(self):
        folder = self.folder
        return [program("kube-apiserver"), f"--etcd-servers=http://127.0.0.1:{self.etcd_port}",
                "--bind-address=127.0.0.1", "--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none",
                f"--secure-port={self.port}", f"--cert-dir={folder}/certs",
                f"--tls-cert-file={self.certificate[0]}", f"--tls-private-key-file={self.certificate[1]}",
                f"--client-ca-file={self.authority.certificate}", f"--token-auth-file={folder}/tokens.csv",
                "--service-cluster-ip-range=10.0.0.0/24", "--allow-privileged=true", "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount", f"--service-account-issuer={self.ISSUER}",
                f"--service-account-key-file={folder}/sa.pub", f"--service-account-signing-key-file={folder}/sa.key",
                "--etcd-compaction-interval=0", *self.api_flags]

    def scheduler_command(self):
        return [program("kube-scheduler"), f"--kubeconfig={self.kubeconfig('admin')}", "--leader-elect=false",
                "--secure-port=0", "--kube-api-qps=500", "--kube-api-burst=1000"]

    def manager_command(self):
        controllers = self.controllers if isinstance(self.controllers, str) else \
            "*,-bootstrap-signer-controller,-token-cleaner-controller,-ttl-controller"
        return [program("kube-controller-manager"), f"--kubeconfig={self.kubeconfig('admin')}",
                "--leader-elect=false", "--secure-port=0", f"--controllers={controllers}",
                f"--service-account-private-key-file={self.folder}/sa.key",
                f"--node-monitor-grace-period={self.node_grace_s}s", "--node-monitor-period=1s",
                f"--node-startup-grace-period={self.node_grace_s + 60}s", "--kube-api-qps=500", "--kube-api-burst=1000"]

    def wait_ready(self, timeout_s=BOUND_S):
        """Until /readyz says so. ChildProcessError when a server ended instead."""
        probe = Client(self.port, self.authority.certificate, "admin-token", patience_s=0)

        def ready():
            for process in (self.etcd, self.api):
                if not process.running():
                    raise ChildProcessError(f"{process.name} ended:\n{process.tail()}")
            try:
                return probe.request("GET", "/readyz")[0] == 200
            except (OSError, http.client.HTTPException):
                return False

        wait_for("kube-apiserver", ready, timeout_s)

    def compact(self):
        """Everything but the newest version of each key is gone from etcd."""
        self.etcd_call("/v3/kv/compaction", {"revision": self.revision(), "physical": True})

    def revision(self):
        return self.etcd_call("/v3/kv/range", {"key": base64.b64encode(b"x").decode()})["header"]["revision"]

    def etcd_call(self, path, body):
        request = urllib.request.Request(f"http://127.0.0.1:{self.etcd_port}{path}", json.dumps(body).encode(),
                                         {"Content-Type": "application/json"})
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(request, timeout=60) as answer:
            return json.load(answer)

    def stop(self):
        """A helper that raises has found something: that is told when all is ended."""
        helpers, self.helpers = self.helpers, []
        found = None
        for helper in reversed(helpers):
            try:
                helper.close()
            except Exception as error:
                found = found or error
        for process in reversed(self.processes):
            process.kill()
        self.processes = []
        if not self.keep:
            shutil.rmtree(self.folder, ignore_errors=True)
        if found:
            raise found

    # Who asks.

    def client(self, user, patience_s=BOUND_S):
        return Client(self.port, self.authority.certificate, self.users[user], patience_s=patience_s)

    def user(self, name, rules):
        """Gives one of tranche, other and nobody exactly these rights everywhere. A Client. More than
        before are in force then; fewer are by and by."""
        assert name in self.users and name != "admin", name
        path = "/apis/rbac.authorization.k8s.io/v1"
        role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole",
                "metadata": {"name": f"test-{name}"}, "rules": rules}
        self.admin.apply(f"{path}/clusterroles/test-{name}", role)
        self.admin.apply(f"{path}/clusterrolebindings/test-{name}", {
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": f"test-{name}"}, "subjects": [{"kind": "User", "name": name,
                                                                "apiGroup": "rbac.authorization.k8s.io"}],
            "roleRef": {"kind": "ClusterRole", "name": f"test-{name}", "apiGroup": "rbac.authorization.k8s.io"}})
        self.wait_rights(name, rules)
        return self.client(name)

    def may(self, user, verb, resource, group="", subresource="", namespace="", name="", groups=()):
        """Whether somebody has a right, by the same caches that decide about requests."""
        review = self.admin.create("/apis/authorization.k8s.io/v1/subjectaccessreviews", {
            "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
                "user": user, "groups": ["system:authenticated", *groups], "resourceAttributes": {
                    "verb": verb, "group": group, "resource": resource, "subresource": subresource,
                    "namespace": namespace, "name": name}}})
        return review["status"]["allowed"]

    def wait_rights(self, user, rules, namespace="", groups=()):
        """Until all of these are in force: the API server learns of roles and bindings by watches."""
        for rule in rules:
            for group, path, verb, name in itertools.product(
                    rule.get("apiGroups", []), rule.get("resources", []), rule["verbs"], rule.get("resourceNames") or [""]):
                resource, _, subresource = path.partition("/")
                wait_for(f"right of {user} to {verb} {path}", lambda: self.may(
                    user, verb, resource, group, subresource, namespace, name, groups))

    def wait_account(self, namespace, name):
        """Until a service account has all that its bindings give it."""
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        user = f"system:serviceaccount:{namespace}:{name}"
        for binding in self.admin.items(f"{rbac}/clusterrolebindings") + self.admin.items(f"{rbac}/rolebindings"):
            if not any((one["kind"], one.get("namespace"), one["name"]) == ("ServiceAccount", namespace, name)
                       for one in binding.get("subjects") or []):
                continue
            where = binding["metadata"].get("namespace", "")
            role = f"namespaces/{where}/roles" if binding["roleRef"]["kind"] == "Role" else "clusterroles"
            rules = self.admin.get(f"{rbac}/{role}/{binding['roleRef']['name']}")["rules"]
            self.wait_rights(user, rules, where, ["system:serviceaccounts"])

    def kubeconfig(self, user="admin", proxy=None, token_file=None, certificate=None, name=None):
        """The path of a kubeconfig. user: of `users`; or token_file, or certificate (two files)."""
        if token_file:
            who = {"tokenFile": token_file}
        elif certificate:
            who = {"client-certificate": certificate[0], "client-key": certificate[1]}
        else:
            who = {"token": self.users[user]}
        port = proxy.port if proxy else self.port
        path = f"{self.folder}/kubeconfig-{name or user}-{port}"
        with open(f"{path}.{threading.get_ident()}", "w") as file:  # JSON is YAML
            json.dump({"apiVersion": "v1", "kind": "Config", "current-context": "test", "contexts": [
                {"name": "test", "context": {"cluster": "test", "user": user}}],
                "clusters": [{"name": "test", "cluster": {"server": f"https://127.0.0.1:{port}",
                                                          "certificate-authority": self.authority.certificate}}],
                "users": [{"name": user, "user": who}]}, file, indent=1)
        os.rename(file.name, path)  # whole: somebody may be reading the last one
        return path

    def kubectl(self, *words, check=True, data=None):
        done = subprocess.run([program("kubectl"), f"--kubeconfig={self.kubeconfig('admin')}", *words],
                              capture_output=True, text=True, input=data, timeout=600,
                              env=dict(os.environ, HOME=self.folder))
        assert not check or done.returncode == 0, done.stderr
        return done.stdout if check else done

    # What is around them.

    def proxy(self):
        proxy = Proxy(self.port, self.authority.certificate, self.certificate)
        self.helpers.append(proxy)
        return proxy

    def kubelets(self):
        kubelets = Kubelets(self.client("admin", patience_s=600))
        self.helpers.append(kubelets)
        return kubelets

    def install_definitions(self, paths):
        """Applies files of CustomResourceDefinitions and waits until they are served."""
        for path in paths if not isinstance(paths, str) else sorted(glob.glob(paths)):
            self.kubectl("apply", "--server-side", "-f", path)
        self.wait_served()

    def wait_served(self):
        """Until all definitions are served and kubectl can find them, which is some time after they
        are Established."""
        items = self.admin.items("/apis/apiextensions.k8s.io/v1/customresourcedefinitions")
        for spec in [item["spec"] for item in items]:
            for version in [one["name"] for one in spec["versions"] if one["served"]]:
                path = f"apis/{spec['group']}/{version}"
                where = "/namespaces/default" if spec["scope"] == "Namespaced" else ""
                plural = spec["names"]["plural"]
                wait_for(f"{plural} served", lambda: self.is_served(path, where, plural))
        names = {item["metadata"]["name"] for item in items}
        wait_for("kubectl's view", lambda: names <= set(self.kubectl("api-resources", "-o", "name").split()))

    def is_served(self, path, where, plural):
        """The last of it: one that goes takes no new object, what is empty is taken for wrong."""
        if self.admin.request("GET", f"/{path}{where}/{plural}?limit=1")[0] != 200 or \
                self.admin.request("POST", f"/{path}{where}/{plural}?dryRun=All", {})[0] != 400:
            return False
        known = self.admin.find(f"/{path}") or {}
        return any(one["name"] == plural for one in known.get("resources", [])) and \
            path in self.admin.get("/openapi/v3")["paths"]

    def kwok(self, nodes, gpus=8, prefix="kwok", resources=None):
        """That many nodes and their pods, simulated by kwok: pods are Running and Ready at once,
        readiness gates or not."""
        config = self.kubeconfig("admin")
        process = self.add_process("kwok", [
            program("kwok"), f"--kubeconfig={config}", f"--config={PROGRAMS}/kwok-stages.yaml",
            "--manage-all-nodes=false",
            "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", "--node-lease-duration-seconds=40"], dict(os.environ, HOME=self.folder))
        sizes = {"cpu": "64", "memory": "512Gi", "pods": "110"} | (resources or {"nvidia.com/gpu": str(gpus)})
        for index in range(nodes):
            self.admin.ensure("/api/v1/nodes", {"metadata": {
                "name": f"{prefix}-{index}", "annotations": {"kwok.x-k8s.io/node": "fake"},
                "labels": {"kubernetes.io/hostname": f"{prefix}-{index}", "type": "kwok"}},
                "status": {"capacity": sizes, "allocatable": sizes}})
        return process
