#!/usr/bin/env python3
"""Golden values of training with frozen layers, from PyTorch.

usage: golden_freeze.py DIRECTORY     writes freeze.txt there (tests/golden)

A ResNet-18 of width 8, of which layers are frozen in front of all that is trained and between what is: a convolution, and batch
norms with relu and with a residual. The three kinds of model.freeze_norm: all: the frozen norms are in evaluation mode; affine:
only their parameters do not require a gradient; none: they train. Weights, data and columns are those of golden_models.py;
running statistics begin at 0.1 noise and 1 + 0.1 noise. Behind each curve stands the sum of the squares of all running
statistics at the end.
"""
import fnmatch
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_models import ResNet18, STEPS, nudged, param, pictures
from golden_optim import noise

WIDTH, BATCH, IMAGE = 8, 4, 16
FROZEN = ["conv1", "bn1", "layer1.*", "layer3.0.bn1", "layer3.1.conv2", "layer4.0.bn2", "layer4.1.bn2"]
LR, MOMENTUM, DECAY = 0.01, 0.9, 0.0005


def is_frozen(name):
    return any(fnmatch.fnmatchcase(name, p) or fnmatch.fnmatchcase(name.rsplit(".", 1)[0], p) for p in FROZEN)


def curve(norm, dtype, layout=torch.contiguous_format, reverse=False):
    model = ResNet18(10, 3, WIDTH)
    for name, p in model.named_parameters():
        p.data = param(name, tuple(p.shape))
    for name, b in model.named_buffers():
        if name.endswith("num_batches_tracked"):
            continue
        b.copy_(torch.from_numpy(noise(name, b.numel()) * np.float32(0.1)) + float(name.endswith("var")))
    model.to(dtype).to(memory_format=layout).train()
    norms = {name: m for name, m in model.named_modules() if isinstance(m, nn.BatchNorm2d)}
    for name, p in model.named_parameters():
        own = norms.get(name.rsplit(".", 1)[0])
        p.requires_grad = not is_frozen(name) or (own is not None and norm == "none")
    for name, m in norms.items():
        if norm == "all" and is_frozen(name + ".weight"):
            m.eval()
    x, y = pictures(BATCH, 3, IMAGE, dtype, layout, reverse)
    trained = [p for p in model.parameters() if p.requires_grad]
    sgd = torch.optim.SGD([{"params": [p for p in trained if p.dim() > 1], "weight_decay": DECAY},
                           {"params": [p for p in trained if p.dim() == 1]}], LR, MOMENTUM)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    squares = sum(float((b.double() ** 2).sum()) for n, b in model.named_buffers() if not n.endswith("tracked"))
    return losses, squares


def main(directory):
    with open(f"{directory}/freeze.txt", "w") as out:
        out.write("# Written by tools/golden_freeze.py with PyTorch %s: each step's loss in double precision, and the largest\n"
                  "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
        out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step; statistics NAME SQUARES\n")
        for norm in ("all", "affine", "none"):
            out.write(f"model {norm} {BATCH} 3 {IMAGE} model.name=resnet18 model.stem=small model.width={WIDTH} "
                      f"optim.lr={LR} optim.momentum={MOMENTUM} optim.weight_decay={DECAY} "
                      f"model.freeze_norm={norm} model.freeze=[{','.join(FROZEN)}]\n")
            double, squares = curve(norm, torch.float64)
            single = [curve(norm, torch.float32), curve(norm, torch.float32, torch.channels_last)]
            single.append(curve(norm, torch.float32, reverse=True))
            single += nudged(lambda: curve(norm, torch.float32))
            for step, d in enumerate(double):
                out.write(f"{d:.12g} {max(abs(s[0][step] - d) / d for s in single):.2e}\n")
            out.write(f"statistics {norm} {squares:.9g}\n")


if __name__ == "__main__":
    main(sys.argv[1])
