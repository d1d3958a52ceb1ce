/* embedding and positions: rows of a table, by token and by place. */
#include "cuda.h"

#include <limits.h>

static Status embed_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    if (shape_count(s->x[0].shape) > INT_MAX)
        return fail(ERR_CONFIG, "cuda: embedding of more than %d tokens a micro-batch", INT_MAX);
    s->y = cuda_desc(op, s->y.shape);
    op->w_elements[0] = shape_count(s->w[0]);
    op->workspace_bytes = (size_t)shape_count(s->x[0].shape) * sizeof(int32_t);
    op->needs_x[0] = true;
    op->weight_later = true;
    return OK;
}

static EmbeddingRun embed_run(const Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t count = shape_count(s->x[0].shape), rows = s->w[0].dim[0];
    return (EmbeddingRun){.type = s->y.dtype,
                          .tokens = run->x[0],
                          .w = run->w[0],
                          .y = run->y,
                          .dy = run->dy,
                          .dw = run->dw[0],
                          .order = run->workspace,
                          .count = count,
                          .real = count / s->x[0].shape.dim[0] * run->rows,
                          .width = s->w[0].dim[1],
                          .first = s->slice.ranks ? s->slice.first : 0,
                          .rows = rows,
                          .vocab = s->slice.ranks ? s->slice.whole : rows};
}

static void embed_forward(Op *op, const OpRun *run)
{
    cuda_check(cuda_embedding(cuda_stream(op), embed_run(op, run)), "kernel embedding");
}

static void embed_backward_weight(Op *op, const OpRun *run)
{
    cuda_check(cuda_embedding_backward(cuda_stream(op), embed_run(op, run)),
               "kernel embedding_backward");
}

const OpTable cuda_embed = {
    .name = "embedding",
    .plan = embed_plan,
    .forward = embed_forward,
    .backward_weight = embed_backward_weight,
};

/* positions: a sample is a row, of length x width columns; those of the table from the first place's on are added to each. */
static int64_t sample_elements(const Op *op)
{
    const int64_t *y = op->spec.y.shape.dim;
    return y[1] * y[2];
}

static Status places_plan(Op *op, Desc preferred[OP_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs(op, preferred)) return OK;
    s->y = cuda_desc(op, s->y.shape);
    int64_t columns = sample_elements(op);
    op->w_elements[0] = shape_count(s->w[0]);
    op->workspace_bytes =
        (size_t)(cuda_sum_parts(s->y.dtype, s->y.shape.dim[0], columns) * columns) * sizeof(float);
    op->y_inplace = true;
    op->dx_alias[0] = true;
    return OK;
}

static void places_forward(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    AddRowRun add = {.type = s->y.dtype,
                     .x = run->x[0],
                     .y = run->y,
                     .row = run->w[0] + s->slice.first * s->y.shape.dim[2],
                     .rows = s->y.shape.dim[0],
                     .real = run->rows,
                     .columns = sample_elements(op)};
    cuda_check(cuda_add_row(cuda_stream(op), add), "kernel add_row");
}

static void places_backward_weight(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    int64_t columns = sample_elements(op), first = s->slice.first * s->y.shape.dim[2];
    if (columns < op->w_elements[0])
        CUDA_CALL(cudaMemsetAsync(run->dw[0], 0, (size_t)op->w_elements[0] * sizeof(float),
                                  cuda_stream(op)));
    cuda_check(cuda_column_sum(cuda_stream(op), s->y.dtype, run->dw[0] + first, run->workspace,
                               run->dy, run->rows, columns, columns),
               "kernel column_sum");
}

const OpTable cuda_places = {
    .name = "positions",
    .plan = places_plan,
    .forward = places_forward,
    .backward_weight = places_backward_weight,
};
