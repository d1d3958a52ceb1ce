/* The gradient of max pooling of one plane, from the positions that max_pool stored. If each pixel
 * has several lanes, a vector holds lanes of one pixel. In a plain plane, a vector holds
 * neighbouring windows of one row, or pairs of pixels of one row. */
#include "window.h"

/* For a vector of windows: dy, and the position of each maximum in its window. */
typedef struct Maxima {
    Vf dy;
    Vi place;
} Maxima;

SIMD_INLINE Maxima maxima_at(const Elem *dy, const uint8_t *index, int64_t at)
{
    return (Maxima){elems_load(dy + at), bytes_load(index + at)};
}

/* Computes what gather_lanes computes, for one lane. w: the windows, in rows and columns counted
 * from the first window. */
SIMD_INLINE void gather_one(const PoolPlane *p, Window w, int first, const Elem *dy,
                            const uint8_t *index, Elem *dx)
{
    float sum = 0.0f;
    for (int i = 0; i < w.row1 - w.row0; ++i)
        for (int j = 0; j < w.col1 - w.col0; ++j) {
            int64_t at = ((int64_t)i * p->out_columns + j) * p->lanes;
            int mine = first - i * p->stride[0] * p->kernel[1] - j * p->stride[1];
            sum += index[at] == mine ? value_of(dy[at]) : 0.0f;
        }
    *dx = elem_of(sum);
}

/* Computes dx of one input pixel: the sum of dy over those of its rows x cols windows whose maximum
 * is this pixel. dy and index point to the first window of the rectangle, and `first` is the
 * pixel's position in that window. */
SIMD_INLINE void gather_lanes(const PoolPlane *p, int rows, int cols, int first, const Elem *dy,
                              const uint8_t *index, Elem *dx)
{
    const int64_t next = (int64_t)p->out_columns * p->lanes;
    /* decrease of the pixel's position in the kernel from one window to the next */
    const int down = p->stride[0] * p->kernel[1], right = p->stride[1];
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR) {
        Vf sum = {0};
        for (int i = 0; i < rows; ++i)
            for (int j = 0; j < cols; ++j) {
                int64_t at = i * next + (int64_t)j * p->lanes + l;
                Maxima from = maxima_at(dy, index, at);
                sum += keep_at(from.dy, from.place, first - i * down - j * right);
            }
        elems_store(dx + l, sum);
    }
    for (; l < p->lanes; ++l)
        gather_one(p, (Window){0, rows, 0, cols}, first, dy + l, index + l, dx + l);
}

/* Computes dx of input pixel (row, col). */
SIMD_INLINE void gather_pixel(const PoolPlane *p, int row, int col, const Elem *dy,
                              const uint8_t *index, Elem *dx)
{
    Window w = windows_of(p, row, col);
    int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
    int first = place_in(p, w.row0, w.col0, row, col);
    int64_t at = ((int64_t)w.row0 * p->out_columns + w.col0) * p->lanes;
    Elem *to = dx + ((int64_t)row * p->w + col) * p->lanes;
    gather_lanes(p, rows, cols, first, dy + at, index + at, to);
}

/* Returns whether the gradient is computed in quads: for windows of 3 x 3 with stride 2. A quad is
 * 2 x 2 pixels in window (i, j), the first of which is the window's middle pixel. Some pixels of a
 * quad are also in the windows to the right, below, or diagonally below. The first quad begins at
 * row 1 - pad[0] and column 1 - pad[1]. */
static bool has_quads(const PoolPlane *p)
{
    bool row = p->lanes == 1 && p->out_columns >= VECTOR;
    return (by_lanes(p) || row) && is_kernel(p, 3) && p->stride[0] == 2 && p->stride[1] == 2;
}

/* Sums the gradients of a quad's four pixels from its four windows. */
SIMD_INLINE void quad_sums(Maxima here, Maxima right, Maxima below, Maxima across, Vf sum[4])
{
    sum[0] = keep_at(here.dy, here.place, 4);
    sum[1] = keep_at(here.dy, here.place, 5) + keep_at(right.dy, right.place, 3);
    sum[2] = keep_at(here.dy, here.place, 7) + keep_at(below.dy, below.place, 1);
    sum[3] = keep_at(here.dy, here.place, 8) + keep_at(right.dy, right.place, 6) +
             keep_at(below.dy, below.place, 2) + keep_at(across.dy, across.place, 0);
}

/* Computes `count` quads of a row of windows, in a plane whose lanes fill vectors. has_below: there
 * is a row of windows below. dx: the first pixel of the first quad. */
