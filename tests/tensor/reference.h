/* Naive implementations for comparison (plain NCHW, sums in double, one loop per index), and
 * helpers for tests of operations: tensors in any layout, and forward and backward of an operation
 * in memory of its own. */
#ifndef WEFT_TEST_REFERENCE_H
#define WEFT_TEST_REFERENCE_H

#include "tensor.h"
#include "tensor/op_list.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- tensors in any layout ---- */

/* Returns the index in memory of element (n,c,h,w) of an image in blocks of `block` channels. */
static inline int64_t ref_at(Shape s, int block, int64_t n, int64_t c, int64_t h, int64_t w)
{
    int64_t blocks = (s.dim[1] + block - 1) / block;
    return (((n * blocks + c / block) * s.dim[2] + h) * s.dim[3] + w) * block + c % block;
}

/* Copies plain NCHW to layout d with zeros as padding or, if `to_plain` is true, back. */
static inline void ref_layout(Desc d, float *plain, float *memory, bool to_plain)
{
    Shape s = d.flat ? d.image : d.shape;
    if (!to_plain) memset(memory, 0, desc_bytes(d));
    if (s.ndim != 4) {
        memcpy(to_plain ? plain : memory, to_plain ? memory : plain, desc_bytes(d));
        return;
    }
    int64_t i = 0;
    for (int64_t n = 0; n < s.dim[0]; ++n)
        for (int64_t c = 0; c < s.dim[1]; ++c)
            for (int64_t h = 0; h < s.dim[2]; ++h)
                for (int64_t w = 0; w < s.dim[3]; ++w, ++i) {
                    float *m = &memory[ref_at(s, d.block, n, c, h, w)];
                    if (to_plain)
                        plain[i] = *m;
                    else
                        *m = plain[i];
                }
}

/* Returns the number of non-zero floats in padded channels. */
static inline int64_t ref_padding_dirt(Desc d, const float *memory)
{
    Shape s = d.flat ? d.image : d.shape;
    int64_t dirt = 0;
    if (s.ndim != 4) return 0;
    int64_t padded = (s.dim[1] + d.block - 1) / d.block * d.block;
    for (int64_t n = 0; n < s.dim[0]; ++n)
        for (int64_t c = s.dim[1]; c < padded; ++c)
            for (int64_t h = 0; h < s.dim[2]; ++h)
                for (int64_t w = 0; w < s.dim[3]; ++w)
                    dirt += memory[ref_at(s, d.block, n, c, h, w)] != 0;
    return dirt;
}

static inline void ref_random(float *x, int64_t n, uint64_t what)
{
    RngKey key = rng_key(1, RNG_TEST, what, 0);
    for (int64_t i = 0; i < n; ++i) x[i] = 2 * rng_uniform(key, (uint64_t)i) - 1;
}

/* Returns the largest |a - b| divided by the largest |b|, or INFINITY if a number is NaN. */
static inline double ref_error(const float *a, const float *b, int64_t n)
{
    double worst = 0, scale = 1e-30;
    for (int64_t i = 0; i < n; ++i) {
        double e = fabs((double)a[i] - (double)b[i]);
        if (isnan(e)) return INFINITY;
        if (e > worst) worst = e;
        if (fabs((double)b[i]) > scale) scale = fabs((double)b[i]);
    }
    return worst / scale;
}

/* ---- conv2d: x[N,C,H,W] w[O,C/G,R,S] y[N,O,P,Q] ---- */
typedef struct RefConv {
    int64_t n, c, h, w, o, r, s, stride_h, stride_w, pad_h, pad_w, g;
} RefConv;

static inline int64_t ref_conv_p(const RefConv *v)
{
    return (v->h + 2 * v->pad_h - v->r) / v->stride_h + 1;
}
static inline int64_t ref_conv_q(const RefConv *v)
{
    return (v->w + 2 * v->pad_w - v->s) / v->stride_w + 1;
}

