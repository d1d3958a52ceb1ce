/* Operations on flat arrays: optimizers, sums, squares, matrix products. A thread processes
 * complete chunks of FLAT_CHUNK elements, so each element and each chunk's sum of squares has the
 * same bits on any number of threads. */
#include "view.h"

#include <math.h>
#include <string.h>

typedef struct FlatTask {
    /* arguments of an update: UpdateTask or Average */
    const void *args;
    /* arrays that are written; each operation sets those that it uses */
    float *out[2];
    /* arrays that are only read */
    const float *in_a, *in_b;
    /* add_bf16: the result */
    Bf16 *half;
    /* add_bf16: the operands */
    const Bf16 *half_a, *half_b;
    /* sums of squares, one for each chunk */
    double *sums;
    /* exact sums of squares, one for each chunk */
    SquareSum *exact_sums;
    /* chunk_squares and exact_chunk_squares: the chunks */
    const FlatChunk *chunk;
    /* factors of scale_add; alpha is also the value of fill */
    float alpha, beta;
    int64_t n;
} FlatTask;

static void flat_run(WorkBody body, FlatTask t)
{
    work_run(body, &t, (t.n + FLAT_CHUNK - 1) / FLAT_CHUNK, t.n);
}

/* A range of elements of a flat array. */
typedef struct Range {
    /* the first element */
    int64_t from;
    /* number of elements */
    int64_t n;
} Range;

/* Returns the elements of chunks begin .. end - 1. */
static Range range_of(const FlatTask *t, int64_t begin, int64_t end)
{
    int64_t from = begin * FLAT_CHUNK, to = end * FLAT_CHUNK < t->n ? end * FLAT_CHUNK : t->n;
    return (Range){.from = from, .n = to - from};
}

static void fill_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    for (int64_t i = r.from; i < r.from + r.n; ++i) t->out[0][i] = t->alpha;
}

static void flat_fill(Stream *s, float *to, float value, int64_t n)
{
    (void)s;
    flat_run(fill_body, (FlatTask){.out = {to}, .alpha = value, .n = n});
}

static void add_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    simd_table(DTYPE_F32)->add_act(ACT_NONE, t->out[0] + r.from, t->in_a + r.from, t->in_b + r.from,
                                   r.n);
}

static void flat_add(Stream *s, float *out, const float *a, const float *b, int64_t n)
{
    (void)s;
    flat_run(add_body, (FlatTask){.out = {out}, .in_a = a, .in_b = b, .n = n});
}

static void add_bf16_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    simd_table(DTYPE_BF16)
        ->add_act(ACT_NONE, t->half + r.from, t->half_a + r.from, t->half_b + r.from, r.n);
}

static void flat_add_bf16(Stream *s, Bf16 *out, const Bf16 *a, const Bf16 *b, int64_t n)
{
    (void)s;
    flat_run(add_bf16_body, (FlatTask){.half = out, .half_a = a, .half_b = b, .n = n});
}

static void scale_add_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    simd_table(DTYPE_F32)->scale_add(t->out[0] + r.from, t->alpha, t->in_a + r.from, t->beta, r.n);
}

static void flat_scale_add(Stream *s, float *y, float alpha, const float *x, float beta, int64_t n)
{
    (void)s;
    flat_run(scale_add_body,
             (FlatTask){.out = {y}, .in_a = x, .alpha = alpha, .beta = beta, .n = n});
}

/* Computes the sum of squares of each chunk. */
static void squares_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    for (int64_t i = begin; i < end; ++i) {
        Range r = range_of(t, i, i + 1);
        t->sums[i] = simd_table(DTYPE_F32)->squares(t->in_a + r.from, r.n);
    }
}

static void flat_squares(Stream *s, double *out, const float *x, int64_t n)
{
    (void)s;
    flat_run(squares_body, (FlatTask){.sums = out, .in_a = x, .n = n});
}

static void chunk_squares_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    for (const FlatChunk *c = t->chunk + begin; c < t->chunk + end; ++c)
        t->sums[c->sum] = simd_table(DTYPE_F32)->squares(t->in_a + c->offset, c->elements);
}

static void flat_chunk_squares(Stream *s, double *out, const float *x, const FlatChunk *chunk,
                               int64_t count)
{
    const FlatTask task = {.sums = out, .in_a = x, .chunk = chunk};
    (void)s;
    work_run(chunk_squares_body, &task, count, count * FLAT_CHUNK);
}

