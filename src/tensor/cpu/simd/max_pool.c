/* Max pooling of one plane. If each pixel has several lanes, a vector holds lanes of one pixel. In
 * a plain plane with stride 2 along rows, a vector holds neighbouring windows of one row. In other
 * plain planes, windows are computed one by one. For each window, the position of the maximum in
 * the window is stored in a byte: if several pixels have the largest value, the position of the
 * first; if pixels are NaN, the position of the last NaN. */
#include "window.h"

/* Stores a vector of maxima and their positions in the window. With relu, a maximum of at most 0 is
 * stored as 0, and its position as POOL_NO_POSITION. */
SIMD_INLINE void max_store(const PoolPlane *p, Vf best, Vi place, Elem *y, uint8_t *index)
{
    if (p->relu) {
        Vi cut = best <= (Vf){0};
        best = VECTOR_KEEP(best, ~cut);
        place = (((Vi){0} + POOL_NO_POSITION) & cut) | (place & ~cut);
    }
    elems_store(y, best);
    bytes_store(index, place);
}

/* Computes a vector of maxima of windows of rows x cols pixels, which may be NaN. x: the first
 * pixel of the window in the vector's first lane, with the arguments of load_step; place: position
 * of that pixel in the window, 0 unless the window is clipped at the upper or left edge. */
static void max_vector_any(const PoolPlane *p, int rows, int cols, int place, int step, bool before,
                           const Elem *x, Elem *y, uint8_t *index)
{
    Vf best = load_step(x, step, before);
    Vi best_place = (Vi){0} + place;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            if (r == 0 && c == 0) continue;
            Vf v = load_step(x + ((int64_t)r * p->w + c) * p->lanes, step, true);
            Vi here = (Vi){0} + (place + r * p->kernel[1] + c);
            Vi more = (v > best) | (v != v);
            best = (Vf)(((Vi)v & more) | ((Vi)best & ~more));
            best_place = (here & more) | (best_place & ~more);
        }
    max_store(p, best, best_place, y, index);
}

/* Computes a vector of maxima of whole windows of `size` x `size` pixels; size is a compile-time
 * constant of at most 3. Finds the maxima first, then their positions. The sum of a window's pixels
 * is NaN if one of them is NaN; max_vector_any then computes the maxima. (A sum of infinities of
 * both signs is NaN, too.) */
SIMD_INLINE void max_vector(const PoolPlane *p, int size, int step, bool before, const Elem *x,
                            Elem *y, uint8_t *index)
{
    enum { MOST = 9 };
    Vf tap[MOST], best, sum;
    sum = best = tap[0] = load_step(x, step, before);
#pragma GCC unroll 9
    for (int k = 1; k < size * size; ++k) {
        const Elem *from = x + ((int64_t)(k / size) * p->w + k % size) * p->lanes;
        tap[k] = load_step(from, step, true);
        best = larger_of(best, tap[k]);
        sum += tap[k];
    }
    if (__builtin_expect(mask_bits(sum != sum) != 0, 0)) {
        max_vector_any(p, size, size, 0, step, before, x, y, index);
        return;
    }
    Vi place = (Vi){0} + (size * size - 1);
#pragma GCC unroll 9
    for (int k = size * size - 2; k >= 0; --k)
        place = where_equal(tap[k], best, (Vi){0} + k, place);
    max_store(p, best, place, y, index);
}

/* Computes what max_vector_any computes, for a single maximum. */
SIMD_INLINE void max_one(const PoolPlane *p, int rows, int cols, int place, const Elem *x, Elem *y,
                         uint8_t *index)
{
    float best = value_of(x[0]);
    int best_place = place;
    for (int r = 0; r < rows; ++r)
        for (int c = 0; c < cols; ++c) {
            float v = value_of(x[((int64_t)r * p->w + c) * p->lanes]);
            bool more = v > best || v != v;
            best = more ? v : best;
            best_place = more ? place + r * p->kernel[1] + c : best_place;
        }
    bool cut = p->relu && best <= 0.0f;
    *y = elem_of(cut ? 0.0f : best);
    *index = (uint8_t)(cut ? POOL_NO_POSITION : best_place);
}

/* Computes all lanes of one window, which may be clipped. */
static void max_window(const PoolPlane *p, int i, int j, const Elem *x, Elem *y, uint8_t *index)
{
    Window w = window_at(p, i, j);
    int rows = w.row1 - w.row0, cols = w.col1 - w.col0, l = 0;
    int place = place_in(p, i, j, w.row0, w.col0);
    const Elem *from = x + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
    int64_t out = ((int64_t)i * p->out_columns + j) * p->lanes;
    for (; l + VECTOR <= p->lanes; l += VECTOR)
        max_vector_any(p, rows, cols, place, 1, false, from + l, y + out + l, index + out + l);
    for (; l < p->lanes; ++l) max_one(p, rows, cols, place, from + l, y + out + l, index + out + l);
}

/* Computes windows `from` to `to` - 1 of one row of windows; all are whole, and the lanes of a
 * pixel fill vectors. x: first pixel of window `from`; y, index: the results of that window. size:
 * rows and columns of the kernel, a compile-time constant. */
