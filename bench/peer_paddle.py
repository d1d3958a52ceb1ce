#!/usr/bin/env python3
"""PaddlePaddle's parameter server on bench/recommender.sh's model: 1 server, 2 workers, one thread each.

usage: peer_paddle.py FILE.h5 --export FOLDER [--samples N]
       peer_paddle.py FOLDER --mode sync|async|geo [--batch B] [--seconds S] [--warm-up N] [--geo-steps K] [--logs FOLDER]
       peer_paddle.py FOLDER --one-id --mode sync|async|geo [--rule default|sgd] [--batch 1] [--steps N] [--lr LR] [--logs FOLDER]
--export: writes what Paddle's Dataset reads: a file of text for each worker, every second sample (1,000,000 samples: 290 MB).
B: the batch of both workers together. Prints "rate R /s": samples of both workers, from when both begin to when both have ended,
behind a warm-up of twice N samples of both (16384; two batches at least); how many there are is told by the second
half of it, so that they take about S seconds. Samples lie in memory
(InMemoryDataset) before the clock starts. A mode that does not run: "fails: " and its message, exit code 1.
--one-id: a row of 10 added to a dense layer of 2 numbers; what the row and the dense part are before each step.
Needs Python 3.11, paddlepaddle 2.6.2, numpy < 2, protobuf 4.25, setuptools; h5py for --export.
"""
import argparse
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

WORKERS = 2


def export(path, folder, samples):
    import h5py
    import numpy as np

    with h5py.File(path) as f:
        many = min(samples, len(f["y"]))
        dense, ids, y = f["dense"][:many], f["sparse"][:many].astype(np.int64), f["y"][:many]
    os.makedirs(folder, exist_ok=True)
    for worker in range(WORKERS):
        with open(f"{folder}/worker-{worker}.txt", "w") as out:
            for i in range(worker, many, WORKERS):
                numbers = " ".join(f"{v:.6g}" for v in dense[i])
                out.write(f"{ids.shape[1]} {' '.join(map(str, ids[i]))} {dense.shape[1]} {numbers} 1 {float(y[i])}\n")


def wide_deep(paddle, args):
    """FleetX's model on one table -> the loss, the inputs, the table's name."""
    nn, static = paddle.nn, paddle.static
    ids, x, y = static.data("ids", [-1, 26], "int64"), static.data("x", [-1, 13], "float32"), static.data("y", [-1, 1], "float32")
    hidden = paddle.concat([paddle.reshape(lookup(paddle, paddle.reshape(ids, [-1, 1]), 1000001, args), [-1, 260]), x], axis=1)
    for i in range(3):
        fan_in = hidden.shape[1]
        weight = paddle.ParamAttr(initializer=nn.initializer.Normal(0, fan_in ** -0.5))
        hidden = static.nn.fc(hidden, 400, activation="relu", weight_attr=weight)
    logit = static.nn.fc(hidden, 1) + static.nn.fc(x, 1)
    return paddle.mean(nn.functional.binary_cross_entropy_with_logits(logit, y)), [ids, x, y], []


def one_id(paddle, args):
    nn, static = paddle.nn, paddle.static
    ids, x, y = static.data("ids", [-1, 1], "int64"), static.data("x", [-1, 2], "float32"), static.data("y", [-1, 1], "float32")
    row = paddle.reshape(lookup(paddle, ids, 1001, args), [-1, 10])
    half = nn.initializer.Constant(0.5)
    dense = static.nn.fc(x, 1, weight_attr=paddle.ParamAttr(name="w", initializer=half), bias_attr=paddle.ParamAttr(name="b"))
    loss = paddle.mean(nn.functional.binary_cross_entropy_with_logits(paddle.sum(row, axis=1, keepdim=True) + dense, y))
    return loss, [ids, x, y], [loss, row]


def lookup(paddle, ids, rows, args):
    table = paddle.ParamAttr(name="table", initializer=paddle.nn.initializer.Uniform(-1, 1))
    if args.mode == "geo":  # each worker has a copy of the table
        return paddle.static.nn.embedding(ids, [rows, 10], is_sparse=True, param_attr=table)
    return paddle.static.nn.sparse_embedding(ids, [rows, 10], param_attr=table)


