#!/usr/bin/env python3
"""Golden values of a detector's training, from PyTorch.

usage: golden_detector.py DIRECTORY     writes detector.txt there (tests/golden)

Network, matches and loss of YOLOv5 v7.0, written from their description (src/model/yolov5.c, src/tensor/cpu/loss/yolo_loss.c name the
formulas), with few channels, on 64 x 64 pixels; SGD with Nesterov momentum. Weights, pixels and columns are those of golden_models.py,
and boxes a formula too. Behind the curve stand the first numbers of each tensor after the last step, running statistics among them.
"""
import math
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

from golden_models import STEPS, nudged, param
from golden_optim import fnv, noise

BATCH, IMAGE, CLASSES, SHOWN = 16, 64, 10, 3
DEPTH, WIDTH = 0.33, 0.03
LR, MOMENTUM, DECAY = 0.005, 0.937, 0.0005
STRIDES, BALANCE = (8, 16, 32), (4.0, 1.0, 0.4)
ANCHORS = [[(10, 13), (16, 30), (33, 23)], [(30, 61), (62, 45), (59, 119)], [(116, 90), (156, 198), (373, 326)]]


def scaled(channels):
    return math.ceil(channels * WIDTH / 8) * 8


class Conv(nn.Module):
    def __init__(self, i, o, k=1, s=1, pad=None):
        super().__init__()
        self.conv = nn.Conv2d(i, o, k, s, k // 2 if pad is None else pad, bias=False)
        self.bn = nn.BatchNorm2d(o, eps=1e-3, momentum=0.03)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)))


class Bottleneck(nn.Module):
    def __init__(self, width, add):
        super().__init__()
        self.cv1, self.cv2, self.add = Conv(width, width), Conv(width, width, 3), add

    def forward(self, x):
        y = self.cv2(self.cv1(x))
        return x + y if self.add else y


class C3(nn.Module):
    def __init__(self, i, o, count, add):
        super().__init__()
        half = o // 2
        self.cv1, self.cv2, self.cv3 = Conv(i, half), Conv(i, half), Conv(2 * half, o)
        self.m = nn.Sequential(*(Bottleneck(half, add) for _ in range(max(round(count * DEPTH), 1))))

    def forward(self, x):
        return self.cv3(torch.cat((self.m(self.cv1(x)), self.cv2(x)), 1))


