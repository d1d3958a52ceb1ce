/* The shared code of the pooling kernels: windows and their pixels. A window that extends beyond
 * the plane is clipped to it. A window that lies completely in the plane is called whole. Only
 * pool.c, max_pool.c and max_pool_grad.c include this file. */
#ifndef WEFT_TENSOR_WINDOW_H
#define WEFT_TENSOR_WINDOW_H

#include "vector.h"

/* A rectangle of pixels (window_at), or of windows (windows_of): rows row0 .. row1 - 1 and columns
 * col0 .. col1 - 1. */
typedef struct Window {
    int row0, row1, col0, col1;
} Window;

/* Sets *low and *high: along a dimension of `size` pixels, window number `window` contains the
 * pixels *low .. *high - 1. */
SIMD_INLINE void clip_window(int window, int kernel, int stride, int pad, int size, int *low,
                             int *high)
{
    int from = window * stride - pad, to = from + kernel;
    *low = from < 0 ? 0 : from;
    *high = to > size ? size : to;
}

/* Returns the pixels of the window in row i and column j of windows, clipped to the plane. */
SIMD_INLINE Window window_at(const PoolPlane *p, int i, int j)
{
    Window w;
    clip_window(i, p->kernel[0], p->stride[0], p->pad[0], p->h, &w.row0, &w.row1);
    clip_window(j, p->kernel[1], p->stride[1], p->pad[1], p->w, &w.col0, &w.col1);
    return w;
}

/* Returns the windows that contain input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

/* Loads the VECTOR elements x[0], x[step], ...; step is 1 or 2. With step 2, the elements between
 * them are read, too, and one more: the one before x if `before` is true, else the one after the
 * last. */
SIMD_INLINE Vf load_step(const Elem *x, int step, bool before)
{
    return step == 1 ? elems_load(x) : elems_load_even(x, before);
}

/* Sets *from and *to: the windows *from .. *to - 1 along dimension d are whole. If no window is
 * whole, both are set to `windows`. pixels, windows: number of pixels and of windows along d. */
SIMD_INLINE void whole_windows(const PoolPlane *p, int d, int pixels, int windows, int *from,
                               int *to)
{
    *from = (p->pad[d] + p->stride[d] - 1) / p->stride[d];
    *to = (pixels - p->kernel[d] + p->pad[d]) / p->stride[d] + 1;
    if (*to > windows) *to = windows;
    if (*from >= *to) *from = *to = windows;
}

/* Returns whether no two windows overlap, so that each pixel is in at most one window. */
SIMD_INLINE bool windows_disjoint(const PoolPlane *p)
{
    return p->stride[0] >= p->kernel[0] && p->stride[1] >= p->kernel[1];
}

/* Returns whether each pixel is in exactly one window, and all windows are whole. */
SIMD_INLINE bool windows_tile_plane(const PoolPlane *p)
{
    return p->stride[0] == p->kernel[0] && p->stride[1] == p->kernel[1] && p->pad[0] == 0 &&
           p->pad[1] == 0 && p->out_rows * p->stride[0] == p->h &&
           p->out_columns * p->stride[1] == p->w;
}

/* Returns the number of windows in a row if they are processed as vectors of neighbouring windows
 * of 2 x 2: if the plane is plain, the windows cover it without gaps, and a row has at least VECTOR
 * windows. Otherwise returns 0. */
SIMD_INLINE int windows_by_pairs(const PoolPlane *p)
{
    bool pairs = p->lanes == 1 && p->kernel[0] == 2 && p->kernel[1] == 2 && windows_tile_plane(p);
    return pairs && p->out_columns >= VECTOR ? p->out_columns : 0;
}

/* Returns whether the lanes of a pixel fill complete vectors. */
SIMD_INLINE bool by_lanes(const PoolPlane *p)
{
    return p->lanes >= VECTOR && p->lanes % VECTOR == 0;
}

/* Returns the position of input pixel (row, col) in window (i, j), counted row by row. */
SIMD_INLINE int place_in(const PoolPlane *p, int i, int j, int row, int col)
{
    int r = row + p->pad[0] - i * p->stride[0], c = col + p->pad[1] - j * p->stride[1];
    return r * p->kernel[1] + c;
}

SIMD_INLINE bool is_kernel(const PoolPlane *p, int size)
{
    return p->kernel[0] == size && p->kernel[1] == size;
}

/* Prefetches, from lane l on, two neighbouring pixels in each of two rows that are `row` elements
 * apart; in a plain plane, two vectors in each row. Large images are bound by memory latency.
 * write: the pixels will be written. */
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
