#!/usr/bin/env python3
"""Golden values of train.sync_batch_norm, from two processes of PyTorch.

usage: golden_sync_bn.py DIRECTORY      writes sync_bn.txt there (tests/golden); needs numpy and torch

PyTorch's SyncBatchNorm runs on GPUs only. Here its mathematics (torch/nn/modules/_functions.py: counts, means and squares gathered in
forward; sums of dy and dy xhat in backward; running variance unbiased over the global count) is written with all_reduce, and two real
processes talk over gloo: process 0 has 8 samples, process 1 has 5. The loss is the mean over all 13, gradients are summed. Weights
and data are a formula (golden_optim.py). Losses are in double precision; beside each stands how far the same run in single precision
strays. Then the first numbers of each tensor after the last step.
"""
import os
import sys
import tempfile

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import torch.nn as nn
import torch.nn.functional as F

from golden_models import param
from golden_optim import fnv, noise

STEPS, SHOWN = 10, 6
ROWS = (8, 5)
CHANNELS, IMAGE, CLASSES = 3, 8, 5
LR, MOMENTUM = 0.05, 0.9


class SyncStatistics(torch.autograd.Function):
    """(x, weight, bias) -> y, mean, unbiased variance; channels are dim 1."""

    @staticmethod
    def forward(ctx, x, weight, bias, eps):
        dims = [d for d in range(x.dim()) if d != 1]
        shape = [1, -1] + [1] * (x.dim() - 2)
        count = torch.tensor([x.numel() / x.size(1)], dtype=x.dtype)
        both = torch.cat([x.sum(dims), count])
        dist.all_reduce(both)
        n = both[-1]
        mean = both[:-1] / n
        square = ((x - mean.view(shape)) ** 2).sum(dims)
        dist.all_reduce(square)
        inverse = (square / n + eps).rsqrt()
        xhat = (x - mean.view(shape)) * inverse.view(shape)
        ctx.save_for_backward(xhat, weight, inverse, n)
        ctx.dims, ctx.shape = dims, shape
        ctx.mark_non_differentiable(mean, square)
        return xhat * weight.view(shape) + bias.view(shape), mean, square / (n - 1)

    @staticmethod
    def backward(ctx, dy, *_):
        xhat, weight, inverse, n = ctx.saved_tensors
        shape = ctx.shape
        dbias, dweight = dy.sum(ctx.dims), (dy * xhat).sum(ctx.dims)
        both = torch.stack([dbias, dweight])
        dist.all_reduce(both)
        mean, mean_x = both[0] / n, both[1] / n
        dx = (dy - mean.view(shape) - xhat * mean_x.view(shape)) * (weight * inverse).view(shape)
        return dx, dweight, dbias, None


class SyncNorm(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.weight, self.bias = nn.Parameter(torch.ones(channels)), nn.Parameter(torch.zeros(channels))
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(self, x):
        y, mean, variance = SyncStatistics.apply(x, self.weight, self.bias, 1e-5)
        with torch.no_grad():
            self.running_mean.mul_(0.9).add_(0.1 * mean)
            self.running_var.mul_(0.9).add_(0.1 * variance)
        return y


class Net(nn.Module):
    """As the list of layers in tests/train/test_sync_np4.c, with its names."""

    def __init__(self):
        super().__init__()
        self.conv2d1 = nn.Conv2d(CHANNELS, 6, 3, padding=1, bias=False)
        self.batch_norm1 = SyncNorm(6)
        self.conv2d2 = nn.Conv2d(6, 20, 3, 2, padding=1, bias=False)
        self.batch_norm2 = SyncNorm(20)
        self.dense1 = nn.Linear(20 * (IMAGE // 2) ** 2, 12)
        self.batch_norm3 = SyncNorm(12)
        self.dense2 = nn.Linear(12, CLASSES)

    def forward(self, x):
        x = F.relu(self.batch_norm1(self.conv2d1(x)))
        x = F.relu(self.batch_norm2(self.conv2d2(x)))
        x = F.relu(self.batch_norm3(self.dense1(x.flatten(1))))
        return self.dense2(x)


def data():
    n = sum(ROWS)
    pixels = np.floor((noise("x", n * CHANNELS * IMAGE * IMAGE).astype(np.float64) + 1) * 128)
    x = (pixels / 255).reshape(n, CHANNELS, IMAGE, IMAGE)
    return torch.from_numpy(x), torch.tensor([fnv(f"y{i}") % CLASSES for i in range(n)])


def train(rank, where, kind, out):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{where}/{kind}", rank=rank, world_size=len(ROWS))
    x, y = data()
    first = sum(ROWS[:rank])
    mine = slice(first, first + ROWS[rank])
    net = Net()
    for name, p in net.named_parameters():
        p.data = param(name, tuple(p.shape))
    net = net.to(kind)
    rule = torch.optim.SGD(net.parameters(), lr=LR, momentum=MOMENTUM)
    losses = []
    for _ in range(STEPS):
        rule.zero_grad()
        loss = F.cross_entropy(net(x[mine].to(kind)), y[mine], reduction="sum") / sum(ROWS)
        loss.backward()
        for p in net.parameters():
            dist.all_reduce(p.grad)
        whole = loss.detach().clone()
        dist.all_reduce(whole)
        losses.append(whole.item())
        rule.step()
    if rank == 0:
        out.put((losses, {k: v.flatten()[:SHOWN].tolist() for k, v in net.state_dict().items()}))
    dist.barrier()
    dist.destroy_process_group()


def run(kind):
    out = mp.get_context("spawn").SimpleQueue()
    with tempfile.TemporaryDirectory() as where:
        ranks = mp.spawn(train, (where, kind, out), nprocs=len(ROWS), join=False)
        result = out.get()
        while not ranks.join():
            pass
    return result


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    double, tensors = run(torch.float64)
    single, _ = run(torch.float32)
    with open(os.path.join(sys.argv[1], "sync_bn.txt"), "w") as f:
        f.write("# Written by tools/golden_sync_bn.py with PyTorch %s, two processes.\n" % torch.__version__)
        f.write("# model NAME SAMPLES CHANNELS IMAGE OPTIONS, then one line a step: loss, how far single precision strays\n")
        f.write(f"model sync {sum(ROWS)} {CHANNELS} {IMAGE} optim.lr={LR} optim.momentum={MOMENTUM}\n")
        for d, s in zip(double, single):
            f.write(f"{d:.12g} {abs(s - d) / d:.2e}\n")
        f.write("# tensor NAME first numbers, after the last step\n")
        for name, values in tensors.items():
            f.write("tensor %s %s\n" % (name, " ".join(f"{v:.9g}" for v in values)))
