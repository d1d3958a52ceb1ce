/* Ordered sums between the ranks of one node. Every rank's arena lies in memory that all of them map, so a sum needs no
 * messages: once all ranks have posted a range, it is read from all arenas and the result written to all of them, each
 * byte once, as in a memcpy.
 *
 * A range is cut in one slice ("share") per rank, and a share in tickets of TICKET elements. Between layers
 * (comm_progress) a rank does the tickets of its own share that are due; a rank that waits does everybody's, so a fast
 * rank spares a slow one the work. Who sums an element does not change its bits.
 *
 * A push is read from all arenas, too, by each rank for its own share, one push after the other: the partial sums that it goes
 * to are that rank's memory alone.
 *
 * Values lie in one segment that all ranks map, so gathering them is only waiting until every rank has begun to.
 *
 * ShmSegment state is seven counters a rank, which only grow and wrap: sums posted; tickets of its share claimed and finished;
 * gatherings begun; pushes begun and taken; ranks asleep on them. All are begun in the same order on all ranks, so counters say everything. */
#include "futex.h"
#include "parallel.h"
#include "shm_segment.h"
#include "tree_sum.h"

#include <omp.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>

enum { TICKET = 1 << 16 };           /* elements; 256 KiB of each arena */
enum { PARALLEL_TICKETS = 4 };       /* fewer than this many are not worth waking threads for */
static const double SPIN_S = 5e-6;   /* a waiting rank spins this long, */
static const double YIELD_S = 50e-6; /* then yields, and then sleeps, */
static const double SLEEP_S = 0.1;   /* looking this often whether its peers live; */
static const double SHORT_SLEEP_S = 1e-3; /* where a call waits a little, no longer than this */

/* One rank's counters, in shared memory behind its arena. */
typedef struct Control {
    alignas(64) _Atomic uint32_t posted;   /* sums this rank has begun */
    alignas(64) _Atomic uint32_t claimed;  /* tickets of this rank's share that somebody took */
    alignas(64) _Atomic uint32_t finished; /* ... and has done */
    alignas(64) _Atomic uint32_t gathers;  /* gatherings this rank has begun */
    alignas(64) _Atomic uint32_t pushed;   /* pushes this rank has begun */
    alignas(64) _Atomic uint32_t taken; /* ... and has brought its share of into its partial sums */
    alignas(64) _Atomic uint32_t sleepers; /* ranks in futex wait on any of these but claimed */
} Control;

/* A sum in flight. All shares have as many tickets; some may be empty. */
typedef struct Sum {
    Cut cut;
    bool to_all; /* else to the share's rank */
    uint32_t number, first_ticket, tickets;
} Sum;

typedef struct Shm {
    ShmSegment shared;
    float **arena;     /* owned array: every rank's arena */
    Control **control; /* owned array */
    Sum *sum;          /* owned: in flight, oldest first */
    int sum_count, sum_room;
    uint32_t begun;   /* sums begun here */
    uint32_t tickets; /* of each share, of all sums begun here */
    uint32_t due;     /* of each share, of all sums that all ranks have begun */
    CommPush *push; /* owned: begun here and not taken, oldest first, from push_first to push_end */
    int push_first, push_end, push_room;
    double checked_s;  /* when this rank last looked whether its peers live */
    ShmSegment values; /* segment[0] is everybody's; count 0: none */
} Shm;

/* a is before b, for counters that wrap. */
static bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static Status shm_open_arena(Comm *comm, Backend *backend, size_t arena_bytes)
{
    (void)backend;
    size_t control_at = (arena_bytes + alignof(Control) - 1) / alignof(Control) * alignof(Control);
    Shm *shm = mem_new(sizeof *shm);
    Status status =
        shm_segment_init(&shm->shared, comm->world, control_at + sizeof(Control), "the gradients");
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
    if (shm->values.count) shm_segment_fini(&shm->values);
    shm_segment_fini(&shm->shared);
    mem_free(&shm->arena);
    mem_free(&shm->control);
    mem_free(&shm->sum);
    mem_free(&shm->push);
    mem_free(&comm->impl);
    comm->arena = comm->values = NULL;
}

/* Rank 0's segment serves all; the others' are as small as may be. */
static Status shm_values_open(Comm *comm, size_t bytes)
{
    Shm *shm = comm->impl;
    TRY(shm_segment_init(&shm->values, comm->world, comm->rank == 0 ? bytes : 0, "the parameters"));
    comm->values = (float *)shm->values.segment[0];
    comm->values_shared = true;
    return OK;
}

