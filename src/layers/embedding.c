/* embedding: replaces tokens, (N,T), by their vectors, (N,T,width), which are the rows of a table
 * with `vocab` rows. */
#include "kinds.h"

static const char *const attrs[] = {"vocab", "width", "init_std", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    size->init = INIT_NORMAL;
    size->init_std = 1.0f;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    Shape x = spec->x[0].shape;
    if (spec->x[0].dtype != DTYPE_I32 || x.ndim != 2)
        return fail(ERR_CONFIG, "embedding got %s %s, needs integer tokens (N,T)",
                    spec->x[0].dtype == DTYPE_I32 ? "tokens" : "numbers", shape_text(x, text));
    if (size->rows < 1 || size->width < 1)
        return fail(ERR_CONFIG, "embedding needs vocab (the number of tokens) and width");
    spec->y = desc_plain(shape_of(3, x.dim[0], x.dim[1], size->width, 1), DTYPE_F32);
    spec->w_count = 1;
    spec->w[0] = shape_of(2, size->rows, size->width, 1, 1);
    param[0] = (LayerParam){
        .name = "weight", .init = size->init, .scale = size->init_std, .use = USE_DECAYED};
    return OK;
}

static OnnxValue to_onnx(const OnnxLayer *l)
{
    return onnx_add(l, "Gather", NULL, onnx_param(l, 0), l->x[0]);
}

const LayerKind kind_embedding = {
    .name = "embedding",
    .op = OP_EMBEDDING,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "a learned vector for each token",
    .defaults = defaults,
    .infer = infer,
    .onnx = to_onnx,
};
