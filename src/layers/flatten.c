/* flatten: makes one vector of each sample, (N, ...) -> (N, product of the other dimensions). The
 * values stay in the same memory. */
#include "kinds.h"

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)size;
    (void)param;
    TRY(check_floats(spec, "flatten", 2, 4, "(N,C), (N,T,C) or (N,C,H,W)"));
    Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(2, x.dim[0], shape_count(x) / x.dim[0], 1, 1), DTYPE_F32);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue y = onnx_add(l, "Flatten", NULL, l->x[0]);
    onnx_attr_int(l, "axis", 1);
    return y;
}

const LayerKind kind_flatten = {
    .name = "flatten",
    .op = OP_FLATTEN,
    .inputs = 1,
    .channels = CHANNELS_FLATTEN,
    .help = "makes one vector of each sample, for dense",
    .infer = infer,
    .onnx = to_onnx,
};
