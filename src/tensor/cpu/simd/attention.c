/* Causal attention of one head, tile by tile (Dao et al. 2022, "FlashAttention"): a tile of queries meets the tiles
 * of keys up to its own with a running maximum and sum. Scores lie transposed, [key][query]: a vector holds neighbouring
 * queries, so maxima and sums need no step across lanes, and keys and values are read as they lie.
 *
 * Scores, sums and outputs of products are fp32 whatever the type of the tensors. Factors are of that type, so that bf16
 * probabilities and gradients of scores are rounded once for their products. A product reads cells
 * (product.h), so rows along which is summed are braided: cell i of braid r holds elements i of rows 2r and 2r + 1.
 *
 * Tiles are padded with zeros to 16 rows and 16 columns. A tile of keys is joined in order of the tiles of queries and
 * the other way round, whoever calls: the bits do not depend on how the work is cut. Shares of dk and dv are summed in
 * place where they are floats, else in scratch, and rounded once. */
#include "product.h"

enum {
    TILE = ATTENTION_TILE,
    GROUP = SIMD_LANES, /* rows that the diagonal is followed in */
};

/* The scratch of one thread, cut up. Tiles of rows are [TILE][wide], braided [TILE / CELL][wide], those with _t cells
 * [wide / CELL][TILE]; p and ds are [key][query]; the last four a number per query. Where cells are floats, braids are the
 * rows themselves, and so are p and ds as factors. */
typedef struct Work {
    Elem *q, *dy, *k, *v;
    Cell *q_t, *dy_t, *q_braid, *dy_braid, *k_braid; /* k_braid: of values, too */
    Cell *by_query, *by_key; /* p or ds as factors, cells along queries and along keys */
    float *sum, *rows, *p, *ds, *top, *total, *shrink, *delta;
    float *dk, *dv;        /* sums for all keys of the head: the tensors themselves, or scratch */
    int64_t key_row;       /* of dk and dv, in floats */
    int64_t width, wide;   /* of a head; padded to 16 */
    int64_t queries, keys; /* real rows of this pair of tiles */
    bool diagonal;
    bool later; /* not the first head of the group: its shares of dk and dv are added */
} Work;

SIMD_INLINE int64_t padded(int64_t n)
{
    return (n + GROUP - 1) / GROUP * GROUP;
}

/* The next `count` floats, or their room for what is as large. */
SIMD_INLINE void *take(float **scratch, int64_t count)
{
    float *piece = *scratch;
    *scratch += count;
    return piece;
}

static Work work_of(const AttentionHead *h, float *scratch)
{
    Work w = {.width = h->width, .wide = padded(h->width)};
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
    w.key_row = ELEM_IS_FLOAT ? h->stride : w.wide;
    return w;
}

SIMD_INLINE int64_t rows_of(const AttentionHead *h, int64_t tile)
{
    int64_t left = h->length - tile * TILE;
    return left < TILE ? left : TILE;
}

/* One row turned by its position's angles: pairs (i, i + width / 2). sign -1 turns back. */
SIMD_INLINE void turn(const AttentionHead *h, float *row, int64_t at, float sign)
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

/* Rows of one head are short and far apart: no hardware fetches them ahead. So the next tile's rows are asked for while a
 * tile is worked on; behind a head's last tile that is the next head's first, whose rows are `width` further on. Nothing is read, so past the last
 * head it may be any memory. */
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

/* A tile of rows, `stride` apart from `from` on, scaled and, with `turned`, turned; zero beyond its real rows. */
static void load(const AttentionHead *h, const Work *w, const void *tensor, int64_t stride,
                 int64_t tile, bool turned, float scale, Elem *to)
{
    const Elem *from = tensor;
    const int64_t real = rows_of(h, tile), width = w->width, wide = w->wide;
    for (int64_t r = 0; r < padded(real); ++r, to += wide) {
        const Elem *row = from + (tile * TILE + r) * stride;
        float *room = ELEM_IS_FLOAT ? (float *)(void *)to : w->rows;
        int64_t n = r < real ? width : 0;
        memset(to + n, 0, (size_t)(wide - n) * sizeof *to);
        if (!turned && scale == 1.0f) {
            copy_row(row, n, to);
            continue;
        }
#pragma omp simd
        for (int64_t i = 0; i < n; ++i) room[i] = scale * value_of(row[i]);
        if (turned && n) turn(h, room, tile * TILE + r, 1.0f);
        if (!ELEM_IS_FLOAT) elems_from(to, room, n);
    }
}

/* Rows where they are; stride in cells. */
typedef struct Rows {
    const Cell *at;
    int64_t stride;
} Rows;