/* Returns the spec of a conv2d of plain fp32 images, without bias. */
static inline OpSpec ref_conv_spec(const RefConv *v, bool need_dx)
{
    OpSpec s = {.kind = OP_CONV2D, .groups = (int)v->g, .x_count = 1, .w_count = 1};
    s.kernel[0] = (int)v->r, s.kernel[1] = (int)v->s;
    s.stride[0] = (int)v->stride_h, s.stride[1] = (int)v->stride_w;
    s.pad[0] = (int)v->pad_h, s.pad[1] = (int)v->pad_w;
    s.need_dx[0] = need_dx;
    s.w[0] = shape_of(4, v->o, v->c / v->g, v->r, v->s);
    s.x[0] = desc_plain(shape_of(4, v->n, v->c, v->h, v->w), DTYPE_F32);
    s.y = desc_plain(shape_of(4, v->n, v->o, ref_conv_p(v), ref_conv_q(v)), DTYPE_F32);
    return s;
}

/* Calls `visit` for each product x[xi] w[wi] that is a term of y[yi]. */
typedef void (*RefVisit)(void *to, int64_t xi, int64_t wi, int64_t yi);
static inline void ref_conv_visit(const RefConv *v, RefVisit visit, void *to)
{
    const int64_t p_n = ref_conv_p(v), q_n = ref_conv_q(v), cg = v->c / v->g, og = v->o / v->g;
    for (int64_t n = 0; n < v->n; ++n)
        for (int64_t o = 0; o < v->o; ++o)
            for (int64_t p = 0; p < p_n; ++p)
                for (int64_t q = 0; q < q_n; ++q)
                    for (int64_t c = 0; c < cg; ++c)
                        for (int64_t r = 0; r < v->r; ++r)
                            for (int64_t s = 0; s < v->s; ++s) {
                                int64_t h = p * v->stride_h + r - v->pad_h;
                                int64_t w = q * v->stride_w + s - v->pad_w;
                                if (h < 0 || h >= v->h || w < 0 || w >= v->w) continue;
                                visit(to, ((n * v->c + o / og * cg + c) * v->h + h) * v->w + w,
                                      ((o * cg + c) * v->r + r) * v->s + s,
                                      ((n * v->o + o) * p_n + p) * q_n + q);
                            }
}

/* Arrays of a visitor below, which computes out[...] += a[...] * b[...] in double. */
typedef struct RefProduct {
    double *out;
    const float *a, *b;
} RefProduct;
static inline void ref_visit_y(void *to, int64_t xi, int64_t wi, int64_t yi)
{
    RefProduct *t = to;
    t->out[yi] += (double)t->a[xi] * t->b[wi];
}
static inline void ref_visit_dx(void *to, int64_t xi, int64_t wi, int64_t yi)
{
    RefProduct *t = to;
    t->out[xi] += (double)t->a[yi] * t->b[wi];
}
static inline void ref_visit_dw(void *to, int64_t xi, int64_t wi, int64_t yi)
{
    RefProduct *t = to;
    t->out[wi] += (double)t->a[yi] * t->b[xi];
}
static inline void ref_conv_run(const RefConv *v, RefVisit visit, const float *a, const float *b,
                                float *out, int64_t out_n)
{
    double *sum = mem_new((size_t)out_n * sizeof *sum + 1);
    ref_conv_visit(v, visit, &(RefProduct){sum, a, b});
    for (int64_t i = 0; i < out_n; ++i) out[i] = (float)sum[i];
    mem_free(&sum);
}

/* ref_bias adds b[o] to y[n][o][i] for all `inner` positions i, unless b is NULL, and then applies
 * relu if `relu` is true. ref_bias_gradient sets db[o] to the sum of dy[n][o][i] over n and i. */
static inline void ref_bias(float *y, const float *b, int64_t n, int64_t o, int64_t inner,
                            bool relu)
{
    for (int64_t i = 0; i < n * o * inner; ++i) {
        if (b) y[i] += b[i / inner % o];
        if (relu && y[i] < 0) y[i] = 0;
    }
}
static inline void ref_bias_gradient(const float *dy, float *db, int64_t n, int64_t o,
                                     int64_t inner)
{
    double *sum = mem_new((size_t)o * sizeof *sum);
    for (int64_t i = 0; i < n * o * inner; ++i) sum[i / inner % o] += (double)dy[i];
    for (int64_t i = 0; i < o; ++i) db[i] = (float)sum[i];
    mem_free(&sum);
}

/* ---- running one op ---- */

/* An operation with its own host memory. Everything is owned. */
typedef struct RefOp {
    Op *op;
    OpRun run;
    float *w[SPEC_PARAMS];
} RefOp;

/* Allocates REF_SPARE_BYTES more than `bytes`. They stay zero unless something writes out of
 * bounds. */
