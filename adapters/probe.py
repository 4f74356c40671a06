#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Does a framework see and use the device it was given? For `tranche bench probe`.

    python3 probe.py FRAMEWORK

One JSON object a line: {"check", "verdict", "detail"}; verdict is pass, fail, none (the
framework cannot do that at all) or absent (not installed). Checks: visibility, infer, train (five steps,
the loss must fall), multi-process (two processes that infer at the same time).
"""
import json
import math
import os
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
STEPS, BATCH, SIZE, RATE = 5, 8, 16, 0.05
CHILD_TIMEOUT_S = 120


class NoSuchThing(Exception):
    """The framework has no such function; that is no failure."""


class Torch:
    def __init__(self):
        import torch

        self.lib = torch
        torch.manual_seed(0)
        torch.set_num_threads(1)
        self.version = torch.__version__
        self.device = "cuda" if torch.cuda.is_available() else "cpu"
        self.images = torch.randn(BATCH, SIZE * SIZE, device=self.device)
        self.target = torch.arange(BATCH, device=self.device)
        self.model = torch.nn.Linear(SIZE * SIZE, BATCH).to(self.device)

    def devices(self):
        cuda = self.lib.cuda
        return [cuda.get_device_name(i) for i in range(cuda.device_count())] or ["cpu"]

    def infer(self):
        with self.lib.no_grad():
            return float(self.model(self.images).sum())

    def train(self):
        loss = self.lib.nn.functional.cross_entropy(self.model(self.images), self.target)
        self.model.zero_grad()
        loss.backward()
        with self.lib.no_grad():
            for weight in self.model.parameters():
                weight -= RATE * weight.grad
        return float(loss)


class TensorFlow:
    def __init__(self):
        import tensorflow as tf

        self.lib = tf
        self.version = tf.__version__
        for gpu in tf.config.list_physical_devices("GPU"):
            tf.config.experimental.set_memory_growth(gpu, True)
        tf.random.set_seed(0)
        self.images = tf.random.normal((BATCH, SIZE * SIZE))
        self.weights = tf.Variable(tf.zeros((SIZE * SIZE, BATCH)))

    def devices(self):
        return [d.name for d in self.lib.config.list_physical_devices("GPU")] or ["cpu"]

    def infer(self):
        return float(self.lib.reduce_sum(self.lib.matmul(self.images, self.weights)))

    def train(self):
        with self.lib.GradientTape() as tape:
            logits = self.lib.matmul(self.images, self.weights)
            losses = self.lib.nn.sparse_softmax_cross_entropy_with_logits(range(BATCH), logits)
            loss = self.lib.reduce_mean(losses)
        self.weights.assign_sub(RATE * tape.gradient(loss, self.weights))
        return float(loss)


class Jax:
    def __init__(self):
        import jax

        self.lib = jax
        self.version = jax.__version__
        self.images = jax.random.normal(jax.random.PRNGKey(0), (BATCH, SIZE * SIZE))
        self.weights = jax.numpy.zeros((SIZE * SIZE, BATCH))

    def devices(self):
        return [str(device) for device in self.lib.devices()]

    def infer(self):
        return float((self.images @ self.weights).sum())

    def loss(self, weights):
        logs = self.lib.nn.log_softmax(self.images @ weights)
        return -logs.diagonal().mean()

    def train(self):
        loss, gradient = self.lib.value_and_grad(self.loss)(self.weights)
        self.weights = self.weights - RATE * gradient
        return float(loss)


class Paddle:
    def __init__(self):
        import paddle

        self.lib = paddle
        self.version = paddle.__version__
        paddle.seed(0)
        self.images = paddle.randn([BATCH, SIZE * SIZE])
        self.model = paddle.nn.Linear(SIZE * SIZE, BATCH)
        self.optimizer = paddle.optimizer.SGD(RATE, parameters=self.model.parameters())

    def devices(self):
        return [self.lib.device.get_device()]

    def infer(self):
        return float(self.model(self.images).sum())

    def train(self):
        target = self.lib.arange(BATCH)
        loss = self.lib.nn.functional.cross_entropy(self.model(self.images), target)
        loss.backward()
        self.optimizer.step()
        self.optimizer.clear_grad()
        return float(loss)


class OnnxRuntime:
    def __init__(self):
        import onnxruntime

        self.lib = onnxruntime
        self.version = onnxruntime.__version__

    def devices(self):
        return self.lib.get_available_providers()

    def infer(self):
        raise NoSuchThing("see the built-in workload, which runs models in this library")

    def train(self):
        raise NoSuchThing("see the built-in workload")


FRAMEWORKS = {"torch": Torch, "tensorflow": TensorFlow, "jax": Jax, "paddle": Paddle,
              "onnxruntime": OnnxRuntime}


def say(check, verdict, detail):
    print(json.dumps({"check": check, "verdict": verdict, "detail": str(detail)[:300]}), flush=True)


def visibility(framework):
    found = framework.devices()
    wanted = os.environ.get("CUDA_VISIBLE_DEVICES")
    if wanted and all(name == "cpu" for name in found):
        raise RuntimeError(f"CUDA_VISIBLE_DEVICES is {wanted}, but no device is seen")
    return ", ".join(found)


def infer(framework):
    if not math.isfinite(framework.infer()):
        raise RuntimeError("the output is not finite")
    return "ran"


def train(framework):
    losses = [framework.train() for _ in range(STEPS)]
    if not losses[-1] < losses[0]:
        raise RuntimeError(f"the loss went from {losses[0]:.4g} to {losses[-1]:.4g}")
    return f"loss from {losses[0]:.4g} to {losses[-1]:.4g}"


def multi_process(name):
    command = [sys.executable, os.path.abspath(__file__), name, "infer"]
    children = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2)]
    for child in children:
        said, _ = child.communicate(timeout=CHILD_TIMEOUT_S)
        verdict = json.loads(said.splitlines()[-1]) if said.strip() else {}
        if verdict.get("verdict") == "none":
            raise NoSuchThing(verdict["detail"])
        if verdict.get("verdict") != "pass":
            raise RuntimeError(verdict.get("detail", f"a child ended with {child.returncode}"))
    return "two processes ran"


def check(name, function, argument):
    try:
        say(name, "pass", function(argument))
    except NoSuchThing as reason:
        say(name, "none", reason)
    except Exception as error:  # whatever a framework throws is its verdict
        say(name, "fail", f"{type(error).__name__}: {error}")


def main(words):
    if len(words) not in (1, 2) or words[0] not in FRAMEWORKS:
        print(f"usage: probe.py {'|'.join(FRAMEWORKS)}", file=sys.stderr)
        return 2
    try:
        framework = FRAMEWORKS[words[0]]()
    except ImportError as error:
        say("import", "absent", error)
        return 0
    except Exception as error:  # installed, but broken
        say("import", "fail", f"{type(error).__name__}: {error}")
        return 0
    if words[1:] == ["infer"]:
        check("infer", infer, framework)
        return 0
    say("import", "pass", framework.version)
    check("visibility", visibility, framework)
    check("infer", infer, framework)
    check("train", train, framework)
    check("multi-process", multi_process, words[0])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
