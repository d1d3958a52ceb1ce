#!/usr/bin/env python3
"""Small files of fields as netCDF4-python and xarray write them, and what xarray reads from them: samples that
tests/data/test_fields.c compares with weft's to the bit of each float.
usage: golden_fields.py FOLDER     (tests/golden/fields; needs netCDF4, xarray, cftime)

expected.txt: for each case `case NAME`, `set KEY=VALUE` for its configuration, `samples`, `segments`, `step` (seconds), a line
`segment FRAMES SAMPLES TIME` for each, and for each sample `at TIME`, `x BITS...` and `y BITS...`: float32 as hexadecimal numbers,
`nan` for missing values. Inputs are values in the variables' units; targets too, or changes of these (data.predict)."""
import os, sys
import cftime, netCDF4, numpy as np, xarray as xr

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
rng = np.random.default_rng(50)
H, W, LEVELS = 3, 4, [200.0, 500.0, 850.0]
here = "tests/golden/fields/"


def path(name):
    return os.path.join(folder, name)


def grid(d, lat=H, lon=W):
    d.createDimension("lat", lat)
    d.createDimension("lon", lon)
    la = d.createVariable("lat", "f4", ("lat",))
    la.units = "degrees_north"
    la[:] = np.linspace(-60, 60, lat)
    lo = d.createVariable("lon", "f8", ("lon",))
    lo.units = "degrees_east"
    lo[:] = np.arange(lon) * 360 / lon


def field(*shape):
    return rng.normal(280, 15, shape)


def write_kinds():
    """All ways of storing a variable in one file, with time in hours."""
    T = 5
    d = netCDF4.Dataset(path("kinds.nc"), "w")
    grid(d)
    d.createDimension("time", T)
    d.createDimension("lev", len(LEVELS))
    d.createDimension("start", 1)
    t = d.createVariable("time", "i4", ("time",))
    t.units, t.calendar, t.axis = "hours since 2001-02-27 00:00:00", "gregorian", "T"
    le = d.createVariable("lev", "f8", ("lev",))
    le.units, le.axis = "hPa", "Z"
    le[:] = LEVELS
    st = d.createVariable("start", "f8", ("start",))
    st.units = "days since 2001-01-01"
    st[:] = 0
    map3 = ("time", "lat", "lon")
    v = d.createVariable("t2m", "f4", map3)
    v.units = "K"
    v[:] = field(T, H, W)
    t[:] = np.arange(T) * 6
    v = d.createVariable("double", "f8", map3)
    v[:] = field(T, H, W)
    packed = d.createVariable("packed", "i2", map3, fill_value=-32767)
    packed.scale_factor, packed.add_offset = 0.00183, 271.3
    packed[:] = np.ma.masked_greater(field(T, H, W), 295)
    v = d.createVariable("bytes", "u1", map3)
    v.scale_factor = 0.5
    v[:] = rng.integers(0, 200, (T, H, W)) * 0.5
    v = d.createVariable("gappy", "f4", map3)
    v.missing_value = np.float32(-999.9)
    values = field(T, H, W).astype("f4")
    values[rng.random((T, H, W)) < 0.2] = np.float32(-999.9)
    v[:] = values
    v = d.createVariable("big", ">f4", map3, endian="big")
    v[:] = field(T, H, W)
    v = d.createVariable("big_packed", ">i4", map3, endian="big")
    v.scale_factor, v.add_offset = 1e-6, -3.0
    v[:] = field(T, H, W)
    v = d.createVariable("wind", "f4", ("time", "lev", "lat", "lon"), zlib=True, shuffle=True, chunksizes=(2, 2, 2, 3))
    v[:] = field(T, len(LEVELS), H, W)
    v = d.createVariable("turned", "f4", ("lon", "lat", "time"), zlib=True, chunksizes=(2, 3, 2))
    v[:] = field(W, H, T)
    v = d.createVariable("orog", "f4", ("lat", "lon"))
    v[:] = field(H, W)
    v = d.createVariable("lsm", "f8", ("start", "lat", "lon"))
    v[:] = field(1, H, W)
    g = d.createGroup("forecast")
    v = g.createVariable("t2m", "f4", map3)
    v[:] = field(T, H, W)
    d.close()
    if netCDF4.__has_szip_support__:
        d = netCDF4.Dataset(path("szip.nc"), "w")
        d.createDimension("time", 3)
        d.createDimension("y", 8)
        d.createDimension("x", 8)
        v = d.createVariable("h", "f4", ("time", "y", "x"), compression="szip", szip_coding="nn", szip_pixels_per_block=8)
        v[:] = field(3, 8, 8)
        d.close()


