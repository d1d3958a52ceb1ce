/* dense: three matrix products by cuBLAS. cuBLAS counts columns first, so a row-major a[r,c] is its c x r matrix, and
 * each product is asked for transposed. R: rows (N, or N*T), I: inputs, O: outputs. */
#include "cuda.h"

#include <limits.h>

typedef struct DenseSize {
    int rows, in, out;
} DenseSize;

static DenseSize dense_size(const Op *op)
{
    const Shape *w = &op->spec.w[0];
    int64_t rows = shape_count(op->spec.y.shape) / w->dim[0];
    return (DenseSize){(int)rows, (int)w->dim[1], (int)w->dim[0]};
}

static Status dense_plan(Op *op, Desc wish[OP_INPUTS])
{
    OpSpec *spec = &op->spec;
    if (!cuda_inputs_plain(op, wish)) return OK;
    if (spec->act != ACT_NONE && spec->act != ACT_RELU && spec->act != ACT_RELU6)
        return fail(ERR_BUG, "cuda: dense runs with relu or relu6 fused, with no other activation");
    int64_t out = spec->w[0].dim[0], in = spec->w[0].dim[1],
            rows = shape_count(spec->y.shape) / out;
    if (rows > INT_MAX || in > INT_MAX || out > INT_MAX)
        return fail(
            ERR_CONFIG,
            "cuda: dense of %lld rows, %lld inputs, %lld outputs: each may be 2147483647 at most",
            (long long)rows, (long long)in, (long long)out);
    spec->y = desc_plain(spec->y.shape, DTYPE_F32);
    for (int i = 0; i < spec->w_count; ++i) op->w_elements[i] = shape_count(spec->w[i]);
    op->needs_x[0] = true;
    op->needs_y = spec->act != ACT_NONE;
    op->flops_forward = 2.0 * (double)rows * (double)in * (double)out;
    op->flops_backward = op->flops_forward * (spec->need_dx[0] ? 2 : 1);
    return OK;
}

static void dense_forward(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    DenseSize n = dense_size(op);
    const float *bias = op->spec.w_count > 1 ? run->w[1] : NULL;
    /* y^T [O,R] = w [O,I] x^T [I,R] */
    CUBLAS_CALL(cublas.sgemm(cuda_state(op)->blas, CUBLAS_OP_T, CUBLAS_OP_N, n.out, n.rows, n.in,
                             &one, run->w[0], n.in, run->x[0], n.in, &zero, run->y, n.out));
    if (bias || op->spec.act != ACT_NONE)
        cuda_check(cuda_bias_act(cuda_stream(op), op->spec.act, run->y, bias, n.rows, n.out),
                   "kernel bias_act");
}

static void dense_backward_begin(Op *op, const OpRun *run)
{
    if (op->spec.act == ACT_NONE) return;
    cuda_check(cuda_activation_backward(cuda_stream(op), op->spec.act, run->dy, run->dy, run->y,
                                        shape_count(op->spec.y.shape)),
               "kernel activation_backward");
}

static void dense_backward_data(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    DenseSize n = dense_size(op);
    if (!run->dx[0]) return;
    /* dx^T [I,R] = w^T [I,O] dy^T [O,R] */
    CUBLAS_CALL(cublas.sgemm(cuda_state(op)->blas, CUBLAS_OP_N, CUBLAS_OP_N, n.in, n.rows, n.out,
                             &one, run->w[0], n.in, run->dy, n.out, &zero, run->dx[0], n.in));
}

static void dense_backward_weight(Op *op, const OpRun *run)
{
    const float one = 1, zero = 0;
    DenseSize n = dense_size(op);
    /* dw^T [I,O] = x^T [I,R] dy [R,O] */
    CUBLAS_CALL(cublas.sgemm(cuda_state(op)->blas, CUBLAS_OP_N, CUBLAS_OP_T, n.in, n.out, n.rows,
                             &one, run->x[0], n.in, run->dy, n.out, &zero, run->dw[0], n.in));
    if (op->spec.w_count > 1)
        cuda_check(cuda_column_sum(cuda_stream(op), run->dw[1], run->dy, n.rows, n.out),
                   "kernel column_sum");
}

static void dense_free(Op *op)
{
    (void)op;
}

const OpTable cuda_dense = {
    .name = "dense",
    .plan = dense_plan,
    .forward = dense_forward,
    .backward_begin = dense_backward_begin,
    .backward_data = dense_backward_data,
    .backward_weight = dense_backward_weight,
    .free = dense_free,
};
