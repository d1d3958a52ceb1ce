/* The poison backend poisons: elements that an operation leaves unwritten are NaN, and memory that
 * it shares on purpose is untouched. Sizes are set larger than the operation knows, so that
 * something stays unwritten. */
#include "reference.h"

#include "harness.h"

enum { EXTRA = 64 };

static bool all_poisoned(const void *p, size_t from, size_t to)
{
    for (size_t i = from; i < to; ++i)
        if (((const unsigned char *)p)[i] != 0xff) return false;
    return to > from;
}

static bool all_zero(const void *p, size_t from, size_t to)
{
    for (size_t i = from; i < to; ++i)
        if (((const unsigned char *)p)[i] != 0) return false;
    return to > from;
}

/* A 4x48 -> 32 dense layer whose sizes are set one row and EXTRA bytes larger than planned; the
 * memory has that size (see ref_memory). */
typedef struct Larger {
    Backend *backend;
    RefOp r;
    size_t y_bytes, dx_bytes, dw_bytes, workspace_bytes;
    void *y, *dx, *dw, *saved, *cache, *workspace;
} Larger;

static void larger_init(Larger *l)
{
    OpSpec spec = {.kind = OP_DENSE, .x_count = 1, .w_count = 1, .need_dx = {true}};
    spec.x[0] = desc_plain(shape_of(2, 4, 48, 1, 1), DTYPE_F32);
    spec.y = desc_plain(shape_of(2, 4, 32, 1, 1), DTYPE_F32);
    spec.w[0] = shape_of(2, 32, 48, 1, 1);
    memset(l, 0, sizeof *l);
    CHECK_OK(backend_open(&l->backend, &backend_poison, (BackendOptions){.threads = 1}));
    CHECK_OK(ref_op_new(&l->r, l->backend, &spec));
    CU_ASSERT_PTR_NOT_NULL_FATAL(l->r.op);
    OpRun *run = &l->r.run;
    ref_random((float *)(uintptr_t)run->x[0], 4 * 48, 1);
    ref_random(l->r.w[0], l->r.op->w_elements[0], 2);
    ref_random(run->dy, 4 * 32, 3);
    l->y_bytes = 4 * 32 * sizeof(float);
    l->dx_bytes = 4 * 48 * sizeof(float);
    l->dw_bytes = (size_t)l->r.op->w_elements[0] * sizeof(float);
    l->workspace_bytes = l->r.op->workspace_bytes;
    l->y = run->y;
    l->dx = run->dx[0];
    l->dw = run->dw[0];
    l->saved = run->saved;
    l->cache = run->cache;
    l->workspace = run->workspace;
    l->r.op->spec.y.shape.dim[0] = l->r.op->spec.x[0].shape.dim[0] = 5;
    l->r.op->w_elements[0] += EXTRA / 4;
    l->r.op->saved_bytes = EXTRA;
    l->r.op->cache_bytes += EXTRA;
    l->r.op->workspace_bytes += EXTRA;
}

static void larger_fini(Larger *l)
{
    /* restores the sizes, by which ref_op_free releases memory */
    Op *op = l->r.op;
    op->spec.y.shape.dim[0] = op->spec.x[0].shape.dim[0] = 4;
    op->w_elements[0] -= EXTRA / 4;
    op->saved_bytes = 0;
    op->cache_bytes -= EXTRA;
    op->workspace_bytes -= EXTRA;
    ref_op_free(&l->r);
    backend_close(&l->backend);
}

static void outputs(void)
{
    Larger l;
    larger_init(&l);
    size_t cache = l.r.op->cache_bytes;
    op_refresh(l.r.op, &l.r.run);
    CU_ASSERT(all_poisoned(l.cache, cache - EXTRA, cache));
    CU_ASSERT(all_zero(l.y, 0, l.y_bytes));
    op_forward(l.r.op, &l.r.run);
    CU_ASSERT(all_poisoned(l.y, l.y_bytes, l.y_bytes + 32 * sizeof(float)));
    CU_ASSERT(all_zero(l.y, l.y_bytes + 32 * sizeof(float), l.y_bytes + 1024));
    CU_ASSERT(all_poisoned(l.saved, 0, EXTRA));
    CU_ASSERT(all_poisoned(l.workspace, l.workspace_bytes, l.workspace_bytes + EXTRA));
    for (int i = 0; i < 4 * 32; ++i) CU_ASSERT_FALSE(isnan(((float *)l.y)[i]));
    CU_ASSERT(all_zero(l.dx, 0, l.dx_bytes + 1024));
    op_backward_data(l.r.op, &l.r.run);
    CU_ASSERT(all_poisoned(l.dx, l.dx_bytes, l.dx_bytes + 48 * sizeof(float)));
    CU_ASSERT(all_zero(l.dw, 0, l.dw_bytes + EXTRA));
    op_backward_weight(l.r.op, &l.r.run);
    CU_ASSERT(all_poisoned(l.dw, l.dw_bytes, l.dw_bytes + EXTRA));
    larger_fini(&l);
}

