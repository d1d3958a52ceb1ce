#!/usr/bin/env python3
"""Sets of encoded pictures to measure with: needs h5py, numpy and Pillow.

usage: encoded.py OUT.h5 [PICTURES [ENTRIES [WIDTHxHEIGHT]]]     (default 200 JPEGs of 500x375, each once)

The pictures are noise of several sizes, which JPEG takes about as many bytes for as for photographs. ENTRIES of them lie in
the file, one behind the other, repeated: encoded.py big.h5 8 1281167 32x24 is as long as ImageNet and not as large.
"""
import io
import sys

import h5py
import numpy as np
from PIL import Image


def photo(seed, width, height):
    rng, out = np.random.default_rng(seed), np.full((height, width, 3), 128.0)
    for cells, strength in ((4, 90), (16, 60), (64, 40), (256, 12)):
        noise = rng.integers(0, 256, (cells, cells, 3), dtype=np.uint8)
        out += (np.array(Image.fromarray(noise).resize((width, height), Image.Resampling.BICUBIC)) - 128.0) * strength / 128
    file = io.BytesIO()
    Image.fromarray(np.clip(out, 0, 255).astype(np.uint8)).save(file, "JPEG", quality=90, subsampling=2)
    return np.frombuffer(file.getvalue(), np.uint8)


def main():
    out, pictures = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 200
    entries = int(sys.argv[3]) if len(sys.argv) > 3 else pictures
    width, height = map(int, (sys.argv[4] if len(sys.argv) > 4 else "500x375").split("x"))
    files = [photo(i, width, height) for i in range(pictures)]
    sizes = np.array([len(files[i % pictures]) for i in range(pictures)], np.uint64)
    offset = np.zeros(entries + 1, np.uint64)
    offset[1:] = np.cumsum(np.resize(sizes, entries))
    with h5py.File(out, "w") as f:
        for key, value in dict(format="weft-data", kind="image", store="encoded").items():
            f.attrs[key] = np.bytes_(value)
        f.attrs["version"], f.attrs["classes"] = np.int32(1), np.int32(1000)
        f.attrs["mean"], f.attrs["std"] = np.float32([.485, .456, .406]), np.float32([.229, .224, .225])
        bytes_ = f.create_dataset("x_bytes", (int(offset[-1]),), "u1")
        once = np.concatenate(files)
        for at in range(0, int(offset[-1]), len(once)):
            bytes_[at:at + len(once)] = once[:int(offset[-1]) - at]
        f["x_offset"] = offset
        f["x_size"] = np.tile(np.int32([height, width]), (entries, 1))
        f["x_orient"] = np.ones(entries, np.uint8)
        f["y"] = (np.arange(entries) % 1000).astype(np.int32)
    print(f"{out}: {entries} entries of {pictures} pictures of {width}x{height}, {int(sizes.mean())} bytes each")


main()
