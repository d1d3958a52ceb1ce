/* Attention of one head, tile by tile (Dao et al. 2022, "FlashAttention"). A tile is ATTENTION_TILE
 * neighbouring queries or keys. For a tile of queries, all tiles of keys to which one of the
 * queries attends are read one after the other, with a running maximum and sum. Scores are stored
 * transposed, [key][query]: a vector holds neighbouring queries, so maxima and sums need no
 * operation across the elements of a vector, and keys and values are not transposed. Sums over keys
 * and sums over queries are added in the order of tiles in all functions of this file, so the bits
 * do not depend on how the work is divided. dk and dv are summed in place if they are fp32; else
 * they are summed in scratch, and rounded once. */
#include "attention_tile.h"

/* a number below every score, whose difference from any score is finite */
static const float LOWEST = -1e30f;

/* ---- forward ---- */

/* Sets the scores of keys to which a query does not attend to -infinity. In a pair of tiles on the
 * diagonal, these are keys after the query's own. Only those in the query's group of GROUP
 * positions are set, because scores of later groups are never computed. With a window, keys before
 * the window are set, too. With `full`, padding rows after the last key are set. (Without `full`,
 * only a pair on the diagonal can have padding rows of keys, and these come after every query's own
 * key.) */
static void mask(const Work *w)
{
    for (int64_t key = 0; w->diagonal && key < padded(w->keys); ++key)
        for (int64_t q = first_query(w, key); q < key; ++q) w->p[key * TILE + q] = -INFINITY;
    for (int64_t key = w->keys; w->full && key < padded(w->keys); ++key)
        for (int64_t q = 0; q < padded(w->queries); ++q) w->p[key * TILE + q] = -INFINITY;
    if (w->window == 0 || w->ahead + TILE <= w->window) return;
    for (int64_t key = 0; key < padded(w->keys); ++key) {
        const int64_t last = key + w->window - w->ahead, group = first_query(w, key);
        for (int64_t q = last > group ? last : group; q < padded(w->queries); ++q)
            w->p[key * TILE + q] = -INFINITY;
    }
}

SIMD_INLINE int64_t last_tile(const AttentionHead *h)
{
    return (h->length + TILE - 1) / TILE - 1;
}

/* Returns the first tile of keys that a tile of queries attends to. */
SIMD_INLINE int64_t first_keys(const AttentionHead *h, int64_t tile)
{
    const int64_t key = tile * TILE - h->window + 1;
    return h->window > 0 && key > 0 ? key / TILE : 0;
}

/* Returns the last tile of keys that a tile of queries attends to. */
SIMD_INLINE int64_t last_keys(const AttentionHead *h, int64_t tile)
{
    return h->full ? last_tile(h) : tile;
}

/* Returns the last tile of queries that attends to a tile of keys. */
SIMD_INLINE int64_t last_queries(const AttentionHead *h, int64_t tile)
{
    const int64_t last = last_tile(h);
    const int64_t reached = (tile * TILE + TILE - 1 + h->window - 1) / TILE;
    return h->window > 0 && reached < last ? reached : last;
}

/* Raises `top` to the maximum of the scores in p, replaces the scores by their exponentials
 * relative to that maximum, and updates `total` and `shrink`. */
static void exponentials(const Work *w)
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

/* Loads a tile of queries, rotated and scaled, and its transpose. */
static void start_queries(const AttentionHead *h, Work *w, int64_t tile)
{
    w->queries = rows_of(h, tile);
    load(h, w, h->q, h->stride, tile, h->cosine, h->scale, w->q);
    transpose(w->q, padded(w->queries), w->wide / CELL, w->q_t);
}

/* Sets the fields of *w that describe the pair of tile number `keys` of keys and tile number
 * `queries` of queries. */
static void set_pair(const AttentionHead *h, Work *w, int64_t keys, int64_t queries)
{
    w->keys = rows_of(h, keys);
    w->diagonal = keys == queries && !h->full;
    w->is_first = queries == (h->full ? 0 : keys);
    w->ahead = (queries - keys) * TILE;
}

