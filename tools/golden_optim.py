#!/usr/bin/env python3
"""Golden values of optimizers and learning-rate curves, from PyTorch and (LARS, LAMB, Lion, Muon, FTRL) from the papers.

usage: golden_optim.py DIRECTORY        writes optim.txt there (tests/golden); needs numpy and torch
       golden_optim.py --only WORD      prints the cases of one rule or curve, to be added to that file; needs torch for curves
                                        and for PyTorch's own rules

A new rule is a case in OPTIMS and a function in RUNS: from numbers of the options to the tensors after UPDATES updates. A new curve
is a case in CURVES and a branch in lr_curve: PyTorch's scheduler, or LambdaLR with the formula of the paper. Without Python a case is
written by hand; the file's first lines say what stands in it.
"""
import math
import sys

import numpy as np


def fnv(name):
    h = 2166136261
    for c in name.encode():
        h = ((h ^ c) * 16777619) & 0xFFFFFFFF
    return h


def noise(name, n):
    """n floats in [-1, 1), multiples of 2^-23."""
    h = (np.arange(n, dtype=np.uint64) * 0x9E3779B9 + fnv(name)) & 0xFFFFFFFF
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = ((h ^ (h >> shift)) * factor) & 0xFFFFFFFF
    h ^= h >> 16
    return ((h >> 8).astype(np.float32) - np.float32(8388608)) * np.float32(2.0 ** -23)


def options(text):
    return dict((k.split(".")[1], v) for k, v in (pair.split("=") for pair in text.split()))


TENSORS = [("a", 7, True), ("b", 20, True), ("c", 5, False)]  # name, elements, decays
UPDATES = 6
OPTIMS = [
    "optim.name=sgd optim.lr=0.1",
    "optim.name=sgd optim.lr=0.1 optim.weight_decay=0.01",
    "optim.name=sgd optim.lr=0.1 optim.momentum=0.9",
    "optim.name=sgd optim.lr=0.1 optim.momentum=0.9 optim.weight_decay=0.01 optim.decay_all=true",
    "optim.name=sgd optim.lr=0.1 optim.momentum=0.8 optim.nesterov=true optim.weight_decay=0.02",
    "optim.name=sgd optim.lr=0.1 optim.momentum=0.9 optim.clip=0.5",
    "optim.name=adam optim.lr=0.01",
    "optim.name=adam optim.lr=0.01 optim.weight_decay=0.1 optim.beta1=0.8 optim.beta2=0.95",
    "optim.name=adamw optim.lr=0.01 optim.weight_decay=0.1",
    "optim.name=adamw optim.lr=0.01 optim.weight_decay=0.1 optim.eps=0.001 optim.decay_all=true",
    "optim.name=lars optim.lr=2.0 optim.momentum=0.9 optim.weight_decay=0.01 optim.trust=0.02",
    "optim.name=lamb optim.lr=0.01 optim.weight_decay=0.1 optim.eps=1e-6",
    "optim.name=lion optim.lr=0.01 optim.weight_decay=0.1",
    "optim.name=lion optim.lr=0.02 optim.beta1=0.8 optim.beta2=0.95 optim.clip=0.5",
    "optim.name=lbfgs optim.lr=5.0",
    "optim.name=lbfgs optim.lr=3.0 optim.history=2",
    "optim.name=lbfgs optim.lr=2.0 optim.history=1 optim.weight_decay=0.1 optim.clip=0.5",
    "optim.name=adagrad optim.lr=0.1",
    "optim.name=adagrad optim.lr=0.1 optim.weight_decay=0.1 optim.eps=0.01 optim.clip=0.5",
    "optim.name=ftrl optim.lr=0.1 optim.l1=0.2 optim.l2=0.1",
    "optim.name=ftrl optim.lr=0.5 optim.l1=0.9 optim.beta=0.1 optim.weight_decay=0.1 optim.decay_all=true",
]
MATRICES = [  # options, shape
    ("optim.name=muon optim.lr=0.02 optim.weight_decay=0.1", (12, 20)),
    ("optim.name=muon optim.lr=0.02", (40, 10)),
    ("optim.name=muon optim.lr=0.02 optim.nesterov=false optim.momentum=0.8", (16, 16)),
    ("optim.name=muon optim.lr=0.01 optim.lr_adjust=match_rms optim.weight_decay=0.1", (33, 300)),
    ("optim.name=muon optim.lr=0.02", (8, 3, 3, 3)),
    ("optim.name=muon optim.lr=0.02", (24, 1, 3, 3)),
    ("optim.name=muon optim.lr=0.02", (1, 5)),
]


