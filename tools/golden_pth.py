#!/usr/bin/env python3
"""The files of torch.save that tests/checkpoint/test_torch_file.c and tests/cli/exchange.sh read, made by PyTorch, and damaged or
hostile ones made from those. Element i of tensor number p is ((7 i + 3 p) mod 11 - 5) / 8, exact in every type of floats.
usage: golden_pth.py FOLDER     (tests/golden/pth; needs torch, numpy, safetensors)"""
import argparse, os, pickle, struct, sys, zipfile, zlib
from collections import OrderedDict
import numpy, torch
from safetensors.torch import save_file

folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)


def path(name):
    return os.path.join(folder, name)


def values(p, *shape, dtype=torch.float32):
    n = 1
    for d in shape:
        n *= d
    return torch.tensor([((7 * i + 3 * p) % 11 - 5) / 8 for i in range(n)], dtype=torch.float64).reshape(shape).to(dtype)


def save(name, what, **more):
    torch.save(what, path(name), **more)


def net(prefix=""):  # the names of a list of layers in weft: conv2d, batch_norm, relu, flatten, dense
    d = OrderedDict()
    for p, (leaf, shape) in enumerate([("conv2d1.weight", (4, 1, 3, 3)), ("conv2d1.bias", (4,)), ("batch_norm1.weight", (4,)),
                                       ("batch_norm1.bias", (4,)), ("batch_norm1.running_mean", (4,)), ("batch_norm1.running_var", (4,))]):
        d[prefix + leaf] = values(p, *shape)
    d[prefix + "batch_norm1.running_var"] = d[prefix + "batch_norm1.running_var"].abs() + 0.5
    d[prefix + "batch_norm1.num_batches_tracked"] = torch.tensor(7)
    d[prefix + "dense1.weight"] = values(6, 3, 16)
    d[prefix + "dense1.bias"] = values(7, 3)
    return d


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(2, 2)

    def forward(self, x):
        return self.fc(x)


class Evil:
    def __reduce__(self):
        return os.system, ("touch weft-was-here",)


def repack(source, target, change={}, compression=zipfile.ZIP_STORED, drop=()):
    with zipfile.ZipFile(path(source)) as a, zipfile.ZipFile(path(target), "w", compression) as b:
        for info in a.infolist():
            leaf = info.filename.split("/", 1)[1]
            if leaf not in drop:
                b.writestr(zipfile.ZipInfo(info.filename), change.get(leaf, a.read(info)), compression)


def write_zip64(source, target):  # every number of the directory in its 64-bit place
    with zipfile.ZipFile(path(source)) as a:
        members = [(i.filename.encode(), a.read(i)) for i in a.infolist()]
    body, directory = b"", b""
    for name, data in members:
        crc, at, size = zlib.crc32(data), len(body), len(data)
        body += struct.pack("<IHHHHHIIIHH", 0x04034b50, 45, 0, 0, 0, 0, crc, 2**32 - 1, 2**32 - 1, len(name), 20)
        body += name + struct.pack("<HHQQ", 1, 16, size, size) + data
        directory += struct.pack("<IHHHHHHIIIHHHHHII", 0x02014b50, 45, 45, 0, 0, 0, 0, crc, 2**32 - 1, 2**32 - 1, len(name), 28, 0, 0, 0, 0,
                                 2**32 - 1) + name + struct.pack("<HHQQQ", 1, 24, size, size, at)
    n, at, size = len(members), len(body), len(directory)
    end = struct.pack("<IQHHIIQQQQ", 0x06064b50, 44, 45, 45, 0, 0, n, n, size, at)
    end += struct.pack("<IIQI", 0x07064b50, 0, at + size, 1) + struct.pack("<IHHHHIIH", 0x06054b50, 0, 0, 65535, 65535, 2**32 - 1, 2**32 - 1, 0)
    open(path(target), "wb").write(body + directory + end)


# plain files, and what comes out of common scripts
plain = OrderedDict(a=values(0, 2, 3), b=values(1, 4))
save("plain.pth", plain)
save("dict.pth", {"a": values(0, 2, 3), "b": values(1, 4)}, pickle_protocol=4)
save("net.pth", net())
save("ddp.pth", net("module."))
save("compiled.pth", net("module._orig_mod."))
save_file(net(), path("net.safetensors"))
parameters = [torch.nn.Parameter(v) for v in net().values() if v.is_floating_point()]
adam = torch.optim.Adam(parameters)
sum(p.sum() for p in parameters).backward()
adam.step()
lost = OrderedDict((k, v * 0) for k, v in net().items())
save("nested.pth", {"epoch": 3, "arch": "net", "best_acc1": torch.tensor([76.25]), "loss": 0.5, "model": net("module."), "ema": lost,
                    "optimizer": adam.state_dict(), "args": argparse.Namespace(lr=0.1, data="x"), "rng": torch.get_rng_state()[:64],
                    "seconds": numpy.float64(2.5), "big": 2**80})
