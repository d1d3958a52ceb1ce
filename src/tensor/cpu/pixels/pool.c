/* Pooling in the layout of its input. An item of work_run is a plane: one channel group of one
 * sample. Max pooling saves the position of each maximum in its window, in a byte. If a fused relu
 * sets the maximum to 0, POOL_NO_POSITION is saved instead. The gradient of max pooling is computed
 * from dy and these bytes alone. */
#include "../mask.h"
#include "../view.h"

typedef struct Pool {
    /* arguments of the kernels */
    PoolPlane plane;
    View x, y;
    DType type;
    /* arrays to which `plane` points; owned */
    int *windows;
} Pool;

typedef struct PoolTask {
    const Op *op;
    const Pool *pool;
    const OpRun *run;
} PoolTask;

/* Sets low[i] and high[i] to the first and the last window that contains pixel i, for i < size. If
 * no window contains the pixel, low[i] > high[i]. windows: number of windows; d: the dimension, 0
 * for rows, 1 for columns. */
static void find_windows(int *low, int *high, int size, int windows, const OpSpec *s, int d)
{
    for (int i = 0; i < size; ++i) {
        int last = (i + s->pad[d]) / s->stride[d];
        /* the first window is floor((i + pad - kernel) / stride) + 1 */
        int first = i + s->pad[d] - s->kernel[d] + s->stride[d];
        low[i] = first < s->stride[d] ? 0 : first / s->stride[d];
        high[i] = last < windows ? last : windows - 1;
    }
}

/* Fills p->plane and p->windows. */
static void plane_fill(Pool *p, const OpSpec *s)
{
    Shape x = s->x[0].shape, y = s->y.shape;
    PoolPlane *plane = &p->plane;
    *plane = (PoolPlane){.h = (int)x.dim[2],
                         .w = (int)x.dim[3],
                         .out_rows = (int)y.dim[2],
                         .out_columns = (int)y.dim[3]};
    plane->lanes = p->x.block;
    plane->relu = s->act == ACT_RELU;
    for (int d = 0; d < 2; ++d) {
        plane->kernel[d] = s->kernel[d];
        plane->stride[d] = s->stride[d];
        plane->pad[d] = s->pad[d];
    }
    int *next = p->windows = mem_new(sizeof *next * (size_t)(2 * (plane->h + plane->w)));
    find_windows(next, next + plane->h, plane->h, plane->out_rows, s, 0);
    plane->row_low = next;
    plane->row_high = next += plane->h;
    next += plane->h;
    find_windows(next, next + plane->w, plane->w, plane->out_columns, s, 1);
    plane->col_low = next;
    plane->col_high = next + plane->w;
}

/* Returns the kernels whose vector width is faster for these planes. Max and average pooling give
 * the same bits with any width. */
static const SimdTable *faster_table(const Pool *p)
{
    enum { WIDE = 16 };
    bool narrow = p->x.block == 1 ? p->plane.out_columns <= WIDE : p->x.block < WIDE;
    return narrow ? simd_table_narrow(p->type) : simd_table(p->type);
}

static Status pool_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    Pool *p = op->impl = mem_new(sizeof *p);
    s->y.block = s->x[0].block;
    preferred[0] = in_precision(op, s->x[0]);
    s->y.dtype = p->type = preferred[0].dtype;
    p->x = view_of(s->x[0]);
    p->y = view_of(s->y);
    if (s->pool != POOL_GLOBAL_AVG) plane_fill(p, s);
    if (s->pool == POOL_MAX)
        op->saved_bytes = (size_t)(p->y.n * p->y.sample);
    else
        op->needs_y = s->act == ACT_RELU;
    return OK;
}

static void pool_free(Op *op)
{
    Pool *p = op->impl;
    if (p) mem_free(&p->windows);
    mem_free(&op->impl);
}

static void forward_body(const void *task, int64_t begin, int64_t end)
{
    const PoolTask *t = task;
    const Pool *p = t->pool;
    const SimdTable *simd = simd_table(p->type);
    for (int64_t i = begin; i < end; ++i) {
        const void *x = element_at(t->run->x[0], i * p->x.plane, p->type);
        void *y = element_out(t->run->y, i * p->y.plane, p->type);
        switch (t->op->spec.pool) {
        case POOL_MAX:
            faster_table(p)->max_pool(&p->plane, x, y, (uint8_t *)t->run->saved + i * p->y.plane);
            continue;
        case POOL_AVG:
            faster_table(p)->avg_pool(&p->plane, x, y);
            break;
        case POOL_GLOBAL_AVG:
            simd->mean_rows(x, p->x.hw, p->x.block, y);
            break;
        }
        simd->act(t->op->spec.act, 0.0f, y, y, p->y.plane);
    }
}

static void pool_forward(Op *op, const OpRun *run)
{
    PoolTask t = {.op = op, .pool = op->impl, .run = run};
    const View *v = &t.pool->x;
    work_run(forward_body, &t, v->n * v->groups, v->n * v->sample);
}

static void pool_backward_begin(Op *op, const OpRun *run)
{
    if (op->needs_y) mask_gradient(ACT_RELU, run->dy, run->y, op->spec.y);
}

static void grad_body(const void *task, int64_t begin, int64_t end)
{
    const PoolTask *t = task;
    const Pool *p = t->pool;
    const SimdTable *simd = simd_table(p->type);
    for (int64_t i = begin; i < end; ++i) {
        const void *dy = element_at(t->run->dy, i * p->y.plane, p->type);
        void *dx = element_out(t->run->dx[0], i * p->x.plane, p->type);
        switch (t->op->spec.pool) {
        case POOL_MAX:
            faster_table(p)->max_pool_grad(&p->plane, dy,
                                           (const uint8_t *)t->run->saved + i * p->y.plane, dx);
            break;
        case POOL_AVG:
            faster_table(p)->avg_pool_grad(&p->plane, dy, dx);
            break;
        case POOL_GLOBAL_AVG:
            simd->spread_rows(dx, dy, p->x.hw, p->x.block);
            break;
        }
    }
}

static void pool_backward_data(Op *op, const OpRun *run)
{
    PoolTask t = {.op = op, .pool = op->impl, .run = run};
    const View *v = &t.pool->x;
    if (run->dx[0]) work_run(grad_body, &t, v->n * v->groups, v->n * v->sample);
}

const OpTable cpu_pool = {
    .name = "pool",
    .plan = pool_plan,
    .forward = pool_forward,
    .backward_begin = pool_backward_begin,
    .backward_data = pool_backward_data,
    .free = pool_free,
};
