/* Tiles of one attention head, and the three kinds of product of a pair of tiles: a tile of queries
 * and a tile of keys. Only attention.c includes this file. Scores, sums and results of products are
 * fp32 for any type of tensors. Factors of products have the tensors' type, so in bf16
 * probabilities and gradients of scores are rounded once before their products.
 *
 * A product reads cells (product.h): a cell is one float, or two bf16 that are neighbours along the
 * sum. If the sum is over the elements of a row, cells are parts of rows. If the sum is over rows,
 * the rows are first braided: in bf16, cell i of braid r has element i of row 2r and of row 2r + 1.
 * In fp32, the braids are the rows themselves. The rows and columns of a tile are padded with zeros
 * to multiples of 16. */
#ifndef WEFT_TENSOR_CPU_SIMD_ATTENTION_TILE_H
#define WEFT_TENSOR_CPU_SIMD_ATTENTION_TILE_H

#include "product.h"

enum {
    TILE = ATTENTION_TILE,
    /* In a pair of tiles on the diagonal, keys and queries are processed in groups of this number.
     * For a key, the groups of queries before the group of the key are skipped. */
    GROUP = SIMD_LANES,
};

/* The scratch of one call, divided into arrays. Arrays of rows are [TILE][wide], braided rows
 * (_braid) are cells [TILE / CELL][wide], and transposed rows (_t) are cells [wide /
 * CELL][TILE]. */
typedef struct Work {
    Elem *q, *dy, *k, *v;
    Cell *q_t, *dy_t;
    /* unused in fp32 */
    Cell *q_braid, *dy_braid;
    /* for keys and for values; unused in fp32 */
    Cell *k_braid;
    /* p or ds, rounded, with cells along queries, [key][TILE / CELL]; NULL in fp32, where p and ds
     * themselves are used as factors */
    Cell *by_query;
    /* the same with cells along keys, [key / CELL][TILE] */
    Cell *by_key;
    /* y, or in backward dq, of the tile's queries, [TILE][wide] */
    float *sum;
    /* room for one tile of results or of converted rows, [TILE][wide] */
    float *rows;
    /* scores, then their exponentials, [key][query] */
    float *p;
    /* gradients of the scores, [key][query] */
    float *ds;
    /* for each query: the running maximum of its scores; in backward, its lse */
    float *top;
    /* for each query: the running sum of exponentials */
    float *total;
    /* for each query: the factor of earlier sums, at most 1, because the maximum may have risen */
    float *shrink;
    /* for each query: the sum of dy * y */
    float *delta;
    /* sums for all keys of the head: in fp32 the tensors themselves, else scratch */
    float *dk, *dv;
    /* floats from one row of dk and dv to the next */
    int64_t key_row;
    /* elements of a head's row */
    int64_t width;
    /* width, rounded up to a multiple of 16 */
    int64_t wide;
    /* rows of this pair of tiles that are not padding */
    int64_t queries, keys;
    /* true: the pair is on the diagonal (both tiles have the same positions), so scores of keys
     * after a query's group of GROUP positions are not computed; always false if `full` is true */
    bool diagonal;
    /* true: every query attends to every key */
    bool full;
    /* true: these are the first contributions of the query head to dk and dv of the pair's keys */
    bool is_first;
    /* position of a query minus the position of the key with the same index in its tile */
    int64_t ahead;
    /* a query does not attend to keys that are `window` or more positions before it; 0: no limit */
    int64_t window;
    /* true: the query head is not the first of its key head, so it adds to dk and dv */
    bool is_later_head;
} Work;

/* Returns n rounded up to a multiple of GROUP. */
SIMD_INLINE int64_t padded(int64_t n)
{
    return (n + GROUP - 1) / GROUP * GROUP;
}

/* Returns the next `count` floats of the scratch, and advances *scratch. */
SIMD_INLINE void *take(float **scratch, int64_t count)
{
    float *piece = *scratch;
    *scratch += count;
    return piece;
}

