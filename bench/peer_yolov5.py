"""YOLOv5n in PyTorch, trained on a set of scenes as jobs/scenes-yolov5n.yaml trains weft's, and judged by pycocotools.

The network and its loss are those of YOLOv5 v7.0, written from their description, without weft's code, in one process; optimizer and
schedule are the job's.
usage: peer_yolov5.py TRAIN.h5 TEST.h5 [EPOCHS] [BATCH] [THREADS]       needs torch, numpy, h5py, pycocotools
       peer_yolov5.py --judge RESULTS.json TEST.h5                      pycocotools on the boxes of `weft eval --results`
       peer_yolov5.py --step SIDE BATCH THREADS [eager|compile|ddp]     time of a step with random images and boxes;
                                                                        ddp: under torchrun, BATCH and THREADS of each process
"""
import contextlib, copy, io, json, math, sys, time
import h5py, numpy as np, torch
from torch import nn
import torch.nn.functional as F
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval

ANCHORS = torch.tensor([[[10, 13], [16, 30], [33, 23]], [[30, 61], [62, 45], [59, 119]], [[116, 90], [156, 198], [373, 326]]]).float()
LR, DECAY = 2e-3, 5e-4
STRIDES, BALANCE = (8, 16, 32), (4.0, 1.0, 0.4)


