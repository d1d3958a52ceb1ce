#!/usr/bin/env python3
"""Are models that weft exports as ONNX the same models? Trains each of a list for a step or two, exports it, has the onnx package check it
(with full shape inference), runs it with onnxruntime, and compares its logits with weft's own. By hand; needs onnx, onnxruntime, h5py:

    make weft build/tests/train/logits && tools/check_onnx.py build [NAME...]

A line for each: how far the furthest logit is off, as a part of the largest, and how many of the largest logits are the same ones."""
import os, subprocess, sys, tempfile
import h5py, numpy as np, onnx, onnxruntime as ort

LISTED = ("[conv2d: {channels: 16, kernel: 3, pad: same}, group_norm: {groups: 4}, silu, avg_pool: {name: p, kernel: 3, stride: 2, pad: 1}, "
          "conv2d: {name: b, channels: 8, kernel: 1, input: p}, conv2d: {channels: 8, kernel: 3, pad: same, groups: 4, bias: false, input: p}, "
          "relu6: {name: c}, concat: {input: [b, c]}, batch_norm, instance_norm: {affine: true}, gelu, max_pool: {kernel: 3, stride: 1, pad: 1}, upsample: {scale: 3}, dropout: {p: 0.1}, flatten, "
          "dense: {width: 32}, layer_norm, swiglu, dense: {width: 16}, rms_norm, relu, dense: {width: 10}]")
SPATIAL = ("[pad: {pad: [1, 2, 3, 4], mode: reflect}, pad: {pad: [1, 2], mode: replicate}, pad: {name: p, pad: [-1, 2, 0, -3]}, "
           "conv2d: {name: a, channels: 6, kernel: 5, pad: same, pad_mode: [reflect, circular]}, relu, conv2d: {name: b, channels: 6, kernel: 3}, "
           "crop: {name: c, input: [p, b]}, concat: {input: [b, c]}, pad: {pad: [2, 0, 3, 1], mode: circular}, "
           "upsample: {scale: 3, mode: bilinear}, conv_transpose2d: {channels: 12, kernel: [3, 4], stride: 2, pad: 1, output_pad: [1, 0], groups: 3}, "
           "pixel_shuffle, upsample: {mode: bilinear, align_corners: true}, flatten, dense: {width: 10}]")
PIXELS = ("[conv2d: {name: a, channels: 24, kernel: 3, pad: same}, pixels_to_tokens, layer_norm, attention: {name: b, heads: 2, full: true}, "
          "tokens_to_pixels: {input: [b, a]}, max_pool: {kernel: 2}, flatten, dense: {width: 10}]")
POSITIONS = ("[conv2d: {name: a, channels: 8, kernel: 2, stride: 2}, pixels_to_tokens, positions: {context: 16, init_std: 0.5}, dense: {width: 24}, "
             "attention: {heads: 2, rotary: true}, dense: {name: b, width: 8}, tokens_to_pixels: {input: [b, a]}, max_pool: {name: c, kernel: 2}, "
             "pixels_to_tokens, positions: {context: 4, init_std: 0.5}, dense: {width: 24}, attention: {heads: 2, rotary: true}, "
             "dense: {name: d, width: 8}, tokens_to_pixels: {input: [d, c]}, global_pool, flatten, dense: {name: e, width: 10}]")
GPT = "model.name=gpt2 model.layers=3 model.width=64 model.heads=4 model.context=48"
LLAMA = "model.name=llama model.layers=3 model.width=64 model.heads=8 model.ffn=96 model.context=48"
# name: data (images CxHxW, table D, tokens), words
MODELS = {
    "mlp": ("1x28x28", "model.name=mlp"),
    "mlp-table": ("20", "model.name=mlp"),
    "lenet": ("1x28x28", "model.name=lenet"),
    "resnet18-small": ("3x32x32", "model.name=resnet18 model.stem=small"),
    "resnet18": ("3x96x96", "model.name=resnet18"),
    "resnet50": ("3x96x96", "model.name=resnet50"),
    "mobilenet_v2": ("3x96x96", "model.name=mobilenet_v2"),
    "layers": ("3x17x13", "model.layers=" + LISTED),
    "spatial": ("3x9x8", "model.layers=" + SPATIAL),
    "pixels": ("3x6x8", "model.layers=" + PIXELS),
    "pixels-positions": ("3x8x8", "model.layers=" + POSITIONS),
    "vectors": ("20", "model.layers=[numeric_embedding: {name: v, width: 6}, interaction: {name: i, width: 6}, fm: {name: m, width: 6, input: v}, "
                      "concat: {input: [i, m, v]}, dense: {width: 10}]"),
    "tokens-flat": ("tokens", "model.context=12 model.layers=[embedding: {vocab: 256, width: 8}, positions: {context: 12}, flatten, dense: {width: 256}]"),
    "gpt2": ("tokens", GPT),
    "gpt2-rotary": ("tokens", GPT + " model.positions=rotary"),
    "llama": ("tokens", LLAMA),
    "llama-grouped": ("tokens", LLAMA + " model.kv_heads=2 model.rotary_base=50000"),
    "llama-one-tied": ("tokens", LLAMA + " model.kv_heads=1 model.tied=true"),
    "gpt2-124m": ("tokens", "model.name=gpt2 model.size=124m model.context=256"),
}


