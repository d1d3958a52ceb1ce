/* Communicators: ordered sums, shards and all-gathers over the ranks of a world. */
#ifndef WEFT_PARALLEL_COMM_H
#define WEFT_PARALLEL_COMM_H

#include "parallel/order.h"
#include "parallel/sums.h"
#include "parallel/world.h"
#include "tensor.h"

/* Sums of floats over ranks in a fixed order: neighbours 2i and 2i+1 are added, and a last summand
 * without a neighbour moves up a level (docs/determinism.md). The bits of a sum depend only on this
 * tree. They do not depend on the transport, with one exception: NCCL under train.reproducible:
 * same_grid chooses its own order. Several operations may be in flight. All ranks begin operations
 * in the same order; comm_progress and comm_wait advance them. */
typedef struct Comm Comm;
typedef struct CommTable CommTable;
/* A push: every rank adds one leaf to a tree of sums that grows with each push. A leaf is a range
 * of a rank's arena. The range is cut into one shard for each rank, and a rank keeps the partial
 * sums of its own shard only. The last push to the tree completes the sum of each shard, and PushTo
 * says where the complete sums are stored. The owner of a shard is the rank that has its partial
 * sums. */
typedef enum PushTo {
    /* each owner stores the sum of its shard in the first array of its partial sums
     * (CommPush.partial) */
    PUSH_TO_PARTIAL,
    /* each owner stores the sum of its shard in its own arena, in the shard's place in the last
     * leaf */
    PUSH_TO_OWNER,
    /* the arenas of all ranks get the sums of all shards, in place of the last leaf */
    PUSH_TO_ALL
} PushTo;
/* One push. The leaf begins at bounds->begin[0] + shift and ends before
 * bounds->begin[bounds->count] + shift, in the arena of every rank. */
typedef struct CommPush {
    /* bounds of the shards, as in comm_reduce_scatter_begin; borrowed until the push is done */
    const Bounds *bounds;
    int64_t shift;
    /* this rank's partial sums, a stack of deal_levels arrays (parallel/order.h). partial[0] has
     * the sum of the largest complete subtree, which begins at leaf 0; partial[1] has the sum of
     * the next subtree, and so on (tree_levels). In each array the sums of this rank's shard begin
     * at index partial_at. Borrowed until the push is done. */
    float *const *partial;
    int64_t partial_at;
    /* the tree has `leaves` leaves, and in this push rank r adds the leaf with index `first` + r.
     * Both numbers are multiples of the number of ranks. The pushes to a tree are begun in
     * ascending order of `first`. */
    int first, leaves;
    PushTo to;
} CommPush;
struct Comm {
    const CommTable *table;
    /* borrowed */
    const World *world;
    /* borrowed */
    Backend *backend;
    /* number of this rank and number of ranks in `world` */
    int rank, size;
    /* the transport that was requested: the argument of comm_new, a Transport */
    int transport;
    /* algorithm of sums over MPI and NCCL (grid.sums), as comm_set_sum_algorithm had set it when
     * this communicator was made; sums in shared memory do not use it */
    SumAlgorithm sum_algorithm;
    /* number of ranks of a group of comm_nodes (comm_group_width); 1 for other transports */
    int group_width;
    /* the memory in which sums are computed, float[arena_elements] of the backend; owned */
    float *arena;
    int64_t arena_elements;
    /* backend in whose memory the partial sums of pushes are: `backend`, or with comm_staged the
     * backend of host memory; borrowed */
    Backend *partial_backend;
    /* parameters, float[param_elements] of the backend; owned; NULL before comm_params_new */
    float *params;
    int64_t param_elements;
    /* true: all ranks map the same memory as params */
    bool params_shared;
    /* numbers of operations begun so far. sums: all-reduces and reduce-scatters; pushes: pushes;
     * gathers: all-gathers */
    int64_t sums, pushes, gathers;
    /* number of messages that this rank has sent over MPI so far */
    int64_t message_count;
    /* number of bytes in those messages */
    int64_t message_bytes;
    /* measures the compute stream's waits in comm_wait, comm_allgather_poll and comm_push_poll;
     * borrowed; NULL: these waits are not measured */
    Stopwatch *waits;
    /* the transport's own data, released by comm_free */
    void *impl;
};
/* Prints one line with two versions of NCCL: that of the headers in the build, and that of the
 * library found at run time. */
void comm_versions(FILE *out);
/* The transports. comm_self is for one rank. comm_nodes uses shared memory inside groups of a
 * node's ranks and MPI between the groups. comm_staged copies GPU memory to host memory and sums it
 * there. A new transport is declared here, chosen in comm.c, and checked in table_check.c. */
extern const CommTable comm_self, comm_shm, comm_mpi, comm_nodes, comm_nccl, comm_staged;
/* Checks the tables of functions of all transports, of communicators and of channels. ERR_BUG,
 * naming the transport and the member: a table lacks something. Not collective. */
