/* embedding: looks up rows of a table by token. For the gradient, a thread adds the terms of all
 * tokens in order, but only in its own columns, so any number of threads gives the same bits. */
#include "view.h"

#include <string.h>

typedef struct Embedding {
    /* tokens of all samples */
    int64_t tokens;
    /* tokens of one sample */
    int64_t per_sample;
    /* elements of a row */
    int64_t width;
    /* this rank has rows `first` to first + rows - 1 of the table */
    int64_t first, rows;
    /* number of rows of the whole table */
    int64_t vocab;
    DType type;
} Embedding;

typedef struct EmbedTask {
    const Embedding *e;
    const OpRun *run;
} EmbedTask;

static Status embedding_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    preferred[0] = layout_plain(s->x[0]);
    s->y = desc_plain(s->y.shape, op->backend->options.precision);
    Embedding *e = op->impl = mem_new(sizeof *e);
    e->tokens = shape_count(s->x[0].shape);
    e->per_sample = e->tokens / s->x[0].shape.dim[0];
    e->rows = e->vocab = s->w[0].dim[0];
    if (s->slice.ranks) {
        e->first = s->slice.first;
        e->vocab = s->slice.whole;
    }
    e->width = s->w[0].dim[1];
    e->type = s->y.dtype;
    op->w_elements[0] = e->rows * e->width;
    op->needs_x[0] = true;
    op->weight_may_wait = true;
    return OK;
}

static void impl_free(Op *op)
{
    mem_free(&op->impl);
}

/* Returns the row of w for token i, or -1 if another rank has it. Ends the job if the token is not
 * in the vocabulary. */
static int64_t row_at(const EmbedTask *t, int64_t i)
{
    int32_t token = ((const int32_t *)t->run->x[0])[i];
    if (token < 0 || token >= t->e->vocab)
        die("embedding: token %d is outside the vocabulary of %lld; check the data set's vocab",
            token, (long long)t->e->vocab);
    int64_t row = token - t->e->first;
    return row >= 0 && row < t->e->rows ? row : -1;
}

/* Fills y with -0, whose addition changes no sum over ranks: x + -0 is x, even if x is -0. */
static void minus_zeros(void *y, int64_t n, DType type)
{
    for (int64_t i = 0; i < n; ++i)
        if (type == DTYPE_F32)
            ((float *)y)[i] = -0.0f;
        else
            ((Bf16 *)y)[i].bits = 1u << 15;
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const EmbedTask *t = task;
    int64_t width = t->e->width, real = t->run->sample_count * t->e->per_sample;
    const DType type = t->e->type;
    for (int64_t i = begin; i < end; ++i) {
        void *y = element_out(t->run->y, i * width, type);
        int64_t row = i < real ? row_at(t, i) : -1;
        if (row >= 0)
            simd_table(type)->from_floats(y, t->run->w[0] + row * width, width);
        else if (i < real)
            minus_zeros(y, width, type);
        else
            elements_zero(y, width, type);
    }
}

static void embedding_forward(Op *op, const OpRun *run)
{
    EmbedTask t = {.e = op->impl, .run = run};
    work_run(forward_body, &t, t.e->tokens, t.e->tokens * t.e->width);
}

/* An item of work_run is a row of the table. */
static void zero_body(const void *task, int64_t begin, int64_t end)
{
    const EmbedTask *t = task;
    int64_t width = t->e->width;
    memset(t->run->dw[0] + begin * width, 0, (size_t)((end - begin) * width) * sizeof(float));
}

/* An item of work_run is SIMD_LANES columns. */
static void scatter_body(const void *task, int64_t begin, int64_t end)
{
    const EmbedTask *t = task;
    int64_t width = t->e->width, real = t->run->sample_count * t->e->per_sample;
    int64_t from = begin * SIMD_LANES, to = end * SIMD_LANES < width ? end * SIMD_LANES : width;
    float *dw = t->run->dw[0];
    const DType type = t->e->type;
    for (int64_t i = 0; i < real; ++i) {
        int64_t row = row_at(t, i);
        if (row >= 0)
            simd_table(type)->add_into(dw + row * width + from,
                                       element_at(t->run->dy, i * width + from, type), to - from);
    }
}

static void embedding_backward_weight(Op *op, const OpRun *run)
{
    EmbedTask t = {.e = op->impl, .run = run};
    work_run(zero_body, &t, t.e->rows, t.e->rows * t.e->width);
    work_run(scatter_body, &t, (t.e->width + SIMD_LANES - 1) / SIMD_LANES,
             t.e->tokens * t.e->width);
}

const OpTable cpu_embedding = {
    .name = "embedding",
    .plan = embedding_plan,
    .forward = embedding_forward,
    .backward_weight = embedding_backward_weight,
    .free = impl_free,
};