def strategy_of(fleet, args):
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = args.mode != "sync"
    strategy.a_sync_configs = {"k_steps": args.geo_steps if args.mode == "geo" else 0}
    if args.mode != "geo" and args.rule == "sgd":
        # without this rows get Adam where the optimizer is SGD
        table = strategy.sparse_table_configs.add()
        table.table_name, table.table_class, table.shard_num = "table", "MemorySparseTable", 1000
        accessor = table.accessor
        accessor.accessor_class, accessor.fea_dim, accessor.embedx_dim, accessor.embedx_threshold = "SparseAccessor", 12, 9, 0
        for rule in (accessor.embed_sgd_param, accessor.embedx_sgd_param):
            rule.name = "SparseNaiveSGDRule"
            rule.naive.learning_rate, rule.naive.initial_range = args.lr, 1.0
            rule.naive.weight_bounds.extend([-10, 10])
    return strategy


def run_role(args):
    import numpy as np
    import paddle
    from paddle.distributed import fleet

    paddle.enable_static()
    paddle.seed(1)
    fleet.init(fleet.PaddleCloudRoleMaker())
    loss, inputs, shown = one_id(paddle, args) if args.one_id else wide_deep(paddle, args)
    optim = fleet.distributed_optimizer(paddle.optimizer.SGD(args.lr), strategy_of(fleet, args))
    optim.minimize(loss)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        print("server ends by itself", flush=True)
        return
    worker = fleet.worker_index()
    executor = paddle.static.Executor(paddle.CPUPlace())
    executor.run(paddle.static.default_startup_program())
    fleet.init_worker()
    program = paddle.static.default_main_program()

    def load(samples):
        data = paddle.distributed.InMemoryDataset()
        each = args.batch if args.one_id else args.batch // WORKERS
        data.init(batch_size=each, thread_num=1, use_var=inputs, pipe_command=f"head -n {samples}")
        data.set_filelist([f"{args.file}/one-id.txt" if args.one_id else f"{args.file}/worker-{worker}.txt"])
        data.load_into_memory()
        return data, data.get_memory_data_size()

    def train(data):
        # all begin together
        fleet.util.barrier()
        begun = time.time()
        executor.train_from_dataset(program, data, fetch_list=shown, fetch_info=["loss", "row"][:len(shown)], print_period=1 if shown else 10 ** 9)
        return begun, time.time()

    if args.one_id:
        for turn in range(2):
            train(load(args.steps * args.batch)[0])
            scope = paddle.static.global_scope()
            print(f"dense behind pass {turn}: w {np.array(scope.find_var('w').get_tensor()).ravel()}", flush=True)
    else:
        whole = args.batch // WORKERS
        few, many = load(max(args.warm_up // args.batch, 2) * whole)
        train(few)
        begun, ended = train(few)
        # both workers take the same number of samples: the slower one's rate of the warm-up tells it
        slowest = float(fleet.util.all_reduce(np.array([ended - begun]), mode="max")[0])
        few.release_memory()
        data, many = load(max(int(many / slowest * args.seconds) // whole * whole, whole))
        begun, ended = train(data)
        print(f"worker {worker} samples {many} begun {begun:.3f} ended {ended:.3f}", flush=True)
        fleet.util.barrier()
    fleet.stop_worker()
    print("worker ends by itself", flush=True)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def start(role, number, ports, rendezvous, log):
    workers = 1 if "--one-id" in sys.argv else WORKERS
    env = dict(os.environ, CPU_NUM="1", OMP_NUM_THREADS="1", PYTHONHASHSEED="0", POD_IP="127.0.0.1", TRAINING_ROLE=role,
               PADDLE_PSERVERS_IP_PORT_LIST=f"127.0.0.1:{ports[0]}", PADDLE_TRAINERS_NUM=str(workers), PADDLE_TRAINER_ID=str(number),
               PADDLE_PORT=str(ports[0 if role == "PSERVER" else 1 + number]),
               PADDLE_TRAINER_ENDPOINTS=",".join(f"127.0.0.1:{port}" for port in ports[1:]),
               PADDLE_WITH_GLOO="1", PADDLE_GLOO_RENDEZVOUS="2", PADDLE_GLOO_FS_PATH=rendezvous)
    return subprocess.Popen([sys.executable, os.path.abspath(__file__), *sys.argv[1:], "--role"], env=env, stdout=log, stderr=log,
                            cwd=rendezvous)


def message_of(log):
    text = open(log).read()
    found = re.search(r"FatalError: (.*)|^(\w*Error: .*)", text, re.M)
    where = re.findall(r"paddle::operators::(\w+)::", text)
    return " ".join((found.group(0) if found else text[-300:]).split()) + (f" in {where[-1]}" if where else "")


def run_all(args):
    with tempfile.TemporaryDirectory() as rendezvous:
        return run_in(args, rendezvous)


def run_in(args, rendezvous):
    """Starts the roles, waits for the workers, ends the server, which does not end by itself."""
    folder = args.logs or rendezvous
    os.makedirs(folder, exist_ok=True)
    args.workers = 1 if args.one_id else WORKERS
    if args.one_id:
        with open(f"{args.file}/one-id.txt", "w") as out:
            out.write("1 7 2 1.0 2.0 1 1.0\n" * (args.steps * args.batch))
    ports = free_ports(1 + args.workers)
    roles = [("PSERVER", 0)] + [("TRAINER", i) for i in range(args.workers)]
    logs = [os.path.join(folder, "server.log")] + [os.path.join(folder, f"worker-{i}.log") for i in range(args.workers)]
    started = [start(*role, ports, rendezvous, open(log, "w")) for role, log in zip(roles, logs)]
    failed = None
    while failed is None and any(one.poll() is None for one in started[1:]):
        time.sleep(0.1)
        failed = next((i for i, one in enumerate(started) if one.poll() not in (None, 0)), None)
    if failed is None and args.one_id:
        time.sleep(5)
        print("server ended by itself" if started[0].poll() is not None else "server still runs 5 s behind its last worker")
    for one in started:
        if one.poll() is None:
            one.send_signal(signal.SIGKILL)
        one.wait()
    if failed is not None:
        print(f"fails: {roles[failed][0].lower()} {roles[failed][1]}, exit code {started[failed].returncode}: {message_of(logs[failed])}")
        return 1
    if args.one_id:
        print("".join(re.findall(r".*(?:batch: |behind pass).*\n", open(logs[1]).read())), end="")
        return 0
    told = [re.search(r"samples (\d+) begun (\S+) ended (\S+)", open(log).read()).groups() for log in logs[1:]]
    seconds = max(float(one[2]) for one in told) - min(float(one[1]) for one in told)
    samples = sum(int(one[0]) for one in told)
    print(f"paddle mode {args.mode} batch {args.batch} samples {samples} seconds {seconds:.1f} rate {samples / seconds:.1f} /s")
    return 0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("file")
    parser.add_argument("--export")
    parser.add_argument("--samples", type=int, default=1000000)
    parser.add_argument("--mode", choices=["sync", "async", "geo"], default="async")
    parser.add_argument("--batch", type=int, default=512)
    parser.add_argument("--seconds", type=float, default=15)
    parser.add_argument("--geo-steps", type=int, default=100)
    parser.add_argument("--warm-up", type=int, default=16384)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--rule", choices=["default", "sgd"], default="sgd")
    parser.add_argument("--one-id", action="store_true")
    parser.add_argument("--steps", type=int, default=1)
    parser.add_argument("--logs")
    parser.add_argument("--role", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.file = os.path.abspath(args.file)
    if args.export:
        export(args.file, args.export, args.samples)
    elif args.role:
        run_role(args)
    else:
        sys.exit(run_all(args))


if __name__ == "__main__":
    main()
