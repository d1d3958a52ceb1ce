/* batch_norm (Ioffe & Szegedy 2015) and layer_norm (Ba et al. 2016), with PyTorch's defaults and
 * names of parameters. */
#include "kinds.h"

static const char *const batch_attrs[] = {"eps", "momentum", NULL};
static const char *const layer_attrs[] = {"eps", NULL};

static void batch_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->eps = 1e-5f;
    spec->momentum = 0.1f;
}

static void layer_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->eps = 1e-5f;
}

static Status batch_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    TRY(check_floats(spec, "batch_norm", 2, 4, "(N,C) or (N,C,H,W)"));
    Shape x = spec->x[0].shape;
    if (x.ndim == 3)
        return fail(ERR_CONFIG,
                    "batch_norm got a sequence (N,T,C), needs (N,C) or (N,C,H,W): use layer_norm");
    spec->y = desc_plain(x, DTYPE_F32);
    set_norm_params(spec, param, x.dim[1], true);
    param[0].use = USE_CHANNEL_SCALE;
    spec->w_count = 4;
    spec->w[2] = spec->w[3] = spec->w[0];
    param[2] = (LayerParam){.name = "running_mean", .init = INIT_ZERO, .use = USE_STATISTIC};
    param[3] = (LayerParam){.name = "running_var", .init = INIT_ONE, .use = USE_STATISTIC};
    return OK;
}

static Status layer_norm_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    TRY(check_floats(spec, "layer_norm", 2, 3, "(N,C) or (N,T,C)"));
    Shape x = spec->x[0].shape;
    if (x.dim[x.ndim - 1] == 1)
        return fail(ERR_CONFIG,
                    "layer_norm got one column, and the normalised value of one number is "
                    "always 0: make the layer before it wider");
    spec->y = desc_plain(x, DTYPE_F32);
    set_norm_params(spec, param, x.dim[x.ndim - 1], true);
    return OK;
}

static OnnxValue batch_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_with_params(l, "BatchNormalization");
    onnx_attr_float(l, "epsilon", l->spec->eps);
    return y;
}

static OnnxValue layer_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_with_params(l, "LayerNormalization");
    onnx_attr_int(l, "axis", -1);
    onnx_attr_float(l, "epsilon", l->spec->eps);
    return y;
}

const LayerKind kind_batch_norm = {
    .name = "batch_norm",
    .op = OP_BATCH_NORM,
    .attrs = batch_attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises each channel over the micro-batch",
    .defaults = batch_defaults,
    .infer = batch_infer,
    .onnx = batch_onnx,
};

const LayerKind kind_layer_norm = {
    .name = "layer_norm",
    .op = OP_LAYER_NORM,
    .attrs = layer_attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises each sample's last dimension",
    .defaults = layer_defaults,
    .infer = layer_norm_infer,
    .onnx = layer_onnx,
};
