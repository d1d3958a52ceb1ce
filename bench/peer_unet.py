"""A unet as weft's model unet in PyTorch: time of a training step on random fields.

usage: peer_unet.py HEIGHT WIDTH BATCH THREADS [eager|channels_last|compile|compile_last|ddp] [CHANNELS,...] [NORM] [UP] [PAD] [VARIABLES]
       ddp: under torchrun, BATCH and THREADS of each process
Channels are those of each level (32,64,128,256), NORM group, batch or none, UP nearest, bilinear or transpose, PAD zero or circular.
"""
import os, sys, time
import torch
from torch import nn
import torch.nn.functional as F


class Block(nn.Module):
    def __init__(self, a, b, norm, pad):
        super().__init__()
        bias, mode = norm == "none", {"zero": "zeros"}.get(pad, pad)
        layers = []
        for i in range(2):
            layers.append(nn.Conv2d(a if i == 0 else b, b, 3, padding=1, bias=bias, padding_mode=mode))
            if norm == "group":
                layers.append(nn.GroupNorm(max(1, b // 8), b))
            elif norm == "batch":
                layers.append(nn.BatchNorm2d(b))
            layers.append(nn.SiLU(inplace=True))
        self.layers = nn.Sequential(*layers)

    def forward(self, x):
        return self.layers(x)


class UNet(nn.Module):
    def __init__(self, variables, channels, norm, up, pad):
        super().__init__()
        self.up, ins = up, [variables] + channels[:-1]
        self.down = nn.ModuleList(Block(a, b, norm, pad) for a, b in zip(ins, channels))
        pairs = list(zip(channels[:-1], channels[1:]))[::-1]
        self.raise_ = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, 2) if up == "transpose" else nn.Identity() for a, b in pairs)
        self.join = nn.ModuleList(Block(a + (a if up == "transpose" else b), a, norm, pad) for a, b in pairs)
        self.head = nn.Conv2d(channels[0], variables, 1)

    def forward(self, x):
        kept = []
        for i, block in enumerate(self.down):
            x = block(F.max_pool2d(x, 2) if i else x)
            kept.append(x)
        kept.pop()
        for raise_, join in zip(self.raise_, self.join):
            x = raise_(x)
            if self.up != "transpose":
                x = F.interpolate(x, scale_factor=2, mode=self.up)
            x = join(torch.cat((kept.pop(), x), 1))
        return self.head(x)


def main():
    a = sys.argv[1:] + [""] * 10
    height, width, batch, threads, kind = int(a[0]), int(a[1]), int(a[2]), int(a[3]), a[4] or "eager"
    channels = [int(c) for c in (a[5] or "32,64,128,256").split(",")]
    norm, up, pad, variables = a[6] or "group", a[7] or "nearest", a[8] or "zero", int(a[9] or 8)
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    net = UNet(variables, channels, norm, up, pad)
    x, y = torch.randn(batch, variables, height, width), torch.randn(batch, variables, height, width)
    if kind.endswith("last"):
        net, x, y = net.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last), y.to(memory_format=torch.channels_last)
    if kind.startswith("compile"):
        net = torch.compile(net)
    ranks = 1
    if kind == "ddp":
        torch.distributed.init_process_group("gloo")
        ranks = torch.distributed.get_world_size()
        net = nn.parallel.DistributedDataParallel(net)
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        F.mse_loss(net(x), y).backward()
        optimizer.step()

    for _ in range(5):
        step()
    times = []
    for _ in range(20):
        begun = time.perf_counter()
        step()
        times.append(time.perf_counter() - begun)
    times.sort()
    peak = int([l for l in open("/proc/self/status") if l.startswith("VmHWM")][0].split()[1]) * 1024 / 1e6
    if int(os.environ.get("RANK", "0")) == 0:
        print(f"{kind} {height}x{width} batch {batch} x {ranks}: {1000 * times[10]:.1f} ms a step, "
              f"{ranks * batch / times[10]:.2f} samples/s, peak {peak:.0f} MB")


main()