class Conv(nn.Module):
    def __init__(self, a, b, k=1, s=1, p=None):
        super().__init__()
        self.conv = nn.Conv2d(a, b, k, s, k // 2 if p is None else p, bias=False)
        self.bn = nn.BatchNorm2d(b, eps=1e-3, momentum=0.03)

    def forward(self, x):
        return F.silu(self.bn(self.conv(x)), inplace=True)


class C3(nn.Module):
    def __init__(self, a, b, n, add):
        super().__init__()
        h = b // 2
        self.first, self.second, self.last, self.add = Conv(a, h), Conv(a, h), Conv(2 * h, b), add
        self.blocks = nn.ModuleList(nn.Sequential(Conv(h, h), Conv(h, h, 3)) for _ in range(n))

    def forward(self, x):
        y = self.first(x)
        for block in self.blocks:
            y = y + block(y) if self.add else block(y)
        return self.last(torch.cat((y, self.second(x)), 1))


class SPPF(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.first, self.last = Conv(c, c // 2), Conv(2 * c, c)

    def forward(self, x):
        y = [self.first(x)]
        for _ in range(3):
            y.append(F.max_pool2d(y[-1], 5, 1, 2))
        return self.last(torch.cat(y, 1))


class Net(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.classes = classes
        self.low = nn.Sequential(Conv(3, 16, 6, 2, 2), Conv(16, 32, 3, 2), C3(32, 32, 1, True), Conv(32, 64, 3, 2), C3(64, 64, 2, True))
        self.mid = nn.Sequential(Conv(64, 128, 3, 2), C3(128, 128, 3, True))
        self.top = nn.Sequential(Conv(128, 256, 3, 2), C3(256, 256, 1, True), SPPF(256), Conv(256, 128))
        self.up1, self.side1, self.up2 = C3(256, 128, 1, False), Conv(128, 64), C3(128, 64, 1, False)
        self.down1, self.join1 = Conv(64, 64, 3, 2), C3(128, 128, 1, False)
        self.down2, self.join2 = Conv(128, 128, 3, 2), C3(256, 256, 1, False)
        self.heads = nn.ModuleList(nn.Conv2d(c, 3 * (5 + classes), 1) for c in (64, 128, 256))
        with torch.no_grad():
            for head, stride in zip(self.heads, STRIDES):
                b = head.bias.view(3, -1)
                b[:, 4] += math.log(8 / (640 / stride) ** 2)
                b[:, 5:] += math.log(0.6 / (classes - 0.99999))

    def forward(self, x):
        p4 = self.low(x)
        p6 = self.mid(p4)
        p10 = self.top(p6)
        p14 = self.side1(self.up1(torch.cat((F.interpolate(p10, scale_factor=2), p6), 1)))
        p17 = self.up2(torch.cat((F.interpolate(p14, scale_factor=2), p4), 1))
        p20 = self.join1(torch.cat((self.down1(p17), p14), 1))
        p23 = self.join2(torch.cat((self.down2(p20), p10), 1))
        out = []
        for head, p in zip(self.heads, (p17, p20, p23)):
            y = head(p)
            n, _, h, w = y.shape
            out.append(y.view(n, 3, 5 + self.classes, h, w).permute(0, 1, 3, 4, 2))
        return out


def ciou(p, t):
    """p, t: (M,4) centre and size."""
    eps = 1e-7
    px0, py0, px1, py1 = p[:, 0] - p[:, 2] / 2, p[:, 1] - p[:, 3] / 2, p[:, 0] + p[:, 2] / 2, p[:, 1] + p[:, 3] / 2
    tx0, ty0, tx1, ty1 = t[:, 0] - t[:, 2] / 2, t[:, 1] - t[:, 3] / 2, t[:, 0] + t[:, 2] / 2, t[:, 1] + t[:, 3] / 2
    both = (torch.minimum(px1, tx1) - torch.maximum(px0, tx0)).clamp(0) * (torch.minimum(py1, ty1) - torch.maximum(py0, ty0)).clamp(0)
    iou = both / (p[:, 2] * p[:, 3] + t[:, 2] * t[:, 3] - both + eps)
    c2 = (torch.maximum(px1, tx1) - torch.minimum(px0, tx0)) ** 2 + (torch.maximum(py1, ty1) - torch.minimum(py0, ty0)) ** 2 + eps
    d2 = (p[:, 0] - t[:, 0]) ** 2 + (p[:, 1] - t[:, 1]) ** 2
    v = 4 / math.pi ** 2 * (torch.atan(t[:, 2] / t[:, 3]) - torch.atan(p[:, 2] / p[:, 3])) ** 2
    with torch.no_grad():
        alpha = v / (v - iou + 1 + eps)
    return iou - d2 / c2 - alpha * v


def match(rows, level, h, w):
    """rows: (B,6) image, class, box in pixels. Returns image, class, anchor, row and column of cells, box in cells."""
    out = []
    box = rows[:, 2:] / STRIDES[level]
    size = torch.tensor([w, h])
    for a in range(3):
        r = box[:, 2:] / (ANCHORS[level, a] / STRIDES[level])
        ok = torch.maximum(r, 1 / r).amax(1) < 4
        b, row = box[ok], rows[ok]
        c, far = b[:, :2], size - b[:, :2]
        near = (c % 1 < 0.5) & (c > 1)
        next_ = (far % 1 < 0.5) & (far > 1)
        for mask, dx, dy in ((torch.ones(len(b), dtype=torch.bool), 0, 0), (near[:, 0], -1, 0), (near[:, 1], 0, -1), (next_[:, 0], 1, 0), (next_[:, 1], 0, 1)):
            ij = (c[mask] + 0.5 * torch.tensor([dx, dy])).floor().long()
            out.append(torch.cat((row[mask, :2], torch.full((int(mask.sum()), 1), float(a)), ij[:, 1:].clamp(0, h - 1), ij[:, :1].clamp(0, w - 1), b[mask]), 1))
    return torch.cat(out)


def loss_of(out, rows, side, classes):
    n, total = out[0].shape[0], 0.0
    for level, o in enumerate(out):
        h, w = o.shape[2:4]
        target = torch.zeros(o.shape[:4])
        m = match(rows, level, h, w)
        if len(m):
            image, label, a, y, x = m[:, :5].long().T
            p = o[image, a, y, x]
            xy = p[:, :2].sigmoid() * 2 - 0.5
            wh = (p[:, 2:4].sigmoid() * 2) ** 2 * ANCHORS[level, a] / STRIDES[level]
            t = torch.cat((m[:, 5:7] - torch.stack((x, y), 1), m[:, 7:9]), 1)
            q = ciou(torch.cat((xy, wh), 1), t)
            total = total + 0.05 * (1 - q).mean()
            total = total + 0.5 * classes / 80 * F.binary_cross_entropy_with_logits(p[:, 5:], F.one_hot(label, classes).float())
            value, order = q.detach().clamp(0).sort()
            target[image[order], a[order], y[order], x[order]] = value
        total = total + (side / 640) ** 2 * BALANCE[level] * F.binary_cross_entropy_with_logits(o[..., 4], target)
    return n * total


def nms(box, score, most):
    keep, x0, y0, x1, y1 = [], *box.T
    area, order = (x1 - x0) * (y1 - y0), np.argsort(-score, kind='stable')
    while len(order) and len(keep) < most:
        i, rest = order[0], order[1:]
        keep.append(i)
        w = np.minimum(x1[i], x1[rest]) - np.maximum(x0[i], x0[rest])
        h = np.minimum(y1[i], y1[rest]) - np.maximum(y0[i], y0[rest])
        both = w.clip(0) * h.clip(0)
        order = rest[both / (area[i] + area[rest] - both) <= 0.65]
    return keep


def detect(net, x, side):
    """Returns for each image (class, score, x0, y0, x1, y1) of all boxes."""
    with torch.no_grad():
        rows = []
        for level, o in enumerate(net(x)):
            n, _, h, w, _ = o.shape
            s = o.sigmoid()
            grid = torch.stack(torch.meshgrid(torch.arange(w), torch.arange(h), indexing='xy'), -1)
            xy = (s[..., :2] * 2 - 0.5 + grid) * STRIDES[level]
            wh = (s[..., 2:4] * 2) ** 2 * ANCHORS[level].view(1, 3, 1, 1, 2)
            rows.append(torch.cat((xy - wh / 2, xy + wh / 2, s[..., 4:]), -1).reshape(n, 3 * h * w, -1))
        rows = torch.cat(rows, 1).numpy()
    found = []
    for r in rows:
        r = r[r[:, 4] > 0.001]
        score = r[:, 4:5] * r[:, 5:]
        all_ = []
        for c in range(score.shape[1]):
            k = score[:, c] > 0.001
            b, s = r[k, :4].astype(float), score[k, c].astype(float)
            all_ += [(c, s[i], *b[i].clip(0, side)) for i in nms(b, s, 300)]
        found.append(sorted(all_, key=lambda d: -d[1])[:300])
    return found


def judge(results, f):
    """Prints pycocotools' twelve numbers. results: list of COCO's results, or rows image, x, y, width, height, score, category."""
    start, ids, cats, truth = f['box_start'][:], f['image_id'][:], f['category_id'][:], []
    box, label, area, crowd, number = (f[k][:] for k in ('boxes', 'box_class', 'box_area', 'box_crowd', 'box_id'))
    for i in range(len(ids)):
        truth += [dict(id=int(number[k]), image_id=int(ids[i]), category_id=int(cats[label[k]]), bbox=box[k].tolist(),
                       area=float(area[k]), iscrowd=int(crowd[k])) for k in range(start[i], start[i + 1])]
    coco = COCO()
    coco.dataset = dict(images=[dict(id=int(i)) for i in ids], annotations=truth, categories=[dict(id=int(c)) for c in cats])
    with contextlib.redirect_stdout(io.StringIO()):
        coco.createIndex()
        e = COCOeval(coco, coco.loadRes(results), 'bbox')
        e.evaluate(), e.accumulate()
    e.summarize()


def evaluate(net, f):
    net.eval()
    side, results, ids, cats = f['x'].shape[2], [], f['image_id'][:], f['category_id'][:]
    for at in range(0, len(ids), 50):
        x = torch.from_numpy(f['x'][at:at + 50]).float() / 255
        for i, found in enumerate(detect(net, x, side), at):
            results += [[ids[i], d[2], d[3], d[4] - d[2], d[5] - d[3], d[1], cats[d[0]]] for d in found]
    judge(np.array(results), f)


def optimizer_of(net):
    weights = [m.weight for m in net.modules() if isinstance(m, nn.Conv2d)]
    norms = [m.weight for m in net.modules() if isinstance(m, nn.BatchNorm2d)]
    biases = [m.bias for m in net.modules() if getattr(m, 'bias', None) is not None]
    groups = [dict(params=weights, weight_decay=DECAY), dict(params=norms, weight_decay=0), dict(params=biases, weight_decay=0)]
    return torch.optim.AdamW(groups, lr=LR)


def average_of(average, net, weight):
    """Moves the average of parameters and running statistics towards the network, all tensors at once."""
    pairs = [(a, p) for a, p in zip(average.state_dict().values(), net.state_dict().values()) if a.dtype.is_floating_point]
    with torch.no_grad():
        torch._foreach_lerp_([a for a, _ in pairs], [p for _, p in pairs], weight)


def time_steps(side, batch, threads, mode='eager', warmup=5, steps=20):
    """Prints the median time of a training step and images/s: forward, loss, backward, AdamW and the average of parameters."""
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    net, boxes, classes = Net(10).to(memory_format=torch.channels_last), 4, 10
    opt, average, times = optimizer_of(net), copy.deepcopy(net), []
    call, ranks = torch.compile(net) if mode == 'compile' else net, 1
    if mode == 'ddp':
        torch.distributed.init_process_group('gloo')
        call, ranks = nn.parallel.DistributedDataParallel(net), torch.distributed.get_world_size()
    x = torch.rand(batch, 3, side, side).contiguous(memory_format=torch.channels_last)
    image = torch.arange(batch).repeat_interleave(boxes).float()[:, None]
    label = torch.randint(classes, (batch * boxes, 1)).float()
    rows = torch.cat((image, label, (torch.rand(batch * boxes, 2) * 0.8 + 0.1) * side, (torch.rand(batch * boxes, 2) * 0.4 + 0.1) * side), 1)
    for _ in range(warmup + steps):
        began = time.perf_counter()
        loss = loss_of(call(x), rows, side, classes) / batch
        opt.zero_grad()
        loss.backward()
        opt.step()
        average_of(average, net, 1e-4)
        times.append(time.perf_counter() - began)
    median = float(np.median(times[warmup:]))
    print(f'torch {torch.__version__} {mode} side {side} batch {ranks} x {batch} threads {ranks} x {threads}: {1000 * median:.1f} ms a step, '
          f'{ranks * batch / median:.1f} images/s')


def main():
    train, test = h5py.File(sys.argv[1]), h5py.File(sys.argv[2])
    epochs, batch, threads = (int(a) for a in sys.argv[3:] + ['8', '16', '2'][len(sys.argv) - 3:])
    torch.set_num_threads(threads)
    torch.manual_seed(1)
    x, start, box, label, crowd = (train[k][:] for k in ('x', 'box_start', 'boxes', 'box_class', 'box_crowd'))
    n, side, classes = len(x), x.shape[2], len(train['category_id'])
    net = Net(classes).to(memory_format=torch.channels_last)
    print(sum(p.numel() for p in net.parameters()), 'parameters', flush=True)
    opt = optimizer_of(net)
    average, t, steps, began = copy.deepcopy(net), 0, n // batch, time.time()
    for epoch in range(epochs):
        net.train()
        order = np.random.default_rng(epoch).permutation(n)
        for step in range(steps):
            done, total = epoch * steps + step, epochs * steps
            for g in opt.param_groups:
                g['lr'] = LR * (done + 1) / steps if done < steps else LR * (1 - 0.99 * (done - steps) / (total - steps))
            rows, pick = [], order[step * batch:(step + 1) * batch]
            images = torch.from_numpy(x[pick]).float().div_(255)
            for i, k in enumerate(pick):
                flip = np.random.default_rng((epoch, int(k))).random() < 0.5
                if flip:
                    images[i] = images[i].flip(2)
                for b in range(start[k], start[k + 1]):
                    if crowd[b]:
                        continue
                    cx, cy = box[b, 0] + box[b, 2] / 2, box[b, 1] + box[b, 3] / 2
                    rows.append((i, label[b], side - cx if flip else cx, cy, box[b, 2], box[b, 3]))
            loss = loss_of(net(images.contiguous(memory_format=torch.channels_last)), torch.tensor(rows, dtype=torch.float32).view(-1, 6), side, classes) / batch
            opt.zero_grad()
            loss.backward()
            opt.step()
            t += 1
            d = 0.9999 * (1 - math.exp(-t / 2000))
            average_of(average, net, 1 - d)
            if t % 50 == 0:
                print(f'epoch {epoch + 1} step {t} loss {loss.item():.4f} {t * batch / (time.time() - began):.1f} images/s', flush=True)
    print(f'trained {t * batch} images in {time.time() - began:.1f} s', flush=True)
    evaluate(average, test)


if sys.argv[1] == '--judge':
    judge(json.load(open(sys.argv[2])), h5py.File(sys.argv[3]))
elif sys.argv[1] == '--step':
    time_steps(*(int(a) for a in sys.argv[2:5]), *sys.argv[5:])
else:
    main()
