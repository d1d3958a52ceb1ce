/* The operation exchange: moves slices between the ranks of a tensor-parallel group (../sliced.h)
 * and adds the bias, if there is one. If the exchange results in an fp32 sum, the bias is added
 * before the sum is rounded. */
#include "../sliced.h"
#include "token_sums.h"

static void convert(const Op *op, const void *from, DType from_type, void *to, DType to_type,
                    int64_t n)
{
    cuda_check(launch_convert(cuda_stream(op), to_type, to, from_type, from, n), "kernel convert");
}

static void copy_rows(const Op *op, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                      size_t bytes, int64_t rows)
{
    cuda_copy_rows(cuda_stream(op), (CudaRows){to, to_pitch},
                   (CudaRows){(char *)(uintptr_t)from, from_pitch}, bytes, (size_t)rows);
}

static Status exchange_op_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    static const ExchangeCopies copies = {.convert = convert, .rows = copy_rows};
    const OpSpec *s = &op->spec;
    cuda_inputs_fit(op, preferred);
    preferred[0].dtype = exchange_input(op);
    if (!desc_equal(preferred[0], s->x[0])) return OK;
    TRY(exchange_plan(op, cuda_desc(op, s->y.shape), &copies));
    const ExchangePlan *plan = op->impl;
    int64_t parts = cuda_sum_parts(s->y.dtype, plan->rows, plan->width);
    size_t bytes = (size_t)(parts * plan->width) * sizeof(float);
    if (s->token_slices.total > 0) {
        const TokenSums bias = cuda_token_bias(op);
        bytes = cuda_token_sums_bytes(op, &bias);
    }
    if (s->w_count && op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    return OK;
}

static void forward(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    void *sum = exchange_forward(op, run);
    const DType type = op->spec.y.dtype;
    AddRowRun add = {.type = sum == run->y ? type : DTYPE_F32,
                     .x = sum,
                     .y = sum,
                     .row = run->w[0],
                     .rows = plan->rows,
                     .real = plan->rows,
                     .columns = plan->width};
    if (op->spec.w_count) cuda_check(launch_add_row(cuda_stream(op), add), "kernel add_row");
    if (sum != run->y) convert(op, sum, DTYPE_F32, run->y, type, plan->rows * plan->width);
}

static void backward_weight(Op *op, const OpRun *run)
{
    const ExchangePlan *plan = op->impl;
    if (op->spec.w_count == 0) return;
    if (op->spec.token_slices.total > 0) {
        const TokenSums bias = cuda_token_bias(op);
        cuda_token_sums_run(op, run, &bias, 0);
        return;
    }
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
