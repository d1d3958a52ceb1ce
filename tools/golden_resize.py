#!/usr/bin/env python3
"""Golden values of resampling, from Pillow, for tests/image/test_resample.c.

usage: golden_resize.py [FILE]      (default tests/golden/image/resize.txt; needs Pillow)

A line is: seed width height  x y box_width box_height  filter to_width to_height  hash  then the first, middle and last
pixel. The picture is a formula that both sides compute (see picture()); the hash is FNV-1a, 64 bits, of all bytes.
"""
import sys

from PIL import Image

MASK = 0xFFFFFFFF
CASES = [  # size, box, filter, to
    ((64, 48), None, "bilinear", (32, 24)), ((64, 48), None, "bicubic", (32, 24)),
    ((61, 47), None, "bilinear", (224, 224)), ((61, 47), None, "bicubic", (224, 224)),
    ((500, 375), None, "bilinear", (341, 256)), ((500, 375), None, "bicubic", (341, 256)),
    ((375, 500), None, "bilinear", (256, 341)), ((333, 251), None, "bicubic", (7, 5)),
    ((500, 375), (13, 57, 211, 182), "bilinear", (224, 224)), ((500, 375), (13, 57, 211, 182), "bicubic", (224, 224)),
    ((500, 375), (277, 1, 223, 374), "bilinear", (224, 224)), ((500, 375), (0, 374, 500, 1), "bilinear", (224, 224)),
    ((100, 80), (3, 4, 50, 70), "bilinear", (50, 35)), ((100, 80), (3, 4, 50, 70), "bicubic", (25, 70)),
    ((100, 80), (3, 4, 50, 70), "bicubic", (50, 70)), ((1, 1), None, "bicubic", (9, 3)),
    ((1, 300), None, "bilinear", (5, 10)), ((3000, 4), None, "bicubic", (3, 4)), ((257, 129), None, "bilinear", (256, 128)),
    ((257, 129), None, "bicubic", (1, 1)), ((19, 17), (18, 16, 1, 1), "bilinear", (33, 2)),
    # either side of where Pillow begins with the columns
    ((60, 60), None, "bilinear", (31, 2)), ((60, 60), None, "bicubic", (31, 2)), ((60, 60), None, "bicubic", (32, 2)),
    ((60, 60), None, "bilinear", (62, 59)), ((60, 60), None, "bicubic", (60, 60)), ((40, 80), None, "bicubic", (21, 42)),
    ((40, 80), None, "bicubic", (22, 42)), ((80, 40), None, "bilinear", (62, 2)), ((80, 40), None, "bicubic", (61, 2)),
]


FILTERS = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}


def picture(seed, width, height):
    """Noise; of odd seeds only 0 and 255, which a cubic kernel overshoots."""
    out = bytearray(width * height * 3)
    for i in range(len(out)):
        u = ((i + 1) * 2654435761 + seed * 2246822519) & MASK
        u ^= u >> 15
        u = u * 2246822519 & MASK
        u ^= u >> 13
        out[i] = (255 if u >> 31 else 0) if seed % 2 else u >> 24
    return Image.frombytes("RGB", (width, height), bytes(out))


def fnv(data):
    h = 0xCBF29CE484222325
    for b in data:
        h = (h ^ b) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return h


def main():
    lines = []
    for seed, (size, box, name, to) in enumerate(c for c in CASES for _ in range(2)):
        x, y, w, h = box or (0, 0, *size)
        cut = picture(seed, *size).crop((x, y, x + w, y + h))
        out = cut.resize(to, FILTERS[name]).tobytes()
        n = to[0] * to[1]
        shown = [b for i in (0, n // 2, n - 1) for b in out[3 * i:3 * i + 3]]
        lines.append(f"{seed} {size[0]} {size[1]} {x} {y} {w} {h} {name} {to[0]} {to[1]} {fnv(out):016x} "
                     + " ".join(map(str, shown)))
    with open(sys.argv[1] if len(sys.argv) > 1 else "tests/golden/image/resize.txt", "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