def write_turned():
    """A contiguous array with time last, whose first file has one frame."""
    for name, times in (("turned1.nc", [0]), ("turned2.nc", [1, 2, 3])):
        d = netCDF4.Dataset(path(name), "w")
        grid(d)
        d.createDimension("time", len(times))
        t = d.createVariable("time", "f8", ("time",))
        t.units = "days since 1999-12-31"
        t[:] = times
        v = d.createVariable("h", "f4", ("lon", "lat", "time"))
        v[:] = field(W, H, len(times))
        d.close()


def write_xarray(name, values, times, units, calendar, encoding=None, unlimited=False):
    ds = xr.Dataset({"h": (("time", "lat", "lon"), values, {"units": "m"})},
                    {"time": times, "lat": ("lat", np.linspace(-60, 60, H), {"units": "degrees_north"}), "lon": np.arange(W) * 90.0})
    ds.to_netcdf(path(name), engine="netcdf4",
                 encoding={"h": encoding or {}, "time": {"units": units, "calendar": calendar, "dtype": "f8", **(
                     {"chunksizes": (4,)} if unlimited else {})}}, unlimited_dims=["time"] if unlimited else [])


def dates(start, count, step, calendar):
    return xr.date_range(start, periods=count, freq=step, calendar=calendar, use_cftime=True)


def write_all():
    write_kinds()
    write_turned()
    write_xarray("360.nc", field(5, H, W), dates("2001-02-28 18:00", 5, "6h", "360_day"), "days since 2001-01-01", "360_day",
                 {"dtype": "int16", "scale_factor": 0.01, "add_offset": 280.0, "_FillValue": -32768})
    write_xarray("noleap.nc", field(4, H, W).astype("f4"), dates("2004-02-28 12:00", 4, "12h", "noleap"),
                 "seconds since 2004-01-01 06:00:00", "noleap", {"chunksizes": (4, H, W)}, unlimited=True)
    write_xarray("proleptic.nc", field(4, H, W), dates("1582-10-04 18:00", 4, "6h", "proleptic_gregorian"),
                 "minutes since 1582-01-01", "proleptic_gregorian", {"zlib": True, "chunksizes": (2, 2, 2)})
    write_xarray("standard.nc", field(4, H, W), dates("1582-10-04 12:00", 4, "6h", "standard"), "hours since 1582-10-01 00:30",
                 "standard")
    for year in (2001, 2002):  # each with its own units, the second continues the first
        write_xarray(f"{year}.nc", field(3, H, W).astype("f4"), dates("2001-12-29" if year == 2001 else "2002-01-01", 3, "D", "standard"),
                     f"days since {year}-01-01", "standard")
    write_xarray("member.nc", field(3, H, W).astype("f4"), dates("2001-12-29", 3, "D", "standard"), "days since 2001-01-01", "standard")
    hours = np.array([0, 6, 12, 30, 36, 42, 48])
    gap = [cftime.DatetimeGregorian(2001, 1, 1) + np.timedelta64(int(h), "h").astype("timedelta64[s]").item() for h in hours]
    write_xarray("gap.nc", field(7, H, W).astype("f4"), gap, "hours since 2001-01-01", "standard")


