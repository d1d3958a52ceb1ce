/* Chooses the units to remove. Scores are computed from the weights, in double precision and in a
 * fixed order. The units with the lowest scores are removed: of each group or, if scores are
 * channel scales, of all groups together. */
#include "build.h"
#include "model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the methods ---- */

/* Adds the sum of each row's absolute values to out[row] (Li et al. 2017, "Pruning filters for
 * efficient convnets"). */
static void score_l1(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < columns; ++k) out[r] += fabs((double)w[r * columns + k]);
}

/* Sets out[row] to the Euclidean norm of each row. */
static void score_l2(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t k = 0; k < columns; ++k)
            sum += (double)w[r * columns + k] * (double)w[r * columns + k];
        out[r] = sqrt(sum);
    }
}

/* Returns the Euclidean distance of two vectors of length n. The four partial sums allow vector
 * instructions although the order of additions is fixed. */
static double distance(const float *a, const float *b, int64_t n)
{
    enum { LANES = 4 };
    double sum[LANES] = {0};
    for (int64_t k = 0; k < n; ++k) {
        double d = (double)a[k] - (double)b[k];
        sum[k % LANES] += d * d;
    }
    return sqrt((sum[0] + sum[1]) + (sum[2] + sum[3]));
}

/* Adds the sum of a row's distances to all other rows to out[row] (He et al. 2019, "Filter pruning
 * via geometric median"). */
static void score_fpgm(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t other = r + 1; other < rows; ++other) {
            double d = distance(w + r * columns, w + other * columns, columns);
            out[r] += d;
            out[other] += d;
        }
}

/* The row of each of PRUNE_WORDS (model/units.h). The method slim is that of Liu et al. 2017,
 * "Learning efficient convolutional networks through network slimming". */
const PruneMethod prune_methods[PRUNE_METHODS] = {
    [PRUNE_L1] = {"l1", score_l1},
    [PRUNE_L2] = {"l2", score_l2},
    [PRUNE_FPGM] = {"fpgm", score_fpgm},
    [PRUNE_SLIM] = {"slim", NULL},
};

/* ---- scores ---- */

/* The state of prune_choose. */
typedef struct Choice {
    const Units *units;
    const PruneOptions *options;
    /* true for each unit that is removed, [unit_count]; borrowed from the caller */
    bool *removed;
    /* score of each unit; owned */
    double *score;
    /* number of terms of each unit's score; owned */
    int64_t *terms;
    /* number of units to remove from each group; owned */
    int64_t *removals;
} Choice;

/* Adds the score of each row of a parameter to the score of the row's unit. unit: [rows], the unit
 * of each row. */
static Status add_rows(Choice *c, int param, const int *unit)
{
    const Param *p = &c->units->graph->param[param];
    int64_t rows = p->shape.dim[0], count = shape_count(p->shape);
    float *plain = mem_new((size_t)count * sizeof *plain);
    double *row_score = mem_new((size_t)rows * sizeof *row_score);
    Status st = c->options->get(c->options->user, param, plain);
    if (st == OK && c->options->method->score)
        c->options->method->score(plain, rows, count / rows, row_score);
    else if (st == OK)
        score_l1(plain, rows, 1, row_score);
    for (int64_t r = 0; st == OK && r < rows; ++r) {
        c->score[unit[r]] += row_score[r];
        ++c->terms[unit[r]];
    }
    mem_free(&plain);
    mem_free(&row_score);
    return st;
}

/* Returns whether the parameter contributes to scores. If scores are channel scales, these are the
 * scales of batch norms. Otherwise they are the weights of layers with CHANNELS_NEW, such as dense
 * and conv2d, including depthwise convolutions. */
static bool is_scored(const Choice *c, int param)
{
    const Param *p = &c->units->graph->param[param];
    if (!c->options->method->score) return p->info.channel_scale;
    return c->units->graph->node[p->node].kind->channels == CHANNELS_NEW && p->slot == 0;
}

static Status add_scores(Choice *c)
{
    const Units *units = c->units;
    for (int i = 0; i < units->graph->param_count; ++i)
        if (is_scored(c, i))
            TRY(add_rows(c, i, units_of_channels(units, units->graph->param[i].node)));
    for (int u = 0; u < units->unit_count && !c->options->method->score; ++u)
        if (c->terms[u] > 0) c->score[u] /= (double)c->terms[u];
    return OK;
}

