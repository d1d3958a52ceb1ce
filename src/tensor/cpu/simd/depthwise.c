/* Depthwise 3x3 convolutions of planes whose channels are one vector. Where a window extends beyond
 * the upper or lower edge of the image, a row of zeros is read in place of the missing row. Where
 * it extends beyond the left or right edge, only the columns of the kernel that are inside are
 * used. */
#include "vector.h"

#ifdef __AVX2__
enum { KERNEL = DEPTHWISE_KERNEL, TAPS = DEPTHWISE_TAPS, PIXELS = 4, PAD = 1 };
/* approximate number of pixels in a partial sum of dw; bounds its rounding error */
enum { CHAIN = 256 };

SIMD_INLINE Vf load(const float *p)
{
    Vf v;
    VECTOR_LOAD(v, p);
    return v;
}

/* Sets row[] to the rows of x that row p of y reads. Each pointer points one pixel before the first
 * column of its row, the place of the padding; nothing is read there. */
SIMD_INLINE void rows_of(const DepthwisePlane *a, const float *x, int64_t p, const int stride,
                         const float *row[KERNEL])
{
#pragma GCC unroll 3
    for (int r = 0; r < KERNEL; ++r) {
        const int64_t i = p * stride - PAD + r;
        row[r] = (i < 0 || i >= a->h ? a->zeros : x + i * a->w * VECTOR) - PAD * VECTOR;
    }
}

/* Returns the number of windows of a row up to the first one that extends beyond the right edge. */
SIMD_INLINE int64_t inner_end(const DepthwisePlane *a, const int stride)
{
    return a->w < KERNEL - PAD ? 0 : (a->w - (KERNEL - PAD)) / stride + 1;
}

/* ---- forward, and the data's gradient with stride 1 ---- */
/* Computes `pixels` neighbouring pixels of a row of y, from column q on, with columns `from` to
 * `to` - 1 of the kernel. start: the bias, or 0. */
SIMD_INLINE void forward_pixels(const float *const row[KERNEL], const Vf w[TAPS], Vf start,
                                bool relu, int64_t q, float *y, const int stride, const int pixels,
                                const int from, const int to)
{
    const Vf zero = {0};
    Vf sum[PIXELS];
#pragma GCC unroll 4
    for (int i = 0; i < pixels; ++i) sum[i] = start;
#pragma GCC unroll 3
    for (int r = 0; r < KERNEL; ++r)
#pragma GCC unroll 3
        for (int t = from; t < to; ++t)
#pragma GCC unroll 4
            for (int i = 0; i < pixels; ++i)
                sum[i] += load(row[r] + ((q + i) * stride + t) * VECTOR) * w[r * KERNEL + t];
#pragma GCC unroll 4
    for (int i = 0; i < pixels; ++i) {
        if (relu) sum[i] = VECTOR_KEEP(sum[i], ~(Vi)(sum[i] < zero));
        VECTOR_STORE(y + (q + i) * VECTOR, sum[i]);
    }
}

SIMD_INLINE void forward(const DepthwisePlane *a, const float *x, const Vf w[TAPS], Vf start,
                         bool relu, float *y, const int stride)
{
    const int64_t end = inner_end(a, stride);
    for (int64_t p = 0; p < a->p; ++p, y += a->q * VECTOR) {
        const float *row[KERNEL];
        int64_t q = 1;
        rows_of(a, x, p, stride, row);
        if (end > 0)
            forward_pixels(row, w, start, relu, 0, y, stride, 1, 1, KERNEL);
        else
            forward_pixels(row, w, start, relu, 0, y, stride, 1, 1, KERNEL - 1);
        for (; q + PIXELS <= end; q += PIXELS)
            forward_pixels(row, w, start, relu, q, y, stride, PIXELS, 0, KERNEL);
        for (; q < end; ++q) forward_pixels(row, w, start, relu, q, y, stride, 1, 0, KERNEL);
        if (q < a->q) forward_pixels(row, w, start, relu, q, y, stride, 1, 0, KERNEL - 1);
    }
}

void SIMD_FLOAT_NAME(depthwise_forward)(const DepthwisePlane *a, const float *x, const float *w,
                                        const float *bias, bool relu, float *y)
{
    Vf tap[TAPS], start = {0};
    memcpy(tap, w, sizeof tap);
    if (bias) VECTOR_LOAD(start, bias);
    if (a->stride == 1)
        forward(a, x, tap, start, relu, y, 1);
    else
        forward(a, x, tap, start, relu, y, 2);
}

/* ---- the data's gradient with stride 2 ---- */
/* Computes the 2x2 pixels of dx from (2 i, 2 j) on. Pixels of even rows are read by the kernel's
 * middle row only, those of odd rows by its two outer rows; the same holds for columns. at_edge:
 * the square may extend beyond the image, or its windows beyond dy. */