/* Rows of a loaded tile. */
SIMD_INLINE Rows loaded(const Work *w, const Elem *rows)
{
    return (Rows){(const Cell *)(const void *)rows, w->wide / CELL};
}

/* A tile of rows that is read once, row by row: as it lies, if it may be, else loaded into `copy`. */
static Rows rows_at(const AttentionHead *h, const Work *w, const void *from, int64_t tile,
                    bool turned, Elem *copy)
{
    if (!turned && rows_of(h, tile) == TILE && w->width % CELL == 0) {
        const Elem *row = (const Elem *)from + tile * TILE * h->stride;
        return (Rows){(const Cell *)(const void *)row, h->stride / CELL};
    }
    load(h, w, from, h->stride, tile, turned, 1.0f, copy);
    return loaded(w, copy);
}

/* The same where rows are read, and braided, too: floats' braids are the rows themselves, and lie close together. */
static Rows rows_to_braid(const AttentionHead *h, const Work *w, const void *from, int64_t tile,
                          bool turned, Elem *copy)
{
    if (!ELEM_IS_FLOAT) return rows_at(h, w, from, tile, turned, copy);
    load(h, w, from, h->stride, tile, turned, 1.0f, copy);
    return loaded(w, copy);
}

#ifdef SIMD_BF16
/* Rounded and moved to the lower half of each lane. */
SIMD_INLINE Vu halves_of(Vf v)
{
    Vh half;
    elems_store((Elem *)(void *)&half, v);
    return __builtin_convertvector(half, Vu);
}

/* Cells of `wide` elements of neighbouring rows; a multiple of 16 of each. */
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

/* to[wide][TILE] = from[rows][wide] transposed, four by four; in cells. */
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

/* ---- the three kinds of product of a pair of tiles; on the diagonal only what lies below it ---- */

/* out[key][query] = sum over the width of rows[key] columns[][query]. */
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

/* The first query that row `key` of p has; on the diagonal, groups left of it are never computed. */
SIMD_INLINE int64_t first_query(const Work *w, int64_t key)
{
    return w->diagonal ? key / GROUP * GROUP : 0;
}

#ifdef SIMD_BF16
/* p rounded, as cells [key][TILE / CELL] along queries. */
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

/* p rounded, as cells [key / CELL][TILE] along keys. */
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

/* out[key][] (+)= sum over queries of p[key][query] rows[query][]; out's rows are out_row apart, `rows` are braided. */
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

/* out[query][] (+)= sum over keys of p[key][query] rows[key][]; `rows` are braided. */
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

/* ---- forward ---- */

/* The group of the diagonal itself. */
static void mask(const Work *w)
{
    for (int64_t key = 0; w->diagonal && key < padded(w->keys); ++key)
        for (int64_t q = first_query(w, key); q < key; ++q) w->p[key * TILE + q] = -INFINITY;
}

/* Scores in p become exponentials around the new maximum; total and shrink follow. */
static void soften(const Work *w)
{
    const int64_t m = padded(w->keys), n = padded(w->queries);
    float *restrict top = w->top, *restrict total = w->total, *restrict shrink = w->shrink;
    memcpy(shrink, top, (size_t)n * sizeof *top);
    for (int64_t key = 0; key < m; ++key) {
        const float *restrict row = w->p + key * TILE;
#pragma omp simd
        for (int64_t q = first_query(w, key); q < n; ++q)
            top[q] = row[q] > top[q] ? row[q] : top[q];
    }
#pragma omp simd
    for (int64_t q = 0; q < n; ++q) {
        shrink[q] = exp_fast(shrink[q] - top[q]);
        total[q] *= shrink[q];
    }
    for (int64_t key = 0; key < m; ++key) {
        float *restrict row = w->p + key * TILE;
#pragma omp simd
        for (int64_t q = first_query(w, key); q < n; ++q) {
            float e = exp_near(row[q] - top[q]);
            row[q] = e;
            total[q] += e;
        }
    }
}

static void scale_rows(const Work *w, float *rows, const float *by)
{
    for (int64_t q = 0; q < w->queries; ++q)
#pragma omp simd
        for (int64_t i = 0; i < w->wide; ++i) rows[q * w->wide + i] *= by[q];
}

/* Starts a tile of queries: q, turned and scaled, and its transpose. */
static void take_queries(const AttentionHead *h, Work *w, int64_t tile)
{
    w->queries = rows_of(h, tile);
    load(h, w, h->q, h->stride, tile, h->cosine, h->scale, w->q);
    transpose(w->q, padded(w->queries), w->wide / CELL, w->q_t);
}

/* The pair is this tile of keys with the queries taken. */
static void take_keys(const AttentionHead *h, Work *w, int64_t tile, bool diagonal)
{
    w->keys = rows_of(h, tile);
    w->diagonal = diagonal;
}

