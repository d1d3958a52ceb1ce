/* dense: three matrix products. R: rows (N, or N*T), I: inputs, O: outputs, P: those with the padding of y's rows. In bf16 the weights'
 * bf16 copy lies in the cache, the bias behind it, both with zeros up to P; gradients of parameters are fp32. */
#include "matmul.h"

#include <limits.h>

typedef struct Dense {
    Matmul forward, data, weight, rest; /* rest: the last weights, of padded rows */
} Dense;
typedef struct DenseSize {
    int rows, in, out, padded;
    int even; /* outputs whose weights' gradient is one product */
} DenseSize;

static DenseSize dense_size(const Op *op)
{
    const Shape *w = &op->spec.w[0];
    int64_t rows = shape_count(op->spec.y.shape) / w->dim[0];
    int out = (int)w->dim[0], padded = (int)desc_row(op->spec.y);
    return (DenseSize){(int)rows, (int)w->dim[1], out, padded, padded > out ? out / 8 * 8 : out};
}

static bool in_bf16(const Op *op)
{
    return op->spec.y.dtype == DTYPE_BF16;
}

static bool has_bias(const Op *op)
{
    return op->spec.w_count > 1;
}

static Status plan_products(Op *op, Dense *d)
{
    CudaState *state = cuda_state(op);
    DenseSize n = dense_size(op);
    DType type = op->spec.y.dtype;
    /* y^T [P,R] = w [P,I] x^T [I,R] */
    TRY(matmul_plan(&d->forward, state,
                    &(MatmulSpec){.name = "dense",
                                  .turn_a = true,
                                  .m = n.padded,
                                  .n = n.rows,
                                  .k = n.in,
                                  .lda = n.in,
                                  .ldb = n.in,
                                  .ldd = n.padded,
                                  .in = type,
                                  .out = type,
                                  .bias = has_bias(op),
                                  .relu = op->spec.act == ACT_RELU}));
    /* dx^T [I,R] = w^T [I,P] dy^T [P,R] */
    if (op->spec.need_dx[0])
        TRY(matmul_plan(&d->data, state,
                        &(MatmulSpec){.name = "dense's inputs",
                                      .m = n.in,
                                      .n = n.rows,
                                      .k = n.padded,
                                      .lda = n.in,
                                      .ldb = n.padded,
                                      .ldd = n.in,
                                      .in = type,
                                      .out = type}));
    /* dw^T [I,O] = x^T [I,R] dy [R,O] */
    MatmulSpec weight = {.name = "dense's weights",
                         .turn_b = true,
                         .m = n.in,
                         .n = n.even,
                         .k = n.rows,
                         .lda = n.in,
                         .ldb = n.padded,
                         .ldd = n.in,
                         .in = type,
                         .out = DTYPE_F32};
    TRY(matmul_plan(&d->weight, state, &weight));
    weight.n = n.out - n.even;
    return weight.n > 0 ? matmul_plan(&d->rest, state, &weight) : OK;
}

static Status dense_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs(op, wish)) return OK;
    if (spec->act != ACT_NONE && spec->act != ACT_RELU && spec->act != ACT_RELU6)
        return fail(ERR_BUG, "cuda: dense runs with relu or relu6 fused, with no other activation");
    int64_t out = spec->w[0].dim[0], in = spec->w[0].dim[1],
            rows = shape_count(spec->y.shape) / out;
    if (rows > INT_MAX || in > INT_MAX || out > INT_MAX)
        return fail(
            ERR_CONFIG,
            "cuda: dense of %lld rows, %lld inputs, %lld outputs: each may be 2147483647 at most",
            (long long)rows, (long long)in, (long long)out);
    spec->y = cuda_desc(op, spec->y.shape);
    for (int i = 0; i < spec->w_count; ++i) op->w_elements[i] = shape_count(spec->w[i]);
    if (cuda_rows_padded(spec->y.dtype, out)) spec->y.block = ROW_BLOCK;
    Dense *d = op->impl = mem_new(sizeof *d);
    if (in_bf16(op)) op->cache_bytes = (size_t)(desc_row(spec->y) * (in + 1)) * sizeof(Bf16);
    int64_t parts = cuda_sum_parts(spec->y.dtype, rows, desc_row(spec->y));
    op->workspace_bytes = has_bias(op) ? (size_t)(parts * out) * sizeof(float) : 0;
    op->needs_x[0] = true;
    op->needs_y = spec->act != ACT_NONE;
    op->weight_later = true;
    op->flops_forward = 2.0 * (double)rows * (double)in * (double)out;
    op->flops_backward = op->flops_forward * (spec->need_dx[0] ? 2 : 1);
    return plan_products(op, d);
}

