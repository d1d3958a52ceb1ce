/* The operation dense: three matrix products by cuBLASLt. R is the number of rows (N, or N*T), I
 * the number of inputs, O the number of outputs, and P the number of outputs with the padding of
 * y's rows. In bf16 and fp16 the products read copies of the weights and the bias in the cache,
 * both padded with zeros to P outputs; gradients of parameters are fp32. Bias, relu, gelu and the
 * bias gradient are epilogues of the products, and the forward product adds the residual. If
 * cuBLASLt has no such product for a shape or a GPU, a separate kernel computes gelu, its
 * derivative, the sum with the residual or the bias gradient, and op->kernels says so. A separate
 * kernel always computes relu6. */
#include "dense_slices.h"
#include "../libraries/matmul.h"

#include <limits.h>
#include <string.h>

/* cuBLASLt requires that a column of the matrix of gelu's inputs has a multiple of this number of
 * elements */
enum { AUX_COLUMNS = 8 };

typedef struct Dense {
    /* products for y, dx and dw */
    Matmul forward, data, weight;
    /* product for dw of the last O - main_out outputs (DenseSize); not planned if there are none */
    Matmul rest;
    /* true: a separate kernel applies gelu; it computes y from the product, which is in
     * OpRun.saved */
    bool separate_gelu;
    /* true: a separate kernel adds the residual and then applies the activation */
    bool separate_add;
    /* true: a separate kernel multiplies dx by the derivative of gelu */
    bool separate_slope;
    /* true: a separate kernel computes the bias gradient */
    bool separate_bias_sum;
} Dense;
typedef struct DenseSize {
    /* rows: R; in: I; out: O; padded: P */
    int rows, in, out, padded;
    /* number of outputs for which one product computes the weight gradient: O or, if y's rows are
     * padded, the largest multiple of 8 that is at most O */
    int main_out;
} DenseSize;

static DenseSize dense_size(const Op *op)
{
    const Shape *w = &op->spec.w[0];
    int64_t rows = shape_count(op->spec.y.shape) / w->dim[0];
    int out = (int)w->dim[0], padded = (int)desc_row_stride(op->spec.y);
    return (DenseSize){(int)rows, (int)w->dim[1], out, padded, padded > out ? out / 8 * 8 : out};
}

/* Returns whether the precision is bf16 or fp16; the products then read copies of the parameters in
 * this type. */
static bool is_16_bit(const Op *op)
{
    return op->spec.y.dtype != DTYPE_F32;
}

static bool has_bias(const Op *op)
{
    return op->spec.w_count > 1;
}

/* Returns whether the weight product may also compute the bias gradient. For 16-bit inputs,
 * cuBLASLt 13.1 can sum it in fp32 only on GPUs before Hopper
 * (docs/decisions/0032-dense-epilogues.md). */
static bool can_fuse_bias_sum(const Op *op)
{
    enum { HOPPER = 9 };
    return has_bias(op) && !(is_16_bit(op) && cuda_state(op)->capability >= HOPPER);
}

/* Plans y^T [P,R] = w [P,I] x^T [I,R] (+ residual^T [P,R]). */
static Status plan_forward(Op *op, Dense *d)
{
    DenseSize n = dense_size(op);
    bool bias = has_bias(op);
    MatmulSpec spec = {.name = "dense",
                       .transpose_a = true,
                       .m = n.padded,
                       .n = n.rows,
                       .k = n.in,
                       .lda = n.in,
                       .ldb = n.in,
                       .ldd = n.padded,
                       .in = op->spec.y.dtype,
                       .out = op->spec.y.dtype};
    if (op->spec.act == ACT_GELU) {
        spec.epilogue = bias ? MATMUL_BIAS_GELU : MATMUL_GELU;
        if (n.padded % AUX_COLUMNS == 0 && matmul_try(&d->forward, cuda_state(op), &spec))
            return OK;
        d->separate_gelu = true;
    }
    bool relu = op->spec.act == ACT_RELU;
    spec.epilogue =
        bias ? (relu ? MATMUL_BIAS_RELU : MATMUL_BIAS) : (relu ? MATMUL_RELU : MATMUL_PLAIN);
    if (op->spec.residual) {
        spec.add_c = true;
        if (matmul_try(&d->forward, cuda_state(op), &spec)) return OK;
        spec.add_c = false;
        spec.epilogue = bias ? MATMUL_BIAS : MATMUL_PLAIN;
        d->separate_add = true;
    }
    return matmul_plan(&d->forward, cuda_state(op), &spec);
}

