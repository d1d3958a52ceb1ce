#!/usr/bin/env python3
"""Golden values of every layer kind, from PyTorch in double precision, for tests/layers/test_golden.c.

usage: python3 tools/golden_layers.py [OUT_DIR [KIND...]]      (default tests/golden/layers, all kinds; needs torch)

One text file a kind. Without torch it is written by hand, from any other implementation. A case is
    case NAME
    attrs KEY=VALUE ...                 attributes as in a config's layers list
    act NAME | residual | rows N | loss_scale V | eval
                                        a fused activation, a fused residual (the last x), real samples, no training
    image C,H,W                         x0 is a flattened image (what flatten gives: its memory keeps the image's layout)
    TENSOR DIMS fill SEED SCALE SHIFT   numbers that both sides compute (see number())
    TENSOR DIMS values V ...            TENSOR: x0.. w0.. dy labels targets weights box_start boxes normaliser, then what must come out: y dx0.. dw0.. and
                                        r2 r3, the running statistics after one update; nan: may be anything
    end
"""
import math
import os
import sys

import torch
import torch.nn.functional as F

torch.set_default_dtype(torch.float64)


def number(seed, i, scale, shift):
    mask = 0xFFFFFFFF
    u = ((i + 1) * 2654435761 + seed * 2246822519) & mask
    u ^= u >> 15
    u = u * 2246822519 & mask
    u ^= u >> 13
    return ((u >> 16) / 32768.0 - 1.0) * scale + shift


class Case:
    """Collects one case's lines; the tensors it makes want gradients."""

    def __init__(self, name, attrs="", act=None):
        self.lines = [f"case {name}"]
        self.seed = 1 + sum(map(ord, name))
        self.given = {}
        if attrs:
            self.lines.append(f"attrs {attrs}")
        self.act = act
        if act:
            self.lines.append(f"act {act}")

    def flag(self, text):
        self.lines.append(text)

    def made_up(self, dims, scale=1.0, shift=0.0):
        self.seed += 1
        numbers = [number(self.seed, i, scale, shift) for i in range(math.prod(dims))]
        return torch.tensor(numbers).reshape(dims)

    def fill(self, name, *dims, scale=1.0, shift=0.0):
        tensor = self.made_up(dims, scale, shift).requires_grad_(True)
        self.lines.append(f"{name} {','.join(map(str, dims))} fill {self.seed} {scale} {shift}")
        self.given[name] = tensor
        return tensor

    def values(self, name, tensor):
        numbers = " ".join("%.8g" % v for v in tensor.detach().flatten().tolist())
        self.lines.append(f"{name} {','.join(map(str, tensor.shape))} values {numbers}")

    def finish(self, y):
        """Applies the fused activation, runs backward from a made-up dy, writes what came out."""
        if self.act:
            y = {"relu": F.relu, "relu6": F.relu6, "silu": F.silu}[self.act](y)
        dy = self.fill("dy", *y.shape)
        self.values("y", y)
        y.backward(dy.detach())
        self.gradients()

    def padded(self, run, x, rows):
        """run on the first rows (None: all) of x; backward from a dy that is 0 beyond them."""
        if not rows:
            return self.finish(run(x))
        if self.act:
            raise ValueError("a case with padded rows has no activation")
        self.flag(f"rows {rows}")
        y = run(x[:rows])
        rest = torch.zeros((x.shape[0] - rows,) + tuple(y.shape[1:]))
        dy = self.made_up(y.shape)
        self.values("y", torch.cat([y, rest]))
        self.values("dy", torch.cat([dy, rest]))
        y.backward(dy)
        self.gradients()

    def finish_loss(self, real, *columns):
        """columns: the loss, one a row, and the two behind it; backward from the sum of the losses of the first `real` rows."""
        y = torch.stack(columns, 1).detach()
        y[real:] = float("nan")
        self.values("y", y)
        (columns[0][:real].sum() * 0.25).backward()
        self.flag("loss_scale 0.25")
        self.gradients()

    def gradients(self):
        for name, tensor in list(self.given.items()):
            if name[0] in "xw" and tensor.grad is not None:
                self.values("d" + name, tensor.grad)

    def text(self):
        return "\n".join(self.lines + ["end"]) + "\n"


def dense():
    for name, attrs, dims, act in [("2-d", "width=5", (3, 7), None), ("3-d", "width=6", (2, 4, 5), None),
                                   ("no bias", "width=4 bias=false", (5, 9), None), ("one row", "width=3", (1, 8), None),
                                   ("wide, relu", "width=19", (4, 33), "relu")]:
        c = Case(name, attrs, act)
        width = int(attrs.split("width=")[1].split()[0])
        x, w = c.fill("x0", *dims), c.fill("w0", width, dims[-1], scale=0.5)
        b = None if "false" in attrs else c.fill("w1", width)
        c.finish(F.linear(x, w, b))
        yield c
    for image in [(5, 3, 4), (16, 2, 1)]:
        c = Case(f"on a flattened image of {image[0]} channels", "width=7", "relu")
        c.flag(f"image {','.join(map(str, image))}")
        features = math.prod(image)
        c.finish(F.linear(c.fill("x0", 3, features), c.fill("w0", 7, features, scale=0.25), c.fill("w1", 7)))
        yield c