/* Divides `scratch`, attention_scratch floats, into the arrays of a Work. */
static Work work_of(const AttentionHead *h, float *scratch)
{
    Work w = {.width = h->width, .wide = padded(h->width), .window = h->window, .full = h->full};
    const int64_t tile = TILE * w.wide, cells = tile / CELL, all = (h->length + TILE - 1) / TILE;
    Elem **const rows[] = {&w.q, &w.dy, &w.k, &w.v};
    Cell **const other[] = {&w.q_t, &w.dy_t, &w.q_braid, &w.dy_braid, &w.k_braid};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; ++i) *rows[i] = take(&scratch, cells);
    for (size_t i = 0; i < (ELEM_IS_FLOAT ? 2 : sizeof other / sizeof *other); ++i)
        *other[i] = take(&scratch, cells);
    w.sum = take(&scratch, tile);
    w.rows = take(&scratch, tile);
    w.p = take(&scratch, TILE * TILE);
    w.ds = take(&scratch, TILE * TILE);
    float **const number[] = {&w.top, &w.total, &w.shrink, &w.delta};
    for (size_t i = 0; i < sizeof number / sizeof *number; ++i) *number[i] = take(&scratch, TILE);
    w.by_query = ELEM_IS_FLOAT ? NULL : take(&scratch, TILE * TILE / CELL);
    w.by_key = ELEM_IS_FLOAT ? NULL : take(&scratch, TILE * TILE / CELL);
    w.dk = ELEM_IS_FLOAT ? h->dk : take(&scratch, all * tile);
    w.dv = ELEM_IS_FLOAT ? h->dv : take(&scratch, all * tile);
    w.key_row = ELEM_IS_FLOAT ? h->key_stride : w.wide;
    return w;
}

/* Returns the number of rows of a tile of queries or keys that are not padding. */
SIMD_INLINE int64_t rows_of(const AttentionHead *h, int64_t tile)
{
    int64_t left = h->length - tile * TILE;
    return left < TILE ? left : TILE;
}

/* Rotates one row by the angles of position `at`, in pairs of elements (i, i + width / 2). sign: 1,
 * or -1 to rotate back. */
SIMD_INLINE void rotate_row(const AttentionHead *h, float *row, int64_t at, float sign)
{
    const int64_t half = h->width / 2;
    const float *restrict c = h->cosine + at * half, *restrict s = h->sine + at * half;
    float *restrict low = row, *restrict high = row + half;
#pragma omp simd
    for (int64_t i = 0; i < half; ++i) {
        float a = low[i], b = high[i], t = sign * s[i];
        low[i] = fused(a, c[i], -(b * t));
        high[i] = fused(b, c[i], a * t);
    }
}

/* Prefetches the rows of tile number `tile`. The rows of one head are short and far apart, so the
 * hardware does not prefetch them. If `tile` is beyond the head's last tile, the first tile of the
 * next head is prefetched, whose rows begin `width` elements further on. After the last head these
 * addresses may be outside of the tensor, which a prefetch may access. */
SIMD_INLINE void fetch_tile(const AttentionHead *h, const void *tensor, int64_t stride,
                            int64_t tile)
{
    enum { LINE = 64 / sizeof(Elem), NEAR = 2 };
    const bool last = tile * TILE >= h->length;
    const Elem *rows = (const Elem *)tensor + (last ? h->width : tile * TILE * stride);
    const int64_t count = rows_of(h, last ? 0 : tile);
    for (int64_t r = 0; r < count; ++r)
        for (int64_t i = 0; i < h->width; i += LINE)
            __builtin_prefetch(rows + r * stride + i, 0, NEAR);
}

SIMD_INLINE void copy_row(const Elem *row, int64_t n, Elem *to)
{
    int64_t i = 0;
    for (; i + GROUP <= n; i += GROUP) memcpy(to + i, row + i, GROUP * sizeof *to);
    if (i < n) memcpy(to + i, row + i, (size_t)(n - i) * sizeof *to);
}

/* Copies a tile of rows, which are `stride` elements apart, to `to`. Multiplies them by `scale`,
 * and rotates them if `rotated` is true. Padding rows become zero. */
static void load(const AttentionHead *h, const Work *w, const void *tensor, int64_t stride,
                 int64_t tile, bool rotated, float scale, Elem *to)
{
    const Elem *from = tensor;
    const int64_t real = rows_of(h, tile), width = w->width, wide = w->wide;
    for (int64_t r = 0; r < padded(real); ++r, to += wide) {
        const Elem *row = from + (tile * TILE + r) * stride;
        float *room = ELEM_IS_FLOAT ? (float *)(void *)to : w->rows;
        int64_t n = r < real ? width : 0;
        memset(to + n, 0, (size_t)(wide - n) * sizeof *to);
        if (!rotated && scale == 1.0f) {
            copy_row(row, n, to);
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) room[i] = scale * value_of(row[i]);
        if (rotated && n) rotate_row(h, room, tile * TILE + r, 1.0f);
        if (!ELEM_IS_FLOAT) elems_from(to, room, n);
    }
}

