/* exchange: moves slices between the ranks of a tensor group (sliced.h) and adds the bias. */
#include "../sliced.h"
#include "cuda.h"

static Status plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs(op, preferred)) return OK;
    TRY(exchange_plan(op, cuda_desc(op, op->spec.y.shape)));
    const ExchangePlan *w = op->impl;
    int64_t parts = cuda_sum_parts(op->spec.y.dtype, w->rows, w->width);
    size_t bytes = (size_t)(parts * w->width) * sizeof(float);
    if (op->spec.w_count && op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    return OK;
}

static void forward(Op *op, const OpRun *run)
{
    const ExchangePlan *w = op->impl;
    exchange_forward(op, run);
    if (op->spec.w_count == 0) return;
    AddRowRun add = {.type = op->spec.y.dtype,
                     .x = run->y,
                     .y = run->y,
                     .row = run->w[0],
                     .rows = w->rows,
                     .real = w->rows,
                     .columns = w->width};
    cuda_check(launch_add_row(cuda_stream(op), add), "kernel add_row");
}

static void backward_weight(Op *op, const OpRun *run)
{
    const ExchangePlan *w = op->impl;
    if (op->spec.w_count == 0) return;
    cuda_check(launch_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[0], run->workspace,
                                 run->dy, w->rows, w->width, w->width),
               "kernel column_sum");
}

const OpTable cuda_exchange = {
    .name = "exchange",
    .plan = plan,
    .forward = forward,
    .backward_data = exchange_backward_data,
    .backward_weight = backward_weight,
    .free = exchange_free,
};
