/* Chooses the units to remove: computes scores from the weights, in double and in a fixed order,
 * then takes the lowest of each group, or with channel scales the lowest of all groups. */
#include "build.h"
#include "model/units.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the methods ---- */

/* Sum of absolute values (Li et al. 2017, "Pruning filters for efficient convnets"). */
static void score_l1(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t k = 0; k < columns; ++k) out[r] += fabs((double)w[r * columns + k]);
}

static void score_l2(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0;
        for (int64_t k = 0; k < columns; ++k)
            sum += (double)w[r * columns + k] * (double)w[r * columns + k];
        out[r] = sqrt(sum);
    }
}

/* Four partial sums, so the order of additions depends on the length alone. */
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

/* Sum of a filter's distances to all others (He et al. 2019, "Filter pruning via geometric
 * median"). */
static void score_fpgm(const float *w, int64_t rows, int64_t columns, double *out)
{
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t other = r + 1; other < rows; ++other) {
            double d = distance(w + r * columns, w + other * columns, columns);
            out[r] += d;
            out[other] += d;
        }
}

/* slim: Liu et al. 2017, "Learning efficient convolutional networks through network slimming". */
const PruneMethod prune_methods[PRUNE_METHODS] = {
    [PRUNE_L1] = {"l1", score_l1},
    [PRUNE_L2] = {"l2", score_l2},
    [PRUNE_FPGM] = {"fpgm", score_fpgm},
    [PRUNE_SLIM] = {"slim", NULL},
};

/* ---- scores ---- */

typedef struct Choice {
    const Units *units;
    const PruneOptions *options;
    bool *removed;
    /* for each unit its score, and the number of terms added to it; owned */
    double *score;
    int64_t *terms;
    /* for each group the number of units to remove; owned */
    int64_t *removals;
} Choice;

/* Adds the scores of one parameter's rows to those of their units. */
static Status add_rows(Choice *c, int param, const int *unit)
{
    const Param *p = &c->units->graph->param[param];
    int64_t rows = p->shape.dim[0], count = shape_count(p->shape);
    float *plain = mem_new((size_t)count * sizeof *plain);
    double *row = mem_new((size_t)rows * sizeof *row);
    Status st = c->options->get(c->options->user, param, plain);
    if (st == OK && c->options->method->score)
        c->options->method->score(plain, rows, count / rows, row);
    else if (st == OK)
        score_l1(plain, rows, 1, row);
    for (int64_t r = 0; st == OK && r < rows; ++r) {
        c->score[unit[r]] += row[r];
        ++c->terms[unit[r]];
    }
    mem_free(&plain);
    mem_free(&row);
    return st;
}

/* True for a parameter that is scored: the weight of a convolution or dense layer, depthwise ones
 * included; or with channel scales a batch norm's scale. */
static bool is_scored(const Choice *c, int param)
{
    const Param *p = &c->units->graph->param[param];
    if (!c->options->method->score) return p->info.channel_scale;
    return c->units->graph->node[p->node].kind->channels == CHANNELS_OPEN && p->slot == 0;
}

static Status add_scores(Choice *c)
{
    const Units *units = c->units;
    for (int i = 0; i < units->graph->param_count; ++i)
        if (is_scored(c, i)) TRY(add_rows(c, i, units->unit[units->graph->param[i].node + 1]));
    for (int u = 0; u < units->unit_count && !c->options->method->score; ++u)
        if (c->terms[u] > 0) c->score[u] /= (double)c->terms[u];
    return OK;
}

/* ---- the number to remove from each group ---- */

