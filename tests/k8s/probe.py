# SPDX-License-Identifier: Apache-2.0
"""Steers kube_probe: our client (src/kube) as a process.

    with Probe(cluster.kubeconfig("admin")) as probe:
        answer = probe.call("get", WIDGET, namespace="default", name="a")
        probe.send(op="watch", kind=WIDGET)
        probe.hear(lambda heard: heard["heard"] == "synced")

Set by the build: KUBE_PROBE.
"""
import json
import os
import queue
import signal
import subprocess
import threading
import time

from api import BOUND_S


def kind(group, version, plural, name, namespaced=True):
    return {"group": group, "version": version, "plural": plural, "kind": name, "namespaced": namespaced}


class Probe:
    def __init__(self, kubeconfig):
        self.child = subprocess.Popen([os.environ["KUBE_PROBE"], kubeconfig], stdin=subprocess.PIPE,
                                      stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.answers = {}
        self.arrived = threading.Condition()
        self.heard = queue.Queue()
        self.log = []  # all that was heard
        self.number = 0
        threading.Thread(target=self.read, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.signal(signal.SIGCONT)
        self.child.kill()
        self.child.wait()

    def read(self):
        for line in self.child.stdout:
            message = json.loads(line)
            if "id" in message:
                with self.arrived:
                    self.answers[message["id"]] = message
                    self.arrived.notify_all()
            else:
                self.log.append(message)
                self.heard.put(message)

    def signal(self, number):
        if self.child.poll() is None:
            self.child.send_signal(number)

    def send(self, **command):
        self.number += 1
        self.child.stdin.write(json.dumps(command | {"id": self.number}) + "\n")
        self.child.stdin.flush()
        return self.number

    def answer(self, number):
        until = time.monotonic() + BOUND_S
        with self.arrived:
            while number not in self.answers:
                assert self.child.poll() is None, f"kube_probe ended: {self.child.returncode}"
                assert time.monotonic() < until, f"no answer to {number}"
                self.arrived.wait(1)
            return self.answers.pop(number)

    def ask(self, op, **command):
        return self.answer(self.send(op=op, **command))

    def call(self, verb, of, **command):
        return self.ask("call", verb=verb, kind=of, **command)

    def hear(self, wanted):
        """The next message that is wanted; those before it are passed over."""
        until = time.monotonic() + BOUND_S
        while time.monotonic() < until:
            try:
                message = self.heard.get(timeout=1)
            except queue.Empty:
                assert self.child.poll() is None, f"kube_probe ended: {self.child.returncode}"
                continue
            if wanted(message):
                return message
        raise TimeoutError(f"not heard; the last were {self.log[-5:]}")

    def changes(self, key):
        return [(m["heard"], m["version"]) for m in self.log if m.get("key") == key]

    def connections(self):
        """TCP connections of the process, by /proc."""
        folder = f"/proc/{self.child.pid}"
        own = set()
        for number in os.listdir(f"{folder}/fd"):
            try:
                own.add(os.readlink(f"{folder}/fd/{number}"))
            except OSError:
                pass
        count = 0
        for line in open(f"{folder}/net/tcp").read().splitlines()[1:]:
            words = line.split()
            count += words[3] == "01" and f"socket:[{words[9]}]" in own
        return count
