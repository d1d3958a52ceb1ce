/* Pooling of one plane. Windows are taken in the order of the output, by one thread, so sums have one order. */
#include "vector.h"

typedef struct Window {
    int row0, row1, col0, col1; /* half open, inside the plane */
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
SIMD_INLINE void max_vector(const PoolPlane *p, int rows, int cols, int place, const float *x,
                            float *y, uint8_t *index)
{
    const Vf zero = {0};
    Vf best;
    Vi at = (Vi)zero + place;
    VECTOR_LOAD(best, x);
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            Vf v;
            VECTOR_LOAD(v, x + ((int64_t)r * p->w + c) * p->lanes);
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
    VECTOR_STORE(y, best);
    VECTOR_STORE(index, bytes);
}

static void max_one(const PoolPlane *p, int rows, int cols, int place, const float *x, float *y,
                    uint8_t *index)
{
    float best = x[0];
    int at = place;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            float v = x[((int64_t)r * p->w + c) * p->lanes];
            bool more = v > best || v != v;
            best = more ? v : best;
            at = more ? place + r * p->kernel[1] + c : at;
        }
    bool cut = p->relu && best <= 0.0f;
    *y = cut ? 0.0f : best;
    *index = (uint8_t)(cut ? POOL_CUT : at);
}

/* All lanes of one window. Its size is a constant in the common cases. */
SIMD_INLINE void max_lanes(const PoolPlane *p, int rows, int cols, int place, const float *x,
                           float *y, uint8_t *index)
{
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR)
        max_vector(p, rows, cols, place, x + l, y + l, index + l);
    for (; l < p->lanes; ++l) max_one(p, rows, cols, place, x + l, y + l, index + l);
}

void SIMD_NAME(max_pool)(const PoolPlane *plane, const float *x, float *y, uint8_t *index)
{
    const PoolPlane local = *plane, *p = &local; /* no store can change it */
    for (int i = 0; i < p->p; ++i)
        for (int j = 0; j < p->q; ++j) {
            Window w = window_at(p, i, j);
            int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
            int place = place_in(p, i, j, w.row0, w.col0);
            const float *from = x + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
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

/* Adds dy of one window to the pixel that its index names. */
SIMD_INLINE void scatter_lanes(const PoolPlane *p, int rows, int cols, int place, const float *dy,
                               const uint8_t *index, float *dx)
{
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR) {
        Vf g;
        Vb bytes;
        VECTOR_LOAD(g, dy + l);
        VECTOR_LOAD(bytes, index + l);
        Vi at = __builtin_convertvector(bytes, Vi);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c) {
                float *to = dx + ((int64_t)r * p->w + c) * p->lanes + l;
                Vf sum;
                VECTOR_LOAD(sum, to);
                sum += VECTOR_KEEP(g, at == place + r * p->kernel[1] + c);
                VECTOR_STORE(to, sum);
            }
    }
    for (; l < p->lanes; ++l) {
        int at = index[l] - place;
        if (index[l] != POOL_CUT)
            dx[((int64_t)(at / p->kernel[1]) * p->w + at % p->kernel[1]) * p->lanes + l] += dy[l];
    }
}

void SIMD_NAME(max_pool_grad)(const PoolPlane *plane, const float *dy, const uint8_t *index,
                              float *dx)
{
    const PoolPlane local = *plane, *p = &local; /* no store can change it */
    const int64_t row = (int64_t)p->w * p->lanes;
    int cleared = 0; /* rows: cleared just before their first window, while they are near */
    for (int i = 0; i < p->p; ++i) {
        int last = window_at(p, i, 0).row1;
        for (; cleared < last; ++cleared) memset(dx + cleared * row, 0, (size_t)row * sizeof *dx);
        for (int j = 0; j < p->q; ++j) {
            Window w = window_at(p, i, j);
            int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
            int place = place_in(p, i, j, w.row0, w.col0);
            float *to = dx + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
            if (rows == 3 && cols == 3)
                scatter_lanes(p, 3, 3, place, dy, index, to);
            else if (rows == 2 && cols == 2)
                scatter_lanes(p, 2, 2, place, dy, index, to);
            else
                scatter_lanes(p, rows, cols, place, dy, index, to);
            dy += p->lanes;
            index += p->lanes;
        }
    }
    for (; cleared < p->h; ++cleared) memset(dx + cleared * row, 0, (size_t)row * sizeof *dx);
}

/* The windows that hold input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

SIMD_INLINE float share_of(Window w)
{
    return 1.0f / (float)((w.row1 - w.row0) * (w.col1 - w.col0));
}

void SIMD_NAME(avg_pool)(const PoolPlane *plane, const float *x, float *y)
{
    const PoolPlane local = *plane, *p = &local; /* no store can change it */
    for (int i = 0; i < p->p; ++i)
        for (int j = 0; j < p->q; ++j) {
            Window w = window_at(p, i, j);
            float share = share_of(w);
            float *out = y + ((int64_t)i * p->q + j) * p->lanes;
            for (int l = 0; l < p->lanes; ++l) out[l] = 0.0f;
            for (int r = w.row0; r < w.row1; ++r)
                for (int c = w.col0; c < w.col1; ++c) {
                    const float *from = x + ((int64_t)r * p->w + c) * p->lanes;
#pragma omp simd
                    for (int l = 0; l < p->lanes; ++l) out[l] += from[l];
                }
#pragma omp simd
            for (int l = 0; l < p->lanes; ++l) out[l] *= share;
        }
}

void SIMD_NAME(avg_pool_grad)(const PoolPlane *plane, const float *dy, float *dx)
{
    const PoolPlane local = *plane, *p = &local; /* no store can change it */
    for (int row = 0; row < p->h; ++row)
        for (int col = 0; col < p->w; ++col) {
            Window w = windows_of(p, row, col);
            float *out = dx + ((int64_t)row * p->w + col) * p->lanes;
            for (int l = 0; l < p->lanes; ++l) out[l] = 0.0f;
            for (int i = w.row0; i < w.row1; ++i)
                for (int j = w.col0; j < w.col1; ++j) {
                    const float *from = dy + ((int64_t)i * p->q + j) * p->lanes;
                    float share = share_of(window_at(p, i, j));
#pragma omp simd
                    for (int l = 0; l < p->lanes; ++l) out[l] = fused(from[l], share, out[l]);
                }
        }
}

static void mean_16(const float *x, int64_t rows, int64_t stride, float *mean)
{
    Vf sum[PARTS] = {{0}}, total[PARTS] = {{0}};
    for (int64_t r = 0; r < rows; ++r) {
        for (int p = 0; p < PARTS; ++p) {
            Vf v;
            VECTOR_LOAD(v, x + r * stride + p * VECTOR);
            sum[p] += v;
        }
        if (r % 128 == 127 || r + 1 == rows) /* short sums keep large planes exact */
            for (int p = 0; p < PARTS; ++p) {
                total[p] += sum[p];
                sum[p] = (Vf){0};
            }
    }
    for (int p = 0; p < PARTS; ++p) {
        total[p] /= (float)rows;
        VECTOR_STORE(mean + p * VECTOR, total[p]);
    }
}

void SIMD_NAME(mean_rows)(const float *x, int64_t rows, int64_t stride, int lanes, float *mean)
{
    int l = 0;
    for (; l + SIMD_LANES <= lanes; l += SIMD_LANES) mean_16(x + l, rows, stride, mean + l);
    for (; l < lanes; ++l) {
        double sum = 0.0;
        for (int64_t r = 0; r < rows; ++r) sum += x[r * stride + l];
        mean[l] = (float)(sum / (double)rows);
    }
}
