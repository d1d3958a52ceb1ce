/* Winograd's F(4x4, 3x3) on channel blocks that are a vector wide: the transforms of tiles and
 * kernels, and the products between them. The interpolation points are 0, +-3/4, +-3/2 and
 * infinity. With these points, the coefficients of the transforms of patches and tiles are exact in
 * binary. With 64 channels, the largest error of y was a quarter of the error with Lavin's points
 * 0, +-1, +-2 (docs/decisions/0048-winograd-of-our-own.md). */
#include "vector.h"

#ifdef __AVX2__
enum { LANES = VECTOR, TILE = 4, PATCH = 6, TAPS = 3 };

/* The points A and B, and their squares A2 and B2. AT_0, AT_A and AT_B belong to the points 0, A
 * and B: the product of the point's differences from the other four finite points. */
static const float A = 0.75f, B = 1.5f, A2 = 0.5625f, B2 = 2.25f;
static const float AT_0 = 1.265625f, AT_A = -1.8984375f, AT_B = 7.59375f;

/* ---- one dimension of each transform (winograd.h): B^T, A^T, A, G and G^T ---- */
SIMD_INLINE void input_6(const Vf d[PATCH], Vf out[PATCH])
{
    const Vf a_even = d[4] - B2 * d[2], a_odd = A * d[3] - A * B2 * d[1];
    const Vf b_even = d[4] - A2 * d[2], b_odd = B * d[3] - B * A2 * d[1];
    out[0] = A2 * B2 * d[0] - (A2 + B2) * d[2] + d[4];
    out[1] = a_even + a_odd;
    out[2] = a_even - a_odd;
    out[3] = b_even + b_odd;
    out[4] = b_even - b_odd;
    out[5] = A2 * B2 * d[1] - (A2 + B2) * d[3] + d[5];
}

SIMD_INLINE void output_4(const Vf m[PATCH], Vf out[TILE])
{
    const Vf a_even = m[1] + m[2], a_odd = m[1] - m[2];
    const Vf b_even = m[3] + m[4], b_odd = m[3] - m[4];
    out[0] = m[0] + a_even + b_even;
    out[1] = A * a_odd + B * b_odd;
    out[2] = A2 * a_even + B2 * b_even;
    out[3] = A * A2 * a_odd + B * B2 * b_odd + m[5];
}

/* The transpose of output_4. */
SIMD_INLINE void gradient_6(const Vf d[TILE], Vf out[PATCH])
{
    const Vf a_even = d[0] + A2 * d[2], a_odd = A * d[1] + A * A2 * d[3];
    const Vf b_even = d[0] + B2 * d[2], b_odd = B * d[1] + B * B2 * d[3];
    out[0] = d[0];
    out[1] = a_even + a_odd;
    out[2] = a_even - a_odd;
    out[3] = b_even + b_odd;
    out[4] = b_even - b_odd;
    out[5] = d[3];
}

SIMD_INLINE void kernel_6(const Vf g[TAPS], Vf out[PATCH])
{
    const Vf a_even = 1 / AT_A * g[0] + A2 / AT_A * g[2], a_odd = A / AT_A * g[1];
    const Vf b_even = 1 / AT_B * g[0] + B2 / AT_B * g[2], b_odd = B / AT_B * g[1];
    out[0] = 1 / AT_0 * g[0];
    out[1] = a_even + a_odd;
    out[2] = a_even - a_odd;
    out[3] = b_even + b_odd;
    out[4] = b_even - b_odd;
    out[5] = g[2];
}

/* The transpose of kernel_6. */
SIMD_INLINE void taps_3(const Vf d[PATCH], Vf out[TAPS])
{
    const Vf a_even = d[1] + d[2], a_odd = d[1] - d[2];
    const Vf b_even = d[3] + d[4], b_odd = d[3] - d[4];
    out[0] = 1 / AT_0 * d[0] + 1 / AT_A * a_even + 1 / AT_B * b_even;
    out[1] = A / AT_A * a_odd + B / AT_B * b_odd;
    out[2] = A2 / AT_A * a_even + B2 / AT_B * b_even + d[5];
}

/* ---- tiles ---- */
/* Position of a tile. */
typedef struct Place {
    /* number of its image */
    int64_t image;
    /* its row among the tiles of the image */
    int64_t down;
    /* its column among the tiles of the image */
    int64_t across;
} Place;

static Place place_of(const WinogradImage *im, int64_t tile)
{
    const int64_t each = im->down * im->across;
    return (Place){tile / each, tile % each / im->across, tile % im->across};
}

