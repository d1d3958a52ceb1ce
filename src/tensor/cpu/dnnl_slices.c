/* Slices of dense layers in bf16 (dense_slices.h). Rows are cut into blocks, whose size depends on
 * the shape alone; a block, or a slice of the weight's gradient, is one thread's.
 *
 *   divided inputs     y = sum of x_s w_s^T     dx_s = dy w_s            dw_s = dy^T x_s
 *   divided outputs    y_s = x w_s^T + b_s      dx = sum of dy_s w_s     dw_s = dy_s^T x
 *
 * The columns of a slice lie in several ranges (queries, keys, values) and are copied side by side
 * before a kernel reads them, or to their places after it wrote them. */
#include "dense_product.h"
#include "dense_slices.h"
#include "dnnl_api.h"
#include "linear.h"
#include "token_sums.h"
#include "view.h"
#include "work.h"

#include <omp.h>
#include <string.h>

/* ROWS: rows of a block, at most; WIDTHS: different sizes of slices, at most, because slices differ
 * by one unit */
enum { ROWS = 256, WIDTHS = 2, ALIGN_BYTES = 64 };

/* The kernels of slices with `width` divided inputs or outputs. */
typedef struct Slice {
    int64_t width;
    /* for blocks of all rows but the last block, and for the last; one for each thread, because a
     * kernel remembers the addresses of its tensors; owned */
    Kernel **forward[2], **data[2], **weight;
    /* conversions of the fp32 weight to what forward and data read; owned */
    Kernel *forward_copy, *data_copy;
    /* bytes of these copies; data's is 0 if it reads forward's */
    size_t forward_bytes, data_bytes;
} Slice;

typedef struct Layer {
    int64_t rows, in, out;
    /* rows of a block and number of blocks */
    int64_t each, blocks;
    int threads, slices, ranges;
    /* the inputs are divided, not the outputs */
    bool inputs;
    /* forward: kernels apply relu; kernels add the bias */
    bool relu, bias;
    /* x or y is fp32 because an exchange is there */
    bool wide;
    /* ranges of each slice: range[slice * ranges + i]; owned */
    DenseRange *range;
    Slice kind[WIDTHS];
    int kinds;
    /* bytes of a tensor in bf16 that backward_weight converts, at the beginning of the workspace;
     * 0: none */
    size_t whole;
    /* bytes of each of the parts of Memory */
    size_t scratch, block, columns, sums;
} Layer;

static size_t aligned(size_t bytes)
{
    return (bytes + ALIGN_BYTES - 1) / ALIGN_BYTES * ALIGN_BYTES;
}

/* Size of the dimension that is not divided. */
static int64_t undivided(const Layer *l)
{
    return l->inputs ? l->out : l->in;
}

static int64_t slice_width(const Layer *l, int slice)
{
    int64_t width = 0;
    for (int i = 0; i < l->ranges; ++i)
        width += l->range[slice * l->ranges + i].end - l->range[slice * l->ranges + i].first;
    return width;
}

static const Slice *slice_kind(const Layer *l, int slice)
{
    const int64_t width = slice_width(l, slice);
    const Slice *kind = l->kind;
    while (kind->width != width) ++kind;
    return kind;
}

/* ---- planning ---- */

/* Plans and builds a kernel of a slice. w: what it reads, or NULL: oneDNN chooses. */
static Status kernel_of(Kernel **kernel, const Op *op, KernelKind kind, int64_t width, int64_t rows,
                        const Format *w, const Kernel *hint)
{
    const Layer *l = op->impl;
    const int64_t in = l->inputs ? width : l->in, out = l->inputs ? l->out : width;
    const bool forward = kind == KERNEL_DENSE_FORWARD, data = kind == KERNEL_DENSE_DATA;
    const DType type = DTYPE_BF16;
    Format *x = format_plain(2, (int64_t[]){rows, in}, data && !l->inputs ? DTYPE_F32 : type);
    Format *y = format_plain(2, (int64_t[]){rows, out}, forward && l->inputs ? DTYPE_F32 : type);
    Format *b = forward && l->bias ? format_plain(1, &out, DTYPE_F32) : NULL;
    Format *any = format_any(2, (int64_t[]){out, in}, type);
    const KernelSpec spec = {.kind = kind,
                             .role = {x, w ? w : any, b, y},
                             .relu = forward && l->relu && !l->inputs,
                             .hint = hint};
    Status status = kernel_plan_onednn(kernel, cpu_dnnl(op->backend), &spec);
    if (status == OK) status = kernel_build(*kernel);
    format_free(&x);
    format_free(&y);
    format_free(&b);
    format_free(&any);
    return status;
}

