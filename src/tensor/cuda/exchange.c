/* exchange: moves slices between the ranks of a tensor group (sliced.h) and adds the bias, if there
 * is one. */
#include "../sliced.h"
#include "cuda.h"

static Status exchange_op_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    if (!cuda_inputs_fit(op, preferred)) return OK;
    TRY(exchange_plan(op, cuda_desc(op, op->spec.y.shape), NULL));
    const ExchangePlan *plan = op->impl;
    int64_t parts = cuda_sum_parts(op->spec.y.dtype, plan->rows, plan->width);
    size_t bytes = (size_t)(parts * plan->width) * sizeof(float);
    if (op->spec.w_count && op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    return OK;
}

static void forward(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    exchange_forward(op, run);
    if (op->spec.w_count == 0) return;
    AddRowRun add = {.type = op->spec.y.dtype,
                     .x = run->y,
                     .y = run->y,
                     .row = run->w[0],
                     .rows = plan->rows,
                     .real = plan->rows,
                     .columns = plan->width};
    cuda_check(launch_add_row(cuda_stream(op), add), "kernel add_row");
}

static void backward_weight(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    if (op->spec.w_count == 0) return;
    cuda_check(launch_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[0], run->workspace,
                                 run->dy, plan->rows, plan->width, plan->width),
               "kernel column_sum");
}

const OpTable cuda_exchange = {
    .name = "exchange",
    .plan = exchange_op_plan,
    .forward = forward,
    .backward_data = exchange_backward_data,
    .backward_weight = backward_weight,
    .free = exchange_free,
};
