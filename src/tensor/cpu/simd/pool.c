/* Pooling of one plane. Windows are taken in the order of the output, by one thread, so sums have
 * one order. */
#include "vector.h"

typedef struct Window {
    /* half open, inside the plane */
    int row0, row1, col0, col1;
} Window;

SIMD_INLINE void clip_window(int out, int kernel, int stride, int pad, int size, int *low,
                             int *high)
{
    int from = out * stride - pad, to = from + kernel;
    *low = from < 0 ? 0 : from;
    *high = to > size ? size : to;
}

SIMD_INLINE Window window_at(const PoolPlane *p, int i, int j)
{
    Window w;
    clip_window(i, p->kernel[0], p->stride[0], p->pad[0], p->h, &w.row0, &w.row1);
    clip_window(j, p->kernel[1], p->stride[1], p->pad[1], p->w, &w.col0, &w.col1);
    return w;
}

/* Where in the kernel of window (i, j) the input pixel (row, col) lies. */
SIMD_INLINE int place_in(const PoolPlane *p, int i, int j, int row, int col)
{
    int r = row + p->pad[0] - i * p->stride[0], c = col + p->pad[1] - j * p->stride[1];
    return r * p->kernel[1] + c;
}

/* A window of rows x cols pixels from x on; place: that of its first pixel in the kernel. */
SIMD_INLINE void max_vector(const PoolPlane *p, int rows, int cols, int place, const Elem *x,
                            Elem *y, uint8_t *index)
{
    const Vf zero = {0};
    Vf best = elems_load(x);
    Vi at = (Vi)zero + place;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            Vf v = elems_load(x + ((int64_t)r * p->w + c) * p->lanes);
            Vi here = (Vi)zero + (place + r * p->kernel[1] + c);
            Vi more = (v > best) | (v != v);
            best = (Vf)(((Vi)v & more) | ((Vi)best & ~more));
            at = (here & more) | (at & ~more);
        }
    if (p->relu) {
        Vi cut = best <= zero;
        best = VECTOR_KEEP(best, ~cut);
        at = (((Vi)zero + POOL_CUT) & cut) | (at & ~cut);
    }
    Vb bytes = __builtin_convertvector(at, Vb);
    elems_store(y, best);
    VECTOR_STORE(index, bytes);
}

static void max_one(const PoolPlane *p, int rows, int cols, int place, const Elem *x, Elem *y,
                    uint8_t *index)
{
    float best = value_of(x[0]);
    int at = place;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            float v = value_of(x[((int64_t)r * p->w + c) * p->lanes]);
            bool more = v > best || v != v;
            best = more ? v : best;
            at = more ? place + r * p->kernel[1] + c : at;
        }
    bool cut = p->relu && best <= 0.0f;
    *y = elem_of(cut ? 0.0f : best);
    *index = (uint8_t)(cut ? POOL_CUT : at);
}

/* All lanes of one window. Its size is a constant in the common cases. */
SIMD_INLINE void max_lanes(const PoolPlane *p, int rows, int cols, int place, const Elem *x,
                           Elem *y, uint8_t *index)
{
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR)
        max_vector(p, rows, cols, place, x + l, y + l, index + l);
    for (; l < p->lanes; ++l) max_one(p, rows, cols, place, x + l, y + l, index + l);
}

void SIMD_NAME(max_pool)(const PoolPlane *plane, const void *in, void *out, uint8_t *index)
{
    const Elem *x = in;
    Elem *y = out;
    /* no store can change it */
    const PoolPlane local = *plane, *p = &local;
    for (int i = 0; i < p->p; ++i)
        for (int j = 0; j < p->q; ++j) {
            Window w = window_at(p, i, j);
            int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
            int place = place_in(p, i, j, w.row0, w.col0);
            const Elem *from = x + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
            if (rows == 3 && cols == 3)
                max_lanes(p, 3, 3, place, from, y, index);
            else if (rows == 2 && cols == 2)
                max_lanes(p, 2, 2, place, from, y, index);
            else
                max_lanes(p, rows, cols, place, from, y, index);
            y += p->lanes;
            index += p->lanes;
        }
}

