/* Pooling of one plane. Every output pixel, and in the gradients every input pixel, is gathered in registers from the
 * windows that hold it and written once, so no order of threads can show. */
#include "vector.h"

typedef struct Window {
    int row0, row1, col0, col1; /* half open, inside the plane */
} Window;

SIMD_INLINE void clip_window(int out, int kernel, int stride, int pad, int size, int *low, int *high)
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

SIMD_INLINE void max_vector(const PoolPlane *p, Window w, int place, const float *x, float *y,
                            uint8_t *index)
{
    Vf best, zero = {0};
    Vi at = (Vi)zero + place;
    VECTOR_LOAD(best, x + ((int64_t)w.row0 * p->w + w.col0) * p->lanes);
    for (int r = w.row0; r < w.row1; ++r)
        for (int c = w.col0; c < w.col1; ++c) {
            Vf v;
            VECTOR_LOAD(v, x + ((int64_t)r * p->w + c) * p->lanes);
            Vi here = (Vi)zero + (place + (r - w.row0) * p->kernel[1] + (c - w.col0));
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

static void max_one(const PoolPlane *p, Window w, int place, const float *x, float *y,
                    uint8_t *index)
{
    float best = x[((int64_t)w.row0 * p->w + w.col0) * p->lanes];
    int at = place;
    for (int r = w.row0; r < w.row1; ++r)
        for (int c = w.col0; c < w.col1; ++c) {
            float v = x[((int64_t)r * p->w + c) * p->lanes];
            bool more = v > best || v != v;
            best = more ? v : best;
            at = more ? place + (r - w.row0) * p->kernel[1] + (c - w.col0) : at;
        }
    bool cut = p->relu && best <= 0.0f;
    *y = cut ? 0.0f : best;
    *index = (uint8_t)(cut ? POOL_CUT : at);
}

void SIMD_NAME(max_pool)(const PoolPlane *p, const float *x, float *y, uint8_t *index)
{
    for (int i = 0; i < p->p; ++i)
        for (int j = 0; j < p->q; ++j) {
            Window w = window_at(p, i, j);
            int64_t out = ((int64_t)i * p->q + j) * p->lanes;
            int place = place_in(p, i, j, w.row0, w.col0), l = 0;
            for (; l + VECTOR <= p->lanes; l += VECTOR)
                max_vector(p, w, place, x + l, y + out + l, index + out + l);
            for (; l < p->lanes; ++l) max_one(p, w, place, x + l, y + out + l, index + out + l);
        }
}

/* The windows that hold input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

void SIMD_NAME(max_pool_grad)(const PoolPlane *p, const float *dy, const uint8_t *index, float *dx)
{
    for (int row = 0; row < p->h; ++row)
        for (int col = 0; col < p->w; ++col) {
            Window w = windows_of(p, row, col);
            float *out = dx + ((int64_t)row * p->w + col) * p->lanes;
            int l = 0;
            for (; l + VECTOR <= p->lanes; l += VECTOR) {
                Vf sum = {0};
                for (int i = w.row0; i < w.row1; ++i)
                    for (int j = w.col0; j < w.col1; ++j) {
                        int64_t from = ((int64_t)i * p->q + j) * p->lanes + l;
                        Vf g;
                        Vb bytes;
                        VECTOR_LOAD(g, dy + from);
                        VECTOR_LOAD(bytes, index + from);
                        Vi here = __builtin_convertvector(bytes, Vi) == place_in(p, i, j, row, col);
                        sum += VECTOR_KEEP(g, here);
                    }
                VECTOR_STORE(out + l, sum);
            }
            for (; l < p->lanes; ++l) {
                float sum = 0.0f;
                for (int i = w.row0; i < w.row1; ++i)
                    for (int j = w.col0; j < w.col1; ++j) {
                        int64_t from = ((int64_t)i * p->q + j) * p->lanes + l;
                        sum += index[from] == place_in(p, i, j, row, col) ? dy[from] : 0.0f;
                    }
                out[l] = sum;
            }
        }
}

SIMD_INLINE float share_of(Window w)
{
    return 1.0f / (float)((w.row1 - w.row0) * (w.col1 - w.col0));
}

void SIMD_NAME(avg_pool)(const PoolPlane *p, const float *x, float *y)
{
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

void SIMD_NAME(avg_pool_grad)(const PoolPlane *p, const float *dy, float *dx)
{
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
