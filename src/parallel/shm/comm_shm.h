/* The state of comm_shm, in shared memory (Control) and in each process (Shm), and the functions of
 * its sums and pushes. comm_shm.c explains the transport, shm_sum.c explains tickets, and
 * shm_push.c explains pushes. */
#ifndef WEFT_PARALLEL_COMM_SHM_H
#define WEFT_PARALLEL_COMM_SHM_H

#include "../order/cut.h"
#include "../transport/comm_table.h"
#include "shm_segments.h"

#include <stdalign.h>
#include <stdatomic.h>

/* One rank's counters, in shared memory after its arena, each on its own cache line. The counters
 * except `sleepers` only grow, and wrap. All ranks begin all operations in the same order, so these
 * counters show how far each operation has progressed. */
typedef struct Control {
    /* number of sums that this rank has begun */
    alignas(64) _Atomic uint32_t posted;
    /* number of tickets of this rank's shard that some rank has claimed */
    alignas(64) _Atomic uint32_t claimed;
    /* number of tickets of this rank's shard that are done */
    alignas(64) _Atomic uint32_t finished;
    /* number of all-gathers that this rank has begun */
    alignas(64) _Atomic uint32_t gathers;
    /* number of pushes that this rank has begun */
    alignas(64) _Atomic uint32_t pushed;
    /* number of pushes whose leaves this rank has added to its partial sums */
    alignas(64) _Atomic uint32_t added;
    /* number of ranks asleep (futex.h) on a word of this Control; no rank sleeps on `claimed` */
    alignas(64) _Atomic uint32_t sleepers;
} Control;

/* A sum in flight. All its shards have the same number of tickets; some tickets may be empty. */
typedef struct Sum {
    /* the range, cut into shards */
    Cut cut;
    /* true: all ranks get the sum; false: only the owner of each shard gets the shard's sum */
    bool to_all;
    /* number among all sums begun, from 0 on */
    uint32_t number;
    /* index of this sum's first ticket in each shard, counted over all sums */
    uint32_t first_ticket;
    /* number of this sum's tickets in each shard */
    uint32_t tickets;
} Sum;

typedef struct Shm {
    /* each rank's segment: its arena, then its Control; owned */
    ShmSegments shared;
    /* arena of each rank, [Comm.size]; the array is owned */
    float **arena;
    /* counters of each rank, [Comm.size]; the array is owned */
    Control **control;
    /* sums in flight, [sum_count], oldest first; owned */
    Sum *sum;
    int sum_count, sum_capacity;
    /* number of sums that this rank has begun */
    uint32_t begun;
    /* number of tickets, in each shard, of all sums that this rank has begun */
    uint32_t tickets;
    /* number of tickets, in each shard, of all sums that every rank has begun; tickets below this
     * number are due */
    uint32_t due;
    /* pushes; push_first .. push_end - 1 are those that this rank has begun and not yet added,
     * oldest first; owned */
    CommPush *push;
    int push_first, push_end, push_capacity;
    /* time (clock_s) of the last check that peers are alive */
    double checked_s;
    /* memory of the parameters: all ranks use segment[0]; owned; count is 0 before
     * comm_params_new */
    ShmSegments params;
} Shm;

/* Returns whether counter value a is before b. The counters wrap. */
static inline bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Longest sleep of a rank in comm_wait, and interval between its checks that its peers are
 * alive. */
static const double SHM_SLEEP_S = 0.1;
/* Longest sleep in comm_allgather_poll and comm_push_poll. */
static const double SHM_SHORT_SLEEP_S = 1e-3;
/* Waits until *word, a counter of `control`, has another value than `seen`, at most for about
 * sleep_s seconds. If this time has passed, checks whether a peer's process has ended, at most
 * every SHM_SLEEP_S; if one has ended, ends the job. */
void shm_sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
                  double sleep_s);

void shm_sum_begin(Comm *comm, int64_t offset, int64_t count);
void shm_reduce_begin(Comm *comm, const Bounds *bounds);
/* Sums the due tickets of this rank's shard. Returns true if all sums that this rank has begun are
 * done on all shards. */
bool shm_sums_progress(Comm *comm);
/* Sums due tickets of all shards until no sum is in flight. */
void shm_sums_wait(Comm *comm);

void shm_push_begin(Comm *comm, const CommPush *push);
/* Adds the pushes that all ranks have begun to this rank's partial sums. Returns true if all ranks
 * have added every push that this rank has begun. */
bool shm_pushes_progress(Comm *comm);
bool shm_push_poll(Comm *comm, int64_t number);

#endif
