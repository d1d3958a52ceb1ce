/* A model's first convolution (first_conv.h). The work is divided into units. A unit is a range of
 * rows of y of one image. Its input is copied to [row][C][column] with zeros for the padding, so
 * that all pixels are computed in the same way. The weight's gradient is summed over groups of
 * consecutive units, then over the groups in order. The groups do not depend on the number of
 * threads. */
#include "first_conv.h"
#include "../simd/simd.h"
#include "../sizes.h"

#include <omp.h>
#include <string.h>

enum {
    BLOCK = FIRST_BLOCK,
    /* minimum number of pixels of y in a unit, unless a whole image has fewer; 4 blocks of dy are
     * then about half of a core's L1 cache */
    PIXELS = 96,
    /* maximum number of groups of units for dw, which is the maximum number of threads that compute
     * dw */
    GROUPS_MAX = 32,
    /* a thread's copy begins at a multiple of this number of floats */
    ALIGN = 16,
};

struct FirstConvRun {
    FirstConvSpec spec;
    /* rows and columns of y */
    int64_t p, q;
    /* rows of y per unit */
    int64_t rows;
    /* units of all images */
    int64_t units;
    /* rows and columns of a unit's copied input */
    int64_t in_rows, in_columns;
    /* floats of one thread's copy */
    int64_t per_thread;
    /* elements of x that a pixel of y reads: C times rows times columns of the kernel */
    int64_t taps;
    /* dw: number of groups of units */
    int64_t groups;
    /* floats of a group's dw and db */
    int64_t group_floats;
    /* offset of each tap in the copy; owned */
    int32_t *tap_offset;
};

static void plan_taps(FirstConvRun *f)
{
    const FirstConvSpec *s = &f->spec;
    const int64_t all = round_up(f->taps, FIRST_TAPS);
    f->tap_offset = mem_new((size_t)all * sizeof *f->tap_offset);
    for (int64_t k = 0; k < f->taps; ++k) {
        const int64_t c = k % s->c, column = k / s->c % s->kernel[1], row = k / s->c / s->kernel[1];
        f->tap_offset[k] = (int32_t)((row * s->c + c) * f->in_columns + column);
    }
}

FirstConvRun *first_conv_new(const FirstConvSpec *spec)
{
    FirstConvRun *f = mem_new(sizeof *f);
    const FirstConvSpec *s = &f->spec;
    f->spec = *spec;
    f->p = (s->h + 2 * s->pad[0] - s->kernel[0]) / s->stride[0] + 1;
    f->q = (s->w + 2 * s->pad[1] - s->kernel[1]) / s->stride[1] + 1;
    f->rows = ceil_div(PIXELS, f->q);
    if (f->rows > f->p) f->rows = f->p;
    f->units = s->n * ceil_div(f->p, f->rows);
    f->in_rows = (f->rows - 1) * s->stride[0] + s->kernel[0];
    f->in_columns = (f->q - 1) * s->stride[1] + s->kernel[1];
    f->per_thread = round_up(f->in_rows * f->in_columns * s->c, ALIGN);
    f->taps = s->c * s->kernel[0] * s->kernel[1];
    if (s->kind == KERNEL_CONV_WEIGHT) {
        f->groups = f->units < GROUPS_MAX ? f->units : GROUPS_MAX;
        f->group_floats = (f->taps + 1) * s->o;
    }
    plan_taps(f);
    return f;
}

void first_conv_free(FirstConvRun **conv)
{
    if (!*conv) return;
    mem_free(&(*conv)->tap_offset);
    mem_free(conv);
}

size_t first_conv_scratch_bytes(const FirstConvRun *f)
{
    return (size_t)(f->groups * f->group_floats + f->spec.threads * f->per_thread) * sizeof(float);
}

/* Copies row `row` of channel c of an image to `to`, with zeros for padding. */
static void copy_row(const FirstConvRun *f, const float *image, int64_t c, int64_t row, float *to)
{
    const FirstConvSpec *s = &f->spec;
    const int64_t pad = s->pad[1];
    const int64_t end = s->w + pad < f->in_columns ? s->w + pad : f->in_columns;
    if (row < 0 || row >= s->h || end <= pad) {
        memset(to, 0, (size_t)f->in_columns * sizeof *to);
        return;
    }
    memset(to, 0, (size_t)pad * sizeof *to);
    memcpy(to + pad, image + (c * s->h + row) * s->w, (size_t)(end - pad) * sizeof *to);
    memset(to + end, 0, (size_t)(f->in_columns - end) * sizeof *to);
}

