/* State of comm_shm in and outside shared memory, and its parts: sums, pushes, all-gathers. */
#ifndef WEFT_PARALLEL_COMM_SHM_H
#define WEFT_PARALLEL_COMM_SHM_H

#include "../order/cut.h"
#include "../transport/comm_table.h"
#include "shm_segment.h"

#include <stdalign.h>
#include <stdatomic.h>

/* One rank's counters, in shared memory behind its arena, each on a separate cache line. They only
 * grow, and wrap. All ranks begin all operations in the same order, so counters suffice. */
typedef struct Control {
    /* sums that this rank has begun */
    alignas(64) _Atomic uint32_t posted;
    /* tickets of this rank's shard that a rank has claimed, and those that are done */
    alignas(64) _Atomic uint32_t claimed;
    alignas(64) _Atomic uint32_t finished;
    /* all-gathers that this rank has begun */
    alignas(64) _Atomic uint32_t gathers;
    /* pushes that this rank has begun, and those whose leaves it has added to its partial sums */
    alignas(64) _Atomic uint32_t pushed;
    alignas(64) _Atomic uint32_t added;
    /* ranks in futex wait on any word of Control except claimed */
    alignas(64) _Atomic uint32_t sleepers;
} Control;

/* A sum in flight. All shards have the same number of tickets; some tickets may be empty. */
typedef struct Sum {
    Cut cut;
    /* true: all ranks get the sum; false: only the shard's rank */
    bool to_all;
    uint32_t number, first_ticket, tickets;
} Sum;

typedef struct Shm {
    ShmSegment shared;
    /* arena and counters of every rank, [size]; the arrays are owned */
    float **arena;
    Control **control;
    /* sums in flight, oldest first; owned */
    Sum *sum;
    int sum_count, sum_capacity;
    /* number of sums that this rank has begun */
    uint32_t begun;
    /* tickets per shard: of all sums that this rank has begun, and of those that every rank has
     * begun */
    uint32_t tickets, due;
    /* pushes begun here and not yet added, oldest first, from push_first to push_end; owned */
    CommPush *push;
    int push_first, push_end, push_capacity;
    /* time of the last check whether peers live (clock_s) */
    double checked_s;
    /* segment[0] has everybody's parameters; count 0: none */
    ShmSegment params;
} Shm;

/* True if a is before b, for counters that wrap. */
static inline bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Longest sleep of a rank that waits until all is done, which is also the interval between checks
 * whether its peers live; and of one that waits only a little. */
static const double SHM_SLEEP_S = 0.1, SHM_SHORT_SLEEP_S = 1e-3;
/* Waits until *word, one of control's, is no longer `seen`, for about sleep_s at most. Ends the job
 * if a peer's process has ended. */
void shm_sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
                  double sleep_s);

void shm_sum_begin(Comm *comm, int64_t offset, int64_t count);
void shm_reduce_begin(Comm *comm, const Bounds *bounds);
/* Does the tickets of this rank's shard that are due. Returns true if no sum is in flight. */
bool shm_sums_progress(Comm *comm);
/* Does everybody's tickets until no sum is in flight. */
void shm_sums_wait(Comm *comm);

void shm_push_begin(Comm *comm, const CommPush *push);
/* Adds the pushes that all ranks have begun. Returns true if no rank has a push in flight. */
bool shm_pushes_progress(Comm *comm);
bool shm_push_wait(Comm *comm, int64_t number);

#endif