SIMD_INLINE void row_of_lanes(const PoolPlane *p, int from, int to, int size, const Elem *x,
                              Elem *y, uint8_t *index)
{
    const int64_t row = (int64_t)p->w * p->lanes;
    /* offset from x of the two rows of pixels that are prefetched for the next row of windows */
    const int64_t next = (size - 1 + p->stride[0] - 1) * row;
    for (int j = from; j < to; ++j, x += p->stride[1] * p->lanes, y += p->lanes, index += p->lanes)
        for (int l = 0; l < p->lanes; l += VECTOR) {
            pixels_fetch(x + next + l, row, p->lanes, l, false);
            max_vector(p, size, 1, false, x + l, y + l, index + l);
        }
}

/* Computes what row_of_lanes computes, in a plain plane with stride 2 and for at least VECTOR
 * windows. A vector holds neighbouring windows; the last vector may overlap the one before it.
 * plane: the plane's first pixel. */
SIMD_INLINE void row_of_vectors(const PoolPlane *p, int from, int to, int size, const Elem *plane,
                                const Elem *x, Elem *y, uint8_t *index)
{
    for (int j = 0; j < to - from; j += VECTOR) {
        int first = j + VECTOR <= to - from ? j : to - from - VECTOR;
        const Elem *pixel = x + (int64_t)first * 2;
        max_vector(p, size, 2, pixel > plane, pixel, y + first, index + first);
    }
}

/* Computes what row_of_lanes computes, one maximum at a time, in planes that the other two
 * functions do not support. */
SIMD_INLINE void row_of_ones(const PoolPlane *p, int from, int to, int size, const Elem *x, Elem *y,
                             uint8_t *index)
{
    for (int j = from; j < to; ++j, x += p->stride[1] * p->lanes)
        for (int l = 0; l < p->lanes; ++l) max_one(p, size, size, 0, x + l, y++, index++);
}

/* Computes the maxima of a plane. size: 2 or 3, rows and columns of a square kernel, as a
 * compile-time constant: whole windows are then computed row by row, and clipped windows one by
 * one. 0: any kernel; all windows are computed one by one. */
SIMD_INLINE void max_plane(const PoolPlane *p, int size, const Elem *x, Elem *y, uint8_t *index)
{
    int top, bottom, left, right;
    whole_windows(p, 0, p->h, p->out_rows, &top, &bottom);
    whole_windows(p, 1, p->w, p->out_columns, &left, &right);
    bool lanes = by_lanes(p);
    bool in_vectors =
        p->lanes == 1 && p->stride[1] == 2 && right - left >= VECTOR && p->w >= 2 * VECTOR;
    for (int i = 0; i < p->out_rows; ++i) {
        bool has_whole = size && i >= top && i < bottom;
        int from = has_whole ? left : p->out_columns, to = has_whole ? right : p->out_columns;
        int64_t out = ((int64_t)i * p->out_columns + from) * p->lanes;
        const Elem *first =
            x + ((int64_t)(i * p->stride[0] - p->pad[0]) * p->w + from * p->stride[1] - p->pad[1]) *
                    p->lanes;
        for (int j = 0; j < from; ++j) max_window(p, i, j, x, y, index);
        if (from < to && lanes)
            row_of_lanes(p, from, to, size, first, y + out, index + out);
        else if (from < to && in_vectors)
            row_of_vectors(p, from, to, size, x, first, y + out, index + out);
        else if (from < to)
            row_of_ones(p, from, to, size, first, y + out, index + out);
        for (int j = to; j < p->out_columns; ++j) max_window(p, i, j, x, y, index);
    }
}

/* ---- windows of 3 x 3 with stride 2 ---- */

/* The maxima of one row of pixels: for each window, the maximum of the three pixels that the window
 * has in this row, and the column of the maximum in the window, 0 to 2. A row of pixels may belong
 * to two rows of windows, so these maxima are computed only once. A window's maximum is the largest
 * of the maxima of its three rows. In both steps, the first of equal values is used. The entries of
 * vector number j begin at j * VECTOR. The last vector is moved to the left so that it ends with
 * the last window; some windows are then stored twice. */
enum { THREES = 1024 };
typedef struct Threes {
    float best[THREES];
    int32_t place[THREES];
    /* maximum and column for the window that extends beyond the left edge, if there is one */
    float edge;
    int edge_place;
    /* true: a pixel that a window reads may be NaN */
    bool maybe_nan;
} Threes;

/* Fills *to from one row of pixels, x: the entries of the row's n whole windows, and the entry of
 * the window that extends beyond the left edge. */
