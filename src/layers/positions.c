/* positions: adds to each token a learned vector of its position, (N,T,C) -> (N,T,C). The vectors
 * are the rows of a table with `context` rows. */
#include "kinds.h"

static const char *const attrs[] = {"context", "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    size->init = INIT_NORMAL;
    /* the value of GPT-2 (Radford et al. 2019) */
    size->init_std = 0.02f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    TRY(check_floats(spec, "positions", 3, 3, "a sequence (N,T,C)"));
    Shape x = spec->x[0].shape;
    if (size->rows < 1)
        return fail(ERR_CONFIG, "positions needs context (the number of positions)");
    if (x.dim[1] > size->rows)
        return fail(ERR_CONFIG,
                    "positions got sequences of %lld, its context is %lld: raise context or "
                    "shorten the sequences",
                    (long long)x.dim[1], (long long)size->rows);
    spec->y = desc_plain(x, DTYPE_F32);
    spec->w_count = 1;
    spec->w[0] = shape_of(2, size->rows, x.dim[2], 1, 1);
    param[0] = (LayerParam){
        .name = "weight", .init = size->init, .scale = size->init_std, .use = USE_DECAYED};
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    OnnxValue zero = onnx_vector(l, 0), length = onnx_sequence_length(l);
    OnnxValue rows = onnx_add(l, "Slice", "rows", onnx_param(l, 0), zero, length, zero);
    return onnx_add(l, "Add", NULL, l->x[0], rows);
}

const LayerKind kind_positions = {
    .name = "positions",
    .op = OP_POSITIONS,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "adds a learned vector for each position",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