/* Plans a kernel for each thread. The first one's format of the weight is that of all. */
static Status kernels_of(Kernel ***kernels, const Op *op, KernelKind kind, int64_t width,
                         int64_t rows, const Format *w, const Kernel *hint)
{
    const Layer *l = op->impl;
    *kernels = mem_new((size_t)l->threads * sizeof **kernels);
    for (int i = 0; i < l->threads; ++i) {
        const Format *same = i > 0 ? kernel_format((*kernels)[0], ROLE_W) : w;
        TRY(kernel_of(&(*kernels)[i], op, kind, width, rows, same, hint));
    }
    return OK;
}

/* Plans the conversion of a slice's fp32 weight to a kernel's format. */
static Status plan_copy(Kernel **copy, size_t *bytes, const Op *op, const Slice *s,
                        const Kernel *reader)
{
    const Layer *l = op->impl;
    const int64_t dim[] = {l->inputs ? l->out : s->width, l->inputs ? s->width : l->in};
    const Format *w = kernel_format(reader, ROLE_W);
    Format *plain = format_plain(2, dim, DTYPE_F32);
    Status status = kernel_plan(
        copy, cpu_dnnl(op->backend),
        &(KernelSpec){.kind = KERNEL_REORDER, .role = {[ROLE_X] = plain, [ROLE_Y] = w}});
    if (status == OK) status = kernel_build(*copy);
    *bytes = aligned(format_bytes(w));
    format_free(&plain);
    return status;
}

/* Plans the kernels of slices of a width. */
static Status plan_kind(const Op *op, Slice *s)
{
    const Layer *l = op->impl;
    const int64_t rows[2] = {l->each, l->rows - (l->blocks - 1) * l->each};
    const Format *w = NULL;
    for (int last = 0; last < 2; ++last) {
        TRY(kernels_of(&s->forward[last], op, KERNEL_DENSE_FORWARD, s->width, rows[last], w, NULL));
        w = kernel_format(s->forward[0][0], ROLE_W);
    }
    const Kernel *forward = s->forward[0][0];
    TRY(plan_copy(&s->forward_copy, &s->forward_bytes, op, s, forward));
    for (int last = 0; last < 2 && op->spec.need_dx[0]; ++last)
        TRY(kernels_of(&s->data[last], op, KERNEL_DENSE_DATA, s->width, rows[last],
                       last ? kernel_format(s->data[0][0], ROLE_W) : NULL, s->forward[last][0]));
    if (s->data[0] && !format_equal(w, kernel_format(s->data[0][0], ROLE_W)))
        TRY(plan_copy(&s->data_copy, &s->data_bytes, op, s, s->data[0][0]));
    if (op->spec.frozen) return OK;
    const int64_t dim[] = {l->inputs ? l->out : s->width, l->inputs ? s->width : l->in};
    Format *dw = format_plain(2, dim, DTYPE_F32);
    const Status status =
        kernels_of(&s->weight, op, KERNEL_DENSE_WEIGHT, s->width, l->rows, dw, forward);
    format_free(&dw);
    return status;
}

static Status plan_kinds(const Op *op)
{
    Layer *l = op->impl;
    Status status = OK;
    const int before = threads_use(1);
    for (int i = 0; i < l->slices && status == OK; ++i) {
        const int64_t width = slice_width(l, i);
        int k = 0;
        while (k < l->kinds && l->kind[k].width != width) ++k;
        if (k < l->kinds) continue;
        if (k == WIDTHS) die("a dense layer has slices of more than %d sizes", WIDTHS);
        l->kind[l->kinds++].width = width;
        status = plan_kind(op, &l->kind[k]);
    }
    threads_use(before);
    return status;
}

/* Number of levels of the tree, and one for the sum that is being computed. */
static int64_t levels_of(int slices)
{
    int64_t levels = 1;
    for (; slices > 1; slices /= 2) ++levels;
    return levels;
}

