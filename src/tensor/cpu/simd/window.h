/* What pooling kernels share: windows, clipped to the plane. Included by pool.c and max_pool.c
 * only. */
#ifndef WEFT_TENSOR_WINDOW_H
#define WEFT_TENSOR_WINDOW_H

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

/* The windows that hold input pixel (row, col). */
SIMD_INLINE Window windows_of(const PoolPlane *p, int row, int col)
{
    return (Window){p->row_low[row], p->row_high[row] + 1, p->col_low[col], p->col_high[col] + 1};
}

#endif
