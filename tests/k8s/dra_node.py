# SPDX-License-Identifier: Apache-2.0
"""A node with NVIDIA's DRA driver on simulated GPUs.

    install_device_classes(cluster)
    node = DraNode(cluster, kubelets, "node-0", fleet="h100-80gb-sxm5:2")
    node.driver.kill(); node.start_driver()     # the plugin alone
    node.instances()                            # what `tranche gpu list` sees of the machine
    node.slices()                               # its ResourceSlices

The driver is NVIDIA's own program (sigs.k8s.io/dra-driver-nvidia-gpu, gpu-kubelet-plugin) with
the gate DynamicMIG, in a mount namespace in which /proc and /sys show the simulated machine, on
build/sim/libnvidia-ml.so.1. A file says what it finds as the driver root: the library, an
nvidia-smi, an empty libcuda.so (only its name is read) and the GPUs' device nodes. The kubelet's
side of its sockets is kubelet-stub (tools/k8s/node/kubelet-stub).

Set by the build: TRANCHE, TRANCHE_BUILD, TRANCHE_SOURCE_ROOT.
"""
import glob
import json
import os
import stat
import subprocess

from api import BOUND_S, wait_for
from cluster import Process, program

TRANCHE = os.environ.get("TRANCHE", "build/tranche")
BUILD = os.environ.get("TRANCHE_BUILD", "build")
SOURCE = os.environ.get("TRANCHE_SOURCE_ROOT", ".")
DRIVER = "gpu.nvidia.com"


def install_device_classes(cluster):
    """Those of the driver's own chart, for MIG devices and whole GPUs."""
    for kind in ("mig", "gpu"):
        cluster.admin.apply(f"/apis/resource.k8s.io/v1/deviceclasses/{kind}.nvidia.com", {
            "apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass", "metadata": {"name": f"{kind}.nvidia.com"},
            "spec": {"selectors": [{"cel": {"expression":
                     f"device.driver == '{DRIVER}' && device.attributes['{DRIVER}'].type == '{kind}'"}}]}})


