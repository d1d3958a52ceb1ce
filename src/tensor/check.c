/* Sizes and shapes that every backend's operations need alike, so that a plan checks only what is its own. */
#include "check.h"

static Status tensors_check(const OpSpec *spec, const char *name)
{
    char text[64];
    if (spec->x_count < 1 || spec->x_count > OP_INPUTS || spec->w_count < 0 ||
        spec->w_count > OP_PARAMS)
        return fail(ERR_BUG, "%s: %d inputs and %d parameters do not fit an operation", name,
                    spec->x_count, spec->w_count);
    for (int i = 0; i <= spec->x_count; ++i) {
        const Desc *d = i < spec->x_count ? &spec->x[i] : &spec->y;
        if (d->shape.ndim < 1 || d->shape.ndim > SHAPE_DIMS || shape_count(d->shape) < 1)
            return fail(ERR_CONFIG, "%s: a tensor of shape '%s' is empty", name,
                        shape_text(d->shape, text));
    }
    bool fits = spec->x_count > 1 && shape_equal(spec->x[1].shape, spec->y.shape);
    if (spec->residual && !fits)
        return fail(ERR_BUG, "%s: its residual is not like its output", name);
    return OK;
}

/* Those whose gradient needs their output alone. */
static Status fused_check(const OpSpec *s)
{
    const char *name = s->kind == OP_ADD          ? "add"
                       : s->kind == OP_GROUP_NORM ? "group_norm"
                                                  : "batch_norm";
    if (s->act == ACT_NONE || s->act == ACT_RELU || s->act == ACT_RELU6) return OK;
    return fail(ERR_BUG, "%s: only relu and relu6 can be fused", name);
}

static Status group_norm_check(const OpSpec *s)
{
    char text[64];
    const Shape x = s->x[0].shape;
    if (x.ndim != 4 || s->groups < 1 || x.dim[1] % s->groups != 0 || s->residual)
        return fail(ERR_CONFIG, "group_norm: an input of shape %s and %d groups do not fit",
                    shape_text(x, text), s->groups);
    return fused_check(s);
}

static Status swiglu_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape half = s->x[0].shape;
    const bool even = half.dim[half.ndim - 1] % 2 == 0;
    half.dim[half.ndim - 1] /= 2;
    if (half.ndim < 4 && even && shape_equal(half, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "swiglu: input %s and output %s do not fit",
                shape_text(s->x[0].shape, a), shape_text(s->y.shape, b));
}

static Status attention_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape x = s->x[0].shape, y = s->y.shape;
    const int kv_heads = attention_kv_heads(s);
    bool fits = x.ndim == 3 && y.ndim == 3 && x.dim[0] == y.dim[0] && x.dim[1] == y.dim[1] &&
                s->heads > 0 && s->heads % kv_heads == 0 && y.dim[2] % s->heads == 0 &&
                x.dim[2] == y.dim[2] + 2 * (y.dim[2] / s->heads) * kv_heads;
    if (!fits)
        return fail(ERR_CONFIG, "attention: input %s, output %s and %d heads do not fit",
                    shape_text(x, a), shape_text(y, b), s->heads);
    if (s->rotary && y.dim[2] / s->heads % 2 != 0)
        return fail(ERR_CONFIG, "attention: rotary needs heads of an even width, got %lld",
                    (long long)(y.dim[2] / s->heads));
    return OK;
}

static Status conv_check(const OpSpec *s)
{
    char a[64], b[64], c[64];
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim, *w = s->w[0].dim;
    const int64_t groups = s->groups > 1 ? s->groups : 1;
    bool fits = s->x[0].shape.ndim == 4 && s->y.shape.ndim == 4 && s->w[0].ndim == 4 &&
                y[1] == w[0] && x[1] == w[1] * groups && y[1] % groups == 0;
    for (int d = 0; d < 2; ++d)
        fits = fits && w[2 + d] == s->kernel[d] && s->stride[d] > 0 &&
               y[2 + d] == (x[2 + d] + 2 * s->pad[d] - s->kernel[d]) / s->stride[d] + 1;
    if (fits) return OK;
    return fail(ERR_CONFIG, "conv2d: input %s, weight %s, %d groups and output %s do not fit",
                shape_text(s->x[0].shape, a), shape_text(s->w[0], b), (int)groups,
                shape_text(s->y.shape, c));
}

static Status pool_check(const OpSpec *s)
{
    if (s->act != ACT_NONE && s->act != ACT_RELU)
        return fail(ERR_BUG, "pool: only relu can be fused");
    if (s->x[0].shape.ndim != 4 || s->y.shape.ndim != 4)
        return fail(ERR_CONFIG, "pool: needs an image (N,C,H,W)");
    for (int d = 0; d < 2 && s->pool != POOL_GLOBAL_AVG; ++d)
        if (s->kernel[d] < 1 || s->stride[d] < 1 || s->pad[d] < 0 || 2 * s->pad[d] > s->kernel[d])
            return fail(ERR_CONFIG,
                        "pool: kernel %d, stride %d, pad %d: kernel and stride are at "
                        "least 1, pad at most half the kernel",
                        s->kernel[d], s->stride[d], s->pad[d]);
    if (s->pool == POOL_MAX && s->kernel[0] * s->kernel[1] >= POOL_CUT)
        return fail(ERR_CONFIG, "pool: a kernel of %dx%d is too large: at most %d pixels",
                    s->kernel[0], s->kernel[1], POOL_CUT - 1);
    return OK;
}

static Status dropout_check(const OpSpec *s)
{
    if (s->drop >= 0.0f && s->drop < 1.0f) return OK;
    return fail(ERR_CONFIG, "dropout: p is %g: needs 0 <= p < 1", (double)s->drop);
}

static Status positions_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape x = s->x[0].shape, w = s->w[0];
    if (x.ndim == 3 && w.ndim == 2 && w.dim[1] == x.dim[2] && w.dim[0] >= s->slice.first + x.dim[1])
        return OK;
    return fail(ERR_CONFIG, "positions: a table of shape %s does not fit an input of shape %s",
                shape_text(w, a), shape_text(x, b));
}

static Status (*const checks[OP_KINDS])(const OpSpec *spec) = {
    [OP_ADD] = fused_check,           [OP_BATCH_NORM] = fused_check,
    [OP_ATTENTION] = attention_check, [OP_CONV2D] = conv_check,
    [OP_POOL] = pool_check,           [OP_DROPOUT] = dropout_check,
    [OP_POSITIONS] = positions_check, [OP_GROUP_NORM] = group_norm_check,
    [OP_SWIGLU] = swiglu_check,
};

Status spec_check(const OpSpec *spec, const char *name)
{
    TRY(tensors_check(spec, name));
    return checks[spec->kind] ? checks[spec->kind](spec) : OK;
}
