/* Kernels of oneDNN in parts. They are used for directions in which oneDNN would divide sums among
 * threads, or choose the order of a sum by the number of threads. The parts depend on the shape
 * alone. One thread computes a part, with a kernel that is planned for one thread:
 *
 *   dense, forward    with more output channels than rows: blocks of output channels, whose y is
 *                     copied afterwards; a thread then reads only its part of the weight, which
 *                     may be in its core's cache after the update. Otherwise, or if this gives
 *                     one part: rows of x and y.
 *   dense, data       rows of x and y
 *   convolution,      samples, if oneDNN's kernel is a matrix product, or if oneDNN has another
 *   forward and data  kernel for one thread than for several; its other kernels add in the same
 *                     order with any number of threads
 *   weight            blocks of output channels, whose dy is copied first; or, in a convolution
 *                     with many pixels, samples, whose sums are joined by a binary tree
 *
 * If oneDNN's kernel for such a part is another one than for the whole tensors, there is one
 * part. */
#include "dnnl_api.h"
#include "../sizes.h"
#include "../work.h"

#include <omp.h>
#include <string.h>

enum {
    /* maximum number of parts */
    PARTS = 16,
    /* minimum number of rows of a part, if there are several parts */
    PART_ROWS = 32,
    /* minimum number of output channels of a part, if there are several parts */
    PART_OUTPUTS = 128,
    /* minimum number of pixels of a part that consists of samples, so that joining the sums takes a
     * small part of the time */
    PART_PIXELS = 1024,
    /* If dividing samples gives fewer parts than this, output channels are divided instead, unless
     * that gives still fewer parts. */
    SAMPLE_PARTS = 8,
};

/* The ways to divide a kernel into parts. CUT_ROWS: a part is rows of x and y, which in a
 * convolution are samples. CUT_SAMPLES: a part is samples, and the parts' dw are added.
 * CUT_OUTPUTS: a part is output channels. */
typedef enum Cut { CUT_ROWS, CUT_SAMPLES, CUT_OUTPUTS } Cut;

typedef struct Parts {
    Cut cut;
    int threads;
    /* number of rows, samples or output channels in all parts */
    int64_t size;
    /* the number in each part except the last */
    int64_t each;
    /* number of parts */
    int64_t count;
    /* kernel for the whole tensors, which is run if there is only one part; owned */
    Kernel *whole;
    /* kernel for the last part; owned; NULL if there is only one part */
    Kernel *last;
    /* kernels for the other parts, [threads], one for each thread, because a kernel stores the
     * addresses of its tensors; owned */
    Kernel **regular;
    /* for each role, bytes from one part to the next; 0: all parts use the same tensor, or a
     * copy */
    size_t step[ROLES];
    /* CUT_OUTPUTS: true: the kernels write y; false: they read dy */
    bool forward;
    /* CUT_OUTPUTS: number of rows of y */
    int64_t rows;
    /* CUT_OUTPUTS: bytes of a row of y */
    size_t row;
    /* CUT_OUTPUTS: bytes of a row of y in each part except the last */
    size_t row_part;
    /* bytes of a thread's scratch for its kernels */
    size_t scratch;
    /* CUT_OUTPUTS: bytes of a thread's copy of a part of y; else 0 */
    size_t copy;
    /* CUT_SAMPLES: elements of dw; else 0 */
    int64_t dw;
    /* CUT_SAMPLES: elements of db, if there is a bias; else 0 */
    int64_t db;
} Parts;

/* Returns the number of threads that compute parts. */
static int workers(const Parts *p)
{
    return (int)least(p->threads, p->count);
}

/* ---- planning ---- */

/* Returns the number of output channels in a block of the weight. Returns 0 if the format is not
 * elementwise, or if the output channels are not the weight's outermost dimension in memory. */
static int64_t output_block(const Format *w)
{
    int64_t stride[FORMAT_DIMS], length[DNNL_MAX_NDIMS], dim[DNNL_MAX_NDIMS], size[FORMAT_DIMS];
    const int ndim = onednn_dims(w, size);
    int64_t block = 1;
    if (!format_elementwise(w)) return 0;
    for (int i = onednn_blocks(w, stride, length, dim) - 1; i >= 0; --i)
        if (dim[i] == 0) block *= length[i];
    for (int d = 1; d < ndim; ++d)
        if (stride[d] > stride[0]) return 0;
    return block;
}

/* Returns the format of `count` output channels of y; NULL if y is an image that is not in channel
 * blocks of 8 or 16. Owner: the caller. */
