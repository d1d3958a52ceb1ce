#!/usr/bin/env python3
"""Golden values of models, from PyTorch.

usage: golden_models.py DIRECTORY [FILE...]     writes models.txt and gpt.txt there (tests/golden), or those named
       golden_models.py --case NAME             prints the cases of that name alone, to append them

Weights and data are a formula that both sides compute to the last bit: an integer hash of (name, index) as a float in
[-1, 1), times a scale. Losses are PyTorch's in double precision. Beside each stands how far PyTorch's own runs in single
precision stray from it, which says what may be asked of another program: the largest of several that differ only in the order of
sums and, for models with corners, in their weights' last bits: it is chance on which side of 0 a relu falls. The tests need
neither Python nor PyTorch.
"""
import math
import sys

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_optim import fnv, noise, options

STEPS = 10
NUDGES = 8
nudge = None  # or a source of random numbers: weights differ by their last bit


def param(name, shape):
    v = noise(name, int(np.prod(shape)))
    if len(shape) > 1:
        fan_in = int(np.prod(shape[1:]))
        v = v * np.float32(math.sqrt(6.0 / fan_in))
    else:
        v = v * np.float32(0.1)
        if name.endswith("weight"):
            v = v + np.float32(1)
    if nudge:
        v = v * (1 + nudge.integers(-1, 2, size=v.shape).astype(np.float32) * np.float32(2.0 ** -23))
    return torch.from_numpy(v.reshape(shape))


def nudged(run):
    """What run() gives, NUDGES times, with weights that differ by their last bit."""
    global nudge
    results = []
    for seed in range(NUDGES):
        nudge = np.random.default_rng(seed)
        results.append(run())
    nudge = None
    return results


