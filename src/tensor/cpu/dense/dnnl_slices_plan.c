/* Plans kernels, workspace and cache of a dense layer in bf16 whose sums are cut into slices
 * (dense_slices.h). */
#include "dense_slices.h"
#include "dnnl_slices.h"
#include "../dnnl/linear.h"
#include "../../sliced.h"
#include "../sizes.h"
#include "../view.h"
#include "../work.h"

#include <omp.h>

/* maximum number of rows of a block */
enum { ROWS = 256 };

int64_t dense_undivided(const SlicedDense *l)
{
    return l->inputs ? l->out : l->in;
}

static int64_t slice_width(const SlicedDense *l, int slice)
{
    int64_t width = 0;
    for (int i = 0; i < l->ranges; ++i)
        width += l->range[slice * l->ranges + i].end - l->range[slice * l->ranges + i].first;
    return width;
}

const DenseSlice *dense_slice(const SlicedDense *l, int slice)
{
    const int64_t width = slice_width(l, slice);
    const DenseSlice *kind = l->kind;
    while (kind->width != width) ++kind;
    return kind;
}

/* ---- planning ---- */

/* Plans and builds a kernel of a slice with `width` divided inputs or outputs. w: format of the
 * weight; NULL: oneDNN chooses it. */
static Status kernel_of(Kernel **kernel, const Op *op, KernelKind kind, int64_t width, int64_t rows,
                        const Format *w, const Kernel *hint)
{
    const SlicedDense *l = op->impl;
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

/* Plans the same kernel for each thread. All of them have the weight in the format that the first
 * one has. */
static Status kernels_of(Kernel ***kernels, const Op *op, KernelKind kind, int64_t width,
                         int64_t rows, const Format *w, const Kernel *hint)
{
    const SlicedDense *l = op->impl;
    *kernels = mem_new((size_t)l->threads * sizeof **kernels);
    for (int i = 0; i < l->threads; ++i) {
        const Format *same = i > 0 ? kernel_format((*kernels)[0], ROLE_W) : w;
        TRY(kernel_of(&(*kernels)[i], op, kind, width, rows, same, hint));
    }
    return OK;
}

/* Plans the conversion of a slice's fp32 weight to the format that the kernel `reader` reads. Sets
 * *bytes to the size of the converted weight. */
static Status plan_copy(Kernel **copy, size_t *bytes, const Op *op, const DenseSlice *s,
                        const Kernel *reader)
{
    const SlicedDense *l = op->impl;
    const int64_t dim[] = {l->inputs ? l->out : s->width, l->inputs ? s->width : l->in};
    const Format *w = kernel_format(reader, ROLE_W);
    Format *plain = format_plain(2, dim, DTYPE_F32);
    Status status = kernel_plan(
        copy, cpu_dnnl(op->backend),
        &(KernelSpec){.kind = KERNEL_REORDER, .role = {[ROLE_X] = plain, [ROLE_Y] = w}});
    if (status == OK) status = kernel_build(*copy);
    *bytes = align_up(format_bytes(w));
    format_free(&plain);
    return status;
}

/* Plans the kernels of slices with s->width divided inputs or outputs. */
static Status plan_kind(const Op *op, DenseSlice *s)
{
    const SlicedDense *l = op->impl;
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
    SlicedDense *l = op->impl;
    Status status = OK;
    const int before = threads_set(1);
    for (int i = 0; i < l->slices && status == OK; ++i) {
        const int64_t width = slice_width(l, i);
        int k = 0;
        while (k < l->kinds && l->kind[k].width != width) ++k;
        if (k < l->kinds) continue;
        if (k == SLICE_WIDTHS) die("a dense layer has slices of more than %d sizes", SLICE_WIDTHS);
        l->kind[l->kinds++].width = width;
        status = plan_kind(op, &l->kind[k]);
    }
    threads_set(before);
    return status;
}

static size_t kernel_bytes(const Kernel *k)
{
    return k ? align_up(kernel_scratch_bytes(k)) : 0;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

static void plan_bytes(Op *op)
{
    SlicedDense *l = op->impl;
    int64_t width = 0;
    for (int k = 0; k < l->kinds; ++k) {
        const DenseSlice *s = &l->kind[k];
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
    const size_t slice = (size_t)(width * dense_undivided(l)) * sizeof(float);
    l->block = align_up((size_t)(l->each * dense_undivided(l)) * sizeof(Bf16));
    l->columns = align_up(op->spec.frozen ? (size_t)(l->each * width) * sizeof(Bf16)
                                          : whole_rows * (size_t)width);
    const size_t levels =
        (size_t)((1 + sum_levels(l->slices)) * l->each * dense_undivided(l)) * sizeof(float);
    l->sums = align_up(larger(larger(levels, (size_t)width * sizeof(float)), slice));
    l->converted = l->wide ? align_up(whole_rows * (size_t)dense_undivided(l)) : 0;
    op->workspace_bytes =
        l->converted + (size_t)l->threads * (l->scratch + l->block + l->columns + l->sums);
    for (int i = 0; i < l->slices; ++i) {
        const DenseSlice *s = dense_slice(l, i);
        op->cache_bytes += s->forward_bytes + s->data_bytes;
    }
    op->w_elements[0] = l->in * l->out;
    if (op->spec.w_count > 1) op->w_elements[1] = l->out;
    op->needs_x[0] = !op->spec.frozen;
    op->needs_y = op->spec.act == ACT_RELU;
    op->weight_may_wait = true;
}

bool dense_slices_fit(const Op *op)
{
    return op->spec.slices.total > 0 && op->backend->options.precision == DTYPE_BF16;
}

Status dense_slices_plan(Op *op, Desc preferred[SPEC_INPUTS])
{
    OpSpec *s = &op->spec;
    const SumSlices *cut = &s->slices;
    SlicedDense *l = mem_new(sizeof *l);
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

static void kernels_free(const SlicedDense *l, Kernel ***kernels)
{
    for (int i = 0; *kernels && i < l->threads; ++i) kernel_free(&(*kernels)[i]);
    mem_free(kernels);
}

void dense_slices_free(Op *op)
{
    SlicedDense *l = op->impl;
    if (!l) return;
    for (int k = 0; k < l->kinds; ++k) {
        DenseSlice *s = &l->kind[k];
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