save("two.pth", {"generator": net(), "discriminator": lost})
save("optimizer.pth", {"optimizer_state": OrderedDict(a=values(0, 2, 3)), "epoch": 1})

# views of storages
base = values(0, 4, 6)
save("views.pth", {
    "base": base,
    "turned": base.t(),
    "row": base[2],
    "column": base[:, 1],
    "step": base[1::2, ::3],
    "offset": base[1:],
    "permuted": values(1, 2, 3, 4).permute(2, 0, 1),
    "repeated": values(2, 3, 1).expand(3, 4),
    "one": base[3, 2].reshape(1),
    "channels_last": values(3, 2, 3, 2, 2).to(memory_format=torch.channels_last),
})
tied = torch.nn.Parameter(values(4, 3, 2))
save("parameters.pth", {"embed": tied, "head": tied, "frozen": torch.nn.Parameter(values(5, 2), requires_grad=False)})
save("types.pth", {"half": values(0, 5, dtype=torch.float16), "bf16": values(1, 5, dtype=torch.bfloat16),
                   "double": values(2, 5, dtype=torch.float64), "turned": values(3, 2, 3, dtype=torch.bfloat16).t()})
save("whole.pth", {"count": torch.arange(3), "w": values(0, 2)})
write_zip64("plain.pth", "zip64.pth")

# refused
save("old.pth", plain, _use_new_zipfile_serialization=False)
save("object.pth", Net())
torch.jit.save(torch.jit.script(Net()), path("script.pth"))
save("evil.pth", {"a": values(0, 2, 3), "b": Evil()})
repack("plain.pth", "big_endian.pth", {"byteorder": b"big"})
repack("plain.pth", "deflated.pth", compression=zipfile.ZIP_DEFLATED)
repack("plain.pth", "lost_storage.pth", drop=("data/1",))
repack("plain.pth", "short_storage.pth", {"data/0": b"\0" * 20})
pickled = zipfile.ZipFile(path("plain.pth")).read("plain/data.pkl")
sizes = b"K\x02K\x03\x86"  # the size of a: (2, 3)
assert pickled.count(sizes) == 1 and pickled.count(b"K\x03K\x01\x86") == 1
repack("plain.pth", "beyond.pth", {"data.pkl": pickled.replace(sizes, b"K\x02K\x04\x86")})
repack("plain.pth", "huge.pth", {"data.pkl": pickled.replace(sizes, b"\x8a\x08" + b"\xff" * 7 + b"\x7fK\x03\x86")})
repack("plain.pth", "negative.pth", {"data.pkl": pickled.replace(b"K\x03K\x01\x86", b"J\xfd\xff\xff\xffK\x01\x86")})
# (2, 3) -> (2^31 - 1, 65535) with strides (0, 0): one value, repeated beyond any memory
repack("plain.pth", "repeated.pth", {"data.pkl": pickled.replace(sizes, b"J\xff\xff\xff\x7fM\xff\xff\x86").replace(b"K\x03K\x01\x86", b"K\x00K\x00\x86")})
repack("plain.pth", "eval.pth", {"data.pkl": b"\x80\x02c__builtin__\neval\nX\x01\x00\x00\x001\x85R."})
repack("plain.pth", "stack_global.pth", {"data.pkl": b"\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R."})
repack("plain.pth", "inst.pth", {"data.pkl": b"\x80\x02(X\x02\x00\x00\x00idios\nsystem\n."})
repack("plain.pth", "endless.pth", {"data.pkl": pickled[:-1]})
repack("plain.pth", "no_value.pth", {"data.pkl": b"\x80\x02."})
repack("plain.pth", "memo.pth", {"data.pkl": b"\x80\x02}h\x07."})
repack("plain.pth", "text.pth", {"data.pkl": b"\x80\x02X\xff\xff\xff\xffab."})
repack("plain.pth", "itself.pth", {"data.pkl": b"\x80\x02}q\x00X\x01\x00\x00\x00ah\x00s."})
