/* softmax_loss when each rank of a tensor group has a slice of every row of logits. The ranks
 * exchange a few numbers per row about their slices and merge them in rank order, so that all get
 * the same results (Shoeybi et al. 2019, section 3). There are two rounds: the logits above the
 * true one can be counted only after its value is known. */
#include "loss.h"

#include <math.h>

/* Findings of one rank about its slice of a row, as floats: class numbers are exact up to 2^24. */
typedef struct Known {
    /* truth, other: logits of the two labels, 0 if the label is in another rank's slice; top,
     * argmax: the largest logit and its class */
    float lse, sum, truth, other, top, argmax;
} Known;
enum { KNOWN = sizeof(Known) / sizeof(float) };

/* The parts of the workspace: this rank's values, then those of all ranks. */
typedef struct Table {
    Known *known, *all_known;
    float *label_rank, *all_label_ranks;
} Table;

typedef struct SlicedTask {
    const LossTask *loss;
    Table table;
} SlicedTask;

size_t softmax_sliced_workspace(const Loss *l, int ranks)
{
    return (size_t)(1 + ranks) * (size_t)l->rows * (sizeof(Known) + sizeof(float));
}

static Table table_of(const LossTask *t)
{
    size_t rows = (size_t)t->l->rows, ranks = (size_t)t->op->spec.slice.ranks;
    Table table = {.known = t->run->workspace};
    table.all_known = table.known + rows;
    table.label_rank = (float *)(table.all_known + ranks * rows);
    table.all_label_ranks = table.label_rank + rows;
    return table;
}

/* The label's index in this rank's slice; out of range if another rank has it. */
static int64_t place_at(const LossTask *t, int64_t row)
{
    return label_at(t, row) - t->l->first;
}

static void know_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        Known *known = &s->table.known[r];
        *known = (Known){0};
        if (r >= t->real) continue;
        int64_t place = place_at(t, r), other = other_at(t, r) - t->l->first;
        SoftmaxRow row =
            simd_table(t->l->type)
                ->softmax(logits_at(t, r), t->l->width, is_here(t, place) ? (int)place : 0);
        *known = (Known){.lse = row.lse,
                         .sum = row.sum,
                         .truth = is_here(t, place) ? row.truth : 0,
                         .other = is_here(t, other) ? logit_at(t, r, other) : 0,
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
    const Known *first = &s->table.all_known[row], *best = first;
    float top = first->lse, total = 0, sum = 0;
    for (int k = 1; k < ranks; ++k) {
        const Known *known = first + k * t->l->rows;
        if (known->lse > top) top = known->lse;
        if (known->top > best->top) best = known;
    }
    for (int k = 0; k < ranks; ++k) {
        const Known *known = first + k * t->l->rows;
        total += expf(known->lse - top);
        sum += known->sum;
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
                ->softmax_label_rank(logits_at(t, r), t->l->width, (int)place_at(t, r), truth);
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
        const Known *of = s->table.all_known + r;
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
    Slices of_known = of_rows;
    of_known.unit *= KNOWN;
    all_rows(know_body, &s);
    x->gather(x, of_known, s.table.known, s.table.all_known);
    all_rows(label_rank_body, &s);
    x->gather(x, of_rows, s.table.label_rank, s.table.all_label_ranks);
    all_rows(result_body, &s);
}