SIMD_INLINE void threes_fill(const PoolPlane *p, int n, const Elem *x, Threes *to)
{
    const Vi none = {0};
    Vi maybe_nan = {0};
    float a = value_of(x[0]), b = value_of(x[1]);
    to->edge = b > a ? b : a;
    to->edge_place = b > a ? 2 : 1;
    x += p->pad[1];
    for (int j = 0; j < n; j += VECTOR) {
        const Elem *from = x + 2 * (j + VECTOR <= n ? j : n - VECTOR);
        Vf low = elems_load(from), high = elems_load(from + VECTOR);
        Vf first = alternate(low, high, false), second = alternate(low, high, true);
        Vf third = elems_load_even(from + 2, true), sum = first + second + third;
        Vf best = larger_of(larger_of(first, second), third);
        Vi place = where_equal(first, best, none, where_equal(second, best, none + 1, none + 2));
        VECTOR_STORE(to->best + j, best);
        VECTOR_STORE(to->place + j, place);
        maybe_nan |= sum != sum;
    }
    to->maybe_nan = mask_bits(maybe_nan) != 0 || a != a || b != b;
}

/* Computes one row of windows, from the Threes of its three rows of pixels: its n whole windows
 * and, if there is one, the window at the left edge. above: NULL if the windows extend beyond the
 * upper edge. */
SIMD_INLINE void threes_join(const PoolPlane *p, int n, const Threes *above, const Threes *middle,
                             const Threes *below, Elem *y, uint8_t *index)
{
    if (p->pad[1] > 0) {
        bool from_above = above && !(middle->edge > above->edge);
        float best = from_above ? above->edge : middle->edge;
        int place = from_above ? above->edge_place : middle->edge_place + 3;
        if (below->edge > best) place = below->edge_place + 6;
        best = below->edge > best ? below->edge : best;
        bool cut = p->relu && best <= 0.0f;
        *y++ = elem_of(cut ? 0.0f : best);
        *index++ = (uint8_t)(cut ? POOL_NO_POSITION : place);
    }
    for (int j = 0; j < n; j += VECTOR) {
        int window = j + VECTOR <= n ? j : n - VECTOR;
        Vf a = {0}, b, c;
        Vi first = {0}, second, third;
        VECTOR_LOAD(b, middle->best + j);
        VECTOR_LOAD(second, middle->place + j);
        VECTOR_LOAD(c, below->best + j);
        VECTOR_LOAD(third, below->place + j);
        if (above) VECTOR_LOAD(a, above->best + j);
        if (above) VECTOR_LOAD(first, above->place + j);
        Vf best = larger_of(above ? larger_of(a, b) : b, c);
        Vi place = where_equal(b, best, second + 3, third + 6);
        if (above) place = where_equal(a, best, first, place);
        max_store(p, best, place, y + window, index + window);
    }
}

/* Returns whether max_plane_threes supports the plane. In such a plane, window pad[1], 0 or 1, is
 * the first of a row that is whole; threes_fill relies on this. */
static bool has_threes(const PoolPlane *p)
{
    int left, right;
    whole_windows(p, 1, p->w, p->out_columns, &left, &right);
    return p->lanes == 1 && is_kernel(p, 3) && p->stride[0] == 2 && p->stride[1] == 2 &&
           p->pad[0] < 2 && p->pad[1] < 2 && right - left >= VECTOR && right - left <= THREES;
}

/* Computes what max_plane computes, with Threes. Windows that extend beyond the right or the lower
 * edge, and all windows of a row of windows that has a NaN, are computed one by one. */
SIMD_INLINE void max_plane_threes(const PoolPlane *p, const Elem *x, Elem *y, uint8_t *index)
{
    Threes room[3], *above = &room[0], *middle = &room[1], *below = &room[2];
    int left, right;
    whole_windows(p, 1, p->w, p->out_columns, &left, &right);
    const int n = right - left;
    if (p->pad[0] == 0) threes_fill(p, n, x, above);
    for (int i = 0; i < p->out_rows; ++i) {
        int row = 2 * i - p->pad[0];
        const Elem *from = x + (int64_t)(row + 1) * p->w;
        int64_t out = (int64_t)i * p->out_columns;
        bool good = row + 2 < p->h;
        if (good) {
            threes_fill(p, n, from, middle);
            threes_fill(p, n, from + p->w, below);
            good = !middle->maybe_nan && !below->maybe_nan && (row < 0 || !above->maybe_nan);
        }
        if (good) threes_join(p, n, row < 0 ? NULL : above, middle, below, y + out, index + out);
        for (int j = good ? right : 0; j < p->out_columns; ++j) max_window(p, i, j, x, y, index);
        Threes *spare = above;
        above = below;
        below = spare;
    }
}

SIMD_INLINE void max_sizes(const PoolPlane *p, const Elem *x, Elem *y, uint8_t *index)
{
    if (is_kernel(p, 2))
        max_plane(p, 2, x, y, index);
    else if (has_threes(p))
        max_plane_threes(p, x, y, index);
    else if (is_kernel(p, 3))
        max_plane(p, 3, x, y, index);
    else
        max_plane(p, 0, x, y, index);
}

void SIMD_NAME(max_pool)(const PoolPlane *plane, const void *in, void *out, uint8_t *index)
{
    /* a local copy, so that the compiler knows that no store changes it */
    PoolPlane local = *plane;
    if (ELEM_IS_FLOAT && local.lanes == VECTOR) {
        local.lanes = VECTOR;
        max_sizes(&local, in, out, index);
    } else {
        max_sizes(&local, in, out, index);
    }
}
