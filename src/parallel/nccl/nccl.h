/* NCCL, the GPUs that it joins, and the thread that watches them. The library is bound when the
 * first communicator opens, because linking it would slow down the start of runs that never use
 * it. */
#ifndef WEFT_PARALLEL_NCCL_H
#define WEFT_PARALLEL_NCCL_H

#include "../shm/shm_segments.h"

#include <nccl.h>
#include <pthread.h>

typedef struct Nccl {
    __typeof__(ncclGetUniqueId) *get_unique_id;
    __typeof__(ncclCommInitRankConfig) *comm_init;
    __typeof__(ncclCommSplit) *comm_split;
    __typeof__(ncclCommGetAsyncError) *comm_async_error;
    __typeof__(ncclCommFinalize) *comm_finalize;
    __typeof__(ncclCommDestroy) *comm_destroy;
    __typeof__(ncclCommAbort) *comm_abort;
    __typeof__(ncclGroupStart) *group_start;
    __typeof__(ncclGroupEnd) *group_end;
    __typeof__(ncclSend) *send;
    __typeof__(ncclRecv) *recv;
    __typeof__(ncclAllReduce) *all_reduce;
    __typeof__(ncclGetErrorString) *error_string;
    __typeof__(ncclGetLastError) *last_error;
    __typeof__(ncclGetVersion) *get_version;
} Nccl;
extern Nccl nccl;
Status nccl_load(void);

/* A thread that checks a few times per second whether the communicators have failed, and whether
 * the processes of this node's ranks live. If not, it ends the job. Over NVLink NCCL does not
 * notice a dead process, and the host would wait for a stream that never ends. */
enum { WATCH_COMMS = 4 };
typedef struct NcclWatch {
    /* borrowed; NULL: none */
    ncclComm_t comm[WATCH_COMMS];
    /* description of this rank's GPU, for messages */
    char gpu[128];
    /* segment of this node's ranks, if there are several; owned */
    ShmSegments node;
    /* node is set */
    bool has_node;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop;
} NcclWatch;
/* Starts the thread; comm, gpu and has_node (then also node) are set. Not collective. */
Status nccl_watch_start(NcclWatch *watch);
void nccl_watch_stop(NcclWatch *watch);
/* Ends the job with a message that names this GPU, and the dead rank if there is one on this node.
 * watch may be NULL. */
_Noreturn void nccl_failed(const NcclWatch *watch, ncclResult_t result, const char *words,
                           const char *call);

/* The ranks of a world, joined by a nonblocking communicator. Its work is queued on one stream: a
 * separate one or, where results are needed at once, the compute stream. */
typedef struct Gpus {
    ncclComm_t comm;
    /* borrowed */
    Backend *backend;
    /* stream in use */
    Stream *stream;
    /* the same stream if it is not the compute stream, else NULL; owned */
    Stream *separate;
    /* true: sums need not follow the tree */
    bool any_order;
    /* shared by all Gpus of a Grid, and owned by grid->gpus[0], which joins all ranks; NULL before
     * it is made */
    NcclWatch *watch;
} Gpus;
/* Waits until a call is complete, and ends the job if it failed. Calls on a communicator must be
 * completed one after the other. */
void nccl_settle(const Gpus *gpus, ncclResult_t result, const char *call);
/* Checks the result of a call inside a group, which NCCL only records. */
void nccl_noted(const Gpus *gpus, ncclResult_t result, const char *call);
void nccl_group_begin(const Gpus *gpus);
void nccl_group_end(const Gpus *gpus);
/* Between nccl_group_begin and nccl_group_end. With 0 bytes they do nothing. */
void nccl_send(const Gpus *gpus, const void *from, size_t bytes, int peer);
void nccl_receive(const Gpus *gpus, void *to, size_t bytes, int peer);

#endif
