/* Deferred updates: gradients of the last steps whose update is still due. */
#include "deferred_updates.h"

#include "sparse.h"

#include <string.h>

struct DeferredUpdates {
    int64_t elements;
    int depth, oldest, count;
    /* ring of `depth` gradient arenas, float[elements] each, and their updates' arguments; owned */
    float **gradient;
    UpdateArgs *args;
};

size_t deferred_updates_bytes(const Trainer *t, const Plan *plan)
{
    return (size_t)table_staleness(t->config) * plan->gradient_bytes;
}

void deferred_updates_make(Trainer *t)
{
    if (sparse_mode(t) != TABLE_STALE) return;
    struct DeferredUpdates *deferred = t->deferred = mem_new(sizeof *deferred);
    deferred->elements = t->plan->gradient_elements;
    deferred->depth = table_staleness(t->config);
    deferred->gradient = mem_new((size_t)(deferred->depth + 1) * sizeof *deferred->gradient);
    deferred->args = mem_new((size_t)(deferred->depth + 1) * sizeof *deferred->args);
    for (int i = 0; i < deferred->depth; ++i)
        deferred->gradient[i] =
            mem_new((size_t)(deferred->elements + 1) * sizeof **deferred->gradient);
}

void deferred_updates_free(Trainer *t)
{
    struct DeferredUpdates *deferred = t->deferred;
    if (!deferred) return;
    for (int i = 0; i < deferred->depth; ++i) mem_free(&deferred->gradient[i]);
    mem_free(&deferred->gradient);
    mem_free(&deferred->args);
    mem_free(&t->deferred);
}

bool deferred_update_due(Trainer *t, UpdateArgs *now)
{
    struct DeferredUpdates *deferred = t->deferred;
    if (!deferred || deferred->depth == 0) return true;
    float *gradient = executor_grads(t->executor);
    bool full = deferred->count == deferred->depth;
    int slot = (deferred->oldest + deferred->count) % deferred->depth;
    if (!full) {
        memcpy(deferred->gradient[slot], gradient, (size_t)deferred->elements * sizeof *gradient);
        deferred->args[slot] = *now;
        ++deferred->count;
        return false;
    }
    const UpdateArgs args = deferred->args[slot];
    for (int64_t i = 0; i < deferred->elements; ++i) {
        float of = deferred->gradient[slot][i];
        deferred->gradient[slot][i] = gradient[i];
        gradient[i] = of;
    }
    deferred->args[slot] = *now;
    deferred->oldest = (slot + 1) % deferred->depth;
    *now = args;
    return true;
}

bool deferred_update_next(Trainer *t, UpdateArgs *now)
{
    struct DeferredUpdates *deferred = t->deferred;
    if (deferred->count == 0) return false;
    memcpy(executor_grads(t->executor), deferred->gradient[deferred->oldest],
           (size_t)deferred->elements * sizeof(float));
    *now = deferred->args[deferred->oldest];
    deferred->oldest = (deferred->oldest + 1) % deferred->depth;
    --deferred->count;
    return true;
}