/* Rows in memory. stride: cells from one row to the next. */
typedef struct Rows {
    const Cell *at;
    int64_t stride;
} Rows;

/* Returns the rows of a tile that `load` has copied. */
SIMD_INLINE Rows loaded(const Work *w, const Elem *rows)
{
    return (Rows){(const Cell *)(const void *)rows, w->wide / CELL};
}

/* Returns a tile of rows that is read once, row by row: in place if the tile has no padding rows,
 * is not rotated, and its rows are complete cells; else loaded into `copy`. */
static Rows rows_at(const AttentionHead *h, const Work *w, const void *from, int64_t tile,
                    bool rotated, Elem *copy)
{
    if (!rotated && rows_of(h, tile) == TILE && w->width % CELL == 0) {
        const Elem *row = (const Elem *)from + tile * TILE * h->stride;
        return (Rows){(const Cell *)(const void *)row, h->stride / CELL};
    }
    load(h, w, from, h->stride, tile, rotated, 1.0f, copy);
    return loaded(w, copy);
}

/* Returns a tile of rows that is read row by row and is also braided. In fp32 the rows are always
 * loaded into `copy`: they are their own braids, and should be close together in memory. */
static Rows rows_to_braid(const AttentionHead *h, const Work *w, const void *from, int64_t tile,
                          bool rotated, Elem *copy)
{
    if (!ELEM_IS_FLOAT) return rows_at(h, w, from, tile, rotated, copy);
    load(h, w, from, h->stride, tile, rotated, 1.0f, copy);
    return loaded(w, copy);
}

#ifdef SIMD_BF16
/* Returns v rounded to bf16, in the lower half of each 32-bit lane. */
SIMD_INLINE Vu halves_of(Vf v)
{
    Vh half;
    elems_store((Elem *)(void *)&half, v);
    return __builtin_convertvector(half, Vu);
}

/* Braids `count` rows of `wide` elements, both multiples of 16: each cell of `to` has one element
 * of each of two neighbouring rows. Returns `to`. */
static const Cell *braid(Rows from, int64_t count, int64_t wide, Cell *to)
{
    const Elem *rows = (const Elem *)(const void *)from.at;
    const int64_t stride = from.stride * CELL;
    Cell *cell = to;
    for (int64_t r = 0; r < count; r += CELL, rows += CELL * stride)
        for (int64_t i = 0; i < wide; i += VECTOR, cell += VECTOR) {
            Vh even, odd;
            VECTOR_LOAD(even, rows + i);
            VECTOR_LOAD(odd, rows + stride + i);
            Vu both = __builtin_convertvector(even, Vu) | __builtin_convertvector(odd, Vu) << 16;
            VECTOR_STORE(cell, both);
        }
    return to;
}
#else
static const Cell *braid(Rows from, int64_t count, int64_t wide, Cell *to)
{
    (void)count, (void)wide, (void)to;
    return from.at;
}
#endif

/* Transposes `rows` rows of `wide` cells into cells[wide][TILE], in blocks of 4 x 4. */
static void transpose(const Elem *elems, int64_t rows, int64_t wide, Cell *cells)
{
    const Cell *from = (const Cell *)(const void *)elems;
    for (int64_t r = 0; r < rows; r += 4)
        for (int64_t c = 0; c < wide; c += 4) {
            const Cell *f = from + r * wide + c;
            Cell *t = cells + c * TILE + r;
#if defined(__SSE2__)
            __m128 a = _mm_loadu_ps((const float *)f), b = _mm_loadu_ps((const float *)(f + wide));
            __m128 d = _mm_loadu_ps((const float *)(f + 2 * wide));
            __m128 e = _mm_loadu_ps((const float *)(f + 3 * wide));
            _MM_TRANSPOSE4_PS(a, b, d, e);
            _mm_storeu_ps((float *)t, a);
            _mm_storeu_ps((float *)(t + TILE), b);
            _mm_storeu_ps((float *)(t + 2 * TILE), d);
            _mm_storeu_ps((float *)(t + 3 * TILE), e);
#else
            for (int i = 0; i < 4; ++i)
                for (int j = 0; j < 4; ++j) t[j * TILE + i] = f[i * wide + j];
#endif
        }
}

/* ---- the three kinds of product of a pair of tiles; on the diagonal, of a part of it ---- */

