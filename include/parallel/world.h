/* The world of ranks, parts of it, and the collectives that set-up needs. */
#ifndef WEFT_PARALLEL_WORLD_H
#define WEFT_PARALLEL_WORLD_H

#include "base.h"

#include <mpi.h>

/* A set of ranks. If a process was started without a launcher (mpirun, srun), or is the only
 * process that the launcher started, it never initialises MPI: size is 1 and comm is
 * MPI_COMM_NULL. */
typedef struct World {
    int rank, size;
    /* node_size: number of ranks of this world on this process's node; node_rank: number of this
     * process among them */
    int node_rank, node_size;
    /* true: all ranks of this world are on one node */
    bool one_node;
    /* MPI_COMM_WORLD, or the communicator of a part of it; MPI_COMM_NULL: a single rank, without
     * MPI */
    MPI_Comm comm;
    /* communicator of this world's ranks on this node; owned; MPI_COMM_NULL if comm is */
    MPI_Comm node;
    /* NCCL communicator of the GPUs of this world's ranks, borrowed from a Grid; NULL: there is
     * none */
    struct NcclComm *nccl_comm;
} World;

/* Returns a world that contains only this process, whatever launched it. It needs no world_fini. */
World world_alone(void);
/* Returns true if the environment shows that a launcher started this process. Call it before
 * MPI_Init. *local_size: the number of ranks on this node by the launcher's variables, 1 if it is
 * unknown. */
bool world_launched(int *local_size);
/* world_init makes the world of all processes of the job. It initialises MPI unless this process is
 * the only one. world_fini ends MPI. Both are collective on all started processes. */
Status world_init(World *world, int *argc, char ***argv);
void world_fini(World *world);
/* Returns, on every rank, the worst status of all ranks. The message of the lowest rank with that
 * status becomes every rank's fail_message; its prefix "rank R: " is the number of that rank in the
 * job, and rank 0's message has no prefix. Collective. */
Status status_agree(const World *world, Status mine);
/* Returns the smallest of all ranks' numbers. Collective. */
int world_min(const World *world, int mine);
/* Sums data[0 .. count - 1] over all ranks, element by element, in place. The numbers are integers,
 * so the order of the additions does not change the bits. Calls MPI_Allreduce, whose memory does
 * not grow with the number of ranks, and whose time grows with the logarithm of this number. Use it
 * instead of summing the result of world_allgather. Collective. count may exceed 2^31. */
void world_allreduce(const World *world, int64_t *data, int64_t count);
/* Does what world_allreduce does, for floating-point numbers. Only one rank may pass a nonzero
 * number at an index, since the sum of several would depend on MPI's order of additions. */
void world_allreduce_disjoint(const World *world, double *data, int64_t count);
/* Broadcasts data from rank `root`. Collective. `bytes` may exceed 2^31. */
void world_bcast(const World *world, void *data, size_t bytes, int root);
/* Returns after all ranks have called it. Collective. */
void world_barrier(const World *world);
/* Broadcasts rank 0's text, which may be NULL. Returns `mine` on rank 0, and on other ranks a copy
 * that the caller owns. Collective. */
char *world_bcast_text(const World *world, char *mine);
/* Gathers the `bytes` bytes at `mine` of each rank r into out + r * bytes on every rank.
 * Collective. */
void world_allgather(const World *world, const void *mine, size_t bytes, void *out);
/* Gathers the parts of all ranks, one after the other, into `out` on rank `root`; other ranks do
 * not use `out`, which may be NULL there. bytes[r]: number of bytes of rank r's part; the root
 * needs all entries, another rank only its own. mine: this rank's part, not inside `out`.
 * Collective. The bytes may exceed 2^31. */
void world_collect(const World *world, const void *mine, const size_t *bytes, int root, void *out);
/* world_collect in two halves. `mine` and `out` must not be read or changed until
 * world_collect_wait returns. Several collects may be in flight, by three rules. All ranks begin
 * them in the same order. A rank is the root of only one of them. A root waits for its own collect
 * before it waits for the others. The caller owns the result; world is borrowed. */
typedef struct WorldCollect WorldCollect;
WorldCollect *world_collect_begin(const World *world, const void *mine, const size_t *bytes,
                                  int root, void *out);
/* Returns true if this rank is the root. */
bool world_collect_is_root(const WorldCollect *collect);
void world_collect_wait(WorldCollect **collect);

/* `bytes` bytes of memory at `at`. */
typedef struct MemoryRange {
    void *at;
    size_t bytes;
} MemoryRange;
/* Sends to[r] to every other rank r and receives from[r] from rank r; the entries of this rank
 * itself are ignored. Each part has fewer than 2^31 bytes. Collective. */
void world_alltoall(const World *world, const MemoryRange *to, const MemoryRange *from);

