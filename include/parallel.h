/* parallel: the world of ranks, the process grid, communicators with ordered sums, channels, gradient buckets. This module and
 * those below it may call MPI; calls come from one thread, and from the one that makes its sums progress
 * (src/parallel/mpi/pump.h). */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#include "config.h"
#include "tensor.h"

#include <mpi.h>

/* All ranks. Started alone (no mpirun, no srun around), MPI is never initialised: size 1, comm MPI_COMM_NULL. */
typedef struct World {
    int rank, size;
    /* among the ranks of this node */
    int node_rank, node_size;
    bool one_node;
    /* MPI_COMM_WORLD, or MPI_COMM_NULL */
    MPI_Comm comm;
    MPI_Comm node; /* owned */
    /* what joins these ranks' GPUs, borrowed from a Grid; NULL: nothing */
    struct Gpus *gpus;
} World;

/* True if a launcher's environment surrounds this process; before MPI_Init. *local_size: ranks on this node as the launcher
 * says, 1 if it does not. */
bool world_launched(int *local_size);
/* Collective on all started processes, both. */
Status world_init(World *world, int *argc, char ***argv);
void world_fini(World *world);
/* All ranks learn the worst status and leave with it; the message of the lowest rank that has it becomes every rank's
 * fail_message (with "rank R: " before it, R its number in the job, where R > 0). Collective. */
Status status_agree(const World *world, Status mine);
/* data of rank root to all. Collective; counts above 2^31 work. */
void world_bcast(const World *world, void *data, size_t bytes, int root);
void world_barrier(const World *world); /* Collective. */
/* Rank 0's text, or NULL, to all: on rank 0 `mine` itself. Owner: the caller. Collective. */
char *world_bcast_text(const World *world, char *mine);
/* out[rank * bytes...] on every rank. Collective. */
void world_gather(const World *world, const void *mine, size_t bytes, void *out);
/* Every rank's part, bytes[r] of rank r, one behind the other in out on rank root, which is large enough for them; out is
 * untouched elsewhere. mine may not lie in out. Collective; counts above 2^31 work. */
void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out);

/* The ranks that gave the same color, in the order of world, as a world of their own; of size 1 it has no communicator and
 * calls no MPI. Release with world_part_fini. Both collective, on world and on part. */
Status world_split(World *part, const World *world, int color);
void world_part_fini(World *part);

/* Where one rank stands. rank = (pp_rank * dp + dp_rank) * tp + tp_rank: the ranks that talk most (tensor, then data
 * parallel) are neighbours, so they are on the same node. */
typedef struct GridShape {
    int dp, pp, tp;
} GridShape;
typedef struct Grid {
    GridShape shape;
    int dp_rank, pp_rank, tp_rank;
    /* borrowed: all ranks */
    const World *world;
    /* owned: the ranks that differ from this one in that coordinate only */
    World dp_world, pp_world, tp_world;
    /* owned: all ranks', from which the others are split, dp_world's, pp_world's, tp_world's */
    struct Gpus *gpus[4];
} Grid;

/* What config asks for on `ranks` ranks; ERR_CONFIG says what would fit. A pure function. */
Status grid_shape(GridShape *shape, const Config *config, int ranks);
/* Collective on world; every rank returns the same Status. Release with grid_fini (collective). */
Status grid_init(Grid *grid, const World *world, GridShape shape);
/* Joins the GPUs of all ranks by NCCL, for the sums and messages of grid's worlds; nothing to do for one rank or in host
 * memory. With transport shm or mpi, and with auto where ranks use the same GPU, which NCCL cannot serve (a warning says so),
 * all goes through host memory instead. GPUs of several models are ERR_CONFIG under REPRODUCIBLE_ANY_GRID, for their sums
 * differ; else a warning. Collective on grid->world; every rank returns the same Status. grid_fini releases it. */
Status grid_join_gpus(Grid *grid, Backend *backend, int transport, int bits);
void grid_fini(Grid *grid);

/* One-way channels between ranks of a world, each for messages of one size: NCCL where world's GPUs are joined, shared memory
 * where both ranks are on one node, MPI else. A message is written to and read from one of the channel's `depth` slots, so a
 * sender runs ahead by so many (over MPI each end has its own: up to twice as many). Calls never wait: they say whether they
 * could. */
