/* group_norm (Wu & He 2018): divides the channels into `groups` equal groups of neighbours, and
 * normalises each group of each sample. instance_norm (Ulyanov et al. 2016): normalises each
 * channel of each sample; it has parameters only with the attribute `affine`. Parameters have
 * PyTorch's names. */
#include "kinds.h"

static const char *const group_attrs[] = {"groups", "eps", NULL};
static const char *const instance_attrs[] = {"affine", "eps", NULL};

static void group_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    /* the paper's default */
    spec->groups = 32;
    spec->eps = 1e-5f;
}

static Status group_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    TRY(check_floats(spec, "group_norm", 4, 4, "images (N,C,H,W)"));
    Shape x = spec->x[0].shape;
    if (x.dim[1] % spec->groups != 0)
        return fail(ERR_CONFIG,
                    "group_norm: groups (%d) must divide the channels (%lld): set groups",
                    spec->groups, (long long)x.dim[1]);
    if (x.dim[1] == spec->groups && x.dim[2] * x.dim[3] == 1)
        return fail(ERR_CONFIG,
                    "group_norm: each group is one number, whose normalised value is always 0: set "
                    "fewer groups than the %lld channels",
                    (long long)x.dim[1]);
    spec->y = desc_plain(x, DTYPE_F32);
    set_norm_params(spec, param, x.dim[1], true);
    return OK;
}

static void instance_defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->eps = 1e-5f;
}

static Status instance_infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    TRY(check_floats(spec, "instance_norm", 4, 4, "images (N,C,H,W)"));
    const Shape x = spec->x[0].shape;
    if (x.dim[2] * x.dim[3] == 1)
        return fail(ERR_CONFIG,
                    "instance_norm got %s: each channel is one number, whose normalised value is "
                    "always 0",
                    shape_text(x, text));
    spec->groups = (int)x.dim[1];
    spec->y = desc_plain(x, DTYPE_F32);
    if (size->affine) set_norm_params(spec, param, x.dim[1], true);
    return OK;
}

/* Sets table[0] to a vector of n ones and table[1] to a vector of n zeros: the scale and the shift
 * of an instance normalisation without parameters. Layers share these vectors. */
static void ones_and_zeros(const OnnxLayer *l, int64_t n, OnnxValue table[2])
{
    const OnnxLayer shared = onnx_shared_layer(l, "group_norm");
    char key[64];
    for (int i = 0; i < 2; ++i) {
        snprintf(key, sizeof key, "%s/%lld", i ? "zeros" : "ones", (long long)n);
        table[i] = onnx_find_shared(l, key);
        if (table[i] != ONNX_NONE) continue;
        OnnxValue one = onnx_float(l, i ? 0 : 1);
        table[i] = onnx_add(&shared, "Expand", key, one, onnx_vector(l, n));
        onnx_share(l, key, table[i]);
    }
}

/* ONNX has a GroupNormalization operator only from opset 18 on. This uses InstanceNormalization
 * instead: each group becomes one channel for it, and the scale and the shift of the layer's
 * channels are applied after it. */
static OnnxValue group_onnx(const OnnxLayer *l)
{
    const Shape x = l->spec->x[0].shape;
    const int64_t groups = l->spec->groups;
    OnnxValue table[2];
    ones_and_zeros(l, groups, table);
    OnnxValue y = onnx_add(l, "Reshape", "groups", l->x[0], onnx_vector(l, 0, groups, -1));
    y = onnx_add(l, "InstanceNormalization", "normal", y, table[0], table[1]);
    onnx_attr_float(l, "epsilon", l->spec->eps);
    y = onnx_add(l, "Reshape", "channels", y, onnx_vector(l, 0, x.dim[1], x.dim[2], x.dim[3]));
    OnnxValue axes = onnx_vector(l, 1, 2);
    OnnxValue scale = onnx_add(l, "Unsqueeze", "scale", onnx_param(l, 0), axes);
    OnnxValue shift = onnx_add(l, "Unsqueeze", "shift", onnx_param(l, 1), axes);
    return onnx_add(l, "Add", NULL, onnx_add(l, "Mul", "scaled", y, scale), shift);
}

static OnnxValue instance_onnx(const OnnxLayer *l)
{
    OnnxValue table[2];
    if (l->spec->w_count > 0)
        for (int i = 0; i < 2; ++i) table[i] = onnx_param(l, i);
    else
        ones_and_zeros(l, l->spec->groups, table);
    OnnxValue y = onnx_add(l, "InstanceNormalization", NULL, l->x[0], table[0], table[1]);
    onnx_attr_float(l, "epsilon", l->spec->eps);
    return y;
}

const LayerKind kind_group_norm = {
    .name = "group_norm",
    .op = OP_GROUP_NORM,
    .attrs = group_attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises groups of a sample's channels",
    .defaults = group_defaults,
    .infer = group_infer,
    .onnx = group_onnx,
};

const LayerKind kind_instance_norm = {
    .name = "instance_norm",
    .op = OP_GROUP_NORM,
    .attrs = instance_attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises each channel of a sample",
    .defaults = instance_defaults,
    .infer = instance_infer,
    .onnx = instance_onnx,
};