# ---- models, with torchvision's names ----
def conv(i, o, k, s=1, g=1):
    return nn.Conv2d(i, o, k, s, k // 2, groups=g, bias=False)


class LeNet(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 32, 3, padding=1), nn.Conv2d(32, 64, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(3136, 128), nn.Linear(128, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        return self.fc2(F.relu(self.fc1(x.flatten(1))))


class Basic(nn.Module):
    def __init__(self, i, o, stride):
        super().__init__()
        self.conv1, self.bn1 = conv(i, o, 3, stride), nn.BatchNorm2d(o)
        self.conv2, self.bn2 = conv(o, o, 3), nn.BatchNorm2d(o)
        if stride != 1 or i != o:
            self.downsample = nn.Sequential(conv(i, o, 1, stride), nn.BatchNorm2d(o))

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        return F.relu(y + (self.downsample(x) if hasattr(self, "downsample") else x))


class ResNet18(nn.Module):
    def __init__(self, classes, channels, width=64):
        super().__init__()
        self.conv1, self.bn1 = conv(channels, width, 3), nn.BatchNorm2d(width)
        c = width
        for s in range(4):
            w = width << s
            blocks = nn.Sequential(Basic(c, w, 1 if s == 0 else 2), Basic(w, w, 1))
            setattr(self, f"layer{s + 1}", blocks)
            c = w
        self.fc = nn.Linear(c, classes)

    def forward(self, x):
        x = F.relu(self.bn1(self.conv1(x)))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def cbr(i, o, k, s=1, g=1):
    return nn.Sequential(conv(i, o, k, s, g), nn.BatchNorm2d(o), nn.ReLU6())


class Inverted(nn.Module):
    def __init__(self, i, o, stride, t):
        super().__init__()
        h = i * t
        parts = ([cbr(i, h, 1)] if t != 1 else []) + [cbr(h, h, 3, stride, h), conv(h, o, 1), nn.BatchNorm2d(o)]
        self.conv, self.skip = nn.Sequential(*parts), stride == 1 and i == o

    def forward(self, x):
        return x + self.conv(x) if self.skip else self.conv(x)


class MobileNetV2(nn.Module):
    def __init__(self, classes):
        super().__init__()
        parts, i = [cbr(3, 32, 3, 2)], 32
        for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2),
                           (6, 320, 1, 1)]:
            for b in range(n):
                parts.append(Inverted(i, c, s if b == 0 else 1, t))
                i = c
        self.features = nn.Sequential(*parts, cbr(320, 1280, 1))
        self.classifier = nn.Sequential(nn.Dropout(0.0), nn.Linear(1280, classes))

    def forward(self, x):
        return self.classifier(self.features(x).mean((2, 3)))


MODELS = [  # name, make, batch, channels, image, options
    ("lenet", lambda: LeNet(10), 8, 1, 28, "model.name=lenet optim.lr=0.002 optim.momentum=0.9"),
    ("resnet18", lambda: ResNet18(10, 1), 4, 1, 28,
     "model.name=resnet18 model.stem=small optim.lr=0.0002 optim.momentum=0.9 optim.weight_decay=0.0005"),
    ("mobilenet_v2", lambda: MobileNetV2(10), 8, 3, 96,
     "model.name=mobilenet_v2 model.dropout=0 optim.lr=0.00003 optim.momentum=0.9 optim.weight_decay=0.0005"),
]


def pictures(batch, channels, image, dtype, layout, reverse):
    """Images and their classes."""
    x = (torch.from_numpy(noise("x", batch * channels * image * image)) * np.float32(1.5)).to(dtype)
    x = x.reshape(batch, channels, image, image).contiguous(memory_format=layout)
    y = torch.tensor([fnv(f"y{i}") % 10 for i in range(batch)])
    return (x.flip(0), y.flip(0)) if reverse else (x, y)


def curve(make, batch, channels, image, opt, dtype, layout=torch.contiguous_format, reverse=False):
    model = make()
    for name, p in model.named_parameters():
        p.data = param(name, tuple(p.shape))
    model.to(dtype).to(memory_format=layout).train()
    x, y = pictures(batch, channels, image, dtype, layout, reverse)
    decay = [p for p in model.parameters() if p.dim() > 1]
    plain = [p for p in model.parameters() if p.dim() == 1]
    sgd = torch.optim.SGD([{"params": decay, "weight_decay": float(opt.get("weight_decay", 0))}, {"params": plain}],
                          float(opt["lr"]), float(opt["momentum"]))
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses


def write_models(out):
    out.write("# Written by tools/golden_models.py with PyTorch %s: each step's loss in double precision, and the largest\n"
              "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
    out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step\n")
    for name, make, batch, channels, image, text in MODELS:
        out.write(f"model {name} {batch} {channels} {image} {text}\n")
        args = make, batch, channels, image, options(text)
        double = curve(*args, torch.float64)
        single = [curve(*args, torch.float32), curve(*args, torch.float32, torch.channels_last)]
        single.append(curve(*args, torch.float32, reverse=True))
        single += nudged(lambda: curve(*args, torch.float32))
        for step, d in enumerate(double):
            out.write(f"{d:.12g} {max(abs(s[step] - d) / d for s in single):.2e}\n")


# ---- gpt2: PyTorch's own attention, gelu and AdamW; rotary positions as in Su et al. 2021, section 3.4.2, with the pairs
# (i, i + D/2) ----
def turn(x, base=10000.0):
    half = x.shape[-1] // 2
    rate = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angle = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * rate
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x[..., :half], x[..., half:]
    return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)


class Gpt2(nn.Module):
    def __init__(self, vocab, context, layers, width, heads, rotary):
        super().__init__()
        self.layers, self.heads, self.rotary = layers, heads, rotary
        self.wte = nn.Embedding(vocab, width)
        if not rotary:
            self.wpe = nn.Embedding(context, width)
        block = lambda: nn.ModuleDict({
            "ln_1": nn.LayerNorm(width), "ln_2": nn.LayerNorm(width),
            "attn": nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)}),
            "mlp": nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})})
        self.h = nn.ModuleList(block() for _ in range(layers))
        self.ln_f = nn.LayerNorm(width)

    def attend(self, block, x):
        n, t, width = x.shape
        q, k, v = (p.view(n, t, self.heads, -1).transpose(1, 2) for p in block["c_attn"](x).chunk(3, -1))
        if self.rotary:
            q, k = turn(q), turn(k)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return block["c_proj"](y.transpose(1, 2).reshape(n, t, width))

    def forward(self, tokens):
        x = self.wte(tokens)
        if not self.rotary:
            x = x + self.wpe.weight[:tokens.shape[1]]
        for block in self.h:
            x = x + self.attend(block["attn"], block["ln_1"](x))
            mlp = block["mlp"]
            x = x + mlp["c_proj"](F.gelu(mlp["c_fc"](block["ln_2"](x)), approximate="tanh"))
        return F.linear(self.ln_f(x), self.wte.weight)