/* Computes out[key][query] = sum over the cells i of a row of rows[key][i] columns[i][query]. */
static void scores(const Work *w, Rows rows, const Cell *columns, float *out)
{
    const int64_t n = padded(w->queries), m = padded(w->keys), step = w->diagonal ? GROUP : m;
    for (int64_t r = 0; r < m; r += step) {
        int64_t first = w->diagonal ? r : 0;
        multiply(&(Product){.out = out + r * TILE + first,
                            .a = rows.at + r * rows.stride,
                            .b = columns + first,
                            .out_row = TILE,
                            .a_row = rows.stride,
                            .a_col = 1,
                            .b_row = TILE,
                            .m = step,
                            .n = n - first,
                            .k = (w->width + CELL - 1) / CELL});
    }
}

/* Returns the first query that row `key` of p contains. On the diagonal, scores of earlier groups
 * of queries are not computed. */
SIMD_INLINE int64_t first_query(const Work *w, int64_t key)
{
    return w->diagonal ? key / GROUP * GROUP : 0;
}

#ifdef SIMD_BF16
/* Returns p rounded, as cells [key][TILE / CELL] along queries. */
static const Cell *along_queries(const Work *w, const float *p)
{
    Elem *to = (Elem *)w->by_query;
    for (int64_t key = 0; key < padded(w->keys); ++key) {
        const int64_t first = first_query(w, key), n = padded(w->queries);
        for (int64_t q = first; q < n; q += VECTOR) {
            Vf v;
            VECTOR_LOAD(v, p + key * TILE + q);
            elems_store(to + key * TILE + q, v);
        }
    }
    return w->by_query;
}

/* Returns p rounded, as cells [key / CELL][TILE] along keys. */
static const Cell *along_keys(const Work *w, const float *p)
{
    for (int64_t key = 0; key < padded(w->keys); key += CELL) {
        const int64_t first = first_query(w, key), n = padded(w->queries);
        for (int64_t q = first; q < n; q += VECTOR) {
            Vf even, odd;
            VECTOR_LOAD(even, p + key * TILE + q);
            VECTOR_LOAD(odd, p + (key + 1) * TILE + q);
            Vu both = halves_of(even) | halves_of(odd) << 16;
            VECTOR_STORE(w->by_key + key / CELL * TILE + q, both);
        }
    }
    return w->by_key;
}
#else
static const Cell *along_queries(const Work *w, const float *p)
{
    (void)w;
    return p;
}

static const Cell *along_keys(const Work *w, const float *p)
{
    (void)w;
    return p;
}
#endif

/* Computes, for each key, out[key][] = sum over queries of p[key][query] rows[query][]; adds it to
 * out if `add` is true. Rows of out are out_row floats apart; `rows` are braided. */
static void sum_queries(const Work *w, const float *p, const Cell *rows, float *out,
                        int64_t out_row, bool add)
{
    const int64_t n = padded(w->queries), m = padded(w->keys), step = w->diagonal ? GROUP : m;
    const Cell *factor = along_queries(w, p);
    for (int64_t r = 0; r < m; r += step) {
        int64_t first = w->diagonal ? r : 0;
        multiply(&(Product){.out = out + r * out_row,
                            .a = factor + (r * TILE + first) / CELL,
                            .b = rows + first / CELL * w->wide,
                            .out_row = out_row,
                            .a_row = TILE / CELL,
                            .a_col = 1,
                            .b_row = w->wide,
                            .m = step,
                            .n = w->wide,
                            .k = (n - first) / CELL,
                            .add = add});
    }
}

/* Computes, for each query, out[query][] = sum over keys of p[key][query] rows[key][]; adds it to
 * out if `add` is true. `rows` are braided. */
static void sum_keys(const Work *w, const float *p, const Cell *rows, float *out, bool add)
{
    const int64_t m = padded(w->queries), n = padded(w->keys), step = w->diagonal ? GROUP : m;
    const Cell *factor = along_keys(w, p);
    for (int64_t r = 0; r < m; r += step)
        multiply(&(Product){.out = out + r * w->wide,
                            .a = factor + r,
                            .b = rows,
                            .out_row = w->wide,
                            .a_row = 1,
                            .a_col = TILE,
                            .b_row = w->wide,
                            .m = step,
                            .n = w->wide,
                            .k = (w->diagonal ? r + GROUP : n) / CELL,
                            .add = add});
}

#endif
