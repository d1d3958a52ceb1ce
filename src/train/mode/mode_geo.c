/* Mode geo: each rank updates its own copy of the parameters. At a sync point every rank sets its
 * parameters to old + (sum of changes) / ranks. old: the parameters at the previous sync point;
 * changes: those that each rank has made since then. The summation tree fixes the order of
 * additions. Tables do the same with the rows that have changed (table/geo.c). */
#include "local_steps.h"
#include "sync_points.h"

#include <string.h>

struct GeoSteps {
    /* connects the ranks that train, for sums of the changes of parameters; its arena has the
     * changes of this rank; owned */
    Comm *comm;
    /* number of floats in the arena of parameters */
    int64_t count;
    /* parameters at the previous sync point, float[count]; owned */
    float *old;
};

/* Checks that no optimizer rule has state for parameters or rows, because the ranks do not exchange
 * state. */
static Status check(const Trainer *t)
{
    for (int i = 0; i < optim_rule_count(t->config); ++i) {
        OptimRule rule = optim_rule(t->config, i);
        if (rule.slots == 0 && local_rows_are_stateless(&rule)) continue;
        return config_fail_key(
            t->config, i == 0 ? "optim.name" : "optim.groups",
            "grid.mode: geo exchanges parameters but no optimizer state, so only "
            "sgd without momentum is possible: %s%s has state",
            rule.table->word.word, local_momentum_words(&rule));
    }
    return OK;
}

static char *bits_limit(const Trainer *t)
{
    return mem_format("grid.mode geo: results are the same to the bit only with dp=%d and "
                      "grid.geo_steps=%lld",
                      t->shape.dp, (long long)t->config->grid.geo_steps);
}

static Status make(Trainer *t)
{
    struct GeoSteps *g = t->geo = mem_new(sizeof *g);
    g->count = t->plan->param_elements;
    g->old = mem_new((size_t)g->count * sizeof *g->old);
    return comm_new(&g->comm, &t->grid.dp_world, t->backend, t->config->grid.transport, g->count);
}

static void free_geo(Trainer *t)
{
    if (!t->geo) return;
    if (t->geo->comm) comm_free(&t->geo->comm);
    mem_free(&t->geo->old);
    mem_free(&t->geo);
}

static void start(Trainer *t)
{
    memcpy(t->geo->old, executor_params(t->executor), (size_t)t->geo->count * sizeof(float));
}

static void update(Trainer *t, UpdateArgs args)
{
    tables_update(t->tables, args.rates.lr, args.scale);
    step_update_params(t, args);
}

static void after_update(Trainer *t, StepResult *result)
{
    struct GeoSteps *g = t->geo;
    if (!sync_point_take_step(t, result)) return;
    float *now = executor_params(t->executor), *change = g->comm->arena;
    float average = 1.0f / (float)t->shape.dp;
    for (int64_t i = 0; i < g->count; ++i) change[i] = now[i] - g->old[i];
    comm_allreduce_begin(g->comm, 0, g->count);
    comm_wait(g->comm);
    for (int64_t i = 0; i < g->count; ++i) now[i] = g->old[i] + change[i] * average;
    memcpy(g->old, now, (size_t)g->count * sizeof *now);
    executor_params_changed(t->executor);
    tables_exchange(t->tables);
    sync_point_share_requests(t, result);
}

/* listed in step_mode.c */
const StepMode mode_geo = {.ranks = STEP_RANKS_ALONE,
                           .check = check,
                           .bits_limit = bits_limit,
                           .make = make,
                           .free = free_geo,
                           .start = start,
                           .begin = sync_point_announce,
                           .forward_backward = local_forward_backward,
                           .update = update,
                           .after_update = after_update};
