/* dense: by oneDNN's inner product, by matrix products (dense_product.h) or, in bf16 with sums in
 * slices, by one smaller layer for each slice (dense_slices.h). x (N,T,in) is read as N*T rows. A
 * flattened image in blocked layout is read in that layout: the inner product is then 4-d, with a
 * weight of (out, C, H, W), which in plain order is out x (C*H*W). The weight is stored in plain
 * order if another operation shares it, or if x is no flattened image and has many rows. With many
 * rows, products on plain order are faster in both backward directions, and forward needs no copy.
 * (1536 to 384 features, 1024 rows, fp32, one thread of an EPYC with AVX-512: dw 107 GFLOP/s
 * against 53 in a blocked order, dx 106 against 88.) */
#include "../cpu.h"
#include "dense_product.h"
#include "dense_slices.h"
#include "../dnnl/linear.h"
#include "../token_sums.h"

/* from this number of rows on, the weight is stored in plain order */
enum { PLAIN_ROWS = 256 };
/* With fewer rows, oneDNN's inner product for dx would be a single part (dnnl/dnnl_parts.c). Matrix
 * products are then faster, because they can be divided by columns, too. */
enum { FEW_ROWS = 64 };
/* Returns whether the layer uses the products of dense_product.h. They are at least as fast as
 * oneDNN's inner product in parts of rows (dnnl/dnnl_parts.c) with a plain weight, with few rows,
 * or with a number of rows for which weft's kernels are faster than oneDNN. With CPU_PORTABLE, they
 * are used for every layer that they can compute. as_plain: the weight is stored in plain order. */
static bool product_is_faster(const OpSpec *s, int64_t rows, DType type, bool as_plain)
{
    const bool blocked = s->x[0].flat && s->x[0].block > 1;
    if (type != DTYPE_F32 || (s->plain_weight && blocked)) return false;
    return cpu_portable() || (as_plain && !blocked) || rows < FEW_ROWS ||
           (!blocked && dense_product_own(rows));
}

/* Writes the dimensions of x or y for oneDNN to dim: the number of rows, then the inner dimensions.
 * Returns how many dimensions there are. */
static int onednn_side_dims(Desc d, int64_t dim[FORMAT_DIMS])
{
    if (d.flat) {
        for (int i = 0; i < 4; ++i) dim[i] = d.image.dim[i];
        return 4;
    }
    int last = d.shape.ndim - 1;
    dim[1] = d.shape.dim[last];
    dim[0] = shape_count(d.shape) / dim[1];
    return 2;
}

static Status dense_check(const OpSpec *spec)
{
    char a[64], b[64];
    const Shape x = spec->x[0].shape, w = spec->w[0];
    if (spec->residual) return fail(ERR_BUG, "cpu: dense cannot have a residual");
    if (w.ndim == 2 && x.ndim >= 2 && x.ndim == spec->y.shape.ndim &&
        x.dim[x.ndim - 1] == w.dim[1] && spec->y.shape.dim[x.ndim - 1] == w.dim[0])
        return OK;
    return fail(ERR_CONFIG, "dense: a weight of shape %s does not match an input of shape %s",
                shape_text(w, a), shape_text(x, b));
}

/* Returns the plan of the bias's gradient as a sum over slices of the sequence. The plan is used if
 * one rank has the whole layer; if several ranks divide it, an exchange has the bias. */
static TokenSums bias_sums(const OpSpec *s)
{
    return token_sums_plan(&s->token_slices, s->y.shape, 1);
}

