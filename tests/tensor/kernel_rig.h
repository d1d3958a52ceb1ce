/* A rig: the frame in which tests run a single operation. Tests have tensors in plain order and in
 * double; the rig converts them to the layout under test and back. Each buffer is a separate
 * allocation of the exact size, so that ASAN reports accesses beyond its end. The poison backend
 * fills outputs with NaN first. */
#ifndef WEFT_TEST_KERNEL_RIG_H
#define WEFT_TEST_KERNEL_RIG_H

#include "harness.h"
#include "tensor.h"
#include "tensor/op_list.h"

#include <math.h>

typedef struct Rig {
    Backend *backend;
    Op *op;
    OpRun run;
    Desc preferred[SPEC_INPUTS];
    void *owned[32];
    int owned_count;
    /* true: y and dx[0] share memory with other tensors if the operation allows it */
    bool in_place;
    DType precision;
} Rig;

/* Returns a random number in [-1, 1), which is a function of `what` and the index. */
static inline double rig_random(uint64_t what, int64_t i)
{
    return 2.0 * (double)rng_uniform(rng_key(7, RNG_TEST, what, 0), (uint64_t)i) - 1.0;
}

/* Allocates exactly `bytes` bytes, filled with NaN and aligned like a backend's arena. The rig owns
 * them. */
static inline void *rig_memory(Rig *r, size_t bytes)
{
    void *p = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&p, 64, bytes ? bytes : 1), 0);
    memset(p, 0xff, bytes);
    r->owned[r->owned_count++] = p;
    return p;
}

/* Returns the index in memory, in layout d, of the element that has index i in plain order. */
static inline int64_t rig_place(Desc d, int64_t i)
{
    Shape s = d.flat ? d.image : d.shape;
    if (s.ndim != 4) return i;
    int64_t hw = s.dim[2] * s.dim[3], c = i / hw % s.dim[1], n = i / hw / s.dim[1], b = d.block;
    int64_t groups = (s.dim[1] + b - 1) / b;
    return ((n * groups + c / b) * hw + i % hw) * b + c % b;
}

static inline void rig_put(Desc d, const double *plain, float *to)
{
    memset(to, 0, desc_bytes(d));
    for (int64_t i = 0; i < shape_count(d.shape); ++i) to[rig_place(d, i)] = (float)plain[i];
}

/* Converts a tensor to plain order. Also checks that padding is zero. */
static inline void rig_get(Desc d, const float *from, double *plain)
{
    double inside = 0.0, all = 0.0;
    for (int64_t i = 0; i < shape_count(d.shape); ++i) {
        plain[i] = from[rig_place(d, i)];
        inside += plain[i] != 0.0;
    }
    for (int64_t i = 0; i < desc_elements(d); ++i) all += from[i] != 0.0f;
    CU_ASSERT_EQUAL(inside, all);
}

/* Plans the operation of a spec in which the layouts of x are set, and allocates all buffers of the
 * run except the cache. The caller fills x, w and labels. */
static inline void rig_open(Rig *r, const OpSpec *spec, const BackendTable *table, int threads)
{
    bool in_place = r->in_place;
    *r = (Rig){.in_place = in_place, .precision = r->precision};
    BackendOptions options = {.threads = threads, .precision = r->precision};
    CHECK_OK(backend_open(&r->backend, table, options));
    CHECK_OK(op_new(&r->op, r->backend, spec, r->preferred));
    const Op *op = r->op;
    OpRun *run = &r->run;
    for (int i = 0; i < spec->x_count; ++i) {
        run->x[i] = rig_memory(r, desc_bytes(op->spec.x[i]));
        run->dx[i] = rig_memory(r, desc_bytes(op->spec.x[i]));
    }
    bool same = op->y_is_x || (in_place && op->y_inplace);
    run->y = same ? (void *)run->x[0] : rig_memory(r, desc_bytes(op->spec.y));
    run->dy = rig_memory(r, desc_bytes(op->spec.y));
    if (in_place && op->dx_inplace) run->dx[0] = run->dy;
    if (in_place && op->dx_over_x) run->dx[0] = (void *)(uintptr_t)run->x[0];
    for (int i = 0; i < spec->w_count; ++i) {
        run->w[i] = rig_memory(r, (size_t)op->w_elements[i] * sizeof(float));
        run->dw[i] = rig_memory(r, (size_t)op->w_elements[i] * sizeof(float));
    }
    run->saved = rig_memory(r, op->saved_bytes);
    run->workspace = rig_memory(r, op->workspace_bytes);
    run->sample_count = (int)spec->x[0].shape.dim[0];
    run->loss_factor = 1.0f;
    run->training = true;
    run->seed = 11;
    run->step = 5;
}

static inline void rig_close(Rig *r)
{
    op_free(&r->op);
    backend_close(&r->backend);
    for (int i = 0; i < r->owned_count; ++i) free(r->owned[i]);
}

static inline void rig_backward(Rig *r)
{
    op_backward_begin(r->op, &r->run);
    op_backward_weight(r->op, &r->run);
    op_backward_data(r->op, &r->run);
    for (int i = 0; i < r->op->spec.x_count; ++i)
        if (r->op->dx_is_dy[i]) r->run.dx[i] = r->run.dy;
}

/* Returns the layout of a tensor. Images have blocks of `block` channels (0: channels last). All
 * other tensors are in plain order. */
static inline Desc rig_desc(Shape s, int block)
{
    Desc d = desc_plain(s, DTYPE_F32);
    if (s.ndim == 4) d.block = block ? block : (int)s.dim[1];
    return d;
}

static inline Desc plain(int ndim, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return desc_plain(shape_of(ndim, a, b, c, d), DTYPE_F32);
}

/* Opens a rig of the poison backend with all parameters 1. The caller closes it. */
static inline Rig rig_of(OpSpec spec, int threads)
{
    Rig r = {0};
    rig_open(&r, &spec, &backend_poison, threads);
    for (int k = 0; k < spec.w_count; ++k)
        for (int64_t i = 0; i < r.op->w_elements[k]; ++i) ((float *)r.run.w[k])[i] = 1.0f;
    return r;
}

#endif