/* True if units of the group can be removed; every unit must have a score. */
static bool can_remove(const Choice *c, const UnitGroup *group)
{
    for (int u = group->first; u < group->first + group->count; ++u)
        if (c->terms[u] == 0) return false;
    return !group->whole;
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

/* Returns units first .. first + count - 1 in rising order of their scores; the caller owns it. */
static ScoredUnit *sort_by_score(const Choice *c, int first, int count)
{
    ScoredUnit *r = mem_new((size_t)(count + 1) * sizeof *r);
    for (int i = 0; i < count; ++i) r[i] = (ScoredUnit){c->score[first + i], first + i};
    qsort(r, (size_t)count, sizeof *r, by_score);
    return r;
}

static Status count_together(Choice *c)
{
    const Units *units = c->units;
    int64_t all_removable = 0, fewer;
    ScoredUnit *all = sort_by_score(c, 0, units->unit_count);
    for (int i = 0; i < units->group_count; ++i)
        if (can_remove(c, &units->group[i])) all_removable += units->group[i].count;
    fewer = (int64_t)((double)all_removable * c->options->sparsity);
    for (int k = 0; fewer > 0; ++k) {
        int group = units->group_of[all[k].unit];
        if (!can_remove(c, &units->group[group])) continue;
        ++c->removals[group];
        --fewer;
    }
    mem_free(&all);
    if (all_removable > 0) return OK;
    return fail(ERR_CONFIG,
                "%s judges by the scales of batch norms, and this model has none whose channels "
                "could go: choose another method",
                c->options->method->name);
}

/* ---- the units to remove ---- */

/* Removes the same number of units from each part of a group. At least one of each part remains,
 * and the number that remains is a multiple of options->round if possible. */
static void remove_from_group(Choice *c, int number)
{
    const UnitGroup *group = &c->units->group[number];
    int64_t parts = group->parts, each = group->count / parts;
    int64_t left = each - c->removals[number] / parts;
    if (c->removals[number] == 0) return;
    if (left < 1) left = 1;
    while (left < each && left * parts % c->options->round != 0) ++left;
    for (int64_t p = 0; p < parts; ++p) {
        ScoredUnit *r = sort_by_score(c, group->first + (int)(p * each), (int)each);
        for (int64_t k = 0; k < each - left; ++k) c->removed[r[k].unit] = true;
        mem_free(&r);
    }
}

/* If no channel of a layer remains, which happens if it is only a part of its group, keeps its best
 * one. */
static void keep_one(Choice *c, int node)
{
    const Units *units = c->units;
    const int *unit = units->unit[node + 1];
    if (units_left(units, node, c->removed) > 0) return;
    int64_t count = graph_channels(units->graph, node);
    int best = unit[0];
    for (int64_t k = 1; k < count; ++k)
        if (c->score[unit[k]] > c->score[best]) best = unit[k];
    c->removed[best] = false;
}

/* Fails if no channel can be removed; the message names the largest group that was considered. */
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
        return fail(ERR_CONFIG, "no channel can go: other layers, or --keep, need all as they are");
    const Node *node = units->graph->node;
    const char *layer = node[largest->layer[0]].name;
    double least = (double)largest->parts / (double)largest->count;
    if (largest->parts == largest->count)
        return fail(ERR_CONFIG,
                    "no channel goes: %s has %d in %d groups (%s), of which each must keep one",
                    layer, largest->count, largest->parts, node[largest->divider].name);
    if (largest->parts > 1)
        return fail(
            ERR_CONFIG,
            "no channel goes: those of %s go equally from %d groups (%s), and --sparsity %g "
            "of %d channels is fewer than one of each; give at least %g",
            layer, largest->parts, node[largest->divider].name, c->options->sparsity,
            largest->count, least);
    return fail(ERR_CONFIG,
                "no channel goes: --sparsity %g of the %d channels of %s, the most that any layer "
                "has, leaves all, or --round %lld does; give at least %g",
                c->options->sparsity, largest->count, layer, (long long)c->options->round, least);
}

Status prune_choose(const Units *units, const PruneOptions *options, bool *removed)
{
    Choice c = {.units = units, .options = options, .removed = removed};
    c.score = mem_new((size_t)(units->unit_count + 1) * sizeof *c.score);
    c.terms = mem_new((size_t)(units->unit_count + 1) * sizeof *c.terms);
    c.removals = mem_new((size_t)(units->group_count + 1) * sizeof *c.removals);
    memset(removed, 0, (size_t)units->unit_count * sizeof *removed);
    Status st = add_scores(&c);
    if (st == OK && !options->method->score) st = count_together(&c);
    for (int i = 0; st == OK && i < units->group_count; ++i) {
        const UnitGroup *group = &units->group[i];
        if (options->method->score && can_remove(&c, group))
            c.removals[i] = (int64_t)((double)group->count * options->sparsity);
        remove_from_group(&c, i);
        for (int k = 0; k < group->layer_count; ++k) keep_one(&c, group->layer[k]);
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
        if (!node_opens(node)) continue;
        int64_t left = units_left(u, i, removed);
        if (left < graph_channels(u->graph, i)) config_set_width(config, node->name, left);
    }
}