static size_t kernel_bytes(const Kernel *k)
{
    return k ? aligned(kernel_scratch_bytes(k)) : 0;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void plan_bytes(Op *op)
{
    Layer *l = op->impl;
    int64_t width = 0;
    for (int k = 0; k < l->kinds; ++k) {
        const Slice *s = &l->kind[k];
        if (s->width > width) width = s->width;
        for (int last = 0; last < 2; ++last) {
            l->scratch = larger(l->scratch, kernel_bytes(s->forward[last][0]));
            if (s->data[last]) l->scratch = larger(l->scratch, kernel_bytes(s->data[last][0]));
        }
        if (s->weight) l->scratch = larger(l->scratch, kernel_bytes(s->weight[0]));
        l->scratch = larger(l->scratch, kernel_bytes(s->forward_copy));
        if (s->data_copy) l->scratch = larger(l->scratch, kernel_bytes(s->data_copy));
    }
    const size_t whole_rows = (size_t)l->rows * sizeof(Bf16);
    const size_t slice = (size_t)(width * undivided(l)) * sizeof(float);
    l->block = aligned((size_t)(l->each * undivided(l)) * sizeof(Bf16));
    l->columns = aligned(op->spec.frozen ? (size_t)(l->each * width) * sizeof(Bf16)
                                         : whole_rows * (size_t)width);
    const size_t levels = (size_t)(levels_of(l->slices) * l->each * undivided(l)) * sizeof(float);
    l->sums = aligned(larger(larger(levels, (size_t)width * sizeof(float)), slice));
    l->whole = l->wide ? aligned(whole_rows * (size_t)undivided(l)) : 0;
    op->workspace_bytes =
        l->whole + (size_t)l->threads * (l->scratch + l->block + l->columns + l->sums);
    for (int i = 0; i < l->slices; ++i) {
        const Slice *s = slice_kind(l, i);
        op->cache_bytes += s->forward_bytes + s->data_bytes;
    }
    op->w_elements[0] = l->in * l->out;
    if (op->spec.w_count > 1) op->w_elements[1] = l->out;
    op->needs_x[0] = !op->spec.frozen;
    op->needs_y = op->spec.act == ACT_RELU;
    op->weight_later = true;
}

bool dense_slices_fit(const Op *op)
{
    return op->spec.slices.total > 0 && op->backend->options.precision == DTYPE_BF16;
}

Status dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    const SumSlices *cut = &s->slices;
    Layer *l = mem_new(sizeof *l);
    op->table = &dense_slices_table;
    op->impl = l;
    TRY(linear_check_act(op));
    preferred[0] = desc_plain(s->x[0].shape, DTYPE_BF16);
    s->y = desc_plain(s->y.shape, DTYPE_BF16);
    l->wide = cut->count < cut->total;
    if (l->wide) (s->slices_inputs ? &s->y : &preferred[0])->dtype = DTYPE_F32;
    l->in = s->w[0].dim[1];
    l->out = s->w[0].dim[0];
    l->rows = shape_count(s->y.shape) / l->out;
    l->threads = omp_get_max_threads();
    l->slices = cut->count;
    l->ranges = cut->parts;
    l->inputs = s->slices_inputs;
    l->relu = s->act == ACT_RELU;
    l->bias = s->w_count > 1 && !l->inputs;
    l->blocks = (l->rows + ROWS - 1) / ROWS;
    l->each = (l->rows + l->blocks - 1) / l->blocks;
    l->range = dense_ranges(cut, l->inputs ? l->in : l->out);
    TRY(plan_kinds(op));
    plan_bytes(op);
    return OK;
}

/* ---- one run ---- */

/* Memory of a thread in the workspace. */
typedef struct Memory {
    void *scratch;
    /* rows of the undivided dimension, and columns of a slice, in bf16 */
    void *block, *columns;
    float *sums;
} Memory;

/* Tensors of a run: `side` is the divided one of x and y, or of their gradients; `other` is the one
 * that is not. */
typedef struct Task {
    const Op *op;
    const Layer *l;
    const OpRun *run;
    void *side, *other;
    /* data */
    bool backward;
} Task;