static void post(Comm *comm, Cut cut, bool to_all)
{
    Shm *shm = comm->impl;
    if (shm->sum_count == shm->sum_room) {
        shm->sum_room = shm->sum_room ? 2 * shm->sum_room : 64;
        shm->sum = mem_resize(shm->sum, (size_t)shm->sum_room * sizeof *shm->sum);
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

static void shm_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    post(comm, (Cut){.offset = offset, .count = count}, true);
}

static void shm_reduce_begin(Comm *comm, const int64_t *bound)
{
    post(comm, (Cut){.bound = bound}, false);
}

static void shm_gather_begin(Comm *comm, const int64_t *bound, int64_t shift)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    (void)bound, (void)shift;
    atomic_store_explicit(&mine->gathers, (uint32_t)comm->gathers, memory_order_release);
    futex_wake(&mine->gathers, &mine->sleepers);
}

/* Brings shm->due up to date. Returns the first rank that has not yet posted all that this one has, or -1. */
static int find_due(Shm *shm, int size)
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

static bool claim(Shm *shm, int share, uint32_t *ticket)
{
    _Atomic uint32_t *claimed = &shm->control[share]->claimed;
    *ticket = atomic_load_explicit(claimed, memory_order_relaxed);
    while (before(*ticket, shm->due))
        if (atomic_compare_exchange_weak_explicit(claimed, ticket, *ticket + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

static void do_ticket(Shm *shm, int size, int share, uint32_t ticket)
{
    const Sum *sum = shm->sum;
    while (!before(ticket, sum->first_ticket + sum->tickets)) ++sum;
    int64_t begin =
        cut_bound(&sum->cut, size, share) + (int64_t)(ticket - sum->first_ticket) * TICKET;
    int64_t end = cut_bound(&sum->cut, size, share + 1);
    if (begin + TICKET < end) end = begin + TICKET;
    float *const *out = sum->to_all ? shm->arena : &shm->arena[share];
    if (begin < end)
        tree_sum(out, sum->to_all ? size : 1, (const float *const *)shm->arena, size, begin,
                 end - begin);
    Control *owner = shm->control[share];
    atomic_fetch_add_explicit(&owner->finished, 1, memory_order_acq_rel);
    futex_wake(&owner->finished, &owner->sleepers);
}

/* Does what is due and unclaimed of the shares first .. first + shares (modulo the ranks). */
static void work(Comm *comm, int first, int shares)
{
    Shm *shm = comm->impl;
    uint32_t open = 0;
    for (int i = 0; i < shares; ++i) {
        Control *control = shm->control[(first + i) % comm->size];
        uint32_t claimed = atomic_load_explicit(&control->claimed, memory_order_relaxed);
        if (before(claimed, shm->due)) open += shm->due - claimed;
    }
    if (open == 0) return;
    double start = clock_s();
    int threads = open < PARALLEL_TICKETS ? 1 : comm->backend->options.threads;
    (void)threads; /* where the compiler knows no OpenMP */
#pragma omp parallel num_threads(threads) if (threads > 1)
    for (int i = 0; i < shares; ++i) {
        int share = (first + i) % comm->size;
        for (uint32_t ticket; claim(shm, share, &ticket);)
            do_ticket(shm, comm->size, share, ticket);
    }
    comm->sum_s += clock_s() - start;
}

/* The first rank whose share of all sums begun here is not finished, or -1. Acquires the results of the finished. */
static int find_unfinished(Shm *shm, int size)
{
    for (int r = 0; r < size; ++r)
        if (atomic_load_explicit(&shm->control[r]->finished, memory_order_acquire) != shm->tickets)
            return r;
    return -1;
}

/* The first rank that has not begun gathering `number`, or -1. Acquires what the others have written. */
static int find_gathering(const Shm *shm, int size, uint32_t number)
{
    for (int r = 0; r < size; ++r)
        if (before(atomic_load_explicit(&shm->control[r]->gathers, memory_order_acquire), number))
            return r;
    return -1;
}

/* ---- pushes ---- */

static void shm_push_begin(Comm *comm, const CommPush *push)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    if (shm->push_first == shm->push_end) shm->push_first = shm->push_end = 0;
    if (shm->push_end == shm->push_room) {
        shm->push_room = shm->push_room ? 2 * shm->push_room : 16;
        shm->push = mem_resize(shm->push, (size_t)shm->push_room * sizeof *shm->push);
    }
    shm->push[shm->push_end++] = *push;
    atomic_store_explicit(&mine->pushed, (uint32_t)comm->pushes, memory_order_release);
    futex_wake(&mine->pushed, &mine->sleepers);
}

/* The first rank that has not begun, or not taken, push `number`, or -1. Acquires what the others have written. */
static int find_before(const Shm *shm, int size, bool taken, uint32_t number)
{
    for (int r = 0; r < size; ++r) {
        const Control *c = shm->control[r];
        uint32_t theirs =
            atomic_load_explicit(taken ? &c->taken : &c->pushed, memory_order_acquire);
        if (before(theirs, number)) return r;
    }
    return -1;
}

static void take_push(Comm *comm, const CommPush *push)
{
    Shm *shm = comm->impl;
    double start = clock_s();
    int64_t begin = push->bound[comm->rank], end = push->bound[comm->rank + 1];
    TreePush leaves = {.level = push->level,
                       .level_at = push->at,
                       .in = (const float *const *)shm->arena,
                       .in_at = begin + push->shift,
                       .ins = comm->size,
                       .first = push->first,
                       .leaves = push->leaves};
    tree_push(&leaves, end - begin, comm->backend->options.threads);
    comm->sum_s += clock_s() - start;
}

/* Number of the oldest push that is not taken here; one more than was begun, where there is none. */
static uint32_t oldest_push(const Comm *comm)
{
    const Shm *shm = comm->impl;
    return (uint32_t)(comm->pushes + 1 - (shm->push_end - shm->push_first));
}

/* Takes what all ranks have begun. Returns the first rank that has not begun the oldest one left here, or -1. */
static int take_pushes(Comm *comm)
{
    Shm *shm = comm->impl;
    Control *mine = shm->control[comm->rank];
    while (shm->push_first < shm->push_end) {
        uint32_t number = oldest_push(comm);
        int late = find_before(shm, comm->size, false, number);
        if (late >= 0) return late;
        take_push(comm, &shm->push[shm->push_first++]);
        atomic_store_explicit(&mine->taken, number, memory_order_release);
        futex_wake(&mine->taken, &mine->sleepers);
    }
    return -1;
}

static bool shm_progress(Comm *comm)
{
    Shm *shm = comm->impl;
    bool pushed =
        take_pushes(comm) < 0 && find_before(shm, comm->size, true, (uint32_t)comm->pushes) < 0;
    bool gathered = find_gathering(shm, comm->size, (uint32_t)comm->gathers) < 0;
    if (shm->sum_count == 0) return pushed && gathered;
    find_due(shm, comm->size);
    work(comm, comm->rank, 1);
    if (find_unfinished(shm, comm->size) >= 0) return false;
    shm->sum_count = 0;
    return pushed && gathered;
}

/* Until *word is no longer `seen`, or for a while: about sleep_s. */
static void sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
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
    if (now - shm->checked_s < SLEEP_S) return;
    shm->checked_s = now;
    shm_segment_check_peers(&shm->shared, "sum over ranks");
}

static bool shm_push_wait(Comm *comm, int64_t number)
{
    Shm *shm = comm->impl;
    int late = take_pushes(comm), slow = find_before(shm, comm->size, true, (uint32_t)number);
    if (slow < 0) return true;
    bool mine = slow == comm->rank;
    Control *control = shm->control[mine ? late : slow];
    _Atomic uint32_t *word = mine ? &control->pushed : &control->taken;
    uint32_t seen = atomic_load(word);
    if (before(seen, mine ? oldest_push(comm) : (uint32_t)number))
        sleep_on(comm, control, word, seen, SHORT_SLEEP_S);
    return false;
}

static bool gather_wait(Comm *comm, int64_t number, double sleep_s)
{
    const Shm *shm = comm->impl;
    int late = find_gathering(shm, comm->size, (uint32_t)number);
    if (late < 0) return true;
    Control *control = shm->control[late];
    uint32_t gathers = atomic_load(&control->gathers);
    if (before(gathers, (uint32_t)number))
        sleep_on(comm, control, &control->gathers, gathers, sleep_s);
    return false;
}

static bool shm_gather_wait(Comm *comm, int64_t number)
{
    return gather_wait(comm, number, SHORT_SLEEP_S);
}

static void shm_wait(Comm *comm)
{
    Shm *shm = comm->impl;
    while (shm->sum_count > 0) {
        int late = find_due(shm, comm->size);
        work(comm, comm->rank, comm->size);
        int unfinished = find_unfinished(shm, comm->size);
        if (unfinished < 0) {
            shm->sum_count = 0;
        } else if (late >= 0) {
            Control *control = shm->control[late];
            uint32_t posted = atomic_load(&control->posted);
            if (before(posted, shm->begun))
                sleep_on(comm, control, &control->posted, posted, SLEEP_S);
        } else {
            Control *control = shm->control[unfinished];
            uint32_t finished = atomic_load(&control->finished);
            if (finished != shm->tickets)
                sleep_on(comm, control, &control->finished, finished, SLEEP_S);
        }
    }
    while (!gather_wait(comm, comm->gathers, SLEEP_S)) {
    }
    while (!shm_push_wait(comm, comm->pushes)) {
    }
}

const CommTable comm_shm = {
    .name = "shm",
    .open = shm_open_arena,
    .close = shm_close,
    .sum_begin = shm_sum_begin,
    .values_open = shm_values_open,
    .reduce_begin = shm_reduce_begin,
    .gather_begin = shm_gather_begin,
    .gather_wait = shm_gather_wait,
    .push_begin = shm_push_begin,
    .push_wait = shm_push_wait,
    .progress = shm_progress,
    .wait = shm_wait,
};
