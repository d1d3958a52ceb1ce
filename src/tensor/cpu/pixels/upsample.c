/* Computes upsample without changing the layout of the input. Nearest: each pixel is copied to
 * scale x scale pixels. Bilinear: the work is divided by rows of the result. For a row of the
 * result, a weighted sum of rows of the source is computed first; each pixel of the result is then
 * a weighted sum of pixels of that row. The gradient is computed in the same way: a pixel of dx is
 * a weighted sum of dy at the pixels of y that were computed from this pixel of x. Rows are added
 * in ascending order, and then columns. */
#include "../../places.h"
#include "copies.h"

static Status upsample_check(const OpSpec *s)
{
    char a[64], b[64];
    Shape big = s->x[0].shape;
    big.dim[2] *= s->scale;
    big.dim[3] *= s->scale;
    const bool scale = s->scale > 0 && s->scale <= UPSAMPLE_SCALE;
    if (big.ndim == 4 && scale && shape_equal(big, s->y.shape)) return OK;
    return fail(ERR_CONFIG, "upsample: input %s, output %s and scale %d do not match",
                shape_text(s->x[0].shape, a), shape_text(s->y.shape, b), s->scale);
}

/* Nearest: y[n][c][i][j] = x[n][c][i / scale][j / scale], rounded down. Bilinear: y[n][c][i][j] is
 * x interpolated at row i' and column j'. i' = (i + 1/2) / scale - 1/2, limited to 0 .. H - 1; with
 * align_corners i' = i * (H - 1) / (scale * H - 1). j' has the same formula. */
const OpInfo info_upsample = {
    .name = "upsample",
    .check = upsample_check,
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

/* The longest sum occurs in backward, with align_corners, if a row of x has three pixels: nearly
 * all 3 * scale pixels of y in that row depend on the middle pixel of x. */
_Static_assert(3 * UPSAMPLE_SCALE <= RESAMPLE_SPAN, "a sum of backward fits the kernel's buffer");

typedef struct Upsample {
    /* for nearest; owned; NULL: bilinear */
    Copies *copies;
    /* bilinear: which pixels are added with which weights, in forward and in backward */
    ResamplePlane forward, backward;
    /* the integer arrays to which `forward` and `backward` point; owned */
    int *numbers;
    /* the weights to which `forward` and `backward` point; owned */
    float *weights;
} Upsample;

/* First free entries of Upsample.numbers and Upsample.weights, while plan_taps fills these
 * arrays. */
typedef struct TapArrays {
    int *numbers;
    float *weights;
} TapArrays;

/* Reserves the arrays of one dimension in `room`, for `results` sums that have at most `terms`
 * terms in all. Returns the sums, still empty. The caller fills them through *first, *place and
 * *weight. */
static ResampleTaps taps_take(TapArrays *room, int64_t results, int64_t terms, int **first,
                              int **place, float **weight)
{
    *first = room->numbers;
    *place = *first + results + 1;
    *weight = room->weights;
    room->numbers = *place + terms;
    room->weights += terms;
    return (ResampleTaps){.first = *first, .place = *place, .weight = *weight};
}

/* Makes the sums that compute y from x, along a dimension in which x has `size` pixels. */
static ResampleTaps taps_forward(const OpSpec *s, int64_t size, TapArrays *room)
{
    const int64_t out = size * s->scale;
    int *first, *place, count = 0;
    float *weight;
    const ResampleTaps taps = taps_take(room, out, 2 * out, &first, &place, &weight);
    for (int64_t at = 0; at < out; ++at) {
        const LinearPlace from = linear_place(size, s->scale, s->align_corners, at);
        first[at] = count;
        place[count] = (int)from.first;
        weight[count++] = 1 - from.above;
        if (from.above <= 0) continue;
        place[count] = (int)from.first + 1;
        weight[count++] = from.above;
    }
    first[out] = count;
    return taps;
}

/* Makes the sums that compute dx from dy, along a dimension in which x has `size` pixels. The sum
 * for a place of x consists of the terms of `forward` that read this place. */
static ResampleTaps taps_backward(const OpSpec *s, int64_t size, const ResampleTaps *forward,
                                  TapArrays *room)
{
    const int64_t out = size * s->scale;
    int *first, *place, count = 0, begin = 0;
    float *weight;
    const ResampleTaps taps = taps_take(room, size, 2 * out, &first, &place, &weight);
    for (int64_t i = 0; i < size; ++i) {
        first[i] = count;
        /* the first place of y that reads pixel i or a later one */
        while (forward->place[forward->first[begin + 1] - 1] < i) ++begin;
        for (int at = begin; at < out && forward->place[forward->first[at]] <= i; ++at)
            for (int k = forward->first[at]; k < forward->first[at + 1]; ++k) {
                if (forward->place[k] != i) continue;
                place[count] = at;
                weight[count++] = forward->weight[k];
            }
    }
    first[size] = count;
    return taps;
}

static void plan_taps(Upsample *u, const OpSpec *s)
{
    const int64_t h = s->x[0].shape.dim[2], w = s->x[0].shape.dim[3], out = (h + w) * s->scale;
    u->numbers = mem_new((size_t)(5 * out + h + w + 4) * sizeof *u->numbers);
    u->weights = mem_new((size_t)(4 * out) * sizeof *u->weights);
    TapArrays room = {u->numbers, u->weights};
    const int lanes = s->x[0].block, columns = (int)w, out_columns = columns * s->scale;
    u->forward =
        (ResamplePlane){.source_columns = columns, .result_columns = out_columns, .lanes = lanes};
    u->backward =
        (ResamplePlane){.source_columns = out_columns, .result_columns = columns, .lanes = lanes};
    u->forward.rows = taps_forward(s, h, &room);
    u->forward.columns = taps_forward(s, w, &room);
    u->backward.rows = taps_backward(s, h, &u->forward.rows, &room);
    u->backward.columns = taps_backward(s, w, &u->forward.columns, &room);
}

static int64_t nearest_source(const OpSpec *s, int d, int64_t at)
{
    (void)d;
    return at / s->scale;
}

static Status upsample_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Upsample *u = op->impl = mem_new(sizeof *u);
    preferred[0] = in_precision(op, s->x[0]);
    s->y.block = s->x[0].block;
    s->y.dtype = preferred[0].dtype;
    switch (s->upsample) {
    case UPSAMPLE_NEAREST:
        u->copies = copies_new(s, nearest_source);
        break;
    case UPSAMPLE_BILINEAR:
        plan_taps(u, s);
        break;
    }
    return OK;
}