def rate(lr, t):
    """Changes from step to step, so that it matters whether momentum holds rates."""
    return lr * (1 - 0.1 * t)


def start(name, n):
    return noise("w." + name, n).astype(np.float64)


def gradient(name, n, t):
    return noise(f"g{t}.{name}", n).astype(np.float64)


def torch_run(o):
    import torch
    lr, wd, all_ = float(o["lr"]), float(o.get("weight_decay", 0)), o.get("decay_all") == "true"
    w = {n: torch.nn.Parameter(torch.from_numpy(start(n, k))) for n, k, _ in TENSORS}
    groups = [{"params": [w[n]], "weight_decay": wd if d or all_ else 0.0} for n, _, d in TENSORS]
    betas = (float(o.get("beta1", 0.9)), float(o.get("beta2", 0.999)))
    if o["name"] == "sgd":
        opt = torch.optim.SGD(groups, lr, float(o.get("momentum", 0)), nesterov=o.get("nesterov") == "true")
    elif o["name"] == "adagrad":
        opt = torch.optim.Adagrad(groups, lr, eps=float(o.get("eps", 1e-10)))
    else:
        kind = {"adam": torch.optim.Adam, "adamw": torch.optim.AdamW}[o["name"]]
        opt = kind(groups, lr, betas, float(o.get("eps", 1e-8)))
    for t in range(UPDATES):
        for n, k, _ in TENSORS:
            w[n].grad = torch.from_numpy(gradient(n, k, t))
        if "clip" in o:
            torch.nn.utils.clip_grad_norm_(w.values(), float(o["clip"]))
        for g in opt.param_groups:
            g["lr"] = rate(lr, t)
        opt.step()
    return {n: p.detach().numpy() for n, p in w.items()}


def lbfgs_run(o):
    """PyTorch's LBFGS without a line search, one iteration a step."""
    import torch
    lr, wd = float(o["lr"]), float(o.get("weight_decay", 0))
    w = {n: torch.nn.Parameter(torch.from_numpy(start(n, k))) for n, k, _ in TENSORS}
    opt = torch.optim.LBFGS(list(w.values()), lr, max_iter=1, history_size=int(o.get("history", 10)))
    for t in range(UPDATES):
        for n, k, _ in TENSORS:
            w[n].grad = torch.from_numpy(gradient(n, k, t))
        if "clip" in o:
            torch.nn.utils.clip_grad_norm_(w.values(), float(o["clip"]))
        for n, _, decay in TENSORS:
            w[n].grad += (wd if decay else 0.0) * w[n].detach()
        opt.param_groups[0]["lr"] = rate(lr, t)
        opt.step(lambda: torch.zeros(()))
    return {n: p.detach().numpy() for n, p in w.items()}


def lars_run(o):
    """You, Gitman & Ginsburg 2017, algorithm 1."""
    lr, mu, beta, eta = float(o["lr"]), float(o["momentum"]), float(o["weight_decay"]), float(o["trust"])
    w = {n: start(n, k) for n, k, _ in TENSORS}
    v = {n: np.zeros(k) for n, k, _ in TENSORS}
    for t in range(UPDATES):
        for n, k, decay in TENSORS:
            g, local, b = gradient(n, k, t), 1.0, beta if decay else 0.0
            if decay:
                local = eta * np.linalg.norm(w[n]) / (np.linalg.norm(g) + b * np.linalg.norm(w[n]))
            v[n] = mu * v[n] + rate(lr, t) * local * (g + b * w[n])
            w[n] = w[n] - v[n]
    return w


def lamb_run(o):
    """You et al. 2020, algorithm 2, phi the identity."""
    lr, wd, eps, b1, b2 = float(o["lr"]), float(o["weight_decay"]), float(o["eps"]), 0.9, 0.999
    w = {n: start(n, k) for n, k, _ in TENSORS}
    m = {n: np.zeros(k) for n, k, _ in TENSORS}
    v = {n: np.zeros(k) for n, k, _ in TENSORS}
    for t in range(UPDATES):
        for n, k, decay in TENSORS:
            g = gradient(n, k, t)
            m[n] = b1 * m[n] + (1 - b1) * g
            v[n] = b2 * v[n] + (1 - b2) * g * g
            r = m[n] / (1 - b1 ** (t + 1)) / (np.sqrt(v[n] / (1 - b2 ** (t + 1))) + eps)
            u = r + (wd if decay else 0.0) * w[n]
            w[n] = w[n] - rate(lr, t) * np.linalg.norm(w[n]) / np.linalg.norm(u) * u
    return w