static void place_next(Place *p, const WinogradImage *im)
{
    if (++p->across < im->across) return;
    p->across = 0;
    if (++p->down < im->down) return;
    p->down = 0;
    ++p->image;
}

static int64_t within(int64_t value, int64_t max)
{
    return value < 0 ? 0 : value < max ? value : max;
}

/* Prefetches pixels for the row of tiles below: 4 rows of pixels that follow the size x size pixels
 * at row y, column x. */
SIMD_INLINE void fetch_below(const WinogradImage *im, const float *plane, int64_t y, int64_t x,
                             const int size)
{
    enum { LINE = 64 / (LANES * 4) };
    for (int i = 0; i < TILE; ++i)
        for (int j = 0; j < TILE; j += LINE)
            __builtin_prefetch(plane + ((y + size + i) * im->w + x + j) * LANES);
}

/* Returns size x size pixels from row y, column x on: in place, or copied to `room` with zeros
 * outside the plane. *row: floats from one row to the next. */
SIMD_INLINE const float *pixels(const WinogradImage *im, const float *plane, int64_t y, int64_t x,
                                const int size, float *room, int64_t *row)
{
    *row = im->w * LANES;
    fetch_below(im, plane, y, x, size);
    if (y >= 0 && x >= 0 && y + size <= im->h && x + size <= im->w)
        return plane + y * *row + x * LANES;
    for (int i = 0; i < size; ++i)
        for (int j = 0; j < size; ++j) {
            Vf pixel = {0};
            if (y + i >= 0 && y + i < im->h && x + j >= 0 && x + j < im->w)
                VECTOR_LOAD(pixel, plane + (y + i) * *row + (x + j) * LANES);
            VECTOR_STORE(room + (i * size + j) * LANES, pixel);
        }
    *row = size * LANES;
    return room;
}

/* Transforms the columns, then the rows, of size x size pixels at `from`, whose rows are `row`
 * floats apart. Writes the 36 results to `out`, `slice` floats apart. transform: the transform of
 * one dimension. */
#define TRANSFORM_TILE(from, row, out, slice, size, transform)                                     \
    {                                                                                              \
        Vf half[PATCH][size], in[size], line[PATCH];                                               \
        _Pragma("GCC unroll 6") for (int j = 0; j < size; ++j)                                     \
        {                                                                                          \
            _Pragma("GCC unroll 6") for (int i = 0; i < size; ++i)                                 \
                VECTOR_LOAD(in[i], (from) + i * (row) + j * LANES);                                \
            transform(in, line);                                                                   \
            _Pragma("GCC unroll 6") for (int i = 0; i < PATCH; ++i) half[i][j] = line[i];          \
        }                                                                                          \
        _Pragma("GCC unroll 6") for (int i = 0; i < PATCH; ++i)                                    \
        {                                                                                          \
            transform(half[i], line);                                                              \
            _Pragma("GCC unroll 6") for (int j = 0; j < PATCH; ++j)                                \
                VECTOR_STORE((out) + (i * PATCH + j) * (slice), line[j]);                          \
        }                                                                                          \
    }

static void zero_tile(float *out, int64_t slice)
{
    for (int e = 0; e < WINOGRAD_SLICES; ++e) memset(out + e * slice, 0, LANES * sizeof *out);
}

void SIMD_FLOAT_NAME(winograd_input)(const WinogradImage *im, int64_t block, int64_t first,
                                     int64_t count, const float *x, float *v, int64_t slice)
{
    float room[PATCH * PATCH * LANES];
    Place at = place_of(im, first);
    for (int64_t t = first; t < first + count; ++t, v += LANES, place_next(&at, im)) {
        if (t >= im->tiles) {
            zero_tile(v, slice);
            continue;
        }
        int64_t row;
        const float *plane = x + (at.image * im->blocks + block) * im->h * im->w * LANES;
        const float *from = pixels(im, plane, at.down * TILE - im->pad[0],
                                   at.across * TILE - im->pad[1], PATCH, room, &row);
        TRANSFORM_TILE(from, row, v, slice, PATCH, input_6)
    }
}

void SIMD_FLOAT_NAME(winograd_gradient)(const WinogradImage *im, int64_t block, int64_t first,
                                        int64_t count, const float *dy, float *z, int64_t slice)
{
    float room[TILE * TILE * LANES];
    Place at = place_of(im, first);
    for (int64_t t = first; t < first + count; ++t, z += LANES, place_next(&at, im)) {
        if (t >= im->tiles) {
            zero_tile(z, slice);
            continue;
        }
        int64_t row;
        const float *plane = dy + (at.image * im->blocks + block) * im->h * im->w * LANES;
        const float *from = pixels(im, plane, at.down * TILE, at.across * TILE, TILE, room, &row);
        TRANSFORM_TILE(from, row, z, slice, TILE, gradient_6)
    }
}