static Format *outputs_format(const Format *y, int64_t count)
{
    int64_t dim[FORMAT_DIMS];
    const int ndim = onednn_dims(y, dim);
    if (ndim == 2) return format_plain(2, (int64_t[]){dim[0], count}, format_type(y));
    const Shape shape = shape_of(4, dim[0], dim[1], dim[2], dim[3]);
    const int block = format_block(y, shape);
    if (block != 8 && block != 16) return NULL;
    return format_image(shape_of(4, dim[0], count, dim[2], dim[3]), block, false, format_type(y));
}

/* Divides the `rows` rows or samples into about `parts` parts, at most PARTS. */
static void divide_rows(Parts *p, Cut cut, int64_t rows, int64_t parts)
{
    p->cut = cut;
    p->size = rows;
    p->count = parts < 1 ? 1 : least(parts, PARTS);
    p->each = (rows + p->count - 1) / p->count;
    p->count = (rows + p->each - 1) / p->each;
}

/* Divides the output channels into parts that are multiples of the blocks of dw and dy, or into one
 * part if that cannot be done. */
static void divide_outputs(Parts *p, const Format *w, const Format *y)
{
    int64_t dim[FORMAT_DIMS];
    onednn_dims(y, dim);
    const int64_t out = dim[1], block = output_block(w);
    Format *part = outputs_format(y, out);
    const bool grouped = onednn_dims(w, dim) == FORMAT_DIMS;
    const bool possible = block > 0 && part && !grouped;
    format_free(&part);
    p->cut = CUT_OUTPUTS;
    p->size = p->each = out;
    if (possible) {
        const int64_t unit = (PART_OUTPUTS + block - 1) / block * block;
        p->each = ((out + PARTS - 1) / PARTS + unit - 1) / unit * unit;
    }
    p->count = (out + p->each - 1) / p->each;
}

/* Divides a kernel whose weight has the format w. */
static void divide(Parts *p, const KernelSpec *spec, const Format *w)
{
    int64_t x[FORMAT_DIMS], y[FORMAT_DIMS];
    onednn_dims(spec->role[ROLE_X], x);
    const int ndim = onednn_dims(spec->role[ROLE_Y], y);
    if (spec->kind == KERNEL_DENSE_FORWARD && y[1] > x[0]) {
        divide_outputs(p, w, spec->role[ROLE_Y]);
        if (p->count > 1) return;
    }
    if (spec->kind == KERNEL_DENSE_FORWARD || spec->kind == KERNEL_DENSE_DATA) {
        divide_rows(p, CUT_ROWS, x[0], x[0] / PART_ROWS);
        return;
    }
    if (spec->kind != KERNEL_CONV_WEIGHT && spec->kind != KERNEL_DENSE_WEIGHT) {
        divide_rows(p, CUT_ROWS, x[0], x[0]);
        return;
    }
    divide_outputs(p, w, spec->role[ROLE_Y]);
    if (ndim == 2) return;
    const int64_t samples = least(x[0], x[0] * y[2] * y[3] / PART_PIXELS);
    if (samples >= SAMPLE_PARTS || samples > p->count) divide_rows(p, CUT_SAMPLES, x[0], samples);
}

/* Plans the kernel of a part with `size` rows, samples or output channels. */
static Status part_plan(Kernel **kernel, Dnnl *dnnl, const Parts *p, const KernelSpec *spec,
                        int64_t size)
{
    KernelSpec part = *spec;
    Format *x = NULL, *w = NULL, *b = NULL, *y = NULL;
    part.role[ROLE_W] = kernel_format(p->whole, ROLE_W);
    if (p->cut == CUT_OUTPUTS) {
        part.role[ROLE_W] = w = format_part(kernel_format(p->whole, ROLE_W), size);
        if (spec->role[ROLE_B]) part.role[ROLE_B] = b = format_part(spec->role[ROLE_B], size);
        part.role[ROLE_Y] = y = outputs_format(spec->role[ROLE_Y], size);
    } else {
        part.role[ROLE_X] = x = format_part(spec->role[ROLE_X], size);
        part.role[ROLE_Y] = y = format_part(spec->role[ROLE_Y], size);
    }
    const bool possible = part.role[ROLE_W] && part.role[ROLE_X] && part.role[ROLE_Y];
    const Status status = possible ? kernel_plan_onednn(kernel, dnnl, &part) : ERR_CONFIG;
    format_free(&x);
    format_free(&w);
    format_free(&b);
    format_free(&y);
    return status;
}

