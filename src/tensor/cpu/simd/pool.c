/* Pooling of one plane: averages. Windows are taken in the order of the output, by one thread, so
 * sums have one order. */
#include "window.h"

SIMD_INLINE float share_of(Window w)
{
    return 1.0f / (float)((w.row1 - w.row0) * (w.col1 - w.col0));
}

/* Sums of up to 16 lanes, element by element: sum (+)= by x. */
SIMD_INLINE void sum_lanes(float *sum, const Elem *x, int lanes, float by)
{
#pragma omp simd
    for (int l = 0; l < lanes; ++l) sum[l] = fused(value_of(x[l]), by, sum[l]);
}

SIMD_INLINE void put_lanes(Elem *to, const float *sum, int lanes, float by)
{
#pragma omp simd
    for (int l = 0; l < lanes; ++l) to[l] = elem_of(sum[l] * by);
}

SIMD_INLINE int lanes_from(const PoolPlane *p, int lane)
{
    return p->lanes - lane < SIMD_LANES ? p->lanes - lane : SIMD_LANES;
}

void SIMD_NAME(avg_pool)(const PoolPlane *plane, const void *in, void *out)
{
    /* no store can change it */
    const PoolPlane local = *plane, *p = &local;
    const Elem *x = in;
    Elem *y = out;
    for (int i = 0; i < p->p; ++i)
        for (int j = 0; j < p->q; ++j, y += p->lanes) {
            Window w = window_at(p, i, j);
            for (int lane = 0; lane < p->lanes; lane += SIMD_LANES) {
                float sum[SIMD_LANES] = {0};
                for (int r = w.row0; r < w.row1; ++r)
                    for (int c = w.col0; c < w.col1; ++c)
                        sum_lanes(sum, x + ((int64_t)r * p->w + c) * p->lanes + lane,
                                  lanes_from(p, lane), 1.0f);
                put_lanes(y + lane, sum, lanes_from(p, lane), share_of(w));
            }
        }
}

void SIMD_NAME(avg_pool_grad)(const PoolPlane *plane, const void *from, void *to)
{
    /* no store can change it */
    const PoolPlane local = *plane, *p = &local;
    const Elem *dy = from;
    Elem *dx = to;
    for (int row = 0; row < p->h; ++row)
        for (int col = 0; col < p->w; ++col, dx += p->lanes) {
            Window w = windows_of(p, row, col);
            for (int lane = 0; lane < p->lanes; lane += SIMD_LANES) {
                float sum[SIMD_LANES] = {0};
                for (int i = w.row0; i < w.row1; ++i)
                    for (int j = w.col0; j < w.col1; ++j)
                        sum_lanes(sum, dy + ((int64_t)i * p->q + j) * p->lanes + lane,
                                  lanes_from(p, lane), share_of(window_at(p, i, j)));
                put_lanes(dx + lane, sum, lanes_from(p, lane), 1.0f);
            }
        }
}

/* The mean of `parts` vectors in each of `rows` rows. Sums of few numbers, `chains` of them beside
 * each other, keep large planes exact and do not wait for each other. */
SIMD_INLINE void mean_parts(const Elem *x, int64_t rows, int64_t stride, int parts, int chains,
                            Vf *total)
{
    enum { RUN = 128 };
    for (int k = 0; k < parts; ++k) total[k] = (Vf){0};
    for (int64_t r = 0; r < rows;) {
        int64_t end = rows - r < (int64_t)RUN * chains ? rows : r + (int64_t)RUN * chains;
        Vf sum[PARTS < 4 ? 4 : PARTS] = {{0}};
        for (; r + chains <= end; r += chains)
            for (int k = 0; k < parts * chains; ++k)
                sum[k] += elems_load(x + (r + k / parts) * stride + k % parts * VECTOR);
        for (; r < end; ++r)
            for (int k = 0; k < parts; ++k) sum[k] += elems_load(x + r * stride + k * VECTOR);
        for (int k = 0; k < parts * chains; ++k) total[k % parts] += sum[k];
    }
}

/* A plain plane: a row is a vector, and what is left a part of one. */
static float mean_plain(const Elem *x, int64_t n)
{
    Vf sum;
    mean_parts(x, n / VECTOR, VECTOR, 1, 4, &sum);
    double total = 0.0;
    for (int l = 0; l < VECTOR; ++l) total += (double)sum[l];
    for (int64_t i = n / VECTOR * VECTOR; i < n; ++i) total += (double)value_of(x[i]);
    return (float)(total / (double)n);
}

void SIMD_NAME(mean_rows)(const void *values, int64_t rows, int lanes, void *out)
{
    const Elem *x = values;
    Elem *mean = out;
    if (lanes == 1) {
        *mean = elem_of(mean_plain(x, rows));
        return;
    }
    int l = 0;
    for (; l + SIMD_LANES <= lanes; l += SIMD_LANES) {
        Vf sum[PARTS];
        mean_parts(x + l, rows, lanes, PARTS, PARTS < 4 ? 4 / PARTS : 1, sum);
        for (int k = 0; k < PARTS; ++k) elems_store(mean + l + k * VECTOR, sum[k] / (float)rows);
    }
    for (; l + VECTOR <= lanes; l += VECTOR) {
        Vf sum;
        mean_parts(x + l, rows, lanes, 1, 4, &sum);
        elems_store(mean + l, sum / (float)rows);
    }
    for (; l < lanes; ++l) {
        double sum = 0.0;
        for (int64_t r = 0; r < rows; ++r) sum += (double)value_of(x[r * lanes + l]);
        mean[l] = elem_of((float)(sum / (double)rows));
    }
}

/* The first pixel, and then copies of what there is. */
void SIMD_NAME(spread_rows)(void *to, const void *from, int64_t rows, int lanes)
{
    enum { COPY = 2048 };
    const Elem *dy = from;
    Elem *dx = to;
    const float share = 1.0f / (float)rows;
    int64_t all = rows * lanes, done = lanes;
    for (int l = 0; l < lanes; ++l) dx[l] = elem_of(share * value_of(dy[l]));
    while (done < all) {
        int64_t n = done < all - done ? done : all - done;
        if (n > COPY && lanes < COPY) n = COPY / lanes * lanes;
        memcpy(dx + done, dx, (size_t)n * sizeof *dx);
        done += n;
    }
}