# ---- llama (Touvron et al. 2023), with PyTorch's rms_norm, silu and grouped attention, and the packed projections of Hugging
# Face's Phi-3: queries, keys and values; gate and up ----
class Llama(nn.Module):
    def __init__(self, vocab, opt):
        super().__init__()
        width, self.heads, self.kv_heads = int(opt["width"]), int(opt["heads"]), int(opt["kv_heads"])
        self.ffn, self.base = int(opt["ffn"]), float(opt.get("rotary_base", 10000))
        self.wide, self.tied = width // self.heads, opt.get("tied") == "true"
        norm = lambda: nn.RMSNorm(width, float(opt.get("rms_eps", 1e-5)))
        self.embed_tokens = nn.Embedding(vocab, width)
        block = lambda: nn.ModuleDict({
            "input_layernorm": norm(), "post_attention_layernorm": norm(),
            "self_attn": nn.ModuleDict({
                "qkv_proj": nn.Linear(width, self.wide * (self.heads + 2 * self.kv_heads), bias=False),
                "o_proj": nn.Linear(width, width, bias=False)}),
            "mlp": nn.ModuleDict({"gate_up_proj": nn.Linear(width, 2 * self.ffn, bias=False),
                                  "down_proj": nn.Linear(self.ffn, width, bias=False)})})
        self.layers = nn.ModuleList(block() for _ in range(int(opt["layers"])))
        self.norm = norm()
        if not self.tied:
            self.lm_head = nn.Linear(width, vocab, bias=False)

    def attend(self, block, x):
        n, t, width = x.shape
        sizes = [c * self.wide for c in (self.heads, self.kv_heads, self.kv_heads)]
        q, k, v = (p.view(n, t, -1, self.wide).transpose(1, 2) for p in block["qkv_proj"](x).split(sizes, -1))
        q, k = turn(q, self.base), turn(k, self.base)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        return block["o_proj"](y.transpose(1, 2).reshape(n, t, width))

    def forward(self, tokens):
        x = self.embed_tokens(tokens)
        for block in self.layers:
            x = x + self.attend(block["self_attn"], block["input_layernorm"](x))
            gate, up = block["mlp"]["gate_up_proj"](block["post_attention_layernorm"](x)).chunk(2, -1)
            x = x + block["mlp"]["down_proj"](F.silu(gate) * up)
        return F.linear(self.norm(x), self.embed_tokens.weight if self.tied else self.lm_head.weight)


