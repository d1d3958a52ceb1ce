/* Dense layers in bf16 whose sums are cut into slices (dense_slices.h). Rows are cut into blocks,
 * whose size depends on the shape alone. One thread computes a block, or a slice of the weight's
 * gradient.
 *
 *   divided inputs     y = sum of x_s w_s^T     dx_s = dy w_s            dw_s = dy^T x_s
 *   divided outputs    y_s = x w_s^T + b_s      dx = sum of dy_s w_s     dw_s = dy_s^T x
 *
 * One of x and y, and its gradient, is divided into slices; the other is undivided. The columns of
 * a slice may be several ranges of the divided matrix (queries, keys, values). They are copied side
 * by side before a kernel reads them, and copied back to their ranges after a kernel has written
 * them. */
#include "dense_slices.h"
#include "dnnl_slices.h"
#include "../dnnl/linear.h"
#include "../token_sums.h"
#include "../view.h"
#include "../work.h"

#include <omp.h>
#include <string.h>

/* ---- one run ---- */

/* The parts of a thread's memory in the workspace. */
typedef struct Memory {
    /* for kernels */
    void *scratch;
    /* rows of the undivided tensor, in bf16 */
    void *block;
    /* columns of one slice, in bf16 */
    void *columns;
    /* partial sums of each level of the tree; or a slice's bias, weight or dw */
    float *sums;
} Memory;

/* One call of forward or backward_data. */
typedef struct Task {
    const Op *op;
    const SlicedDense *l;
    const OpRun *run;
    /* the tensor whose columns are divided into slices: x or y, or its gradient */
    void *side;
    /* the undivided tensor */
    void *other;
    /* true: the gradient of x is computed; false: forward */
    bool backward;
} Task;

static Memory memory_of(const SlicedDense *l, void *workspace, int thread)
{
    char *at = (char *)workspace + l->converted +
               (size_t)thread * (l->scratch + l->block + l->columns + l->sums);
    return (Memory){.scratch = at,
                    .block = at + l->scratch,
                    .columns = at + l->scratch + l->block,
                    .sums = (float *)(void *)(at + l->scratch + l->block + l->columns)};
}

/* Copies a slice's columns from a matrix of `rows` rows to `columns`, side by side; back: copies
 * them from `columns` to the matrix. An element has `bytes` bytes, and a row of the matrix has
 * `stride` elements. If the outputs are divided, a slice of the weight consists of rows. The weight
 * is then passed as a matrix of one row, whose elements are the weight's rows. */
static void move_columns(const SlicedDense *l, int slice, void *matrix, int64_t stride,
                         int64_t rows, void *columns, size_t bytes, bool back)
{
    char *side = columns;
    for (int64_t r = 0; r < rows; ++r)
        for (int i = 0; i < l->ranges; ++i) {
            const DenseRange *range = &l->range[slice * l->ranges + i];
            char *at = (char *)matrix + (size_t)(r * stride + range->first) * bytes;
            const size_t n = (size_t)(range->end - range->first) * bytes;
            memcpy(back ? at : side, back ? side : at, n);
            side += n;
        }
}

/* Returns a slice's copy of the weight in the cache. data: the copy that the kernel for the
 * gradient of x reads. */
static char *weight_at(const SlicedDense *l, void *cache, int slice, bool data)
{
    char *at = cache;
    for (int i = 0; i < slice; ++i)
        at += dense_slice(l, i)->forward_bytes + dense_slice(l, i)->data_bytes;
    return data && dense_slice(l, slice)->data_copy ? at + dense_slice(l, slice)->forward_bytes
                                                    : at;
}

/* Copies a slice's elements of the bias side by side to `room` and returns `room`. Returns NULL if
 * the kernel adds no bias. */
static float *slice_bias(const Task *t, int slice, float *room)
{
    const SlicedDense *l = t->l;
    if (!l->bias || t->backward) return NULL;
    float *bias = (float *)(uintptr_t)t->run->w[1];
    move_columns(l, slice, bias, 0, 1, room, sizeof *room, false);
    return room;
}

/* Runs a slice's kernel on one block of rows. is_last: the block is the last one, which may have
 * fewer rows. side: the slice's columns of the block. other: the block's rows of the undivided
 * tensor. */