SIMD_INLINE void quads_of_lanes(const PoolPlane *p, int count, bool has_below, const Elem *dy,
                                const uint8_t *index, Elem *dx)
{
    const int64_t next = (int64_t)p->out_columns * p->lanes, down = (int64_t)p->w * p->lanes;
    const Maxima none = {{0}, {0}};
    for (int l = 0; l < p->lanes; l += VECTOR) {
        Maxima here = maxima_at(dy, index, l), right, across = none;
        Maxima below = has_below ? maxima_at(dy, index, next + l) : none;
        for (int j = 0; j < count; ++j, here = right, below = across) {
            int64_t at = (int64_t)(j + 1) * p->lanes + l;
            bool last = j + 1 == p->out_columns;
            right = last ? none : maxima_at(dy, index, at);
            if (has_below) across = last ? none : maxima_at(dy, index, next + at);
            Elem *to = dx + (int64_t)j * 2 * p->lanes + l;
            Vf sum[4];
            pixels_fetch(to + 2 * down, down, p->lanes, l, true);
            quad_sums(here, right, below, across, sum);
            elems_store(to, sum[0]);
            elems_store(to + p->lanes, sum[1]);
            elems_store(to + down, sum[2]);
            elems_store(to + down + p->lanes, sum[3]);
        }
    }
}

/* Returns the right neighbours of the last VECTOR windows of a row in a plain plane; the neighbour
 * beyond the row has dy 0. */
SIMD_INLINE Maxima maxima_right(const PoolPlane *p, const Elem *dy, const uint8_t *index)
{
    const Maxima last = maxima_at(dy, index, p->out_columns - VECTOR);
    return (Maxima){VECTOR_LANES(last.dy, (Vf){0}, LANES_NEXT),
                    VECTOR_LANES(last.place, (Vi){0}, LANES_NEXT)};
}

/* Computes what quads_of_lanes computes, in a plain plane, a vector of quads at a time. The last
 * vector may overlap the one before it. */
SIMD_INLINE void quads_of_row(const PoolPlane *p, int count, bool has_below, const Elem *dy,
                              const uint8_t *index, Elem *dx)
{
    const Elem *dy_below = dy + p->out_columns;
    const uint8_t *index_below = index + p->out_columns;
    for (int j = 0; j < count; j += VECTOR) {
        int at = j + VECTOR <= count ? j : count - VECTOR;
        bool last = at + VECTOR == p->out_columns;
        Elem *to = dx + (int64_t)at * 2;
        Vf sum[4];
        pixels_fetch(to + 2 * p->w, p->w, 1, 0, true);
        Maxima right, below = {{0}, {0}}, across = below;
        right = last ? maxima_right(p, dy, index) : maxima_at(dy, index, at + 1);
        if (has_below) {
            below = maxima_at(dy_below, index_below, at);
            across = last ? maxima_right(p, dy_below, index_below)
                          : maxima_at(dy_below, index_below, at + 1);
        }
        quad_sums(maxima_at(dy, index, at), right, below, across, sum);
        elems_store(to, VECTOR_FIRST(sum[0], sum[1]));
        elems_store(to + VECTOR, VECTOR_SECOND(sum[0], sum[1]));
        elems_store(to + p->w, VECTOR_FIRST(sum[2], sum[3]));
        elems_store(to + p->w + VECTOR, VECTOR_SECOND(sum[2], sum[3]));
    }
}

static void gather_rows(const PoolPlane *p, int from, int to, const Elem *dy, const uint8_t *index,
                        Elem *dx)
{
    for (int row = from; row < to; ++row)
        for (int col = 0; col < p->w; ++col) gather_pixel(p, row, col, dy, index, dx);
}

/* Computes the quads that are completely in the plane, and the pixels around them one by one. */
SIMD_INLINE void gather_quads(const PoolPlane *p, const Elem *dy, const uint8_t *index, Elem *dx)
{
    int top = 1 - p->pad[0], left = 1 - p->pad[1];
    int rows = (p->h - top) / 2, cols = (p->w - left) / 2;
    if (rows > p->out_rows) rows = p->out_rows;
    if (cols > p->out_columns) cols = p->out_columns;
    if (p->lanes == 1 && cols < VECTOR) rows = 0;
    gather_rows(p, 0, top, dy, index, dx);
    for (int i = 0; i < rows; ++i) {
        int row = top + 2 * i;
        int64_t at = (int64_t)i * p->out_columns * p->lanes;
        Elem *first = dx + ((int64_t)row * p->w + left) * p->lanes;
        bool has_below = i + 1 < p->out_rows;
        if (p->lanes == 1)
            quads_of_row(p, cols, has_below, dy + at, index + at, first);
        else
            quads_of_lanes(p, cols, has_below, dy + at, index + at, first);
        for (int r = row; r < row + 2; ++r) {
            for (int col = 0; col < left; ++col) gather_pixel(p, r, col, dy, index, dx);
            for (int col = left + 2 * cols; col < p->w; ++col)
                gather_pixel(p, r, col, dy, index, dx);
        }
    }
    gather_rows(p, top + 2 * rows, p->h, dy, index, dx);
}