GPTS = [  # name, samples (all of them in each step), vocabulary, options
    ("learned", 8, 65, "model.context=24 model.layers=2 model.width=48 model.heads=3 model.positions=learned "
     "train.micro_batch=4 optim.lr=0.002 optim.weight_decay=0.1 optim.clip=1"),
    ("rotary", 6, 300, "model.context=17 model.layers=3 model.width=32 model.heads=2 model.positions=rotary "
     "train.micro_batch=3 optim.lr=0.003 optim.beta2=0.99"),
    # 288 rows a micro-batch, tiles of attention that are full and one that is not
    ("long", 6, 520, "model.context=96 model.layers=2 model.width=64 model.heads=2 model.positions=learned "
     "train.micro_batch=3 optim.lr=0.003 optim.weight_decay=0.1"),
    ("llama", 6, 300, "model.name=llama model.context=21 model.layers=2 model.width=48 model.heads=4 model.kv_heads=2 model.ffn=80 "
     "train.micro_batch=3 optim.lr=0.003 optim.weight_decay=0.1 optim.clip=1"),
    ("llama_tied", 6, 65, "model.name=llama model.context=70 model.layers=3 model.width=32 model.heads=4 model.kv_heads=1 model.ffn=48 "
     "model.rotary_base=500000 model.rms_eps=0.001 model.tied=true train.micro_batch=3 optim.lr=0.002"),
]


def gpt_curve(samples, vocab, opt, dtype, reverse=False):
    context, lr = int(opt["context"]), float(opt["lr"])
    if opt.get("name") == "llama":
        model = Llama(vocab, opt)
    elif opt.get("name", "gpt2") != "gpt2":
        sys.exit(f"no model {opt['name']}: add a branch to gpt_curve")
    else:
        model = Gpt2(vocab, context, int(opt["layers"]), int(opt["width"]), int(opt["heads"]), opt["positions"] == "rotary")
    for name, p in model.named_parameters():
        p.data = param(name, tuple(p.shape))
    model.to(dtype).train()
    row = torch.tensor([fnv(f"t{i}") % vocab for i in range(samples * context + 1)])
    x, y = row[:-1].view(samples, context), row[1:].view(samples, context)
    if reverse:
        x, y = x.flip(0), y.flip(0)
    groups = [{"params": [p for p in model.parameters() if p.dim() > 1]},
              {"params": [p for p in model.parameters() if p.dim() == 1], "weight_decay": 0.0}]
    adamw = torch.optim.AdamW(groups, lr, (0.9, float(opt.get("beta2", 0.999))), 1e-8, float(opt.get("weight_decay", 0)))
    losses = []
    for _ in range(STEPS):
        adamw.zero_grad()
        loss = F.cross_entropy(model(x).flatten(0, 1), y.flatten())
        loss.backward()
        if "clip" in opt:
            nn.utils.clip_grad_norm_(model.parameters(), float(opt["clip"]))
        adamw.step()
        losses.append(loss.item())
    return losses


def write_gpts(out):
    out.write("# Written by tools/golden_models.py with PyTorch %s: as models.txt, with AdamW on tokens.\n" % torch.__version__)
    out.write("# gpt NAME SAMPLES VOCABULARY OPTIONS, then one line a step\n")
    for name, samples, vocab, text in GPTS:
        out.write(f"gpt {name} {samples} {vocab} {text}\n")
        args = samples, vocab, options(text)
        single = [gpt_curve(*args, torch.float32), gpt_curve(*args, torch.float32, reverse=True)]
        for step, d in enumerate(gpt_curve(*args, torch.float64)):
            out.write(f"{d:.12g} {max(abs(s[step] - d) / d for s in single):.2e}\n")


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    torch.set_num_threads(1)
    if sys.argv[1] == "--case":
        MODELS[:] = [m for m in MODELS if m[0] in sys.argv[2:]]
        GPTS[:] = [g for g in GPTS if g[0] in sys.argv[2:]]
        if not MODELS and not GPTS:
            sys.exit("golden_models.py: no such case")
        for cases, write in ((MODELS, write_models), (GPTS, write_gpts)):
            if cases:
                write(sys.stdout)
        sys.exit()
    for name, write in (("models.txt", write_models), ("gpt.txt", write_gpts)):
        if name in (sys.argv[2:] or [name]):
            with open(sys.argv[1] + "/" + name, "w", buffering=1) as f:
                write(f)
