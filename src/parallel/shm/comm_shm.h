/* The state of comm_shm, in shared memory (Control) and in the process (Shm), and the functions of
 * its sums and pushes. */
#ifndef WEFT_PARALLEL_COMM_SHM_H
#define WEFT_PARALLEL_COMM_SHM_H

#include "../order/cut.h"
#include "../transport/comm_table.h"
#include "shm_segments.h"

#include <stdalign.h>
#include <stdatomic.h>

/* One rank's counters, in shared memory after its arena, each on a separate cache line. All but
 * sleepers only grow, and wrap around. All ranks begin all operations in the same order, so these
 * counts show how far each operation has progressed. */
typedef struct Control {
    /* sums that this rank has begun */
    alignas(64) _Atomic uint32_t posted;
    /* tickets of this rank's shard that some rank has claimed */
    alignas(64) _Atomic uint32_t claimed;
    /* tickets of this rank's shard that are done */
    alignas(64) _Atomic uint32_t finished;
    /* all-gathers that this rank has begun */
    alignas(64) _Atomic uint32_t gathers;
    /* pushes that this rank has begun */
    alignas(64) _Atomic uint32_t pushed;
    /* pushes whose leaves this rank has added to its partial sums */
    alignas(64) _Atomic uint32_t added;
    /* number of ranks asleep (futex.h) on any word of this Control except claimed */
    alignas(64) _Atomic uint32_t sleepers;
} Control;

/* A sum in flight. All shards have the same number of tickets; some tickets may be empty. */
typedef struct Sum {
    Cut cut;
    /* true: all ranks get the sum; false: only the owner of each shard gets the shard's sum */
    bool to_all;
    /* number among all sums begun, from 0 on */
    uint32_t number;
    /* first_ticket: index of this sum's first ticket in each shard, counted over all sums; tickets:
     * number of its tickets in each shard */
    uint32_t first_ticket, tickets;
} Sum;

typedef struct Shm {
    /* each rank's segment: its arena, then its Control; owned */
    ShmSegments shared;
    /* arena and counters of every rank, [size]; the arrays are owned */
    float **arena;
    Control **control;
    /* sums in flight, oldest first; owned */
    Sum *sum;
    int sum_count, sum_capacity;
    /* number of sums that this rank has begun */
    uint32_t begun;
    /* tickets per shard of all sums that this rank has begun */
    uint32_t tickets;
    /* tickets per shard of all sums that every rank has begun: tickets below this number may be
     * done now */
    uint32_t due;
    /* pushes that this rank has begun and not yet added, push_first .. push_end - 1, oldest first;
     * owned */
    CommPush *push;
    int push_first, push_end, push_capacity;
    /* time (clock_s) of the last check that peers are alive */
    double checked_s;
    /* segment[0] has the parameters of all ranks; owned; count is 0 before comm_params_new */
    ShmSegments params;
} Shm;

/* True if a is before b, for counters that wrap. */
static inline bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Longest sleep of a rank in comm_wait, which is also the interval between checks that its peers
 * are alive. */
static const double SHM_SLEEP_S = 0.1;
/* Longest sleep in comm_allgather_wait and comm_push_wait. */
static const double SHM_SHORT_SLEEP_S = 1e-3;
/* Waits until *word, a counter of `control`, is no longer `seen`, for about sleep_s at most. If
 * this time has passed, checks (at most every SHM_SLEEP_S) whether a peer's process has ended; if
 * so, ends the job. */
void shm_sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
                  double sleep_s);

void shm_sum_begin(Comm *comm, int64_t offset, int64_t count);
void shm_reduce_begin(Comm *comm, const Bounds *bounds);
/* Does the tickets of this rank's shard that are due. Returns true if all sums that this rank has
 * begun are done on all shards. */
bool shm_sums_progress(Comm *comm);
/* Does tickets of all shards until no sum is in flight. */
void shm_sums_wait(Comm *comm);

void shm_push_begin(Comm *comm, const CommPush *push);
/* Adds the pushes that all ranks have begun. Returns true if all ranks have added every push that
 * this rank has begun. */
bool shm_pushes_progress(Comm *comm);
bool shm_push_wait(Comm *comm, int64_t number);

#endif