SIMD_INLINE void data_square(const DepthwisePlane *a, const float *dy, const Vf w[TAPS], int64_t i,
                             int64_t j, float *dx, const bool at_edge)
{
    const Vf zero = {0};
    const bool below = !at_edge || i + 1 < a->p, right = !at_edge || j + 1 < a->q;
    const float *from = dy + (i * a->q + j) * VECTOR;
    float *to = dx + (2 * i * a->w + 2 * j) * VECTOR;
    const Vf d00 = load(from), d01 = right ? load(from + VECTOR) : zero;
    const Vf d10 = below ? load(from + a->q * VECTOR) : zero;
    const Vf d11 = below && right ? load(from + (a->q + 1) * VECTOR) : zero;
    const Vf y00 = d00 * w[4], y01 = d01 * w[3] + d00 * w[5], y10 = d10 * w[1] + d00 * w[7];
    const Vf y11 = d11 * w[0] + d10 * w[2] + (d01 * w[6] + d00 * w[8]);
    const bool odd_row = !at_edge || 2 * i + 1 < a->h, odd_column = !at_edge || 2 * j + 1 < a->w;
    VECTOR_STORE(to, y00);
    if (odd_column) VECTOR_STORE(to + VECTOR, y01);
    if (odd_row) VECTOR_STORE(to + a->w * VECTOR, y10);
    if (odd_row && odd_column) VECTOR_STORE(to + (a->w + 1) * VECTOR, y11);
}

void SIMD_FLOAT_NAME(depthwise_data)(const DepthwisePlane *a, const float *dy, const float *w,
                                     float *dx)
{
    const Vf zero = {0};
    Vf tap[TAPS];
    if (a->stride == 1) {
        for (int k = 0; k < TAPS; ++k) tap[k] = load(w + (TAPS - 1 - k) * VECTOR);
        forward(a, dy, tap, zero, false, dx, 1);
        return;
    }
    memcpy(tap, w, sizeof tap);
    for (int64_t i = 0; i < a->p; ++i) {
        int64_t j = 0;
        if (i + 1 < a->p)
            for (; j + 1 < a->q; ++j) data_square(a, dy, tap, i, j, dx, false);
        for (; j < a->q; ++j) data_square(a, dy, tap, i, j, dx, true);
    }
}

/* ---- the weight's gradient ---- */
/* Adds to `sum` the contribution of one pixel of dy, whose value is d, to the taps in columns
 * `from` to `to` - 1 of the kernel. column: the column of x at which the window begins, plus
 * PAD. */
SIMD_INLINE void weight_pixel(const float *const row[KERNEL], Vf d, int64_t column, Vf sum[TAPS],
                              const int from, const int to)
{
#pragma GCC unroll 3
    for (int r = 0; r < KERNEL; ++r)
#pragma GCC unroll 3
        for (int t = from; t < to; ++t)
            sum[r * KERNEL + t] += d * load(row[r] + (column + t) * VECTOR);
}

/* Adds the contributions of rows `from` to `to` - 1 of dy to dw and db. */
SIMD_INLINE void weight_rows(const DepthwisePlane *a, const float *x, const float *dy, int64_t from,
                             int64_t to, Vf dw[TAPS], Vf *db, const int stride)
{
    const int64_t end = inner_end(a, stride);
    Vf sum[TAPS] = {{0}}, total = {0};
    for (int64_t p = from; p < to; ++p) {
        const float *row[KERNEL], *g = dy + p * a->q * VECTOR;
        Vf d = load(g);
        int64_t q = 1;
        rows_of(a, x, p, stride, row);
        total += d;
        if (end > 0)
            weight_pixel(row, d, 0, sum, 1, KERNEL);
        else
            weight_pixel(row, d, 0, sum, 1, KERNEL - 1);
        for (; q < end; ++q) {
            d = load(g + q * VECTOR);
            total += d;
            weight_pixel(row, d, q * stride, sum, 0, KERNEL);
        }
        if (q >= a->q) continue;
        d = load(g + q * VECTOR);
        total += d;
        weight_pixel(row, d, q * stride, sum, 0, KERNEL - 1);
    }
#pragma GCC unroll 9
    for (int k = 0; k < TAPS; ++k) dw[k] += sum[k];
    *db += total;
}

SIMD_INLINE void weight(const DepthwisePlane *a, const float *x, const float *dy, Vf dw[TAPS],
                        Vf *db, const int stride)
{
    const int64_t each = CHAIN / a->q + 1;
    for (int64_t p = 0; p < a->p; p += each)
        weight_rows(a, x, dy, p, p + each < a->p ? p + each : a->p, dw, db, stride);
}

void SIMD_FLOAT_NAME(depthwise_weight)(const DepthwisePlane *a, const float *x, const float *dy,
                                       float *dw, float *db)
{
    Vf sum[TAPS] = {{0}}, total = {0};
    if (a->stride == 1)
        weight(a, x, dy, sum, &total, 1);
    else
        weight(a, x, dy, sum, &total, 2);
    memcpy(dw, sum, sizeof sum);
    VECTOR_STORE(db, total);
}
#endif