/* Plans dx^T [I,R] = w^T [I,P] dy^T [P,R], times the derivative of gelu if gelu is the activation
 * of the operation before (OpSpec.x_act). */
static Status plan_data(Op *op, Dense *d)
{
    DenseSize n = dense_size(op);
    MatmulSpec spec = {.name = "dense's inputs",
                       .m = n.in,
                       .n = n.rows,
                       .k = n.padded,
                       .lda = n.in,
                       .ldb = n.padded,
                       .ldd = n.in,
                       .in = op->spec.y.dtype,
                       .out = op->spec.y.dtype};
    if (op->spec.x_act == ACT_GELU) {
        spec.epilogue = MATMUL_GELU_SLOPE;
        if (n.in % AUX_COLUMNS == 0 && matmul_try(&d->data, cuda_state(op), &spec)) return OK;
        spec.epilogue = MATMUL_PLAIN;
        d->separate_slope = true;
    }
    return matmul_plan(&d->data, cuda_state(op), &spec);
}

/* Plans dw^T [I,O] = x^T [I,R] dy [R,O], and the bias gradient, which is the sum of dy over its
 * rows. */
static Status plan_weight(Op *op, Dense *d)
{
    DenseSize n = dense_size(op);
    MatmulSpec spec = {.name = "dense's weights",
                       .transpose_b = true,
                       .m = n.in,
                       .n = n.main_out,
                       .k = n.rows,
                       .lda = n.in,
                       .ldb = n.padded,
                       .ldd = n.in,
                       .in = op->spec.y.dtype,
                       .out = DTYPE_F32,
                       .epilogue = MATMUL_SUM_B};
    bool whole = n.main_out == n.out;
    if (can_fuse_bias_sum(op) && whole && matmul_try(&d->weight, cuda_state(op), &spec)) return OK;
    spec.epilogue = MATMUL_PLAIN;
    d->separate_bias_sum = has_bias(op);
    TRY(matmul_plan(&d->weight, cuda_state(op), &spec));
    spec.n = n.out - n.main_out;
    return whole ? OK : matmul_plan(&d->rest, cuda_state(op), &spec);
}

/* Returns the offset of the bias in the cache, in bytes. */
static size_t bias_offset(const Op *op)
{
    DenseSize n = dense_size(op);
    size_t bytes = (size_t)n.padded * (size_t)n.in * dtype_bytes(op->spec.y.dtype);
    return (bytes + MATMUL_ALIGN - 1) / MATMUL_ALIGN * MATMUL_ALIGN;
}

#define OWN " by weft's own kernels"
/* Sets the sizes and flags of the operation, and op->kernels. */
static void plan_sizes(Op *op, const Dense *d)
{
    /* first index: 1 with separate_gelu, 2 with separate_add, else 0; second index: separate_slope;
     * third index: separate_bias_sum */
    static const char *const kernels[3][2][2] = {
        {{NULL, "cuBLASLt, the bias gradient" OWN},
         {"cuBLASLt, gelu's slope" OWN, "cuBLASLt, gelu's slope and the bias gradient" OWN}},
        {{"cuBLASLt, gelu" OWN, "cuBLASLt, gelu and the bias gradient" OWN},
         {"cuBLASLt, gelu and its slope" OWN,
          "cuBLASLt, gelu, its slope and the bias gradient" OWN}},
        {{"cuBLASLt, the sum" OWN, "cuBLASLt, the sum and the bias gradient" OWN},
         {"cuBLASLt, the sum and gelu's slope" OWN,
          "cuBLASLt, the sum, gelu's slope and the bias gradient" OWN}}};
    DenseSize n = dense_size(op);
    bool gelu = op->spec.act == ACT_GELU;
    if (is_16_bit(op)) {
        op->cache_bytes = bias_offset(op) + (size_t)n.padded * dtype_bytes(op->spec.y.dtype);
        op->cache_is_copies = true;
        op->copy_offset[1] = (int64_t)bias_offset(op);
    }
    if (gelu) op->saved_bytes = desc_bytes(op->spec.y);
    int64_t parts = cuda_sum_parts(op->spec.y.dtype, n.rows, n.padded);
    if (d->separate_bias_sum) op->workspace_bytes = (size_t)(parts * n.out) * sizeof(float);
    op->kernels =
        kernels[d->separate_add ? 2 : d->separate_gelu][d->separate_slope][d->separate_bias_sum];
    op->needs_x[0] = !op->spec.frozen;
    op->needs_y = op->spec.act != ACT_NONE && !gelu;
    op->dx_is_dy[1] = op->spec.residual;
    op->weight_may_wait = true;
    op->flops_forward = 2.0 * (double)n.rows * (double)n.in * (double)n.out;
    op->flops_backward = op->flops_forward * (op->spec.need_dx[0] + !op->spec.frozen);
}

