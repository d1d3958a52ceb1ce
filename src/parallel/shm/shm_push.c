/* Pushes in shared memory. When all ranks have begun a push, each rank reads its shard from all
 * arenas and adds it to its partial sums. Pushes are added in the order in which they were
 * begun. */
#include "comm_shm.h"
#include "futex.h"
#include "../order/tree_sum.h"

void shm_push_begin(Comm *comm, const CommPush *push)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    if (shm->push_first == shm->push_end) shm->push_first = shm->push_end = 0;
    if (shm->push_end == shm->push_capacity) {
        shm->push_capacity = shm->push_capacity ? 2 * shm->push_capacity : 16;
        shm->push = mem_resize(shm->push, (size_t)shm->push_capacity * sizeof *shm->push);
    }
    shm->push[shm->push_end++] = *push;
    atomic_store_explicit(&mine->pushed, (uint32_t)comm->pushes, memory_order_release);
    futex_wake(&mine->pushed, &mine->sleepers);
}

/* Returns the first rank that has not begun push `number` or, with added = true, has not added this
 * push to its partial sums; -1 if there is no such rank. After the call this rank sees everything
 * that each rank below the returned one (each rank if -1) had written when it began the push, or
 * with added = true when it added the push. */
static int find_behind(const Shm *shm, int size, bool added, uint32_t number)
{
    for (int r = 0; r < size; ++r) {
        const Control *c = shm->control[r];
        uint32_t theirs =
            atomic_load_explicit(added ? &c->added : &c->pushed, memory_order_acquire);
        if (before(theirs, number)) return r;
    }
    return -1;
}

static void add_push(Comm *comm, const CommPush *push)
{
    Shm *shm = comm->impl;
    bool to_all = push->to == PUSH_TO_ALL;
    TreePush leaves = {.level = push->partial,
                       .level_at = push->partial_at,
                       .in = (const float *const *)shm->arena,
                       .in_at = bounds_at(push->bounds, comm->rank) + push->shift,
                       .ins = comm->size,
                       .first = push->first,
                       .leaves = push->leaves,
                       .out = to_all ? shm->arena : &comm->arena,
                       .outs = to_all ? comm->size : push->to == PUSH_TO_OWNER};
    tree_push(&leaves, bounds_length(push->bounds, comm->rank), comm->backend->options.threads);
}

/* Returns the number of the oldest push that this rank has not added yet. If it has added all,
 * returns the number of pushes begun + 1. */
static uint32_t oldest_push(const Comm *comm)
{
    const Shm *shm = comm->impl;
    return (uint32_t)(comm->pushes + 1 - (shm->push_end - shm->push_first));
}

/* Adds the pushes that all ranks have begun. Returns -1 if no push remains, otherwise the first
 * rank that has not begun the oldest remaining push. */
static int add_pushes(Comm *comm)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    while (shm->push_first < shm->push_end) {
        uint32_t number = oldest_push(comm);
        int late = find_behind(shm, comm->size, false, number);
        if (late >= 0) return late;
        add_push(comm, &shm->push[shm->push_first++]);
        atomic_store_explicit(&mine->added, number, memory_order_release);
        futex_wake(&mine->added, &mine->sleepers);
    }
    return -1;
}

bool shm_pushes_progress(Comm *comm)
{
    return add_pushes(comm) < 0 &&
           find_behind(comm->impl, comm->size, true, (uint32_t)comm->pushes) < 0;
}

bool shm_push_poll(Comm *comm, int64_t number)
{
    Shm *shm = comm->impl;
    int late = add_pushes(comm), slow = find_behind(shm, comm->size, true, (uint32_t)number);
    if (slow < 0) return true;
    bool mine = slow == comm->rank;
    Control *control = shm->control[mine ? late : slow];
    _Atomic uint32_t *word = mine ? &control->pushed : &control->added;
    uint32_t seen = atomic_load(word);
    if (before(seen, mine ? oldest_push(comm) : (uint32_t)number))
        shm_sleep_on(comm, control, word, seen, SHM_SHORT_SLEEP_S);
    return false;
}
