/* The world of ranks, parts of it, and the collectives that set-up needs. */
#ifndef WEFT_PARALLEL_WORLD_H
#define WEFT_PARALLEL_WORLD_H

#include "base.h"

#include <mpi.h>

/* A set of ranks. A process that was started without a launcher (mpirun, srun) never initialises
 * MPI: size is 1 and comm is MPI_COMM_NULL. */
typedef struct World {
    int rank, size;
    /* this process's number among the ranks of this world on its node, and their number */
    int node_rank, node_size;
    /* true: all ranks of this world are on one node */
    bool one_node;
    /* MPI_COMM_WORLD, or the communicator of a part of it; MPI_COMM_NULL: a single rank, without
     * MPI */
    MPI_Comm comm;
    /* communicator of this world's ranks on this node; owned; MPI_COMM_NULL without MPI */
    MPI_Comm node;
    /* NCCL communicator that joins these ranks' GPUs, borrowed from a Grid; NULL: none */
    struct Gpus *gpus;
} World;

/* A world of this process alone, whatever launched it; needs no world_fini. */
World world_alone(void);
/* True if the environment shows that a launcher started this process. Call it before MPI_Init.
 * *local_size: the launcher's number of ranks on this node, 1 if unknown. */
bool world_launched(int *local_size);
/* world_init and world_fini are collective on all started processes. */
Status world_init(World *world, int *argc, char ***argv);
void world_fini(World *world);
/* Returns the worst status of all ranks on every rank; the message of the lowest rank with that
 * status becomes every rank's fail_message. The prefix "rank R: " names that rank by its number in
 * the job; rank 0's message has no prefix. Collective. */
Status status_agree(const World *world, Status mine);
/* Minimum of all ranks' numbers. Collective. */
int world_least(const World *world, int mine);
/* Sums data over all ranks, element by element, in place. The order of additions cannot change the
 * bits, because the numbers are integers. Needs log2(ranks) rounds of two messages and memory that
 * does not grow with the number of ranks; use it instead of summing the result of world_gather.
 * Collective; counts above 2^31 work. */
void world_add(const World *world, int64_t *data, int64_t count);
/* world_add for floating-point numbers; each number may be nonzero on one rank only, because other
 * sums would depend on MPI's order of additions. */
void world_merge(const World *world, double *data, int64_t count);
/* Broadcasts data from rank root. Collective; counts above 2^31 work. */
void world_bcast(const World *world, void *data, size_t bytes, int root);
/* Collective. */
void world_barrier(const World *world);
/* Broadcasts rank 0's text, which may be NULL. Returns `mine` on rank 0, and on other ranks a copy
 * that the caller owns. Collective. */
char *world_bcast_text(const World *world, char *mine);
/* Gathers `bytes` bytes of each rank into out[rank * bytes...] on every rank. Collective. */
void world_gather(const World *world, const void *mine, size_t bytes, void *out);
/* Gathers the parts of all ranks, one after the other, into `out` on rank root; on other ranks
 * `out` does not change. bytes[r]: bytes of rank r's part. mine must not be inside `out`.
 * Collective; counts above 2^31 work. */
void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out);
/* world_collect in two halves; mine and out must not be touched until world_collect_wait returns.
 * Several collects may be in flight: all ranks begin them in the same order, and each rank is the
 * root of at most one collect, and waits for this collect before the others. The caller owns the
 * result; world is borrowed. */
typedef struct WorldCollect WorldCollect;
WorldCollect *world_collect_begin(const World *world, const void *mine, const size_t *bytes,
                                  int root, void *out);
/* True if this rank is the root. */
bool world_collect_here(const WorldCollect *collect);
void world_collect_wait(WorldCollect **collect);

/* A range of memory. */
typedef struct WorldPart {
    void *at;
    size_t bytes;
} WorldPart;
/* Each rank sends to[r] to every other rank r and receives from[r] from it; a rank's entry for
 * itself is ignored. Each part has fewer than 2^31 bytes. Collective. */
void world_swap(const World *world, const WorldPart *to, const WorldPart *from);

/* world_swap in two halves, which can be repeated. The memory sent and received must not be
 * touched between begin and wait. All ranks begin the swaps of a world in the same order. */