Status parallel_rows_check(void);
/* Makes a communicator on world. A single rank uses comm_self, whatever the transport.
 * TRANSPORT_AUTO chooses NCCL if world has an NCCL communicator (World.nccl_comm), else shared
 * memory if all ranks are on one node, else MPI. If it chooses MPI for memory of the host, the
 * ranks of a node first sum in shared memory (comm_group_width). Sums of GPU memory over shared
 * memory or MPI are copied to the host and back (comm_staged). A requested transport is never
 * replaced by another. ERR_CONFIG: the requested transport cannot connect these ranks. ERR_BUG:
 * NCCL is requested for GPU memory, and world has no NCCL communicator. Release with comm_free.
 * Collective on world. */
Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements);
/* Collective. */
void comm_free(Comm **comm);
/* Returns the name of the transport in use: "self", "shm", "mpi", "shm and mpi", "nccl", "host
 * memory". */
const char *comm_name(const Comm *comm);
/* Returns the transport that sums use if grid.transport is `transport`. Host memory: TRANSPORT_AUTO
 * becomes shared memory (one_node = true) or MPI; any other value is returned unchanged. GPU
 * memory: always returns TRANSPORT_NCCL, also if comm_staged makes the sums, because the ranks
 * never share GPU memory. comm_staged makes a second communicator for the copies in host memory,
 * and calls this function again for that one. */
int comm_transport(int transport, bool one_node, bool host_memory);
/* Returns the number of ranks of a node that sum in shared memory before messages leave the node.
 * It is the largest power of two that divides, on every node, both the number of the node's ranks
 * and the number (in world) of its lowest rank. Returns 1 if the transport is not TRANSPORT_AUTO,
 * if world is on one node, or if the ranks of a node are not consecutive. Collective. */
int comm_group_width(const World *world, int transport);
/* Sets the algorithm of sums (grid.sums) for all communicators that are made afterwards. All ranks
 * must set the same one. */
void comm_set_sum_algorithm(SumAlgorithm algorithm);
/* Returns the bytes of staging memory in which comm_mpi and comm_nodes receive messages, in
 * addition to the arena of `elements` floats. width: see comm_group_width. */
size_t comm_mpi_staging(int ranks, int width, int64_t elements);
/* Returns the bytes of GPU memory that comm_nccl needs in addition to its arena of `elements`
 * floats. */
size_t comm_nccl_scratch(int ranks, int64_t elements);
/* Begins the sum of arena[offset .. offset + count - 1] over all ranks, in place; every rank gets
 * the result. All ranks make the same calls in the same order. The range must not be read or
 * changed until comm_wait returns. Collective. */
void comm_allreduce_begin(Comm *comm, int64_t offset, int64_t count);
/* Begins the sum of the range of the arena from the first to the last bound. Each rank gets the
 * sums of its own shard only; afterwards the rest of the range in its arena is undefined. The
 * bounds are the same on all ranks and borrowed until comm_wait returns. Collective. */
void comm_reduce_scatter_begin(Comm *comm, const Bounds *bounds);
/* Allocates comm->params, zeroed. Each rank changes only its own shards. With comm_shm all ranks
 * share one copy: an all-gather then copies nothing, and comm_wait waits until every rank has begun
 * the all-gather. ERR_CONFIG: the transport does not support this (comm_staged). comm_free releases
 * the memory. Collective; every rank returns the same Status. */
Status comm_params_new(Comm *comm, int64_t elements);
/* Begins to send every rank's shard of comm->params to all ranks, and returns the number of this
 * all-gather. The shards are cut as in comm_reduce_scatter_begin; each begins `shift` elements
 * after its bound. No rank may read or change comm->params from the first bound + shift to the last
 * bound + shift until comm_wait returns, or comm_allgather_poll returns true for this number.
 * Collective. */
int64_t comm_allgather_begin(Comm *comm, const Bounds *bounds, int64_t shift);
/* Returns true if all all-gathers up to this number are done on this rank; then their ranges may be
 * read and changed. Returns false if they are not done after about a millisecond. Call it in a
 * loop. */
bool comm_allgather_poll(Comm *comm, int64_t number);
/* Begins a push and returns its number, counted from 1. The leaf may be overwritten once
 * comm_push_poll returns true for this number. The arrays push->partial may be read after the first
 * comm_wait that follows the last push to the tree. Collective. */
int64_t comm_push_begin(Comm *comm, const CommPush *push);
/* Returns true if no rank still reads this rank's leaves of the pushes up to this number; then the
 * leaves may be overwritten (with NCCL only by work that is queued on the compute stream). Returns
 * false if a rank still reads them after about a millisecond. Call it in a loop. Not collective;
 * but without NCCL it returns true only once every rank has begun these pushes. */
bool comm_push_poll(Comm *comm, int64_t number);
/* Advances the operations in flight. Cheap. Not collective. */
void comm_progress(Comm *comm);
/* Waits until every operation that was begun on comm is done. With NCCL the compute stream waits,
 * not the host. Collective. */
void comm_wait(Comm *comm);

#endif