static void run_kernel(const Task *t, int slice, bool is_last, int thread, void *side, void *other,
                       float *bias, void *scratch)
{
    const DenseSlice *s = dense_slice(t->l, slice);
    void *x = t->l->inputs ? side : other, *y = t->l->inputs ? other : side;
    void *const data[ROLES] = {x, weight_at(t->l, t->run->cache, slice, t->backward), bias, y};
    kernel_run((t->backward ? s->data : s->forward)[is_last][thread], data, scratch);
}

/* Rounds a block's sums to bf16. In forward, first adds the bias and applies relu. */
static void round_block(const Task *t, int64_t first, int64_t rows, float *sum)
{
    const SlicedDense *l = t->l;
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t n = dense_undivided(l);
    for (int64_t r = 0; r < rows && !t->backward; ++r) {
        if (t->op->spec.w_count > 1) simd->add_floats(sum + r * n, sum + r * n, t->run->w[1], n);
        if (l->relu) simd->act(ACT_RELU, 0.0f, sum + r * n, sum + r * n, n);
    }
    simd_table(DTYPE_BF16)
        ->from_floats(element_out(t->other, first * n, DTYPE_BF16), sum, rows * n);
}

/* Computes a block of a sum over slices. Level l of Memory.sums has a sum of 2^l slices that waits
 * to be joined. If the last n bits of i are 1, the partial sum of slice i is joined with the sums
 * of levels 0 to n - 1. */
static void sum_block(const Task *t, int64_t first, int64_t rows, bool is_last, int thread,
                      Memory m)
{
    const SlicedDense *l = t->l;
    const int64_t n = dense_undivided(l), stride = l->inputs ? l->in : l->out, level = l->each * n;
    float *sum = m.sums;
    for (int i = 0; i < l->slices; ++i) {
        int joins = 0;
        while (i >> joins & 1) ++joins;
        sum = m.sums + joins * level;
        if (l->wide && i == l->slices - 1) sum = (float *)t->other + first * n;
        move_columns(l, i, element_out(t->side, first * stride, DTYPE_BF16), stride, rows,
                     m.columns, sizeof(Bf16), false);
        run_kernel(t, i, is_last, thread, m.columns, sum, NULL, m.scratch);
        for (int k = 0; k < joins; ++k)
            simd_table(DTYPE_F32)->add_into(sum, m.sums + k * level, rows * n);
    }
    if (!l->wide) round_block(t, first, rows, sum);
}

/* Computes a block of the divided tensor, slice by slice. */
static void side_block(const Task *t, int64_t first, int64_t rows, bool is_last, int thread,
                       Memory m)
{
    const SlicedDense *l = t->l;
    const int64_t n = dense_undivided(l), stride = l->inputs ? l->in : l->out;
    void *other = m.block;
    if (l->wide)
        simd_table(DTYPE_BF16)->from_floats(other, (const float *)t->other + first * n, rows * n);
    else
        other = element_out(t->other, first * n, DTYPE_BF16);
    for (int i = 0; i < l->slices; ++i) {
        run_kernel(t, i, is_last, thread, m.columns, other, slice_bias(t, i, m.sums), m.scratch);
        move_columns(l, i, element_out(t->side, first * stride, DTYPE_BF16), stride, rows,
                     m.columns, sizeof(Bf16), true);
    }
}

static void run_blocks(const Task *t)
{
    const SlicedDense *l = t->l;
    const bool sums = l->inputs != t->backward;
#pragma omp parallel num_threads(l->threads) if (l->threads > 1)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const Memory m = memory_of(l, t->run->workspace, thread);
        for (int64_t i = thread; i < l->blocks; i += threads) {
            const bool is_last = i == l->blocks - 1;
            const int64_t first = i * l->each, rows = is_last ? l->rows - first : l->each;
            (sums ? sum_block : side_block)(t, first, rows, is_last, thread, m);
        }
    }
}

/* Casts const away: oneDNN takes only pointers to writable memory, but does not write x and w. */
static void *writable(const void *p)
{
    return (void *)(uintptr_t)p;
}

static void forward(Op *op, const OpRun *run)
{
    const SlicedDense *l = op->impl;
    void *x = writable(run->x[0]);
    run_blocks(&(Task){.op = op,
                       .l = l,
                       .run = run,
                       .side = l->inputs ? x : run->y,
                       .other = l->inputs ? run->y : x});
}