def lion_run(o):
    """Chen et al. 2023, algorithm 2."""
    lr, wd = float(o["lr"]), float(o.get("weight_decay", 0))
    b1, b2 = float(o.get("beta1", 0.9)), float(o.get("beta2", 0.99))
    w = {n: start(n, k) for n, k, _ in TENSORS}
    m = {n: np.zeros(k) for n, k, _ in TENSORS}
    for t in range(UPDATES):
        g = {n: gradient(n, k, t) for n, k, _ in TENSORS}
        norm = math.sqrt(sum(float((x * x).sum()) for x in g.values()))
        scale = float(o["clip"]) / norm if norm > float(o.get("clip", math.inf)) else 1.0
        for n, k, decay in TENSORS:
            x = g[n] * scale
            c = b1 * m[n] + (1 - b1) * x
            w[n] = w[n] - rate(lr, t) * (np.sign(c) + (wd if decay else 0.0) * w[n])
            m[n] = b2 * m[n] + (1 - b2) * x
    return w


def ftrl_run(o):
    """McMahan et al. 2013, algorithm 1, where z is what the weights, that begin anywhere, follow from at this step's rate."""
    l1, l2, beta = (float(o.get(k, d)) for k, d in (("l1", 0), ("l2", 0), ("beta", 1)))
    wd, all_ = float(o.get("weight_decay", 0)), o.get("decay_all") == "true"
    w = {n: start(n, k) for n, k, _ in TENSORS}
    z = {n: np.zeros(k) for n, k, _ in TENSORS}
    squares = {n: np.zeros(k) for n, k, _ in TENSORS}
    for t in range(UPDATES):
        alpha = rate(float(o["lr"]), t)
        for n, k, decay in TENSORS:
            g = gradient(n, k, t) + (wd if decay or all_ else 0.0) * w[n]
            z[n] = np.where(w[n] == 0, z[n], -w[n] * ((beta + np.sqrt(squares[n])) / alpha + l2) - l1 * np.sign(w[n]))
            sigma = (np.sqrt(squares[n] + g * g) - np.sqrt(squares[n])) / alpha
            z[n] = z[n] + g - sigma * w[n]
            squares[n] = squares[n] + g * g
            held = (beta + np.sqrt(squares[n])) / alpha + l2
            w[n] = np.where(np.abs(z[n]) <= l1, 0.0, -(z[n] - np.sign(z[n]) * l1) / held)
    return w


def orthogonal(g):
    """Jordan et al. 2024: five steps of Newton and Schulz."""
    a, b, c = 3.4445, -4.7750, 2.0315
    x = g.T if g.shape[0] > g.shape[1] else g
    x = x / max(np.linalg.norm(x), 1e-7)
    for _ in range(5):
        s = x @ x.T
        x = a * x + (b * s + c * s @ s) @ x
    return x.T if g.shape[0] > g.shape[1] else x


def muon_run(o, shape):
    lr, wd = float(o["lr"]), float(o.get("weight_decay", 0))
    mu, nesterov = float(o.get("momentum", 0.95)), o.get("nesterov", "true") == "true"
    rows, columns = shape[0], int(np.prod(shape[1:]))
    factor = 0.2 * math.sqrt(max(rows, columns)) if o.get("lr_adjust") == "match_rms" else math.sqrt(max(1, rows / columns))
    w, m = start("m", rows * columns).reshape(rows, columns), np.zeros((rows, columns))
    for t in range(UPDATES):
        g = gradient("m", rows * columns, t).reshape(rows, columns)
        m = mu * m + (1 - mu) * g
        u = mu * m + (1 - mu) * g if nesterov else m
        w = w - rate(lr, t) * (factor * orthogonal(u) + wd * w)
    return w


def muon_torch(o, shape):
    """PyTorch's own, which computes the iterations in bf16."""
    import torch
    rows, columns = shape[0], int(np.prod(shape[1:]))
    lr = float(o["lr"])
    w = torch.nn.Parameter(torch.from_numpy(start("m", rows * columns).reshape(rows, columns)))
    opt = torch.optim.Muon([w], lr, float(o.get("weight_decay", 0)), float(o.get("momentum", 0.95)),
                           o.get("nesterov", "true") == "true",
                           adjust_lr_fn="match_rms_adamw" if o.get("lr_adjust") == "match_rms" else "original")
    for t in range(UPDATES):
        w.grad = torch.from_numpy(gradient("m", rows * columns, t).reshape(rows, columns))
        opt.param_groups[0]["lr"] = rate(lr, t)
        opt.step()
    return w.detach().numpy()