def write_columns():
    """Profiles: variables without rows, without rows and columns, and with time alone."""
    T, N = 12, 4
    own = np.random.default_rng(51)
    d = netCDF4.Dataset(path("columns.nc"), "w")
    d.createDimension("time", T)
    d.createDimension("lev", len(LEVELS))
    d.createDimension("ncol", N)
    t = d.createVariable("time", "f8", ("time",))
    t.units = "hours since 2001-01-01"
    t[:] = np.arange(T)
    le = d.createVariable("lev", "f8", ("lev",))
    le.units, le.axis = "hPa", "Z"
    le[:] = LEVELS
    for name, dims in (("state", ("time", "lev", "ncol")), ("flux", ("time", "ncol")), ("profile", ("time", "lev")), ("tendency", ("lev", "time")),
                       ("co2", ("time",))):
        v = d.createVariable(name, "f4", dims)
        v.units = "K"
        v[:] = own.normal(3, 2, v.shape)
    d.close()


# ---- what xarray reads ----


class Set:
    """Files as one list of frames; values in double precision, missing ones as NaN."""

    def __init__(self, files):
        self.files = [path(f) for f in files]

    def frames(self, variable):
        """(frames, levels, rows, columns) of the variable, and the levels' coordinate."""
        group, _, name = variable.strip("/").rpartition("/")
        parts = []
        for f in self.files:
            with xr.open_dataset(f, group=group or None, decode_times=False) as ds:
                a = ds[name].load()
            for size, kind in ((("lev",), "lev"), (("time", "start"), "time")):
                found = [d for d in a.dims if d in size]
                a = a.rename({found[0]: kind}) if found else a.expand_dims(kind)
            for d in ("lat", "lon", "ncol"):
                a = a.rename({d: "y" if d == "lat" else "x"}) if d in a.dims else a
            a = a.expand_dims([d for d in "yx" if d not in a.dims])
            parts.append(a.transpose("time", "lev", "y", "x"))
        return np.concatenate([p.values.astype("f8") for p in parts]), LEVELS if parts[0].sizes["lev"] > 1 else [None]

    def times(self):
        out = []
        for f in self.files:
            with xr.open_dataset(f, decode_times=xr.coders.CFDatetimeCoder(use_cftime=True)) as ds:
                if "time" not in ds.coords:
                    return None
                out += list(ds["time"].values)
        return out


def segments_of(times, starts):
    """Runs of frames at the usual distance; frames without times are runs by file."""
    if times is None:
        return [(a, b - a) for a, b in zip(starts, starts[1:])], 0
    distance = [(b - a).total_seconds() for a, b in zip(times, times[1:])]
    positive = [x for x in distance if x > 0]
    step = max(set(positive), key=positive.count)
    cuts = [0] + [i + 1 for i, x in enumerate(distance) if x != step] + [len(times)]
    return [(a, b - a) for a, b in zip(cuts, cuts[1:])], step


def bits(values):
    flat = np.ascontiguousarray(values, dtype="<f4").reshape(-1)
    return " ".join("nan" if np.isnan(v) else f"{b:08x}" for v, b in zip(flat, flat.view("<u4")))


