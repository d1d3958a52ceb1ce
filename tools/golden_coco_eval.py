#!/usr/bin/env python3
"""Golden values of COCO's evaluation, from pycocotools 2.0.11, for tests/detect/test_coco_eval.c.

usage: golden_coco_eval.py [FILE]      (default tests/golden/coco_eval.txt; needs pycocotools and numpy)

A case is: case NAME images categories, then lines "t image category x y w h area crowd id" (truths) and "d image category x y w h
score" (detections), the twelve numbers in a line "numbers ...", and AP and AP50 of each category in "ap ..." and "ap50 ...", in the digits
that give back the same double. Images and categories have ids with gaps for pycocotools, which their numbers here lack.
"""
import contextlib
import io
import random
import sys

import numpy as np
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval


def quarter(value):
    return round(value * 4) / 4


def box(rng, side):
    """A box inside of a picture; its side is between 2 and `side`, uniform on a logarithmic scale."""
    w, h = (quarter(2 * (side / 2) ** rng.random()) for _ in range(2))
    return [quarter(rng.random() * (640 - w)), quarter(rng.random() * (480 - h)), w, h]


def near(rng, b):
    """A box that overlaps b more or less."""
    move = 0.02 * 20 ** rng.random()
    w, h = (max(quarter(b[i] * (1 + rng.uniform(-move, move))), 0.25) for i in (2, 3))
    return [quarter(b[0] + b[2] * rng.uniform(-move, move)), quarter(b[1] + b[3] * rng.uniform(-move, move)), w, h]


def make(seed, images, categories, truths, detections, crowds=0.0, places=2, empty=0.0, areas=False, no_truths=(), ids=1):
    """Random truths and detections. places: digits of a score, few for many equal ones; empty: part of the images without truths;
    areas: areas are not w * h; no_truths: categories without truths; ids: the first number of an annotation."""
    rng = random.Random(seed)
    t, d = [], []
    for i in range(images):
        mine = []
        for _ in range(0 if rng.random() < empty else rng.randint(0, 2 * truths)):
            c = rng.choice([c for c in range(categories) if c not in no_truths])
            b = box(rng, 400)
            area = quarter(b[2] * b[3] * (rng.uniform(0.3, 1.0) if areas else 1))
            mine.append([i, c, *b, area, int(rng.random() < crowds), 0])
            if rng.random() < 0.1:
                mine.append(list(mine[-1]))     # the same box twice: the later one is taken first
        t += mine
        for _ in range(rng.randint(0, 2 * detections)):
            if mine and rng.random() < 0.7:
                m = rng.choice(mine)
                c = m[1] if rng.random() < 0.9 else rng.randrange(categories)
                b = list(m[2:6]) if rng.random() < 0.1 else near(rng, m[2:6])
            else:
                c, b = rng.randrange(categories), box(rng, 400)
            d.append([i, c, *b, round(rng.random(), places)])
    order = list(range(len(t)))
    rng.shuffle(order)
    for n, k in enumerate(order):
        t[k][8] = n + ids
    rng.shuffle(t)
    rng.shuffle(d)
    return images, categories, t, d


def evaluate(images, categories, t, d):
    coco = COCO()
    coco.dataset = {
        "info": {},
        "images": [{"id": 7 * i + 3, "width": 640, "height": 480, "file_name": ""} for i in range(images)],
        "categories": [{"id": 2 * c + 1 + c // 3, "name": str(c)} for c in range(categories)],
        "annotations": [{"id": x[8], "image_id": 7 * x[0] + 3, "category_id": 2 * x[1] + 1 + x[1] // 3, "bbox": x[2:6], "area": x[6],
                         "iscrowd": x[7]} for x in t]}
    results = [{"image_id": 7 * x[0] + 3, "category_id": 2 * x[1] + 1 + x[1] // 3, "bbox": x[2:6], "score": x[6]} for x in d]
    with contextlib.redirect_stdout(io.StringIO()):
        coco.createIndex()
        e = COCOeval(coco, coco.loadRes(results), "bbox")
        e.evaluate()
        e.accumulate()
        e.summarize()
    ap = e.eval["precision"][:, :, :, 0, 2]
    mean = lambda x: np.mean(x) if x.size and (x > -1).all() else -1.0
    return e.stats, [mean(ap[:, :, c]) for c in range(categories)], [mean(ap[0, :, c]) for c in range(categories)]


CASES = {
    "plain": make(1, 12, 3, 5, 12),
    "equal_scores": make(2, 12, 3, 5, 16, places=1),
    "crowds": make(3, 12, 3, 6, 16, crowds=0.3),
    "empty_images": make(4, 14, 4, 5, 12, empty=0.5),
    "empty_classes": make(5, 10, 6, 4, 12, no_truths=(0, 4)),
    "areas": make(6, 12, 3, 6, 16, areas=True, crowds=0.1),
    "number_0": make(13, 6, 1, 2, 12, ids=0),
    "many_detections": make(8, 2, 1, 12, 160, places=2),
    "few": make(9, 40, 8, 1, 1, places=1),
    # areas at the ends of ranges, and IoUs at thresholds: 0.5, 0.75
    "edges": (2, 1, [[0, 0, 10, 10, 32, 32, 1024, 0, 1], [0, 0, 100, 100, 96, 96, 9216, 0, 2], [0, 0, 300, 0, 10, 10, 1024.25, 0, 3],
                     [1, 0, 0, 0, 10, 30, 9216.25, 0, 4], [1, 0, 200, 200, 8, 8, 64, 1, 5]],
              [[0, 0, 10, 10, 32, 64, 0.9], [0, 0, 100, 100, 96, 48, 0.8], [0, 0, 300, 0, 10, 20, 0.7], [0, 0, 200, 300, 32, 32, 0.6],
               [1, 0, 0, 0, 10, 40, 0.9], [1, 0, 300, 100, 96, 96, 0.8], [1, 0, 200, 200, 8, 16, 0.7], [1, 0, 200, 200, 4, 4, 0.6]]),
}


def main():
    lines = []
    for name, case in CASES.items():
        images, categories, t, d = case
        stats, ap, ap50 = evaluate(*case)
        lines.append(f"case {name} {images} {categories}")
        lines += ["t " + " ".join(f"{v:.10g}" for v in x) for x in t]
        lines += ["d " + " ".join(f"{v:.10g}" for v in x) for x in d]
        for key, row in (("numbers", stats), ("ap", ap), ("ap50", ap50)):
            lines.append(key + " " + " ".join(repr(float(v)) for v in row))
    path = sys.argv[1] if len(sys.argv) > 1 else "tests/golden/coco_eval.txt"
    with open(path, "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