/* Returns whether x is read as a flat view of a channels-last image. The columns of the stored
 * weights are then in channels-last order, too. Therefore returns false if the weights must be
 * stored in plain order. */
static bool has_image_input(const Op *op)
{
    const Desc *x = &op->spec.x[0];
    return x->flat && x->dtype == op->spec.y.dtype && !op->spec.plain_weight;
}

/* Does the same as cuda_inputs_fit, but accepts a flat channels-last image as x, and requires the
 * residual in y's layout. */
static bool dense_inputs_fit(const Op *op, Desc preferred[SPEC_INPUTS])
{
    const OpSpec *spec = &op->spec;
    cuda_inputs_fit(op, preferred);
    if (has_image_input(op)) preferred[0] = spec->x[0];
    if (spec->residual && spec->x[1].dtype == spec->y.dtype) preferred[1] = spec->y;
    for (int i = 0; i < spec->x_count; ++i)
        if (!desc_equal(preferred[i], spec->x[i])) return false;
    return true;
}

static Status dense_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *spec = &op->spec;
    spec->y = cuda_desc(op, spec->y.shape);
    if (!spec->act_passed && cuda_rows_padded(spec->y.dtype, spec->w[0].dim[0]))
        spec->y.block = ROW_BLOCK;
    if (spec->slices.total == 0 && !dense_inputs_fit(op, preferred)) return OK;
    if (spec->act == ACT_SILU || (spec->residual && spec->act == ACT_GELU))
        return fail(ERR_BUG, "cuda: dense cannot fuse silu, nor gelu after a residual");
    int64_t out = spec->w[0].dim[0], in = spec->w[0].dim[1],
            rows = shape_count(spec->y.shape) / out;
    if (rows > INT_MAX || in > INT_MAX || out > INT_MAX)
        return fail(
            ERR_CONFIG,
            "cuda: dense of %lld rows, %lld inputs, %lld outputs: each may be at most 2147483647",
            (long long)rows, (long long)in, (long long)out);
    if (spec->slices.total > 0) return cuda_dense_slices_plan(op, preferred);
    for (int i = 0; i < spec->w_count; ++i) op->w_elements[i] = shape_count(spec->w[i]);
    Dense *d = op->impl = mem_new(sizeof *d);
    TRY(plan_forward(op, d));
    if (op->spec.need_dx[0]) TRY(plan_data(op, d));
    TRY(plan_weight(op, d));
    plan_sizes(op, d);
    return OK;
}

/* Copies parameter i from the order of checkpoints to the stored order (to_stored = true), or
 * back. */
static void copy_parameter(const Op *op, int i, float *to, const float *from, bool to_stored)
{
    const Shape *w = &op->spec.w[0], *image = &op->spec.x[0].image;
    if (i == 0 && has_image_input(op))
        cuda_permute(to, from, w->dim[0], image->dim[1], image->dim[2] * image->dim[3], to_stored);
    else
        memcpy(to, from, (size_t)op->w_elements[i] * sizeof *to);
}

static void dense_pack(Op *op, int i, const float *plain, float *stored)
{
    copy_parameter(op, i, stored, plain, true);
}

static void dense_unpack(Op *op, int i, const float *stored, float *plain)
{
    copy_parameter(op, i, plain, stored, false);
}

/* Converts n numbers to the type of the activations, and writes zeros after them, up to `padded`
 * elements. */
static void convert_padded(const Op *op, void *to, const float *from, int64_t n, int64_t padded)
{
    DType type = op->spec.y.dtype;
    size_t size = dtype_bytes(type);
    cuda_check(launch_convert(cuda_stream(op), type, to, DTYPE_F32, from, n), "kernel convert");
    if (padded > n)
        CUDA_CALL(cudaMemsetAsync((char *)to + (size_t)n * size, 0, (size_t)(padded - n) * size,
                                  cuda_stream(op)));
}

