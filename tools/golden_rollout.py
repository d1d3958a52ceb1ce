#!/usr/bin/env python3
"""Golden values of a rollout's training, from PyTorch.

usage: golden_rollout.py DIRECTORY      writes rollout.txt there (tests/golden)

A small unet that is applied three times, each time to the fields that it gave, written in the variables' units: h is predicted as
its change, u as its value, f is a forcing that the data gives at all times, s is static; inputs are those of two times. Weights and
data are formulas, as in golden_models.py; means and deviations stand below and in tests/train/test_golden_rollout.c.
"""
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_models import STEPS, nudged, param
from golden_optim import noise, options

BATCH, IMAGE, ROLLOUT, CHANNELS = 3, 16, 3, (8, 16)
MEAN, DEVIATION = (2.0, -1.0, 0.3, 0.0), (1.5, 0.5, 0.8, 1.0)  # one value for each of h, u, f, s
TARGET_MEAN, TARGET_DEVIATION = (0.1, -0.9), (0.7, 0.6)  # one value for the change of h, one for u
OPTIONS = ("model.name=unet model.channels=[8,16] model.down=mean model.up=bilinear model.activation=silu "
           "model.pad_mode=[reflect,circular] train.loss=mse optim.lr=0.02 optim.momentum=0.9 optim.weight_decay=0.0005")


class Block(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv1, self.norm1 = nn.Conv2d(i, o, 3, bias=False), nn.GroupNorm(o // 8, o)
        self.conv2, self.norm2 = nn.Conv2d(o, o, 3, bias=False), nn.GroupNorm(o // 8, o)

    def forward(self, x):
        pad = lambda x: F.pad(F.pad(x, (0, 0, 1, 1), mode="reflect"), (1, 1, 0, 0), mode="circular")
        x = F.silu(self.norm1(self.conv1(pad(x))))
        return F.silu(self.norm2(self.conv2(pad(x))))


class Unet(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        a, b = CHANNELS
        self.down0, self.down1 = nn.Sequential(Block(i, a)), nn.Sequential(Block(a, b))
        self.up0, self.head = nn.Sequential(Block(a + b, a)), nn.Conv2d(a, o, 1)

    def forward(self, x):
        x = self.down0(x)
        y = self.down1(F.avg_pool2d(x, 2))
        return self.head(self.up0(torch.cat((x, F.interpolate(y, scale_factor=2, mode="bilinear")), 1)))


def normal(value, name):
    return (value - MEAN["hufs".index(name)]) / DEVIATION["hufs".index(name)]


def value(channel, name):
    return channel * DEVIATION["hufs".index(name)] + MEAN["hufs".index(name)]


def leads(net, x):
    """Outputs of all steps as the loss compares them. x: h, u, f before; h, u, f now; s; f of the two times that follow."""
    before, now = [value(x[:, i], n) for i, n in enumerate("huf")], [value(x[:, 3 + i], n) for i, n in enumerate("huf")]
    static, start, out = x[:, 6], now[0], []
    for step in range(ROLLOUT):
        state = [normal(v, n) for fields in (before, now) for v, n in zip(fields, "huf")]
        y = net(torch.stack(state + [static], 1))
        h = now[0] + y[:, 0] * TARGET_DEVIATION[0] + TARGET_MEAN[0]
        u = y[:, 1] * TARGET_DEVIATION[1] + TARGET_MEAN[1]
        out += [(h - start - TARGET_MEAN[0]) / TARGET_DEVIATION[0], (u - TARGET_MEAN[1]) / TARGET_DEVIATION[1]]
        before, now = now, [h, u, value(x[:, 7 + step], "f") if step + 1 < ROLLOUT else None]
    return torch.stack(out, 1)


def weighted_loss(y, target, weight):
    """Mean over samples of each sample's weighted mean."""
    each = (weight * (y - target) ** 2).flatten(1).sum(1) / weight.flatten(1).sum(1)
    return each.mean()


def curve(dtype, layout=torch.contiguous_format, reverse=False, weights="none"):
    net = Unet(7, 2)
    for name, p in net.named_parameters():
        p.data = param(name, tuple(p.shape))
    net.to(dtype).to(memory_format=layout).train()
    shape = lambda name, channels: torch.from_numpy(noise(name, BATCH * channels * IMAGE * IMAGE)).to(dtype).reshape(BATCH, channels, IMAGE, IMAGE)
    x, target = shape("x", 9) * 1.5, shape("t", 2 * ROLLOUT) * 2
    weight = (shape("w", 2 * ROLLOUT) + 1) / 2  # one of each target value; or the first sample's for all
    if weights == "shared":
        weight = weight[:1].expand_as(target)
    weight = torch.ones_like(target) if weights == "none" else torch.where(weight < 0.25, 0, weight)
    if reverse:
        x, target, weight = x.flip(0), target.flip(0), weight.flip(0)
    opt = options(OPTIONS)
    matrices = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    sgd = torch.optim.SGD([{"params": matrices, "weight_decay": float(opt["weight_decay"])}, {"params": others}], float(opt["lr"]),
                          float(opt["momentum"]))
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = weighted_loss(leads(net, x), target, weight)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(os.path.join(sys.argv[1], "rollout.txt"), "w") as out:
        out.write("# Written by tools/golden_rollout.py with PyTorch %s: each step's loss in double precision, and the largest\n"
                  "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
        out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step; the weights of targets are those of NAME\n")
        for name, weights in (("rollout", "none"), ("shared", "shared"), ("weighted", "own")):
            double = curve(torch.float64, weights=weights)
            single = [curve(torch.float32, weights=weights), curve(torch.float32, torch.channels_last, weights=weights),
                      curve(torch.float32, reverse=True, weights=weights)]
            single += nudged(lambda: curve(torch.float32, weights=weights))
            out.write(f"model {name} {BATCH} 9 {IMAGE} {OPTIONS}\n")
            for step, d in enumerate(double):
                out.write(f"{d:.12g} {max(abs(s[step] - d) / d for s in single):.2e}\n")
