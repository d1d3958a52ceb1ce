/* numeric_embedding: makes a vector of each number, (N,D) -> (N,D*width). Each column has a learned
 * vector, which is multiplied by the number in the column. It is for numbers what bag is for
 * ids. */
#include "kinds.h"

static const char *const attrs[] = {"width", "init", "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    size->init = INIT_NORMAL;
    size->init_std = 0.01f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    TRY(check_floats(spec, "numeric_embedding", 2, 2, "numbers (N,D)"));
    if (size->width < 1)
        return fail(ERR_CONFIG, "numeric_embedding needs width, the length of a number's vector");
    const Shape x = spec->x[0].shape;
    spec->y = desc_plain(shape_of(2, x.dim[0], x.dim[1] * size->width, 1, 1), DTYPE_F32);
    /* a weight without a bias */
    const LayerSize weight = {.init = size->init, .init_std = size->init_std};
    set_weight_and_bias(spec, &weight, param, shape_of(2, x.dim[1], size->width, 1, 1), 0);
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue x = onnx_add(l, "Unsqueeze", "numbers", l->x[0], onnx_vector(l, 2));
    OnnxValue y = onnx_add(l, "Mul", "vectors", x, onnx_param(l, 0));
    return onnx_add(l, "Reshape", NULL, y, onnx_vector(l, 0, l->spec->y.shape.dim[1]));
}

const LayerKind kind_numeric_embedding = {
    .name = "numeric_embedding",
    .op = OP_NUMERIC_EMBEDDING,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "a vector for each number, scaled by it",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
