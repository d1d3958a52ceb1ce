/* Communicators: ordered sums, shards and all-gathers over the ranks of a world. */
#ifndef WEFT_PARALLEL_COMM_H
#define WEFT_PARALLEL_COMM_H

#include "parallel/order.h"
#include "parallel/sums.h"
#include "parallel/world.h"
#include "tensor.h"

/* Sums of floats over ranks in a fixed order: neighbours 2i and 2i+1 are added, and a last summand
 * without a neighbour moves up a level (docs/determinism.md). The bits of a sum depend on the tree
 * alone and not on the transport. The exception is NCCL under train.reproducible: same_grid, which
 * chooses its own order. Several operations may be in flight. All ranks begin operations in the
 * same order; comm_progress and comm_wait advance them. */
typedef struct Comm Comm;
typedef struct CommTable CommTable;
/* Destination of the whole sum of a tree of pushes. */
typedef enum PushTo {
    /* level[0] of each shard's owner */
    PUSH_TO_LEVEL,
    /* the range of the last leaf, in the arena of each shard's owner */
    PUSH_TO_OWNER,
    /* the range of the last leaf, in the arenas of all ranks */
    PUSH_TO_ALL
} PushTo;
/* One push: every rank adds one leaf to a tree of sums that grows from push to push. The leaf is a
 * range of the rank's arena; each rank keeps the partial sums of its shard only. The range begins
 * `shift` elements after its bounds in the arenas of all ranks. */
typedef struct CommPush {
    /* bounds of the shards as in comm_reduce_scatter_begin; bounds and level are borrowed until the
     * push is done */
    const Bounds *bounds;
    int64_t shift;
    /* this rank's partial sums, one array per level of tree_step's stack; the sums of its shard
     * begin at level[k] + at */
    float *const *level;
    int64_t at;
    /* rank r's leaf is number first + r of `leaves`; first and leaves are multiples of the number
     * of ranks, and the pushes of a tree are begun in ascending order of first */
    int first, leaves;
    PushTo to;
} CommPush;
struct Comm {
    const CommTable *table;
    /* borrowed */
    const World *world;
    /* borrowed */
    Backend *backend;
    int rank, size;
    /* transport that comm_new was called with */
    int transport;
    /* value of comm_set_way when the communicator was made */
    CommWay way;
    /* ranks per group of comm_nodes (comm_group_width); 1 for other transports */
    int group_width;
    /* the memory in which sums are computed, float[arena_elements] of the backend; owned */
    float *arena;
    int64_t arena_elements;
    /* backend whose memory has the partial sums of pushes; borrowed */
    Backend *partial_backend;
    /* parameters, float[param_elements] of the backend; owned; NULL before comm_params_new */
    float *params;
    int64_t param_elements;
    /* true: all ranks map the same memory as params */
    bool params_shared;
    /* operations begun so far */
    int64_t sums, pushes, gathers;
    /* messages that this rank has sent over MPI so far, and their bytes */
    int64_t messages, message_bytes;
    /* measures each wait of the compute stream for sums; borrowed; NULL: waits are not measured */
    Stopwatch *waits;
    /* the transport's own data, released by comm_free */
    void *impl;
};
/* Prints one line with two NCCL versions: that of the headers in the build, and that of the
 * library found at run time. */
void comm_versions(FILE *out);
/* Transports. comm_nodes uses shared memory inside groups of a node's ranks and MPI between the
 * groups. comm_staged copies GPU memory to host memory to sum it there. */
