#!/usr/bin/env python3
"""Golden losses of the models unet and fieldresnet, from PyTorch in double precision.

usage: golden_unet.py FILE          writes it (tests/golden/unet.txt)

Weights, inputs and targets are the formula of golden_models.py. The models are written as functions of named parameters, from their
description in docs/models.md. Beside each loss stands how far PyTorch's own runs in single precision stray from it.
"""
import sys

import torch
import torch.nn.functional as F

import golden_models
from golden_models import noise, nudged, options, param

import numpy as np

STEPS, VARIABLES = 10, 3
# the last two channels are scalars, so that the model takes their means
SCALARS = 'data.variables={"inputs":[a],"scalars":[b,c],"targets":[a]}'
CASES = [  # name, options, batch, side
    ("transpose", "model.name=unet model.channels=[8,16,24] model.activation=silu train.loss=mse", 4, 16),
    ("nearest", "model.name=unet model.channels=[8,16] model.layers=2 model.up=nearest model.down=mean model.norm=batch "
     "model.pad_mode=[circular] model.activation=silu train.loss=huber", 4, 16),
    ("bilinear", "model.name=unet model.channels=[8,16,24] model.up=bilinear model.norm=instance model.residual=true "
     "model.pad_mode=[reflect,circular] model.activation=tanh train.loss=charbonnier", 3, 16),
    ("plain", "model.name=unet model.channels=[8,16] model.norm=none model.pad_mode=[replicate,zero] model.activation=silu "
     "train.loss=mse", 4, 16),
    ("resnet", "model.name=fieldresnet model.width=8 model.layers=2 model.pad_mode=[circular] model.activation=mish train.loss=mse", 4, 16),
    ("attention", "model.name=unet model.channels=[8,24] model.attention=3 model.activation=silu train.loss=mse", 4, 16),
    ("film", "model.name=unet model.channels=[8,16] model.film=12 model.residual=true model.activation=silu train.loss=mse " + SCALARS, 4, 16),
    ("film_resnet", "model.name=fieldresnet model.width=8 model.layers=2 model.film=5 model.norm=none model.activation=tanh train.loss=mse "
     + SCALARS, 4, 16),
    ("columns", "model.name=columns model.width=24 model.layers=2 model.activation=silu train.loss=mse", 4, 8),
    ("columns_norm", "model.name=columns model.width=24 model.norm=layer model.activation=mish train.loss=huber", 4, 8),
]
ACTIVATIONS = {"silu": F.silu, "tanh": torch.tanh, "mish": F.mish, "relu": F.relu}
MODES = {"zero": "constant", "replicate": "replicate", "reflect": "reflect", "circular": "circular"}