def case(out, name, files, variables, inputs=(0,), targets=(1,), predict="value", unit=None):
    """variables: role: list of names, or of (name, levels). inputs and targets: offsets in frames, given as
    multiples of unit, or as steps."""
    s = Set(files)
    first = s.frames(variables["inputs"][0] if isinstance(variables["inputs"][0], str) else variables["inputs"][0][0])[0]
    lengths = [0]
    for f in files:
        lengths.append(lengths[-1] + Set([f]).frames(variables["inputs"][0] if isinstance(variables["inputs"][0], str)
                                                     else variables["inputs"][0][0])[0].shape[0])
    times = s.times()
    segments, step = segments_of(times, lengths)

    def channels(role):
        for v in variables.get(role, []):
            n, wanted = (v, None) if isinstance(v, str) else v
            values, levels = s.frames(n)
            for k in ([levels.index(w) for w in wanted] if wanted else range(len(levels))):
                yield n, k, values[:, k]

    text = {r: "[" + ", ".join(v if isinstance(v, str) else "{name: %s, levels: [%s]}" % (v[0], ", ".join("%g" % x for x in v[1]))
                               for v in variables[r]) + "]" for r in variables}
    offsets = {r: "[" + ", ".join(f"{o * unit[0]}{unit[1]}" if unit else str(o) for o in v) + "]" for r, v in (("inputs", inputs), ("targets", targets))}
    out.write(f"case {name}\nset data.train=[{', '.join(here + f for f in files)}]\n")
    out.write("set data.variables={" + ", ".join(f"{r}: {text[r]}" for r in text) + "}\n")
    out.write("set data.window={" + ", ".join(f"{r}: {offsets[r]}" for r in offsets) + f"}}\nset data.predict={predict}\n")
    low, high = min(0, *inputs, *targets), max(0, *inputs, *targets)
    samples = [a - low + i for a, n in segments for i in range(max(0, n - (high - low)))]
    out.write(f"samples {len(samples)}\nsegments {len(segments)}\nstep {step:g}\n")
    clock = lambda i: times[i].strftime("%Y-%m-%d %H:%M:%S") if times else "-"
    for a, n in segments:
        out.write(f"segment {n} {max(0, n - (high - low))} {clock(a)}\n")
    for frame in samples:
        x = [v[frame + o] for o in inputs for _, _, v in channels("inputs")]
        x += [v[0] for _, _, v in channels("static")]
        x += [np.broadcast_to(v[frame + o], x[0].shape) for o in inputs for _, _, v in channels("scalars")]
        y, now = [], {(n, k): v[frame + inputs[-1]] for n, k, v in channels("inputs")}
        for o in targets:
            y += [v[frame + o] - (now[n, k] if predict == "change" and (n, k) in now else 0) for n, k, v in channels("targets")]
        out.write(f"at {clock(frame)}\nx {bits(np.stack(x))}\ny {bits(np.stack(y))}\n")


def main():
    write_all()
    with open(path("expected.txt"), "w") as out:
        out.write(f"# Written by tools/golden_fields.py with netCDF4 {netCDF4.__version__}, xarray {xr.__version__}\n")
        case(out, "kinds", ["kinds.nc"], {"inputs": ["t2m", "double", "packed", "bytes"], "static": ["orog", "lsm"],
                                          "targets": ["gappy", "big", "big_packed"]}, inputs=(-2, 0), targets=(1,), unit=(6, "h"))
        case(out, "levels", ["kinds.nc"], {"inputs": [("wind", [850, 200]), "turned"], "targets": ["wind"]}, predict="change")
        case(out, "group", ["kinds.nc"], {"inputs": ["/forecast/t2m"], "targets": ["t2m", "/forecast/t2m"]}, targets=(1, 2),
             predict="change")
        case(out, "packed_change", ["kinds.nc"], {"inputs": ["packed"], "targets": ["packed"]}, inputs=(-1, 0), predict="change")
        case(out, "turned", ["turned1.nc", "turned2.nc"], {"inputs": ["h"], "targets": ["h"]})
        for name in ("360", "noleap", "proleptic", "standard"):
            case(out, name, [name + ".nc"], {"inputs": ["h"], "targets": ["h"]})
        case(out, "years", ["2001.nc", "2002.nc"], {"inputs": ["h"], "targets": ["h"]}, targets=(1,), unit=(1, "d"))
        case(out, "members", ["2001.nc", "member.nc"], {"inputs": ["h"], "targets": ["h"]})
        case(out, "gap", ["gap.nc"], {"inputs": ["h"], "targets": ["h"]}, inputs=(-1, 0))
        if netCDF4.__has_szip_support__:
            case(out, "szip", ["szip.nc"], {"inputs": ["h"], "targets": ["h"]})
        write_columns()
        case(out, "profiles", ["columns.nc"], {"inputs": ["profile", "co2"], "targets": ["tendency"]}, inputs=(-1, 0), targets=(0,))
        case(out, "columns", ["columns.nc"], {"inputs": ["state"], "scalars": ["co2", ("profile", [850])], "targets": [("state", [500]), "flux"]},
             inputs=(-1, 0), predict="change")


main()
