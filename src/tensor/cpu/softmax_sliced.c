/* softmax_loss when each rank of a tensor group has a slice of every row of logits. The ranks
 * gather a few numbers per row about their slices and merge them in rank order, so that all get the
 * same results (Shoeybi et al. 2019, section 3). A second gather is needed, because a rank can
 * count the logits above the label's only if it knows the label's logit. */
#include "loss.h"

#include <math.h>

/* Numbers about one rank's slice of a row, all floats: a class index is exact up to 2^24. */
typedef struct SliceStats {
    /* logarithm of the sum of the logits' exponentials */
    float lse;
    /* sum of the logits */
    float sum;
    /* logit of the label; 0 if it is in another rank's slice */
    float label_logit;
    /* logit of the second label; 0 if it is in another rank's slice */
    float other;
    /* the largest logit */
    float top;
    /* class of the largest logit */
    float argmax;
} SliceStats;
enum { SLICE_STATS = sizeof(SliceStats) / sizeof(float) };

/* Layout of the workspace. */
typedef struct Table {
    /* numbers about the slices, [rows] of this rank and [ranks][rows] */
    SliceStats *stats, *all_stats;
    /* number of logits above the label's, [rows] of this rank and [ranks][rows] */
    float *label_rank, *all_label_ranks;
} Table;

typedef struct SlicedTask {
    const LossTask *loss;
    Table table;
} SlicedTask;

size_t softmax_sliced_workspace(const Loss *l, int ranks)
{
    return (size_t)(1 + ranks) * (size_t)l->rows * (sizeof(SliceStats) + sizeof(float));
}

static Table table_of(const LossTask *t)
{
    size_t rows = (size_t)t->l->rows, ranks = (size_t)t->op->spec.slice.ranks;
    Table table = {.stats = t->run->workspace};
    table.all_stats = table.stats + rows;
    table.label_rank = (float *)(table.all_stats + ranks * rows);
    table.all_label_ranks = table.label_rank + rows;
    return table;
}

/* Returns the label's index in this rank's slice; it is out of range if another rank has the
 * label. */
static int64_t index_at(const LossTask *t, int64_t row)
{
    return label_at(t, row) - t->l->first;
}

static void stats_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        SliceStats *stats = &s->table.stats[r];
        *stats = (SliceStats){0};
        if (r >= t->real) continue;
        int64_t index = index_at(t, r), other = other_at(t, r) - t->l->first;
        SoftmaxRow row =
            simd_table(t->l->type)
                ->softmax(logits_at(t, r), t->l->width, in_slice(t, index) ? (int)index : 0);
        *stats = (SliceStats){.lse = row.lse,
                              .sum = row.sum,
                              .label_logit = in_slice(t, index) ? row.label_logit : 0,
                              .other = in_slice(t, other) ? logit_at(t, r, other) : 0,
                              .top = logit_at(t, r, row.argmax),
                              .argmax = (float)(t->l->first + row.argmax)};
    }
}

/* Returns the rank that has a class in its slice. */
static int rank_of(const LossTask *t, int64_t class)
{
    const TensorSlice *slice = &t->op->spec.slice;
    int rank = 0;
    while (class >= slice_first(slice->whole, slice->ranks, rank + 1)) ++rank;
    return rank;
}

/* Merges the ranks' numbers of a row; label_rank is left 0. */
static SoftmaxRow merge(const SlicedTask *s, int64_t row)
{
    const LossTask *t = s->loss;
    const int ranks = t->op->spec.slice.ranks;
    const SliceStats *first = &s->table.all_stats[row], *best = first;
    float top = first->lse, total = 0, sum = 0;
    for (int k = 1; k < ranks; ++k) {
        const SliceStats *stats = first + k * t->l->rows;
        if (stats->lse > top) top = stats->lse;
        if (stats->top > best->top) best = stats;
    }
    for (int k = 0; k < ranks; ++k) {
        const SliceStats *stats = first + k * t->l->rows;
        total += expf(stats->lse - top);
        sum += stats->sum;
    }
    return (SoftmaxRow){.lse = top + logf(total),
                        .sum = sum,
                        .label_logit = first[rank_of(t, label_at(t, row)) * t->l->rows].label_logit,
                        .argmax = (int)best->argmax};
}

static void label_rank_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        s->table.label_rank[r] = 0;
        if (r >= t->real) continue;
        float label_logit = merge(s, r).label_logit;
        s->table.label_rank[r] = (float)simd_table(t->l->type)
                                     ->softmax_label_rank(logits_at(t, r), t->l->width,
                                                          (int)index_at(t, r), label_logit);
    }
}

static void result_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        SoftmaxRow row = {0};
        if (r < t->real) row = merge(s, r);
        for (int k = 0; k < t->op->spec.slice.ranks; ++k)
            row.label_rank += (int)s->table.all_label_ranks[r + k * t->l->rows];
        const SliceStats *first = s->table.all_stats + r;
        float other = 0;
        if (r < t->real) other = first[rank_of(t, other_at(t, r)) * t->l->rows].other;
        softmax_row(t, r, &row, other);
    }
}

static void all_rows(WorkBody body, const SlicedTask *s)
{
    const Loss *l = s->loss->l;
    work_run(body, s, l->rows, 4 * l->rows * l->width);
}

void softmax_sliced_forward(const LossTask *t)
{
    SlicedTask s = {.loss = t, .table = table_of(t)};
    const Exchange *x = t->run->exchange;
    Slices row_slices = {.runs = 1, .items = x->size, .unit = t->l->rows, .type = DTYPE_F32};
    Slices stats_slices = row_slices;
    stats_slices.unit *= SLICE_STATS;
    all_rows(stats_body, &s);
    x->gather(x, stats_slices, s.table.stats, s.table.all_stats);
    all_rows(label_rank_body, &s);
    x->gather(x, row_slices, s.table.label_rank, s.table.all_label_ranks);
    all_rows(result_body, &s);
}