extern const CommTable comm_self, comm_shm, comm_mpi, comm_nodes, comm_nccl, comm_staged;
/* Makes a communicator on world. A single rank uses comm_self, whatever the transport.
 * TRANSPORT_AUTO chooses NCCL where world's GPUs are joined, shared memory where all ranks are on
 * one node, and otherwise MPI, where ranks of a node sum in shared memory first (comm_group_width).
 * Sums of GPU memory over shared memory or MPI are copied to the host and back (comm_staged). A
 * requested transport that cannot connect these ranks is ERR_CONFIG with the reason; it is not
 * replaced by another. Release with comm_free. Collective on world. */
Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements);
/* Collective. */
void comm_free(Comm **comm);
/* Name of the transport in use: "self", "shm", "mpi", "shm and mpi", "nccl", "host memory". */
const char *comm_name(const Comm *comm);
/* Returns the transport of sums if `transport` is configured. With host memory TRANSPORT_AUTO
 * becomes shared memory or MPI, and any other transport is returned unchanged. With GPU memory the
 * result is always TRANSPORT_NCCL, also where comm_staged makes the sums. */
int comm_transport(int transport, bool one_node, bool host_memory);
/* Number of ranks of a node that sum in shared memory before messages leave the node: the largest
 * power of two that divides, for every node, the number of its ranks and its first rank. 1 if the
 * transport is not auto, if world is on one node, or if the ranks of a node are not consecutive.
 * Collective. */
int comm_group_width(const World *world, int transport);
/* Sets the way (grid.sums) of all communicators that are made afterwards. All ranks must set the
 * same way. */
void comm_set_way(CommWay way);
/* Bytes of the staging memory in which comm_mpi and comm_nodes receive messages, in addition to the
 * arena of `elements` floats. */
size_t comm_mpi_staging(int ranks, int width, int64_t elements);
/* Bytes of GPU memory that comm_nccl needs in addition to its arena. */
size_t comm_nccl_scratch(int ranks, int64_t elements);
/* Begins the sum of arena[offset .. offset + count) over all ranks, in place; every rank gets the
 * result. All ranks make the same calls in the same order. The range must not be touched until
 * comm_wait. Collective. */
void comm_allreduce_begin(Comm *comm, int64_t offset, int64_t count);
/* Begins the sum of the range between the first and the last bound; each rank gets the sums of its
 * shard only, and the rest of the range in its arena is undefined afterwards. bounds are the same
 * on all ranks and borrowed until comm_wait. Collective. */
void comm_reduce_scatter_begin(Comm *comm, const Bounds *bounds);
/* Allocates comm->params, zeroed; each rank changes its own shards only. With comm_shm all ranks
 * share one copy: an all-gather then copies nothing, and comm_wait waits until every rank has begun
 * it. ERR_CONFIG where the transport does not support it (comm_staged). comm_free releases it.
 * Collective; every rank returns the same Status. */
Status comm_params_new(Comm *comm, int64_t elements);
/* Begins to send every rank's shard of params to all ranks. bounds cut the shards as in
 * comm_reduce_scatter_begin; each shard begins `shift` elements after its bound. Returns the number
 * of this all-gather. Until comm_wait returns, or comm_allgather_wait returns true for that number,
 * no rank may read or change the range of params from the first bound + shift to the last bound +
 * shift. Collective. */
int64_t comm_allgather_begin(Comm *comm, const Bounds *bounds, int64_t shift);
/* True if all all-gathers up to this number are done on this rank; then their ranges may be read
 * and changed. Waits at most about a millisecond, as comm_push_wait does. */
bool comm_allgather_wait(Comm *comm, int64_t number);
/* Begins a push and returns its number, from 1 on. The leaf may be overwritten once comm_push_wait
 * returns true for that number. level may be read after the comm_wait that follows the last push.
 * Collective. */
int64_t comm_push_begin(Comm *comm, const CommPush *push);
/* True if no rank still reads this rank's leaves of the pushes up to this number; then they may be
 * overwritten (with NCCL by work that is queued on the compute stream). Waits about a millisecond
 * at most and may be called in a loop. Not collective; without NCCL it can only succeed once every
 * rank has begun those pushes. */
bool comm_push_wait(Comm *comm, int64_t number);
/* Moves operations in flight; cheap. Not collective. */
void comm_progress(Comm *comm);
/* Waits until every operation begun on comm is done. With NCCL the compute stream waits instead of
 * the host. Collective. */
void comm_wait(Comm *comm);

#endif
