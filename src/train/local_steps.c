/* Modes geo and async. Between sync points a rank sums gradients over its own micro-batches only;
 * its communicator has one rank. Mode geo, at a sync point, for each parameter: new = old + (sum
 * over ranks of its changes) / ranks, summed by the tree of ranks; tables do the same with the rows
 * that changed (table/geo.c). Mode async: servers store all parameters (table/async.c), and at a
 * sync point every rank copies them, with their state, for checkpoints and evaluation. */
#include "local_steps.h"

#include "sparse.h"

#include <string.h>

struct LocalSteps {
    /* connects the workers; its arena takes the parameters' changes; NULL in mode async; owned */
    Comm *comm;
    int64_t count;
    /* parameters at the last sync point, float[count]; owned */
    float *old;
};

/* ---- rules that cannot be used ---- */

/* Number of state slots of a row, or (each) only of those with one value for each number of the
 * row; -1: the rule cannot update rows. */
static int row_slots(const OptimRule *rule, bool each)
{
    /* a width that no rule uses for anything else */
    enum { WIDTH = 7 };
    int slots = 0;
    if (!rule->table->row_state) return -1;
    RowState is = rule->table->row_state(rule->is, WIDTH);
    for (int s = 0; s < is.slots; ++s) slots += !each || is.floats[s] == WIDTH;
    return slots;
}

/* Describes the case in which a row has no state but a parameter has. */
static const char *by_momentum(const OptimRule *rule)
{
    return row_slots(rule, false) == 0 && rule->slots > 0 ? " with momentum" : "";
}

/* Checks that rules can update a parameter in pieces, as servers do with rows. */
static Status check_async_rules(const Trainer *t)
{
    for (int i = 0; i < t->graph->param_count; ++i) {
        const Param *p = &t->graph->param[i];
        if (p->info.buffer || p->frozen || p->tied >= 0) continue;
        OptimRule rule = optim_rule(t->config, t->rule[i]);
        if (row_slots(&rule, true) == rule.slots) continue;
        return config_fail_key(t->config, t->rule[i] == 0 ? "optim.name" : "optim.groups",
                               "grid.mode: async has servers update each piece of %s as it comes, "
                               "which %s%s cannot: sgd without momentum, adagrad, adam, adamw and "
                               "ftrl can",
                               p->name, rule.table->word.word, by_momentum(&rule));
    }
    return OK;
}

static Status check_geo_rules(const Trainer *t)
{
    for (int i = 0; i < optim_rule_count(t->config); ++i) {
        OptimRule rule = optim_rule(t->config, i);
        if (row_slots(&rule, false) == 0 && rule.slots == 0) continue;
        return config_fail_key(t->config, i == 0 ? "optim.name" : "optim.groups",
                               "grid.mode: geo adds what ranks have changed, which is defined for "
                               "sgd without momentum: %s%s has state",
                               rule.table->word.word, by_momentum(&rule));
    }
    return OK;
}

Status local_check(const Trainer *t)
{
    int64_t fit = train_fitting_micro_batch(t);
    if (fit == 0)
        return config_fail_key(t->config, "train.batch",
                               "is %lld, but each of %d ranks needs a sample of each batch: set it "
                               "to %d or more, or start %lld ranks that train",
                               (long long)t->batch, t->shape.dp, t->shape.dp, (long long)t->batch);
    if (t->micros < t->shape.dp)
        return config_fail_key(t->config, "train.micro_batch",
                               "is %lld, so a batch of %lld has %d for %d ranks, each of which "
                               "needs one: set it to %lld",
                               (long long)t->micro_batch, (long long)t->batch, t->micros,
                               t->shape.dp, (long long)fit);
    return t->config->grid.mode == TABLE_GEO ? check_geo_rules(t) : check_async_rules(t);
}

/* ---- a run ---- */

