/* Ordered sums between the ranks of one node. Every rank's arena lies in memory that all of them map, so a sum needs no
 * messages: once all ranks have posted a range, it is read from all arenas and the result written to all of them, each
 * byte once, as in a memcpy.
 *
 * A range is cut in one slice ("share") per rank, and a share in tickets of TICKET elements. Between layers
 * (comm_progress) a rank does the tickets of its own share that are due; a rank that waits does everybody's, so a fast
 * rank spares a slow one the work. Who sums an element does not change its bits.
 *
 * Shared state is four counters a rank, which only grow and wrap: sums posted; tickets of its share claimed and finished;
 * ranks asleep on them. Sums are begun in the same order on all ranks, so counters say everything. */
#include "mpi_check.h"
#include "parallel.h"
#include "shared.h"
#include "tree_sum.h"

#include <errno.h>
#include <linux/futex.h>
#include <omp.h>
#include <sched.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { TICKET = 1 << 16 };           /* elements; 256 KiB of each arena */
enum { PARALLEL_TICKETS = 4 };       /* fewer than this many are not worth waking threads for */
static const double SPIN_S = 5e-6;   /* a waiting rank spins this long, */
static const double YIELD_S = 50e-6; /* then yields, and then sleeps, */
static const long SLEEP_NS = 100 * 1000000; /* looking this often whether its peers live */
static const size_t PAGE_BYTES = 4096;

/* One rank's counters, in shared memory behind its arena. */
typedef struct Control {
    alignas(64) _Atomic uint32_t posted;   /* sums this rank has begun */
    alignas(64) _Atomic uint32_t claimed;  /* tickets of this rank's share that somebody took */
    alignas(64) _Atomic uint32_t finished; /* ... and has done */
    alignas(64) _Atomic uint32_t sleepers; /* ranks in futex wait on posted or finished */
    _Atomic uint32_t farewell;             /* the code that this rank ends the job with, or 0 */
} Control;

/* A sum in flight. All shares have as many tickets; some may be empty. */
typedef struct Sum {
    int64_t offset, count;
    uint32_t number, first_ticket, tickets;
} Sum;

typedef struct Shm {
    Shared shared;
    float **arena;     /* owned array: every rank's arena */
    Control **control; /* owned array */
    Sum *sum;          /* owned: in flight, oldest first */
    int sum_count, sum_room;
    uint32_t begun;   /* sums begun here */
    uint32_t tickets; /* of each share, of all sums begun here */
    uint32_t due;     /* of each share, of all sums that all ranks have begun */
} Shm;

/* a is before b, for counters that wrap. */
static bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

static long futex(_Atomic uint32_t *word, int op, uint32_t value, const struct timespec *limit)
{
    return syscall(SYS_futex, word, op, value, limit, NULL, 0);
}

static void wake(Control *control, _Atomic uint32_t *word)
{
    /* Pairs with sleep_on: either it sees the new value, or we see it among the sleepers. */
    atomic_thread_fence(memory_order_seq_cst);
    if (atomic_load_explicit(&control->sleepers, memory_order_relaxed) > 0)
        futex(word, FUTEX_WAKE, INT32_MAX, NULL);
}

static Status shm_open_arena(Comm *comm, Backend *backend, size_t arena_bytes)
{
    (void)backend;
    size_t control_at = (arena_bytes + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
    Shm *shm = mem_new(sizeof *shm);
    Status status = shared_init(&shm->shared, comm->world, control_at + PAGE_BYTES);
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
    world_farewell(&shm->control[comm->rank]->farewell);
    return OK;
}

static void shm_close(Comm *comm)
{
    Shm *shm = comm->impl;
    world_farewell(NULL);
    shared_fini(&shm->shared);
    mem_free(&shm->arena);
    mem_free(&shm->control);
    mem_free(&shm->sum);
    mem_free(&comm->impl);
    comm->arena = NULL;
}

static void shm_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    Shm *shm = comm->impl;
    if (shm->sum_count == shm->sum_room) {
        shm->sum_room = shm->sum_room ? 2 * shm->sum_room : 64;
        shm->sum = mem_resize(shm->sum, (size_t)shm->sum_room * sizeof *shm->sum);
    }
    int64_t longest = 0;
    for (int r = 0; r < comm->size; ++r) {
        int64_t length = slice_border(offset, count, comm->size, r + 1) -
                         slice_border(offset, count, comm->size, r);
        longest = length > longest ? length : longest;
    }
    uint32_t tickets = (uint32_t)((longest + TICKET - 1) / TICKET);
    shm->sum[shm->sum_count++] = (Sum){.offset = offset,
                                       .count = count,
                                       .number = shm->begun,
                                       .first_ticket = shm->tickets,
                                       .tickets = tickets};
    shm->tickets += tickets;
    Control *mine = shm->control[comm->rank];
    atomic_store_explicit(&mine->posted, ++shm->begun, memory_order_release);
    wake(mine, &mine->posted);
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
    int64_t begin = slice_border(sum->offset, sum->count, size, share) +
                    (int64_t)(ticket - sum->first_ticket) * TICKET;
    int64_t end = slice_border(sum->offset, sum->count, size, share + 1);
    if (begin + TICKET < end) end = begin + TICKET;
    if (begin < end)
        tree_sum(shm->arena, size, (const float *const *)shm->arena, size, begin, end - begin);
    Control *owner = shm->control[share];
    atomic_fetch_add_explicit(&owner->finished, 1, memory_order_acq_rel);
    wake(owner, &owner->finished);
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

static bool shm_progress(Comm *comm)
{
    Shm *shm = comm->impl;
    if (shm->sum_count == 0) return true;
    find_due(shm, comm->size);
    work(comm, comm->rank, 1);
    if (find_unfinished(shm, comm->size) >= 0) return false;
    shm->sum_count = 0;
    return true;
}

static void check_peers(const Comm *comm)
{
    const Shm *shm = comm->impl;
    for (int r = 0; r < comm->size; ++r) {
        if (shared_alive(&shm->shared, r)) continue;
        uint32_t farewell = atomic_load(&shm->control[r]->farewell);
        if (farewell != 0) /* it has said why */
            MPI_Abort(comm->world->comm, (int)farewell);
        else
            die("sum over ranks: rank %d (process %lld) has ended", r,
                (long long)shm->shared.process[r]);
    }
}

/* Until *word is no longer `seen`, or for a while. */
static void sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen)
{
    double start = clock_s(), waited = 0;
    while (waited < YIELD_S) {
        if (atomic_load_explicit(word, memory_order_relaxed) != seen) return;
        if (waited > SPIN_S) sched_yield();
        waited = clock_s() - start;
    }
    atomic_fetch_add(&control->sleepers, 1);
    long result = futex(word, FUTEX_WAIT, seen, &(struct timespec){.tv_nsec = SLEEP_NS});
    bool late = result != 0 && errno == ETIMEDOUT;
    atomic_fetch_sub(&control->sleepers, 1);
    if (late) check_peers(comm);
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
            if (before(posted, shm->begun)) sleep_on(comm, control, &control->posted, posted);
        } else {
            Control *control = shm->control[unfinished];
            uint32_t finished = atomic_load(&control->finished);
            if (finished != shm->tickets) sleep_on(comm, control, &control->finished, finished);
        }
    }
}

const CommTable comm_shm = {
    .name = "shm",
    .open = shm_open_arena,
    .close = shm_close,
    .sum_begin = shm_sum_begin,
    .progress = shm_progress,
    .wait = shm_wait,
};
