/* interaction: computes the dot products of all pairs of n vectors, (N,n*width) -> (N,n(n-1)/2).
 * Their order is: second vector with the first, third with the first, third with the second, and so
 * on. */
#include "kinds.h"

static const char *const attrs[] = {"width", NULL};

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    (void)param;
    TRY(vectors_infer(spec, size, "interaction", 2));
    const Shape x = spec->x[0].shape;
    const int64_t n = x.dim[1] / spec->row_width;
    spec->y = desc_plain(shape_of(2, x.dim[0], n * (n - 1) / 2, 1, 1), DTYPE_F32);
    return OK;
}

/* Adds nodes that multiply all pairs of vectors (i, j) and select the products with j < i. */
static OnnxValue to_onnx(const OnnxLayer *l)
{
    const int64_t width = l->spec->row_width, n = l->spec->x[0].shape.dim[1] / width;
    int64_t *pair = mem_new((size_t)(n * n) * sizeof *pair), count = 0;
    for (int64_t i = 1; i < n; ++i)
        for (int64_t j = 0; j < i; ++j) pair[count++] = i * n + j;
    OnnxValue x = onnx_add(l, "Reshape", "vectors", l->x[0], onnx_vector(l, 0, n, width));
    OnnxValue transposed = onnx_add(l, "Transpose", "turned", x);
    onnx_attr_ints(l, "perm", 3, (const int64_t[]){0, 2, 1});
    OnnxValue dots = onnx_add(l, "MatMul", "dots", x, transposed);
    dots = onnx_add(l, "Reshape", "row", dots, onnx_vector(l, 0, n * n));
    OnnxValue y = onnx_add(l, "Gather", NULL, dots, onnx_int64s(l, (int)count, pair));
    onnx_attr_int(l, "axis", 1);
    mem_free(&pair);
    return y;
}

const LayerKind kind_interaction = {
    .name = "interaction",
    .op = OP_INTERACTION,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "the dot products of all pairs of vectors, concatenated",
    .infer = infer,
    .onnx = to_onnx,
};
