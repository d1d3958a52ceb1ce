/* What the ranks of a node that sum in shared memory know of each other, and the parts of comm_shm:
 * sums, pushes, all-gathers. */
#ifndef WEFT_PARALLEL_COMM_SHM_H
#define WEFT_PARALLEL_COMM_SHM_H

#include "../order/cut.h"
#include "../transport/comm_table.h"
#include "shm_segment.h"

#include <stdalign.h>
#include <stdatomic.h>

/* One rank's counters, in shared memory behind its arena. They only grow, and wrap; each on a cache
 * line of its own. All ranks begin everything in the same order, so counters say all. */
typedef struct Control {
    /* sums this rank has begun */
    alignas(64) _Atomic uint32_t posted;
    /* tickets of this rank's shard that somebody took, and has done */
    alignas(64) _Atomic uint32_t claimed;
    alignas(64) _Atomic uint32_t finished;
    /* all-gathers this rank has begun */
    alignas(64) _Atomic uint32_t gathers;
    /* pushes this rank has begun, and has added its shard of to its partial sums */
    alignas(64) _Atomic uint32_t pushed;
    alignas(64) _Atomic uint32_t taken;
    /* ranks in futex wait on any of these but claimed */
    alignas(64) _Atomic uint32_t sleepers;
} Control;

/* A sum in flight. All shards have as many tickets; some may be empty. */
typedef struct Sum {
    Cut cut;
    /* else to the shard's rank */
    bool to_all;
    uint32_t number, first_ticket, tickets;
} Sum;

typedef struct Shm {
    ShmSegment shared;
    /* owned arrays: every rank's */
    float **arena;
    Control **control;
    /* owned: in flight, oldest first */
    Sum *sum;
    int sum_count, sum_capacity;
    /* sums begun here */
    uint32_t begun;
    /* of each shard: of all sums begun here, and of all that all ranks have begun */
    uint32_t tickets, due;
    /* owned: begun here and not taken, oldest first, from push_first to push_end */
    CommPush *push;
    int push_first, push_end, push_capacity;
    /* when this rank last looked whether its peers live */
    double checked_s;
    /* segment[0] is everybody's; count 0: none */
    ShmSegment params;
} Shm;

/* a is before b, for counters that wrap. */
static inline bool before(uint32_t a, uint32_t b)
{
    return (int32_t)(a - b) < 0;
}

/* Longest sleeps: of a rank that waits until all is done, looking so often whether its peers live;
 * of one that waits a little. */
static const double SHM_SLEEP_S = 0.1, SHM_SHORT_SLEEP_S = 1e-3;
/* Until *word, one of control's, is no longer `seen`, or for a while: about sleep_s. Ends the job
 * where a peer has ended. */
void shm_sleep_on(const Comm *comm, Control *control, _Atomic uint32_t *word, uint32_t seen,
                  double sleep_s);

void shm_sum_begin(Comm *comm, int64_t offset, int64_t count);
void shm_reduce_begin(Comm *comm, const Bounds *bounds);
/* Does the tickets of this rank's shard that are due. True: no sum is in flight. */
bool shm_sums_progress(Comm *comm);
/* Does everybody's tickets, until no sum is in flight. */
void shm_sums_wait(Comm *comm);

void shm_push_begin(Comm *comm, const CommPush *push);
/* Takes what all ranks have begun. True: nobody has a push in flight. */
bool shm_pushes_progress(Comm *comm);
bool shm_push_wait(Comm *comm, int64_t number);

#endif
