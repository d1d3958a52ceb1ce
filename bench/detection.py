#!/usr/bin/env python3
"""Random truths and detections as of COCO's val2017 (5,000 images, 100 detections each), evaluated by pycocotools and hotcoco.

usage: detection.py make FOLDER; detection.py compare FOLDER NUMBERS     (NUMBERS: what build/bench/detect_bench FOLDER printed)
"""
import contextlib
import io
import json
import sys
import time

import numpy as np

IMAGES, CLASSES, DETECTIONS = 5000, 80, 100


def make(folder):
    rng = np.random.default_rng(5)
    count = rng.poisson(7.3, IMAGES)
    image = np.repeat(np.arange(IMAGES), count)
    n = len(image)
    often = 1 / np.arange(1, CLASSES + 1) ** 0.7
    often /= often.sum()
    kind = rng.choice(CLASSES, n, p=often)
    side = 4 * 100 ** rng.random((n, 2))
    corner = rng.random((n, 2)) * (np.array([640, 480]) - np.minimum(side, 470))
    box = np.concatenate([corner, side], 1).round(2)
    area = (box[:, 2] * box[:, 3] * rng.uniform(0.4, 1, n)).round(4)
    truths = np.column_stack([image, kind, box, area, rng.random(n) < 0.012, rng.permutation(n) + 1]).astype("f8")
    start = np.concatenate([[0], np.cumsum(count)])
    found = []
    for i in range(IMAGES):
        some = start[i + 1] > start[i]
        of = rng.integers(start[i], start[i + 1], DETECTIONS) if some else np.zeros(DETECTIONS, int)
        near = (rng.random(DETECTIONS) < 0.4) & some
        b = box[of] * (1 + rng.normal(0, 0.08, (DETECTIONS, 4)))
        b[:, :2] = box[of, :2] + rng.normal(0, 0.08, (DETECTIONS, 2)) * box[of, 2:]
        other = np.concatenate([rng.random((DETECTIONS, 2)) * 400, 4 * 60 ** rng.random((DETECTIONS, 2))], 1)
        b = np.where(near[:, None], b, other)
        b[:, 2:] = abs(b[:, 2:]) + 0.1
        c = np.where(near & (rng.random(DETECTIONS) < 0.85), kind[of], rng.choice(CLASSES, DETECTIONS, p=often))
        score = np.where(near, rng.beta(2, 2, DETECTIONS), rng.beta(1, 6, DETECTIONS))
        found.append(np.column_stack([np.full(DETECTIONS, i), c, b.round(3), score.round(5)]))
    found = np.concatenate(found).astype("f8")
    np.array([IMAGES, CLASSES, n, len(found)], "f8").tofile(folder + "/head.bin")
    truths.tofile(folder + "/truths.bin")
    found.tofile(folder + "/detections.bin")
    ids = lambda r: {"image_id": int(r[0]) + 1, "category_id": int(r[1]) + 1, "bbox": [float(v) for v in r[2:6]]}
    with open(folder + "/truths.json", "w") as f:
        json.dump({"info": {}, "images": [{"id": i + 1, "width": 640, "height": 480, "file_name": ""} for i in range(IMAGES)],
                   "categories": [{"id": k + 1, "name": str(k)} for k in range(CLASSES)],
                   "annotations": [{**ids(r), "id": int(r[8]), "area": float(r[6]), "iscrowd": int(r[7])} for r in truths]}, f)
    with open(folder + "/detections.json", "w") as f:
        json.dump([{**ids(r), "score": float(r[6])} for r in found], f)


def evaluate(name, folder, times):
    module = __import__(name)
    if name == "pycocotools":
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    else:
        COCO, COCOeval = module.COCO, module.COCOeval
    best = float("inf")
    with contextlib.redirect_stdout(io.StringIO()):
        truths = COCO(folder + "/truths.json")
        found = truths.loadRes(folder + "/detections.json")
        for _ in range(times):
            begin = time.time()
            e = COCOeval(truths, found, "bbox")
            e.evaluate()
            e.accumulate()
            best = min(best, time.time() - begin)
        e.summarize()
    print(f"{name}: {best:.3f} s")
    return e


def compare(folder, numbers):
    mine = np.loadtxt(numbers)
    fast = evaluate("hotcoco", folder, 5)
    e = evaluate("pycocotools", folder, 1)
    ap = e.eval["precision"][:, :, :, 0, 2]
    other = [*e.stats, *[ap[:, :, k].mean() if (ap[:, :, k] > -1).all() else -1.0 for k in range(CLASSES)]]
    print(f"largest difference of weft and pycocotools: {abs(mine - np.array(other)).max():.2g}")
    print(f"largest difference of hotcoco and pycocotools: {abs(np.array(fast.stats) - e.stats).max():.2g}")


if __name__ == "__main__":
    {"make": make, "compare": compare}[sys.argv[1]](*sys.argv[2:])