void SIMD_FLOAT_NAME(winograd_output)(const WinogradImage *im, int64_t block, int64_t first,
                                      int64_t count, const float *m, int64_t slice, float *y,
                                      const float *bias, bool relu)
{
    const int64_t hw = im->h * im->w * LANES;
    Vf shift = {0};
    const Vf zero = {0};
    if (bias) VECTOR_LOAD(shift, bias + block * LANES);
    Place at = place_of(im, first);
    for (int64_t t = first; t < first + count && t < im->tiles;
         ++t, m += LANES, place_next(&at, im)) {
        Vf half[TILE][PATCH], out[TILE][TILE], in[PATCH], line[TILE];
#pragma GCC unroll 1
        for (int j = 0; j < PATCH; ++j) {
#pragma GCC unroll 6
            for (int i = 0; i < PATCH; ++i) VECTOR_LOAD(in[i], m + (i * PATCH + j) * slice);
            output_4(in, line);
#pragma GCC unroll 4
            for (int i = 0; i < TILE; ++i) half[i][j] = line[i];
        }
#pragma GCC unroll 1
        for (int i = 0; i < TILE; ++i) {
            output_4(half[i], line);
#pragma GCC unroll 4
            for (int j = 0; j < TILE; ++j) {
                line[j] += shift;
                if (relu) line[j] = (Vf)((Vi)line[j] & ~(Vi)(line[j] < zero));
                out[i][j] = line[j];
            }
        }
        const int64_t down = at.down * TILE, across = at.across * TILE;
        const int rows = (int)within(im->h - down, TILE),
                  columns = (int)within(im->w - across, TILE);
        float *to = y + (at.image * im->blocks + block) * hw + (down * im->w + across) * LANES;
        for (int i = 0; i < rows; ++i)
            memcpy(to + i * im->w * LANES, out[i], (size_t)columns * sizeof(Vf));
    }
}

/* ---- kernels ---- */
/* Transposes LANES x LANES floats in place. Interleaves the elements of the first half of the rows
 * with those of the second half, log2(LANES) times. */
SIMD_INLINE void transpose(Vf r[LANES])
{
    for (int size = 1; size < LANES; size *= 2) {
        Vf s[LANES];
#pragma GCC unroll 8
        for (int i = 0; i < LANES / 2; ++i) {
            s[2 * i] = VECTOR_FIRST(r[i], r[i + LANES / 2]);
            s[2 * i + 1] = VECTOR_SECOND(r[i], r[i + LANES / 2]);
        }
        memcpy(r, s, sizeof s);
    }
}

/* Transforms the kernels of one row of a block, which is one channel. w: the row's first tap; the
 * taps are LANES * LANES floats apart. */
static void kernel_transform(const float *w, float *u, int64_t slice)
{
    Vf half[PATCH][TAPS], in[TAPS], line[PATCH];
#pragma GCC unroll 3
    for (int j = 0; j < TAPS; ++j) {
#pragma GCC unroll 3
        for (int i = 0; i < TAPS; ++i) VECTOR_LOAD(in[i], w + (i * TAPS + j) * LANES * LANES);
        kernel_6(in, line);
#pragma GCC unroll 6
        for (int i = 0; i < PATCH; ++i) half[i][j] = line[i];
    }
#pragma GCC unroll 1
    for (int i = 0; i < PATCH; ++i) {
        kernel_6(half[i], line);
#pragma GCC unroll 6
        for (int j = 0; j < PATCH; ++j) VECTOR_STORE(u + (i * PATCH + j) * slice, line[j]);
    }
}

void SIMD_FLOAT_NAME(winograd_kernel)(const float *w, bool rotated, float *u, int64_t slice,
                                      int64_t row)
{
    enum { SQUARE = LANES * LANES };
    float near[TAPS * TAPS * SQUARE];
    for (int tap = 0; tap < TAPS * TAPS; ++tap) {
        Vf r[LANES];
        memcpy(r, w + tap * SQUARE, sizeof r);
        if (rotated) transpose(r);
        memcpy(near + (rotated ? TAPS * TAPS - 1 - tap : tap) * SQUARE, r, sizeof r);
    }
    for (int i = 0; i < LANES; ++i) kernel_transform(near + i * LANES, u + i * row, slice);
}

