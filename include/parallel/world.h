/* The world of ranks, parts of it, and the collectives that set-up needs. */
#ifndef WEFT_PARALLEL_WORLD_H
#define WEFT_PARALLEL_WORLD_H

#include "base.h"

#include <mpi.h>

/* All ranks. Started alone (no mpirun, no srun around), MPI is never initialised: size 1, comm
 * MPI_COMM_NULL. */
typedef struct World {
    int rank, size;
    /* among the ranks of this node */
    int node_rank, node_size;
    bool one_node;
    /* MPI_COMM_WORLD, or MPI_COMM_NULL */
    MPI_Comm comm;
    /* owned */
    MPI_Comm node;
    /* what joins these ranks' GPUs, borrowed from a Grid; NULL: nothing */
    struct Gpus *gpus;
} World;

/* This process by itself, whatever surrounds it: needs no world_fini. */
World world_alone(void);
/* True if a launcher's environment surrounds this process; before MPI_Init. *local_size: ranks on
 * this node as the launcher says, 1 if it does not. */
bool world_launched(int *local_size);
/* Collective on all started processes, both. */
Status world_init(World *world, int *argc, char ***argv);
void world_fini(World *world);
/* All ranks learn the worst status and leave with it; the message of the lowest rank that has it
 * becomes every rank's fail_message (with "rank R: " before it, R its number in the job, where R >
 * 0). Collective. */
Status status_agree(const World *world, Status mine);
/* The least of all ranks' numbers. Collective. */
int world_least(const World *world, int mine);
/* Element by element the sum over all ranks, in place. Whole numbers, so that no order of adding is
 * seen in the bits. Two messages a round and log2(ranks) rounds, and no memory that grows with
 * ranks: where a gather would be summed, this. Collective; counts above 2^31 work. */
void world_add(const World *world, int64_t *data, int64_t count);
/* The same of floating-point numbers, each of which one rank has and the others leave zero: other
 * sums would have the bits of MPI's order. */
void world_merge(const World *world, double *data, int64_t count);
/* data of rank root to all. Collective; counts above 2^31 work. */
void world_bcast(const World *world, void *data, size_t bytes, int root);
/* Collective. */
void world_barrier(const World *world);
/* Rank 0's text, or NULL, to all: on rank 0 `mine` itself. Owner: the caller. Collective. */
char *world_bcast_text(const World *world, char *mine);
/* out[rank * bytes...] on every rank. Collective. */
void world_gather(const World *world, const void *mine, size_t bytes, void *out);
/* Every rank's part, bytes[r] of rank r, one behind the other in out on rank root, which is large
 * enough for them; out is untouched elsewhere. mine may not lie in out. Collective; counts above
 * 2^31 work. */
void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out);
/* The same in two halves: mine and out stay as they are until the end of wait. Several may be under
 * way, begun in the same order by all ranks, of which each is the root of one at most, and waits
 * for that one first. Owner: the caller. world is borrowed. */
typedef struct WorldCollect WorldCollect;
WorldCollect *world_collect_begin(const World *world, const void *mine, const size_t *bytes,
                                  int root, void *out);
/* Is this rank its root? */
bool world_collect_here(const WorldCollect *collect);
void world_collect_wait(WorldCollect **collect);

/* A range of memory. */
typedef struct WorldPart {
    void *at;
    size_t bytes;
} WorldPart;
/* Each rank sends every other rank r what to[r] is, and receives from[r]; own entries are passed
 * over. Fewer than 2^31 bytes each. Collective. */
void world_swap(const World *world, const WorldPart *to, const WorldPart *from);

/* The same in two halves, over and over: requests of one swap. What is sent and received may not be
 * touched in between. Swaps of a world are begun in the same order by all. */
typedef struct WorldSwap WorldSwap;
/* Owner: the caller; world is borrowed. sleeps: who waits leaves its core to others. */
WorldSwap *world_swap_new(const World *world, bool sleeps);
void world_swap_free(WorldSwap **swap);
/* Collective, both; nothing to do for a world of one rank. */
void world_swap_begin(WorldSwap *swap, const WorldPart *to, const WorldPart *from);
void world_swap_wait(WorldSwap *swap);

/* A swap in two halves in which only who sends knows to whom and how much: a rank sends nothing to
 * most, and no message says so (Hoefler, Siebert, Lumsdaine, "Scalable communication protocols for
 * dynamic sparse data exchange", PPoPP 2010, the one with a barrier that does not block). */
typedef struct WorldSparse WorldSparse;
/* As world_swap_new; the world gets one more communicator with the first swap. */
WorldSparse *world_sparse_new(const World *world, bool sleeps);
/* Collective. */
void world_sparse_free(WorldSparse **swap);
/* to[size]: fewer than 2^31 bytes each; own entry and empty ones are passed over. What is sent may
 * not be touched until it has been waited for. Messages are received by the wait alone. Collective,
 * both. */
void world_sparse_begin(WorldSparse *swap, const WorldPart *to);
/* What has come, from[size], no bytes from who sent none: the swap's until the next wait. */
const WorldPart *world_sparse_wait(WorldSparse *swap);

/* A short message, of fewer than 2^31 bytes, and from whom it comes: rank -1: anybody. Who waits
 * for one sleeps, up to a millisecond at a time. Not collective. */
void world_tell(const World *world, int rank, const void *data, size_t bytes);
/* The same, but it does not wait until the message is taken: data stays as it is until the end of
 * world_tell_wait, which does nothing where none was begun (zeros). */
typedef struct WorldTold {
    bool begun;
    MPI_Request request;
} WorldTold;
void world_tell_begin(WorldTold *told, const World *world, int rank, const void *data,
                      size_t bytes);
void world_tell_wait(WorldTold *told);
int world_hear(const World *world, int rank, void *data, size_t bytes);
/* One that world_hear does not hear, whatever it waits for. The next of these, anybody's: false
 * where none is here and it is not to wait; and with world_hear_all that, or else what world_hear
 * would. */
void world_tell_aside(const World *world, int rank, const void *data, size_t bytes);
bool world_take_aside(const World *world, void *data, size_t bytes, bool waits);
int world_hear_all(const World *world, int rank, void *data, size_t bytes, bool *aside);
/* Waits for one of rank's, or one aside: false where none has come while another rank's has been
 * waiting for so many seconds, in which this process ran. */
bool world_awaits(const World *world, int rank, double patience_s);

/* How long this process has slept in world_hear and in swaps that sleep. */
double world_slept_s(void);

/* Each of world's ranks as a rank of the job. Owner: the caller. Collective. */
int *world_job_ranks(const World *world);
/* The ranks that gave the same color, in the order of world, as a world of their own; of size 1 it
 * has no communicator and calls no MPI. Release with world_part_fini. All collective, on world and
 * on part. */
Status world_split(World *part, const World *world, int color);
/* Likewise the ranks of this rank's node. */
void world_node(World *node, const World *world);
void world_part_fini(World *part);

#endif
