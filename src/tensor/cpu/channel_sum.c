/* channel_sum: each channel of y is a constant plus up to two channels of the inputs, each times a
 * factor. An item of work_run is a plane: one channel of one sample. All tensors have the plain
 * layout. The gradient of a channel of x is a sum over the channels of y that read it, in their
 * order. */
#include "view.h"

#include <string.h>

static Status channel_sum_check(const OpSpec *s)
{
    if (!s->channel_sums || s->y.shape.ndim != 4 || s->y.shape.dim[1] != s->sums)
        return fail(ERR_BUG, "channel_sum: y does not have a channel for each sum");
    for (int i = 0; i < s->x_count; ++i)
        for (int d = 0; d < 4; ++d)
            if (d != 1 && s->x[i].shape.dim[d] != s->y.shape.dim[d])
                return fail(ERR_CONFIG, "channel_sum: inputs differ in more than channels");
    for (int c = 0; c < s->sums; ++c)
        for (int k = 0; k < s->channel_sums[c].terms; ++k) {
            const ChannelTerm *t = &s->channel_sums[c].term[k];
            if (t->input < 0 || t->input >= s->x_count || t->channel < 0 ||
                t->channel >= s->x[t->input].shape.dim[1])
                return fail(ERR_BUG, "channel_sum: channel %d reads a channel that is missing", c);
        }
    return OK;
}

/* y[n][c] = shift[c] + sum of factor * x[input][n][channel] over the terms of c */
const OpInfo info_channel_sum = {
    .name = "channel_sum",
    .check = channel_sum_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .communication = COMMUNICATES_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
    .dx = DX_WRITTEN,
    .acts = ACTS_NONE,
};

static Status channel_sum_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    for (int i = 0; i < s->x_count; ++i) preferred[i] = in_precision(op, layout_plain(s->x[i]));
    s->y = desc_plain(s->y.shape, preferred[0].dtype);
    return OK;
}

/* A plane that is added to another one, times a factor. */
typedef struct Source {
    const void *plane;
    float factor;
} Source;

/* Writes to `to` shift plus the sum of `count` planes, each times its factor, in their order. */
static void sum_planes(DType type, float shift, const Source *source, int count, void *to,
                       int64_t pixels)
{
    enum { CHUNK = 1024 };
    const SimdTable *simd = simd_table(type);
    float sum[CHUNK], value[CHUNK];
    for (int64_t at = 0; at < pixels; at += CHUNK) {
        const int64_t n = pixels - at < CHUNK ? pixels - at : CHUNK;
        for (int64_t i = 0; i < n; ++i) sum[i] = shift;
        for (int k = 0; k < count; ++k) {
            simd->to_floats(value, element_at(source[k].plane, at, type), n);
            simd_table(DTYPE_F32)->scale_add(sum, source[k].factor, value, 1.0f, n);
        }
        simd->from_floats(element_out(to, at, type), sum, n);
    }
}

typedef struct SumTask {
    const OpSpec *spec;
    const OpRun *run;
    /* input whose gradient is computed; not used in forward */
    int input;
    int64_t pixels;
} SumTask;

/* An item of work_run is a plane of y. */
static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const SumTask *t = task;
    const OpSpec *s = t->spec;
    const DType type = s->y.dtype;
    for (int64_t item = begin; item < end; ++item) {
        const ChannelSum *sum = &s->channel_sums[item % s->sums];
        Source source[CHANNEL_TERMS];
        for (int k = 0; k < sum->terms; ++k) {
            const ChannelTerm *term = &sum->term[k];
            const int64_t plane = item / s->sums * s->x[term->input].shape.dim[1] + term->channel;
            source[k] =
                (Source){element_at(t->run->x[term->input], plane * t->pixels, type), term->factor};
        }
        sum_planes(type, sum->shift, source, sum->terms,
                   element_out(t->run->y, item * t->pixels, type), t->pixels);
    }
}

/* An item of work_run is a plane of dx[input]. */
static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const SumTask *t = task;
    const OpSpec *s = t->spec;
    const DType type = s->y.dtype;
    const int64_t channels = s->x[t->input].shape.dim[1];
    Source *source = mem_new((size_t)(s->sums * CHANNEL_TERMS) * sizeof *source);
    for (int64_t item = begin; item < end; ++item) {
        int count = 0;
        for (int c = 0; c < s->sums; ++c)
            for (int k = 0; k < s->channel_sums[c].terms; ++k) {
                const ChannelTerm *term = &s->channel_sums[c].term[k];
                const int64_t plane = item / channels * s->sums + c;
                if (term->input == t->input && term->channel == item % channels)
                    source[count++] =
                        (Source){element_at(t->run->dy, plane * t->pixels, type), term->factor};
            }
        sum_planes(type, 0, source, count,
                   element_out(t->run->dx[t->input], item * t->pixels, type), t->pixels);
    }
    mem_free(&source);
}

static void channel_sum_forward(Op *op, const OpRun *run)
{
    const Shape y = op->spec.y.shape;
    const SumTask t = {.spec = &op->spec, .run = run, .pixels = y.dim[2] * y.dim[3]};
    work_run(forward_body, &t, y.dim[0] * y.dim[1], shape_count(y));
}

static void channel_sum_backward_data(Op *op, const OpRun *run)
{
    for (int i = 0; i < op->spec.x_count; ++i) {
        const Shape x = op->spec.x[i].shape;
        const SumTask t = {
            .spec = &op->spec, .run = run, .input = i, .pixels = x.dim[2] * x.dim[3]};
        if (run->dx[i]) work_run(grad_body, &t, x.dim[0] * x.dim[1], shape_count(x));
    }
}

const OpTable cpu_channel_sum = {
    .name = "channel_sum",
    .plan = channel_sum_plan,
    .forward = channel_sum_forward,
    .backward_data = channel_sum_backward_data,
};
