/* rms_norm (Zhang & Sennrich 2019): y = x / sqrt(mean(x^2) + eps) * weight over the last dimension.
 * The parameter has PyTorch's name. */
#include "kinds.h"

static const char *const attrs[] = {"eps", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    /* the value of Llama 2 and 3 (Touvron et al. 2023) */
    spec->eps = 1e-5f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    TRY(check_floats(spec, "rms_norm", 2, 3, "(N,C) or (N,T,C)"));
    Shape x = spec->x[0].shape;
    if (x.dim[x.ndim - 1] == 1)
        return fail(ERR_CONFIG,
                    "rms_norm got one column, and of one number it keeps only the sign: "
                    "make the layer before it wider");
    spec->y = desc_plain(x, DTYPE_F32);
    set_norm_params(spec, param, x.dim[x.ndim - 1], false);
    return OK;
}

/* ONNX has an RMSNormalization operator only from opset 23 on. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue mean =
        onnx_add(l, "ReduceMean", "mean", onnx_add(l, "Mul", "square", l->x[0], l->x[0]));
    onnx_attr_ints(l, "axes", 1, (const int64_t[]){-1});
    OnnxValue size = onnx_add(l, "Sqrt", "size",
                              onnx_add(l, "Add", "stable", mean, onnx_float(l, l->spec->eps)));
    OnnxValue y = onnx_add(l, "Div", "normal", l->x[0], size);
    return onnx_add(l, "Mul", NULL, y, onnx_param(l, 0));
}

const LayerKind kind_rms_norm = {
    .name = "rms_norm",
    .op = OP_RMS_NORM,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_KEEP,
    .help = "divides each sample's last dimension by its root mean square",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
