/* Sums in shared memory, divided into tickets:
 *
 *     range     | shard of rank 0 | shard of rank 1 | ...
 *     tickets   | 0 | 1 | 2 | 3 ..| 0 | 1 | 2 | 3 ..|
 *
 * A ticket is the sum of TICKET consecutive elements of a shard over the arenas of all ranks. The
 * tickets of a range are due once all ranks have posted the range. The rank that claims a ticket
 * reads the elements from all arenas and writes their sum to all arenas or, in a reduce-scatter, to
 * the arena of the shard's owner. A counter per shard, in shared memory, says which tickets are
 * claimed. */
#include "comm_shm.h"
#include "futex.h"
#include "../order/tree_sum.h"

/* number of elements of a ticket, 256 KiB of each arena; the last tickets of a shard may have fewer
 * or none */
enum { TICKET = 1 << 16 };
/* smallest number of due tickets that are summed by several threads */
enum { PARALLEL_TICKETS = 4 };

static void post(Comm *comm, Cut cut, bool to_all)
{
    Shm *shm = comm->impl;
    if (shm->sum_count == shm->sum_capacity) {
        shm->sum_capacity = shm->sum_capacity ? 2 * shm->sum_capacity : 64;
        shm->sum = mem_resize(shm->sum, (size_t)shm->sum_capacity * sizeof *shm->sum);
    }
    uint32_t tickets = (uint32_t)((cut_longest(&cut, comm->size) + TICKET - 1) / TICKET);
    shm->sum[shm->sum_count++] = (Sum){.cut = cut,
                                       .to_all = to_all,
                                       .number = shm->begun,
                                       .first_ticket = shm->tickets,
                                       .tickets = tickets};
    shm->tickets += tickets;
    Control *mine = shm->control[comm->rank];
    atomic_store_explicit(&mine->posted, ++shm->begun, memory_order_release);
    futex_wake(&mine->posted, &mine->sleepers);
}

void shm_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    post(comm, (Cut){.offset = offset, .count = count}, true);
}

void shm_reduce_begin(Comm *comm, const Bounds *bounds)
{
    post(comm, cut_at(bounds), false);
}

/* Updates shm->due. Returns the first rank that has posted fewer sums than this rank, or -1 if
 * there is none. */
static int update_due(Shm *shm, int size)
{
    uint32_t posted = shm->begun;
    int late = -1;
    for (int r = 0; r < size; ++r) {
        uint32_t theirs = atomic_load_explicit(&shm->control[r]->posted, memory_order_acquire);
        if (before(theirs, shm->begun) && late < 0) late = r;
        if (before(theirs, posted)) posted = theirs;
    }
    int k = shm->sum_count;
    while (k > 0 && !before(shm->sum[k - 1].number, posted)) --k;
    if (k > 0) shm->due = shm->sum[k - 1].first_ticket + shm->sum[k - 1].tickets;
    return late;
}

/* Claims the shard's next ticket that is due. Returns false if there is none. */
static bool claim(Shm *shm, int shard, uint32_t *ticket)
{
    _Atomic uint32_t *claimed = &shm->control[shard]->claimed;
    *ticket = atomic_load_explicit(claimed, memory_order_relaxed);
    while (before(*ticket, shm->due))
        if (atomic_compare_exchange_weak_explicit(claimed, ticket, *ticket + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

static void do_ticket(Shm *shm, int size, int shard, uint32_t ticket)
{
    const Sum *sum = shm->sum;
    while (!before(ticket, sum->first_ticket + sum->tickets)) ++sum;
    int64_t begin =
        cut_bound(&sum->cut, size, shard) + (int64_t)(ticket - sum->first_ticket) * TICKET;
    int64_t end = cut_bound(&sum->cut, size, shard + 1);
    if (begin + TICKET < end) end = begin + TICKET;
    float *const *out = sum->to_all ? shm->arena : &shm->arena[shard];
    if (begin < end)
        tree_sum(out, sum->to_all ? size : 1, (const float *const *)shm->arena, size, begin,
                 end - begin);
    Control *owner = shm->control[shard];
    atomic_fetch_add_explicit(&owner->finished, 1, memory_order_acq_rel);
    futex_wake(&owner->finished, &owner->sleepers);
}

/* Sums the due and unclaimed tickets of `shards` shards, from shard `first` on; after the last
 * shard follows shard 0. */
static void do_due_tickets(Comm *comm, int first, int shards)
{
    Shm *shm = comm->impl;
    uint32_t open = 0;
    for (int i = 0; i < shards; ++i) {
        Control *control = shm->control[(first + i) % comm->size];
        uint32_t claimed = atomic_load_explicit(&control->claimed, memory_order_relaxed);
        if (before(claimed, shm->due)) open += shm->due - claimed;
    }
    if (open == 0) return;
    int threads = open < PARALLEL_TICKETS ? 1 : comm->backend->options.threads;
    /* compilers without OpenMP ignore the pragma, and would warn that the variable is unused */
    (void)threads;
#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int i = 0; i < shards; ++i) {
        int shard = (first + i) % comm->size;
        for (uint32_t ticket; claim(shm, shard, &ticket);)
            do_ticket(shm, comm->size, shard, ticket);
    }
}

/* Returns the first rank whose shard has unfinished tickets of sums that this rank has begun, or -1
 * if there is none. After the call this rank sees the sums of all shards below the returned one
 * (all shards if -1). */
static int find_unfinished(Shm *shm, int size)
{
    for (int r = 0; r < size; ++r)
        if (atomic_load_explicit(&shm->control[r]->finished, memory_order_acquire) != shm->tickets)
            return r;
    return -1;
}

bool shm_sums_progress(Comm *comm)
{
    Shm *shm = comm->impl;
    if (shm->sum_count == 0) return true;
    update_due(shm, comm->size);
    do_due_tickets(comm, comm->rank, 1);
    if (find_unfinished(shm, comm->size) >= 0) return false;
    shm->sum_count = 0;
    return true;
}

void shm_sums_wait(Comm *comm)
{
    Shm *shm = comm->impl;
    while (shm->sum_count > 0) {
        int late = update_due(shm, comm->size);
        do_due_tickets(comm, comm->rank, comm->size);
        int unfinished = find_unfinished(shm, comm->size);
        if (unfinished < 0) {
            shm->sum_count = 0;
        } else if (late >= 0) {
            Control *control = shm->control[late];
            uint32_t posted = atomic_load(&control->posted);
            if (before(posted, shm->begun))
                shm_sleep_on(comm, control, &control->posted, posted, SHM_SLEEP_S);
        } else {
            Control *control = shm->control[unfinished];
            uint32_t finished = atomic_load(&control->finished);
            if (finished != shm->tickets)
                shm_sleep_on(comm, control, &control->finished, finished, SHM_SLEEP_S);
        }
    }
}
