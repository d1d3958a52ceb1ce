/* Average pooling of one plane, and means of rows. A plane's windows are computed in the order of
 * the output, so that sums have a fixed order. */
#include "window.h"

/* Returns 1 divided by the number of pixels in a clipped window. */
SIMD_INLINE float share_of(Window w)
{
    return 1.0f / (float)((w.row1 - w.row0) * (w.col1 - w.col0));
}

/* Returns, for each lane of a vector, the mean of rows x cols pixels from x on. step, before: as in
 * load_step. */
SIMD_INLINE Vf mean_of(const PoolPlane *p, int rows, int cols, int step, bool before, const Elem *x)
{
    Vf sum = {0};
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c)
            sum += load_step(x + ((int64_t)r * p->w + c) * p->lanes, step, before || r || c);
    return sum * (1.0f / (float)(rows * cols));
}

SIMD_INLINE void avg_window(const PoolPlane *p, int i, int j, const Elem *x, Elem *y)
{
    Window w = window_at(p, i, j);
    int rows = w.row1 - w.row0, cols = w.col1 - w.col0, l = 0;
    const Elem *from = x + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
    y += ((int64_t)i * p->out_columns + j) * p->lanes;
    for (; l + VECTOR <= p->lanes; l += VECTOR)
        elems_store(y + l, mean_of(p, rows, cols, 1, false, from + l));
    for (; l < p->lanes; ++l) {
        float sum = 0.0f;
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                sum += value_of(from[((int64_t)r * p->w + c) * p->lanes + l]);
        y[l] = elem_of(sum * share_of(w));
    }
}

/* Computes the whole windows `from` to `to` - 1 of row i of windows in a plain plane, in vectors;
 * the last vector may overlap the one before it. step: the stride along the row, 1 or 2. */
SIMD_INLINE void avg_row(const PoolPlane *p, int i, int from, int to, int step, const Elem *x,
                         Elem *y)
{
    Window w = window_at(p, i, from);
    const Elem *row = x + (int64_t)w.row0 * p->w - p->pad[1];
    for (int j = from; j < to; j += VECTOR) {
        int first = j + VECTOR <= to ? j : to - VECTOR;
        const Elem *at = row + (int64_t)first * step;
        Vf mean = mean_of(p, w.row1 - w.row0, p->kernel[1], step, at > x, at);
        elems_store(y + (int64_t)i * p->out_columns + first, mean);
    }
}

void SIMD_NAME(avg_pool)(const PoolPlane *plane, const void *in, void *out)
{
    /* a local copy, so that the compiler knows that no store changes it */
    const PoolPlane local = *plane, *p = &local;
    int from, to, step = p->stride[1];
    whole_windows(p, 1, p->w, p->out_columns, &from, &to);
    bool in_vectors = p->lanes == 1 && step <= 2 && to - from >= VECTOR && p->w >= 2 * VECTOR;
    if (!in_vectors) from = to = p->out_columns;
    for (int i = 0; i < p->out_rows; ++i) {
        for (int j = 0; j < from; ++j) avg_window(p, i, j, in, out);
        if (in_vectors && step == 1) avg_row(p, i, from, to, 1, in, out);
        if (in_vectors && step == 2) avg_row(p, i, from, to, 2, in, out);
        for (int j = to; j < p->out_columns; ++j) avg_window(p, i, j, in, out);
    }
}

/* Writes a window's dy, divided by its number of pixels, to each of its pixels, which no other
 * window contains. */
SIMD_INLINE void avg_spread(const PoolPlane *p, int i, int j, const Elem *dy, Elem *dx)
{
    Window w = window_at(p, i, j);
    const float share = share_of(w);
    dy += ((int64_t)i * p->out_columns + j) * p->lanes;
    for (int r = w.row0; r < w.row1; ++r)
        for (int c = w.col0; c < w.col1; ++c) {
            Elem *to = dx + ((int64_t)r * p->w + c) * p->lanes;
            int l = 0;
            for (; l + VECTOR <= p->lanes; l += VECTOR)
                elems_store(to + l, elems_load(dy + l) * share);
            for (; l < p->lanes; ++l) to[l] = elem_of(value_of(dy[l]) * share);
        }
}

