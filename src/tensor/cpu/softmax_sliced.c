/* softmax_loss when each rank of a tensor group has a slice of every row of logits. The ranks
 * exchange a few numbers per row about their slices and merge them in rank order, so that all get
 * the same results (Shoeybi et al. 2019, section 3). There are two rounds: the logits above the
 * true one can be counted only after its value is known. */
#include "loss.h"

#include <math.h>

/* Findings of one rank about its slice of a row, as floats: class numbers are exact up to 2^24. */
typedef struct SliceStats {
    /* truth, other: logits of the two labels, 0 if the label is in another rank's slice; top,
     * argmax: the largest logit and its class */
    float lse, sum, truth, other, top, argmax;
} SliceStats;
enum { SLICE_STATS = sizeof(SliceStats) / sizeof(float) };

/* The parts of the workspace: this rank's values, then those of all ranks. */
typedef struct Table {
    SliceStats *stats, *all_stats;
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

/* The label's index in this rank's slice; out of range if another rank has it. */
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
                              .truth = in_slice(t, index) ? row.truth : 0,
                              .other = in_slice(t, other) ? logit_at(t, r, other) : 0,
                              .top = logit_at(t, r, row.argmax),
                              .argmax = (float)(t->l->first + row.argmax)};
    }
}

/* The rank whose slice has a class. */
static int rank_of(const LossTask *t, int64_t class)
{
    const TensorSlice *cut = &t->op->spec.slice;
    int rank = 0;
    while (class >= slice_first(cut->whole, cut->ranks, rank + 1)) ++rank;
    return rank;
}

/* Merges the ranks' values of a row, without label_rank. */
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
                        .truth = first[rank_of(t, label_at(t, row)) * t->l->rows].truth,
                        .argmax = (int)best->argmax};
}

static void label_rank_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        s->table.label_rank[r] = 0;
        if (r >= t->real) continue;
        float truth = merge(s, r).truth;
        s->table.label_rank[r] =
            (float)simd_table(t->l->type)
                ->softmax_label_rank(logits_at(t, r), t->l->width, (int)index_at(t, r), truth);
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
        const SliceStats *of = s->table.all_stats + r;
        float other = 0;
        if (r < t->real) other = of[rank_of(t, other_at(t, r)) * t->l->rows].other;
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
    SlicedTask s = {t, table_of(t)};
    const Exchange *x = t->run->exchange;
    Slices of_rows = {.runs = 1, .items = x->size, .unit = t->l->rows, .type = DTYPE_F32};
    Slices of_stats = of_rows;
    of_stats.unit *= SLICE_STATS;
    all_rows(stats_body, &s);
    x->gather(x, of_stats, s.table.stats, s.table.all_stats);
    all_rows(label_rank_body, &s);
    x->gather(x, of_rows, s.table.label_rank, s.table.all_label_ranks);
    all_rows(result_body, &s);
}
