/* Weighted sums of pixels: first over rows of the source, into a buffer of floats, then over
 * columns. */
#include "vector.h"

/* Adds weight * x to `sum`, for n elements. */
SIMD_INLINE void add_weighted(float *restrict sum, float weight, const Elem *restrict x, int64_t n)
{
#pragma omp simd
    for (int64_t i = 0; i < n; ++i) sum[i] = fused(weight, value_of(x[i]), sum[i]);
}

/* Computes the weighted sum of the source's rows for row `row` of the result, for pixels `low` to
 * low + pixels - 1 of the source's rows, and for `lanes` lanes of each pixel, from `lane` on. sum:
 * the buffer, [pixels][lanes]. */
SIMD_INLINE void sum_rows(const ResamplePlane *p, int row, const Elem *plane, int low, int pixels,
                          int lane, int lanes, float *sum)
{
    const ResampleTaps *taps = &p->rows;
    memset(sum, 0, sizeof *sum * (size_t)pixels * (size_t)lanes);
    for (int k = taps->first[row]; k < taps->first[row + 1]; ++k) {
        const Elem *x =
            plane + ((int64_t)taps->place[k] * p->source_columns + low) * p->lanes + lane;
        if (lanes == p->lanes) {
            add_weighted(sum, taps->weight[k], x, (int64_t)pixels * lanes);
            continue;
        }
        for (int i = 0; i < pixels; ++i)
            add_weighted(sum + (int64_t)i * lanes, taps->weight[k], x + (int64_t)i * p->lanes,
                         lanes);
    }
}

/* Computes pixel j of a row of the result: the weighted sum of pixels in the buffer `sum`, which
 * begins with pixel `low` of the source. If `lanes` is 1, SIMD_LANES / 2 or SIMD_LANES, it is a
 * compile-time constant, so that sums stay in registers. */
SIMD_INLINE void sum_columns(const ResamplePlane *p, int j, int low, int lanes, const float *sum,
                             Elem *to)
{
    const ResampleTaps *taps = &p->columns;
    const int first = taps->first[j], end = taps->first[j + 1];
    Vf total[PARTS] = {{0}}, v;
    const int vectors = lanes / VECTOR, rest = vectors * VECTOR;
    for (int k = first; k < end && vectors > 0; ++k) {
        const float *from = sum + (int64_t)(taps->place[k] - low) * lanes;
        for (int i = 0; i < vectors; ++i) {
            VECTOR_LOAD(v, from + i * VECTOR);
            total[i] = vector_fused(v, (Vf){0} + taps->weight[k], total[i]);
        }
    }
    for (int i = 0; i < vectors; ++i) elems_store(to + i * VECTOR, total[i]);
    for (int l = rest; l < lanes; ++l) {
        float one = 0;
        for (int k = first; k < end; ++k)
            one = fused(sum[(int64_t)(taps->place[k] - low) * lanes + l], taps->weight[k], one);
        to[l] = elem_of(one);
    }
}

/* Computes pixels j to end - 1 of a row of the result from the buffer. */
static void sum_pixels(const ResamplePlane *p, int j, int end, int low, int lanes, const float *sum,
                       Elem *to)
{
    const int step = p->lanes;
    if (lanes == SIMD_LANES)
        for (int i = j; i < end; ++i)
            sum_columns(p, i, low, SIMD_LANES, sum, to + (int64_t)i * step);
    else if (lanes == SIMD_LANES / 2)
        for (int i = j; i < end; ++i)
            sum_columns(p, i, low, SIMD_LANES / 2, sum, to + (int64_t)i * step);
    else if (lanes == 1)
        for (int i = j; i < end; ++i) sum_columns(p, i, low, 1, sum, to + (int64_t)i * step);
    else
        for (int i = j; i < end; ++i) sum_columns(p, i, low, lanes, sum, to + (int64_t)i * step);
}

void SIMD_NAME(resample_row)(const ResamplePlane *p, int row, const void *plane, void *to)
{
    const ResampleTaps *taps = &p->columns;
    float sum[RESAMPLE_FLOATS];
    for (int lane = 0; lane < p->lanes; lane += SIMD_LANES) {
        const int lanes = p->lanes - lane < SIMD_LANES ? p->lanes - lane : SIMD_LANES;
        for (int j = 0, end; j < p->result_columns; j = end) {
            const int low = taps->place[taps->first[j]];
            int pixels = 0;
            for (end = j; end < p->result_columns; ++end) {
                const int needed = taps->place[taps->first[end + 1] - 1] + 1 - low;
                if (needed * lanes > RESAMPLE_FLOATS) break;
                pixels = needed;
            }
            sum_rows(p, row, plane, low, pixels, lane, lanes, sum);
            sum_pixels(p, j, end, low, lanes, sum, (Elem *)to + lane);
        }
    }
}
