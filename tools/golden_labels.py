#!/usr/bin/env python3
"""Label fields for tests and examples: tests/golden/fields/labels.nc and plain.h5.

usage: golden_labels.py DIRECTORY     writes both there (tests/golden/fields)

labels.nc: 12 frames of 8 x 16, h and u (floats) and cover (bytes, packed in chunks), whose classes are sea (h below 0), land (0 to 1)
and ice (above 1); 255 is its _FillValue, 200 stands in one frame's first row for pixels nobody looked at. mask is a float, 1 where u is
above 0. plain.h5: arrays without names of dimensions, x (N,2,H,W), y (N,H,W) and bad (N,H,W), which has the value 3 in frame 2; wet and
packed_wet (N,H,W), bool, which is an enumeration in HDF5, the second in chunks.
"""
import os
import sys

import h5py
import netCDF4
import numpy as np

T, H, W = 12, 8, 16


def waves(rng, frames):
    row, column = np.mgrid[0:H, 0:W]
    phase = rng.uniform(0, 6.28, (2, 3))
    out = []
    for t in range(frames):
        out.append([sum(np.sin(6.2832 * (k + 1) * column / W + 0.5 * (k + 1) * row + 0.4 * t + phase[v, k]) for k in range(3)) * 0.8
                    for v in range(2)])
    return np.array(out, dtype=np.float32)


def main(folder):
    rng = np.random.default_rng(5)
    x = waves(rng, T)
    d = netCDF4.Dataset(os.path.join(folder, "labels.nc"), "w")
    for name, size in (("time", T), ("lat", H), ("lon", W)):
        d.createDimension(name, size)
    v = d.createVariable("time", "f8", ("time",))
    v.units, v.calendar, v.axis = "hours since 2003-05-01 00:00:00", "standard", "T"
    v[:] = np.arange(T) * 6
    v = d.createVariable("lat", "f4", ("lat",))
    v.units = "degrees_north"
    v[:] = np.linspace(-70, 70, H)
    v = d.createVariable("lon", "f4", ("lon",))
    v.units = "degrees_east"
    v[:] = np.arange(W) * 360 / W
    for i, name in enumerate("hu"):
        v = d.createVariable(name, "f4", ("time", "lat", "lon"))
        v.units = "m"
        v[:] = x[:, i]
    cover = np.digitize(x[:, 0], (0, 1)).astype("u1")
    cover[3, 0] = 200
    cover[:, 5, ::4] = 255
    v = d.createVariable("cover", "u1", ("time", "lat", "lon"), fill_value=255, zlib=True, chunksizes=(2, H, W))
    v.set_auto_mask(False)
    v.long_name = "surface"
    v.flag_values = np.array([0, 1, 2, 200], dtype="u1")
    v.flag_meanings = "sea land ice unseen"
    v[:] = cover
    v = d.createVariable("mask", "f4", ("time", "lat", "lon"))
    v[:] = (x[:, 1] > 0).astype("f4")
    d.close()
    with h5py.File(os.path.join(folder, "plain.h5"), "w") as f:
        f["x"], f["y"] = x, cover.astype("i4") % 3
        bad = cover.astype("i2") % 3
        bad[2, 1, 4] = 3
        f["bad"] = bad
        f["wet"] = x[:, 0] < 0
        f.create_dataset("packed_wet", data=x[:, 0] < 0, chunks=(2, H, W), compression="gzip")


main(sys.argv[1])