static Memory memory_of(const Layer *l, void *workspace, int thread)
{
    char *at = (char *)workspace + l->whole +
               (size_t)thread * (l->scratch + l->block + l->columns + l->sums);
    return (Memory){.scratch = at,
                    .block = at + l->scratch,
                    .columns = at + l->scratch + l->block,
                    .sums = (float *)(void *)(at + l->scratch + l->block + l->columns)};
}

/* Copies a slice's columns from a matrix of `rows` rows to `columns`, side by side, or back. The
 * elements have `bytes` bytes, a row of the matrix has `stride` elements. */
static void move_columns(const Layer *l, int slice, void *matrix, int64_t stride, int64_t rows,
                         void *columns, size_t bytes, bool back)
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

/* Returns a slice's copy of the weight. */
static char *weight_at(const Layer *l, void *cache, int slice, bool data)
{
    char *at = cache;
    for (int i = 0; i < slice; ++i)
        at += slice_kind(l, i)->forward_bytes + slice_kind(l, i)->data_bytes;
    return data && slice_kind(l, slice)->data_copy ? at + slice_kind(l, slice)->forward_bytes : at;
}

/* Returns the elements of a slice of the bias side by side. */
static float *slice_bias(const Task *t, int slice, float *room)
{
    const Layer *l = t->l;
    if (!l->bias || t->backward) return NULL;
    float *bias = (float *)(uintptr_t)t->run->w[1];
    move_columns(l, slice, bias, 0, 1, room, sizeof *room, false);
    return room;
}

static void run_kernel(const Task *t, int slice, bool last, int thread, void *side, void *other,
                       float *bias, void *scratch)
{
    const Slice *s = slice_kind(t->l, slice);
    void *x = t->l->inputs ? side : other, *y = t->l->inputs ? other : side;
    void *const data[ROLES] = {x, weight_at(t->l, t->run->cache, slice, t->backward), bias, y};
    kernel_run((t->backward ? s->data : s->forward)[last][thread], data, scratch);
}

/* Rounds a block's sums to bf16, after the bias and relu of forward. */
static void round_block(const Task *t, int64_t first, int64_t rows, float *sum)
{
    const Layer *l = t->l;
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t n = undivided(l);
    for (int64_t r = 0; r < rows && !t->backward; ++r) {
        if (t->op->spec.w_count > 1) simd->add_floats(sum + r * n, sum + r * n, t->run->w[1], n);
        if (l->relu) simd->act(ACT_RELU, sum + r * n, sum + r * n, n);
    }
    simd_table(DTYPE_BF16)
        ->from_floats(element_out(t->other, first * n, DTYPE_BF16), sum, rows * n);
}

/* Computes a block of a sum over slices: slice i's part is joined with those of the levels before
 * it, one for each of i's last bits that are set. */
static void sum_block(const Task *t, int64_t first, int64_t rows, bool last, int thread, Memory m)
{
    const Layer *l = t->l;
    const int64_t n = undivided(l), stride = l->inputs ? l->in : l->out, level = l->each * n;
    float *sum = m.sums;
    for (int i = 0; i < l->slices; ++i) {
        int joins = 0;
        while (i >> joins & 1) ++joins;
        sum = m.sums + joins * level;
        if (l->wide && i == l->slices - 1) sum = (float *)t->other + first * n;
        move_columns(l, i, element_out(t->side, first * stride, DTYPE_BF16), stride, rows,
                     m.columns, sizeof(Bf16), false);
        run_kernel(t, i, last, thread, m.columns, sum, NULL, m.scratch);
        for (int k = 0; k < joins; ++k)
            simd_table(DTYPE_F32)->add_into(sum, m.sums + k * level, rows * n);
    }
    if (!l->wide) round_block(t, first, rows, sum);
}

/* Computes a block of the divided tensor, slice by slice. */
static void side_block(const Task *t, int64_t first, int64_t rows, bool last, int thread, Memory m)
{
    const Layer *l = t->l;
    const int64_t n = undivided(l), stride = l->inputs ? l->in : l->out;
    void *other = m.block;
    if (l->wide)
        simd_table(DTYPE_BF16)->from_floats(other, (const float *)t->other + first * n, rows * n);
    else
        other = element_out(t->other, first * n, DTYPE_BF16);
    for (int i = 0; i < l->slices; ++i) {
        run_kernel(t, i, last, thread, m.columns, other, slice_bias(t, i, m.sums), m.scratch);
        move_columns(l, i, element_out(t->side, first * stride, DTYPE_BF16), stride, rows,
                     m.columns, sizeof(Bf16), true);
    }
}

