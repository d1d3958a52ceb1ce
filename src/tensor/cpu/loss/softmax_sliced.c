/* softmax_loss with each row of logits cut into slices: one slice for each rank of a tensor group,
 * or the slices into which sums are cut (OpSpec.slices). A few numbers about each slice of a row
 * are gathered from all ranks and merged in the order of the slices (Shoeybi et al. 2019, section
 * 3), so all ranks get the same results. With OpSpec.slices, the results are also the same for any
 * number of ranks. A second gather collects the number of logits that rank above the label's. A
 * rank can count its logits of this kind only after the first gather, which gives it the label's
 * logit. */
#include "loss.h"

#include <math.h>

/* Numbers about one slice of a row. All are floats; a class index is exact up to 2^24. */
typedef struct SliceStats {
    /* logarithm of the sum of the logits' exponentials */
    float lse;
    /* sum of the logits */
    float sum;
    /* logit of the label; 0 if another slice has it */
    float label_logit;
    /* logit of the second label; 0 if another slice has it */
    float other;
    /* the largest logit */
    float top;
    /* class of the largest logit */
    float argmax;
} SliceStats;
enum { SLICE_STATS = sizeof(SliceStats) / sizeof(float) };

/* The arrays in the workspace. */
typedef struct Table {
    /* numbers about this rank's slices, [mine][rows] */
    SliceStats *stats;
    /* numbers about all slices, [slices][rows]; the same array as `stats` if there is one rank */
    SliceStats *all_stats;
    /* number of this rank's logits that rank above the label's, [rows]; used only if there are
     * several ranks */
    float *label_rank;
    /* the same number for each rank, [ranks][rows] */
    float *all_label_ranks;
} Table;

typedef struct SlicedTask {
    const LossTask *loss;
    /* number of slices on all ranks */
    int slices;
    /* number of slices on this rank */
    int mine;
    /* index of this rank's first slice */
    int first;
    int ranks;
    Table table;
} SlicedTask;

static SlicedTask sliced_task(const LossTask *t)
{
    const OpSpec *spec = &t->op->spec;
    const SumSlices *cut = &spec->slices;
    SlicedTask s = {.loss = t, .ranks = spec->slice.ranks ? spec->slice.ranks : 1};
    const bool cuts = cut->total > 0;
    s.slices = cuts ? cut->total : s.ranks;
    s.mine = cuts ? cut->count : 1;
    s.first = cuts ? cut->first : spec->slice.rank;
    size_t rows = (size_t)t->l->rows;
    s.table.stats = t->run->workspace;
    s.table.all_stats = s.table.stats + (s.ranks > 1 ? rows * (size_t)s.mine : 0);
    s.table.label_rank = (float *)(s.table.all_stats + rows * (size_t)s.slices);
    s.table.all_label_ranks = s.table.label_rank + rows;
    return s;
}

size_t softmax_sliced_workspace(const Loss *l, const OpSpec *spec)
{
    const SumSlices *cut = &spec->slices;
    const int ranks = spec->slice.ranks ? spec->slice.ranks : 1;
    const int stats = cut->total > 0 ? cut->total + cut->count : ranks + 1;
    return (size_t)l->rows *
           ((size_t)stats * sizeof(SliceStats) + (size_t)(1 + ranks) * sizeof(float));
}

/* Returns the first class of a slice. */
static int64_t first_class(const SlicedTask *s, int slice)
{
    return slice_first(s->loss->l->classes, s->slices, slice);
}

/* Returns the index of a row's label among this rank's logits; it is out of range if another rank
 * has the label. */
static int64_t index_at(const LossTask *t, int64_t row)
{
    return label_at(t, row) - t->l->first;
}

/* Returns the numbers about one of this rank's slices of row r. Sets *above to the number of the
 * slice's logits that rank above the label's; it is valid only if this rank has the label's
 * logit. */