static bool same_kernel(const Parts *p, const Kernel *part)
{
    return strcmp(kernel_name(part), kernel_name(p->whole)) == 0;
}

/* Plans the kernels of all parts. If oneDNN has none, or another implementation for a part than for
 * the whole, there is one part. */
static void plan_kernels(Parts *p, Dnnl *dnnl, const KernelSpec *spec)
{
    if (p->count == 1) return;
    const int64_t rest = p->size - (p->count - 1) * p->each;
    Status status = part_plan(&p->last, dnnl, p, spec, rest);
    bool good = status == OK && same_kernel(p, p->last);
    for (int i = 0; good && i < workers(p); ++i) {
        status = part_plan(&p->regular[i], dnnl, p, spec, p->each);
        good = status == OK && same_kernel(p, p->regular[i]);
    }
    if (good) return;
    kernel_free(&p->last);
    for (int i = 0; i < p->threads; ++i) kernel_free(&p->regular[i]);
    p->count = 1;
}

static size_t kernel_bytes(const Kernel *kernel)
{
    return kernel ? kernel_scratch_bytes(kernel) : 0;
}

static void plan_bytes(Parts *p, const KernelSpec *spec)
{
    const Format *w = kernel_format(p->whole, ROLE_W), *b = spec->role[ROLE_B];
    const size_t regular = kernel_bytes(p->regular[0]), last = kernel_bytes(p->last);
    p->scratch = align_up(p->count == 1 ? kernel_bytes(p->whole) : regular > last ? regular : last);
    if (p->count == 1) return;
    if (p->cut == CUT_OUTPUTS) {
        int64_t y[FORMAT_DIMS];
        onednn_dims(spec->role[ROLE_Y], y);
        p->forward = spec->kind == KERNEL_DENSE_FORWARD;
        p->rows = y[0];
        p->row = format_bytes(spec->role[ROLE_Y]) / (size_t)p->rows;
        p->row_part = format_bytes(kernel_format(p->regular[0], ROLE_Y)) / (size_t)p->rows;
        p->copy = align_up(p->row_part * (size_t)p->rows);
        p->step[ROLE_W] = format_bytes(kernel_format(p->regular[0], ROLE_W));
        p->step[ROLE_B] = (size_t)p->each * sizeof(float);
        return;
    }
    for (int r = ROLE_X; r <= ROLE_Y; r += ROLE_Y - ROLE_X)
        p->step[r] = format_bytes(spec->role[r]) / (size_t)p->size * (size_t)p->each;
    if (p->cut == CUT_SAMPLES) {
        p->dw = format_elements(w);
        p->db = b ? format_elements(b) : 0;
    }
}

/* ---- the functions of an OwnTable ---- */

static size_t parts_scratch_bytes(const void *impl)
{
    const Parts *p = impl;
    return (size_t)workers(p) * (p->scratch + p->copy) +
           align_up((size_t)((p->count - 1) * p->dw) * sizeof(float)) +
           (size_t)((p->count - 1) * p->db) * sizeof(float);
}

static Status parts_build(void *impl)
{
    Parts *p = impl;
    const int before = threads_set(1);
    Status status = kernel_build(p->count == 1 ? p->whole : p->last);
    for (int i = 0; p->count > 1 && status == OK && i < workers(p); ++i)
        status = kernel_build(p->regular[i]);
    threads_set(before);
    return status;
}

/* Copies the output channels of part i between y and `part`, the thread's copy: to y if the kernel
 * has computed them, else from y. */
static void outputs_copy(const Parts *p, char *y, int64_t i, char *part)
{
    const size_t from = (size_t)i * p->row_part;
    const size_t bytes = i < p->count - 1 ? p->row_part : p->row - from;
    for (int64_t n = 0; n < p->rows; ++n) {
        char *row = y + (size_t)n * p->row + from, *row_part = part + (size_t)n * bytes;
        memcpy(p->forward ? row : row_part, p->forward ? row_part : row, bytes);
    }
}

/* One call of parts_run. */
typedef struct PartsRun {
    const Parts *p;
    /* tensor of each role, [ROLES] */
    void *const *data;
    char *scratch;
    /* dw and db of all parts except the first, in the scratch, if the parts are CUT_SAMPLES */
    float *dw, *db;
} PartsRun;