void SIMD_FLOAT_NAME(winograd_taps)(const float *d, int64_t slice, int64_t row, float *dw, bool add)
{
    for (int c = 0; c < LANES; ++c, d += row, dw += LANES) {
        Vf half[TAPS][PATCH], in[PATCH], line[TAPS];
#pragma GCC unroll 1
        for (int j = 0; j < PATCH; ++j) {
#pragma GCC unroll 6
            for (int i = 0; i < PATCH; ++i) VECTOR_LOAD(in[i], d + (i * PATCH + j) * slice);
            taps_3(in, line);
#pragma GCC unroll 3
            for (int i = 0; i < TAPS; ++i) half[i][j] = line[i];
        }
#pragma GCC unroll 3
        for (int i = 0; i < TAPS; ++i) {
            taps_3(half[i], line);
#pragma GCC unroll 3
            for (int j = 0; j < TAPS; ++j) {
                float *to = dw + (i * TAPS + j) * LANES * LANES;
                Vf old = {0};
                if (add) VECTOR_LOAD(old, to);
                old += line[j];
                VECTOR_STORE(to, old);
            }
        }
    }
}

/* ---- products ---- */
/* ROWS: rows of a register block. With 3 vectors, its sums take 12 of 16 registers, or with AVX-512
 * 24 of 32, which leaves registers for a row of b. */
enum { ROWS = LANES / 2 };

/* Computes out[r][v] = sum over k of a(r, k) b(k, v) for ROWS rows and `vectors` vectors; adds it
 * to out if p->add is true. k runs in groups of LANES. */
SIMD_INLINE void product(const WinogradProduct *p, const float *a, const float *b, float *out,
                         const int64_t a_row, const int64_t a_col, const int64_t b_row,
                         const int64_t b_vector, const int64_t out_row, const int64_t out_vector,
                         const int vectors)
{
    Vf sum[ROWS][WINOGRAD_PANEL] = {{{0}}};
    for (int64_t k = 0; k < p->k; k += LANES, a += p->a_group, b += LANES * b_row)
#pragma GCC unroll 16
        for (int i = 0; i < LANES; ++i) {
            Vf right[WINOGRAD_PANEL];
#pragma GCC unroll 3
            for (int v = 0; v < vectors; ++v) VECTOR_LOAD(right[v], b + i * b_row + v * b_vector);
#pragma GCC unroll 8
            for (int r = 0; r < ROWS; ++r) {
                const float left = a[r * a_row + i * a_col];
#pragma GCC unroll 3
                for (int v = 0; v < vectors; ++v) sum[r][v] += left * right[v];
            }
        }
#pragma GCC unroll 8
    for (int r = 0; r < ROWS; ++r)
#pragma GCC unroll 3
        for (int v = 0; v < vectors; ++v) {
            float *to = out + r * out_row + v * out_vector;
            Vf old = {0};
            if (p->add) VECTOR_LOAD(old, to);
            old += sum[r][v];
            VECTOR_STORE(to, old);
        }
}

SIMD_INLINE void forward_panel(const WinogradProduct *p, const float *a, const float *b, float *out,
                               const int vectors)
{
    for (int64_t t = 0; t < p->rows; t += ROWS)
        product(p, a + t * LANES, b, out + t * LANES, LANES, 1, vectors * LANES, LANES, LANES,
                p->out_vector, vectors);
}

void SIMD_FLOAT_NAME(winograd_forward)(const WinogradProduct *p)
{
    for (int e = 0; e < WINOGRAD_SLICES; ++e) {
        const float *a = p->a + e * p->a_slice, *b = p->b + e * p->b_slice;
        float *out = p->out + e * p->out_slice;
        if (p->vectors == 3)
            forward_panel(p, a, b, out, 3);
        else if (p->vectors == 2)
            forward_panel(p, a, b, out, 2);
        else
            forward_panel(p, a, b, out, 1);
    }
}

SIMD_INLINE void weight_panel(const WinogradProduct *p, const float *a, const float *b, float *out,
                              const int vectors)
{
    for (int64_t c = 0; c < p->rows; c += ROWS)
        product(p, a + c / LANES * p->a_row + c % LANES, b, out + c * vectors * LANES, 1, LANES,
                LANES, p->b_vector, vectors * LANES, LANES, vectors);
}

void SIMD_FLOAT_NAME(winograd_weight)(const WinogradProduct *p)
{
    for (int e = 0; e < WINOGRAD_SLICES; ++e) {
        const float *a = p->a + e * p->a_slice, *b = p->b + e * p->b_slice;
        float *out = p->out + e * p->out_slice;
        if (p->vectors == 3)
            weight_panel(p, a, b, out, 3);
        else if (p->vectors == 2)
            weight_panel(p, a, b, out, 2);
        else
            weight_panel(p, a, b, out, 1);
    }
}
#endif
