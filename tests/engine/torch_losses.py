#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's first losses on the models that tranche trains.

Prints one line a case: MODEL BATCH PARAMETERS LOSS LOSS LOSS LOSS. The networks, start
values and data are those of src/engine (docs/spec/training.md), made here anew with
PyTorch's own operators and its own gradients. test_trainer.c holds the printed numbers;
`--check TRANCHE` compares a binary's `worker --task training` with this PyTorch instead.
Needs Debian's python3-torch.
"""
import json
import math
import subprocess
import sys

import torch
import torch.nn.functional as F

STEPS, RATE, MOMENTUM = 4, 0.05, 0.9
CASES = [
    ("cnn", 16),
    ("cnn:size=15,classes=7", 3),
    ("transformer", 4),
    ("bert:layers=1,hidden=64,length=8,vocabulary=50", 4),
    ("resnet:size=32,classes=4", 2),
    ("resnet:depth=50,size=32,classes=4", 2),
]
STANDARD = {
    "cnn": {"size": 32, "classes": 10},
    "transformer": {"layers": 2, "hidden": 128, "length": 64, "vocabulary": 1000},
    "bert": {"layers": 6, "hidden": 384, "length": 128, "vocabulary": 30522, "classes": 5},
    "resnet": {"depth": 18, "size": 224, "classes": 1000},
}
DEPTHS = {18: ([2, 2, 2, 2], False), 50: ([3, 4, 6, 3], True)}


class Random:
    """The reference generator: 24 bits of a linear congruential generator."""

    def __init__(self, state):
        self.state = state

    def floats(self, count):
        out = []
        for _ in range(count):
            self.state = (self.state * 1664525 + 1013904223) % 2**32
            out.append((self.state >> 8) / 2**24)
        return torch.tensor(out, dtype=torch.float32)

    def below(self, count, bound):
        return (self.floats(count) * bound).long() % bound


class Network:
    """Parameters in order of use on the first call, kept from then on."""

    def __init__(self):
        self.random = Random(1)
        self.parameters = []
        self.next = 0

    def parameter(self, shape, deviation=0.0, constant=0.0):
        if self.next == len(self.parameters):
            values = self.random.floats(math.prod(shape)) - 0.5
            values = values * (math.sqrt(12) * deviation) + constant
            self.parameters.append(values.reshape(shape).requires_grad_())
        self.next += 1
        return self.parameters[self.next - 1]

    def conv(self, x, channels, size, stride, damp=1.0):
        fan = x.shape[1] * size * size
        w = self.parameter((channels, x.shape[1], size, size), math.sqrt(2 / fan) * damp)
        return F.conv2d(x, w, self.parameter((channels,)), stride, size // 2)

    def linear(self, x, features):
        w = self.parameter((x.shape[-1], features), math.sqrt(1 / x.shape[-1]))
        return x @ w + self.parameter((features,))

    def norm(self, x):
        gain = self.parameter((x.shape[-1],), constant=1.0)
        return F.layer_norm(x, x.shape[-1:], gain, self.parameter((x.shape[-1],)), 1e-5)

    def attention(self, x, heads):
        n, length, width = x.shape
        q, k, v = (self.linear(x, width).reshape(n, length, heads, -1).transpose(1, 2)
                   for _ in range(3))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(width // heads), -1)
        return self.linear((weights @ v).transpose(1, 2).reshape(x.shape), width)

    def feed_forward(self, x):
        return self.linear(F.gelu(self.linear(x, 4 * x.shape[-1])), x.shape[-1])

    def embed(self, ids, vocabulary, hidden):
        return self.parameter((vocabulary, hidden), 0.02)[ids]


def cnn(n, x, s):
    for channels, stride in ((32, 1), (64, 2), (128, 2)):
        x = F.relu(n.conv(x, channels, 3, stride))
    return n.linear(x.mean((2, 3)), s["classes"])


def resnet(n, x, s):
    blocks, bottleneck = DEPTHS[s["depth"]]
    x = F.relu(n.conv(x, 64, 7, 4))
    for stage, count in enumerate(blocks):
        width = 64 << stage
        for i in range(count):
            stride = 2 if stage and not i else 1
            out = width * 4 if bottleneck else width
            short = x
            if stride != 1 or x.shape[1] != out:
                short = n.conv(x, out, 1, stride)
            if bottleneck:
                y = F.relu(n.conv(x, width, 1, 1))
                y = F.relu(n.conv(y, width, 3, stride))
                y = n.conv(y, out, 1, 1, 0.1)
            else:
                y = n.conv(F.relu(n.conv(x, width, 3, stride)), out, 3, 1, 0.1)
            x = F.relu(y + short)
    return n.linear(x.mean((2, 3)), s["classes"])


def heads(s):
    return s["hidden"] // (32 if s["hidden"] < 768 else 64)


def transformer(n, x, s):
    x = n.embed(x, s["vocabulary"], s["hidden"])
    for _ in range(s["layers"]):
        x = x + n.attention(n.norm(x), heads(s))
        x = x + n.feed_forward(n.norm(x))
    x = n.norm(x)
    return n.linear(x.reshape(-1, s["hidden"]), s["vocabulary"])


def bert(n, x, s):
    x = n.embed(x, s["vocabulary"], s["hidden"])
    x = x + n.parameter((s["length"] * s["hidden"],), 0.02).reshape(1, *x.shape[1:])
    x = n.norm(x)
    for _ in range(s["layers"]):
        x = n.norm(x + n.attention(x, heads(s)))
        x = n.norm(x + n.feed_forward(x))
    return n.linear(x.mean(1), s["classes"])


def losses(text, batch):
    name, _, rest = text.partition(":")
    sizes = dict(STANDARD[name])
    sizes.update((k, int(v)) for k, v in (p.split("=") for p in rest.split(",") if p))
    data = Random(12345)
    if "vocabulary" in sizes:
        x = data.below(batch * sizes["length"], sizes["vocabulary"]).reshape(batch, -1)
    else:
        x = data.floats(batch * 3 * sizes["size"] ** 2) * 2 - 1
        x = x.reshape(batch, 3, sizes["size"], sizes["size"])
    classes = sizes.get("classes", sizes.get("vocabulary"))
    y = data.below(x.numel() if name == "transformer" else batch, classes)
    network, out, optimizer = Network(), [], None
    rate = 0.01 if name == "resnet" else RATE
    for _ in range(STEPS):
        network.next = 0
        loss = F.cross_entropy(globals()[name](network, x, sizes), y)
        if not optimizer:
            optimizer = torch.optim.SGD(network.parameters, lr=rate, momentum=MOMENTUM)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        out.append(loss.item())
    return sum(p.numel() for p in network.parameters), out


def ours(tranche, text, batch):
    command = [tranche, "worker", "--task", "training", "--model", text, "--batch", str(batch),
               "--steps", str(STEPS)]
    lines = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    events = [json.loads(line) for line in lines.splitlines()]
    return [loss for e in events if e["event"] == "steps" for loss in e["loss"]]


def main():
    torch.set_num_threads(1)
    failed = 0
    for text, batch in CASES:
        parameters, want = losses(text, batch)
        print(text, batch, parameters, *(f"{x:.6f}" for x in want))
        if sys.argv[1:2] == ["--check"]:
            got = ours(sys.argv[2], text, batch)
            print("  tranche", *(f"{x:.6f}" for x in got))
            failed += any(abs(a - b) > 1e-5 * max(1, abs(b)) for a, b in zip(got, want, strict=True))
    if sys.argv[1:2] == ["--check"]:
        print(f"{len(CASES) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