# ---- learning-rate curves ----
CURVES = [  # options, steps, steps per epoch
    ("optim.lr=0.5 optim.lr_schedule=constant", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=constant optim.warmup_steps=5", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=multistep optim.milestones=[1,2.5] optim.gamma=0.2", 16, 4),
    ("optim.lr=0.5 optim.lr_schedule=multistep optim.milestones=[2,3] optim.warmup_epochs=1", 16, 4),
    ("optim.lr=0.5 optim.lr_schedule=wsd optim.decay_fraction=0.25", 16, 4),
    ("optim.lr=0.5 optim.lr_schedule=wsd optim.decay_fraction=0.3 optim.decay_shape=cosine optim.warmup_steps=5 optim.lr_end=0.05", 28, 4),
    ("optim.lr=0.5 optim.lr_schedule=wsd optim.decay_fraction=0.5 optim.decay_shape=sqrt optim.lr_end=0.01 optim.warmup_epochs=0.5", 21, 8),
    ("optim.lr=0.5 optim.lr_schedule=wsd optim.decay_fraction=1 optim.decay_shape=exponential optim.lr_end=0.01", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=onecycle", 20, 4),
    ("optim.lr=0.5 optim.lr_schedule=onecycle optim.anneal_strategy=linear optim.pct_start=0.45 optim.div_factor=10", 17, 4),
    ("optim.lr=0.5 optim.lr_schedule=onecycle optim.pct_start=0.02 optim.final_div_factor=50", 9, 4),
    ("optim.lr=0.5 optim.lr_schedule=cosine optim.lr_end=0.1", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=cosine optim.warmup_epochs=0.5", 20, 8),
    ("optim.lr=0.5 optim.lr_schedule=linear optim.lr_end=0.05", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=polynomial optim.power=2", 12, 4),
    ("optim.lr=0.5 optim.lr_schedule=polynomial optim.power=0.9 optim.warmup_steps=3", 15, 5),
]


def lr_curve(o, steps, per_epoch):
    import torch
    sched = torch.optim.lr_scheduler
    lr, end = float(o["lr"]), float(o.get("lr_end", 0))
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr)
    warm = int(o.get("warmup_steps", 0)) or round(float(o.get("warmup_epochs", 0)) * per_epoch)
    left = steps - warm
    if o["lr_schedule"] == "multistep":
        marks = [round(float(m) * per_epoch) - warm for m in o["milestones"].strip("[]").split(",")]
        main = sched.MultiStepLR(opt, marks, float(o.get("gamma", 0.1)))
    elif o["lr_schedule"] == "cosine":
        main = sched.CosineAnnealingLR(opt, left, end)
    elif o["lr_schedule"] == "wsd":
        part, shape = float(o.get("decay_fraction", 0.1)), o.get("decay_shape", "linear")
        fall = {"linear": lambda y: 1 - y, "cosine": lambda y: (1 + math.cos(math.pi * y)) / 2, "sqrt": lambda y: 1 - math.sqrt(y)}

        def factor(i):
            y = (i / left - 1 + part) / part
            if y <= 0:
                return 1.0
            return (end / lr) ** y if shape == "exponential" else (end + (lr - end) * fall[shape](y)) / lr
        main = sched.LambdaLR(opt, factor)
    elif o["lr_schedule"] == "onecycle":
        main = sched.OneCycleLR(opt, lr, total_steps=steps, pct_start=float(o.get("pct_start", 0.3)),
                                anneal_strategy=o.get("anneal_strategy", "cos"), cycle_momentum=False,
                                div_factor=float(o.get("div_factor", 25)), final_div_factor=float(o.get("final_div_factor", 1e4)))
    elif o["lr_schedule"] == "linear":
        main = sched.LinearLR(opt, 1.0, end / lr, left)
    elif o["lr_schedule"] == "polynomial":
        main = sched.PolynomialLR(opt, left, float(o["power"]))
    elif o["lr_schedule"] == "constant":
        main = sched.ConstantLR(opt, 1.0, left)
    else:
        sys.exit(f"no formula of the curve {o['lr_schedule']}: add a branch to lr_curve")
    if warm:
        rise = sched.LinearLR(opt, 1.0 / warm, 1.0, warm - 1)
        main = sched.SequentialLR(opt, [rise, main], [warm])
    values = []
    for _ in range(steps):
        values.append(opt.param_groups[0]["lr"])
        opt.step()
        if len(values) < steps:  # OneCycleLR refuses a step after the last
            main.step()
    return values


PLATEAUS = [  # options, which way is better, evaluations
    ("optim.lr=0.5 optim.lr_schedule=plateau optim.gamma=0.3 optim.patience=2", "min", 40),
    ("optim.lr=0.1 optim.lr_schedule=plateau optim.gamma=0.5 optim.patience=0 optim.threshold=0.05 optim.lr_end=0.01", "max", 30),
    ("optim.lr=0.1 optim.lr_schedule=plateau optim.patience=0 optim.threshold=0", "max", 12),
]


def plateau(o, better, count):
    """Values of evaluations, and the rate after each; one value is no number."""
    import torch
    opt = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], float(o["lr"]))
    sched = torch.optim.lr_scheduler.ReduceLROnPlateau(opt, better, float(o.get("gamma", 0.1)), int(o.get("patience", 10)),
                                                       float(o.get("threshold", 1e-4)), min_lr=float(o.get("lr_end", 0)), eps=0)
    noise = np.random.default_rng(count).uniform(-0.04, 0.04, count)
    values = [float(f"{(0.9 - 0.6 * 0.8 ** i if better == 'max' else 0.3 + 2 * 0.8 ** i) + noise[i]:.6f}") for i in range(count)]
    values[count // 3] = float("nan")
    rates = []
    for v in values:
        sched.step(v)
        rates.append(opt.param_groups[0]["lr"])
    return values, rates


def write_plateau(out, text, better, count):
    values, rates = plateau(options(text), better, count)
    out.write(f"plateau {count} {better} {text}\n{numbers(values)}\n{' '.join(f'{x:.17g}' for x in rates)}\n")


RUNS = {"sgd": torch_run, "adam": torch_run, "adamw": torch_run, "lars": lars_run, "lamb": lamb_run, "lion": lion_run,
        "adagrad": torch_run, "ftrl": ftrl_run, "lbfgs": lbfgs_run}


def numbers(values, digits=10):
    return " ".join(f"{x:.{digits}g}" for x in values)


def write_rule(out, text):
    o = options(text)
    if o["name"] not in RUNS:
        sys.exit(f"no function of the rule {o['name']}: add one to RUNS")
    w = RUNS[o["name"]](o)
    out.write(f"optim {text}\n")
    for n, _, _ in TENSORS:
        out.write(numbers(w[n]) + "\n")


def write_matrix(out, text, shape):
    o = options(text)
    w, theirs = muon_run(o, shape).ravel(), muon_torch(o, shape).ravel()
    moved = np.abs(w - start("m", w.size)).max()
    out.write(f"matrix {'x'.join(map(str, shape))} {text}\n{numbers(w)}\n{np.abs(w - theirs).max() / moved:.2g}\n")


def write_head(out):
    import torch
    out.write("# Written by tools/golden_optim.py with PyTorch %s (LARS, LAMB, Lion, Muon, FTRL: from the papers), in double precision.\n"
              % torch.__version__)
    out.write(f"# optim OPTIONS, then per tensor its values after {UPDATES} updates;\n")
    out.write("# matrix SHAPE OPTIONS, then its values after as many, and the farthest that PyTorch's Muon is from one of them, in\n")
    out.write("# parts of what is farthest from where it began: it computes in bf16;\n")
    out.write("# curve STEPS STEPS_PER_EPOCH OPTIONS, then the rate of every step;\n")
    out.write("# plateau COUNT min|max OPTIONS, then the values of so many evaluations and the rate after each\n")


def write_cases(out, only):
    """All cases, or those of the rule or curve `only`; returns how many."""
    wants = lambda text: not only or only in (options(text).get("name"), options(text).get("lr_schedule"))
    tasks = [lambda c=c: write_rule(out, c) for c in OPTIMS if wants(c)]
    tasks += [lambda c=c, s=s: write_matrix(out, c, s) for c, s in MATRICES if wants(c)]
    tasks += [lambda c=c, n=n, e=e: out.write(f"curve {n} {e} {c}\n{numbers(lr_curve(options(c), n, e), 16)}\n")
              for c, n, e in CURVES if wants(c)]
    tasks += [lambda c=c, b=b, n=n: write_plateau(out, c, b, n) for c, b, n in PLATEAUS if wants(c)]
    for task in tasks:
        task()
    return len(tasks)


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "--only":
        if not write_cases(sys.stdout, sys.argv[2]):
            sys.exit(f"no case of {sys.argv[2]}: add one to OPTIMS, MATRICES, CURVES or PLATEAUS, and its rule to RUNS")
    elif len(sys.argv) == 2 and sys.argv[1] != "--only":
        with open(sys.argv[1] + "/optim.txt", "w") as f:
            write_head(f)
            write_cases(f, None)
    else:
        sys.exit(__doc__)
