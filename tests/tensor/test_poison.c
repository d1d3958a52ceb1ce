/* The poison backend poisons: what an operation leaves unwritten is NaN afterwards, what it shares on purpose is not
 * touched. Sizes are made larger than the operation knows, so that there is something it leaves. */
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

/* A 4x48 -> 32 dense layer that is said to be one row and EXTRA bytes larger than planned; the memory is (see
 * ref_memory). */
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
    Op *op = l->r.op; /* its own sizes again: ref_op_free releases by them */
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

/* An alias is dy's memory, still to be read: not a row of it may be touched. */
static void shared_is_kept(void)
{
    Larger l;
    larger_init(&l);
    l.r.op->dx_alias[0] = true;
    op_backward_data(l.r.op, &l.r.run);
    CU_ASSERT(all_zero(l.dx, l.dx_bytes, l.dx_bytes + 1024));
    larger_fini(&l);
}

/* Beyond the batch's rows an operation must not find the last batch's numbers. */
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

TEST_MAIN("poison", {"outputs", outputs}, {"shared is kept", shared_is_kept}, {"twice", twice})