/* Computes what avg_spread computes, for VECTOR neighbouring windows of 2 x 2 in row i of a plain
 * plane, from window `first` on. */
SIMD_INLINE void avg_spread_pairs(const PoolPlane *p, int i, int first, const Elem *dy, Elem *dx)
{
    Vf each = elems_load(dy + (int64_t)i * p->out_columns + first) * 0.25f;
    Elem *to = dx + (int64_t)i * 2 * p->w + 2 * first;
    for (int r = 0; r < 2; ++r) {
        elems_store(to + (int64_t)r * p->w, VECTOR_FIRST(each, each));
        elems_store(to + (int64_t)r * p->w + VECTOR, VECTOR_SECOND(each, each));
    }
}

/* Computes dx of one pixel: the sum of the shares of all windows that contain it. */
SIMD_INLINE void avg_gather(const PoolPlane *p, int row, int col, const Elem *dy, Elem *dx)
{
    Window w = windows_of(p, row, col);
    dx += ((int64_t)row * p->w + col) * p->lanes;
    for (int lane = 0; lane < p->lanes; lane += SIMD_LANES) {
        int lanes = p->lanes - lane < SIMD_LANES ? p->lanes - lane : SIMD_LANES;
        float sum[SIMD_LANES] = {0};
        for (int i = w.row0; i < w.row1; ++i)
            for (int j = w.col0; j < w.col1; ++j) {
                const float share = share_of(window_at(p, i, j));
                const Elem *from = dy + ((int64_t)i * p->out_columns + j) * p->lanes + lane;
#pragma omp simd
                for (int l = 0; l < lanes; ++l) sum[l] = fused(value_of(from[l]), share, sum[l]);
            }
#pragma omp simd
        for (int l = 0; l < lanes; ++l) dx[lane + l] = elem_of(sum[l]);
    }
}

void SIMD_NAME(avg_pool_grad)(const PoolPlane *plane, const void *from, void *to)
{
    /* a local copy, so that the compiler knows that no store changes it */
    const PoolPlane local = *plane, *p = &local;
    Elem *dx = to;
    int by_pairs = windows_by_pairs(p);
    if (!windows_disjoint(p)) {
        for (int row = 0; row < p->h; ++row)
            for (int col = 0; col < p->w; ++col) avg_gather(p, row, col, from, dx);
        return;
    }
    if (!windows_tile_plane(p))
        memset(dx, 0, sizeof *dx * (size_t)p->h * (size_t)p->w * (size_t)p->lanes);
    for (int i = 0; i < p->out_rows; ++i) {
        for (int j = 0; j < by_pairs; j += VECTOR)
            avg_spread_pairs(p, i, j + VECTOR <= by_pairs ? j : by_pairs - VECTOR, from, dx);
        for (int j = by_pairs; j < p->out_columns; ++j) avg_spread(p, i, j, from, dx);
    }
}

/* Writes the sums of `parts` vectors over `rows` rows to total[]. Each partial sum is over about
 * RUN rows at most, which keeps the sums of large planes accurate. The `chains` independent partial
 * sums hide the latency of additions. */
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

/* Returns the mean of a plain plane of n pixels. */
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

void SIMD_NAME(spread_rows)(void *to, const void *from, int64_t rows, int lanes)
{
    const Elem *dy = from;
    Elem *dx = to;
    const float share = 1.0f / (float)rows;
    if (lanes == 1) {
        const Vf none = {0}, each = none + share * value_of(*dy);
        int64_t i = 0;
        for (; i + VECTOR <= rows; i += VECTOR) elems_store(dx + i, each);
        for (; i < rows; ++i) dx[i] = elem_of(share * value_of(*dy));
        return;
    }
    int l = 0;
    for (; l + VECTOR <= lanes; l += VECTOR) {
        const Vf each = share * elems_load(dy + l);
        for (int64_t r = 0; r < rows; ++r) elems_store(dx + r * lanes + l, each);
    }
    for (; l < lanes; ++l)
        for (int64_t r = 0; r < rows; ++r) dx[r * lanes + l] = elem_of(share * value_of(dy[l]));
}
