/* conv2d on oneDNN. The layout of x and y and the algorithm are a static rule on the shape (conv_choose): what was
 * measured once, never timed in a run. */
#include "cpu.h"
#include "linear.h"

typedef struct ConvShape {
    int64_t n, c, h, w, o, p, q; /* N C H W -> N O P Q */
    int64_t g;
} ConvShape;

static ConvShape conv_shape(const OpSpec *s)
{
    const int64_t *x = s->x[0].shape.dim, *y = s->y.shape.dim;
    return (ConvShape){x[0], x[1], x[2], x[3], y[1], y[2], y[3], s->groups > 1 ? s->groups : 1};
}

static Status conv_check(const OpSpec *s)
{
    char a[64], b[64], c[64];
    const ConvShape v = conv_shape(s);
    const Shape w = s->w[0];
    bool fits = s->x[0].shape.ndim == 4 && s->y.shape.ndim == 4 && w.ndim == 4 && v.o == w.dim[0] &&
                v.c == w.dim[1] * v.g && v.o % v.g == 0 && w.dim[2] == s->kernel[0] &&
                w.dim[3] == s->kernel[1] && s->stride[0] > 0 && s->stride[1] > 0 &&
                v.p == (v.h + 2 * s->pad[0] - s->kernel[0]) / s->stride[0] + 1 &&
                v.q == (v.w + 2 * s->pad[1] - s->kernel[1]) / s->stride[1] + 1;
    if (fits) return OK;
    return fail(ERR_CONFIG, "conv2d: input %s, weight %s, %d groups and output %s do not fit",
                shape_text(s->x[0].shape, a), shape_text(w, b), (int)v.g,
                shape_text(s->y.shape, c));
}

/* Blocks of x and y that suit this shape, and whether Winograd may be used. */
typedef struct ConvChoice {
    int x_block, y_block;
    bool winograd[3];
} ConvChoice;

static ConvChoice conv_choose(const OpSpec *s)
{
    const ConvShape v = conv_shape(s);
    int lanes = dnnl_vector_floats() == 16 ? 16 : 8;
    ConvChoice c = {.x_block = v.c <= 3 && v.g == 1 ? 1 : lanes, .y_block = lanes};
    return c;
}

static Status conv_linear(Op *op, const ConvChoice *choice)
{
    const OpSpec *s = &op->spec;
    const ConvShape v = conv_shape(s);
    const int64_t grouped[] = {v.g, v.o / v.g, v.c / v.g, s->kernel[0], s->kernel[1]};
    const int64_t *dim = v.g > 1 ? grouped : grouped + 1;
    int ndim = v.g > 1 ? 5 : 4;
    Format *x = format_image(s->x[0].shape, s->x[0].block, false);
    Format *y = format_image(s->y.shape, s->y.block, false);
    Format *b = s->w_count > 1 ? format_plain(1, &v.o) : NULL;
    Format *any = format_any(ndim, dim), *plain = format_plain(ndim, dim);
    LinearSpec linear = {
        .forward = KERNEL_CONV_FORWARD,
        .x = x,
        .y = y,
        .b = b,
        .w_any = any,
        .w_plain = plain,
        .stride = {s->stride[0], s->stride[1]},
        .pad = {s->pad[0], s->pad[1]},
        .winograd = {choice->winograd[0], choice->winograd[1], choice->winograd[2]},
    };
    Status status = linear_plan(op, &linear);
    format_free(&x);
    format_free(&y);
    format_free(&b);
    format_free(&any);
    format_free(&plain);
    return status;
}

static Status conv_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    TRY(conv_check(s));
    ConvChoice choice = conv_choose(s);
    wish[0].block = choice.x_block;
    s->y.block = choice.y_block;
    const ConvShape v = conv_shape(s);
    op->flops_forward = 2.0 * (double)shape_count(s->y.shape) * (double)(v.c / v.g) *
                        s->kernel[0] * s->kernel[1];
    op->flops_backward = op->flops_forward * (s->need_dx[0] ? 2 : 1);
    return conv_linear(op, &choice);
}

const OpTable cpu_conv2d = {
    .name = "conv2d",
    .plan = conv_plan,
    .refresh = linear_refresh,
    .forward = linear_forward,
    .backward_begin = linear_backward_begin,
    .backward_data = linear_backward_data,
    .backward_weight = linear_backward_weight,
    .pack = linear_pack,
    .unpack = linear_unpack,
    .free = linear_free,
};