class Net:
    """A model as a function of parameters that are made when they are first used."""

    def __init__(self, opt, dtype):
        self.opt, self.dtype, self.params = opt, dtype, {}
        self.act = ACTIVATIONS[opt.get("activation", "relu")]
        modes = opt.get("pad_mode", "[zero]").strip("[]").split(",")
        self.rows, self.columns = MODES[modes[0]], MODES[modes[-1]]

    def get(self, name, *shape):
        if name not in self.params:
            self.params[name] = param(name, shape).to(self.dtype).requires_grad_(True)
        return self.params[name]

    def pad(self, x):
        x = F.pad(x, (0, 0, 1, 1), mode=self.rows)
        return F.pad(x, (1, 1, 0, 0), mode=self.columns)

    def conv(self, x, name, channels, kernel, bias):
        w = self.get(name + ".weight", channels, x.shape[1], kernel, kernel)
        b = self.get(name + ".bias", channels) if bias else None
        return F.conv2d(self.pad(x) if kernel > 1 else x, w, b)

    def norm(self, x, name):
        kind, channels = self.opt.get("norm", "group"), x.shape[1]
        if kind == "none":
            return x
        w, b = self.get(name + ".weight", channels), self.get(name + ".bias", channels)
        if kind == "batch":
            return F.batch_norm(x, None, None, w, b, True)
        return F.group_norm(x, channels if kind == "instance" else max(1, channels // 8), w, b)

    def conv_norm(self, x, prefix, number, channels, act):
        x = self.conv(x, f"{prefix}.conv{number}", channels, 3, self.opt.get("norm", "group") == "none")
        x = self.norm(x, f"{prefix}.norm{number}")
        if number == 1 and self.scalars is not None and prefix != "stem":
            scale, shift = self.dense(self.scalars, prefix + ".scales", 2 * channels)[:, :, None, None].chunk(2, 1)
            x = x * (1 + scale) + shift
        return self.act(x) if act else x

    def block(self, x, prefix, channels, residual):
        y = self.conv_norm(x, prefix, 1, channels, True)
        y = self.conv_norm(y, prefix, 2, channels, not residual)
        if not residual:
            return y
        return self.act(y + (x if x.shape[1] == channels else self.conv(x, prefix + ".skip", channels, 1, True)))

    def blocks(self, x, prefix, channels):
        for i in range(int(self.opt.get("layers", 1))):
            x = self.block(x, f"{prefix}.{i}", channels, self.opt.get("residual") == "true")
        return x

    def dense(self, x, name, width):
        return F.linear(x, self.get(name + ".weight", width, x.shape[-1]), self.get(name + ".bias", width))

    def perceptron(self, x):
        x = x[:, -2:].mean((2, 3))
        for name in ("film.fc1", "film.fc2"):
            x = self.act(self.dense(x, name, int(self.opt["film"])))
        return x

    def attention(self, x):
        n, c, h, w = x.shape
        heads = int(self.opt["attention"])
        y = self.conv(self.norm(x, "bottom.norm"), "bottom.qkv", 3 * c, 1, True)
        q, k, v = y.reshape(n, 3, heads, c // heads, h * w).transpose(3, 4).unbind(1)
        y = torch.softmax(q @ k.transpose(2, 3) / (c // heads) ** 0.5, 3) @ v
        return x + self.conv(y.transpose(2, 3).reshape(x.shape), "bottom.proj", c, 1, True)

    def column_net(self, x):
        x = x.permute(0, 2, 3, 1)
        for i in range(1, int(self.opt.get("layers", 3)) + 1):
            x, name = self.dense(x, f"fc{i}", int(self.opt["width"])), f"norm{i}."
            if self.opt.get("norm") == "layer":
                x = F.layer_norm(x, x.shape[-1:], self.get(name + "weight", x.shape[-1]), self.get(name + "bias", x.shape[-1]))
            x = self.act(x)
        return self.dense(x, "head", VARIABLES).permute(0, 3, 1, 2)

    def unet(self, x):
        channels = [int(c) for c in self.opt["channels"].strip("[]").split(",")]
        pool = F.avg_pool2d if self.opt.get("down") == "mean" else F.max_pool2d
        up, kept = self.opt.get("up", "transpose"), []
        for i, c in enumerate(channels):
            x = self.blocks(pool(x, 2) if i else x, f"down{i}", c)
            kept.append(x)
        if "attention" in self.opt:
            x = self.attention(x)
        for i in reversed(range(len(channels) - 1)):
            c = channels[i]
            if up == "transpose":
                w = self.get(f"up{i}.up.weight", x.shape[1], c, 2, 2)
                x = F.conv_transpose2d(x, w, self.get(f"up{i}.up.bias", c), 2)
            else:
                x = F.interpolate(x, scale_factor=2, mode=up)
            x = self.blocks(torch.cat((kept[i], x), 1), f"up{i}", c)
        return x

    def resnet(self, x):
        width = int(self.opt["width"])
        x = self.conv_norm(x, "stem", 1, width, True)
        for i in range(int(self.opt["layers"])):
            x = self.block(x, f"block{i}", width, True)
        return x

    def __call__(self, x):
        if self.opt["name"] == "columns":
            return self.column_net(x)
        self.scalars = self.perceptron(x) if "film" in self.opt else None
        x = self.unet(x) if self.opt["name"] == "unet" else self.resnet(x)
        return self.conv(x, "head", VARIABLES, 1, True)


def loss_of(name, y, t):
    if name == "huber":
        return F.huber_loss(y, t)
    if name == "charbonnier":
        return (torch.sqrt((y - t) ** 2 + 1e-6) - 1e-3).mean()
    return F.l1_loss(y, t) if name == "l1" else F.mse_loss(y, t)


def curve(text, batch, side, dtype, reverse=False):
    opt = dict(pair.split("=", 1) for pair in text.split())
    opt = {key.split(".")[1]: value for key, value in opt.items()}
    shape = (batch, VARIABLES, side, side)
    x = torch.from_numpy(noise("x", int(np.prod(shape))) * np.float32(1.5)).reshape(shape).to(dtype)
    t = torch.from_numpy(noise("t", int(np.prod(shape)))).reshape(shape).to(dtype)
    if reverse:
        x, t = x.flip(0), t.flip(0)
    net = Net(opt, dtype)
    net(x)
    sgd = torch.optim.SGD(list(net.params.values()), 0.02, 0.9)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = loss_of(opt["loss"], net(x), t)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def main(path):
    with open(path, "w") as out:
        out.write("# Written by tools/golden_unet.py with PyTorch %s: each step's loss in double precision, and the largest\n"
                  "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
        out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step\n")
        for name, text, batch, side in CASES:
            out.write(f"model {name} {batch} {VARIABLES} {side} {text} optim.lr=0.02 optim.momentum=0.9\n")
            double = curve(text, batch, side, torch.float64)
            single = [curve(text, batch, side, torch.float32), curve(text, batch, side, torch.float32, True)]
            single += nudged(lambda: curve(text, batch, side, torch.float32))
            for step, d in enumerate(double):
                far = max(abs(s[step] - d) / abs(d) for s in single)
                out.write("%.12g %.2e\n" % (d, far))


if __name__ == "__main__":
    main(sys.argv[1])
