#!/usr/bin/env python3
"""Golden losses of models with a label for each pixel, from PyTorch in double precision.

usage: golden_pixels.py FILE        writes it (tests/golden/pixels.txt)

Models, weights and inputs are those of golden_unet.py. The label of pixel i is a hash of i below classes + 1, minus 1: -1 has no label.
Losses are written from docs/models.md, "A label for each pixel"; softmax and focal use PyTorch's cross_entropy of each sample.
"""
import sys

import numpy as np
import torch
import torch.nn.functional as F

import golden_unet
from golden_models import noise, nudged
from golden_optim import fnv

STEPS, CHANNELS, BATCH, SIDE = 10, 3, 3, 16
CASES = [  # name, classes, options
    ("softmax", 3, "model.name=unet model.channels=[8,16] model.activation=silu train.loss=softmax train.class_weights=[1,2,0.5]"),
    ("focal", 2, "model.name=fieldresnet model.width=8 model.layers=1 model.pad_mode=[circular] model.activation=tanh train.loss=focal "
     "train.focal_gamma=1.5"),
    ("dice", 3, "model.name=unet model.channels=[8,16] model.up=bilinear model.down=mean model.activation=silu train.loss=dice"),
    ("iou", 2, "model.name=unet model.channels=[8,16] model.activation=tanh model.pad_mode=[reflect,circular] train.loss=iou"),
]


def sample_loss(opt, logits, label):
    """logits (C,H,W), label (H,W) of one sample."""
    classes, has = logits.shape[0], label >= 0
    if opt["loss"] in ("softmax", "focal"):
        weight = torch.tensor([float(w) for w in opt.get("class_weights", "[" + ",".join(["1"] * classes) + "]").strip("[]").split(",")],
                              dtype=logits.dtype)
        nll = F.cross_entropy(logits[None], label[None], reduction="none", ignore_index=-1)[0]
        gamma = float(opt.get("focal_gamma", 2)) if opt["loss"] == "focal" else 0
        w = torch.where(has, weight[label.clamp(min=0)], torch.zeros_like(nll))
        return (w * (1 - torch.exp(-nll)) ** gamma * nll).sum() / w.sum() if gamma else (w * nll).sum() / w.sum()
    p = F.softmax(logits, 0) * has
    one = F.one_hot(label.clamp(min=0), classes).permute(2, 0, 1) * has
    inside, all_, labelled = (p * one).sum((1, 2)), p.sum((1, 2)), one.sum((1, 2))
    if opt["loss"] == "dice":
        return 1 - ((2 * inside + 1) / (all_ + labelled + 1)).mean()
    if opt["loss"] == "iou":
        return 1 - ((inside + 1) / (all_ + labelled - inside + 1)).mean()
    raise ValueError(f"no formula for the loss {opt['loss']}")


def curve(text, classes, dtype, reverse=False):
    opt = dict(pair.split("=") for pair in text.split())
    opt = {key.split(".")[1]: value for key, value in opt.items()}
    x = torch.from_numpy(noise("x", BATCH * CHANNELS * SIDE * SIDE) * np.float32(1.5)).reshape(BATCH, CHANNELS, SIDE, SIDE).to(dtype)
    label = np.array([fnv(f"y{i}") % (classes + 1) - 1 for i in range(BATCH * SIDE * SIDE)], dtype=np.int64)
    label = torch.from_numpy(label).reshape(BATCH, SIDE, SIDE)
    if reverse:
        x, label = x.flip(0), label.flip(0)
    golden_unet.VARIABLES = classes
    net = golden_unet.Net(opt, dtype)
    net(x)
    sgd = torch.optim.SGD(list(net.params.values()), 0.02, 0.9)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        y = net(x)
        loss = sum(sample_loss(opt, y[i], label[i]) for i in range(BATCH)) / BATCH
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def main(path):
    with open(path, "w") as out:
        out.write("# Written by tools/golden_pixels.py with PyTorch %s: each step's loss in double precision, and the largest\n"
                  "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
        out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step\n")
        for name, classes, text in CASES:
            out.write(f"model {name} {BATCH} {CHANNELS} {SIDE} {text} optim.lr=0.02 optim.momentum=0.9\n")
            double = curve(text, classes, torch.float64)
            single = [curve(text, classes, torch.float32), curve(text, classes, torch.float32, True)]
            single += nudged(lambda: curve(text, classes, torch.float32))
            for step, d in enumerate(double):
                far = max(abs(s[step] - d) / abs(d) for s in single)
                out.write("%.12g %.2e\n" % (d, far))


if __name__ == "__main__":
    main(sys.argv[1])
