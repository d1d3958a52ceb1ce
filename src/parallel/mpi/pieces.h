/* Pieces of sums, pushes and all-gathers that move by messages: a slot each, a few in flight.
 * Private to the transports by messages (comm_mpi.c), whose lock is held in all calls. */
#ifndef WEFT_PARALLEL_PIECES_H
#define WEFT_PARALLEL_PIECES_H

#include "../order/cut.h"
#include "../order/halving.h"
#include "../order/tree_sum.h"
#include "../transport/comm_table.h"
#include "node_group.h"
#include "parallel/sums.h"
#include "pump.h"

typedef enum SlotState { SLOT_IDLE, SLOT_COLLECT, SLOT_SPREAD } SlotState;

/* What was begun. */
typedef struct Range {
    /* of the group's ranks, the arena or the parameters; borrowed */
    float *const *base;
    /* bounds count from there on */
    int64_t shift;
    Cut cut;
    /* phases that it has; in rounds of halving, or each rank with each other one at once */
    bool collect, spread, halves;
    /* pieces are the next slices of all shards; else ranges that follow each other */
    bool slices;
    /* elements that are in pieces: of every shard, or of the range */
    int64_t done;
    /* of given bounds: no shard before this one has anything left */
    int shard;
    /* level NULL: it is none */
    CommPush push;
    /* number among all that was begun, from 1 on */
    int64_t id;
    /* the push's, or the all-gather's */
    int64_t number;
} Range;

/* One piece in flight. */
typedef struct Slot {
    SlotState state;
    /* done: where in the shards this piece begins; the cut is the piece's own where that is a
     * range */
    Range range;
    /* of given bounds: the shards with something in the piece, up to the last one */
    int shard, shard_end;
    /* number of it */
    uint32_t piece;
    /* of its range */
    bool last;
    /* of halving: the next to end */
    int round;
    /* all of the phase's messages have come */
    bool taken;
    /* owned: my slice from each peer, slice elements apart; of halving what comes in a round and
     * what goes, where that is in many places */
    float *staging;
    /* owned array: my slice of each rank of the rail, in rank order */
    const float **in;
    /* owned: one send and one receive per peer */
    MPI_Request *request;
    int request_count;
} Slot;

typedef struct Messages {
    NodeGroup group;
    /* owned: the rail; its tags are ours alone */
    MPI_Comm comm;
    /* ranks of the rail, that is, groups; this rank's number among them */
    int rail_size, rail_rank;
    /* elements, at most; of a piece that is a range, and of one that is cut at given bounds */
    int64_t slice, even, uneven;
    /* owned */
    Halving *halving;
    /* of a slot */
    size_t staging_bytes;
    /* pieces in flight: the first `slots` of them */
    Slot slot[SUM_PIECES_IN_FLIGHT];
    int slots;
    /* owned: begun, not yet wholly in slots; oldest first, from range_first */
    Range *range;
    int range_first, range_count, range_capacity;
    /* started so far */
    uint32_t pieces;
    /* ranges */
    int64_t begun;
    /* all-gathers begun */
    int64_t gathers;
    /* pushes done here */
    int64_t pushed;
    /* the least of the group's marks at the last poll */
    int64_t seen[MARKS];
    double checked_s;
    /* owned: mpi_lock guards all of this but comm, slice and pump */
    Pump *pump;
} Messages;

/* The next piece of the oldest range into a slot that is idle. */
void piece_start(Comm *comm, Slot *slot);
/* Moves a slot on as far as its messages allow. Did it move? */
bool piece_advance(Comm *comm, Slot *slot);

#endif
