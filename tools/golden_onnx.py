#!/usr/bin/env python3
"""The ONNX file that tests/checkpoint/test_onnx.c expects, made by the onnx package, not by weft; and what onnxruntime makes of it.
usage: golden_onnx.py >tests/golden/onnx/layers.onnx     (needs onnx, onnxruntime)"""
import sys
import numpy as np, onnx, onnxruntime
from onnx import TensorProto, helper, numpy_helper


def values(param, shape):  # The test computes the same values from the number of the parameter and the index of the element.
    i = np.arange(int(np.prod(shape)))
    return (((i * 7 + param * 3) % 11 - 5) / 8).astype("f4").reshape(shape)


node = helper.make_node
nodes = [
    node("Conv", ["x", "conv.weight"], ["conv"], "conv", kernel_shape=[3, 3], strides=[2, 1], pads=[1, 1, 1, 1], group=2),
    node("BatchNormalization", ["conv", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var"], ["bn"], "bn", epsilon=np.float32(1e-5)),
    node("Clip", ["bn", "constant/0", "constant/6"], ["act"], "act"),
    node("AveragePool", ["act"], ["pool"], "pool", kernel_shape=[2, 2], strides=[1, 2], pads=[1, 1, 1, 1], count_include_pad=0),
    node("Flatten", ["pool"], ["flat"], "flat", axis=1),
    node("Gemm", ["flat", "fc.weight", "fc.bias"], ["logits"], "fc", transB=1),
]
shapes = [("conv.weight", [4, 1, 3, 3]), ("bn.weight", [4]), ("bn.bias", [4]), ("bn.running_mean", [4]), ("bn.running_var", [4]),
          ("fc.weight", [3, 48]), ("fc.bias", [3])]
params = {name: values(i, shape) for i, (name, shape) in enumerate(shapes)}
params["bn.running_var"] = np.abs(params["bn.running_var"]) + np.float32(0.5)
order = ["conv.weight", "bn.weight", "bn.bias", "bn.running_mean", "bn.running_var", "constant/0", "constant/6", "fc.weight", "fc.bias"]
params["constant/0"], params["constant/6"] = np.float32(0), np.float32(6)
graph = helper.make_graph(nodes, "weft", [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 2, 5, 5])],
                          [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["N", 3])],
                          [numpy_helper.from_array(np.asarray(params[name]), name) for name in order])
model = helper.make_model(graph, producer_name="weft", ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
helper.set_model_props(model, {"step": "7"})
onnx.checker.check_model(model, full_check=True)
raw = model.SerializeToString(deterministic=True)
(got,) = onnxruntime.InferenceSession(raw).run(None, {"x": np.ones((1, 2, 5, 5), "f4")})
print(got, file=sys.stderr)
sys.stdout.buffer.write(raw)
