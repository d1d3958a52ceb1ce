/* Mode async: servers store and update all trained parameters (table/async.c). A rank copies their
 * current values from the servers before each step and sends its gradients after it. At a sync
 * point every rank copies the parameters with their optimizer state, for checkpoints and
 * evaluation. */
#include "local_steps.h"
#include "sync_points.h"

#include <string.h>

/* Checks that the optimizer rules can update a parameter in pieces, each with its own state, as
 * servers do with rows. */
static Status check(const Trainer *t)
{
    for (int i = 0; i < t->graph->param_count; ++i) {
        const Param *p = &t->graph->param[i];
        if (p->info.is_statistic || p->frozen || p->tied_param >= 0) continue;
        OptimRule rule = optim_rule(t->config, t->rule[i]);
        if (local_can_update_pieces(&rule)) continue;
        return config_fail_key(
            t->config, t->rule[i] == 0 ? "optim.name" : "optim.groups",
            "with grid.mode: async servers update each piece of %s when it arrives, which %s%s "
            "cannot do: set sgd without momentum, adagrad, adam, adamw or ftrl",
            p->name, rule.table->word.word, local_momentum_words(&rule));
    }
    return OK;
}

static char *bits_limit(const Trainer *t)
{
    (void)t;
    return mem_text("grid.mode async: results are the same to the bit only with the same order of "
                    "requests, which run.order_log records");
}

/* Describes the memory of this rank's parameters and optimizer state, which are copied to and from
 * servers. The caller frees .at. */
static TableDenseState dense_state(Trainer *t)
{
    int64_t(*at)[OPTIM_SLOTS] = mem_new((size_t)t->optim->range_count * sizeof *at);
    for (int i = 0; i < t->optim->range_count; ++i)
        memcpy(at[i], t->optim->piece[i].state, sizeof at[i]);
    return (TableDenseState){.params = executor_params(t->executor),
                             .state = t->optim->state,
                             .at = at,
                             .updates = t->optim->step * t->shape.dp};
}

/* Sends the parameters and their state from rank 0 to the servers. Then waits for all ranks. */
static void start(Trainer *t)
{
    TableDenseState dense = dense_state(t);
    if (t->world->rank == 0) tables_dense_put(t->tables, &dense);
    mem_free(&dense.at);
    (void)tables_wait_at_sync_point(t->tables, -1, false);
}

static void begin(Trainer *t)
{
    tables_dense_pull(t->tables, executor_params(t->executor));
    executor_params_changed(t->executor);
    sync_point_announce(t);
}

/* Sends this rank's gradients to the servers, unless its share of the batch has no samples. */
static void update(Trainer *t, UpdateArgs args)
{
    optim_begin(t->optim, &args.rates, args.scale);
    if (args.micro_batches > 0)
        tables_push(t->tables, executor_grads(t->executor), args.rates.lr, args.scale);
}

static void after_update(Trainer *t, StepResult *result)
{
    if (!sync_point_take_step(t, result)) return;
    TableDenseState dense = dense_state(t);
    bool last = t->step == t->steps, stops = tables_wait_at_sync_point(t->tables, t->step, last);
    if (stops && !last)
        log_info("the order of requests stops at step %lld, so the replay stops there",
                 (long long)t->step);
    t->stop_requested |= stops;
    tables_dense_get(t->tables, &dense);
    mem_free(&dense.at);
    executor_params_changed(t->executor);
    sync_point_share_requests(t, result);
}

/* listed in step_mode.c */
const StepMode mode_async = {.ranks = STEP_RANKS_ALONE,
                             .check = check,
                             .bits_limit = bits_limit,
                             .start = start,
                             .begin = begin,
                             .forward_backward = local_forward_backward,
                             .update = update,
                             .after_update = after_update};