/* What forward reads next. A head's last tile is its first item and meets all keys for the first time. */
SIMD_INLINE void fetch_forward(const AttentionHead *h, int64_t tile, int64_t j)
{
    const int64_t tiles = (h->length + TILE - 1) / TILE;
    if (tile + 1 == tiles && j < tile) {
        fetch_tile(h, h->k, h->stride, j + 1);
        fetch_tile(h, h->v, h->stride, j + 1);
    }
    if (j < tile) return;
    if (tile > 0) {
        fetch_tile(h, h->q, h->stride, tile - 1);
    } else {
        fetch_tile(h, h->k, h->stride, tiles);
        fetch_tile(h, h->v, h->stride, tiles);
    }
}

void SIMD_NAME(attention_forward)(const AttentionHead *h, int64_t tile, float *scratch)
{
    Work w = work_of(h, scratch);
    take_queries(h, &w, tile);
    for (int64_t q = 0; q < TILE; ++q) {
        w.top[q] = -INFINITY;
        w.total[q] = 0.0f;
    }
    for (int64_t j = 0; j <= tile; ++j) {
        take_keys(h, &w, j, j == tile);
        fetch_forward(h, tile, j);
        const Rows v = rows_to_braid(h, &w, h->v, j, false, w.v);
        scores(&w, rows_at(h, &w, h->k, j, h->cosine, w.k), w.q_t, w.p);
        mask(&w);
        soften(&w);
        if (j > 0) scale_rows(&w, w.sum, w.shrink);
        sum_keys(&w, w.p, braid(v, padded(w.keys), w.wide, w.k_braid), w.sum, j > 0);
    }
    for (int64_t q = 0; q < w.queries; ++q) {
        int64_t at = tile * TILE + q;
        const float by = 1.0f / w.total[q];
        Elem *y = (Elem *)h->y + at * h->y_stride;
        h->lse[at] = w.top[q] + logf(w.total[q]);
        const float *sum = w.sum + q * w.wide;
        const int64_t n = h->width;
        EACH(y, sum[i] * by)
    }
}

/* ---- backward ---- */

/* Starts a tile of queries for the gradient: dy and its transpose, delta = sum of dy y. */
static void take_gradient(const AttentionHead *h, Work *w, int64_t tile)
{
    take_queries(h, w, tile);
    load(h, w, h->dy, h->y_stride, tile, false, 1.0f, w->dy);
    transpose(w->dy, padded(w->queries), w->wide / CELL, w->dy_t);
    for (int64_t q = 0; q < padded(w->queries); ++q) {
        int64_t at = tile * TILE + q;
        float sum = 0.0f;
        w->delta[q] = 0.0f;
        w->top[q] = INFINITY; /* beyond the end every probability is 0 */
        if (q >= w->queries) continue;
        const Elem *y = (const Elem *)h->y + at * h->y_stride;
        const Elem *dy = w->dy + q * w->wide;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < h->width; ++i) sum += value_of(dy[i]) * value_of(y[i]);
        w->delta[q] = sum;
        w->top[q] = h->lse[at];
    }
}

/* The pair's probabilities (p) and gradients of its scores (ds), both from what forward kept. */
static void probabilities(const Work *w, Rows k, Rows v)
{
    const int64_t m = padded(w->keys), n = padded(w->queries);
    const float *restrict lse = w->top, *restrict delta = w->delta;
    scores(w, k, w->q_t, w->p);
    scores(w, v, w->dy_t, w->ds);
    mask(w);
    for (int64_t key = 0; key < m; ++key) {
        float *restrict p = w->p + key * TILE, *restrict ds = w->ds + key * TILE;
#pragma omp simd
        for (int64_t q = first_query(w, key); q < n; ++q) {
            float e = exp_near(p[q] - lse[q]);
            p[q] = e;
            ds[q] = e * (ds[q] - delta[q]);
        }
    }
}

/* The tile's rows of `to` = or += sum over queries of p rows, at once where the tile and its rows are full. */
static void put_keys(const Work *w, int64_t tile, const float *p, const Cell *rows, float *to)
{
    const bool add = !w->diagonal || w->later; /* the first share is the first head's diagonal's */
    to += tile * TILE * w->key_row;
    if (!ELEM_IS_FLOAT || (w->keys == TILE && w->wide == w->width)) {
        sum_queries(w, p, rows, to, w->key_row, add);
        return;
    }
    sum_queries(w, p, rows, w->rows, w->wide, false);
    for (int64_t r = 0; r < w->keys; ++r) {
        float *restrict row = to + r * w->key_row;
        const float *restrict from = w->rows + r * w->wide;
#pragma omp simd
        for (int64_t i = 0; i < w->width; ++i) row[i] = add ? row[i] + from[i] : from[i];
    }
}

