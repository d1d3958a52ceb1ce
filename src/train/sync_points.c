/* Sync points of the modes geo, async and stale: options that these modes exclude, and requests
 * that wait for a sync point. */
#include "sync_points.h"

#include "deferred_updates.h"
#include "local_steps.h"
#include "position.h"
#include "sparse.h"

static bool has_sync_points(const Trainer *t)
{
    return sparse_mode(t) != TABLE_SYNC;
}

/* ---- options that the modes exclude ---- */

typedef struct Refused {
    bool wrong;
    const char *key, *why;
} Refused;

static Status refuse(const Config *c, const Refused *of, size_t count)
{
    for (size_t i = 0; i < count; ++i)
        if (of[i].wrong) return config_fail_key(c, of[i].key, "%s", of[i].why);
    return OK;
}

static Status check_local(const Trainer *t)
{
    const Config *c = t->config;
    const Refused not_with[] = {
        {c->grid.servers == 0, "grid.mode", "needs servers that hold the tables: set grid.servers"},
        {t->shape.pp > 1, "grid.pp", "in this grid.mode each rank has the whole model: set 1"},
        {t->shape.tp > 1, "grid.tp", "in this grid.mode each rank has the whole model: set 1"},
        {c->grid.zero > 0, "grid.zero", "in this grid.mode each rank has its own: set 0"},
        {c->optim.clip > 0, "optim.clip", "there is no gradient of all ranks in this grid.mode"},
    };
    TRY(refuse(c, not_with, sizeof not_with / sizeof *not_with));
    return local_check(t);
}

Status sync_point_check(const Trainer *t)
{
    const Config *c = t->config;
    const TableMode mode = sparse_mode(t);
    const Refused not_with[] = {
        {c->train.on_bad != ON_BAD_STOP, "train.on_bad", "this grid.mode can only stop"},
        {c->checkpoint.every_steps % c->grid.geo_steps != 0, "checkpoint.every_steps",
         "checkpoints are made where ranks meet: make it a multiple of grid.geo_steps"},
        {mode == TABLE_STALE && t->graph->table_count == 0, "grid.mode",
         "the model has no sparse table, whose messages stale would hide: set sync"},
        {mode == TABLE_STALE && t->scale.moves, "grid.mode",
         "stale does not go with train.precision: fp16, where steps are left out"},
    };
    if (mode != TABLE_ASYNC && (*c->run.order_log || *c->run.replay))
        return config_fail_key(c, *c->run.replay ? "run.replay" : "run.order_log",
                               "there is an order of requests in grid.mode: async alone");
    if (mode == TABLE_SYNC) return OK;
    TRY(refuse(c, not_with, sizeof not_with / sizeof *not_with));
    return table_mode_is_local(mode) ? check_local(t) : OK;
}

/* ---- a run ---- */

bool sync_point_at(const Trainer *t, int64_t step)
{
    return !has_sync_points(t) || step % t->config->grid.geo_steps == 0 ||
           position_ends_epoch(t, step) || step == t->steps;
}

void sync_point_begin_step(Trainer *t)
{
    local_begin_step(t);
    if (has_sync_points(t) && t->tables)
        tables_set_sync_point(t->tables, sync_point_at(t, t->step + 1));
}

/* Adds up the requests of all ranks since the last sync point. */
static void share_requests(Trainer *t, StepResult *result)
{
    int64_t ranks[] = {t->stop_requested, t->save_requested, t->hook_requested};
    world_add(&t->grid.dp_world, ranks, 3);
    result->stop_requested |= ranks[0] > 0;
    result->save_requested |= ranks[1] > 0;
    result->hook_requested |= ranks[2] > 0;
    t->stop_requested = t->save_requested = t->hook_requested = false;
}

void sync_point_end_step(Trainer *t, StepResult *result)
{
    if (!has_sync_points(t)) return;
    if (result->bad)
        die_as(ERR_DATA,
               "step %lld: the loss%s is %g; lower optim.lr, or look at the data with `weft data "
               "check`; the newest checkpoint stays as it is",
               (long long)t->step, t->local ? " of this rank's share" : "",
               text_unsigned_nan(result->bad_loss));
    t->stop_requested |= result->stop_requested;
    t->save_requested |= result->save_requested;
    t->hook_requested |= result->hook_requested;
    result->stop_requested = result->save_requested = result->hook_requested = false;
    if (!sync_point_at(t, t->step)) return;
    if (t->local)
        local_join(t);
    else
        deferred_updates_finish(t);
    share_requests(t, result);
}