static void dense_refresh(Op *op, const OpRun *run)
{
    DenseSize n = dense_size(op);
    char *cache = run->cache;
    if (!is_16_bit(op)) return;
    convert_padded(op, cache, run->w[0], op->w_elements[0], (int64_t)n.padded * n.in);
    if (has_bias(op)) convert_padded(op, cache + bias_offset(op), run->w[1], n.out, n.padded);
}

static const void *product_weights(const Op *op, const OpRun *run)
{
    return is_16_bit(op) ? run->cache : (const void *)run->w[0];
}

static void *product_bias(const Op *op, const OpRun *run)
{
    if (!has_bias(op)) return NULL;
    return is_16_bit(op) ? (char *)run->cache + bias_offset(op) : (void *)(uintptr_t)run->w[1];
}

void cuda_dense_finish(const Op *op, const OpRun *run, bool adds, bool activates)
{
    const OpSpec *s = &op->spec;
    const int64_t n = desc_elements(s->y);
    if (adds)
        cuda_check(
            launch_add_act(cuda_stream(op), s->y.dtype, s->act, run->y, run->y, run->x[1], n),
            "kernel add_act");
    else if (activates)
        cuda_check(launch_activation(cuda_stream(op), s->y.dtype, s->act, 0, run->y,
                                     s->act == ACT_GELU ? run->saved : run->y, n),
                   "kernel activation");
}

static void dense_forward(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    const OpSpec *s = &op->spec;
    MatmulRun product = {
        .a = product_weights(op, run), .b = run->x[0], .d = run->y, .bias = product_bias(op, run)};
    if (s->residual && !d->separate_add) product.c = run->x[1];
    if (d->separate_gelu)
        product.d = run->saved;
    else if (s->act == ACT_GELU)
        product.aux = run->saved;
    matmul_run(&d->forward, cuda_state(op), product);
    cuda_dense_finish(op, run, d->separate_add, d->separate_gelu || s->act == ACT_RELU6);
}

void cuda_dense_backward_begin(Op *op, const OpRun *run)
{
    const OpSpec *s = &op->spec;
    const void *at = s->act == ACT_GELU ? run->saved : run->y;
    if (s->act == ACT_NONE || s->act_passed) return;
    cuda_check(launch_activation_backward(cuda_stream(op), s->y.dtype, s->act, 0, run->dy, run->dy,
                                          at, desc_elements(s->y)),
               "kernel activation_backward");
}

static void dense_backward_data(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    const OpSpec *s = &op->spec;
    void *dx = run->dx[0];
    if (!dx) return;
    MatmulRun product = {.a = product_weights(op, run), .b = run->dy, .d = dx};
    if (s->x_act == ACT_GELU && !d->separate_slope) product.aux = (void *)(uintptr_t)run->x_saved;
    matmul_run(&d->data, cuda_state(op), product);
    if (d->separate_slope)
        cuda_check(launch_activation_backward(cuda_stream(op), s->y.dtype, s->x_act, 0, dx, dx,
                                              run->x_saved, shape_count(s->x[0].shape)),
                   "kernel activation_backward");
}

static void dense_backward_weight(Op *op, const OpRun *run)
{
    const Dense *d = op->impl;
    DenseSize n = dense_size(op);
    MatmulRun product = {.a = run->x[0], .b = run->dy, .d = run->dw[0]};
    if (has_bias(op) && !d->separate_bias_sum) product.bias = run->dw[1];
    matmul_run(&d->weight, cuda_state(op), product);
    if (n.main_out < n.out) {
        product.b = (const char *)run->dy + (size_t)n.main_out * dtype_bytes(op->spec.y.dtype);
        product.d = run->dw[0] + (int64_t)n.main_out * n.in;
        matmul_run(&d->rest, cuda_state(op), product);
    }
    if (d->separate_bias_sum)
        cuda_check(launch_column_sum(cuda_stream(op), op->spec.y.dtype, run->dw[1], run->workspace,
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
    .backward_begin = cuda_dense_backward_begin,
    .backward_data = dense_backward_data,
    .backward_weight = dense_backward_weight,
    .pack = dense_pack,
    .unpack = dense_unpack,
    .free = dense_free,
};