/* Copies a unit's input to `copy`, and returns the kernels' arguments for the unit. Sets *y_at to
 * the offset of the unit's rows in y. */
static FirstConv unit_begin(const FirstConvRun *f, const float *x, int64_t unit, float *copy,
                            int64_t *y_at)
{
    const FirstConvSpec *s = &f->spec;
    const int64_t each = ceil_div(f->p, f->rows), n = unit / each, row = unit % each * f->rows;
    const int64_t rows = f->p - row < f->rows ? f->p - row : f->rows;
    const int64_t in_rows = (rows - 1) * s->stride[0] + s->kernel[0];
    for (int64_t i = 0; i < in_rows; ++i)
        for (int64_t c = 0; c < s->c; ++c)
            copy_row(f, x + n * s->c * s->h * s->w, c, row * s->stride[0] - s->pad[0] + i,
                     copy + (i * s->c + c) * f->in_columns);
    *y_at = (n * s->o * f->p + row * BLOCK) * f->q;
    return (FirstConv){.x = copy,
                       .tap = f->tap_offset,
                       .taps = f->taps,
                       .rows = rows,
                       .columns = f->q,
                       .x_row = s->stride[0] * s->c * f->in_columns,
                       .stride = s->stride[1],
                       .y_block = f->p * f->q * BLOCK,
                       .blocks = s->o / BLOCK};
}

static void forward(const FirstConvRun *f, void *const data[ROLES], float *scratch)
{
#pragma omp parallel num_threads(f->spec.threads) if (f->spec.threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const int64_t end = f->units * (thread + 1) / threads;
        for (int64_t u = f->units * thread / threads; u < end; ++u) {
            int64_t at;
            const FirstConv unit =
                unit_begin(f, data[ROLE_X], u, scratch + thread * f->per_thread, &at);
            simd_table(DTYPE_F32)->first_forward(&unit, data[ROLE_W], data[ROLE_B], f->spec.relu,
                                                 (float *)data[ROLE_Y] + at);
        }
    }
}

/* Computes dw, followed by db, over the units of one group. copy: the thread's memory for a unit's
 * input. */
static void group_run(const FirstConvRun *f, void *const data[ROLES], int64_t group, float *copy,
                      float *dw)
{
    float *db = data[ROLE_B] ? dw + f->taps * f->spec.o : NULL;
    const int64_t end = f->units * (group + 1) / f->groups;
    memset(dw, 0, (size_t)f->group_floats * sizeof *dw);
    for (int64_t u = f->units * group / f->groups; u < end; ++u) {
        int64_t at;
        const FirstConv unit = unit_begin(f, data[ROLE_X], u, copy, &at);
        simd_table(DTYPE_F32)->first_weight(&unit, (const float *)data[ROLE_Y] + at, dw, db);
    }
}

/* Sets `sum` to the sum of `count` arrays of n floats, which begin `step` floats apart. */
static void add_groups(const float *group, int64_t count, int64_t step, int64_t n, float *sum)
{
    memcpy(sum, group, (size_t)n * sizeof *sum);
    for (int64_t i = 1; i < count; ++i) simd_table(DTYPE_F32)->add_into(sum, group + i * step, n);
}

static void weight(const FirstConvRun *f, void *const data[ROLES], float *scratch)
{
    float *copies = scratch + f->groups * f->group_floats;
    const int64_t w_count = f->taps * f->spec.o;
#pragma omp parallel num_threads(f->spec.threads) if (f->spec.threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const int64_t end = f->groups * (thread + 1) / threads;
        for (int64_t i = f->groups * thread / threads; i < end; ++i)
            group_run(f, data, i, copies + thread * f->per_thread, scratch + i * f->group_floats);
    }
    add_groups(scratch, f->groups, f->group_floats, w_count, data[ROLE_W]);
    if (data[ROLE_B])
        add_groups(scratch + w_count, f->groups, f->group_floats, f->spec.o, data[ROLE_B]);
}

void first_conv_run(const FirstConvRun *f, void *const data[ROLES], void *scratch)
{
    if (f->spec.kind == KERNEL_CONV_WEIGHT)
        weight(f, data, scratch);
    else
        forward(f, data, scratch);
}