static void part_run(const PartsRun *run, int64_t i, int worker)
{
    const Parts *p = run->p;
    char *scratch = run->scratch + (size_t)worker * (p->scratch + p->copy);
    void *data[ROLES];
    for (int r = 0; r < ROLES; ++r)
        data[r] = run->data[r] ? (char *)run->data[r] + (size_t)i * p->step[r] : NULL;
    if (p->cut == CUT_SAMPLES && i > 0) {
        data[ROLE_W] = run->dw + (i - 1) * p->dw;
        if (data[ROLE_B]) data[ROLE_B] = run->db + (i - 1) * p->db;
    }
    if (p->copy) data[ROLE_Y] = scratch + p->scratch;
    if (p->copy && !p->forward) outputs_copy(p, run->data[ROLE_Y], i, data[ROLE_Y]);
    Kernel *kernel = p->count == 1 ? p->whole : i == p->count - 1 ? p->last : p->regular[worker];
    kernel_run(kernel, data, scratch);
    if (p->copy && p->forward) outputs_copy(p, run->data[ROLE_Y], i, data[ROLE_Y]);
}

static void parts_run(const void *impl, void *const data[ROLES], void *scratch)
{
    const Parts *p = impl;
    const int threads = workers(p);
    PartsRun run = {.p = p, .data = data, .scratch = scratch};
    run.dw = (float *)(void *)(run.scratch + (size_t)threads * (p->scratch + p->copy));
    run.db = (float *)(void *)((char *)run.dw +
                               align_up((size_t)((p->count - 1) * p->dw) * sizeof(float)));
    if (threads == 1) {
        const int before = threads_set(1);
        for (int64_t i = 0; i < p->count; ++i) part_run(&run, i, 0);
        threads_set(before);
    } else {
#pragma omp parallel num_threads(threads)
        {
            const int worker = omp_get_thread_num();
            const int64_t end = p->count * (worker + 1) / threads;
            for (int64_t i = p->count * worker / threads; i < end; ++i) part_run(&run, i, worker);
        }
    }
    if (p->dw) work_sum_tree(data[ROLE_W], run.dw, p->count - 1, p->dw);
    if (p->db && data[ROLE_B]) work_sum_tree(data[ROLE_B], run.db, p->count - 1, p->db);
}

static void parts_free(void **impl)
{
    Parts *p = *impl;
    if (!p) return;
    kernel_free(&p->whole);
    kernel_free(&p->last);
    for (int i = 0; p->regular && i < p->threads; ++i) kernel_free(&p->regular[i]);
    mem_free(&p->regular);
    mem_free(impl);
}

static const OwnTable parts_table = {.scratch_bytes = parts_scratch_bytes,
                                     .build = parts_build,
                                     .run = parts_run,
                                     .free = parts_free};

/* ---- the kernel ---- */

/* Plans *kernel as oneDNN's kernel of a convolution if this kernel adds in the same order with any
 * number of threads; else leaves *kernel NULL. */
static Status plan_undivided(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec, const Parts *p)
{
    TRY(kernel_plan_onednn(kernel, dnnl, spec));
    if (!strstr(kernel_name(*kernel), "gemm") && same_kernel(p, *kernel)) return OK;
    kernel_free(kernel);
    return OK;
}

/* Makes the kernel that computes the parts of p, and owns p. */
static Kernel *parts_kernel(Parts *p, Dnnl *dnnl, const KernelSpec *spec)
{
    Kernel *k = mem_new(sizeof *k);
    k->kind = spec->kind;
    k->dnnl = dnnl;
    k->table = &parts_table;
    k->own_impl = p;
    k->inner = p->whole;
    for (int r = 0; r < ROLES; ++r)
        if (spec->role[r])
            k->role[r] = format_copy(r == ROLE_W ? kernel_format(p->whole, r) : spec->role[r]);
    return k;
}

Status parts_plan(Kernel **kernel, Dnnl *dnnl, const KernelSpec *spec)
{
    Parts *p = mem_new(sizeof *p);
    void *impl = p;
    p->threads = omp_get_max_threads();
    p->regular = mem_new((size_t)p->threads * sizeof(Kernel *));
    threads_set(1);
    Status status = kernel_plan_onednn(&p->whole, dnnl, spec);
    threads_set(p->threads);
    if (status == OK && (spec->kind == KERNEL_CONV_FORWARD || spec->kind == KERNEL_CONV_DATA))
        status = plan_undivided(kernel, dnnl, spec, p);
    if (status == OK && !*kernel) {
        divide(p, spec, kernel_format(p->whole, ROLE_W));
        threads_set(1);
        plan_kernels(p, dnnl, spec);
        threads_set(p->threads);
        plan_bytes(p, spec);
        *kernel = parts_kernel(p, dnnl, spec);
    } else {
        parts_free(&impl);
    }
    return status;
}
