/* attention (Vaswani et al. 2017), causal: queries, keys and values side by side (N,T,3C) -> (N,T,C). It has no
 * parameters: the dense layers before and after it are the projections. */
#include "kinds.h"

static const char *const attrs[] = {"heads", "rotary", NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)spec;
    (void)size;
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    char text[64];
    (void)size;
    (void)param;
    TRY(need_floats(spec, "attention", 3, 3, "queries, keys and values (N,T,3C)"));
    Shape x = spec->x[0].shape;
    if (spec->heads < 1) return fail(ERR_CONFIG, "attention needs heads, for example heads: 6");
    if (x.dim[2] % 3 != 0)
        return fail(ERR_CONFIG,
                    "attention got %s, needs queries, keys and values side by side (N,T,3C): put a "
                    "dense layer of three times the width before it",
                    shape_text(x, text));
    int64_t width = x.dim[2] / 3;
    if (width % spec->heads != 0)
        return fail(ERR_CONFIG, "attention: heads (%d) must divide the width (%lld)", spec->heads,
                    (long long)width);
    if (spec->rotary && width / spec->heads % 2 != 0)
        return fail(ERR_CONFIG, "attention: rotary turns pairs, but a head's width is odd (%lld)",
                    (long long)(width / spec->heads));
    spec->y = desc_plain(shape_of(3, x.dim[0], x.dim[1], width, 1), DTYPE_F32);
    return OK;
}

const LayerKind kind_attention = {
    .name = "attention",
    .op = OP_ATTENTION,
    .attrs = attrs,
    .inputs = 1,
    .help = "causal self-attention on queries, keys and values: heads, rotary",
    .defaults = defaults,
    .infer = infer,
};