enum { REF_SPARE_BYTES = 4096 };
static inline void *ref_memory(size_t bytes)
{
    return mem_pages_new(bytes + REF_SPARE_BYTES);
}

/* Plans as the planner does: a second time if the operation prefers other layouts of its inputs. */
static inline Status ref_op_new(RefOp *r, Backend *backend, OpSpec *spec)
{
    Desc preferred[SPEC_INPUTS];
    memset(r, 0, sizeof *r);
    TRY(op_new(&r->op, backend, spec, preferred));
    bool same = true;
    for (int i = 0; i < spec->x_count; ++i) same = same && desc_equal(preferred[i], spec->x[i]);
    if (!same) {
        op_free(&r->op);
        memcpy(spec->x, preferred, sizeof preferred);
        TRY(op_new(&r->op, backend, spec, preferred));
    }
    *spec = r->op->spec;
    for (int i = 0; i < spec->x_count; ++i) {
        r->run.x[i] = ref_memory(desc_bytes(spec->x[i]));
        if (spec->need_dx[i]) r->run.dx[i] = ref_memory(desc_bytes(spec->x[i]));
    }
    for (int i = 0; i < spec->w_count; ++i) {
        r->w[i] = ref_memory((size_t)r->op->w_elements[i] * sizeof(float));
        r->run.w[i] = r->w[i];
        r->run.dw[i] = ref_memory((size_t)r->op->w_elements[i] * sizeof(float));
    }
    r->run.y = ref_memory(desc_bytes(spec->y));
    r->run.dy = ref_memory(desc_bytes(spec->y));
    r->run.saved = ref_memory(r->op->saved_bytes);
    r->run.cache = ref_memory(r->op->cache_bytes);
    r->run.workspace = ref_memory(r->op->workspace_bytes);
    r->run.sample_count = (int)spec->y.shape.dim[0];
    r->run.training = true;
    return OK;
}

static inline void ref_release(void *p, size_t bytes)
{
    if (p) mem_pages_free(p, bytes + REF_SPARE_BYTES);
}

static inline void ref_op_free(RefOp *r)
{
    if (!r->op) return;
    const OpSpec *spec = &r->op->spec;
    for (int i = 0; i < spec->x_count; ++i) {
        ref_release((void *)(uintptr_t)r->run.x[i], desc_bytes(spec->x[i]));
        ref_release(r->run.dx[i], desc_bytes(spec->x[i]));
    }
    for (int i = 0; i < spec->w_count; ++i) {
        ref_release(r->w[i], (size_t)r->op->w_elements[i] * sizeof(float));
        ref_release(r->run.dw[i], (size_t)r->op->w_elements[i] * sizeof(float));
    }
    ref_release(r->run.y, desc_bytes(spec->y));
    ref_release(r->run.dy, desc_bytes(spec->y));
    ref_release(r->run.saved, r->op->saved_bytes);
    ref_release(r->run.cache, r->op->cache_bytes);
    ref_release(r->run.workspace, r->op->workspace_bytes);
    op_free(&r->op);
}

/* ref_op_forward computes y from x and w. ref_op_backward then computes dx and dw from dy; dx may
 * be NULL. All arrays are in plain order. The operation has one input. */
static inline void ref_op_forward(RefOp *r, float *x, float *const w[SPEC_PARAMS], float *y)
{
    ref_layout(r->op->spec.x[0], x, (float *)(uintptr_t)r->run.x[0], false);
    for (int i = 0; i < r->op->spec.w_count; ++i) op_pack(r->op, i, w[i], r->w[i]);
    op_refresh(r->op, &r->run);
    op_forward(r->op, &r->run);
    ref_layout(r->op->spec.y, y, r->run.y, true);
}

static inline void ref_op_backward(RefOp *r, float *dy, float *dx, float *const dw[SPEC_PARAMS])
{
    ref_layout(r->op->spec.y, dy, r->run.dy, false);
    op_backward_begin(r->op, &r->run);
    op_backward_data(r->op, &r->run);
    op_backward_weight(r->op, &r->run);
    if (dx) ref_layout(r->op->spec.x[0], dx, r->run.dx[0], true);
    for (int i = 0; i < r->op->spec.w_count; ++i) op_unpack(r->op, i, r->run.dw[i], dw[i]);
}

#endif