/* ---- the number to remove from each group ---- */

/* Returns whether units of the group can be removed: the group is not kept, and all its units have
 * scores. */
static bool can_remove(const Choice *c, const UnitGroup *group)
{
    for (int u = group->first; u < group->first + group->count; ++u)
        if (c->terms[u] == 0) return false;
    return !group->is_kept;
}

typedef struct ScoredUnit {
    double score;
    int unit;
} ScoredUnit;

static int by_score(const void *a, const void *b)
{
    const ScoredUnit *x = a, *y = b;
    if (x->score != y->score) return x->score < y->score ? -1 : 1;
    return x->unit < y->unit ? -1 : x->unit > y->unit;
}

/* Returns units `first` .. `first` + count - 1, sorted by rising score; the caller owns the
 * array. */
static ScoredUnit *sort_by_score(const Choice *c, int first, int count)
{
    ScoredUnit *r = mem_new((size_t)(count + 1) * sizeof *r);
    for (int i = 0; i < count; ++i) r[i] = (ScoredUnit){c->score[first + i], first + i};
    qsort(r, (size_t)count, sizeof *r, by_score);
    return r;
}

/* Sets c->removals for a method that compares the units of all groups with each other. */
static Status count_over_all_groups(Choice *c)
{
    const Units *units = c->units;
    int64_t removable = 0, count;
    ScoredUnit *all = sort_by_score(c, 0, units->unit_count);
    for (int i = 0; i < units->group_count; ++i)
        if (can_remove(c, &units->group[i])) removable += units->group[i].count;
    count = (int64_t)((double)removable * c->options->sparsity);
    for (int k = 0; count > 0; ++k) {
        int group = units->group_of[all[k].unit];
        if (!can_remove(c, &units->group[group])) continue;
        ++c->removals[group];
        --count;
    }
    mem_free(&all);
    if (removable > 0) return OK;
    return fail(ERR_CONFIG,
                "%s compares the scales of batch norms, but this model has none whose channels "
                "can be removed: choose another method",
                c->options->method->name);
}

/* ---- the units to remove ---- */

/* Removes the same number of units from each part (UnitGroup.parts) of group i: together at most
 * c->removals[i]. At least one unit of each part remains. Fewer units are removed if that makes the
 * number of remaining units a multiple of options->round_to. */
static void remove_from_group(Choice *c, int i)
{
    const UnitGroup *group = &c->units->group[i];
    /* size: number of units of each part; remaining: number of units of each part that remain */
    int64_t parts = group->parts, size = group->count / parts;
    int64_t remaining = size - c->removals[i] / parts;
    if (c->removals[i] == 0) return;
    if (remaining < 1) remaining = 1;
    while (remaining < size && remaining * parts % c->options->round_to != 0) ++remaining;
    for (int64_t p = 0; p < parts; ++p) {
        ScoredUnit *sorted = sort_by_score(c, group->first + (int)(p * size), (int)size);
        for (int64_t k = 0; k < size - remaining; ++k) c->removed[sorted[k].unit] = true;
        mem_free(&sorted);
    }
}

/* Keeps that removed unit of part p of a group which has the highest score. */
static void keep_best_of_part(Choice *c, const UnitGroup *group, int p)
{
    int size = group->count / group->parts, first = group->first + p * size, best = -1;
    for (int u = first; u < first + size; ++u)
        if (c->removed[u] && (best < 0 || c->score[u] > c->score[best])) best = u;
    if (best >= 0) c->removed[best] = false;
}

/* If no channel of a layer would remain, keeps the channel with the highest score, and one unit
 * more of each other part of its group. This can happen if the layer has only some of its group's
 * units. */
static void keep_best_channel(Choice *c, int node)
{
    const Units *units = c->units;
    const int *unit = units_of_channels(units, node);
    if (units_channels_left(units, node, c->removed) > 0) return;
    int64_t count = graph_channels(units->graph, node);
    int best = unit[0];
    for (int64_t k = 1; k < count; ++k)
        if (c->score[unit[k]] > c->score[best]) best = unit[k];
    c->removed[best] = false;
    const UnitGroup *group = &units->group[units->group_of[best]];
    int own = (best - group->first) / (group->count / group->parts);
    for (int p = 0; p < group->parts; ++p)
        if (p != own) keep_best_of_part(c, group, p);
}

