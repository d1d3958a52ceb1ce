/* Mode stale: an update is made grid.staleness steps after its gradients have been summed. Step t
 * therefore uses the parameters after the update of step t - 1 - staleness. Tables defer updates of
 * rows in the same way. At a sync point all deferred updates are made. */
#include "sparse.h"
#include "step_mode.h"
#include "sync_points.h"

#include <string.h>

struct DeferredUpdates {
    /* number of floats in the gradient arena */
    int64_t elements;
    /* number of entries in the ring of deferred updates (grid.staleness) */
    int depth;
    /* index of the oldest entry that is in use */
    int oldest;
    /* number of entries in use */
    int count;
    /* gradients of each entry, float[depth][elements]; owned */
    float **gradient;
    /* arguments of each entry's update; owned */
    UpdateArgs *args;
};

static Status check(const Trainer *t)
{
    if (t->graph->table_count == 0)
        return config_fail_key(
            t->config, "grid.mode",
            "the model has no sparse table, and stale hides only the messages of tables: "
            "set sync");
    if (t->loss_scale.dynamic)
        return config_fail_key(
            t->config, "grid.mode",
            "stale cannot be used with train.precision: fp16, which skips steps");
    return OK;
}

static Status make(Trainer *t)
{
    struct DeferredUpdates *d = t->deferred = mem_new(sizeof *d);
    d->elements = t->plan->gradient_elements;
    d->depth = table_staleness(t->config);
    d->gradient = mem_new((size_t)d->depth * sizeof *d->gradient);
    d->args = mem_new((size_t)d->depth * sizeof *d->args);
    for (int i = 0; i < d->depth; ++i)
        d->gradient[i] = mem_new((size_t)d->elements * sizeof **d->gradient);
    return OK;
}

static void free_deferred(Trainer *t)
{
    struct DeferredUpdates *d = t->deferred;
    if (!d) return;
    for (int i = 0; i < d->depth; ++i) mem_free(&d->gradient[i]);
    mem_free(&d->gradient);
    mem_free(&d->args);
    mem_free(&t->deferred);
}

/* Updates the tables, and stores the step's gradients in the ring. If the ring is full, they
 * replace the oldest gradients, with which the parameters are then updated. */
static void update(Trainer *t, UpdateArgs args)
{
    struct DeferredUpdates *d = t->deferred;
    if (t->tables) tables_update(t->tables, args.rates.lr, args.scale);
    if (d->depth == 0) {
        step_update_params(t, args);
        return;
    }
    float *gradient = executor_grads(t->executor);
    const int slot = (d->oldest + d->count) % d->depth;
    float *stored = d->gradient[slot];
    if (d->count < d->depth) {
        memcpy(stored, gradient, (size_t)d->elements * sizeof *gradient);
        d->args[slot] = args;
        ++d->count;
        return;
    }
    for (int64_t i = 0; i < d->elements; ++i) {
        float oldest = stored[i];
        stored[i] = gradient[i];
        gradient[i] = oldest;
    }
    const UpdateArgs oldest = d->args[slot];
    d->args[slot] = args;
    d->oldest = (slot + 1) % d->depth;
    step_update_params(t, oldest);
}

static void after_update(Trainer *t, StepResult *result)
{
    struct DeferredUpdates *d = t->deferred;
    if (!sync_point_take_step(t, result)) return;
    for (; d->count > 0; --d->count) {
        memcpy(executor_grads(t->executor), d->gradient[d->oldest],
               (size_t)d->elements * sizeof(float));
        step_update_params(t, d->args[d->oldest]);
        d->oldest = (d->oldest + 1) % d->depth;
    }
    if (t->tables) tables_apply_deferred(t->tables);
    sync_point_share_requests(t, result);
}

/* listed in step_mode.c */
const StepMode mode_stale = {.ranks = STEP_RANKS_TOGETHER,
                             .check = check,
                             .make = make,
                             .free = free_deferred,
                             .begin = sync_point_announce,
                             .forward_backward = sparse_forward_backward_batch,
                             .row_grad_squares = sparse_grad_squares,
                             .update = update,
                             .after_update = after_update};
