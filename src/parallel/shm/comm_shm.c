/* Makes ordered sums between the ranks of one node (comm_shm). Every rank's arena is in memory that
 * all ranks map, so a sum needs no messages: once all ranks have posted a range, its elements are
 * read from all arenas, and the sum is written to all arenas or, in a reduce-scatter, to the arena
 * of the shard's owner. Each element of an arena is read once, and written at most once.
 *
 * A range is cut into one shard per rank, and a shard into tickets (shm_sum.c). A ticket is due
 * once all ranks have posted its range. In comm_progress, which is called between layers, a rank
 * sums the due tickets of its own shard. In comm_wait it sums the due tickets of all shards, so a
 * fast rank helps a slow one. The bits do not depend on the rank that sums an element.
 *
 * In a push each rank reads its shard from all arenas (shm_push.c) and keeps the partial sums in
 * its own memory. The parameters are in one segment that all ranks map, so an all-gather copies
 * nothing: it is done as soon as every rank has begun it. */
#include "comm_shm.h"
#include "futex.h"

#include <sched.h>

/* A waiting rank spins for SPIN_S, yields until YIELD_S, and then sleeps. */
static const double SPIN_S = 5e-6, YIELD_S = 50e-6;

static Status shm_open_arena(Comm *comm, Backend *backend, size_t arena_bytes)
{
    (void)backend;
    size_t control_at = (arena_bytes + alignof(Control) - 1) / alignof(Control) * alignof(Control);
    Shm *shm = mem_new(sizeof *shm);
    Status status =
        shm_segments_init(&shm->shared, comm->world, control_at + sizeof(Control), "the gradients");
    if (status != OK) {
        mem_free(&shm);
        return status;
    }
    shm->arena = mem_new((size_t)comm->size * sizeof(float *));
    shm->control = mem_new((size_t)comm->size * sizeof(Control *));
    for (int r = 0; r < comm->size; ++r) {
        shm->arena[r] = (float *)shm->shared.segment[r];
        shm->control[r] = (Control *)(shm->shared.segment[r] + control_at);
    }
    comm->arena = shm->arena[comm->rank];
    comm->impl = shm;
    return OK;
}

static void shm_close(Comm *comm)
{
    Shm *shm = comm->impl;
    if (shm->params.count) shm_segments_fini(&shm->params);
    shm_segments_fini(&shm->shared);
    mem_free(&shm->arena);
    mem_free(&shm->control);
    mem_free(&shm->sum);
    mem_free(&shm->push);
    mem_free(&comm->impl);
    comm->arena = comm->params = NULL;
}

/* Makes the memory of the parameters. All ranks use rank 0's segment; the other segments are as
 * small as possible. */
static Status shm_params_open(Comm *comm, size_t bytes)
{
    Shm *shm = comm->impl;
    TRY(shm_segments_init(&shm->params, comm->world, comm->rank == 0 ? bytes : 0,
                          "the parameters"));
    comm->params = (float *)shm->params.segment[0];
    comm->params_shared = true;
    return OK;
}

void shm_sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
                  double sleep_s)
{
    double start = clock_s(), waited = 0;
    while (waited < YIELD_S) {
        if (atomic_load_explicit(word, memory_order_relaxed) != seen) return;
        if (waited > SPIN_S) sched_yield();
        waited = clock_s() - start;
    }
    Shm *shm = comm->impl;
    if (futex_sleep(word, &control->sleepers, seen, sleep_s)) return;
    double now = clock_s();
    if (now - shm->checked_s < SHM_SLEEP_S) return;
    shm->checked_s = now;
    shm_segments_abort_if_peer_ended(&shm->shared, "sum over ranks");
}

static void shm_gather_begin(Comm *comm, const Bounds *bounds, int64_t shift)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    (void)bounds, (void)shift;
    atomic_store_explicit(&mine->gathers, (uint32_t)comm->gathers, memory_order_release);
    futex_wake(&mine->gathers, &mine->sleepers);
}

/* Returns the first rank that has not begun all-gather `number`, or -1 if all have begun it. After
 * the call this rank sees everything that each rank below the returned one (each rank if -1) had
 * written when it began the all-gather. */
static int find_not_gathering(const Shm *shm, int size, uint32_t number)
{
    for (int r = 0; r < size; ++r)
        if (before(atomic_load_explicit(&shm->control[r]->gathers, memory_order_acquire), number))
            return r;
    return -1;
}

static bool gather_wait(Comm *comm, int64_t number, double sleep_s)
{
    const Shm *shm = comm->impl;
    int late = find_not_gathering(shm, comm->size, (uint32_t)number);
    if (late < 0) return true;
    Control *control = shm->control[late];
    uint32_t gathers = atomic_load(&control->gathers);
    if (before(gathers, (uint32_t)number))
        shm_sleep_on(comm, control, &control->gathers, gathers, sleep_s);
    return false;
}

static bool shm_gather_poll(Comm *comm, int64_t number)
{
    return gather_wait(comm, number, SHM_SHORT_SLEEP_S);
}

static bool shm_progress(Comm *comm)
{
    bool pushed = shm_pushes_progress(comm);
    bool gathered = find_not_gathering(comm->impl, comm->size, (uint32_t)comm->gathers) < 0;
    return shm_sums_progress(comm) && pushed && gathered;
}

static void shm_wait(Comm *comm)
{
    shm_sums_wait(comm);
    while (!gather_wait(comm, comm->gathers, SHM_SLEEP_S)) {
    }
    while (!shm_push_poll(comm, comm->pushes)) {
    }
}

const CommTable comm_shm = {
    .name = "shm",
    .open = shm_open_arena,
    .close = shm_close,
    .sum_begin = shm_sum_begin,
    .shards = SHARDS_ALWAYS,
    .params_open = shm_params_open,
    .reduce_begin = shm_reduce_begin,
    .gather_begin = shm_gather_begin,
    .gather_poll = shm_gather_poll,
    .push_begin = shm_push_begin,
    .push_poll = shm_push_poll,
    .progress = shm_progress,
    .wait = shm_wait,
};
