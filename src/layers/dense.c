/* dense: y = x w^T + b on the last dimension (PyTorch's Linear). */
#include "kinds.h"

static const char *const attrs[] = {"width", "bias", "init", "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    size->bias = true;
    size->init = INIT_UNIFORM;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    TRY(check_floats(spec, "dense", 2, 3, "(N,C) or (N,T,C)"));
    if (size->width < 1) return fail(ERR_CONFIG, "dense needs width, the number of its outputs");
    Shape y = spec->x[0].shape;
    int64_t inputs = y.dim[y.ndim - 1];
    y.dim[y.ndim - 1] = size->width;
    spec->y = desc_plain(y, DTYPE_F32);
    set_weight_and_bias(spec, size, param, shape_of(2, size->width, inputs, 1, 1), size->width);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    const bool bias = l->spec->w_count > 1;
    if (l->spec->x[0].shape.ndim == 2) {
        OnnxValue y = onnx_with_params(l, "Gemm");
        onnx_attr_int(l, "transB", 1);
        return y;
    }
    OnnxValue weight = onnx_param_transposed(l, 0);
    OnnxValue y = onnx_add(l, "MatMul", bias ? "product" : NULL, l->x[0], weight);
    return bias ? onnx_add(l, "Add", NULL, y, onnx_param(l, 1)) : y;
}

const LayerKind kind_dense = {
    .name = "dense",
    .op = OP_DENSE,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_NEW,
    .help = "fully connected layer with width outputs",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
