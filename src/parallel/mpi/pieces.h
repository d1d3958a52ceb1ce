/* Pieces of sums, pushes and all-gathers that move by messages. Each piece is in a slot, and a few
 * pieces are in flight at a time. Private to comm_mpi.c, which calls these functions with mpi_lock
 * locked. */
#ifndef WEFT_PARALLEL_PIECES_H
#define WEFT_PARALLEL_PIECES_H

#include "../order/cut.h"
#include "../order/halving.h"
#include "../order/tree_sum.h"
#include "../transport/comm_table.h"
#include "node_group.h"
#include "parallel/sums.h"
#include "progress_thread.h"

typedef enum SlotState { SLOT_IDLE, SLOT_COLLECT, SLOT_SPREAD } SlotState;

/* An operation that was begun. */
typedef struct Operation {
    /* arena or parameters of each of the group's ranks; borrowed */
    float *const *base;
    /* the data begin this many elements after the bounds */
    int64_t shift;
    Cut cut;
    /* true for each phase that the operation has */
    bool collect, spread;
    /* true: phases consist of rounds of halving, for some pushes with an all to all in addition
     * (leaf_ranks); false: a phase exchanges with all peers at once */
    bool halves;
    /* true: pieces are the next slices of all shards; false: consecutive ranges */
    bool slices;
    /* elements that earlier pieces contain: of each shard if pieces are slices, else of the whole
     * range */
    int64_t done;
    /* if bounds are given: the first shard that may have elements left */
    int shard;
    /* the push; level is NULL if the operation is not a push */
    CommPush push;
    /* number among all operations begun, from 1 on */
    int64_t id;
    /* number of the push or of the all-gather */
    int64_t number;
} Operation;

/* One piece in flight. */
typedef struct Slot {
    SlotState state;
    /* Copy of the operation. If pieces are slices, op.done is the offset of the piece in every
     * shard; if they are ranges, op.cut is the cut of the piece. */
    Operation op;
    /* if bounds are given: shards that may have elements in the piece, shard .. shard_end - 1 */
    int shard, shard_end;
    /* number among all pieces started; wraps */
    uint32_t piece;
    /* true: the last piece of its operation */
    bool last;
    /* current round of the phase; an all to all counts as one round */
    int round;
    /* true: all messages of the phase have been sent and received */
    bool received;
    /* received slices, Messages.slice elements for each peer; with halving, received messages that
     * will be added, and messages that are not contiguous in the arena; owned */
    float *staging;
    /* contribution of each rank of the rail to this rank's slice, in rank order; after rounds of
     * halving, of each group of ranks that they have joined; the array is owned */
    const float **in;
    /* requests in flight, [request_count], with room for one send and one receive per peer;
     * owned */
    MPI_Request *request;
    int request_count;
} Slot;

typedef struct Messages {
    NodeGroup group;
    /* communicator of the rail, separate so that its tags are not shared with other messages;
     * owned */
    MPI_Comm comm;
    /* number of ranks of the rail, which is the number of groups, and this rank's number among
     * them */
    int rail_size, rail_rank;
    /* most elements of a slice */
    int64_t slice;
    /* most elements of a piece of an even cut */
    int64_t even;
    /* most elements of a piece that is a range at given bounds */
    int64_t uneven;
    /* rounds of halving on the rail; owned */
    Halving *halving;
    /* staging memory of one slot */
    size_t staging_bytes;
    /* pieces in flight, in the first `slots` slots */
    Slot slot[SUM_PIECES_IN_FLIGHT];
    int slots;
    /* operations begun that still have pieces without a slot, op_first .. op_count - 1, oldest
     * first; owned */
    Operation *op;
    int op_first, op_count, op_capacity;
    /* pieces started so far */
    uint32_t pieces;
    /* operations begun */
    int64_t begun;
    /* number of the last all-gather begun */
    int64_t gathers;
    /* number of the last push that this rank has added; its sum may still be spreading */
    int64_t pushed;
    /* minimum of each mark over the group at the last poll */
    int64_t seen[MARKS];
    /* time (clock_s) of the last check that the group's ranks are alive */
    double checked_s;
    /* The progress thread; owned. mpi_lock guards all fields except comm, slice and progress. */
    ProgressThread *progress;
} Messages;

/* Starts the next piece of the oldest operation that has pieces left, in a slot that is idle. All
 * ranks of the group have begun that operation. */
void piece_start(Comm *comm, Slot *slot);
/* Advances a slot as far as its messages allow. Returns true if it advanced. */
bool piece_advance(Comm *comm, Slot *slot);

#endif