/* An alias is the memory of dy, which is still needed: no row of it may change. */
static void shared_is_kept(void)
{
    Larger l;
    larger_init(&l);
    l.r.op->dx_is_dy[0] = true;
    op_backward_data(l.r.op, &l.r.run);
    CU_ASSERT(all_zero(l.dx, l.dx_bytes, l.dx_bytes + 1024));
    larger_fini(&l);
}

/* In rows beyond the micro-batch an operation must not see numbers of the previous one. */
static void twice(void)
{
    Larger l;
    larger_init(&l);
    float first[4 * 32];
    op_refresh(l.r.op, &l.r.run);
    op_forward(l.r.op, &l.r.run);
    memcpy(first, l.y, sizeof first);
    memset(l.y, 0, l.y_bytes + 1024);
    op_forward(l.r.op, &l.r.run);
    CU_ASSERT_EQUAL(memcmp(first, l.y, sizeof first), 0);
    CU_ASSERT(all_poisoned(l.y, l.y_bytes, l.y_bytes + 32 * sizeof(float)));
    larger_fini(&l);
}

/* Overwrites everything that a postponed backward_weight must not need. */
static void forget(RefOp *r)
{
    const OpSpec *s = &r->op->spec;
    memset(r->run.y, 0xff, desc_bytes(s->y));
    memset(r->run.saved, 0xff, r->op->saved_bytes);
    memset(r->run.cache, 0xff, r->op->cache_bytes);
    memset(r->run.workspace, 0xff, r->op->workspace_bytes);
    if (r->run.dx[0]) memset(r->run.dx[0], 0xff, desc_bytes(s->x[0]));
}

static void check_later(Backend *backend, OpSpec spec)
{
    RefOp r;
    CHECK_OK(ref_op_new(&r, backend, &spec));
    CU_ASSERT_PTR_NOT_NULL_FATAL(r.op);
    CU_ASSERT(r.op->weight_may_wait);
    size_t bytes = (size_t)r.op->w_elements[0] * sizeof(float);
    float *at_once = ref_memory(bytes);
    if (spec.x[0].dtype == DTYPE_F32)
        ref_random((float *)(uintptr_t)r.run.x[0], desc_elements(spec.x[0]), 1);
    ref_random(r.w[0], r.op->w_elements[0], 2);
    ref_random(r.run.dy, desc_elements(spec.y), 3);
    op_refresh(r.op, &r.run);
    op_forward(r.op, &r.run);
    op_backward_begin(r.op, &r.run);
    op_backward_data(r.op, &r.run);
    op_backward_weight(r.op, &r.run);
    memcpy(at_once, r.run.dw[0], bytes);
    memset(r.run.dw[0], 0xff, bytes);
    forget(&r);
    op_backward_weight(r.op, &r.run);
    CU_ASSERT_EQUAL(memcmp(at_once, r.run.dw[0], bytes), 0);
    ref_release(at_once, bytes);
    ref_op_free(&r);
}

/* If an operation sets weight_may_wait, its dw needs x, dy (after backward_begin) and w only. */
static void weight_later(void)
{
    Backend *backend;
    CHECK_OK(backend_open(&backend, &backend_poison, (BackendOptions){.threads = 1}));
    OpSpec spec = {.kind = OP_DENSE, .x_count = 1, .w_count = 1, .need_dx = {true}};
    spec.act = ACT_RELU;
    spec.x[0] = desc_plain(shape_of(2, 4, 48, 1, 1), DTYPE_F32);
    spec.y = desc_plain(shape_of(2, 4, 33, 1, 1), DTYPE_F32);
    spec.w[0] = shape_of(2, 33, 48, 1, 1);
    check_later(backend, spec);
    spec.kind = OP_CONV2D;
    spec.kernel[0] = spec.kernel[1] = 3;
    spec.stride[0] = spec.stride[1] = spec.pad[0] = spec.pad[1] = 1;
    spec.x[0] = desc_plain(shape_of(4, 8, 32, 8, 8), DTYPE_F32);
    spec.y = desc_plain(shape_of(4, 8, 32, 8, 8), DTYPE_F32);
    spec.w[0] = shape_of(4, 32, 32, 3, 3);
    check_later(backend, spec);
    spec = (OpSpec){.kind = OP_EMBEDDING, .x_count = 1, .w_count = 1};
    spec.x[0] = desc_plain(shape_of(2, 2, 5, 1, 1), DTYPE_I32);
    spec.y = desc_plain(shape_of(3, 2, 5, 8, 1), DTYPE_F32);
    spec.w[0] = shape_of(2, 7, 8, 1, 1);
    check_later(backend, spec);
    backend_close(&backend);
}

TEST_MAIN("poison", {"outputs", outputs}, {"shared is kept", shared_is_kept}, {"twice", twice},
          {"weight gradient later", weight_later})