static void exact_squares_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    for (int64_t i = begin; i < end; ++i) {
        Range r = range_of(t, i, i + 1);
        t->exact_sums[i] = simd_table(DTYPE_F32)->exact_squares(t->in_a + r.from, r.n);
    }
}

static void flat_exact_squares(Stream *s, SquareSum *out, const float *x, int64_t n)
{
    (void)s;
    flat_run(exact_squares_body, (FlatTask){.exact_sums = out, .in_a = x, .n = n});
}

static void exact_chunks_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    for (const FlatChunk *c = t->chunk + begin; c < t->chunk + end; ++c)
        t->exact_sums[c->sum] =
            simd_table(DTYPE_F32)->exact_squares(t->in_a + c->offset, c->elements);
}

static void flat_exact_chunk_squares(Stream *s, SquareSum *out, const float *x,
                                     const FlatChunk *chunk, int64_t count)
{
    const FlatTask task = {.exact_sums = out, .in_a = x, .chunk = chunk};
    (void)s;
    work_run(exact_chunks_body, &task, count, count * FLAT_CHUNK);
}

void square_sum_add(SquareSum *to, const SquareSum *from)
{
    enum { PARTS = 3 };
    const int64_t scale = to->scale > from->scale ? to->scale : from->scale;
    SquareSum sum = {.scale = scale};
    for (int64_t i = 0; i < PARTS; ++i) {
        const int64_t a = i - (scale - to->scale), b = i - (scale - from->scale);
        sum.part[i] = (a >= 0 ? to->part[a] : 0) + (b >= 0 ? from->part[b] : 0);
    }
    *to = sum;
}

double square_sum_value(const SquareSum *sum)
{
    if (sum->scale == SQUARES_NAN) return NAN;
    if (sum->scale == SQUARES_INFINITE) return INFINITY;
    const int unit = 32 * (int)(sum->scale - SQUARES_SCALE_0);
    return ldexp((double)sum->part[2], unit - 64) + ldexp((double)sum->part[1], unit - 32) +
           ldexp((double)sum->part[0], unit);
}

static void flat_join_squares(Stream *s, SquareSum *out, double *value, const SquareSum *x,
                              const int64_t *first, int count)
{
    (void)s;
    for (int i = 0; i < count; ++i) {
        SquareSum sum = {0};
        for (int64_t k = first[i]; k < first[i + 1]; ++k) square_sum_add(&sum, &x[k]);
        out[i] = sum;
        value[i] = square_sum_value(&sum);
    }
}

/* Sets out[0] to 1 if an element is infinite or NaN. All threads that find one write the same
 * value. */
static void not_finite_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    const float one = 1;
    if (simd_table(DTYPE_F32)->not_finite(t->in_a + r.from, r.n))
        __atomic_store(t->out[0], &one, __ATOMIC_RELAXED);
}

static void flat_find_not_finite(Stream *s, float *found, const float *x, int64_t n)
{
    (void)s;
    flat_run(not_finite_body, (FlatTask){.out = {found}, .in_a = x, .n = n});
}

static bool flat_find_and_copy(float *to, const float *x, int64_t n)
{
    const SimdTable *table = simd_table(DTYPE_F32);
    return to ? table->copy(to, x, n) : table->not_finite(x, n);
}

static void average_range(Average average, const float *w, Range r)
{
    if (average.to)
        simd_table(DTYPE_F32)->average(average.to + r.from, average.rate, w + r.from, r.n);
}

static void average_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    average_range(*(const Average *)t->args, t->in_a, range_of(t, begin, end));
}

static void flat_average(Stream *s, Average average, const UpdateNumbers *numbers, const float *w,
                         int64_t n)
{
    (void)s;
    if (numbers) average.rate = numbers->average_rate;
    flat_run(average_body, (FlatTask){.args = &average, .in_a = w, .n = n});
}

static void swap_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    Range r = range_of(t, begin, end);
    float *restrict a = t->out[0] + r.from, *restrict b = t->out[1] + r.from;
    for (int64_t i = 0; i < r.n; ++i) {
        const float from_a = a[i];
        a[i] = b[i];
        b[i] = from_a;
    }
}

static void flat_swap(Stream *s, float *a, float *b, int64_t n)
{
    (void)s;
    flat_run(swap_body, (FlatTask){.out = {a, b}, .n = n});
}