/* Prefetches the tiles that forward reads after tile j of keys. A head's last tile of queries is
 * computed first, so its call prefetches the head's keys and values. The call for the first tile
 * prefetches those of the next head. */
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
    start_queries(h, &w, tile);
    for (int64_t q = 0; q < TILE; ++q) {
        /* with a window, a query may attend to no key of a tile, and the maximum must stay
         * finite */
        w.top[q] = w.window > 0 ? LOWEST : -INFINITY;
        w.total[q] = 0.0f;
    }
    const int64_t first = first_keys(h, tile), last = last_keys(h, tile);
    for (int64_t j = first; j <= last; ++j) {
        set_pair(h, &w, j, tile);
        fetch_forward(h, tile, j);
        const Rows v = rows_to_braid(h, &w, h->v, j, false, w.v);
        scores(&w, rows_at(h, &w, h->k, j, h->cosine, w.k), w.q_t, w.p);
        mask(&w);
        exponentials(&w);
        if (j > first) scale_rows(&w, w.sum, w.shrink);
        sum_keys(&w, w.p, braid(v, padded(w.keys), w.wide, w.k_braid), w.sum, j > first);
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

/* Prepares a tile of queries for the gradient: loads q and dy with their transposes, sets `top` to
 * lse, and sets `delta` to each query's sum of dy * y. */
static void start_gradient(const AttentionHead *h, Work *w, int64_t tile)
{
    start_queries(h, w, tile);
    load(h, w, h->dy, h->y_stride, tile, false, 1.0f, w->dy);
    transpose(w->dy, padded(w->queries), w->wide / CELL, w->dy_t);
    for (int64_t q = 0; q < padded(w->queries); ++q) {
        int64_t at = tile * TILE + q;
        float sum = 0.0f;
        w->delta[q] = 0.0f;
        /* makes all probabilities of a query beyond the end 0 */
        w->top[q] = INFINITY;
        if (q >= w->queries) continue;
        const Elem *y = (const Elem *)h->y + at * h->y_stride;
        const Elem *dy = w->dy + q * w->wide;
#pragma omp simd reduction(+ : sum)
        for (int64_t i = 0; i < h->width; ++i) sum += value_of(dy[i]) * value_of(y[i]);
        w->delta[q] = sum;
        w->top[q] = h->lse[at];
    }
}

/* Computes the probabilities of a pair of tiles (p) and the gradients of its scores (ds), from the
 * lse and delta of its queries. */
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

/* For each key, sums p times `rows` over the pair's queries. Adds the sums to rows of `to`, those
 * of tile number `tile`, or writes them if nothing has been added to these rows before. Complete
 * tiles whose rows need no padding are summed in place, and in bf16 all tiles. Other tiles are
 * summed in scratch, and these sums are then added or copied. */
static void put_keys(const Work *w, int64_t tile, const float *p, const Cell *rows, float *to)
{
    const bool add = !w->is_first || w->is_later_head;
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

/* Adds the contribution of the tile of queries to dk and dv of tile j of keys. */
static void grad_keys(const Work *w, int64_t j)
{
    const int64_t n = padded(w->queries);
    put_keys(w, j, w->p, braid(loaded(w, w->dy), n, w->wide, w->dy_braid), w->dv);
    put_keys(w, j, w->ds, braid(loaded(w, w->q), n, w->wide, w->q_braid), w->dk);
}

/* Rotates dk of a tile of keys back; in bf16, also rounds its dk and dv to the tensors. */
static void finish_keys(const AttentionHead *h, const Work *w, int64_t tile)
{
    for (int64_t r = tile * TILE; r < tile * TILE + rows_of(h, tile); ++r) {
        float *dk = w->dk + r * w->key_row;
        if (h->cosine) rotate_row(h, dk, r, -1.0f);
        if (ELEM_IS_FLOAT) continue;
        elems_from((Elem *)h->dk + r * h->key_stride, dk, w->width);
        elems_from((Elem *)h->dv + r * h->key_stride, w->dv + r * w->key_row, w->width);
    }
}

/* Rotates dq of a tile of queries back, scales it and writes it. */
static void finish_queries(const AttentionHead *h, const Work *w, int64_t tile)
{
    for (int64_t r = 0; r < w->queries; ++r) {
        float *row = w->sum + r * w->wide;
        Elem *to = (Elem *)h->dq + (tile * TILE + r) * h->stride;
        if (h->cosine) rotate_row(h, row, tile * TILE + r, -1.0f);
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

/* Computes dq of one tile of queries. with_keys: also adds the tile's contribution to dk and dv of
 * all tiles of keys. */
static void grad_tile(const AttentionHead *h, Work *w, int64_t tile, bool with_keys)
{
    start_gradient(h, w, tile);
    if (with_keys) fetch_backward(h, tile + 1);
    const int64_t first = first_keys(h, tile), last = last_keys(h, tile);
    for (int64_t j = first; j <= last; ++j) {
        set_pair(h, w, j, tile);
        const Rows k = rows_to_braid(h, w, h->k, j, h->cosine, w->k);
        probabilities(w, k, rows_at(h, w, h->v, j, false, w->v));
        sum_keys(w, w->ds, braid(k, padded(w->keys), w->wide, w->k_braid), w->sum, j > first);
        if (with_keys) grad_keys(w, j);
    }
    finish_queries(h, w, tile);
}

/* Returns query head i of the heads that share the keys and values of h. */
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
        w.is_later_head = g > 0;
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
    const int64_t last = last_queries(h, tile);
    set_pair(h, &w, tile, tile);
    const Rows k = rows_at(h, &w, h->k, tile, h->cosine, w.k);
    const Rows v = rows_at(h, &w, h->v, tile, false, w.v);
    for (int64_t g = 0; g < h->group; ++g) {
        const AttentionHead head = head_of(h, g);
        w.is_later_head = g > 0;
        for (int64_t i = h->full ? 0 : tile; i <= last; ++i) {
            start_gradient(&head, &w, i);
            set_pair(h, &w, tile, i);
            probabilities(&w, k, v);
            grad_keys(&w, tile);
        }
    }
    finish_keys(h, &w, tile);
}
