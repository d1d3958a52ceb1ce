/* group_norm (Wu & He 2018): normalises each sample's channels in `groups` equal groups of
 * neighbours. Parameters have PyTorch's names. */
#include "kinds.h"

static const char *const attrs[] = {"groups", "eps", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    /* the paper's default */
    spec->groups = 32;
    spec->eps = 1e-5f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
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

/* ONNX has this operator only from opset 18 on. Instance normalisation replaces it: each group is
 * one of its channels, and the model's scale and shift follow. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const Shape x = l->spec->x[0].shape;
    const int64_t groups = l->spec->groups;
    const OnnxLayer shared = onnx_shared_layer(l, "group_norm");
    char key[64];
    /* scale 1 and shift 0 of the instance normalisation */
    OnnxValue table[2];
    for (int i = 0; i < 2; ++i) {
        snprintf(key, sizeof key, "%s/%lld", i ? "zeros" : "ones", (long long)groups);
        table[i] = onnx_find_shared(l, key);
        if (table[i] != ONNX_NONE) continue;
        OnnxValue one = onnx_float(l, i ? 0 : 1);
        table[i] = onnx_add(&shared, "Expand", key, one, onnx_vector(l, groups));
        onnx_share(l, key, table[i]);
    }
    OnnxValue y = onnx_add(l, "Reshape", "groups", l->x[0], onnx_vector(l, 0, groups, -1));
    y = onnx_add(l, "InstanceNormalization", "normal", y, table[0], table[1]);
    onnx_attr_float(l, "epsilon", l->spec->eps);
    y = onnx_add(l, "Reshape", "channels", y, onnx_vector(l, 0, x.dim[1], x.dim[2], x.dim[3]));
    OnnxValue axes = onnx_vector(l, 1, 2);
    OnnxValue scale = onnx_add(l, "Unsqueeze", "scale", onnx_param(l, 0), axes);
    OnnxValue shift = onnx_add(l, "Unsqueeze", "shift", onnx_param(l, 1), axes);
    return onnx_add(l, "Add", NULL, onnx_add(l, "Mul", "scaled", y, scale), shift);
}

const LayerKind kind_group_norm = {
    .name = "group_norm",
    .op = OP_GROUP_NORM,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "normalises groups of a sample's channels",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
