#!/usr/bin/env python3
"""Golden values of what the loader does to pictures, from Pillow, for tests/image/test_color.c and tests/data/test_encoded.c.

usage: golden_pictures.py [DIR]      (default tests/golden/image; needs Pillow and numpy)

Writes some JPEGs of 97x83 there, color.txt (changes of colour of a picture that both sides compute, see golden_resize.py:
"op factor hash") and evaluate.txt (those JPEGs as evaluation takes them: "file filter side crop hash"). Hashes are FNV-1a,
64 bits, of all bytes.
"""
import sys

import numpy as np
from PIL import Image, ImageEnhance

from golden_resize import FILTERS, fnv, picture

DIR = sys.argv[1] if len(sys.argv) > 1 else "tests/golden/image"

FILES = {"420": dict(subsampling=2), "422": dict(subsampling=1), "444": dict(subsampling=0),
         "progressive": dict(subsampling=2, progressive=True), "grey": {}}


def photo(seed, width, height):
    """Something like a photograph: noise of several sizes."""
    rng, out = np.random.default_rng(seed), np.full((height, width, 3), 128.0)
    for cells, strength in ((3, 90), (8, 50), (30, 20)):
        noise = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        out += (np.array(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)) - 128.0) * strength / 128
    return Image.fromarray(np.clip(out, 0, 255).astype(np.uint8))


def jpegs():
    for seed, (name, how) in enumerate(FILES.items()):
        image = photo(seed, 97, 83)
        (image.convert("L") if name == "grey" else image).save(f"{DIR}/{name}.jpg", quality=70, **how)


def colors():
    image = picture(2, 64, 48)
    for name, enhance in (("brightness", ImageEnhance.Brightness), ("contrast", ImageEnhance.Contrast),
                          ("saturation", ImageEnhance.Color)):
        for factor in (0.0, 0.25, 0.7001, 1.0, 1.4, 3.5):
            yield f"{name} {factor} {fnv(enhance(image).enhance(factor).tobytes()):016x}"
    for shift in (0, 1, 63, 128, 200, 255):
        h, s, v = image.convert("HSV").split()
        h = Image.fromarray((np.array(h).astype(int) + shift).astype(np.uint8))
        yield f"hue {shift} {fnv(Image.merge('HSV', (h, s, v)).convert('RGB').tobytes()):016x}"


def evaluated():
    for name in FILES:
        for filter, side, crop in (("bilinear", 40, 32), ("bicubic", 41, 32), ("bilinear", 120, 100), ("bilinear", 30, 37)):
            image = Image.open(f"{DIR}/{name}.jpg").convert("RGB")
            w, h = image.size
            w, h = (side, side * h // w) if w <= h else (side * w // h, side)
            image = image.resize((w, h), FILTERS[filter])
            if crop > w or crop > h:   # a border of zeros, as torchvision's center_crop
                left, top = max(0, (crop - w) // 2), max(0, (crop - h) // 2)
                padded = Image.new("RGB", (max(w, crop), max(h, crop)))
                padded.paste(image, (left, top))
                image, (w, h) = padded, padded.size
            x, y = round((w - crop) / 2.0), round((h - crop) / 2.0)
            yield f"{name}.jpg {filter} {side} {crop} {fnv(image.crop((x, y, x + crop, y + crop)).tobytes()):016x}"


jpegs()
for path, lines in (("color.txt", colors()), ("evaluate.txt", evaluated())):
    with open(f"{DIR}/{path}", "w") as f:
        f.write("\n".join(lines) + "\n")
