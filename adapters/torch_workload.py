#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A PyTorch workload for tranche: a torchvision model (or "cnn") in inference or training.

    tranche bench one -m resnet18 --batch 8 -S 3g -- \\
        python3 adapters/torch_workload.py --model resnet18 --batch 8

Runs on the one CUDA device that is visible, else on the CPU. Run with Debian's
python3-torch and python3-torchvision (1.13) on a CPU; on CUDA it is not tested.
"""
import os
import sys

import workload


def make_model(torch, name, size):
    if name == "cnn":  # no torchvision needed
        nn = torch.nn
        return nn.Sequential(nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(),
                             nn.Conv2d(32, 64, 3, stride=2, padding=1), nn.ReLU(),
                             nn.Conv2d(64, 128, 3, stride=2, padding=1), nn.ReLU(),
                             nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10))
    import torchvision

    if not hasattr(torchvision.models, name):
        raise ValueError(f"torchvision has no model {name}")
    return getattr(torchvision.models, name)()


def load(options):
    import torch

    torch.manual_seed(0)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", "1")))
    cuda = torch.cuda.is_available()
    device = "cuda" if cuda else "cpu"
    training = options.task == "training"
    model = make_model(torch, options.model, options.size).to(device).train(training)
    images = torch.randn(options.batch, 3, options.size, options.size, device=device)
    # Work on a GPU is queued: without waiting for it, only the queueing is timed.
    wait = torch.cuda.synchronize if cuda else lambda: None
    phases = workload.Phases(options.phases, wait)
    if training:
        with torch.no_grad():
            classes = model(images).shape[1]
        target = torch.randint(0, classes, (options.batch,), device=device)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

        def step():
            with phases("forward"):
                loss = torch.nn.functional.cross_entropy(model(images), target)
            with phases("backward"):
                optimizer.zero_grad(set_to_none=True)
                loss.backward()
            with phases("update"):
                optimizer.step()
            return loss.item()
    else:

        def step():
            with torch.no_grad(), phases("compute"):
                model(images)

    return {
        "framework": "torch", "version": torch.__version__, "device": device,
        "name": torch.cuda.get_device_name() if cuda else "cpu", "step": step,
        "wait": wait, "phases": phases,
        "peak": torch.cuda.max_memory_allocated if cuda else lambda: None,
    }


if __name__ == "__main__":
    sys.exit(workload.main(__doc__.splitlines()[0], load))
