/* film (Perez et al. 2018): scales and shifts each channel of images by numbers of a second input,
 * y = x (1 + s) + t. The second input, (N,2C), has s for all channels, then t for all channels. */
#include "kinds.h"

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char a[64], b[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "film", 2, 4, "images (N,C,H,W) and vectors (N,2C)"));
    const Shape x = spec->x[0].shape, by = spec->x[1].shape;
    if (x.ndim != 4 || by.ndim != 2 || by.dim[1] != 2 * x.dim[1])
        return fail(ERR_CONFIG,
                    "film got %s and %s, needs images (N,C,H,W) and a factor and a shift for each "
                    "of their channels, (N,2C), from a dense layer",
                    shape_text(x, a), shape_text(by, b));
    spec->y = desc_plain(x, DTYPE_F32);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    const OnnxValue axes = onnx_vector(l, 2, 3);
    const OnnxValue wide = onnx_add(l, "Unsqueeze", "wide", l->x[1], axes);
    const OnnxValue by = onnx_add(l, "Split", "factor", wide);
    onnx_attr_int(l, "axis", 1);
    const OnnxValue shift = onnx_add_output(l, "shift");
    const OnnxValue factor = onnx_add(l, "Add", "scale", by, onnx_float(l, 1));
    return onnx_add(l, "Add", NULL, onnx_add(l, "Mul", "scaled", l->x[0], factor), shift);
}

const LayerKind kind_film = {
    .name = "film",
    .op = OP_FILM,
    .inputs = 2,
    .channels = CHANNELS_FIXED,
    .help = "scales and shifts each channel of the first input by numbers of the second",
    .infer = infer,
    .onnx = to_onnx,
};