/* dk and dv of tile j get their share of this tile of queries. */
static void grad_keys(const Work *w, int64_t j)
{
    const int64_t n = padded(w->queries);
    put_keys(w, j, w->p, braid(loaded(w, w->dy), n, w->wide, w->dy_braid), w->dv);
    put_keys(w, j, w->ds, braid(loaded(w, w->q), n, w->wide, w->q_braid), w->dk);
}

static void finish_keys(const AttentionHead *h, const Work *w, int64_t tile)
{
    for (int64_t r = tile * TILE; r < tile * TILE + rows_of(h, tile); ++r) {
        float *dk = w->dk + r * w->key_row;
        if (h->cosine) turn(h, dk, r, -1.0f);
        if (ELEM_IS_FLOAT) continue;
        elems_from((Elem *)h->dk + r * h->stride, dk, w->width);
        elems_from((Elem *)h->dv + r * h->stride, w->dv + r * w->key_row, w->width);
    }
}

static void finish_queries(const AttentionHead *h, const Work *w, int64_t tile)
{
    for (int64_t r = 0; r < w->queries; ++r) {
        float *row = w->sum + r * w->wide;
        Elem *to = (Elem *)h->dq + (tile * TILE + r) * h->stride;
        if (h->cosine) turn(h, row, tile * TILE + r, -1.0f);
        const float scale = h->scale;
        const int64_t n = h->width;
        EACH(to, scale * row[i])
    }
}

SIMD_INLINE void fetch_backward(const AttentionHead *h, int64_t tile)
{
    const void *const wide[] = {h->q, h->k, h->v}, *const narrow[] = {h->dy, h->y};
    for (int i = 0; i < 3; ++i) fetch_tile(h, wide[i], h->stride, tile);
    for (int i = 0; i < 2; ++i) fetch_tile(h, narrow[i], h->y_stride, tile);
}

/* One tile of queries against its keys: dq, and with `all` its share of dk and dv. */
static void grad_tile(const AttentionHead *h, Work *w, int64_t tile, bool all)
{
    take_gradient(h, w, tile);
    if (all) fetch_backward(h, tile + 1);
    for (int64_t j = 0; j <= tile; ++j) {
        take_keys(h, w, j, j == tile);
        const Rows k = rows_to_braid(h, w, h->k, j, h->cosine, w->k);
        probabilities(w, k, rows_at(h, w, h->v, j, false, w->v));
        sum_keys(w, w->ds, braid(k, padded(w->keys), w->wide, w->k_braid), w->sum, j > 0);
        if (all) grad_keys(w, j);
    }
    finish_queries(h, w, tile);
}

/* Head i of those that share h's keys and values. */
static AttentionHead head_of(const AttentionHead *h, int64_t i)
{
    AttentionHead head = *h;
    head.q = (const Elem *)h->q + i * h->width;
    head.dq = (Elem *)h->dq + i * h->width;
    head.y = (Elem *)h->y + i * h->width;
    head.dy = (const Elem *)h->dy + i * h->width;
    head.lse = h->lse + i * h->length;
    return head;
}

void SIMD_NAME(attention_grad)(const AttentionHead *h, float *scratch)
{
    Work w = work_of(h, scratch);
    const int64_t tiles = (h->length + TILE - 1) / TILE;
    for (int64_t g = 0; g < h->group; ++g) {
        const AttentionHead head = head_of(h, g);
        w.later = g > 0;
        for (int64_t i = 0; i < tiles; ++i) grad_tile(&head, &w, i, true);
    }
    for (int64_t j = 0; j < tiles; ++j) finish_keys(h, &w, j);
}

void SIMD_NAME(attention_grad_queries)(const AttentionHead *h, int64_t tile, float *scratch)
{
    Work w = work_of(h, scratch);
    grad_tile(h, &w, tile, false);
}

void SIMD_NAME(attention_grad_keys)(const AttentionHead *h, int64_t tile, float *scratch)
{
    Work w = work_of(h, scratch);
    const int64_t tiles = (h->length + TILE - 1) / TILE;
    take_keys(h, &w, tile, true);
    const Rows k = rows_at(h, &w, h->k, tile, h->cosine, w.k);
    const Rows v = rows_at(h, &w, h->v, tile, false, w.v);
    for (int64_t g = 0; g < h->group; ++g) {
        const AttentionHead head = head_of(h, g);
        w.later = g > 0;
        for (int64_t i = tile; i < tiles; ++i) {
            take_gradient(&head, &w, i);
            w.diagonal = i == tile;
            probabilities(&w, k, v);
            grad_keys(&w, tile);
        }
    }
    finish_keys(h, &w, tile);
}