typedef struct ChannelSpec {
    int from, to, depth;
    /* a multiple of 64; 0: messages carry nothing, but still come and go */
    size_t bytes;
} ChannelSpec;
typedef struct Channels Channels;
/* All ranks give the same list. transport: refused as in comm_new. Collective on world. */
Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport);
/* Every message sent has been released. Collective. */
void channels_free(Channels **channels);
/* Sender: where to write the next message, or NULL while all slots are taken; then send what was written. */
void *channel_slot(Channels *channels, int channel);
void channel_send(Channels *channels, int channel);
/* Receiver: the oldest message, or NULL while there is none; then release its slot. */
const void *channel_message(Channels *channels, int channel);
void channel_release(Channels *channels, int channel);
/* Makes MPI's messages progress; cheap. */
void channels_progress(Channels *channels);
/* Are slots in the GPU's memory? Their content is then queued work of the compute stream, and messages move when both ranks
 * say so. */
bool channels_on_device(const Channels *channels);
/* The next message of each of these channels, of which this rank is an end: those it sends have been sent, and those it
 * receives have a slot. All ranks' calls must be parts of one sequence of messages (schedule_moves): then there is no dead end
 * even where a call blocks until its peers have come to theirs. Nothing to do where messages move by themselves. */
void channels_move(Channels *channels, const int *channel, int count);
/* For a rank that waits for a channel, called in a loop with the time since it began: leaves the core to others, longer and
 * longer, and dies where a peer's process has ended. */
void channels_wait(Channels *channels, double waited_s);

/* What lets ranks whose GPUs are joined exchange slices (tensor.h, Exchange): grouped sends and receives on the compute stream,
 * so that what is queued next finds the result, and additions in the ranks' order. `most`: bytes of the largest tensor of which
 * there are slices. NULL where world's GPUs are not joined. Owner: the caller. Not collective. */
Exchange *gpu_exchange_new(const World *world, size_t most);
void gpu_exchange_free(Exchange **exchange);
/* Bytes of a GPU's memory that it takes. */
size_t gpu_exchange_bytes(int ranks, size_t most);

/* Sums of floats over ranks in a fixed order: neighbours 2i and 2i+1 join, an odd one moves up (docs/determinism.md), so that
 * the bits depend on the number of ranks in the tree only through the tree itself. Many operations may be in flight at a time;
 * all ranks begin them in the same order, and they progress in comm_progress and comm_wait. */
typedef struct Comm Comm;
typedef struct CommTable CommTable;
/* A leaf of every rank for a tree of sums that grows from push to push, while a rank has the partial sums of its shard only:
 * rank r takes arena[bound[r] + shift .. bound[r + 1] + shift) of all ranks. */
typedef struct CommPush {
    /* as in comm_reduce_scatter_begin; borrowed until the push is done, as level */
    const int64_t *bound;
    int64_t shift;
    /* this rank's partial sums, as tree_step has them; of its shard from level[k] + at on */
    float *const *level;
    int64_t at;
    /* rank r's leaf is number first + r of so many, both multiples of the ranks; a tree's pushes come in that order */
    int first, leaves;
} CommPush;
struct Comm {
    const CommTable *table;
    const World *world; /* borrowed */
    Backend *backend;   /* borrowed */
    int rank, size;
    /* as asked for */
    int transport;
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
    int64_t pushes, gathers;
    /* borrowed: a lap for each time the compute stream waits for sums; NULL: not measured */
    Stopwatch *waits;
    void *impl;
};
/* NCCL's version, compiled in and running, as a line. */
void comm_versions(FILE *out);
/* comm_nodes: shm inside groups of a node's ranks, mpi between them. comm_staged: a GPU's memory by way of the host's. */
extern const CommTable comm_self, comm_shm, comm_mpi, comm_nodes, comm_nccl, comm_staged;
/* One rank has nothing to sum: self, whatever the transport. transport auto: nccl where world's GPUs are joined, shm where all
 * ranks are on one node, else mpi, with shm inside the nodes first (comm_group_width). Sums of a GPU's memory that go by shm or
 * mpi are copied to the host and back (comm_staged). A transport that cannot serve is ERR_CONFIG with the reason, never
 * replaced in silence. Collective on world. */
Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements);
void comm_free(Comm **comm); /* Collective. */
/* "self", "shm", "mpi", "shm and mpi", "nccl", "host memory" */
const char *comm_name(const Comm *comm);
/* What auto stands for, or `transport` itself, between ranks in this kind of memory. */
int comm_transport(int transport, bool one_node, bool host_memory);
/* How many ranks of a node sum in shared memory before messages leave it: the largest power of two that nodes' ranks come
 * in, where transport is auto and world on several nodes; else 1. Collective. */