/* Updates the elements of a piece, but not its average. args: SgdArgs or AdamArgs. */
typedef void (*UpdateBody)(const void *args, const UpdatePiece *piece);
/* An update of one piece. */
typedef struct UpdateTask {
    UpdateBody update;
    const void *args;
    const UpdatePiece *piece;
    Average average;
    /* adam_direction: the direction */
    float *u;
} UpdateTask;

/* Returns elements r.from .. r.from + r.n - 1 of the piece. */
static UpdatePiece piece_range(const UpdatePiece *piece, Range r)
{
    UpdatePiece part = *piece;
    part.w += r.from;
    part.g += r.from;
    if (part.m) part.m += r.from;
    if (part.v) part.v += r.from;
    part.n = r.n;
    return part;
}

/* Updates elements of the piece, then moves their average. With an average, both are done for one
 * part of the elements after the other: a part is then still in the first-level cache when its
 * average is moved. */
static void update_body(const void *task, int64_t begin, int64_t end)
{
    enum { PART = 1024 };
    const UpdateTask *t = ((const FlatTask *)task)->args;
    const Range all = range_of(task, begin, end);
    const int64_t most = t->average.to ? PART : all.n;
    for (int64_t at = 0; at < all.n; at += most) {
        const Range r = {.from = all.from + at, .n = all.n - at < most ? all.n - at : most};
        const UpdatePiece part = piece_range(t->piece, r);
        t->update(t->args, &part);
        average_range(t->average, t->piece->w, r);
    }
}

static void update_pieces(UpdateBody update, const void *args, float average_rate,
                          const UpdatePiece *piece, int count)
{
    for (int i = 0; i < count; ++i) {
        const UpdateTask t = {.update = update,
                              .args = args,
                              .piece = &piece[i],
                              .average = {piece[i].average, average_rate}};
        flat_run(update_body, (FlatTask){.args = &t, .n = piece[i].n});
    }
}

static void sgd_elements(const void *args, const UpdatePiece *piece)
{
    simd_table(DTYPE_F32)->sgd(args, piece);
}

static void flat_sgd(Stream *s, const SgdArgs *a, const UpdatePiece *piece, int count)
{
    (void)s;
    update_pieces(sgd_elements, a, a->average_rate, piece, count);
}

static void adam_elements(const void *args, const UpdatePiece *piece)
{
    simd_table(DTYPE_F32)->adam(args, piece);
}

static void flat_adam(Stream *s, const AdamArgs *a, const UpdatePiece *piece, int count)
{
    (void)s;
    update_pieces(adam_elements, a, a->average_rate, piece, count);
}

static void direction_body(const void *task, int64_t begin, int64_t end)
{
    const FlatTask *t = task;
    const UpdateTask *update = t->args;
    const Range r = range_of(t, begin, end);
    const UpdatePiece part = piece_range(update->piece, r);
    simd_table(DTYPE_F32)->adam_direction(update->args, update->u + r.from, &part);
}

static void flat_adam_direction(Stream *s, const AdamArgs *a, float *u, const UpdatePiece *piece)
{
    (void)s;
    const UpdateTask t = {.args = a, .piece = piece, .u = u};
    flat_run(direction_body, (FlatTask){.args = &t, .n = piece->n});
}

static void flat_put(Stream *s, void *to, const void *from, size_t bytes)
{
    (void)s;
    memcpy(to, from, bytes);
}

static void flat_loss_sums(Stream *s, float *out, const float *results, int64_t lines)
{
    (void)s;
    double loss = 0, column1 = 0, column2 = 0;
    int64_t top1 = 0, top5 = 0;
    for (int64_t i = 0; i < lines; ++i) {
        const float *line = results + i * LOSS_COLUMNS;
        loss += (double)line[0];
        column1 += (double)line[1];
        column2 += (double)line[2];
        /* below 0: the line has no label */
        top1 += line[1] >= 0 && line[1] < 1;
        top5 += line[1] >= 0 && line[1] < 5;
    }
    out[LOSS_SUM] = (float)loss;
    out[LOSS_LINES] = (float)lines;
    out[LOSS_TOP1] = (float)top1;
    out[LOSS_TOP5] = (float)top5;
    out[LOSS_ANY] = lines > 0;
    out[LOSS_COLUMN1] = (float)column1;
    out[LOSS_COLUMN2] = (float)column2;
}