Status local_make(Trainer *t)
{
    if (!table_mode_is_local(sparse_mode(t))) return OK;
    struct LocalSteps *g = t->local = mem_new(sizeof *g);
    if (sparse_mode(t) == TABLE_ASYNC) return OK;
    g->count = t->plan->param_elements;
    g->old = mem_new((size_t)(g->count + 1) * sizeof *g->old);
    return comm_new(&g->comm, &t->grid.dp_world, t->backend, t->config->grid.transport, g->count);
}

void local_free(Trainer *t)
{
    if (!t->local) return;
    if (t->local->comm) comm_free(&t->local->comm);
    mem_free(&t->local->old);
    mem_free(&t->local);
}

/* Describes where the optimizer stores the state that servers store in mode async. The caller frees
 * .at. */
static TableDenseState dense_state(Trainer *t)
{
    int64_t(*at)[OPTIM_SLOTS] = mem_new((size_t)(t->optim->range_count + 1) * sizeof *at);
    for (int i = 0; i < t->optim->range_count; ++i)
        memcpy(at[i], t->optim->piece[i].state, sizeof at[i]);
    return (TableDenseState){.params = executor_params(t->executor),
                             .state = t->optim->state,
                             .at = at,
                             .updates = t->optim->step * t->shape.dp};
}

/* Sends rank 0's parameters and state to the servers, and waits until all ranks have reached this
 * point. */
static void dense_to_servers(Trainer *t)
{
    TableDenseState of = dense_state(t);
    if (t->world->rank == 0) tables_dense_put(t->tables, &of);
    mem_free(&of.at);
    (void)tables_wait_at_sync_point(t->tables, -1, false);
}

static void dense_from_servers(Trainer *t)
{
    TableDenseState of = dense_state(t);
    bool last = t->step == t->steps, stops = tables_wait_at_sync_point(t->tables, t->step, last);
    if (stops && !last)
        log_info("the order of requests stops at step %lld, and so does its replay",
                 (long long)t->step);
    t->stop_requested |= stops;
    tables_dense_get(t->tables, &of);
    mem_free(&of.at);
    executor_params_changed(t->executor);
}

void local_begin_step(Trainer *t)
{
    if (!t->local || t->local->comm) return;
    tables_dense_pull(t->tables, executor_params(t->executor));
    executor_params_changed(t->executor);
}

bool local_update(Trainer *t, const StepBatch *batch, double lr, double scale)
{
    if (!t->local || t->local->comm) return false;
    optim_begin(t->optim, lr, scale);
    if (batch->micros > 0) tables_push(t->tables, executor_grads(t->executor), lr, scale);
    return true;
}

void local_begin(Trainer *t)
{
    struct LocalSteps *g = t->local;
    if (g && !g->comm) dense_to_servers(t);
    if (g && g->comm)
        memcpy(g->old, executor_params(t->executor), (size_t)g->count * sizeof *g->old);
}

int64_t local_samples(const Trainer *t, int64_t batch_samples, int *micros)
{
    int64_t share = t->micros_local * t->micro_batch, first = t->grid.dp_rank * share;
    int64_t left = batch_samples - first, mine = left < 0 ? 0 : left < share ? left : share;
    *micros = (int)((mine + t->micro_batch - 1) / t->micro_batch);
    return mine;
}

static void exchange(Trainer *t)
{
    struct LocalSteps *g = t->local;
    float *now = executor_params(t->executor), *change = g->comm->arena;
    float part = 1.0f / (float)t->shape.dp;
    for (int64_t i = 0; i < g->count; ++i) change[i] = now[i] - g->old[i];
    comm_allreduce_begin(g->comm, 0, g->count);
    comm_wait(g->comm);
    for (int64_t i = 0; i < g->count; ++i) now[i] = g->old[i] + change[i] * part;
    memcpy(g->old, now, (size_t)g->count * sizeof *now);
    executor_params_changed(t->executor);
    tables_exchange(t->tables);
}

void local_join(Trainer *t)
{
    if (t->local->comm)
        exchange(t);
    else
        dense_from_servers(t);
}