static void upsample_free(Op *op)
{
    Upsample *u = op->impl;
    if (u) {
        copies_free(&u->copies);
        mem_free(&u->numbers);
        mem_free(&u->weights);
    }
    mem_free(&op->impl);
}

typedef struct ResampleTask {
    const ResamplePlane *plane;
    DType type;
    /* rows of a plane of the source */
    int64_t source_rows;
    /* rows of a plane of the result */
    int64_t result_rows;
    /* elements of a row of the source */
    int64_t source_row_elements;
    /* elements of a row of the result */
    int64_t result_row_elements;
    const void *from;
    void *to;
} ResampleTask;

/* An item of work_run is a row of the result. */
static void resample_body(const void *task, int64_t begin, int64_t end)
{
    const ResampleTask *t = task;
    for (int64_t item = begin; item < end; ++item) {
        const int64_t source_offset =
            item / t->result_rows * t->source_rows * t->source_row_elements;
        simd_table(t->type)->resample_row(
            t->plane, (int)(item % t->result_rows), element_at(t->from, source_offset, t->type),
            element_out(t->to, item * t->result_row_elements, t->type));
    }
}

static void resample_run(const Op *op, const ResamplePlane *plane, Desc source, const void *from,
                         Desc result, void *to)
{
    const View v = view_of(result);
    const ResampleTask t = {.plane = plane,
                            .type = op->spec.y.dtype,
                            .source_rows = source.shape.dim[2],
                            .result_rows = result.shape.dim[2],
                            .source_row_elements = source.shape.dim[3] * v.block,
                            .result_row_elements = result.shape.dim[3] * v.block,
                            .from = from,
                            .to = to};
    work_run(resample_body, &t, v.n * v.groups * t.result_rows, v.n * v.sample);
}

static void upsample_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const Upsample *u = op->impl;
    if (u->copies)
        copies_forward(u->copies, op, run);
    else
        resample_run(op, &u->forward, s->x[0], run->x[0], s->y, run->y);
}

static void upsample_backward_data(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const Upsample *u = op->impl;
    if (u->copies)
        copies_backward(u->copies, op, run);
    else if (run->dx[0])
        resample_run(op, &u->backward, s->y, run->dy, s->x[0], run->dx[0]);
}

const OpTable cpu_upsample = {
    .name = "upsample",
    .plan = upsample_plan,
    .forward = upsample_forward,
    .backward_data = upsample_backward_data,
    .free = upsample_free,
};
