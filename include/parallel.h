/* parallel: the world of ranks, the process grid, communicators with ordered sums, gradient buckets. This room and
 * those below it may call MPI; every call comes from one thread. */
#ifndef WEFT_PARALLEL_H
#define WEFT_PARALLEL_H

#include "config.h"
#include "tensor.h"

#include <mpi.h>

/* All ranks. Started alone (no mpirun, no srun around), MPI is never initialised: size 1, comm MPI_COMM_NULL. */
typedef struct World {
    int rank, size;
    int node_rank, node_size; /* among the ranks of this node */
    bool one_node;
    MPI_Comm comm; /* MPI_COMM_WORLD, or MPI_COMM_NULL */
    MPI_Comm node; /* owned */
} World;
/* True if a launcher's environment surrounds this process; before MPI_Init. *local_size: ranks on this node as the
 * launcher says, 1 if it does not. */
bool world_launched(int *local_size);
Status world_init(World *world, int *argc, char ***argv); /* Collective on all started processes. */
void world_fini(World *world);                            /* Collective. */
/* All ranks learn the worst status and leave with it; the message of the lowest rank that has it becomes every rank's
 * fail_message (with "rank R: " before it where R > 0). Collective. */
Status status_agree(const World *world, Status mine);
void world_bcast(const World *world, void *data, size_t bytes,
                 int root);             /* Collective; counts above 2^31 work */
void world_barrier(const World *world); /* Collective */
/* out[rank*bytes...] on every rank. Collective. */
void world_gather(const World *world, const void *mine, size_t bytes, void *out);

/* Sums of floats over ranks in a fixed order: neighbours 2i and 2i+1 join, an odd one moves up (DESIGN section 6), so
 * that the bits depend on the number of ranks in the tree only through the tree itself. Sums may be in flight many at a
 * time, are begun in the same order on all ranks, and make progress in comm_progress and comm_wait. */
typedef struct Comm Comm;
typedef struct CommTable {
    const char *name; /* self, shm, mpi, nccl */
    Status (*open)(Comm *comm, Backend *backend, size_t arena_bytes);
    void (*close)(Comm *comm);
    void (*sum_begin)(Comm *comm, int64_t offset, int64_t count);
    bool (*progress)(Comm *comm); /* true: nothing is in flight */
    /* Until nothing is; where work is queued, the compute stream waits and not the host. NULL: comm_wait polls progress */
    void (*wait)(Comm *comm);
} CommTable;
struct Comm {
    const CommTable *table;
    const World *world; /* borrowed */
    Backend *backend;   /* borrowed */
    int rank, size;
    float *arena; /* owned: where the sums happen; arena_elements floats of the backend's memory */
    int64_t arena_elements;
    double wait_s, sum_s; /* exposed waiting and local summing so far */
    void *impl;
};
extern const CommTable comm_self, comm_shm, comm_mpi, comm_nccl;
/* One rank has nothing to sum: self, whatever the transport. transport auto: nccl on cuda, shm where all ranks share a
 * node, else mpi. A transport that cannot serve is ERR_CONFIG with the reason, never replaced in silence. Collective on world. */
Status comm_new(Comm **comm, const World *world, Backend *backend, int transport,
                int64_t arena_elements);
void comm_free(Comm **comm); /* Collective. */
/* Sums arena[offset .. offset+count) over all ranks, in place, result on every rank. Same calls in the same order on
 * every rank. The range may not be touched until comm_wait. */
void comm_sum_begin(Comm *comm, int64_t offset, int64_t count); /* Collective. */
void comm_progress(Comm *comm);                                 /* Not collective; cheap. */
void comm_wait(Comm *comm); /* Until all begun sums are done. Collective. */

/* Cuts [0, elements) into ranges of about bucket_bytes whose borders are tensor borders, last tensor first (the order
 * in which backward finishes them). first_tensor[b]: bucket b is whole once this tensor's gradient is. */
typedef struct Buckets {
    int count;
    int64_t *offset, *elements; /* owned */
    int *first_tensor;          /* owned */
} Buckets;
void buckets_init(Buckets *buckets, const int64_t *tensor_offset, int tensors, int64_t elements,
                  size_t bucket_bytes);
void buckets_fini(Buckets *buckets);

/* Partial sums of micro-batches inside a rank: a stack of equal arenas (a binary counter), so that k
 * micro-batches end as the fixed tree's sum of k, in arena 0. tree_levels(k) arenas serve: 1 for k = 1, else
 * ceil(log2(k)) + 1. */
int tree_levels(int micros);
typedef struct TreeStep {
    int write;      /* arena that this micro-batch's gradient goes to */
    int join_count; /* then, in order: arena[to] = arena[to] + arena[to + 1] */
    int to[32];
} TreeStep;
/* What micro-batch `micro` (0-based, local) of `micros` does. After the last one the whole sum is in arena 0. */
TreeStep tree_step(int micro, int micros);
/* True where the sum over dp equal blocks of `micros_global` micro-batches is the same tree for every such grid. */
bool tree_is_canonical(int micros_global, int dp);

#endif
