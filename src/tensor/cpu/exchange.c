/* exchange: runs the communication of sliced.h, adds the bias to y, and computes the bias's
 * gradient. */
#include "../sliced.h"
#include "token_sums.h"

#include <string.h>

/* Returns the plan of the bias's gradient as a sum over slices of the sequence. Its cut.total is 0
 * if the sum is not cut. */
static TokenSums bias_sums(const OpSpec *s)
{
    return token_sums_plan(&s->token_slices, s->y.shape, 1);
}

typedef struct ConvertTask {
    const void *from;
    void *to;
    DType from_type, to_type;
    int64_t n;
} ConvertTask;

/* An item of work_run is CONVERT_ELEMENTS elements. */
enum { CONVERT_ELEMENTS = 4096 };
static void convert_body(const void *task, int64_t begin, int64_t end)
{
    const ConvertTask *t = task;
    const int64_t from = begin * CONVERT_ELEMENTS;
    const int64_t to = end * CONVERT_ELEMENTS < t->n ? end * CONVERT_ELEMENTS : t->n;
    const void *x = element_at(t->from, from, t->from_type);
    void *y = element_out(t->to, from, t->to_type);
    if (t->to_type == DTYPE_F32)
        simd_table(t->from_type)->to_floats(y, x, to - from);
    else
        simd_table(t->to_type)->from_floats(y, x, to - from);
}

static void convert(const Op *op, const void *from, DType from_type, void *to, DType to_type,
                    int64_t n)
{
    (void)op;
    work_run(
        convert_body,
        &(ConvertTask){.from = from, .to = to, .from_type = from_type, .to_type = to_type, .n = n},
        (n + CONVERT_ELEMENTS - 1) / CONVERT_ELEMENTS, n);
}

typedef struct CopyTask {
    const char *from;
    char *to;
    size_t from_pitch, to_pitch, bytes;
} CopyTask;

static void copy_body(const void *task, int64_t begin, int64_t end)
{
    const CopyTask *t = task;
    for (size_t i = (size_t)begin; i < (size_t)end; ++i)
        memcpy(t->to + i * t->to_pitch, t->from + i * t->from_pitch, t->bytes);
}

static void copy_rows(const Op *op, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                      size_t bytes, int64_t rows)
{
    (void)op;
    work_run(
        copy_body,
        &(CopyTask){
            .from = from, .to = to, .from_pitch = from_pitch, .to_pitch = to_pitch, .bytes = bytes},
        rows, rows * (int64_t)(bytes / sizeof(float)));
}

static Status cpu_exchange_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    static const ExchangeCopies copies = {.convert = convert, .rows = copy_rows};
    preferred[0] = desc_plain(op->spec.x[0].shape, exchange_input(op));
    TRY(exchange_plan(op, in_precision(op, desc_plain(op->spec.y.shape, DTYPE_F32)), &copies));
    if (op->spec.token_slices.total == 0) return OK;
    const TokenSums sums = bias_sums(&op->spec);
    const size_t bytes = token_sums_bytes(&sums);
    if (op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    return OK;
}

typedef struct RowsTask {
    const ExchangePlan *plan;
    const OpRun *run;
    DType type;
    /* forward: the result in fp32, not yet rounded; NULL: y has the result */
    float *sum;
} RowsTask;

static RowsTask rows_task(const Op *op, const OpRun *run)
{
    return (RowsTask){.plan = op->impl, .run = run, .type = op->spec.y.dtype};
}

static void bias_body(const void *task, int64_t begin, int64_t end)
{
    const RowsTask *t = task;
    const int64_t width = t->plan->width;
    for (int64_t i = begin; i < end; ++i) {
        void *y = element_out(t->run->y, i * width, t->type);
        if (!t->sum) {
            simd_table(t->type)->add_floats(y, y, t->run->w[0], width);
            continue;
        }
        float *sum = t->sum + i * width;
        if (t->run->w[0]) simd_table(DTYPE_F32)->add_floats(sum, sum, t->run->w[0], width);
        simd_table(t->type)->from_floats(y, sum, width);
    }
}

static void cpu_exchange_forward(Op *op, const OpRun *run)
{
    RowsTask t = rows_task(op, run);
    void *sum = exchange_forward(op, run);
    if (sum != run->y) t.sum = sum;
    if (op->spec.w_count || t.sum)
        work_run(bias_body, &t, t.plan->rows, t.plan->rows * t.plan->width);
}

/* An item of work_run is SIMD_LANES columns of the bias's gradient; rows are added in order. */
static void bias_gradient_body(const void *task, int64_t begin, int64_t end)
{
    const RowsTask *t = task;
    int64_t width = t->plan->width;
    int64_t from = begin * SIMD_LANES, to = end * SIMD_LANES < width ? end * SIMD_LANES : width;
    float *dw = t->run->dw[0] + from;
    memset(dw, 0, (size_t)(to - from) * sizeof *dw);
    for (int64_t i = 0; i < t->plan->rows; ++i)
        simd_table(t->type)->add_into(dw, element_at(t->run->dy, i * width + from, t->type),
                                      to - from);
}

static void add_row(const void *task, int64_t row, float *sum)
{
    const RowsTask *t = task;
    const int64_t width = t->plan->width;
    simd_table(t->type)->add_into(sum, element_at(t->run->dy, row * width, t->type), width);
}

static void backward_weight(Op *op, const OpRun *run)
{
    RowsTask t = rows_task(op, run);
    const TokenSums sums = bias_sums(&op->spec);
    if (op->spec.w_count == 0) return;
    if (sums.cut.total > 0)
        token_sums_run(&sums, run, add_row, &t, run->workspace, 0);
    else
        work_run(bias_gradient_body, &t, (t.plan->width + SIMD_LANES - 1) / SIMD_LANES,
                 t.plan->rows * t.plan->width);
}

const OpTable cpu_exchange = {
    .name = "exchange",
    .plan = cpu_exchange_plan,
    .forward = cpu_exchange_forward,
    .backward_data = exchange_backward_data,
    .backward_weight = backward_weight,
    .free = exchange_free,
};
