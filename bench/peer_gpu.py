#!/usr/bin/env python3
"""PyTorch's side of bench/gpu.sh: training steps as fast as PyTorch's own advice makes them.

usage: peer_gpu.py gpt2|resnet50|lenet --batch B [--setting eager|compile|reduce-overhead|max-autotune]
       [--precision bf16|tf32|fp32] [--attention default|flash|cudnn|math] [--steps N] [--warmup N] [--device cuda|cpu]
       [--vocab V --context T --layers L --width C --heads H] [--image S]

bf16 is autocast with fp32 parameters; optimizers are fused; attention is scaled_dot_product_attention, by PyTorch's choice of
kernels (flash) or the one that is named; images lie channels last and cuDNN looks for its fastest algorithms. Models and optimizers are weft's (GPT-2 with a tied head and
AdamW, ResNet v1.5 and lenet with SGD and momentum). Data is made up and lies on the device before the first step, so
unlike weft's it costs nothing. The host waits once, after the last step; steps are timed by events on the stream. Prints one
line of JSON: median step, samples (gpt2: tokens) a second, peak device memory.
"""
import argparse, contextlib, json, statistics, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel

ATTENTION = {"flash": SDPBackend.FLASH_ATTENTION, "cudnn": SDPBackend.CUDNN_ATTENTION, "math": SDPBackend.MATH}


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        B, T, C = x.shape
        q, k, v = (t.view(B, T, self.heads, C // self.heads).transpose(1, 2) for t in self.qkv(self.ln_1(x)).split(C, 2))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(B, T, C))
        return x + self.down(F.gelu(self.up(self.ln_2(x)), approximate="tanh"))


class GPT2(nn.Module):
    def __init__(self, a):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(a.vocab, a.width), nn.Embedding(a.context, a.width)
        self.blocks = nn.ModuleList(Block(a.width, a.heads) for _ in range(a.layers))
        self.ln_f = nn.LayerNorm(a.width)
        for p in self.parameters():
            nn.init.normal_(p, std=0.02) if p.dim() > 1 else None

    def forward(self, x):
        h = self.wte(x) + self.wpe(torch.arange(x.shape[1], device=x.device))
        for block in self.blocks:
            h = block(h)
        return F.linear(self.ln_f(h), self.wte.weight).flatten(0, 1)


def conv(i, o, kernel, stride=1):
    return nn.Conv2d(i, o, kernel, stride, kernel // 2, bias=False)


class Bottleneck(nn.Module):
    def __init__(self, i, width, stride):
        super().__init__()
        o = 4 * width
        self.body = nn.Sequential(conv(i, width, 1), nn.BatchNorm2d(width), nn.ReLU(True),
                                  conv(width, width, 3, stride), nn.BatchNorm2d(width), nn.ReLU(True),
                                  conv(width, o, 1), nn.BatchNorm2d(o))
        self.skip = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o)) if stride != 1 or i != o else nn.Identity()

    def forward(self, x):
        return F.relu(self.skip(x) + self.body(x))


def resnet50(classes=1000):
    layers, channels = [conv(3, 64, 7, 2), nn.BatchNorm2d(64), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)], 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, 64 << stage, 2 if stage and block == 0 else 1))
            channels = 256 << stage
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))


def lenet(classes=10):
    return nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, classes))


class WithLoss(nn.Module):
    """The model and its loss as one, so that a compiler sees both."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        return F.cross_entropy(self.model(x), y)


def build(a):
    """Model, data, optimizer, rows of a step."""
    fused = {"fused": True} if a.device == "cuda" else {}
    if a.model == "gpt2":
        model = GPT2(a).to(a.device)
        x = torch.randint(a.tokens, (a.batch, a.context + 1), device=a.device)
        data = x[:, :-1].contiguous(), x[:, 1:].flatten()
        return model, data, torch.optim.AdamW(model.parameters(), 3e-4, weight_decay=0.01, **fused), a.batch * a.context
    images, side, classes = (3, a.image, 1000) if a.model == "resnet50" else (1, 28, 10)
    model = (resnet50() if a.model == "resnet50" else lenet()).to(a.device, memory_format=torch.channels_last)
    x = torch.randn(a.batch, images, side, side, device=a.device).to(memory_format=torch.channels_last)
    data = x, torch.randint(classes, (a.batch,), device=a.device)
    return model, data, torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, **fused), a.batch


def compiled(module, setting):
    if setting == "eager":
        return module
    return torch.compile(module, **({} if setting == "compile" else {"mode": setting}))


def step_seconds(step, a):
    """Of each of the timed steps."""
    for _ in range(a.warmup):
        step()
    if a.device == "cpu":
        marks = [time.perf_counter()]
        for _ in range(a.steps):
            step()
            marks.append(time.perf_counter())
        return [after - before for before, after in zip(marks, marks[1:])]
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(a.steps + 1)]
    events[0].record()
    for event in events[1:]:
        step()
        event.record()
    torch.cuda.synchronize()
    return [before.elapsed_time(after) * 1e-3 for before, after in zip(events, events[1:])]


def arguments():
    p = argparse.ArgumentParser()
    p.add_argument("model", choices=["gpt2", "resnet50", "lenet"])
    p.add_argument("--setting", default="eager", choices=["eager", "compile", "reduce-overhead", "max-autotune"])
    p.add_argument("--precision", default="fp32", choices=["fp32", "tf32", "bf16"])
    p.add_argument("--attention", default="default", choices=["default", *ATTENTION])
    p.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    p.add_argument("--batch", type=int, required=True)
    for name, value in dict(steps=30, warmup=10, tokens=50257, vocab=0, context=1024, layers=12, width=768, heads=12,
                            image=224).items():
        p.add_argument("--" + name, type=int, default=value)
    a = p.parse_args()
    a.vocab = a.vocab or a.tokens  # a padded vocabulary is faster: more rows than tokens
    if a.device == "cuda" and not torch.cuda.is_available():
        p.error("this PyTorch sees no GPU")
    return a


def main():
    a = arguments()
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = a.precision == "tf32"
    torch.manual_seed(0)
    torch.backends.cudnn.benchmark = True
    model, (x, y), optimizer, rows = build(a)
    loss_of = compiled(WithLoss(model), a.setting)

    def step():
        torch.compiler.cudagraph_mark_step_begin()
        with torch.autocast(a.device, torch.bfloat16, enabled=a.precision == "bf16"):
            loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)

    with sdpa_kernel(ATTENTION[a.attention]) if a.attention in ATTENTION else contextlib.nullcontext():
        median = statistics.median(step_seconds(step, a))
    cuda = a.device == "cuda"
    print(json.dumps({"torch": torch.__version__, "device": torch.cuda.get_device_name() if cuda else "cpu", "model": a.model,
                      "parameters": sum(p.numel() for p in model.parameters()), "batch": a.batch, "setting": a.setting, "attention": a.attention,
                      "precision": a.precision, "step_s": median, "rows_per_s": rows / median,
                      "device_mb": round(torch.cuda.max_memory_reserved() / 1e6) if cuda else None}), flush=True)


main()