class DraNode:
    """A Node, its GPUs and the driver, registered with the node's kubelet."""

    def __init__(self, cluster, kubelets, name, fleet="h100-80gb-sxm5:1", faults=None, mig=False):
        """mig: its GPUs are in MIG mode before the driver starts."""
        self.cluster = cluster
        self.name = name
        self.folder = f"{cluster.folder}/dra-{name}"
        self.plugins = f"{self.folder}/plugins"
        self.registry = f"{self.folder}/registry"
        for folder in (self.plugins, self.registry, f"{self.folder}/cdi"):
            os.makedirs(folder)
        self.environment = dict(os.environ, TRANCHE_SIM_STATE=f"{self.folder}/machine", TRANCHE_SIM_FLEET=fleet,
                                TRANCHE_SIM_SEED=name, TRANCHE_SIM_TRACE=f"{self.folder}/nvml.trace",
                                TMPDIR=self.folder)
        if faults:
            self.environment["TRANCHE_SIM_FAULTS"] = faults
        self.lay_root()
        if mig:
            self.tranche("gpu", "enable-mig", "--state-dir", f"{self.folder}/tranche")
        kubelets.add(name, prepare=self.prepare, unprepare=self.unprepare, labels={"tranche.dev/gpus": "simulated"})
        self.driver = Process(f"dra-{name}", self.command(), cluster.folder, self.environment)
        cluster.processes.append(self.driver)
        self.start_driver()

    def lay_root(self):
        """The driver root. Device nodes need root; without them CDI files name none."""
        root = self.root = f"{self.folder}/root"
        library = f"{root}/usr/lib/x86_64-linux-gnu"
        for folder in (library, f"{root}/usr/bin", f"{root}/dev"):
            os.makedirs(folder)
        sim = os.path.realpath(f"{BUILD}/sim")
        os.symlink(f"{sim}/libnvidia-ml.so.1", f"{library}/libnvidia-ml.so.1")
        os.symlink(f"{sim}/nvidia-smi", f"{root}/usr/bin/nvidia-smi")
        version = json.loads(self.tranche("gpu", "list", "--json")).get("driver_version", "")
        for name in (f"libcuda.so.{version}", f"libnvidia-ml.so.{version}"):
            open(f"{library}/{name}", "w").close()
        if os.geteuid() == 0:
            for name, major, minor in [(f"nvidia{i}", 195, i) for i in range(16)] + [
                    ("nvidiactl", 195, 255), ("nvidia-uvm", 235, 0), ("nvidia-uvm-tools", 235, 1)]:
                try:
                    os.mknod(f"{root}/dev/{name}", stat.S_IFCHR | 0o666, os.makedev(major, minor))
                except PermissionError:
                    break

    def command(self):
        return [f"{SOURCE}/tools/simulated_machine.sh", BUILD, program("gpu-kubelet-plugin"),
                f"--node-name={self.name}", f"--kubeconfig={self.cluster.kubeconfig('admin')}",
                "--feature-gates=DynamicMIG=true", f"--cdi-root={self.folder}/cdi",
                f"--container-driver-root={self.root}", f"--nvidia-driver-root={self.root}",
                "--nvidia-cdi-hook-path=/usr/bin/nvidia-cdi-hook", "--image-name=none",
                f"--kubelet-registrar-directory-path={self.registry}",
                f"--kubelet-plugins-directory-path={self.plugins}", "--kube-api-qps=100", "--kube-api-burst=200",
                "-v=6"]

    def start_driver(self):
        """Until it is registered."""
        for path in glob.glob(f"{self.registry}/*.sock"):  # a killed driver leaves its own
            os.unlink(path)
        self.driver.start()

        def registration():
            if not self.driver.running():
                raise ChildProcessError(f"the DRA driver ended:\n{self.driver.tail(40)}")
            for path in glob.glob(f"{self.registry}/*.sock"):
                done = self.stub("register", path)
                if done.returncode == 0:
                    return json.loads(done.stdout)
            return None

        self.registered = wait_for(f"driver on {self.name}", registration)

    def stub(self, *words):
        return subprocess.run([program("kubelet-stub"), *words], capture_output=True, text=True, timeout=BOUND_S)

    def socket_call(self, verb, namespace, name, uid):
        done = self.stub(verb, self.registered["endpoint"], namespace, name, uid)
        if done.returncode:
            raise RuntimeError(f"{verb} {name}: {done.stderr.strip()}")
        return json.loads(done.stdout)

    def prepare(self, namespace, claim):
        """NodePrepareResources: the devices, with their CDI names."""
        return self.socket_call("prepare", namespace, claim["metadata"]["name"], claim["metadata"]["uid"])

    def unprepare(self, namespace, name, uid):
        return self.socket_call("unprepare", namespace, name, uid)

    def tranche(self, *words):
        done = subprocess.run([TRANCHE, *words, "--driver", "sim"], env=self.environment, capture_output=True,
                              text=True, timeout=BOUND_S)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def instances(self):
        """What `tranche gpu list` sees: for each GPU its instances as (profile, start)."""
        return [sorted((i["profile"], i["start"]) for i in gpu["instances"])
                for gpu in self.gpus()]

    def gpus(self):
        return json.loads(self.tranche("gpu", "list", "--json"))["gpus"]

    def parents(self):
        """UUIDs of the GPUs."""
        return [gpu["uuid"] for gpu in self.gpus()]

    def uuids(self):
        """Those of all MIG devices."""
        return sorted(ci["uuid"] for gpu in self.gpus() for gi in gpu["instances"] for ci in gi["compute_instances"])

    def slices(self):
        return [s for s in self.cluster.admin.items("/apis/resource.k8s.io/v1/resourceslices")
                if s["spec"]["driver"] == DRIVER and s["spec"].get("nodeName") == self.name]

    def devices(self):
        """Name → device, of all slices."""
        return {d["name"]: d for s in self.slices() for d in s["spec"].get("devices", [])}
