/* The operation embedding: y[i] is row tokens[i] of the table. Its numbers are -0 if another rank
 * has the row. */
#include "cuda.h"

#include <limits.h>

static Status embedding_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    if (!cuda_inputs_fit(op, preferred)) return OK;
    if (shape_count(s->x[0].shape) > INT_MAX)
        return fail(ERR_CONFIG, "cuda: embedding of more than %d tokens a micro-batch", INT_MAX);
    s->y = cuda_desc(op, s->y.shape);
    op->w_elements[0] = shape_count(s->w[0]);
    op->workspace_bytes = (size_t)cuda_sort_scratch(shape_count(s->x[0].shape)) * sizeof(int32_t);
    op->needs_x[0] = true;
    op->weight_may_wait = true;
    return OK;
}

static EmbeddingRun embedding_run(const Op *op, const OpRun *run)
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
                          .real = count / s->x[0].shape.dim[0] * run->sample_count,
                          .width = s->w[0].dim[1],
                          .first = s->slice.ranks ? s->slice.first : 0,
                          .rows = rows,
                          .vocab = s->slice.ranks ? s->slice.whole : rows};
}

static void embedding_forward(Op *op, const OpRun *run)
{
    cuda_check(launch_embedding(cuda_stream(op), embedding_run(op, run)), "kernel embedding");
}

static void embedding_backward_weight(Op *op, const OpRun *run)
{
    cuda_check(launch_embedding_backward(cuda_stream(op), embedding_run(op, run)),
               "kernel embedding_backward");
}

const OpTable cuda_embedding = {
    .name = "embedding",
    .plan = embedding_plan,
    .forward = embedding_forward,
    .backward_weight = embedding_backward_weight,
};
