#!/usr/bin/env python3
"""PyTorch on bench/recommender.sh's model: wide & deep of 13 numbers and 26 ids, one sparse table, plain SGD.

usage: peer_recommender.py FILE.h5 [--batch B] [--seconds S] [--threads T] [--rows R] [--bag] [--ddp]
       peer_recommender.py FILE.h5 --check CHECKPOINT.h5 METRICS.jsonl [--lr LR]
FILE: what `weft data make criteo-like` writes; it is read into memory first. --bag: EmbeddingBag in place of Embedding.
--ddp: a process per rank, started by mpirun; gloo; B is the batch of all ranks; dense gradients by DDP's all-reduce, sparse
ones by the all-gather of indices and rows that DDP makes of sparse=True. Prints "rate R /s": all ranks' samples by the time
of all steps of S seconds behind 20 of warm-up.
--check: begins with a checkpoint's values and compares the losses of the steps behind it, all on the whole file, with those
of the metrics; exit code 1 where one is further off than 1e-5.
"""
import argparse
import json
import os
import sys
import time

import h5py
import torch
import torch.nn as nn
import torch.nn.functional as F


class WideDeep(nn.Module):
    def __init__(self, rows, numbers, fields, width=10, hidden=400, bag=False):
        super().__init__()
        self.embedding = nn.EmbeddingBag(rows, width, mode="sum", sparse=True) if bag else nn.Embedding(rows, width, sparse=True)
        self.bag = bag
        self.wide = nn.Linear(numbers, 1)
        widths = [fields * width + numbers, hidden, hidden, hidden]
        layers = []
        for i in range(3):
            layers += [nn.Linear(widths[i], widths[i + 1]), nn.ReLU()]
        self.deep = nn.Sequential(*layers, nn.Linear(hidden, 1))

    def forward(self, x, ids):
        # a bag for each field: EmbeddingBag takes them as samples of one id
        rows = self.embedding(ids.view(-1, 1)) if self.bag else self.embedding(ids)
        return (self.wide(x) + self.deep(torch.cat([rows.reshape(len(x), -1), x], 1))).squeeze(1)


def read(path):
    with h5py.File(path) as f:
        return (torch.from_numpy(f["dense"][:]), torch.from_numpy(f["sparse"][:].astype("int64")), torch.from_numpy(f["y"][:]).float())


def load(model, path):
    with h5py.File(path) as f, torch.no_grad():
        ids = torch.from_numpy(f["tables/embedding/ids"][:].astype("int64"))
        model.embedding.weight[ids] = torch.from_numpy(f["tables/embedding/rows"][:])
        layers = {"wide": model.wide, "deep.0": model.deep[0], "deep.1": model.deep[2], "deep.2": model.deep[4],
                  "deep.output": model.deep[6]}
        for name, layer in layers.items():
            layer.weight.copy_(torch.from_numpy(f[f"params/{name}.weight"][:]))
            layer.bias.copy_(torch.from_numpy(f[f"params/{name}.bias"][:]))


def step(model, optim, x, ids, y):
    optim.zero_grad(set_to_none=True)
    loss = F.binary_cross_entropy_with_logits(model(x, ids), y)
    loss.backward()
    optim.step()
    return loss


def check(model, optim, data, checkpoint, metrics):
    load(model, checkpoint)
    lines = [json.loads(line) for line in open(metrics)]
    worst = 0
    for line in [one for one in lines if "loss" in one][1:]:
        loss = step(model, optim, *data).item()
        worst = max(worst, abs(loss - line["loss"]))
        print(f"step {line['step']}: weft {line['loss']:.8f}, PyTorch {loss:.8f}")
    print(f"largest difference {worst:.2e}")
    return worst <= 1e-5


def measure(model, optim, data, args, rank, world):
    each = args.batch // world
    samples = len(data[0])
    at = rank * each

    def next_batch():
        nonlocal at
        if at + each > samples:
            at = rank * each
        part = tuple(t[at:at + each] for t in data)
        at += args.batch
        return part

    for _ in range(20):
        step(model, optim, *next_batch())
    begun, steps, left = time.perf_counter(), 0, torch.zeros(1)
    # all ranks end behind the same step: rank 0 looks at its clock every 20
    while not left.item():
        for _ in range(20):
            step(model, optim, *next_batch())
        steps += 20
        left[0] = time.perf_counter() - begun >= args.seconds
        if world > 1:
            torch.distributed.broadcast(left, 0)
    seconds = time.perf_counter() - begun
    if rank == 0:
        print(f"torch {torch.__version__} world {world} threads {torch.get_num_threads()} batch {args.batch} steps {steps} "
              f"rate {steps * each * world / seconds:.1f} /s", flush=True)


def arguments():
    """What every form of the model takes."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rows", type=int, default=1000001)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--check", nargs=2)
    return parser


def begin(args, several):
    """several: processes that mpirun has started -> this one's rank, how many there are."""
    torch.manual_seed(0)
    torch.set_num_threads(args.threads)
    if not several:
        return 0, 1
    for name, other in {"RANK": "RANK", "WORLD_SIZE": "SIZE", "LOCAL_RANK": "RANK", "LOCAL_WORLD_SIZE": "SIZE"}.items():
        os.environ[name] = os.environ["OMPI_COMM_WORLD_" + other]
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29512")
    torch.distributed.init_process_group("gloo")
    return torch.distributed.get_rank(), torch.distributed.get_world_size()


def main():
    parser = arguments()
    parser.add_argument("--bag", action="store_true")
    parser.add_argument("--ddp", action="store_true")
    args = parser.parse_args()
    rank, world = begin(args, args.ddp)
    data = read(args.file)
    model = WideDeep(args.rows, data[0].shape[1], data[1].shape[1], bag=args.bag)
    optim = torch.optim.SGD(model.parameters(), args.lr)
    if args.check:
        sys.exit(0 if check(model, optim, data, *args.check) else 1)
    if args.ddp:
        model = nn.parallel.DistributedDataParallel(model)
    measure(model, optim, data, args, rank, world)
    if args.ddp:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
