"""A perceptron of 28 inputs and five layers of 300 with tanh (the shape of HIGGS) in PyTorch: time of a training step.

usage: peer_tanh.py BATCH THREADS [eager|compile|ddp]      ddp: under torchrun, BATCH and THREADS of each process
"""
import os, sys, time
import torch
from torch import nn
import torch.nn.functional as F

batch, threads, kind = int(sys.argv[1]), int(sys.argv[2]), (sys.argv + ["eager"] * 4)[3]
torch.set_num_threads(threads)
torch.manual_seed(1)
layers, width = [], 28
for _ in range(5):
    layers += [nn.Linear(width, 300), nn.Tanh()]
    width = 300
net = nn.Sequential(*layers, nn.Linear(300, 2))
x, y = torch.randn(batch, 28), torch.randint(2, (batch,))
ranks = 1
if kind == "compile":
    net = torch.compile(net)
if kind == "ddp":
    torch.distributed.init_process_group("gloo")
    ranks = torch.distributed.get_world_size()
    net = nn.parallel.DistributedDataParallel(net)
optimizer = torch.optim.Adam(net.parameters(), lr=1e-3, fused=True)


def step():
    optimizer.zero_grad(set_to_none=True)
    F.cross_entropy(net(x), y).backward()
    optimizer.step()


for _ in range(50):
    step()
times = []
for _ in range(500):
    begun = time.perf_counter()
    step()
    times.append(time.perf_counter() - begun)
times.sort()
if int(os.environ.get("RANK", "0")) == 0:
    print(f"{kind} batch {batch} x {ranks}: {1e6 * times[250]:.0f} us a step, {ranks * batch / times[250]:.0f} samples/s")
