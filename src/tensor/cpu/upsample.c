/* upsample in the layout of its input: each pixel is copied to scale x scale pixels. An item is a
 * plane: one channel group of one sample. The gradient of a pixel is the sum over its copies, row
 * by row, from left to right. */
#include "view.h"

#include <string.h>

static Status upsample_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape big = s->x[0].shape;
    big.dim[2] *= s->scale;
    big.dim[3] *= s->scale;
    if (big.ndim == 4 && s->scale > 0 && shape_equal(big, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "upsample: input %s, output %s and scale %d do not match",
                shape_text(s->x[0].shape, a), shape_text(s->y.shape, b), s->scale);
}

/* y[n][c][i][j] = x[n][c][i / scale][j / scale], rounded down. */
const OpInfo info_upsample = {
    .name = "upsample",
    .check = upsample_check,
    .split = SPLIT_NEVER,
    .fuse = FUSE_NEVER,
    .residual = RESIDUAL_NEVER,
    .talks = TALKS_NEVER,
    .tokens = TOKENS_TOGETHER,
    .params = PARAMS_NONE,
    .reads = READS_NOTHING,
    .traffic = TRAFFIC_ONCE,
};

typedef struct UpsampleTask {
    DType type;
    /* rows and columns of x; elements of a pixel */
    int64_t h, w, block;
    int scale;
    const void *from;
    void *to;
} UpsampleTask;

static Status upsample_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = in_precision(op, s->x[0]);
    s->y.block = s->x[0].block;
    s->y.dtype = preferred[0].dtype;
    return OK;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const UpsampleTask *t = task;
    const size_t pixel = (size_t)t->block * dtype_bytes(t->type), scale = (size_t)t->scale;
    const size_t row = (size_t)t->w * scale * pixel;
    for (int64_t line = begin * t->h; line < end * t->h; ++line) {
        const char *x = element_at(t->from, line * t->w * t->block, t->type);
        char *y = (char *)t->to + (size_t)line * scale * row;
        for (size_t j = 0; j < (size_t)t->w * scale; ++j)
            memcpy(y + j * pixel, x + j / scale * pixel, pixel);
        for (size_t i = 1; i < scale; ++i) memcpy(y + i * row, y, row);
    }
}

/* Writes n elements of dx: each is the sum of the same element of scale x scale pixels from dy
 * on. */
static void sum_copies(const UpsampleTask *t, const void *dy, void *dx, int64_t n)
{
    enum { LANES = 64 };
    const SimdTable *simd = simd_table(t->type);
    const int64_t row = t->w * t->scale * t->block;
    float sum[LANES];
    for (int64_t c = 0; c < n; c += LANES) {
        const int64_t lanes = n - c < LANES ? n - c : LANES;
        simd->to_floats(sum, element_at(dy, c, t->type), lanes);
        for (int i = 0; i < t->scale; ++i)
            for (int j = i == 0; j < t->scale; ++j)
                simd->add_into(sum, element_at(dy, i * row + j * t->block + c, t->type), lanes);
        simd->from_floats(element_out(dx, c, t->type), sum, lanes);
    }
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const UpsampleTask *t = task;
    const int64_t row = t->w * t->scale * t->block;
    for (int64_t line = begin * t->h; line < end * t->h; ++line)
        for (int64_t j = 0; j < t->w; ++j)
            sum_copies(
                t, element_at(t->from, line * t->scale * row + j * t->scale * t->block, t->type),
                element_out(t->to, (line * t->w + j) * t->block, t->type), t->block);
}

static void upsample_run(const Op *op, WorkBody body, const void *from, void *to)
{
    const OpSpec *s = &op->spec;
    const View v = view_of(s->x[0]);
    const UpsampleTask t = {.type = s->y.dtype,
                            .h = s->x[0].shape.dim[2],
                            .w = s->x[0].shape.dim[3],
                            .block = v.block,
                            .scale = s->scale,
                            .from = from,
                            .to = to};
    work_run(body, &t, v.n * v.groups, v.n * v.sample * s->scale * s->scale);
}

static void upsample_forward(Op *op, const OpRun *run)
{
    upsample_run(op, forward_body, run->x[0], run->y);
}

static void upsample_backward_data(Op *op, const OpRun *run)
{
    if (run->dx[0]) upsample_run(op, grad_body, run->dy, run->dx[0]);
}

const OpTable cpu_upsample = {
    .name = "upsample",
    .plan = upsample_plan,
    .forward = upsample_forward,
    .backward_data = upsample_backward_data,
};
