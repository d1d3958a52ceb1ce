/* attention (Vaswani et al. 2017), causal: queries, keys and values side by side (N,T,3C) ->
 * (N,T,C); with kv_heads fewer keys and values (Ainslie et al. 2023). It has no parameters: the
 * dense layers before and after it are the projections. */
#include "kinds.h"

static const char *const attrs[] = {"heads", "kv_heads", "rotary", "rotary_base", NULL};

/* *width: a head's. Of heads + 2 kv_heads there is one after the other. */
static Status head_width(const OpSpec *spec, int64_t *width)
{
    char text[64];
    const Shape x = spec->x[0].shape;
    const int kv_heads = attention_kv_heads(spec), all = spec->heads + 2 * kv_heads;
    if (spec->heads % kv_heads != 0)
        return fail(ERR_CONFIG, "attention: kv_heads (%d) must divide heads (%d)", kv_heads,
                    spec->heads);
    *width = x.dim[2] / all;
    if (x.dim[2] % all == 0) return OK;
    if (kv_heads != spec->heads)
        return fail(ERR_CONFIG,
                    "attention got %s, needs %d heads of queries, %d of keys and %d of values side "
                    "by side: put a dense layer of a multiple of %d before it",
                    shape_text(x, text), spec->heads, kv_heads, kv_heads, all);
    if (x.dim[2] % 3 != 0)
        return fail(ERR_CONFIG,
                    "attention got %s, needs queries, keys and values side by side (N,T,3C): put a "
                    "dense layer of three times the width before it",
                    shape_text(x, text));
    return fail(ERR_CONFIG, "attention: heads (%d) must divide the width (%lld)", spec->heads,
                (long long)(x.dim[2] / 3));
}

static Status infer(OpSpec *spec, const LayerSize *size, LayerParam param[SPEC_PARAMS])
{
    int64_t width = 0;
    (void)size;
    (void)param;
    TRY(need_floats(spec, "attention", 3, 3, "queries, keys and values (N,T,3C)"));
    Shape x = spec->x[0].shape;
    if (spec->heads < 1) return fail(ERR_CONFIG, "attention needs heads, for example heads: 6");
    TRY(head_width(spec, &width));
    if (spec->rotary && width % 2 != 0)
        return fail(ERR_CONFIG, "attention: rotary turns pairs, but a head's width is odd (%lld)",
                    (long long)width);
    if (spec->rotary_base > 0 && !spec->rotary)
        return fail(ERR_CONFIG, "attention: rotary_base needs rotary: true");
    spec->y = desc_plain(shape_of(3, x.dim[0], x.dim[1], spec->heads * width, 1), DTYPE_F32);
    return OK;
}

const LayerKind kind_attention = {
    .name = "attention",
    .op = OP_ATTENTION,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_WHOLE,
    .help = "causal self-attention on queries, keys and values",
    .infer = infer,
    .onnx = attention_onnx,
};