/* The windows that hold input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

/* dx of input pixel (row, col): dy of those of its windows w whose maximum it is. dy and index are
 * of the first one. */
SIMD_INLINE void gather_lanes(const PoolPlane *p, Window w, int row, int col, const Elem *dy,
                              const uint8_t *index, Elem *dx)
{
    const int64_t next = (int64_t)p->q * p->lanes;
    const int first = place_in(p, w.row0, w.col0, row, col);
    /* the place falls by */
    const int down = p->stride[0] * p->kernel[1], right = p->stride[1];
    const int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR) {
        Vf sum = {0};
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < cols; ++j) {
                int64_t at = i * next + (int64_t)j * p->lanes + l;
                Vb bytes;
                VECTOR_LOAD(bytes, index + at);
                Vi mine = __builtin_convertvector(bytes, Vi) == first - i * down - j * right;
                sum += VECTOR_KEEP(elems_load(dy + at), mine);
            }
        elems_store(dx + l, sum);
    }
    for (; l < p->lanes; ++l) {
        float sum = 0.0f;
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < cols; ++j) {
                int64_t at = i * next + (int64_t)j * p->lanes + l;
                sum += index[at] == first - i * down - j * right ? value_of(dy[at]) : 0.0f;
            }
        dx[l] = elem_of(sum);
    }
}

void SIMD_NAME(max_pool_grad)(const PoolPlane *plane, const void *from, const uint8_t *index,
                              void *to)
{
    /* no store can change it */
    const PoolPlane local = *plane, *p = &local;
    const Elem *dy = from;
    Elem *dx = to;
    for (int row = 0; row < p->h; ++row)
        for (int col = 0; col < p->w; ++col, dx += p->lanes) {
            Window w = windows_of(p, row, col);
            int64_t at = ((int64_t)w.row0 * p->q + w.col0) * p->lanes;
            gather_lanes(p, w, row, col, dy + at, index + at, dx);
        }
}

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

static void mean_16(const Elem *x, int64_t rows, int64_t stride, Elem *mean)
{
    Vf sum[PARTS] = {{0}}, total[PARTS] = {{0}};
    for (int64_t r = 0; r < rows; ++r) {
        for (int p = 0; p < PARTS; ++p) sum[p] += elems_load(x + r * stride + p * VECTOR);
        /* short sums keep large planes exact */
        if (r % 128 == 127 || r + 1 == rows)
            for (int p = 0; p < PARTS; ++p) {
                total[p] += sum[p];
                sum[p] = (Vf){0};
            }
    }
    for (int p = 0; p < PARTS; ++p) elems_store(mean + p * VECTOR, total[p] / (float)rows);
}

void SIMD_NAME(mean_rows)(const void *values, int64_t rows, int lanes, void *out)
{
    const Elem *x = values;
    Elem *mean = out;
    int l = 0;
    for (; l + SIMD_LANES <= lanes; l += SIMD_LANES) mean_16(x + l, rows, lanes, mean + l);
    for (; l < lanes; ++l) {
        double sum = 0.0;
        for (int64_t r = 0; r < rows; ++r) sum += (double)value_of(x[r * lanes + l]);
        mean[l] = elem_of((float)(sum / (double)rows));
    }
}

void SIMD_NAME(spread_rows)(void *to, const void *from, int64_t rows, int lanes)
{
    const Elem *dy = from;
    Elem *dx = to;
    const float share = 1.0f / (float)rows;
    for (int64_t r = 0; r < rows; ++r, dx += lanes)
#pragma omp simd
        for (int l = 0; l < lanes; ++l) dx[l] = elem_of(share * value_of(dy[l]));
}
