/* concat: joins several inputs along the channels, dimension 1. */
#include "kinds.h"

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char a[64], b[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "concat", 2, 4, "(N,C) or (N,C,H,W)"));
    Shape y = spec->x[0].shape;
    if (y.ndim == 3)
        return fail(ERR_CONFIG, "concat got sequences (N,T,C), needs (N,C) or (N,C,H,W)");
    for (int i = 1; i < spec->x_count; ++i) {
        Shape x = spec->x[i].shape;
        Shape expected = spec->x[0].shape;
        expected.dim[1] = x.dim[1];
        if (!shape_equal(x, expected))
            return fail(
                ERR_CONFIG,
                "concat got %s and %s, needs shapes that differ only in channels: crop cuts "
                "a larger image to the size of another",
                shape_text(spec->x[0].shape, a), shape_text(x, b));
        y.dim[1] += x.dim[1];
    }
    spec->y = desc_plain(y, DTYPE_F32);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_add_node(l, "Concat", NULL, l->x, l->spec->x_count);
    onnx_attr_int(l, "axis", 1);
    return y;
}

const LayerKind kind_concat = {
    .name = "concat",
    .op = OP_CONCAT,
    .inputs = INPUTS_TWO_OR_MORE,
    .channels = CHANNELS_CONCAT,
    .help = "joins the channels of several layers",
    .infer = infer,
    .onnx = to_onnx,
};