static SliceStats stats_of(const SlicedTask *s, int64_t r, int slice, int *above)
{
    const LossTask *t = s->loss;
    const int64_t first = first_class(s, slice), width = first_class(s, slice + 1) - first;
    const int64_t index = label_at(t, r) - first, other = other_at(t, r) - first;
    const bool has_label = index >= 0 && index < width, readable = in_slice(t, index_at(t, r));
    const void *x = element_at(logits_at(t, r), first - t->l->first, t->l->type);
    const SimdTable *simd = simd_table(t->l->type);
    SoftmaxRow row = simd->softmax(x, width, readable ? (int)index : 0);
    SliceStats stats = {.lse = row.lse, .sum = row.sum, .argmax = (float)(first + row.argmax)};
    stats.top = logit_at(t, r, first + row.argmax - t->l->first);
    if (has_label) stats.label_logit = row.label_logit;
    if (other >= 0 && other < width) stats.other = logit_at(t, r, first + other - t->l->first);
    *above = row.label_rank;
    return stats;
}

/* An item of work_run is a row. */
static void stats_body(const void *task, int64_t begin, int64_t end)
{
    const SlicedTask *s = task;
    const LossTask *t = s->loss;
    for (int64_t r = begin; r < end; ++r) {
        int above = 0, total = 0;
        for (int k = 0; k < s->mine; ++k) {
            SliceStats *stats = &s->table.stats[k * t->l->rows + r];
            *stats = (SliceStats){0};
            if (r < t->real) *stats = stats_of(s, r, s->first + k, &above);
            total += above;
        }
        if (s->ranks == 1) s->table.all_label_ranks[r] = (float)total;
    }
}

/* Returns the numbers about the slice that has the logit of a class. */
static const SliceStats *slice_with(const SlicedTask *s, int64_t row, int64_t class)
{
    int slice = 0;
    while (class >= first_class(s, slice + 1)) ++slice;
    return &s->table.all_stats[slice * s->loss->l->rows + row];
}

/* Returns the statistics of a row, merged from the numbers about its slices; label_rank is left
 * 0. */
static SoftmaxRow merge(const SlicedTask *s, int64_t row)
{
    const LossTask *t = s->loss;
    const SliceStats *first = &s->table.all_stats[row], *best = first;
    float top = first->lse, total = 0, sum = 0;
    for (int k = 1; k < s->slices; ++k) {
        const SliceStats *stats = first + k * t->l->rows;
        if (stats->lse > top) top = stats->lse;
        if (stats->top > best->top) best = stats;
    }
    for (int k = 0; k < s->slices; ++k) {
        const SliceStats *stats = first + k * t->l->rows;
        /* the term of the largest slice is 1, even if all its logits are -infinity; the result is
         * then -infinity, not NaN */
        total += stats->lse == top ? 1.0f : expf(stats->lse - top);
        sum += stats->sum;
    }
    return (SoftmaxRow){.lse = top + logf(total),
                        .sum = sum,
                        .label_logit = slice_with(s, row, label_at(t, row))->label_logit,
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
        for (int k = 0; k < s->ranks; ++k)
            row.label_rank += (int)s->table.all_label_ranks[r + k * t->l->rows];
        float other = 0;
        if (r < t->real) other = slice_with(s, r, other_at(t, r))->other;
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
    SlicedTask s = sliced_task(t);
    all_rows(stats_body, &s);
    if (s.ranks > 1) {
        const Exchange *x = t->run->exchange;
        Slices row_slices = {
            .ranges = 1, .items = x->size, .item_elements = t->l->rows, .type = DTYPE_F32};
        Slices stats_slices = row_slices;
        stats_slices.item_elements *= s.mine * SLICE_STATS;
        x->all_gather(x, stats_slices, s.table.stats, s.table.all_stats);
        all_rows(label_rank_body, &s);
        x->all_gather(x, row_slices, s.table.label_rank, s.table.all_label_ranks);
    }
    all_rows(result_body, &s);
}