class Pools(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.cv1, self.cv2 = Conv(c, c // 2), Conv(2 * c, c)

    def forward(self, x):
        y = [self.cv1(x)]
        for _ in range(3):
            y.append(F.max_pool2d(y[-1], 5, 1, 2))
        return self.cv2(torch.cat(y, 1))


class Detect(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.m = nn.ModuleList(nn.Conv2d(c, 3 * (5 + CLASSES), 1) for c in channels)


class Detector(nn.Module):
    """Modules have the numbers that they have in YOLOv5's list; 11, 12, 15, 16, 19 and 22 have no parameters."""

    def __init__(self):
        super().__init__()
        a, b, c, d, e = (scaled(n) for n in (64, 128, 256, 512, 1024))
        modules = {0: Conv(3, a, 6, 2, 2), 1: Conv(a, b, 3, 2), 2: C3(b, b, 3, True), 3: Conv(b, c, 3, 2), 4: C3(c, c, 6, True),
                   5: Conv(c, d, 3, 2), 6: C3(d, d, 9, True), 7: Conv(d, e, 3, 2), 8: C3(e, e, 3, True), 9: Pools(e),
                   10: Conv(e, d), 13: C3(2 * d, d, 3, False), 14: Conv(d, c), 17: C3(2 * c, c, 3, False),
                   18: Conv(c, c, 3, 2), 20: C3(2 * c, d, 3, False), 21: Conv(d, d, 3, 2), 23: C3(2 * d, e, 3, False),
                   24: Detect((c, d, e))}
        self.model = nn.ModuleDict({str(n): module for n, module in modules.items()})

    def forward(self, x):
        at = lambda x, *numbers: x if not numbers else at(self.model[str(numbers[0])](x), *numbers[1:])
        join = lambda *x: torch.cat(x, 1)
        twice = lambda x: F.interpolate(x, scale_factor=2)
        x4 = at(x, 0, 1, 2, 3, 4)
        x6 = at(x4, 5, 6)
        x10 = at(x6, 7, 8, 9, 10)
        x14 = at(join(twice(x10), x6), 13, 14)
        x17 = at(join(twice(x14), x4), 17)
        x20 = at(join(at(x17, 18), x14), 20)
        x23 = at(join(at(x20, 21), x10), 23)
        return [head(x) for head, x in zip(self.model["24"].m, (x17, x20, x23))]


def boxes():
    """(image, class, x, y, width, height) of all boxes, as parts of the picture; image i has i of them."""
    rows = []
    for image in range(BATCH):
        for _ in range(image):
            i = len(rows)
            x, y, w, h = (float(v) for v in noise(f"b{i}", 4))
            side = lambda v: 0.55 + 0.45 * v
            rows.append([image, fnv(f"c{i}") % CLASSES, 0.5 + 0.5 * x, 0.5 + 0.5 * y, side(w), side(h)])
    return torch.tensor(rows, dtype=torch.float32).double()


def cells(row, size):
    """Cells (column, row) that have to predict a box with its centre at (x, y) cells of a grid of size x size."""
    x, y = row[2].item() * size, row[3].item() * size
    i, j = math.floor(x), math.floor(y)
    found = [(i, j)]
    if x % 1 < 0.5 and x > 1:
        found.append((i - 1, j))
    if (size - x) % 1 < 0.5 and size - x > 1:
        found.append((i + 1, j))
    if y % 1 < 0.5 and y > 1:
        found.append((i, j - 1))
    if (size - y) % 1 < 0.5 and size - y > 1:
        found.append((i, j + 1))
    return found


def matches(rows, level):
    """Pairs of a box and a cell that has to predict it: (image, anchor, row, column, class) and the box in cells."""
    size = IMAGE // STRIDES[level]
    place, box = [], []
    for r in rows:
        w, h = r[4].item() * size, r[5].item() * size
        for a, anchor in enumerate(ANCHORS[level]):
            aw, ah = anchor[0] / STRIDES[level], anchor[1] / STRIDES[level]
            if max(w / aw, aw / w, h / ah, ah / h) < 4:
                for i, j in cells(r, size):
                    place.append([int(r[0]), a, j, i, int(r[1])])
                    box.append([r[2].item() * size - i, r[3].item() * size - j, w, h])
    return torch.tensor(place, dtype=torch.long).reshape(-1, 5), torch.tensor(box, dtype=torch.float64).reshape(-1, 4)


def overlap(p, t):
    """Complete IoU of boxes (x, y, w, h); its alpha is a constant."""
    low, high = torch.maximum(p[:, :2] - p[:, 2:] / 2, t[:, :2] - t[:, 2:] / 2), torch.minimum(p[:, :2] + p[:, 2:] / 2, t[:, :2] + t[:, 2:] / 2)
    inter = (high - low).clamp(0).prod(1)
    iou = inter / (p[:, 2:].prod(1) + t[:, 2:].prod(1) - inter + 1e-7)
    hull = torch.maximum(p[:, :2] + p[:, 2:] / 2, t[:, :2] + t[:, 2:] / 2) - torch.minimum(p[:, :2] - p[:, 2:] / 2, t[:, :2] - t[:, 2:] / 2)
    v = 4 / math.pi ** 2 * (torch.atan(t[:, 2] / t[:, 3]) - torch.atan(p[:, 2] / p[:, 3])) ** 2
    alpha = (v / (v - iou + 1 + 1e-7)).detach()
    return iou - ((p[:, :2] - t[:, :2]) ** 2).sum(1) / ((hull ** 2).sum(1) + 1e-7) - alpha * v


def loss_of(out, rows):
    """Loss of the whole batch, divided by the number of pictures."""
    loss = 0
    for level, grid in enumerate(out):
        p = grid.unflatten(1, (3, 5 + CLASSES)).movedim(2, -1)
        place, box = matches(rows, level)
        objects = torch.zeros(p.shape[:-1], dtype=p.dtype)
        if len(place):
            image, a, j, i, label = place.T
            logit, box = p[image, a, j, i], box.to(p.dtype)
            s = torch.sigmoid(logit[:, :4])
            anchor = torch.tensor(ANCHORS[level], dtype=p.dtype)[a] / STRIDES[level]
            good = overlap(torch.cat((2 * s[:, :2] - 0.5, anchor * (2 * s[:, 2:]) ** 2), 1), box)
            loss = loss + 0.05 * (1 - good).mean()
            loss = loss + 0.5 * CLASSES / 80 * F.binary_cross_entropy_with_logits(logit[:, 5:], F.one_hot(label, CLASSES).to(p.dtype))
            # If several matches are in one place, the largest overlap counts.
            for k in range(len(place)):
                where = image[k], a[k], j[k], i[k]
                objects[where] = torch.maximum(objects[where], good[k].detach())
        loss = loss + (IMAGE / 640) ** 2 * BALANCE[level] * F.binary_cross_entropy_with_logits(p[..., 4], objects)
    return loss


def train(dtype, layout=torch.contiguous_format, reverse=False):
    """Returns the losses, and the first numbers of each tensor at the end."""
    net = Detector()
    for name, p in net.named_parameters():
        p.data = param(name, tuple(p.shape))
    net.to(dtype).to(memory_format=layout).train()
    x = torch.from_numpy(noise("x", BATCH * 3 * IMAGE * IMAGE)).to(dtype) * 1.5
    x, rows = x.reshape(BATCH, 3, IMAGE, IMAGE).contiguous(memory_format=layout), boxes()
    if reverse:
        x, rows = x.flip(0), rows.flip(0)
        rows[:, 0] = BATCH - 1 - rows[:, 0]
    weights = [p for p in net.parameters() if p.dim() > 1]
    others = [p for p in net.parameters() if p.dim() == 1]
    sgd = torch.optim.SGD([{"params": weights, "weight_decay": DECAY}, {"params": others}], LR, MOMENTUM, nesterov=True)
    losses = []
    for _ in range(STEPS):
        sgd.zero_grad()
        loss = loss_of(net(x), rows)
        loss.backward()
        sgd.step()
        losses.append(loss.item())
    return losses, {k: v.flatten()[:SHOWN].double() for k, v in net.state_dict().items() if not k.endswith("tracked")}


def main(directory):
    torch.set_num_threads(1)
    losses, tensors = train(torch.float64)
    single = [train(torch.float32), train(torch.float32, torch.channels_last), train(torch.float32, reverse=True)]
    single += nudged(lambda: train(torch.float32))
    away = max(((s[1][k] - v).abs() / v.abs().clamp(1)).max().item() for s in single for k, v in tensors.items())
    with open(f"{directory}/detector.txt", "w") as out:
        out.write("# Written by tools/golden_detector.py with PyTorch %s: each step's loss in double precision, and the largest\n"
                  "# relative distance from it of PyTorch's runs in single precision.\n" % torch.__version__)
        out.write("# model NAME BATCH CHANNELS IMAGE OPTIONS, then one line a step\n")
        out.write(f"model yolov5n {BATCH} 3 {IMAGE} model.name=yolov5n model.width_multiple={WIDTH} train.loss=yolo optim.lr={LR} "
                  f"optim.momentum={MOMENTUM} optim.nesterov=true optim.weight_decay={DECAY}\n")
        for step, d in enumerate(losses):
            out.write(f"{d:.12g} {max(abs(s[0][step] - d) / d for s in single):.2e}\n")
        out.write(f"# tensor NAME first numbers, after the last step; single precision is up to {away:.2g} max(1, |number|) away\n")
        for name, values in tensors.items():
            out.write("tensor %s %s\n" % (name, " ".join(f"{v:.9g}" for v in values.tolist())))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