def data_set(kind, path):
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as f:
        if kind == "tokens":
            f.attrs["format"], f.attrs["kind"], f.attrs["version"], f.attrs["vocab"] = "weft-data", "tokens", np.int32(1), np.int64(256)
            f["tokens"] = rng.integers(0, 256, 6000, dtype=np.uint8)
            return
        shape = [int(d) for d in kind.split("x")]
        f["x"] = rng.integers(0, 256, [16] + shape, dtype=np.uint8) if len(shape) == 3 else rng.normal(size=[16] + shape).astype("f4")
        f["y"] = (np.arange(16) % 10).astype("i4")


def run(*words):
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=900,
                          env=dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1"))
    if done.returncode:
        sys.exit(f"{' '.join(words)}:\n{done.stdout}")


def compare(build, name, kind, words):
    steps = 1 if name.endswith("124m") else 3
    with open("job.yaml", "w") as f:
        f.write(f"run: {{name: r}}\ndata: {{train: data.h5}}\ntrain: {{steps: {steps}, batch: 4, micro_batch: 4, threads: 2}}\n"
                "optim: {name: adamw, lr: 0.003}\n")
    data_set(kind, "data.h5")
    own = [w for w in words.replace("model.layers=[", "\0model.layers=[").split("\0") if w.strip()]
    own = [w for part in own for w in ([part] if part.startswith("model.layers=[") else part.split())]
    run(f"{build}/weft", "train", "job.yaml", *own)
    checkpoint = f"runs/r/checkpoints/step-{steps:08d}.h5"
    run(f"{build}/weft", "ckpt", "export", checkpoint, "--onnx", "-o", "model.onnx")
    run(f"{build}/tests/train/logits", "job.yaml", checkpoint, "logits.raw", "2", *own)
    model = onnx.load("model.onnx")
    onnx.checker.check_model("model.onnx", full_check=True)
    raw = open("logits.raw", "rb").read()
    samples, tokens, each, outputs = np.frombuffer(raw, "i8", 4)
    x = np.frombuffer(raw, "i4" if tokens else "f4", samples * each, 32)
    want = np.frombuffer(raw, "f4", offset=32 + x.nbytes)
    session = ort.InferenceSession("model.onnx", providers=["CPUExecutionProvider"])
    port = session.get_inputs()[0]
    dims = [d if isinstance(d, int) else -1 for d in port.shape]
    x = x.reshape([samples] + ([each] if tokens else dims[1:]))
    (got,) = session.run(None, {port.name: x.astype("i8") if tokens else x})
    classes = got.shape[-1]
    want = want.reshape(got.shape)
    off = np.abs(got - want).max() / np.abs(want).max()
    same = np.mean(got.argmax(-1) == want.argmax(-1))
    shorter = ""
    if tokens and "T" in port.shape:
        (part,) = session.run(None, {port.name: x[:, : each // 3].astype("i8")})
        shorter = f", a third as long {np.abs(part - got[:, : each // 3]).max() / np.abs(want).max():.1e}"
    good = off < 1e-4 and same == 1
    print(f"{name:16} {len(model.graph.node):4} nodes, {os.path.getsize('model.onnx') / 1e6:7.2f} MB, {got.size // classes:4} rows of {classes}: "
          f"off by {off:.1e}, {100 * same:.0f} % the same{shorter}{'' if good else '   WRONG'}", flush=True)
    return good


build = os.path.abspath(sys.argv[1])
good = True
for name in sys.argv[2:] or MODELS:
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        good &= compare(build, name, *MODELS[name])
        os.chdir("/")
sys.exit(0 if good else 1)