static void backward_data(Op *op, const OpRun *run)
{
    const SlicedDense *l = op->impl;
    if (!run->dx[0]) return;
    run_blocks(&(Task){.op = op,
                       .l = l,
                       .run = run,
                       .side = l->inputs ? run->dx[0] : run->dy,
                       .other = l->inputs ? run->dy : run->dx[0],
                       .backward = true});
}

/* Computes a slice of dw. other: x or dy, the one that is undivided. */
static void slice_gradient(const Op *op, const OpRun *run, int slice, int thread, void *other)
{
    const SlicedDense *l = op->impl;
    const DenseSlice *s = dense_slice(l, slice);
    const Memory m = memory_of(l, run->workspace, thread);
    void *side = l->inputs ? writable(run->x[0]) : run->dy;
    move_columns(l, slice, side, l->inputs ? l->in : l->out, l->rows, m.columns, sizeof(Bf16),
                 false);
    void *const data[ROLES] = {[ROLE_X] = l->inputs ? m.columns : other,
                               [ROLE_W] = m.sums,
                               [ROLE_Y] = l->inputs ? other : m.columns};
    kernel_run(s->weight[thread], data, m.scratch);
    if (l->inputs)
        move_columns(l, slice, run->dw[0], l->in, l->out, m.sums, sizeof(float), true);
    else
        move_columns(l, slice, run->dw[0], 0, 1, m.sums, (size_t)l->in * sizeof(float), true);
}

typedef struct BiasTask {
    const OpRun *run;
    int64_t rows, width;
} BiasTask;

/* An item of work_run is SIMD_LANES columns of the bias's gradient; rows are added in order. */
static void bias_body(const void *task, int64_t begin, int64_t end)
{
    const BiasTask *t = task;
    const int64_t from = begin * SIMD_LANES;
    const int64_t n = (end * SIMD_LANES < t->width ? end * SIMD_LANES : t->width) - from;
    float *db = t->run->dw[1] + from;
    memset(db, 0, (size_t)n * sizeof *db);
    for (int64_t r = 0; r < t->rows; ++r)
        simd_table(DTYPE_BF16)
            ->add_into(db, element_at(t->run->dy, r * t->width + from, DTYPE_BF16), n);
}

static void backward_weight(Op *op, const OpRun *run)
{
    const SlicedDense *l = op->impl;
    void *other = l->inputs ? run->dy : writable(run->x[0]);
    if (l->wide) {
        simd_table(DTYPE_BF16)->from_floats(run->workspace, other, l->rows * dense_undivided(l));
        other = run->workspace;
    }
#pragma omp parallel num_threads(l->threads) if (l->threads > 1)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        for (int i = thread; i < l->slices; i += threads) slice_gradient(op, run, i, thread, other);
    }
    if (op->spec.w_count < 2) return;
    if (op->spec.token_slices.total > 0) {
        dense_token_bias(op, run);
        return;
    }
    const BiasTask bias = {.run = run, .rows = l->rows, .width = l->out};
    work_run(bias_body, &bias, (l->out + SIMD_LANES - 1) / SIMD_LANES, l->rows * l->out);
}

/* Converts each slice of the weight to its kernels' formats, in the cache. */
static void refresh(Op *op, const OpRun *run)
{
    const SlicedDense *l = op->impl;
    const Memory m = memory_of(l, run->workspace, 0);
    float *w = (float *)(uintptr_t)run->w[0];
    for (int i = 0; i < l->slices; ++i) {
        const DenseSlice *s = dense_slice(l, i);
        if (l->inputs)
            move_columns(l, i, w, l->in, l->out, m.sums, sizeof *w, false);
        else
            move_columns(l, i, w, 0, 1, m.sums, (size_t)l->in * sizeof *w, false);
        for (int data = 0; data < 1 + (s->data_copy != NULL); ++data)
            kernel_run(data ? s->data_copy : s->forward_copy,
                       (void *const[ROLES]){
                           [ROLE_X] = m.sums, [ROLE_Y] = weight_at(l, run->cache, i, data)},
                       m.scratch);
    }
}

const OpTable dense_slices_table = {
    .name = "dense",
    .plan = dense_slices_plan,
    .refresh = refresh,
    .forward = forward,
    .backward_begin = linear_backward_begin,
    .backward_data = backward_data,
    .backward_weight = backward_weight,
    .free = dense_slices_free,
};