/* Plans a layer that dnnl/linear.h computes. */
static Status plan_linear(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    /* Without slices, every layout of x is accepted. With slices, x must be plain, as it is on
     * ranks that divide the layer: there, x comes from an exchange. */
    const bool sliced = s->slices.total > 0;
    preferred[0] = in_precision(op, sliced ? layout_plain(s->x[0]) : s->x[0]);
    const DType type = s->y.dtype = preferred[0].dtype;
    int64_t x_dim[FORMAT_DIMS], w_dim[FORMAT_DIMS], y_dim[FORMAT_DIMS];
    int ndim = onednn_side_dims(s->x[0], x_dim);
    s->y.block = 1;
    onednn_side_dims(s->y, y_dim);
    for (int i = 1; i < ndim; ++i) w_dim[i] = x_dim[i];
    w_dim[0] = y_dim[1];
    Format *x = s->x[0].flat ? format_image(s->x[0].image, s->x[0].block, false, type)
                             : format_plain(ndim, x_dim, type);
    Format *y = format_plain(2, y_dim, type);
    Format *b = s->w_count > 1 ? format_plain(1, w_dim, DTYPE_F32) : NULL;
    Format *plain = format_plain(ndim, w_dim, DTYPE_F32);
    const bool as_plain = s->plain_weight || (!s->x[0].flat && x_dim[0] >= PLAIN_ROWS);
    const bool product = sliced || product_is_faster(s, x_dim[0], type, as_plain);
    Format *dw_any = as_plain ? format_copy(plain) : format_any(ndim, w_dim, DTYPE_F32);
    Format *any = type == DTYPE_F32 ? format_copy(dw_any) : format_any(ndim, w_dim, type);
    Status status = linear_plan(op, &(LinearSpec){.forward = KERNEL_DENSE_FORWARD,
                                                  .x = x,
                                                  .y = y,
                                                  .b = b,
                                                  .w_any = any,
                                                  .dw_any = dw_any,
                                                  .w_plain = plain,
                                                  .need_data = s->need_dx[0],
                                                  .product = product,
                                                  .slices = s->slices,
                                                  .slices_inputs = s->slices_inputs});
    format_free(&x);
    format_free(&y);
    format_free(&b);
    format_free(&any);
    format_free(&dw_any);
    format_free(&plain);
    return status;
}

static Status dense_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    TRY(dense_check(s));
    TRY(dense_slices_fit(op) ? dense_slices_plan(op, preferred) : plan_linear(op, preferred));
    const TokenSums sums = bias_sums(s);
    const size_t bytes = s->token_slices.total > 0 ? token_sums_bytes(&sums) : 0;
    if (op->workspace_bytes < bytes) op->workspace_bytes = bytes;
    op->flops_forward = 2.0 * (double)shape_count(s->y.shape) * (double)s->w[0].dim[1];
    op->flops_backward = op->flops_forward * (s->need_dx[0] + !s->frozen);
    return OK;
}

typedef struct BiasTask {
    const OpRun *run;
    DType type;
    int64_t width;
} BiasTask;

static void add_row(const void *task, int64_t row, float *sum)
{
    const BiasTask *t = task;
    simd_table(t->type)->add_into(sum, element_at(t->run->dy, row * t->width, t->type), t->width);
}

void dense_token_bias(const Op *op, const OpRun *run)
{
    const TokenSums sums = bias_sums(&op->spec);
    const BiasTask task = {.run = run, .type = op->spec.y.dtype, .width = sums.width};
    token_sums_run(&sums, run, add_row, &task, run->workspace, 1);
}

static void dense_backward_weight(Op *op, const OpRun *run)
{
    linear_backward_weight(op, run);
    if (op->spec.token_slices.total > 0 && op->spec.w_count > 1) dense_token_bias(op, run);
}

/* listed in OPERATIONS (tensor/op_list.h) */
const OpTable cpu_dense = {
    .name = "dense",
    .plan = dense_plan,
    .refresh = linear_refresh,
    .forward = linear_forward,
    .backward_begin = linear_backward_begin,
    .backward_data = linear_backward_data,
    .backward_weight = dense_backward_weight,
    .pack = linear_pack,
    .unpack = linear_unpack,
    .stored_plain = linear_stored_plain,
    .free = linear_free,
};
