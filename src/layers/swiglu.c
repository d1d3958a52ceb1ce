/* swiglu (Shazeer 2020): computes silu(gate) * value. The gates are the first half of the input's
 * last dimension, the values are the second half: (N,2F) -> (N,F) or (N,T,2F) -> (N,T,F). The layer
 * has no parameters: one dense layer before it computes gates and values. */
#include "kinds.h"

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(check_floats(spec, "swiglu", 2, 3, "gates and values side by side, (N,2F) or (N,T,2F)"));
    Shape y = spec->x[0].shape;
    if (y.dim[y.ndim - 1] % 2 != 0)
        return fail(
            ERR_CONFIG,
            "swiglu got %s, needs gates and values side by side: put a dense layer of an even "
            "width before it",
            shape_text(y, text));
    y.dim[y.ndim - 1] /= 2;
    spec->y = desc_plain(y, DTYPE_F32);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue gate = onnx_add(l, "Split", "gate", l->x[0]);
    onnx_attr_int(l, "axis", -1);
    OnnxValue value = onnx_add_output(l, "value");
    OnnxValue silu = onnx_add(l, "Mul", "open", gate, onnx_add(l, "Sigmoid", "sigmoid", gate));
    return onnx_add(l, "Mul", NULL, silu, value);
}

const LayerKind kind_swiglu = {
    .name = "swiglu",
    .op = OP_SWIGLU,
    .inputs = 1,
    .channels = CHANNELS_HALVES,
    .help = "silu of the first half of the input times the second half; the output is half as "
            "wide",
    .infer = infer,
    .onnx = to_onnx,
};
