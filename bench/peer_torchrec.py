#!/usr/bin/env python3
"""TorchRec on bench/recommender.sh's model: one table by fbgemm's fused SGD on a CPU, the rest as in peer_recommender.py.

usage: peer_torchrec.py FILE.h5 [--batch B] [--seconds S] [--threads T] [--sharding table_wise|row_wise|column_wise|data_parallel]
       peer_torchrec.py FILE.h5 --check CHECKPOINT.h5 METRICS.jsonl [--lr LR]
--sharding: a process per rank, started by mpirun; gloo; B is the batch of all ranks; DistributedModelParallel shards the table and
adds up dense gradients. Without it: one process, FusedEmbeddingBagCollection. Output and --check: see peer_recommender.py.
Needs torchrec 1.9.2, fbgemm-gpu-cpu 1.9.0 and the torch that it was built for, 2.14.
"""
import sys

import torch
import torch.nn as nn
from torchrec import EmbeddingBagCollection, EmbeddingBagConfig, KeyedJaggedTensor, PoolingType
from torchrec.modules.fused_embedding_modules import FusedEmbeddingBagCollection

import peer_recommender as peer

FIELDS = [f"field{i}" for i in range(26)]
# fbgemm wants rows of a multiple of 4: two columns more, which the model leaves out, so that their gradients are zeros
WIDTH, STORED = 10, 12


class WideDeep(nn.Module):
    def __init__(self, args):
        super().__init__()
        config = EmbeddingBagConfig(name="table", embedding_dim=STORED, num_embeddings=args.rows, feature_names=FIELDS,
                                    pooling=PoolingType.SUM, init_fn=lambda rows: nn.init.uniform_(rows, -1, 1))
        if args.sharding:
            self.bags = EmbeddingBagCollection(tables=[config], device=torch.device("meta"))
        else:
            self.bags = FusedEmbeddingBagCollection(tables=[config], optimizer_type=torch.optim.SGD, optimizer_kwargs={"lr": args.lr},
                                                    device=torch.device("cpu"))
        # wide and deep only: one row stands for the table
        rest = peer.WideDeep(1, 13, len(FIELDS), width=WIDTH)
        self.wide, self.deep = rest.wide, rest.deep

    def forward(self, x, ids):
        bags = KeyedJaggedTensor(FIELDS, ids.t().reshape(-1), lengths=torch.ones(ids.numel(), dtype=torch.int64))
        rows = self.bags(bags).values().view(len(x), len(FIELDS), STORED)[:, :, :WIDTH].reshape(len(x), -1)
        return (self.wide(x) + self.deep(torch.cat([rows, x], 1))).squeeze(1)


class Table:
    """The table as peer_recommender.load wants it."""

    def __init__(self, bags):
        self.weight = next(t for name, t in bags.state_dict().items() if name.endswith("table.weight"))[:, :WIDTH]


def shard(model, args):
    from torch.distributed.optim import _apply_optimizer_in_backward
    from torchrec.distributed import DistributedModelParallel
    from torchrec.distributed.embeddingbag import EmbeddingBagCollectionSharder
    from torchrec.distributed.planner import EmbeddingShardingPlanner, ParameterConstraints, Topology

    _apply_optimizer_in_backward(torch.optim.SGD, model.bags.parameters(), {"lr": args.lr})
    sharders = [EmbeddingBagCollectionSharder()]
    limits = {"table": ParameterConstraints(sharding_types=[args.sharding], compute_kernels=["dense"] if args.sharding == "data_parallel" else ["fused"])}
    planner = EmbeddingShardingPlanner(topology=Topology(world_size=torch.distributed.get_world_size(), compute_device="cpu"), constraints=limits)
    plan = planner.collective_plan(model, sharders, torch.distributed.group.WORLD)
    return DistributedModelParallel(model, device=torch.device("cpu"), plan=plan, sharders=sharders)


def main():
    parser = peer.arguments()
    parser.add_argument("--sharding", choices=["table_wise", "row_wise", "column_wise", "data_parallel"])
    args = parser.parse_args()
    rank, world = peer.begin(args, args.sharding)
    data = peer.read(args.file)
    model = WideDeep(args)
    if args.check:
        model.embedding = Table(model.bags)
    dense = [p for name, p in model.named_parameters() if not name.startswith("bags.")]
    if args.sharding:
        model = shard(model, args)
        dense = [p for name, p in model.named_parameters() if "bags." not in name]
    optim = torch.optim.SGD(dense, args.lr)
    if args.check:
        sys.exit(0 if peer.check(model, optim, data, *args.check) else 1)
    peer.measure(model, optim, data, args, rank, world)
    if args.sharding:
        torch.distributed.destroy_process_group()


if __name__ == "__main__":
    main()