static void flat_range_sums(Stream *s, double *out, const double *x, const int64_t *first,
                            int count)
{
    (void)s;
    for (int i = 0; i < count; ++i) {
        out[i] = 0;
        for (int64_t k = first[i]; k < first[i + 1]; ++k) out[i] += x[k];
    }
}

/* arguments of flat_each */
typedef struct EachTask {
    ElementBody body;
    const void *args;
    /* FLAT_ARRAYS arrays of n elements; NULL: not used */
    float *const *array;
    int64_t n;
} EachTask;

static void each_body(const void *task, int64_t begin, int64_t end)
{
    const EachTask *t = task;
    float *part[FLAT_ARRAYS] = {0};
    int64_t from = begin * FLAT_CHUNK, to = end * FLAT_CHUNK < t->n ? end * FLAT_CHUNK : t->n;
    for (int i = 0; i < FLAT_ARRAYS; ++i)
        if (t->array[i]) part[i] = t->array[i] + from;
    t->body(t->args, part, to - from);
}

static void flat_each(Stream *s, ElementBody body, const void *args,
                      float *const array[FLAT_ARRAYS], int64_t n)
{
    (void)s;
    EachTask t = {.body = body, .args = args, .array = array, .n = n};
    work_run(each_body, &t, (n + FLAT_CHUNK - 1) / FLAT_CHUNK, n);
}

static int64_t tiles(int64_t n, int64_t tile)
{
    return (n + tile - 1) / tile;
}

/* Returns the k-th column of tiles in the order first, last, second, second to last, .... A
 * symmetric product skips tiles below the diagonal, and with this order all threads have about the
 * same work. */
static int64_t column_of(int64_t k, int64_t columns)
{
    return k % 2 == 0 ? k / 2 : columns - 1 - k / 2;
}

static void product_body(const void *task, int64_t begin, int64_t end)
{
    const MatrixProduct *p = task;
    int64_t down = tiles(p->m, MATRIX_TILE_ROWS), across = tiles(p->n, MATRIX_TILE_COLUMNS);
    for (int64_t i = begin; i < end; ++i) {
        MatrixTile t = {.row = i % down * MATRIX_TILE_ROWS,
                        .column = column_of(i / down, across) * MATRIX_TILE_COLUMNS};
        t.rows = p->m - t.row < MATRIX_TILE_ROWS ? p->m - t.row : MATRIX_TILE_ROWS;
        t.columns = p->n - t.column < MATRIX_TILE_COLUMNS ? p->n - t.column : MATRIX_TILE_COLUMNS;
        if (p->symmetric && t.row >= t.column + t.columns) continue;
        simd_table(DTYPE_F32)->matrix_tile(p, &t);
    }
}

/* Copies the elements above the diagonal to their mirror positions below it. */
static void mirror_body(const void *task, int64_t begin, int64_t end)
{
    const MatrixProduct *p = task;
    for (int64_t i = begin; i < end; ++i)
        for (int64_t j = 0; j < i; ++j) p->out[i * p->out_row + j] = p->out[j * p->out_row + i];
}

static void flat_matrix_product(Stream *s, const MatrixProduct *p)
{
    (void)s;
    int64_t count = tiles(p->m, MATRIX_TILE_ROWS) * tiles(p->n, MATRIX_TILE_COLUMNS);
    work_run(product_body, p, count, p->m * p->n * p->k);
    if (p->symmetric) work_run(mirror_body, p, p->m, p->m * p->n);
}

const FlatTable cpu_flat = {
    .fill = flat_fill,
    .add = flat_add,
    .add_bf16 = flat_add_bf16,
    .find_not_finite = flat_find_not_finite,
    .find_and_copy = flat_find_and_copy,
    .scale_add = flat_scale_add,
    .squares = flat_squares,
    .chunk_squares = flat_chunk_squares,
    .exact_squares = flat_exact_squares,
    .exact_chunk_squares = flat_exact_chunk_squares,
    .join_squares = flat_join_squares,
    .sgd = flat_sgd,
    .adam = flat_adam,
    .adam_direction = flat_adam_direction,
    .average = flat_average,
    .swap = flat_swap,
    .put = flat_put,
    .loss_sums = flat_loss_sums,
    .range_sums = flat_range_sums,
    .run_elements = flat_each,
    .matrix_product = flat_matrix_product,
};