/* world_alltoall in two halves, which can be repeated. The memory that is sent or received must not
 * be touched between world_alltoall_begin and world_alltoall_wait. All ranks begin the exchanges of
 * a world in the same order. */
typedef struct WorldAlltoall WorldAlltoall;
/* Makes an exchange. The caller owns the result; world is borrowed. sleeps = true: while this rank
 * waits, it sleeps between polls and leaves its core to other threads. */
WorldAlltoall *world_alltoall_new(const World *world, bool sleeps);
void world_alltoall_free(WorldAlltoall **exchange);
/* world_alltoall_begin and world_alltoall_wait are collective. They do nothing in a world of one
 * rank. */
void world_alltoall_begin(WorldAlltoall *exchange, const MemoryRange *to, const MemoryRange *from);
void world_alltoall_wait(WorldAlltoall *exchange);

/* An exchange in two halves for sparse traffic: most ranks send nothing to most others. A receiver
 * does not know in advance which ranks send to it, nor how many bytes, and no extra message
 * announces it. It uses the protocol with a nonblocking barrier by Hoefler, Siebert and Lumsdaine,
 * "Scalable communication protocols for dynamic sparse data exchange", PPoPP 2010. */
typedef struct WorldSparse WorldSparse;
/* Makes a sparse exchange. The caller owns the result; world is borrowed. sleeps: as in
 * world_alltoall_new. The first exchange duplicates the world's communicator. */
WorldSparse *world_sparse_new(const World *world, bool sleeps);
/* Collective. */
void world_sparse_free(WorldSparse **exchange);
/* Begins to send to[r], fewer than 2^31 bytes, to each rank r; the entry of this rank and empty
 * entries are ignored. The memory that is sent must not be touched until world_sparse_wait returns.
 * Messages are received only inside world_sparse_wait. world_sparse_begin and world_sparse_wait are
 * collective. */
void world_sparse_begin(WorldSparse *exchange, const MemoryRange *to);
/* Returns the messages received, an array with an entry for each rank; a rank that sent nothing has
 * 0 bytes. The messages belong to the exchange and stay valid until its next world_sparse_wait. */
const MemoryRange *world_sparse_wait(WorldSparse *exchange);

/* Sends a message of fewer than 2^31 bytes to rank `rank`. Not collective. */
void world_send(const World *world, int rank, const void *data, size_t bytes);
/* world_send without waiting until the message has left: data must not change until world_send_wait
 * returns. world_send_wait does nothing if the WorldSend is all zero. */
typedef struct WorldSend {
    /* true: between world_send_begin and world_send_wait */
    bool begun;
    MPI_Request request;
} WorldSend;
void world_send_begin(WorldSend *send, const World *world, int rank, const void *data,
                      size_t bytes);
void world_send_wait(WorldSend *send);
/* Waits for a message of rank `rank`, or of any rank if `rank` is -1, and returns the sender.
 * bytes: size of the memory at `data`; a longer message ends the job. A rank that waits for a
 * message sleeps between polls, up to 0.6 ms at a time. Not collective. */
int world_receive(const World *world, int rank, void *data, size_t bytes);
/* Control messages have a separate tag, which world_receive does not receive. world_receive_control
 * receives the next control message of any rank. If none has arrived, it waits (waits = true) or
 * returns false (waits = false). */
void world_send_control(const World *world, int rank, const void *data, size_t bytes);
bool world_receive_control(const World *world, void *data, size_t bytes, bool waits);
/* Waits for a control message or a message that world_receive would receive, receives it and
 * returns its sender. If both have arrived, receives the control message. *control: true if it is a
 * control message. */
int world_receive_any(const World *world, int rank, void *data, size_t bytes, bool *control);
/* Waits for a message of rank `rank` or a control message, without receiving it. Returns true once
 * one of them has arrived. Returns false if for patience_s seconds neither has arrived, while a
 * message of another rank was waiting all the time. Time in which this process was suspended is not
 * counted. */
bool world_wait_for(const World *world, int rank, double patience_s);

/* Returns the seconds that this process has slept in waits for messages, in collectives of a world,
 * and in exchanges made with sleeps = true. */
double world_slept_s(void);

/* Returns the number in the job of each rank of world, int[world->size]. The caller owns it.
 * Collective. */
int *world_job_ranks(const World *world);
/* Makes a world of the ranks that pass the same `color`, in the order of world. A world of one rank
 * has no communicator and calls no MPI. Release with world_part_fini. world_split is collective on
 * world, world_part_fini on the new world. */
Status world_split(World *part, const World *world, int color);
/* Makes a world of the same processes in another order: this process gets number `rank`. Release
 * with world_part_fini. world_order is collective on world, world_part_fini on the new world. */
Status world_order(World *ordered, const World *world, int rank);
/* Makes a world of the ranks of this rank's node. Release with world_part_fini. Collective on
 * world. */
void world_node(World *node, const World *world);
void world_part_fini(World *part);

#endif