typedef struct WorldSwap WorldSwap;
/* The caller owns the result; world is borrowed. sleeps = true: while it waits, the rank sleeps
 * between polls and leaves its core to other threads. */
WorldSwap *world_swap_new(const World *world, bool sleeps);
void world_swap_free(WorldSwap **swap);
/* Both are collective. They do nothing in a world of one rank. */
void world_swap_begin(WorldSwap *swap, const WorldPart *to, const WorldPart *from);
void world_swap_wait(WorldSwap *swap);

/* A swap in two halves for sparse traffic: most ranks send nothing to most others, a receiver does
 * not know in advance who sends to it or how many bytes, and no message announces it (Hoefler,
 * Siebert, Lumsdaine, "Scalable communication protocols for dynamic sparse data exchange", PPoPP
 * 2010, the protocol with a nonblocking barrier). */
typedef struct WorldSparse WorldSparse;
/* Arguments as in world_swap_new. The first swap duplicates the world's communicator. */
WorldSparse *world_sparse_new(const World *world, bool sleeps);
/* Collective. */
void world_sparse_free(WorldSparse **swap);
/* Begins to send to[size], fewer than 2^31 bytes each; this rank's entry and empty entries are
 * ignored. The memory sent must not be touched until world_sparse_wait returns; messages are
 * received only inside world_sparse_wait. world_sparse_begin and world_sparse_wait are
 * collective. */
void world_sparse_begin(WorldSparse *swap, const WorldPart *to);
/* Returns the messages received, [size], with 0 bytes for a rank that sent nothing. The messages
 * belong to the swap and stay valid until its next wait. */
const WorldPart *world_sparse_wait(WorldSparse *swap);

/* Send and receive messages of fewer than 2^31 bytes. world_receive waits for a message of `rank`,
 * -1 for any rank, and returns the sender; `bytes` is the room of data, and a longer message ends
 * the job. A rank that waits for a message sleeps between polls, up to half a millisecond at a
 * time. Not collective. */
void world_send(const World *world, int rank, const void *data, size_t bytes);
/* world_send without waiting until the message has left: data must stay unchanged until
 * world_send_wait returns. world_send_wait does nothing for a zeroed WorldSend. */
typedef struct WorldSend {
    /* true: between world_send_begin and world_send_wait */
    bool begun;
    MPI_Request request;
} WorldSend;
void world_send_begin(WorldSend *send, const World *world, int rank, const void *data,
                      size_t bytes);
void world_send_wait(WorldSend *send);
int world_receive(const World *world, int rank, void *data, size_t bytes);
/* Control messages have a separate tag, which world_receive does not receive. world_receive_control
 * receives the next control message from any rank. If none has arrived, it waits (waits = true) or
 * returns false (waits = false). world_receive_any waits until there is a control message or a
 * message that world_receive would receive, receives it, the control message first, and returns its
 * sender; *control is set to whether it is a control message. */
void world_send_control(const World *world, int rank, const void *data, size_t bytes);
bool world_receive_control(const World *world, void *data, size_t bytes, bool waits);
int world_receive_any(const World *world, int rank, void *data, size_t bytes, bool *control);
/* Waits for a message of `rank` or a control message. Returns false if neither arrives while a
 * message of another rank has been waiting for patience_s seconds. Time in which this process was
 * suspended is not counted. */
bool world_wait_for(const World *world, int rank, double patience_s);

/* Seconds that this process has slept in waits for messages, in collectives of a world, and in
 * swaps made with `sleeps`. */
double world_slept_s(void);

/* Returns the number in the job of each of world's ranks, int[world->size]. The caller owns it.
 * Collective. */
int *world_job_ranks(const World *world);
/* Makes a world of the ranks that pass the same color, in the order of world. A part of one rank
 * has no communicator and calls no MPI. Release with world_part_fini. Both functions are
 * collective: world_split on world, world_part_fini on the part. */
Status world_split(World *part, const World *world, int color);
/* Makes a world of the same processes in another order: this process gets number `rank`. Release
 * with world_part_fini. Both functions are collective: world_order on world, world_part_fini on the
 * new world. */
Status world_order(World *ordered, const World *world, int rank);
/* Makes a world of the ranks of this rank's node. Release with world_part_fini. Collective on
 * world. */
void world_node(World *node, const World *world);
void world_part_fini(World *part);

#endif
