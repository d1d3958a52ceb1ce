#!/usr/bin/env python3
"""Golden values of models of data with ids, from PyTorch: ten steps of SGD on a batch, tables and all.

usage: golden_ids.py DIRECTORY     writes ids.txt there (tests/golden); weights, data and files as golden_models.py has them

A table NAME has IDS rows, of noise(NAME) / 2; sample n's field f has the id fnv(i{n * F + f}) % IDS.
"""
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_models import STEPS, nudged, param
from golden_optim import fnv, noise, options

IDS = 5
MODELS = [  # name, samples, numbers, fields, options
    ("wide_deep", 7, 3, 4, "model.name=wide_deep model.width=6 model.hidden=[20,12] train.loss=sigmoid optim.lr=0.05"),
    ("deepfm", 7, 3, 4, "model.name=deepfm model.width=5 model.hidden=[20,12] train.loss=sigmoid optim.lr=0.05"),
    ("dlrm", 7, 3, 4, "model.name=dlrm model.width=6 model.bottom=[10] model.hidden=[20,12] train.loss=sigmoid optim.lr=0.05"),
]


def stack(inputs, widths, output=None):
    layers = nn.ModuleDict()
    for i, width in enumerate(widths):
        layers[str(i)] = nn.Linear(inputs, width)
        inputs = width
    if output:
        layers["output"] = nn.Linear(inputs, output)
    return layers


def run(layers, x):
    for name, layer in layers.items():
        x = layer(x) if name == "output" else F.relu(layer(x))
    return x


class Rows(nn.Module):
    """A table for each of `names`, of the fields or of all of them."""

    def __init__(self, names, width, dtype):
        super().__init__()
        self.rows = [torch.tensor(noise(name, IDS * width) / 2).view(IDS, width).to(dtype).requires_grad_() for name in names]

    def forward(self, ids):
        each = len(self.rows) > 1
        return torch.stack([self.rows[f if each else 0][ids[:, f]] for f in range(ids.shape[1])], 1)


class Model(nn.Module):
    def __init__(self, numbers, fields, opt, dtype):
        super().__init__()
        self.kind, self.width = opt["name"], int(opt["width"])
        widths = lambda key: [int(w) for w in opt[key].strip("[]").split(",")]
        each = self.kind == "dlrm"
        self.embedding = Rows([f"embedding.{f}" for f in range(fields)] if each else ["embedding"], self.width, dtype)
        self.tables = list(self.embedding.rows)
        if self.kind == "wide_deep":
            self.wide = nn.Linear(numbers, 1)
            self.deep = stack(fields * self.width + numbers, widths("hidden"), 1)
        if self.kind == "deepfm":
            self.first_order = Rows(["first_order"], 1, dtype)
            self.tables += self.first_order.rows
            self.linear = nn.Linear(numbers, 1)
            self.numeric = nn.Embedding(numbers, self.width)
            self.deep = stack((fields + numbers) * self.width, widths("hidden"), 1)
        if self.kind == "dlrm":
            self.bottom = stack(numbers, widths("bottom") + [self.width])
            n = fields + 1
            self.top = stack(n * (n - 1) // 2 + self.width, widths("hidden"), 1)

    def forward(self, x, ids):
        rows = self.embedding(ids)
        if self.kind == "wide_deep":
            return self.wide(x) + run(self.deep, torch.cat([rows.flatten(1), x], 1))
        if self.kind == "deepfm":
            v = torch.cat([rows, x[:, :, None] * self.numeric.weight], 1)
            pairs = (v.sum(1) ** 2 - (v**2).sum(1)).sum(1, keepdim=True) / 2
            return self.first_order(ids).sum(1) + self.linear(x) + pairs + run(self.deep, v.flatten(1))
        bottom = run(self.bottom, x)
        v = torch.cat([bottom[:, None], rows], 1)
        n = v.shape[1]
        dots = torch.bmm(v, v.transpose(1, 2))[:, [i for i in range(n) for j in range(i)], [j for i in range(n) for j in range(i)]]
        return run(self.top, torch.cat([bottom, dots], 1))


def curve(samples, numbers, fields, opt, dtype, reverse=False):
    model = Model(numbers, fields, opt, dtype)
    for name, p in model.named_parameters():
        p.data = param(name, tuple(p.shape))
    model.to(dtype)
    x = torch.tensor(noise("x", samples * numbers)).view(samples, numbers).to(dtype)
    ids = torch.tensor([fnv(f"i{k}") % IDS for k in range(samples * fields)]).view(samples, fields)
    y = torch.tensor([fnv(f"y{n}") % 2 for n in range(samples)]).to(dtype)
    if reverse:
        x, ids, y = x.flip(0), ids.flip(0), y.flip(0)
    sgd = torch.optim.SGD(list(model.parameters()) + model.tables, float(opt["lr"]))
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = F.binary_cross_entropy_with_logits(model(x, ids)[:, 0], y)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def write(out):
    out.write("# Written by tools/golden_ids.py with PyTorch %s: as models.txt\n" % torch.__version__)
    out.write("# ids NAME SAMPLES NUMBERS FIELDS OPTIONS, then one line a step\n")
    for name, samples, numbers, fields, text in MODELS:
        out.write(f"ids {name} {samples} {numbers} {fields} {text}\n")
        args = samples, numbers, fields, options(text)
        single = [curve(*args, torch.float32), curve(*args, torch.float32, reverse=True)]
        single += nudged(lambda: curve(*args, torch.float32))
        for step, d in enumerate(curve(*args, torch.float64)):
            out.write(f"{d:.12g} {max(abs(s[step] - d) / d for s in single):.2e}\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    with open(sys.argv[1] + "/ids.txt", "w", buffering=1) as f:
        write(f)