int comm_group_width(const World *world, int transport);
/* Bytes in which comm_mpi and comm_nodes keep what comes from others, beside the arena of so many elements. */
size_t comm_mpi_staging(int ranks, int width, int64_t elements);
/* Likewise comm_nccl's, of a GPU's memory. */
size_t comm_nccl_scratch(int ranks, int64_t elements);
/* Sums arena[offset .. offset + count) over all ranks, in place, result on every rank. Same calls in the same order on every
 * rank. The range may not be touched until comm_wait. Collective. */
void comm_allreduce_begin(Comm *comm, int64_t offset, int64_t count);
/* As comm_allreduce_begin for arena[bound[0] .. bound[size]), but rank r alone gets the sums, of its shard, from bound[r] to
 * bound[r + 1]; in what is another's, the arena keeps anything. bound has size + 1 entries, which never fall, the same on all
 * ranks, and is borrowed until comm_wait. Collective. */
void comm_reduce_scatter_begin(Comm *comm, const int64_t *bound);
/* An arena of parameters, zeroed, of which each rank changes shards: once per node where the ranks have memory in common (then
 * all of them wait for the others in comm_allgather_begin's comm_wait, and nothing is copied). ERR_CONFIG where the transport
 * has none. Freed by comm_free. Collective; every rank returns the same Status. */
Status comm_params_new(Comm *comm, int64_t elements);
/* Every rank's shard of params, bounds as in comm_reduce_scatter_begin, to all ranks; it lies `shift` behind its bound. Until
 * comm_wait, or comm_allgather_wait for the number returned, nobody may read or change anything between bound[0] + shift and
 * bound[size] + shift. Collective. */
int64_t comm_allgather_begin(Comm *comm, const int64_t *bound, int64_t shift);
/* Are all all-gathers up to this number done on this rank, so that it may read and change them again? As comm_push_wait. */
bool comm_allgather_wait(Comm *comm, int64_t number);
/* Returns the push's number, from 1 on. The leaf may be overwritten once comm_push_wait says so. level may be read after the
 * comm_wait that follows the last push. Collective. */
int64_t comm_push_begin(Comm *comm, const CommPush *push);
/* Are all pushes up to this number done by all ranks, so that their ranges may be written again? Waits a little, a
 * millisecond at most, and may be called until it is so. Not collective, but all that is begun must be begun by all. */
bool comm_push_wait(Comm *comm, int64_t number);
void comm_progress(Comm *comm); /* Not collective; cheap. */
/* Until all that was begun is done. Collective. */
void comm_wait(Comm *comm);

/* Cuts [0, elements) into ranges of about bucket_bytes whose bounds are tensor bounds, last tensor first (the order in which
 * backward finishes them). */
typedef struct Buckets {
    int count;
    int64_t *offset, *elements; /* owned */
    /* owned; bucket b is whole once this tensor's gradient is */
    int *first_tensor;
} Buckets;
void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes);
void buckets_fini(Buckets *buckets);

/* Partial sums of micro-batches inside a rank: a stack of equal arenas (a binary counter), so that k micro-batches end as the
 * fixed tree's sum of k, in arena 0. tree_levels(k) arenas serve: 1 for k = 1, else ceil(log2(k)) + 1. */
int tree_levels(int micros);
typedef struct TreeStep {
    /* the arena that this micro-batch's gradient goes to */
    int write;
    /* then, in order: arena[to] = arena[to] + arena[to + 1] */
    int join_count;
    int to[32];
} TreeStep;
/* What micro-batch `micro` (0-based, local) of `micros` does. After the last one the whole sum is in arena 0. */
TreeStep tree_step(int micro, int micros);
/* Arenas that the tree of pushes * each leaves needs between pushes, where each push brings `each` of them at once. */
int tree_levels_between(int pushes, int each);
/* Of `micros_global` micro-batches, as many as each of dp replicas takes: where they do not come out even, those from number
 * micros_global on are padding. They have no samples and add -0, so a tree whose last leaves they are is the tree without. */
int micros_a_replica(int micros_global, int dp);
/* True where the sum over dp such blocks is the same tree for every such grid. */
bool tree_is_canonical(int micros_global, int dp);

#endif