static void run_blocks(const Task *t)
{
    const Layer *l = t->l;
    const bool sums = l->inputs != t->backward;
#pragma omp parallel num_threads(l->threads) if (l->threads > 1)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const Memory m = memory_of(l, t->run->workspace, thread);
        for (int64_t i = thread; i < l->blocks; i += threads) {
            const bool last = i == l->blocks - 1;
            const int64_t first = i * l->each, rows = last ? l->rows - first : l->each;
            (sums ? sum_block : side_block)(t, first, rows, last, thread, m);
        }
    }
}

/* Casts const away: oneDNN's pointers are all writable, but it only reads x and w. */
static void *writable(const void *p)
{
    return (void *)(uintptr_t)p;
}

static void forward(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    void *x = writable(run->x[0]);
    run_blocks(&(Task){.op = op,
                       .l = l,
                       .run = run,
                       .side = l->inputs ? x : run->y,
                       .other = l->inputs ? run->y : x});
}

static void backward_data(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    if (!run->dx[0]) return;
    run_blocks(&(Task){.op = op,
                       .l = l,
                       .run = run,
                       .side = l->inputs ? run->dx[0] : run->dy,
                       .other = l->inputs ? run->dy : run->dx[0],
                       .backward = true});
}

/* Computes a slice of dw. other: the undivided one of x and dy. */
static void slice_gradient(const Op *op, const OpRun *run, int slice, int thread, void *other)
{
    const Layer *l = op->impl;
    const Slice *s = slice_kind(l, slice);
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

/* An item is SIMD_LANES columns of the bias's gradient; rows are added in order. */
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
    const Layer *l = op->impl;
    void *other = l->inputs ? run->dy : writable(run->x[0]);
    if (l->wide) {
        simd_table(DTYPE_BF16)->from_floats(run->workspace, other, l->rows * undivided(l));
        other = run->workspace;
    }
#pragma omp parallel num_threads(l->threads) if (l->threads > 1)
    {
        const int thread = omp_get_thread_num(), threads = omp_get_num_threads();
        for (int i = thread; i < l->slices; i += threads) slice_gradient(op, run, i, thread, other);
    }
    if (op->spec.w_count < 2) return;
    if (op->spec.tokens.total > 0) {
        dense_token_bias(op, run);
        return;
    }
    const BiasTask bias = {.run = run, .rows = l->rows, .width = l->out};
    work_run(bias_body, &bias, (l->out + SIMD_LANES - 1) / SIMD_LANES, l->rows * l->out);
}

/* Converts the slices of the weight. */
static void refresh(Op *op, const OpRun *run)
{
    const Layer *l = op->impl;
    const Memory m = memory_of(l, run->workspace, 0);
    float *w = (float *)(uintptr_t)run->w[0];
    for (int i = 0; i < l->slices; ++i) {
        const Slice *s = slice_kind(l, i);
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

static void kernels_free(const Layer *l, Kernel ***kernels)
{
    for (int i = 0; *kernels && i < l->threads; ++i) kernel_free(&(*kernels)[i]);
    mem_free(kernels);
}

static void layer_free(Op *op)
{
    Layer *l = op->impl;
    if (!l) return;
    for (int k = 0; k < l->kinds; ++k) {
        Slice *s = &l->kind[k];
        for (int last = 0; last < 2; ++last) {
            kernels_free(l, &s->forward[last]);
            kernels_free(l, &s->data[last]);
        }
        kernels_free(l, &s->weight);
        kernel_free(&s->forward_copy);
        kernel_free(&s->data_copy);
    }
    mem_free(&l->range);
    mem_free(&op->impl);
}

const OpTable dense_slices_table = {
    .name = "dense",
    .plan = dense_slices_plan,
    .refresh = refresh,
    .forward = forward,
    .backward_begin = linear_backward_begin,
    .backward_data = backward_data,
    .backward_weight = backward_weight,
    .free = layer_free,
};
