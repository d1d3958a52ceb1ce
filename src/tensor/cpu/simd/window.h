/* Shared by the pooling kernels: windows, clipped to the plane. Only pool.c, max_pool.c and
 * max_pool_grad.c include it. */
#ifndef WEFT_TENSOR_WINDOW_H
#define WEFT_TENSOR_WINDOW_H

#include "vector.h"

typedef struct Window {
    /* half-open ranges of rows and columns: of pixels inside the plane; of windows in windows_of */
    int row0, row1, col0, col1;
} Window;

/* Sets *low and *high: window number `out` contains pixels *low .. *high - 1 of a dimension. */
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

/* Returns the rows and columns of windows that contain input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

/* Loads x[0], x[step], ...; step is 1 or 2. before: with step 2, the element before x may be read;
 * false: the one after the last element may be. */
SIMD_INLINE Vf load_step(const Elem *x, int step, bool before)
{
    return step == 1 ? elems_load(x) : elems_load_even(x, before);
}

/* Sets *from and *to: of the `out` windows along dimension d, *from .. *to - 1 lie completely
 * within the `in` pixels. */
SIMD_INLINE void whole_windows(const PoolPlane *p, int d, int in, int out, int *from, int *to)
{
    *from = (p->pad[d] + p->stride[d] - 1) / p->stride[d];
    *to = (in - p->kernel[d] + p->pad[d]) / p->stride[d] + 1;
    if (*to > out) *to = out;
    if (*from >= *to) *from = *to = out;
}

/* Whether windows do not overlap, so that each pixel is in at most one window. */
SIMD_INLINE bool windows_disjoint(const PoolPlane *p)
{
    return p->stride[0] >= p->kernel[0] && p->stride[1] >= p->kernel[1];
}

SIMD_INLINE bool windows_tile_plane(const PoolPlane *p)
{
    return p->stride[0] == p->kernel[0] && p->stride[1] == p->kernel[1] && p->pad[0] == 0 &&
           p->pad[1] == 0 && p->p * p->stride[0] == p->h && p->q * p->stride[1] == p->w;
}

/* Returns the number of windows of a row whose pixels are loaded or stored as vectors of pairs: all
 * of them if the plane is plain, 2 x 2 windows cover it without gaps, and a row has at least VECTOR
 * windows; else 0. */
SIMD_INLINE int windows_by_pairs(const PoolPlane *p)
{
    bool pairs = p->lanes == 1 && p->kernel[0] == 2 && p->kernel[1] == 2 && windows_tile_plane(p);
    return pairs && p->q >= VECTOR ? p->q : 0;
}

/* Whether the lanes of a pixel fill whole vectors. */
SIMD_INLINE bool by_lanes(const PoolPlane *p)
{
    return p->lanes >= VECTOR && p->lanes % VECTOR == 0;
}

/* The position of input pixel (row, col) in the kernel of window (i, j). */
SIMD_INLINE int place_in(const PoolPlane *p, int i, int j, int row, int col)
{
    int r = row + p->pad[0] - i * p->stride[0], c = col + p->pad[1] - j * p->stride[1];
    return r * p->kernel[1] + c;
}

SIMD_INLINE bool is_kernel(const PoolPlane *p, int size)
{
    return p->kernel[0] == size && p->kernel[1] == size;
}

/* Prefetches lanes from l on of two pixels in each of two rows (of a plain plane: two vectors),
 * because large images are bound by memory latency. */
SIMD_INLINE void pixels_fetch(const Elem *x, int64_t row, int lanes, int l, bool write)
{
    const int line = (int)(64 / sizeof *x), last = lanes > 1 ? 2 * lanes : 2 * VECTOR;
    if (l % line != 0) return;
    for (int r = 0; r < 2; ++r)
        for (int i = 0; i < last; i += lanes < line ? line : lanes)
            if (write)
                __builtin_prefetch(x + r * row + i, 1);
            else
                __builtin_prefetch(x + r * row + i, 0);
}

#endif