/* Writes each lane of one window's dy to the pixel of its maximum, and 0 to the window's other
 * pixels. The window has rows x cols pixels in the plane. dx: the first of its pixels; place: the
 * position of that pixel in the window. */
SIMD_INLINE void spread_lanes(const PoolPlane *p, int rows, int cols, int place, const Elem *dy,
                              const uint8_t *index, Elem *dx)
{
    int l = 0;
    for (; l + VECTOR <= p->lanes; l += VECTOR) {
        Maxima from = maxima_at(dy, index, l);
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                elems_store(dx + ((int64_t)r * p->w + c) * p->lanes + l,
                            keep_at(from.dy, from.place, place + r * p->kernel[1] + c));
    }
    for (; l < p->lanes; ++l)
        for (int r = 0; r < rows; ++r)
            for (int c = 0; c < cols; ++c)
                dx[((int64_t)r * p->w + c) * p->lanes + l] =
                    index[l] == place + r * p->kernel[1] + c ? dy[l] : elem_of(0.0f);
}

/* Does what spread_lanes does, for window (i, j). */
SIMD_INLINE void spread_window(const PoolPlane *p, int i, int j, const Elem *dy,
                               const uint8_t *index, Elem *dx)
{
    Window w = window_at(p, i, j);
    int rows = w.row1 - w.row0, cols = w.col1 - w.col0;
    int place = place_in(p, i, j, w.row0, w.col0);
    int64_t at = ((int64_t)i * p->out_columns + j) * p->lanes;
    Elem *to = dx + ((int64_t)w.row0 * p->w + w.col0) * p->lanes;
    if (rows == 2 && cols == 2)
        spread_lanes(p, 2, 2, place, dy + at, index + at, to);
    else
        spread_lanes(p, rows, cols, place, dy + at, index + at, to);
}

/* Computes what spread_window computes, for VECTOR neighbouring windows of 2 x 2 in one row of a
 * plain plane. */
SIMD_INLINE void spread_pairs(const PoolPlane *p, const Elem *dy, const uint8_t *index, Elem *dx)
{
    Maxima from = maxima_at(dy, index, 0);
    for (int r = 0; r < 2; ++r) {
        Vf even = keep_at(from.dy, from.place, 2 * r);
        Vf odd = keep_at(from.dy, from.place, 2 * r + 1);
        elems_store(dx + (int64_t)r * p->w, VECTOR_FIRST(even, odd));
        elems_store(dx + (int64_t)r * p->w + VECTOR, VECTOR_SECOND(even, odd));
    }
}

SIMD_INLINE void spread_plane(const PoolPlane *p, const Elem *dy, const uint8_t *index, Elem *dx)
{
    int by_pairs = windows_by_pairs(p);
    if (!windows_tile_plane(p))
        memset(dx, 0, sizeof *dx * (size_t)p->h * (size_t)p->w * (size_t)p->lanes);
    for (int i = 0; i < p->out_rows; ++i) {
        for (int j = 0; j < by_pairs; j += VECTOR) {
            int first = j + VECTOR <= by_pairs ? j : by_pairs - VECTOR;
            int64_t at = (int64_t)i * p->out_columns + first;
            spread_pairs(p, dy + at, index + at, dx + (int64_t)i * 2 * p->w + 2 * first);
        }
        for (int j = by_pairs; j < p->out_columns; ++j) spread_window(p, i, j, dy, index, dx);
    }
}

SIMD_INLINE void max_grad(const PoolPlane *p, const Elem *dy, const uint8_t *index, Elem *dx)
{
    if (windows_disjoint(p))
        spread_plane(p, dy, index, dx);
    else if (has_quads(p))
        gather_quads(p, dy, index, dx);
    else
        gather_rows(p, 0, p->h, dy, index, dx);
}

void SIMD_NAME(max_pool_grad)(const PoolPlane *plane, const void *from, const uint8_t *index,
                              void *to)
{
    /* a local copy, so that the compiler knows that no store changes it */
    PoolPlane local = *plane;
    if (ELEM_IS_FLOAT && local.lanes == VECTOR) {
        local.lanes = VECTOR;
        max_grad(&local, from, index, to);
    } else {
        max_grad(&local, from, index, to);
    }
}