/* Keeps removed units of the group, the same number in each part, until the number of remaining
 * units is a multiple of options->round_to: keep_best_channel may have changed it. */
static void round_group(Choice *c, const UnitGroup *group)
{
    int removed = 0;
    for (int u = group->first; u < group->first + group->count; ++u) removed += c->removed[u];
    for (; removed > 0 && (group->count - removed) % c->options->round_to != 0;
         removed -= group->parts)
        for (int p = 0; p < group->parts; ++p) keep_best_of_part(c, group, p);
}

/* Fails because no channel is removed. The message names the largest of the groups whose units can
 * be removed. */
static Status none_removed_fail(const Choice *c)
{
    const Units *units = c->units;
    const UnitGroup *largest = NULL;
    for (int i = 0; i < units->group_count; ++i) {
        const UnitGroup *group = &units->group[i];
        if (group->layer_count == 0 || !can_remove(c, group)) continue;
        if (!largest || group->count > largest->count) largest = group;
    }
    if (!largest)
        return fail(ERR_CONFIG,
                    "no channel can be removed: other layers or --keep need all of them");
    const Node *node = units->graph->node;
    const char *layer = node[largest->layer[0]].name;
    double smallest = (double)largest->parts / (double)largest->count;
    if (largest->parts == largest->count)
        return fail(
            ERR_CONFIG,
            "no channel is removed: %s has %d in %d groups (%s), and each group must keep one",
            layer, largest->count, largest->parts, node[largest->divided_by].name);
    if (largest->parts > 1)
        return fail(
            ERR_CONFIG,
            "no channel is removed: %s must lose equally many from each of %d groups (%s), and "
            "--sparsity %g of %d channels is fewer than one per group; give at least %g",
            layer, largest->parts, node[largest->divided_by].name, c->options->sparsity,
            largest->count, smallest);
    return fail(
        ERR_CONFIG,
        "no channel is removed: --sparsity %g of the %d channels of %s, the widest layer, is "
        "less than one channel, or --round %lld keeps all; give at least %g",
        c->options->sparsity, largest->count, layer, (long long)c->options->round_to, smallest);
}

Status prune_choose(const Units *units, const PruneOptions *options, bool *removed)
{
    Choice c = {.units = units, .options = options, .removed = removed};
    c.score = mem_new((size_t)(units->unit_count + 1) * sizeof *c.score);
    c.terms = mem_new((size_t)(units->unit_count + 1) * sizeof *c.terms);
    c.removals = mem_new((size_t)(units->group_count + 1) * sizeof *c.removals);
    memset(removed, 0, (size_t)units->unit_count * sizeof *removed);
    Status st = add_scores(&c);
    if (st == OK && !options->method->score) st = count_over_all_groups(&c);
    for (int i = 0; st == OK && i < units->group_count; ++i) {
        const UnitGroup *group = &units->group[i];
        if (options->method->score && can_remove(&c, group))
            c.removals[i] = (int64_t)((double)group->count * options->sparsity);
        remove_from_group(&c, i);
        for (int k = 0; k < group->layer_count; ++k) keep_best_channel(&c, group->layer[k]);
        round_group(&c, group);
    }
    bool any = false;
    for (int u = 0; u < units->unit_count; ++u) any |= removed[u];
    if (st == OK && options->sparsity > 0 && !any) st = none_removed_fail(&c);
    mem_free(&c.score);
    mem_free(&c.terms);
    mem_free(&c.removals);
    return st;
}

void prune_set_widths(const Units *u, const bool *removed, Config *config)
{
    for (int i = 0; i < u->graph->node_count; ++i) {
        const Node *node = &u->graph->node[i];
        if (!node_has_own_width(node)) continue;
        int64_t left = units_channels_left(u, i, removed);
        if (left < graph_channels(u->graph, i)) config_set_width(config, node->name, left);
    }
}
