/* relu, relu6, gelu (tanh form; Hendrycks & Gimpel 2016), silu: y = act(x), any shape. */
#include "kinds.h"

static void relu_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->act = ACT_RELU;
}
static void relu6_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->act = ACT_RELU6;
}
static void gelu_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->act = ACT_GELU;
}
static void silu_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->act = ACT_SILU;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, act_name(spec->act), 2, 4, "(N,C), (N,T,C) or (N,C,H,W)"));
    spec->y = desc_plain(spec->x[0].shape, DTYPE_F32);
    return OK;
}

static OnnxValue relu_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Relu", NULL, l->x[0]);
}

static OnnxValue relu6_onnx(const OnnxLayer *l)
{
    OnnxValue low = onnx_float(l, 0), high = onnx_float(l, 6);
    return onnx_add(l, "Clip", NULL, l->x[0], low, high);
}

/* x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). ONNX has an operator for it only from opset 20
 * on. */
static OnnxValue gelu_onnx(const OnnxLayer *l)
{
    OnnxValue x = l->x[0], y = onnx_add(l, "Mul", "square", x, x);
    y = onnx_add(l, "Mul", "cube", y, x);
    y = onnx_add(l, "Mul", "cubic", y, onnx_float(l, 0.044715f));
    y = onnx_add(l, "Add", "sum", x, y);
    y = onnx_add(l, "Mul", "scaled", y, onnx_float(l, 0.797884561f));
    y = onnx_add(l, "Tanh", "tanh", y);
    y = onnx_add(l, "Add", "gate", y, onnx_float(l, 1));
    y = onnx_add(l, "Mul", "twice", x, y);
    return onnx_add(l, "Mul", NULL, y, onnx_float(l, 0.5f));
}

static OnnxValue silu_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Mul", NULL, l->x[0], onnx_add(l, "Sigmoid", "gate", l->x[0]));
}

const LayerKind kind_relu = {
    .name = "relu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "max(x, 0)",
    .defaults = relu_defaults,
    .infer = infer,
    .onnx = relu_onnx,
};
const LayerKind kind_relu6 = {
    .name = "relu6",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "min(max(x, 0), 6)",
    .defaults = relu6_defaults,
    .infer = infer,
    .onnx = relu6_onnx,
};
const LayerKind kind_gelu = {
    .name = "gelu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "Gaussian error linear unit, tanh form",
    .defaults = gelu_defaults,
    .infer = infer,
    .onnx = gelu_onnx,
};
const LayerKind kind_silu = {
    .name = "silu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "x * sigmoid(x)",
    .defaults = silu_defaults,
    .infer = infer,
    .onnx = silu_onnx,
};
