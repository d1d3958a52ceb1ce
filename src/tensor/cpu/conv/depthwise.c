/* Depthwise convolutions (depthwise.h). Threads compute items; an item is one plane: one channel
 * block of one sample. The gradient of the weight is summed over each plane, then over the samples
 * in order. */
#include "depthwise.h"
#include "../simd/simd.h"

#include <omp.h>
#include <string.h>

struct Depthwise {
    DepthwiseSpec spec;
    /* sizes of a plane, for the kernels */
    DepthwisePlane plane;
    /* number of channel blocks */
    int64_t blocks;
    /* number of planes of all samples */
    int64_t items;
};

Depthwise *depthwise_new(const DepthwiseSpec *spec)
{
    Depthwise *d = mem_new(sizeof *d);
    d->spec = *spec;
    d->plane = (DepthwisePlane){.h = spec->h,
                                .w = spec->w,
                                .p = (spec->h - 1) / spec->stride + 1,
                                .q = (spec->w - 1) / spec->stride + 1,
                                .stride = spec->stride};
    d->blocks = spec->c / spec->lanes;
    d->items = spec->n * d->blocks;
    return d;
}

void depthwise_free(Depthwise **depthwise)
{
    mem_free(depthwise);
}

/* Returns the number of floats of a plane's sums: dw, then db. */
static int64_t plane_sum_floats(const Depthwise *d)
{
    return (DEPTHWISE_TAPS + 1) * d->spec.lanes;
}

/* Returns the number of floats in a row of zeros, which the kernels read in place of padding
 * rows. */
static int64_t zero_row_floats(const Depthwise *d)
{
    return d->spec.w * d->spec.lanes;
}

size_t depthwise_scratch_bytes(const Depthwise *d)
{
    const int64_t sums = d->spec.kind == KERNEL_CONV_WEIGHT ? d->items * plane_sum_floats(d) : 0;
    return (size_t)(zero_row_floats(d) + sums) * sizeof(float);
}

static void item_run(const Depthwise *d, const DepthwisePlane *a, void *const data[ROLES],
                     int64_t item, float *sums)
{
    const SimdTable *simd = simd_table(DTYPE_F32);
    const int64_t lanes = d->spec.lanes, block = item % d->blocks;
    float *x = (float *)data[ROLE_X] + item * a->h * a->w * lanes;
    float *y = (float *)data[ROLE_Y] + item * a->p * a->q * lanes;
    const float *w = (const float *)data[ROLE_W] + block * DEPTHWISE_TAPS * lanes;
    const float *bias = data[ROLE_B];
    float *dw = sums + item * plane_sum_floats(d);
    if (d->spec.kind == KERNEL_CONV_FORWARD)
        simd->depthwise_forward(a, x, w, bias ? bias + block * lanes : NULL, d->spec.relu, y);
    else if (d->spec.kind == KERNEL_CONV_DATA)
        simd->depthwise_data(a, y, w, x);
    else
        simd->depthwise_weight(a, x, y, dw, dw + DEPTHWISE_TAPS * lanes);
}

/* For each channel block, adds up n floats of the sums of its planes, from offset `from` on, over
 * the samples, and writes the result to `out`. */
static void add_samples(const Depthwise *d, const float *sums, int64_t from, int64_t n, float *out)
{
    memset(out, 0, (size_t)(d->blocks * n) * sizeof *out);
    for (int64_t i = 0; i < d->items; ++i)
        simd_table(DTYPE_F32)->add_into(out + i % d->blocks * n,
                                        sums + i * plane_sum_floats(d) + from, n);
}

void depthwise_run(const Depthwise *d, void *const data[ROLES], void *scratch)
{
    const int64_t lanes = d->spec.lanes;
    float *sums = (float *)scratch + zero_row_floats(d);
    DepthwisePlane plane = d->plane;
    plane.zeros = memset(scratch, 0, (size_t)zero_row_floats(d) * sizeof *sums);
#pragma omp parallel num_threads(d->spec.threads) if (d->spec.threads > 1)
    {
        const int64_t thread = omp_get_thread_num(), threads = omp_get_num_threads();
        const int64_t end = d->items * (thread + 1) / threads;
        for (int64_t i = d->items * thread / threads; i < end; ++i)
            item_run(d, &plane, data, i, sums);
    }
    if (d->spec.kind != KERNEL_CONV_WEIGHT) return;
    add_samples(d, sums, 0, DEPTHWISE_TAPS * lanes, data[ROLE_W]);
    if (data[ROLE_B]) add_samples(d, sums, DEPTHWISE_TAPS * lanes, lanes, data[ROLE_B]);
}