def conv2d():
    table = [
        ("plain 3x3", (2, 3, 5, 4), 4, (3, 3), (1, 1), (1, 1), 1, True, None),
        ("stride 2, no bias", (1, 8, 6, 6), 8, (3, 3), (2, 2), (1, 1), 1, False, None),
        ("1x1", (2, 16, 3, 2), 8, (1, 1), (1, 1), (0, 0), 1, False, None),
        ("1x1 stride 2", (1, 8, 5, 4), 16, (1, 1), (2, 2), (0, 0), 1, False, None),
        ("groups", (2, 6, 5, 5), 4, (3, 3), (1, 1), (1, 1), 2, True, None),
        ("groups of 8", (1, 16, 4, 3), 16, (3, 3), (1, 1), (1, 1), 2, True, None),
        ("depthwise", (1, 8, 5, 6), 8, (3, 3), (1, 1), (1, 1), 8, False, None),
        ("depthwise stride 2", (1, 16, 5, 5), 16, (3, 3), (2, 2), (1, 1), 16, True, None),
        ("not square", (1, 3, 8, 5), 5, (3, 2), (2, 1), (1, 0), 1, True, None),
        ("5x5, no pad", (1, 1, 8, 8), 6, (5, 5), (1, 1), (0, 0), 1, True, None),
        ("7x7 stride 2", (1, 3, 9, 9), 4, (7, 7), (2, 2), (3, 3), 1, False, None),
        ("relu", (1, 4, 4, 5), 9, (3, 3), (1, 1), (1, 1), 1, True, "relu"),
    ]
    for name, dims, out, kernel, stride, pad, groups, bias, act in table:
        attrs = (f"channels={out} kernel={kernel[0]},{kernel[1]} stride={stride[0]},{stride[1]} "
                 f"pad={pad[0]},{pad[1]} groups={groups} bias={str(bias).lower()}")
        c = Case(name, attrs, act)
        x = c.fill("x0", *dims)
        w = c.fill("w0", out, dims[1] // groups, *kernel, scale=0.5)
        b = c.fill("w1", out) if bias else None
        c.finish(F.conv2d(x, w, b, stride, pad, 1, groups))
        yield c


def conv_transpose2d():
    table = [
        ("2x2 stride 2", (2, 6, 3, 4), 5, (2, 2), (2, 2), (0, 0), (0, 0), 1, True),
        ("3x3, 16 channels", (1, 16, 4, 5), 16, (3, 3), (1, 1), (1, 1), (0, 0), 1, True),
        ("4x4 stride 2 pad 1", (2, 3, 4, 3), 8, (4, 4), (2, 2), (1, 1), (0, 0), 1, False),
        ("output pad", (1, 8, 3, 3), 4, (3, 3), (2, 2), (1, 1), (1, 1), 1, True),
        ("not square", (2, 5, 3, 4), 3, (3, 2), (2, 3), (1, 0), (0, 2), 1, True),
        ("groups", (2, 6, 4, 3), 4, (3, 3), (2, 2), (1, 1), (1, 0), 2, True),
        ("groups of 8", (1, 16, 3, 3), 16, (2, 2), (2, 2), (0, 0), (0, 0), 2, True),
        ("depthwise", (1, 8, 4, 5), 8, (3, 3), (2, 2), (1, 1), (1, 1), 8, True),
        ("gaps", (1, 4, 3, 2), 3, (1, 2), (3, 3), (0, 0), (1, 0), 1, True),
        ("1x1", (2, 8, 3, 2), 16, (1, 1), (1, 1), (0, 0), (0, 0), 1, True),
        ("from a pixel", (2, 9, 1, 1), 6, (4, 4), (1, 1), (0, 0), (0, 0), 1, True),
    ]
    for name, dims, out, kernel, stride, pad, more, groups, bias in table:
        attrs = (f"channels={out} kernel={kernel[0]},{kernel[1]} stride={stride[0]},{stride[1]} pad={pad[0]},{pad[1]} "
                 f"output_pad={more[0]},{more[1]} groups={groups} bias={str(bias).lower()}")
        c = Case(name, attrs)
        x = c.fill("x0", *dims)
        w = c.fill("w0", dims[1], out // groups, *kernel, scale=0.5)
        b = c.fill("w1", out) if bias else None
        c.finish(F.conv_transpose2d(x, w, b, stride, pad, more, groups))
        yield c


def detect():
    c = Case("two anchors, three classes", "channels=16 classes=3 cell=8")
    c.finish(F.conv2d(c.fill("x0", 2, 5, 3, 2), c.fill("w0", 16, 5, 1, 1, scale=0.5), c.fill("w1", 16)))
    yield c


def batch_norm():
    table = [("2-d", (6, 5), None, False, None, False), ("4-d", (3, 4, 3, 2), None, False, None, False),
             ("16 channels, relu", (2, 16, 3, 3), "relu", False, None, False),
             ("relu6", (3, 8, 2, 3), "relu6", False, None, False),
             ("residual, relu", (2, 8, 3, 2), "relu", True, None, False),
             ("padded rows", (4, 5, 2, 2), None, False, 3, False),
             ("one pixel, padded rows", (5, 3), "relu", False, 4, False),
             ("silu", (2, 5, 3, 3), "silu", False, None, False), ("2-d, silu", (7, 21), "silu", False, None, False),
             ("16 channels, silu", (2, 16, 2, 3), "silu", False, None, False),
             ("eval 2-d", (3, 5), None, False, None, True),
             ("eval 4-d, residual, relu", (2, 8, 2, 3), "relu", True, None, True)]
    for name, dims, act, residual, rows, evaluate in table:
        c = Case(name, "eps=1e-5 momentum=0.1", act)
        x = c.fill("x0", *dims, scale=2.0, shift=0.5)
        r = c.fill("x1", *dims) if residual else None
        if residual:
            c.flag("residual")
        if rows:
            c.flag(f"rows {rows}")
        ch = dims[1]
        w, b = c.fill("w0", ch, scale=0.5, shift=1.0), c.fill("w1", ch, scale=2.0)
        mean, var = c.fill("w2", ch, scale=0.5), c.fill("w3", ch, scale=0.5, shift=1.0)
        mean, var = mean.detach().clone(), var.detach().clone()
        real = x[:rows] if rows else x
        y = F.batch_norm(real, mean, var, w, b, not evaluate, 0.1, 1e-5)
        if residual:
            y = y + r
        if evaluate:
            c.flag("eval")
            c.values("y", F.relu(y) if act else y)
        elif rows:
            y = F.relu(y) if act else y
            full = torch.full(dims, float("nan"))
            full[:rows] = y.detach()
            c.values("y", full)
            dy = c.made_up(dims)
            dy[rows:] = 0
            c.values("dy", dy)
            y.backward(dy[:rows])
            c.gradients()
        else:
            c.finish(y)
        if not evaluate:
            c.values("r2", mean)
            c.values("r3", var)
        yield c


def layer_norm():
    for name, dims in [("2-d", (4, 9)), ("3-d", (2, 3, 16)), ("wide", (2, 67))]:
        c = Case(name, "eps=1e-5")
        x = c.fill("x0", *dims, scale=2.0, shift=0.5)
        w, b = c.fill("w0", dims[-1], scale=0.5, shift=1.0), c.fill("w1", dims[-1])
        c.finish(F.layer_norm(x, dims[-1:], w, b, 1e-5))
        yield c


def rms_norm():
    for name, attrs, dims, rows in [("2-d", "eps=1e-5", (4, 9), None), ("3-d, padded rows", "eps=1e-6", (3, 2, 16), 2),
                                    ("wide, large eps", "eps=0.5", (2, 67), None)]:
        c = Case(name, attrs)
        x, w = c.fill("x0", *dims, scale=2.0, shift=0.5), c.fill("w0", dims[-1], scale=0.5, shift=1.0)
        eps = float(attrs.split("=")[1])
        c.padded(lambda x: F.rms_norm(x, dims[-1:], w, eps), x, rows)
        yield c


def group_norm():
    table = [("groups of 2", 3, (2, 6, 3, 2), None, None), ("one group", 1, (3, 5, 2, 3), None, None),
             ("a group a channel, relu", 19, (2, 19, 3, 3), "relu", None), ("across blocks, relu6", 2, (2, 24, 5, 3), "relu6", None),
             ("16 channels, padded rows", 4, (4, 16, 2, 4), None, 3), ("one pixel", 4, (3, 8, 1, 1), None, None)]
    for name, groups, dims, act, rows in table:
        c = Case(name, f"groups={groups} eps=1e-5", act)
        x = c.fill("x0", *dims, scale=3.0, shift=0.5)
        w, b = c.fill("w0", dims[1], scale=0.5, shift=1.0), c.fill("w1", dims[1], scale=2.0)
        c.padded(lambda x: F.group_norm(x, groups, w, b, 1e-5), x, rows)
        yield c


def instance_norm():
    table = [("plain", (2, 6, 3, 2), False, None, None), ("affine", (3, 5, 2, 3), True, None, None), ("across blocks, relu", (2, 19, 3, 3), False, "relu", None),
             ("affine, relu6", (2, 16, 5, 3), True, "relu6", None), ("padded rows", (4, 9, 2, 4), False, None, 3)]
    for name, dims, affine, act, rows in table:
        c = Case(name, "affine=true" if affine else "", act)
        x = c.fill("x0", *dims, scale=3.0, shift=0.5)
        w, b = (c.fill("w0", dims[1], scale=0.5, shift=1.0), c.fill("w1", dims[1], scale=2.0)) if affine else (None, None)
        c.padded(lambda x: F.instance_norm(x, weight=w, bias=b), x, rows)
        yield c


def film():
    for name, dims in [("odd", (2, 5, 3, 3)), ("16 channels", (2, 16, 2, 2)), ("across blocks", (3, 19, 3, 2))]:
        c = Case(name)
        x, s = c.fill("x0", *dims), c.fill("x1", dims[0], 2 * dims[1])
        factor, shift = s[:, :, None, None].chunk(2, 1)
        c.finish(x * (1 + factor) + shift)
        yield c


def swiglu():
    for name, dims, rows in [("2-d", (3, 14), None), ("3-d", (2, 3, 10), None), ("wide", (2, 262), None)]:
        c = Case(name)

        def run(x):
            gate, through = x.chunk(2, -1)
            return F.silu(gate) * through

        c.padded(run, c.fill("x0", *dims, scale=4.0, shift=0.5), rows)
        yield c


def activation(function, attr=None, value=None):
    """The function's second argument is the attribute, if there is one."""
    for name, dims in [("2-d", (3, 7)), ("3-d", (2, 3, 5)), ("4-d", (2, 5, 3, 3))]:
        c = Case(name)
        c.finish(function(c.fill("x0", *dims, scale=8.0, shift=1.0)))
        yield c
    if attr:
        c = Case(f"{attr} {value}", f"{attr}={value}")
        c.finish(function(c.fill("x0", 2, 19, 2, 2, scale=8.0), value))
        yield c


def max_pool():
    table = [("2x2", (2, 3, 6, 4), (2, 2), (2, 2), (0, 0), None), ("3x3 stride 2 pad 1", (1, 8, 5, 5), (3, 3), (2, 2), (1, 1), None),
             ("not square", (2, 5, 6, 7), (3, 2), (1, 2), (1, 0), None), ("windows that do not cover", (1, 4, 5, 5), (2, 2), (2, 2), (0, 0), None),
             ("relu", (2, 8, 5, 5), (3, 3), (2, 2), (1, 1), "relu")]
    for name, dims, kernel, stride, pad, act in table:
        c = Case(name, f"kernel={kernel[0]},{kernel[1]} stride={stride[0]},{stride[1]} pad={pad[0]},{pad[1]}", act)
        c.finish(F.max_pool2d(c.fill("x0", *dims), kernel, stride, pad))
        yield c


def avg_pool():
    table = [("2x2", (2, 3, 6, 4), (2, 2), (2, 2), (0, 0)), ("3x3 stride 2 pad 1", (1, 8, 5, 5), (3, 3), (2, 2), (1, 1)),
             ("not square", (2, 5, 6, 7), (3, 2), (1, 2), (1, 0))]
    for name, dims, kernel, stride, pad in table:
        c = Case(name, f"kernel={kernel[0]},{kernel[1]} stride={stride[0]},{stride[1]} pad={pad[0]},{pad[1]}")
        c.finish(F.avg_pool2d(c.fill("x0", *dims), kernel, stride, pad, count_include_pad=False))
        yield c


def global_pool():
    for name, dims in [("odd", (2, 5, 3, 4)), ("16 channels", (2, 16, 4, 4))]:
        c = Case(name)
        c.finish(F.adaptive_avg_pool2d(c.fill("x0", *dims), 1))
        yield c


def upsample():
    for name, dims, scale in [("odd", (2, 5, 3, 4), 2), ("16 channels, 3", (1, 16, 2, 3), 3), ("70 channels", (1, 70, 1, 1), 2)]:
        c = Case(name, f"scale={scale}")
        c.finish(F.interpolate(c.fill("x0", *dims), scale_factor=scale, mode="nearest"))
        yield c
    for name, dims, scale, align in [("bilinear", (2, 5, 3, 4), 2, False), ("bilinear, 16 channels, 3", (1, 16, 2, 3), 3, False),
                                     ("bilinear of a row, 21 channels", (2, 21, 1, 3), 4, False), ("bilinear, wide", (1, 2, 2, 300), 2, False),
                                     ("align corners", (2, 5, 3, 4), 2, True), ("align corners, 19 channels, 3", (1, 19, 4, 2), 3, True),
                                     ("align corners of a pixel", (1, 8, 1, 1), 2, True)]:
        c = Case(name, f"scale={scale} mode=bilinear align_corners={str(align).lower()}")
        c.finish(F.interpolate(c.fill("x0", *dims), scale_factor=scale, mode="bilinear", align_corners=align))
        yield c


def pad():
    table = [("zero", (2, 3, 4, 5), (1, 1, 1, 1), "zero", "zero"), ("zero, cut off", (2, 5, 6, 5), (-1, 2, 0, -3), "zero", "zero"),
             ("replicate", (1, 16, 3, 4), (2, 1, 5, 0), "replicate", "replicate"), ("reflect", (2, 5, 4, 6), (3, 1, 2, 5), "reflect", "reflect"),
             ("circular", (1, 8, 3, 4), (3, 2, 1, 4), "circular", "circular"), ("of a globe", (2, 19, 5, 8), (2, 2, 3, 3), "reflect", "circular"),
             ("replicate and zero", (1, 3, 2, 3), (1, 2, 2, 1), "replicate", "zero"), ("one pixel", (2, 4, 1, 1), (0, 1, 1, 1), "circular", "replicate")]
    for name, dims, edges, rows, columns in table:
        c = Case(name, f"pad={','.join(map(str, edges))} mode={rows},{columns}")
        y = c.fill("x0", *dims)
        for sides, mode in [((0, 0) + edges[:2], rows), (edges[2:] + (0, 0), columns)]:
            y = F.pad(y, sides, "constant" if mode == "zero" else mode)
        c.finish(y)
        yield c


def pixel_shuffle():
    for name, dims, scale in [("odd", (2, 12, 3, 4), 2), ("64 channels", (1, 64, 2, 3), 2), ("3", (1, 72, 2, 1), 3), ("20 channels", (2, 20, 3, 2), 2),
                              ("to one channel", (2, 16, 3, 2), 4)]:
        c = Case(name, f"scale={scale}")
        c.finish(F.pixel_shuffle(c.fill("x0", *dims), scale))
        yield c


def crop():
    for name, dims, like in [("rows and columns", (2, 5, 6, 7), (2, 3, 4, 4)), ("the same size", (1, 16, 2, 3), (1, 1, 2, 3)),
                             ("one pixel", (2, 8, 4, 3), (2, 8, 1, 1))]:
        c = Case(name)
        x = c.fill("x0", *dims)
        c.fill("x1", *like)
        top, left = (dims[2] - like[2]) // 2, (dims[3] - like[3]) // 2
        c.finish(x[:, :, top:top + like[2], left:left + like[3]])
        yield c


def add():
    for name, dims, act in [("2-d", (3, 7), None), ("3-d", (2, 3, 5), None), ("4-d", (2, 5, 3, 3), None), ("4-d, relu", (2, 8, 3, 3), "relu")]:
        c = Case(name, "", act)
        c.finish(c.fill("x0", *dims) + c.fill("x1", *dims))
        yield c


def concat():
    for name, shapes in [("2-d", [(3, 4), (3, 7)]), ("4-d", [(2, 3, 4, 3), (2, 5, 4, 3)]),
                         ("three, 8 channels", [(2, 8, 3, 2), (2, 16, 3, 2), (2, 8, 3, 2)])]:
        c = Case(name)
        c.finish(torch.cat([c.fill(f"x{i}", *s) for i, s in enumerate(shapes)], 1))
        yield c


def flatten():
    for name, dims in [("4-d", (2, 5, 3, 4)), ("4-d, 16 channels", (3, 16, 2, 2)), ("3-d", (2, 3, 5))]:
        c = Case(name)
        c.finish(torch.flatten(c.fill("x0", *dims), 1))
        yield c


def embedding():
    c = Case("with repeats", "vocab=7 width=5")
    tokens = torch.tensor([[0, 3, 3, 6], [1, 3, 0, 0], [6, 5, 4, 3]])
    c.values("x0", tokens)
    c.finish(F.embedding(tokens, c.fill("w0", 7, 5)))
    yield c


def positions():
    for name, attrs, dims, rows in [("all places", "context=4", (3, 4, 5), None), ("fewer places, padded rows", "context=7", (3, 4, 16), 2)]:
        c = Case(name, attrs)
        x, w = c.fill("x0", *dims), c.fill("w0", int(attrs.split("=")[1]), dims[2])
        c.padded(lambda x: x + w[:dims[1]], x, rows)
        yield c


def turned(x, base=10000.0):
    """Rotary positions, halves form, of (N, heads, T, width)."""
    half, places = x.shape[-1] // 2, torch.arange(x.shape[-2])
    angle = places[:, None] * base ** (-torch.arange(half) / half)
    low, high = x[..., :half], x[..., half:]
    return torch.cat([low * angle.cos() - high * angle.sin(), high * angle.cos() + low * angle.sin()], -1)


def attention():
    table = [("one head of 8", 1, None, (2, 5, 24), None, None), ("two heads of 64", 2, None, (1, 3, 384), None, None),
             ("heads of 5", 3, None, (2, 4, 45), None, None), ("two tiles", 2, None, (1, 67, 30), None, None),
             ("padded rows", 2, None, (3, 6, 48), None, 2), ("rotary", 2, None, (2, 7, 72), 1e4, None),
             ("rotary, heads of 80, padded rows", 1, None, (2, 5, 240), 1e4, 1), ("rotary, two tiles", 1, None, (1, 66, 24), 1e4, None),
             ("four heads, two of keys", 4, 2, (2, 6, 64), None, None), ("one of keys, rotary", 3, 1, (2, 5, 40), 1e4, None),
             ("shared keys, two tiles, padded rows", 6, 3, (2, 70, 48), 5e5, 1),
             ("full", 2, None, (2, 5, 24), None, None), ("full, three tiles", 1, None, (1, 130, 12), None, None),
             ("full, shared keys, rotary, padded rows", 4, 2, (2, 67, 32), 1e4, 1)]
    for name, heads, kv_heads, dims, base, rows in table:
        attrs = f"heads={heads}" + (f" kv_heads={kv_heads}" if kv_heads else "") + (" rotary=true" if base else "")
        attrs += " full=true" if "full" in name else ""
        c = Case(name, attrs + (f" rotary_base={base:g}" if base and base != 1e4 else ""))
        kv = kv_heads or heads
        wide = dims[2] // (heads + 2 * kv)

        def run(x):
            n, t = x.shape[0], dims[1]
            q, k, v = (p.reshape(n, t, -1, wide).transpose(1, 2) for p in x.split([heads * wide, kv * wide, kv * wide], 2))
            if base:
                q, k = turned(q, base), turned(k, base)
            y = F.scaled_dot_product_attention(q, k, v, is_causal="full" not in name, enable_gqa=kv != heads)
            return y.transpose(1, 2).reshape(n, t, heads * wide)

        c.padded(run, c.fill("x0", *dims, scale=2.0), rows)
        yield c


def pixels_to_tokens():
    for name, dims in (("square", (2, 5, 3, 3)), ("blocks", (3, 32, 2, 5)), ("one channel", (2, 1, 4, 3)), ("one pixel", (3, 7, 1, 1))):
        c = Case(name)
        c.finish(c.fill("x0", *dims).flatten(2).transpose(1, 2))
        yield c


def tokens_to_pixels():
    for name, dims in (("square", (2, 5, 3, 3)), ("blocks", (3, 32, 2, 5)), ("one channel", (2, 1, 4, 3)), ("one pixel", (3, 7, 1, 1))):
        c = Case(name)
        x, like = c.fill("x0", dims[0], dims[2] * dims[3], dims[1]), c.fill("x1", *dims)
        c.finish(x.transpose(1, 2).reshape(like.shape))
        yield c


def softmax_loss():
    table = [("10 classes", (4, 10), 0.0, None), ("smoothing", (3, 7), 0.1, None), ("sequence", (2, 3, 5), 0.0, None),
             ("sequence, smoothing, padded", (3, 2, 17), 0.2, 2), ("padded rows", (5, 4), 0.1, 3), ("large logits", (2, 6), 0.0, None)]
    for name, dims, smoothing, rows in table:
        c = Case(name, f"smoothing={smoothing}")
        x = c.fill("x0", *dims, scale=64.0 if "large" in name else 4.0)
        k = dims[-1]
        count = x.numel() // k
        real = count if rows is None else rows * (count // dims[0])
        labels = torch.tensor([(3 * i + 1) % k for i in range(count)])
        if rows:
            c.flag(f"rows {rows}")
        c.values("labels", labels)
        flat = x.reshape(count, k)
        loss = F.cross_entropy(flat, labels, reduction="none", label_smoothing=smoothing)
        truth = flat.gather(1, labels[:, None])
        c.finish_loss(real, loss, (flat > truth).sum(1).double(), flat.argmax(1).double())
        yield c
    for name, dims, weight in PIXEL_CASES:
        for smoothing in (0.0, 0.1):
            c = Case(f"{name}, smoothing {smoothing}", f"smoothing={smoothing}" + (" class_weights=" + ",".join(map(str, weight)) if weight else ""))
            pixel_loss(c, dims, weight, 0, smoothing, 1 if name == "weights" else None)
            yield c


def yolo_targets(row, grid, anchors):
    """Pairs of anchor and cell (column, row) that have to predict a box; grid: columns, rows; anchors in cells."""
    x, y, w, h = row[1] * grid[0], row[2] * grid[1], row[3] * grid[0], row[4] * grid[1]
    cells = [(math.floor(x), math.floor(y))]
    for axis, (at, size) in enumerate(zip((x, y), grid)):
        for shift, reach in [(-0.5, at), (0.5, size - at)]:
            if reach % 1 < 0.5 and reach > 1:
                cells.append((int(at + shift), cells[0][1]) if axis == 0 else (cells[0][0], int(at + shift)))
    for a, (aw, ah) in enumerate(anchors):
        if w > 0 and h > 0 and max(w / aw, aw / w, h / ah, ah / h) < 4:
            for i, j in cells:
                i, j = min(max(i, 0), grid[0] - 1), min(max(j, 0), grid[1] - 1)
                yield a, i, j, torch.tensor([x - i, y - j, w, h])


def complete_iou(p, t):
    """CIoU of boxes (x, y, w, h), with alpha as a constant."""
    low, high = torch.maximum(p[:2] - p[2:] / 2, t[:2] - t[2:] / 2), torch.minimum(p[:2] + p[2:] / 2, t[:2] + t[2:] / 2)
    inter = (high - low).clamp(0).prod()
    iou = inter / (p[2:].prod() + t[2:].prod() - inter + 1e-7)
    hull = torch.maximum(p[:2] + p[2:] / 2, t[:2] + t[2:] / 2) - torch.minimum(p[:2] - p[2:] / 2, t[:2] - t[2:] / 2)
    v = 4 / math.pi ** 2 * (torch.atan(t[2] / t[3]) - torch.atan(p[2] / p[3])) ** 2
    alpha = (v / (v - iou + 1 + 1e-7)).detach()
    return iou - ((p[:2] - t[:2]) ** 2).sum() / ((hull ** 2).sum() + 1e-7) - alpha * v


def yolo_loss():
    gain, balance = {2: 1.5, 3: 1.0}, {2: [4.0, 1.0], 3: [4.0, 1.0, 0.4]}
    anchors3, anchors2 = "100,130,160,300,330,230,300,610,620,450,590,460", "90,70,160,300,250,180,330,620"
    # name, height and width, grids, anchors, classes, samples, boxes of each, real samples, smoothing
    table = [("no boxes", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 2, 2, [0, 0], None, 0.0),
             ("some boxes", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 2, 2, [3, 1], None, 0.0),
             ("borders", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 2, 2, [6, 5], None, 0.0),
             ("doubles", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 3, 2, [4, 4], None, 0.0),
             ("one class", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 1, 2, [2, 5], None, 0.0),
             ("smoothing", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 3, 1, [5], None, 0.1),
             ("padded rows", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 2, 3, [4, 0, 0], 2, 0.0),
             ("two levels, not square", (640, 480), [(8, 6), (4, 3)], anchors2, 2, 1, [9], None, 0.0),
             ("many boxes", (640, 640), [(4, 4), (2, 2), (1, 1)], anchors3, 2, 2, [40, 3], None, 0.0),
             ("20 classes", (320, 320), [(2, 2), (1, 1)], "100,130,160,300", 20, 2, [6, 2], None, 0.05)]
    for name, image, grids, anchors, k, n, boxes, rows, smoothing in table:
        c = Case(name, f"image={image[0]},{image[1]} anchors={anchors} smoothing={smoothing}")
        sides = [float(v) for v in anchors.split(",")]
        per_level = len(sides) // 2 // len(grids)
        real = n if rows is None else rows
        if rows:
            c.flag(f"rows {rows}")
        x = [c.fill(f"x{l}", n, per_level * (5 + k), *g, scale=3.0) for l, g in enumerate(grids)]
        row = []
        for at in range(sum(boxes)):
            u = [(number(c.seed + 77, 8 * at + i, 0.5, 0.5)) for i in range(8)]
            # Half of the centres lie on edges and middles of cells.
            if name in ("borders", "many boxes") and u[5] < 0.5:
                u[0], u[1] = round(u[0] * 8) / 8, round(u[1] * 8) / 8
            row.append([int(u[4] * k), u[0], u[1], 0.1 + 0.8 * u[2], 0.1 + 0.8 * u[3]])
            if name == "doubles" and at % 2:
                row[-1][1:] = row[-2][1:]
        if name == "borders":
            row[0][1:] = [1.0, 1.0, 0.3, 0.3]
            row[1][1:] = [0.25, 0.75, 0.3, 0.3]
            row[2][1:] = [0.125, 0.375, 0.3, 0.3]
            row[3][3] = 0.0
        start = [sum(boxes[:i]) for i in range(n + 1)]
        # targets are float32
        row = torch.tensor(row).reshape(-1, 5).float().double()
        match = []
        for l, (high, wide) in enumerate(grids):
            cells = [(sides[2 * (l * per_level + a)] * wide / image[1], sides[2 * (l * per_level + a) + 1] * high / image[0])
                     for a in range(per_level)]
            match.append([[(int(r[0]), cells[m[0]], *m) for r in row[start[i]:start[i + 1]].tolist()
                           for m in yolo_targets(r, (wide, high), cells)] for i in range(n)])
        batch, count = real + 5, [sum(map(len, level)) + 11 * (l + 1) for l, level in enumerate(match)]
        g, parts = gain[len(grids)], torch.zeros(3, n)
        for l, level in enumerate(match):
            for i in range(real):
                p = x[l][i].reshape(per_level, 5 + k, *grids[l])
                best = torch.zeros(per_level, *grids[l])
                for label, anchor, a, column, line, target in level[i]:
                    t = p[a, :, line, column]
                    s = torch.sigmoid(t[:4])
                    overlap = complete_iou(torch.cat([2 * s[:2] - 0.5, torch.tensor(anchor) * (2 * s[2:]) ** 2]), target)
                    best[a, line, column] = max(best[a, line, column].item(), overlap.item(), 0.0)
                    parts[0, i] = parts[0, i] + batch * 0.05 * g / count[l] * (1 - overlap)
                    if k > 1:
                        classes = torch.full((k,), smoothing / 2)
                        classes[label] = 1 - smoothing / 2
                        entropy = F.binary_cross_entropy_with_logits(t[5:], classes, reduction="sum")
                        parts[2, i] = parts[2, i] + batch * 0.5 * g * k / 80 / (count[l] * k) * entropy
                entropy = F.binary_cross_entropy_with_logits(p[:, 4], best)
                parts[1, i] = parts[1, i] + g * image[0] * image[1] / 640 ** 2 * balance[len(grids)][l] * entropy
        c.values("box_start", torch.tensor(start).double())
        c.values("boxes", row if len(row) else torch.zeros(1, 5))
        c.values("normaliser", torch.tensor(count + [batch]).double())
        y = torch.stack([parts.sum(0), parts[0], parts[1]], 1).detach()
        c.values("y", y)
        c.flag("loss_scale 50")
        (parts.sum() * 50).backward()
        c.gradients()
        yield c


def pixel_labels(dims):
    """Labels of the pixels of (N,C,H,W); some have none, and the last sample has none at all."""
    n, classes, pixels = dims[0], dims[1], math.prod(dims[2:])
    labels = torch.tensor([(5 * i * i + 2 * i + 1) % (classes + 1) - 1 for i in range(n * pixels)]).reshape(n, pixels)
    labels[n - 1] = -1
    return labels


def pixel_loss(case, dims, classes_of, focus, smoothing=0.0, rows=None):
    """(1 - p)^focus times the weighted cross-entropy: a row for each pixel, whose mean is that of PyTorch's weighted mean over
    the pixels of each sample."""
    x = case.fill("x0", *dims, scale=3.0)
    weight = torch.tensor(classes_of) if classes_of else torch.ones(dims[1])
    labels = pixel_labels(dims)
    case.values("labels", labels.flatten())
    if rows:
        case.flag(f"rows {rows}")
    logits = x.flatten(2).permute(0, 2, 1)
    losses, above, best = [], [], logits.argmax(2)
    for sample, label in zip(logits, labels):
        has = label >= 0
        ce = F.cross_entropy(sample, label, weight=weight, ignore_index=-1, reduction="none", label_smoothing=smoothing)
        p = sample.softmax(1).gather(1, label.clamp(min=0)[:, None])[:, 0]
        total = (weight[label.clamp(min=0)] * has).sum()
        term = ce * (1 - p) ** focus if focus else ce
        losses.append(term * (len(label) / total) if has.any() else term * 0)
        if has.any() and not focus:
            whole = F.cross_entropy(sample, label, weight=weight, ignore_index=-1, label_smoothing=smoothing)
            assert abs(losses[-1].mean() - whole) < 1e-12
        own = sample.gather(1, label.clamp(min=0)[:, None])
        above.append(torch.where(has, (sample > own).sum(1).double(), -1.0))
    case.finish_loss((rows or dims[0]) * logits.shape[1], torch.cat(losses), torch.cat(above), best.flatten().double())


PIXEL_CASES = [("pixels", (2, 3, 4, 5), None), ("weights", (3, 4, 3, 3), [0.5, 2.0, 0.0, 1.25]), ("pieces", (2, 2, 23, 24), [1.0, 3.0])]


def focal_loss():
    for name, dims, weight in PIXEL_CASES[:2]:
        for gamma in (2.0, 0.5):
            c = Case(f"{name}, gamma {gamma}", f"gamma={gamma}" + (" class_weights=" + ",".join(map(str, weight)) if weight else ""))
            pixel_loss(c, dims, weight, gamma)
            yield c


def region_loss(value):
    """1 - the mean over classes of value(inside, all, labelled), sums over the pixels that have a label."""
    for name, dims in [("pixels", (2, 3, 4, 5)), ("a class without pixels", (3, 5, 2, 2)), ("pieces", (2, 2, 23, 24))]:
        c = Case(name)
        x, labels = c.fill("x0", *dims, scale=3.0), pixel_labels(dims)
        c.values("labels", labels.flatten())
        p = x.flatten(2).softmax(1) * (labels >= 0)[:, None]
        own = F.one_hot(labels.clamp(min=0), dims[1]).permute(0, 2, 1) * (labels >= 0)[:, None]
        loss = 1 - value((p * own).sum(2), p.sum(2), own.sum(2)).mean(1)
        c.finish_loss(dims[0], loss, loss * 0, loss * 0)
        yield c


def dice_loss():
    return region_loss(lambda inside, p, y: (2 * inside + 1) / (p + y + 1))


def iou_loss():
    return region_loss(lambda inside, p, y: (inside + 1) / (p + y - inside + 1))


def point_loss(function, attrs=""):
    """A loss of numbers: the mean over a sample's targets, or that of the targets that are not missing, by weight."""
    for name, dims, rows in [("plain", (4, 6), None), ("padded rows", (5, 3), 3)]:
        c = Case(name, attrs)
        x, t = c.fill("x0", *dims), c.fill("targets", *dims)
        if rows:
            c.flag(f"rows {rows}")
        loss = function(x, t.detach()).mean(1)
        c.finish_loss(rows or dims[0], loss, loss * 0, loss * 0)
        yield c
    for name, dims, weighted in [("field", (2, 3, 4, 5), False), ("rows of a sequence, weights", (3, 2, 7), True), ("field, weights", (3, 2, 3, 3), True)]:
        c = Case(name, attrs)
        x = c.fill("x0", *dims)
        t = c.made_up(dims, 2.0).flatten(1)
        t[0, ::3] = math.nan
        t[1, 1:] = math.nan
        t[2:] = math.nan
        c.values("targets", t.reshape(dims))
        w = c.made_up(t.shape[1:], 0.5, 0.75) if weighted else torch.ones(t.shape[1:])
        if weighted:
            c.values("weights", w)
        here = ~t.isnan()
        e = function(x.flatten(1), torch.where(here, t, 0)) * w * here
        loss = e.sum(1) / (w * here).sum(1).clamp(min=1e-30)
        c.finish_loss(dims[0], loss, loss * 0, loss * 0)
        yield c


def mse_loss():
    return point_loss(lambda x, t: F.mse_loss(x, t, reduction="none"))


def l1_loss():
    return point_loss(lambda x, t: F.l1_loss(x, t, reduction="none"))


def huber_loss():
    return point_loss(lambda x, t: F.huber_loss(x, t, reduction="none", delta=0.5), "delta=0.5")


def charbonnier_loss():
    return point_loss(lambda x, t: torch.sqrt((x - t) ** 2 + 0.04) - 0.2, "eps=0.2")


def sigmoid_loss():
    for name, rows, scale, given in [("plain", 6, 4.0, None), ("padded rows", 5, 4.0, 3), ("large logits", 4, 200.0, None)]:
        c = Case(name)
        x = c.fill("x0", rows, 1, scale=scale)
        labels = torch.tensor([(i * i + 1) % 3 % 2 for i in range(rows)])
        if given:
            c.flag(f"rows {given}")
        c.values("labels", labels)
        loss = F.binary_cross_entropy_with_logits(x[:, 0], labels.double(), reduction="none")
        wrong = ((x[:, 0] >= 0) != (labels > 0)).double()
        c.finish_loss(given or rows, loss, wrong, x[:, 0])
        yield c


def interaction():
    for name, rows, vectors, width in [("two vectors", 3, 2, 5), ("many", 2, 7, 4), ("wide", 2, 3, 19)]:
        c = Case(name, f"width={width}")
        x = c.fill("x0", rows, vectors * width)
        z = x.reshape(rows, vectors, width)
        dots = torch.bmm(z, z.transpose(1, 2))
        i = [i for i in range(vectors) for j in range(i)]
        j = [j for i in range(vectors) for j in range(i)]
        c.finish(dots[:, i, j])
        yield c


def fm():
    for name, rows, vectors, width in [("one vector", 2, 1, 5), ("several", 3, 6, 4), ("wide", 2, 2, 150)]:
        c = Case(name, f"width={width}")
        x = c.fill("x0", rows, vectors * width)
        v = x.reshape(rows, vectors, width)
        c.finish(0.5 * (v.sum(1) ** 2 - (v**2).sum(1)).sum(1, keepdim=True))
        yield c


def numeric_embedding():
    for name, rows, numbers, width in [("several", 4, 3, 5), ("wide", 2, 2, 20)]:
        c = Case(name, f"width={width}")
        x, w = c.fill("x0", rows, numbers), c.fill("w0", numbers, width)
        c.finish((x[:, :, None] * w).reshape(rows, numbers * width))
        yield c


KINDS = {
    "dense": dense, "conv2d": conv2d, "conv_transpose2d": conv_transpose2d, "detect": detect, "batch_norm": batch_norm, "layer_norm": layer_norm,
    "rms_norm": rms_norm, "group_norm": group_norm, "instance_norm": instance_norm, "film": film, "swiglu": swiglu,
    "relu": lambda: activation(F.relu), "relu6": lambda: activation(F.relu6),
    "gelu": lambda: activation(lambda x: F.gelu(x, approximate="tanh")), "silu": lambda: activation(F.silu),
    "tanh": lambda: activation(torch.tanh), "sigmoid": lambda: activation(torch.sigmoid), "elu": lambda: activation(F.elu, "alpha", 0.3),
    "leaky_relu": lambda: activation(F.leaky_relu, "slope", 0.25), "softplus": lambda: activation(F.softplus), "mish": lambda: activation(F.mish),
    "hardswish": lambda: activation(F.hardswish),
    "max_pool": max_pool, "avg_pool": avg_pool, "global_pool": global_pool, "upsample": upsample, "pixel_shuffle": pixel_shuffle, "pad": pad,
    "pixels_to_tokens": pixels_to_tokens, "tokens_to_pixels": tokens_to_pixels, "crop": crop, "add": add, "concat": concat,
    "flatten": flatten, "embedding": embedding, "positions": positions, "attention": attention, "softmax_loss": softmax_loss, "mse_loss": mse_loss,
    "focal_loss": focal_loss, "dice_loss": dice_loss, "iou_loss": iou_loss,
    "l1_loss": l1_loss, "huber_loss": huber_loss, "charbonnier_loss": charbonnier_loss,
    "sigmoid_loss": sigmoid_loss, "yolo_loss": yolo_loss, "interaction": interaction, "fm": fm, "numeric_embedding": numeric_embedding,
}


def main():
    out = sys.argv[1] if len(sys.argv) > 1 else "tests/golden/layers"
    kinds = sys.argv[2:] or list(KINDS)
    for kind in kinds:
        if kind not in KINDS:
            sys.exit(f"{kind} has no cases: write a function that yields them, and its line in KINDS")
    os.makedirs(out, exist_ok=True)
    for kind in kinds:
        with open(os.path.join(out, kind + ".txt"), "w") as f:
            f.write(f"# {kind}: made by tools/golden_layers.py with PyTorch {torch.__version__}\n")
            for case in KINDS[kind]():
                f.write(case.text())


if __name__ == "__main__":
    main()
