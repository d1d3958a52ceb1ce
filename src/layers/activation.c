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
    TRY(need_floats(spec, act_name(spec->act), 2, 4, "(N,C), (N,T,C) or (N,C,H,W)"));
    spec->y = desc_plain(spec->x[0].shape, DTYPE_F32);
    return OK;
}

const LayerKind kind_relu = {
    .name = "relu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "max(x, 0)",
    .defaults = relu_defaults,
    .infer = infer,
};
const LayerKind kind_relu6 = {
    .name = "relu6",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "min(max(x, 0), 6)",
    .defaults = relu6_defaults,
    .infer = infer,
};
const LayerKind kind_gelu = {
    .name = "gelu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "Gaussian error linear unit, tanh form",
    .defaults = gelu_defaults,
    .infer = infer,
};
const LayerKind kind_silu = {
    .name = "silu",
    .op = OP_ACTIVATION,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "x * sigmoid(x)",
    .defaults = silu_defaults,
    .infer = infer,
};