/* Zeros behind it, up to `room` elements. */
static void convert_padded(const Op *op, Bf16 *to, const float *from, int64_t n, int64_t room)
{
    cuda_check(cuda_convert(cuda_stream(op), DTYPE_BF16, to, DTYPE_F32, from, n), "kernel convert");
    if (room > n)
        CUDA_CALL(cudaMemsetAsync(to + n, 0, (size_t)(room - n) * sizeof *to, cuda_stream(op)));
}

static void dense_refresh(Op *op, const OpRun *run)
{
    DenseSize n = dense_size(op);
    int64_t room = (int64_t)n.padded * n.in;
    Bf16 *cache = run->cache;
    if (!in_bf16(op)) return;
    convert_padded(op, cache, run->w[0], op->w_elements[0], room);
    if (has_bias(op)) convert_padded(op, cache + room, run->w[1], n.out, n.padded);
}

static const void *weights_of(const Op *op, const OpRun *run)
{
    return in_bf16(op) ? run->cache : (const void *)run->w[0];
}

static const void *bias_of(const Op *op, const OpRun *run)
{
    DenseSize n = dense_size(op);
    if (!has_bias(op)) return NULL;
    return in_bf16(op) ? (const void *)((const Bf16 *)run->cache + (int64_t)n.padded * n.in)
                       : run->w[1];
}

static void dense_forward(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    matmul_run(&d->forward, cuda_state(op), weights_of(op, run), run->x[0], run->y,
               bias_of(op, run));
    if (op->spec.act == ACT_RELU6)
        cuda_check(cuda_activation(cuda_stream(op), op->spec.y.dtype, ACT_RELU6, run->y, run->y,
                                   desc_elements(op->spec.y)),
                   "kernel activation");
}

static void dense_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.y.dtype, op->spec.act, run->dy,
                                        run->dy, run->y, desc_elements(op->spec.y)),
               "kernel activation_backward");
}

static void dense_backward_data(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    if (run->dx[0])
        matmul_run(&d->data, cuda_state(op), weights_of(op, run), run->dy, run->dx[0], NULL);
}

static void dense_backward_weight(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    DenseSize n = dense_size(op);
    matmul_run(&d->weight, cuda_state(op), run->x[0], run->dy, run->dw[0], NULL);
    if (n.even < n.out)
        matmul_run(&d->rest, cuda_state(op), run->x[0], (const Bf16 *)run->dy + n.even,
                   run->dw[0] + (int64_t)n.even * n.in, NULL);
    if (has_bias(op))
        cuda_check(cuda_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[1], run->workspace,
                                   run->dy, n.rows, n.out, n.padded),
                   "kernel column_sum");
}

static void dense_free(Op *op)
{
    Dense *d = op->impl;
    if (!d) return;
    matmul_free(&d->forward);
    matmul_free(&d->data);
    matmul_free(&d->weight);
    matmul_free(&d->rest);
    mem_free(&op->impl);
}

const OpTable cuda_dense = {
    .name = "dense",
    .plan = dense_plan,
    .refresh = dense_refresh,
    .forward = dense_forward,
    .backward_begin = dense_backward_begin,
    .backward_data = dense_backward_data,
    .backward_weight = dense_backward_weight,
    .free = dense_free,
};
