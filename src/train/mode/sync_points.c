/* Sync points of the modes geo, async and stale: their steps, and requests that wait for them. */
#include "sync_points.h"

#include "../step/position.h"

bool sync_point_at(const Trainer *t, int64_t step)
{
    if (t->config->grid.mode == UPDATE_SYNC) return true;
    return step % t->config->grid.geo_steps == 0 || position_ends_epoch(t, step) ||
           step == t->steps;
}

void sync_point_announce(Trainer *t)
{
    if (t->tables) tables_set_sync_point(t->tables, sync_point_at(t, t->step + 1));
}

bool sync_point_take_step(Trainer *t, StepResult *result)
{
    if (result->bad_kind) {
        char fault[80] = "a gradient is not finite";
        if (result->bad_kind != BAD_GRADIENT)
            snprintf(fault, sizeof fault, "the loss%s is %g",
                     step_mode_is_local(t->mode) ? " of this rank's samples" : "",
                     text_nan_without_sign(result->bad_loss));
        die_as(ERR_DATA,
               "step %lld: %s; lower optim.lr, or look at the data with `weft data check`; the "
               "newest checkpoint stays as it is",
               (long long)t->step, fault);
    }
    t->stop_requested |= result->stop_requested;
    t->save_requested |= result->save_requested;
    t->hook_requested |= result->hook_requested;
    result->stop_requested = result->save_requested = result->hook_requested = false;
    return sync_point_at(t, t->step);
}

void sync_point_share_requests(Trainer *t, StepResult *result)
{
    int64_t requesting_ranks[] = {t->stop_requested, t->save_requested, t->hook_requested};
    world_allreduce(&t->grid.dp_world, requesting_ranks, 3);
    result->stop_requested = requesting_ranks[0] > 0;
    result->save_requested = requesting_ranks[1] > 0;
    result->hook_requested = requesting_ranks[2] > 0;
    t->stop_requested = t->save_requested = t->hook_requested = false;
}
