/* Pieces of sums, pushes and all-gathers that move by messages of MPI. Each piece is in a slot, and
 * a few pieces are in flight at a time. Private to comm_mpi.c, which calls these functions with
 * mpi_lock locked. parallel/sums.h explains piece, slice and rail; node_group.h explains group. */
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

/* A sum, push or all-gather that has been begun. */
typedef struct Operation {
    /* arena, or for an all-gather the parameters, of each rank of the group; borrowed */
    float *const *base;
    /* offset of the data from the bounds, in elements */
    int64_t shift;
    /* the range, cut into shards */
    Cut cut;
    /* true: the operation has the phase in which ranks collect and add slices */
    bool collect;
    /* true: the operation has the phase in which ranks spread their slices to all ranks */
    bool spread;
    /* true: phases consist of rounds of halving, and in some pushes of one additional round all to
     * all (leaf_ranks in pieces.c); false: in a phase a rank exchanges messages with all peers at
     * once */
    bool halves;
    /* true: a piece is the next slice of every shard; false: a piece is a consecutive range */
    bool slices;
    /* number of elements that earlier pieces contain: of each shard if `slices` is true, else of
     * the complete range */
    int64_t done;
    /* if bounds are given: index of the first stored shard that may have elements left */
    int shard;
    /* the push; push.partial is NULL if the operation is not a push */
    CommPush push;
    /* number among all operations begun, from 1 on */
    int64_t id;
    /* number among the pushes, or among the all-gathers, that comm.c returned for this operation */
    int64_t number;
} Operation;

/* One piece in flight. */
typedef struct Slot {
    SlotState state;
    /* Copy of the operation. If pieces are slices, op.done is the offset of this piece in every
     * shard; if pieces are ranges, op.cut is the cut of this piece. */
    Operation op;
    /* if bounds are given: index of the first stored shard that may have elements in the piece */
    int shard;
    /* if bounds are given: 1 + index of the last stored shard that may have elements in the
     * piece */
    int shard_end;
    /* number among all pieces started; wraps */
    uint32_t piece;
    /* true: this is the last piece of its operation */
    bool last;
    /* current round of the phase; an all to all counts as one round */
    int round;
    /* true: all messages of the phase have been sent and received */
    bool received;
    /* received data: one slice of MpiState.slice_elements elements for each peer. With halving:
     * received messages that will be added, and messages whose slices are not contiguous in the
     * arena. Owned. */
    float *staging;
    /* contribution of each rank of the rail to this rank's slice, in rank order. If a round all to
     * all follows rounds of halving: sum over each set of ranks that halving has joined. The array
     * is owned. */
    const float **in;
    /* requests in flight, [request_count], with room for one send and one receive per peer;
     * owned */
    MPI_Request *request;
    int request_count;
} Slot;

typedef struct MpiState {
    NodeGroup group;
    /* separate communicator of the rail, so that its tags are not shared with other messages;
     * owned */
    MPI_Comm comm;
    /* number of ranks of the rail, which is the number of groups */
    int rail_size;
    /* this rank's number on the rail, which is the number of its group */
    int rail_rank;
    /* largest number of elements of a slice */
    int64_t slice_elements;
    /* largest number of elements of a piece of a range that is cut evenly */
    int64_t even_elements;
    /* largest number of elements of a consecutive piece of a range that is cut at given bounds */
    int64_t uneven_elements;
    /* plan of halving on the rail; owned */
    Halving *halving;
    /* bytes of the staging memory of one slot */
    size_t staging_bytes;
    /* the slots, of which the first `slots` are used */
    Slot slot[SUM_PIECES_IN_FLIGHT];
    int slots;
    /* operations; op_first .. op_count - 1 still have pieces that have not been started, oldest
     * first; owned */
    Operation *op;
    int op_first, op_count, op_capacity;
    /* number of pieces started so far; wraps */
    uint32_t pieces;
    /* number of operations begun so far */
    int64_t begun;
    /* number of the last all-gather begun */
    int64_t gathers;
    /* number of the last push that this rank has added; the sum of this push may still be
     * spreading */
    int64_t pushed;
    /* minimum of each mark over the group's ranks at the last poll */
    int64_t seen[MARKS];
    /* time (clock_s) of the last check that the group's ranks are alive */
    double checked_s;
    /* The progress thread; owned. mpi_lock guards all fields that change after comm_new. */
    ProgressThread *progress;
} MpiState;

/* Starts the next piece of the oldest operation that has pieces left, in `slot`, which is idle. All
 * ranks of the group have begun that operation. */
void piece_start(Comm *comm, Slot *slot);
/* Advances the piece in a slot as far as its messages allow. Returns whether it has advanced. */
bool piece_advance(Comm *comm, Slot *slot);

#endif
