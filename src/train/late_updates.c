/* Deferred updates: gradients of the last steps whose update is still due. */
#include "late_updates.h"

#include "sparse.h"

#include <string.h>

struct LateUpdates {
    int64_t elements;
    int depth, oldest, count;
    /* ring of `depth` gradient arenas, float[elements] each, and their updates' arguments; owned */
    float **gradient;
    LateUpdate *told;
};

size_t late_bytes(const Trainer *t, const Plan *plan)
{
    return (size_t)table_staleness(t->config) * plan->gradient_bytes;
}

void late_make(Trainer *t)
{
    if (sparse_mode(t) != TABLE_STALE) return;
    struct LateUpdates *late = t->late = mem_new(sizeof *late);
    late->elements = t->plan->gradient_elements;
    late->depth = table_staleness(t->config);
    late->gradient = mem_new((size_t)(late->depth + 1) * sizeof *late->gradient);
    late->told = mem_new((size_t)(late->depth + 1) * sizeof *late->told);
    for (int i = 0; i < late->depth; ++i)
        late->gradient[i] = mem_new((size_t)(late->elements + 1) * sizeof **late->gradient);
}

void late_free(Trainer *t)
{
    struct LateUpdates *late = t->late;
    if (!late) return;
    for (int i = 0; i < late->depth; ++i) mem_free(&late->gradient[i]);
    mem_free(&late->gradient);
    mem_free(&late->told);
    mem_free(&t->late);
}

bool late_turn(Trainer *t, LateUpdate *now)
{
    struct LateUpdates *late = t->late;
    if (!late || late->depth == 0) return true;
    float *gradient = executor_grads(t->executor);
    bool full = late->count == late->depth;
    int slot = (late->oldest + late->count) % late->depth;
    if (!full) {
        memcpy(late->gradient[slot], gradient, (size_t)late->elements * sizeof *gradient);
        late->told[slot] = *now;
        ++late->count;
        return false;
    }
    const LateUpdate told = late->told[slot];
    for (int64_t i = 0; i < late->elements; ++i) {
        float of = late->gradient[slot][i];
        late->gradient[slot][i] = gradient[i];
        gradient[i] = of;
    }
    late->told[slot] = *now;
    late->oldest = (slot + 1) % late->depth;
    *now = told;
    return true;
}

bool late_next(Trainer *t, LateUpdate *now)
{
    struct LateUpdates *late = t->late;
    if (late->count == 0) return false;
    memcpy(executor_grads(t->executor), late->gradient[late->oldest],
           (size_t)late->elements * sizeof(float));
    *now = late->told[late->oldest];
    late->oldest = (late->oldest + 1) % late->depth;
    --late->count;
    return true;
}
