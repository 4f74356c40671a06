#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What may break under a running plan, and the state it ends in: a server that crashes,
hangs or starts slowly, a keeper or HAProxy that dies, a journal that cannot be written, a port
that is taken, a model that cannot be loaded, wrong plans."""
import atexit
import json
import os
import signal
import socket
import subprocess
import time

from live import TRANCHE, Checks, Machine

checks = Checks()
machine = Machine(gpus=3, planned=1)
found = machine.layouts()
rates = {"alpha": 30, "beta": 10}
plan = machine.plan("day", rates)
other = machine.plan("night", {"alpha": 10, "beta": 30})


def wait_for(test, seconds=60):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        status = machine.status()
        if status and test(status):
            return status
        time.sleep(0.1)
    return None


def instances(status):
    return [i for gpu in status["gpus"] for i in gpu["instances"]]


def all_serve(status):
    return status["phase"] == "serving" and all(i["state"] == "serving" for i in instances(status))


def said(status, text):
    return status is not None and any(text in event["text"] for event in status["events"])


def keeper_of(pid):
    """The parent."""
    return int(open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[1])


def comes_back(name, before, text, seconds=120):
    """Everything serves again, with another server, and an event says why."""
    status = wait_for(lambda s: all_serve(s) and said(s, text) and before not in [i["pid"] for i in instances(s)], seconds)
    checks.ok(status is not None, name, json.dumps(machine.status(), indent=1))


# ---- a start that fails leaves nothing ------------------------------------------------
with socket.socket() as taken:
    taken.bind(("127.0.0.1", machine.port))
    taken.listen()
    done = machine.up(plan, rates)
checks.ok(done.returncode == 4 and "bind" in done.stderr, "a port that is taken: exit 4, HAProxy's words", done.stderr)
left = machine.leftovers()
checks.ok(machine.layouts() == found and not left, "… and nothing is left", f"{left} {machine.layouts()}")
done = machine.run("up", plan, "--port", str(machine.port), "--models", machine.folder)
checks.ok(done.returncode == 4 and "alpha.onnx" in done.stderr, "a model that is not there: exit 4, its path", done.stderr)
done = machine.run("up", f"{machine.folder}/services-30-10.yaml")
checks.ok(done.returncode == 2 and "-m" in done.stderr, "services without measurements: exit 2", done.stderr)
done = machine.run("status")
checks.ok(done.returncode == 4 and "tranche up" in done.stderr, "status of nothing: exit 4", done.stderr)
done = machine.down()
checks.ok(done.returncode == 4, "down of nothing: exit 4", done.stderr)

# ---- up -------------------------------------------------------------------------------
done = machine.up(plan, rates)
checks.ok(done.returncode == 0, "up", done.stderr)
done = machine.up(plan, rates)
checks.ok(done.returncode == 4 and "already" in done.stderr, "up twice: exit 4", done.stderr)
mode = os.stat(machine.state).st_mode & 0o777, os.stat(f"{machine.state}/control.sock").st_mode & 0o777
checks.ok(mode == (0o700, 0o600), "state folder and control socket are ours alone", mode)

# ---- servers --------------------------------------------------------------------------
load = machine.load(600, {"alpha": 8, "beta": 4})
atexit.register(load.kill)  # not to outlive a failure: it holds our output open
victim = instances(machine.status())[0]["pid"]
os.kill(victim, signal.SIGKILL)
comes_back("a server that crashes is started again", victim, "the server died")
victim = instances(machine.status())[0]["pid"]
if "tranche" not in open(f"/proc/{victim}/cgroup").read():
    os.kill(keeper_of(victim), signal.SIGSTOP)  # without control groups it paces: its next SIGCONT would end the hang
os.kill(victim, signal.SIGSTOP)
comes_back("a server that hangs is killed and started again", victim, "does not answer")
victim = instances(machine.status())[0]
os.kill(keeper_of(victim["pid"]), signal.SIGKILL)
comes_back("a keeper that dies takes its server along, and both come again", victim["pid"], "the server died")

# ---- HAProxy --------------------------------------------------------------------------
before = machine.status()
os.kill(before["router_pid"], signal.SIGKILL)
status = wait_for(lambda s: all_serve(s) and s["router_pid"] != before["router_pid"])
checks.ok(said(status, "HAProxy has ended"), "HAProxy that dies is started again, and said", status)
same = status and sorted(i["pid"] for i in instances(status)) == sorted(i["pid"] for i in instances(before))
checks.ok(same, "… with the same servers", status)
counted = status and all(s["requests"] >= b["requests"] for s, b in zip(status["services"], before["services"]))
checks.ok(counted, "… and no request is forgotten", status)

# ---- a journal that cannot be written -------------------------------------------------
def hung_starts(status, service):
    """Servers of the service that have not come up: their model is a pipe."""
    return [i["pid"] for i in instances(status) if i["service"] == service and i["state"] == "starting" and i["pid"]]


def release(pipe, service):
    """The model becomes a real one; whoever hangs in the pipe is started again."""
    os.unlink(pipe)
    os.symlink(f"{machine.folder}/small.onnx", pipe)
    for pid in hung_starts(machine.status(), service):
        os.kill(pid, signal.SIGKILL)


def fill_disk(path):
    """The file becomes a full disk in one step: the runtime opens it whenever it likes."""
    os.symlink("/dev/full", f"{path}.full")
    os.replace(f"{path}.full", path)


journal = f"{machine.state}/journal.jsonl"
os.link(journal, f"{journal}.kept")
fill_disk(journal)
done = machine.apply(other)
checks.ok(done.returncode == 4 and "No space left" in done.stderr, "a change that cannot be recorded: exit 4", done.stderr)
checks.ok(all_serve(machine.status()), "… and nothing was begun")
os.replace(f"{journal}.kept", journal)

# In the middle of a change: it waits, and goes on when there is room. One model is a pipe that gives nothing until
# the disk is full: no change ends before.
held = f"{machine.folder}/held.onnx"
os.mkfifo(held)
change = subprocess.Popen([TRANCHE, "apply", other, "--spare", "2", "--json", "--model", f"beta={held}", "--model",
                           f"alpha={machine.folder}/small.onnx"],
                          env=machine.environment, stdout=subprocess.PIPE, text=True)
status = wait_for(lambda s: s["phase"] == "changing" and hung_starts(s, "beta"))
checks.ok(status is not None and change.poll() is None, "a change is under way", machine.status())
os.link(journal, f"{journal}.kept")
fill_disk(journal)
release(held, "beta")
status = wait_for(lambda s: said(s, "the change waits"))
checks.ok(status is not None and status["phase"] == "changing" and change.poll() is None,
          "a disk that fills up during a change: the change waits", machine.status())
os.replace(f"{journal}.kept", journal)
out, _ = change.communicate(timeout=120)
checks.ok(change.returncode == 0, "… and goes on when there is room", out)
load.terminate()
result = json.loads(load.communicate(timeout=60)[0])
checks.ok(not any(s["wrong"] for s in result.values()), "no request was answered wrongly", result)

# ---- a server that starts slowly ------------------------------------------------------
# Its model is a pipe that gives nothing until we say so.
slow = f"{machine.folder}/slow.onnx"
os.mkfifo(slow)
third = machine.plan("third", {"alpha": 10, "beta": 30, "slowly": 5})
change = subprocess.Popen([TRANCHE, "apply", third, "--spare", "2", "--json", "--model", f"slowly={slow}", "--model",
                           f"alpha={machine.folder}/small.onnx", "--model", f"beta={machine.folder}/small.onnx"],
                          env=machine.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
status = wait_for(lambda s: s["phase"] == "changing" and hung_starts(s, "slowly"))
checks.ok(status is not None and change.poll() is None, "a change waits for a server that starts slowly", status)
others = [i for i in instances(status) if i["service"] != "slowly"]
checks.ok(others and all(i["state"] in ("serving", "starting", "draining", "stopping") for i in others), "… and the others serve", status)
release(slow, "slowly")
out, _ = change.communicate(timeout=120)
checks.ok(change.returncode == 0, "… and ends when it answers", out)

# ---- the end --------------------------------------------------------------------------
done = machine.down()
checks.ok(done.returncode == 0, "down", done.stderr)
checks.ok(machine.layouts() == found, "the layout found is back", machine.layouts())
left = machine.leftovers()
checks.ok(not left, "nothing is left", left)
checks.finish()
