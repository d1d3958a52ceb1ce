/* attention (Vaswani et al. 2017). By default it is causal: each token attends to itself and to
 * earlier tokens; with the attribute `window` it attends only to the last `window` tokens, itself
 * included. With the attribute `full` each token attends to all tokens. The layer reads queries,
 * keys and values side by side, (N,T,3C) -> (N,T,C). The attribute `kv_heads` gives fewer heads of
 * keys and values (Ainslie et al. 2023). The layer has no parameters: dense layers before and after
 * it compute the projections. */
#include "kinds.h"

static const char *const attrs[] = {"heads",
                                    "kv_heads",
                                    "window",
                                    "full",
                                    "rotary",
                                    "rotary_base",
                                    "rope_type",
                                    "rope_factor",
                                    "rope_original_max_position_embeddings",
                                    "rope_low_freq_factor",
                                    "rope_high_freq_factor",
                                    "rope_beta_fast",
                                    "rope_beta_slow",
                                    "rope_attention_factor",
                                    "rope_mscale",
                                    "rope_mscale_all_dim",
                                    "rope_truncate",
                                    NULL};

static void defaults(OpSpec *spec, LayerSize *size)
{
    (void)size;
    spec->rotary_scaling.truncate = true;
}

/* Fails if a number that rope_type needs is missing, if a number is set that rope_type does not
 * use, if rope_type is set without `rotary`, or if llama3's factors are in the wrong order. */
static Status check_scaling(const OpSpec *spec)
{
#define NAME(ROTARY, name) name,
    static const char *const names[] = {ROTARY_SCALINGS(NAME)};
#undef NAME
    /* bits of values of rope_type; every type but ROTARY_DEFAULT scales angles */
    enum {
        DYNAMIC = 1 << ROTARY_DYNAMIC,
        LLAMA3 = 1 << ROTARY_LLAMA3,
        YARN = 1 << ROTARY_YARN,
        ALL_SCALINGS = ~(1 << ROTARY_DEFAULT)
    };
    const RotaryScaling *r = &spec->rotary_scaling;
    const struct {
        /* name of the attribute without "rope_" */
        const char *name;
        /* true: the attribute is set */
        bool set;
        /* bits of the types that need the number */
        int needed_by;
        /* bits of the types that use the number */
        int accepted_by;
    } number[] = {
        {"factor", r->factor > 0, ALL_SCALINGS, ALL_SCALINGS},
        {"original_max_position_embeddings", r->original > 0, DYNAMIC | LLAMA3 | YARN,
         DYNAMIC | LLAMA3 | YARN},
        {"low_freq_factor", r->low_freq_factor > 0, LLAMA3, LLAMA3},
        {"high_freq_factor", r->high_freq_factor > 0, LLAMA3, LLAMA3},
        {"beta_fast", r->beta_fast > 0, 0, YARN},
        {"beta_slow", r->beta_slow > 0, 0, YARN},
        {"attention_factor", r->attention_factor > 0, 0, YARN},
        {"mscale", r->mscale > 0, 0, YARN},
        {"mscale_all_dim", r->mscale_all_dim > 0, 0, YARN},
        {"truncate", !r->truncate, 0, YARN},
    };
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) {
        if (number[i].set && !(number[i].accepted_by >> r->type & 1))
            return fail(ERR_CONFIG, "attention: rope_type %s does not use rope_%s: remove it",
                        names[r->type], number[i].name);
        if (!number[i].set && number[i].needed_by >> r->type & 1)
            return fail(ERR_CONFIG, "attention: rope_type %s needs rope_%s", names[r->type],
                        number[i].name);
    }
    if (r->type != ROTARY_DEFAULT && !spec->rotary)
        return fail(ERR_CONFIG, "attention: rope_type needs rotary: true");
    if (r->type == ROTARY_LLAMA3 && r->low_freq_factor >= r->high_freq_factor)
        return fail(ERR_CONFIG,
                    "attention: rope_low_freq_factor (%g) must be below rope_high_freq_factor (%g)",
                    (double)r->low_freq_factor, (double)r->high_freq_factor);
    return OK;
}

/* Sets *width to the width of a head. The input has heads + 2 kv_heads heads side by side. */
static Status find_head_width(const OpSpec *spec, int64_t *width)
{
    char text[64];
    const Shape x = spec->x[0].shape;
    const int kv_heads = attention_kv_heads(spec), total = spec->heads + 2 * kv_heads;
    if (spec->heads % kv_heads != 0)
        return fail(ERR_CONFIG, "attention: kv_heads (%d) must divide heads (%d)", kv_heads,
                    spec->heads);
    *width = x.dim[2] / total;
    if (x.dim[2] % total == 0) return OK;
    if (kv_heads != spec->heads)
        return fail(ERR_CONFIG,
                    "attention got %s, needs %d heads of queries, %d of keys and %d of values side "
                    "by side: put a dense layer of a multiple of %d before it",
                    shape_text(x, text), spec->heads, kv_heads, kv_heads, total);
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
    TRY(check_floats(spec, "attention", 3, 3, "queries, keys and values (N,T,3C)"));
    Shape x = spec->x[0].shape;
    if (spec->heads < 1) return fail(ERR_CONFIG, "attention needs heads, for example heads: 6");
    TRY(find_head_width(spec, &width));
    if (spec->rotary && width % 2 != 0)
        return fail(ERR_CONFIG,
                    "attention: rotary rotates pairs of numbers, but a head's width is odd (%lld)",
                    (long long)width);
    if (spec->rotary_base > 0 && !spec->rotary)
        return fail(ERR_CONFIG, "attention: rotary_base needs rotary: true");
    if (spec->bidirectional && spec->window > 0)
        return fail(ERR_CONFIG, "attention: window is for causal attention, not for full: true");
    TRY(check_scaling(spec));
    spec->y = desc_plain(shape_of(3, x.dim[0], x.dim[1], spec->heads * width, 1), DTYPE_F32);
    return OK;
}

const LayerKind kind_attention = {
    .name = "attention",
    .op = OP_ATTENTION,
    .attrs = attrs,
    .inputs = 1,
    .channels = CHANNELS_FIXED,
    .help = "self-attention, causal unless full, on queries, keys and values",
    .defaults = defaults,
    .infer = infer,
    .onnx = attention_onnx,
};
