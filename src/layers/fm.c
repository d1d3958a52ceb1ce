/* fm: computes the sum of the dot products of all pairs of n vectors, (N,n*width) -> (N,1), which
 * is the second-order term of a factorization machine. */
#include "kinds.h"

static const char *const attrs[] = {"width", NULL};

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)param;
    TRY(vectors_infer(spec, size, "fm", 1));
    spec->y = desc_plain(shape_of(2, spec->x[0].shape.dim[0], 1, 1, 1), DTYPE_F32);
    return OK;
}

/* Adds nodes that compute the result without multiplying pairs: (a - b) / 2, where a is the sum of
 * the squared elements of the vectors' sum, and b is the sum of the squares of all elements. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const int64_t width = l->spec->row_width, n = l->spec->x[0].shape.dim[1] / width;
    OnnxValue one = onnx_vector(l, 1);
    OnnxValue x = onnx_add(l, "Reshape", "vectors", l->x[0], onnx_vector(l, 0, n, width));
    OnnxValue sum = onnx_add(l, "ReduceSum", "sum", x, one);
    sum = onnx_add(l, "ReduceSum", "square_of_sum", onnx_add(l, "Mul", "squared", sum, sum),
                   onnx_vector(l, 1, 2));
    onnx_attr_int(l, "keepdims", 0);
    OnnxValue squares = onnx_add(l, "ReduceSum", "sum_of_squares",
                                 onnx_add(l, "Mul", "squares", x, x), onnx_vector(l, 1, 2));
    onnx_attr_int(l, "keepdims", 0);
    OnnxValue twice = onnx_add(l, "Sub", "twice", sum, squares);
    twice = onnx_add(l, "Mul", "half", twice, onnx_float(l, 0.5f));
    return onnx_add(l, "Unsqueeze", NULL, twice, one);
}

const LayerKind kind_fm = {
    .name = "fm",
    .op = OP_FM,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "the sum of the dot products of all pairs of vectors (factorization machine)",
    .infer = infer,
    .onnx = to_onnx,
};
