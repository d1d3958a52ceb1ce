/* Layers that apply one activation, y = act(x), to tensors of any shape. This file also defines the
 * words of model.activation (activation_word). */
#include "kinds.h"

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

/* Adds nodes that compute x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))). ONNX has a Gelu operator
 * only from opset 20 on. */
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

static OnnxValue tanh_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Tanh", NULL, l->x[0]);
}

static OnnxValue sigmoid_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Sigmoid", NULL, l->x[0]);
}

static OnnxValue with_factor(const OnnxLayer *l, const char *operator)
{
    OnnxValue y = onnx_add(l, operator, NULL, l->x[0]);
    onnx_attr_float(l, "alpha", l->spec->act_factor);
    return y;
}

static OnnxValue elu_onnx(const OnnxLayer *l)
{
    return with_factor(l, "Elu");
}

static OnnxValue leaky_relu_onnx(const OnnxLayer *l)
{
    return with_factor(l, "LeakyRelu");
}

static OnnxValue softplus_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Softplus", NULL, l->x[0]);
}

/* ONNX has a Mish operator only from opset 18 on. */
static OnnxValue mish_onnx(const OnnxLayer *l)
{
    OnnxValue gate = onnx_add(l, "Tanh", "gate", onnx_add(l, "Softplus", "softplus", l->x[0]));
    return onnx_add(l, "Mul", NULL, l->x[0], gate);
}

static OnnxValue hardswish_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "HardSwish", NULL, l->x[0]);
}

static const char *const elu_attrs[] = {"alpha", NULL};
static const char *const leaky_relu_attrs[] = {"slope", NULL};

/* Defines the layer kind `word`, which applies the activation ACT_##ACT. factor: default of
 * OpSpec.act_factor. words: names of the attributes, which set act_factor, or NULL. text: help. */
#define ACTIVATION(ACT, word, factor, words, text)                                                 \
    static void word##_defaults(OpSpec *spec, LayerSize *size)                                     \
    {                                                                                              \
        (void)size;                                                                                \
        spec->act = ACT_##ACT;                                                                     \
        spec->act_factor = factor;                                                                 \
    }                                                                                              \
    const LayerKind kind_##word = {                                                                \
        .name = #word,                                                                             \
        .op = OP_ACTIVATION,                                                                       \
        .attrs = words,                                                                            \
        .inputs = 1,                                                                               \
        .channels = CHANNELS_KEEP,                                                                 \
        .help = text,                                                                              \
        .defaults = word##_defaults,                                                               \
        .infer = infer,                                                                            \
        .onnx = word##_onnx,                                                                       \
    };
/* Sources: gelu, Hendrycks & Gimpel 2016; silu, Elfwing et al. 2017; elu, Clevert et al. 2015;
 * leaky_relu, Maas et al. 2013; softplus, Dugas et al. 2001; mish, Misra 2019; hardswish, Howard et
 * al. 2019. */
ACTIVATION(RELU, relu, 0, NULL, "max(x, 0)")
ACTIVATION(RELU6, relu6, 0, NULL, "min(max(x, 0), 6)")
ACTIVATION(GELU, gelu, 0, NULL, "Gaussian error linear unit, tanh form")
ACTIVATION(SILU, silu, 0, NULL, "x * sigmoid(x)")
ACTIVATION(TANH, tanh, 0, NULL, "the hyperbolic tangent")
ACTIVATION(SIGMOID, sigmoid, 0, NULL, "1 / (1 + exp(-x))")
ACTIVATION(ELU, elu, 1, elu_attrs, "x if x > 0, else alpha * (exp(x) - 1)")
ACTIVATION(LEAKY_RELU, leaky_relu, 0.01f, leaky_relu_attrs, "x if x > 0, else slope * x")
ACTIVATION(SOFTPLUS, softplus, 0, NULL, "log(1 + exp(x))")
ACTIVATION(MISH, mish, 0, NULL, "x * tanh(softplus(x))")
ACTIVATION(HARDSWISH, hardswish, 0, NULL, "x * relu6(x + 3) / 6")

ConfigWord activation_word(int i)
{
    if (i + 1 >= ACTS) return (ConfigWord){0};
    const char *name = act_name((Act)(i + 1));
    return (ConfigWord){.word = name, .help = layer_kind(name)->help};
}

const char *activation_layer(const Config *config)
{
    return act_name((Act)(config->model.activation + 1));
}
