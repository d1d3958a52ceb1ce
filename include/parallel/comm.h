/* Communicators: ordered sums, shards and all-gathers over the ranks of a world. */
#ifndef WEFT_PARALLEL_COMM_H
#define WEFT_PARALLEL_COMM_H

#include "parallel/order.h"
#include "parallel/sums.h"
#include "parallel/world.h"
#include "tensor.h"

/* Sums of floats over ranks in a fixed order: neighbours 2i and 2i+1 join, an odd one moves up
 * (docs/determinism.md), so that the bits depend on the number of ranks in the tree only through
 * the tree itself. Many operations may be in flight at a time; all ranks begin them in the same
 * order, and they progress in comm_progress and comm_wait. */
typedef struct Comm Comm;
typedef struct CommTable CommTable;
/* A leaf of every rank for a tree of sums that grows from push to push, while a rank has the
 * partial sums of its shard only, which lies `shift` behind its bounds in the arenas of all
 * ranks. */
typedef struct CommPush {
    /* as in comm_reduce_scatter_begin; borrowed until the push is done, as level */
    const Bounds *bounds;
    int64_t shift;
    /* this rank's partial sums, as tree_step has them; of its shard from level[k] + at on */
    float *const *level;
    int64_t at;
    /* rank r's leaf is number first + r of so many, both multiples of the ranks; a tree's pushes
     * come in that order */
    int first, leaves;
} CommPush;
struct Comm {
    const CommTable *table;
    /* borrowed */
    const World *world;
    /* borrowed */
    Backend *backend;
    int rank, size;
    /* as asked for */
    int transport;
    CommWay way;
    /* of comm_nodes, as comm_group_width has it; else 1 */
    int group_width;
    /* owned: where the sums happen; arena_elements floats of the backend's memory */
    float *arena;
    int64_t arena_elements;
    /* owned: param_elements floats; NULL before comm_params_new */
    float *params;
    int64_t param_elements;
    /* all ranks have the same memory there: what one writes all have */
    bool params_shared;
    /* begun so far */
    int64_t sums, pushes, gathers;
    /* that this rank has sent over MPI so far, and their bytes */
    int64_t messages, message_bytes;
    /* borrowed: a lap for each time the compute stream waits for sums; NULL: not measured */
    Stopwatch *waits;
    void *impl;
};
/* NCCL's version, compiled in and running, as a line. */
void comm_versions(FILE *out);
/* comm_nodes: shm inside groups of a node's ranks, mpi between them. comm_staged: a GPU's memory by
 * way of the host's. */
extern const CommTable comm_self, comm_shm, comm_mpi, comm_nodes, comm_nccl, comm_staged;
/* One rank has nothing to sum: self, whatever the transport. transport auto: nccl where world's
 * GPUs are joined, shm where all ranks are on one node, else mpi, with shm inside the nodes first
 * (comm_group_width). Sums of a GPU's memory that go by shm or mpi are copied to the host and back
 * (comm_staged). A transport that cannot serve is ERR_CONFIG with the reason, never replaced in
 * silence. Collective on world. */
Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements);
/* Collective. */
void comm_free(Comm **comm);
/* "self", "shm", "mpi", "shm and mpi", "nccl", "host memory" */
const char *comm_name(const Comm *comm);
/* What auto stands for, or `transport` itself, between ranks in this kind of memory. */
int comm_transport(int transport, bool one_node, bool host_memory);
/* How many ranks of a node sum in shared memory before messages leave it: the largest power of two
 * that nodes' ranks come in, where transport is auto and world on several nodes; else 1.
 * Collective. */
int comm_group_width(const World *world, int transport);
/* Of communicators that are made from now on; the same on all ranks. */
void comm_set_way(CommWay way);
/* Bytes in which comm_mpi and comm_nodes keep what comes from others, beside the arena of so many
 * elements. */
size_t comm_mpi_staging(int ranks, int width, int64_t elements);
/* Likewise comm_nccl's, of a GPU's memory. */
size_t comm_nccl_scratch(int ranks, int64_t elements);
/* Sums arena[offset .. offset + count) over all ranks, in place, result on every rank. Same calls
 * in the same order on every rank. The range may not be touched until comm_wait. Collective. */
void comm_allreduce_begin(Comm *comm, int64_t offset, int64_t count);
/* As comm_allreduce_begin for what lies between the first and the last bound, but each rank alone
 * gets the sums of its shard; in what is another's, the arena keeps anything. bounds are the same
 * on all ranks, and borrowed until comm_wait. Collective. */
void comm_reduce_scatter_begin(Comm *comm, const Bounds *bounds);
/* An arena of parameters, zeroed, of which each rank changes shards: once per node where the ranks
 * have memory in common (then all of them wait for the others in comm_allgather_begin's comm_wait,
 * and nothing is copied). ERR_CONFIG where the transport has none. Freed by comm_free. Collective;
 * every rank returns the same Status. */
Status comm_params_new(Comm *comm, int64_t elements);
/* Every rank's shard of params, bounds as in comm_reduce_scatter_begin, to all ranks; it lies
 * `shift` behind its bounds. Until comm_wait, or comm_allgather_wait for the number returned,
 * nobody may read or change anything between the first bound and the last, + shift. Collective. */
int64_t comm_allgather_begin(Comm *comm, const Bounds *bounds, int64_t shift);
/* Are all all-gathers up to this number done on this rank, so that it may read and change them
 * again? As comm_push_wait. */
bool comm_allgather_wait(Comm *comm, int64_t number);
/* Returns the push's number, from 1 on. The leaf may be overwritten once comm_push_wait says so.
 * level may be read after the comm_wait that follows the last push. Collective. */
int64_t comm_push_begin(Comm *comm, const CommPush *push);
/* Are all pushes up to this number done by all ranks, so that their ranges may be written again?
 * Waits a little, a millisecond at most, and may be called until it is so. Not collective, but all
 * that is begun must be begun by all. */
bool comm_push_wait(Comm *comm, int64_t number);
/* Not collective; cheap. */
void comm_progress(Comm *comm);
/* Until all that was begun is done. Collective. */
void comm_wait(Comm *comm);

#endif
