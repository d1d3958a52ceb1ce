/* NCCL, the GPUs that it joins, and the thread that watches them. The library is loaded when the
 * first communicator is made or comm_versions is called: linking it would slow down the start of
 * runs that never use it. */
#ifndef WEFT_PARALLEL_NCCL_H
#define WEFT_PARALLEL_NCCL_H

#include "../shm/shm_segments.h"

#include <nccl.h>
#include <pthread.h>

/* The functions of NCCL that weft uses; set by nccl_load. */
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
/* Loads the library and sets nccl; does nothing if it is loaded. Errors as from library_bind. */
Status nccl_load(void);

/* A thread that checks a few times per second whether the communicators have failed, and whether a
 * process of this node's ranks has ended. In both cases it ends the job. Over NVLink NCCL does not
 * notice a dead process: without the thread the host would wait for ever for a stream. */
enum { WATCH_COMMS = 4 };
typedef struct NcclWatch {
    /* communicators in the order of Grid.gpus; borrowed; NULL: none */
    ncclComm_t comm[WATCH_COMMS];
    /* description of this rank's GPU, for messages */
    char gpu[128];
    /* segments by which ranks of this node see each other's end; set if the node has several ranks;
     * owned */
    ShmSegments node;
    /* true: node is set */
    bool has_node;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop;
} NcclWatch;
/* Starts the thread. The caller has set comm, gpu and has_node, and node if has_node is true. Not
 * collective. */
Status nccl_watch_start(NcclWatch *watch);
void nccl_watch_stop(NcclWatch *watch);
/* Ends the job with a message that names a dead rank of this node, or else this rank's GPU and the
 * failed call. words: NCCL's description of the error. watch may be NULL. */
_Noreturn void nccl_failed(const NcclWatch *watch, ncclResult_t result, const char *words,
                           const char *call);

/* The ranks of a world, joined by a nonblocking communicator. Its work is queued on one stream: the
 * compute stream for tensor-parallel groups, whose results the next layer needs at once, and a
 * separate stream otherwise. */
typedef struct Gpus {
    /* owned */
    ncclComm_t comm;
    /* borrowed */
    Backend *backend;
    /* stream in use */
    Stream *stream;
    /* the same stream if it is not the compute stream, else NULL; owned */
    Stream *separate;
    /* true: sums may be added in any order; false: in the order of the tree */
    bool any_order;
    /* shared by all Gpus of a Grid, and owned by grid->gpus[0], which joins all ranks; NULL before
     * it is made and while the Grid's Gpus are released */
    NcclWatch *watch;
} Gpus;
/* Waits until the call that returned `result` is complete, and ends the job if it failed. call: its
 * name, for messages. A call on a communicator must be complete before the next call begins. */
void nccl_settle(const Gpus *gpus, ncclResult_t result, const char *call);
/* Checks the result of a call inside a group, which NCCL only records. */
void nccl_noted(const Gpus *gpus, ncclResult_t result, const char *call);
void nccl_group_begin(const Gpus *gpus);
void nccl_group_end(const Gpus *gpus);
/* Call nccl_send and nccl_receive between nccl_group_begin and nccl_group_end. They do nothing if
 * bytes is 0. */
void nccl_send(const Gpus *gpus, const void *from, size_t bytes, int peer);
void nccl_receive(const Gpus *gpus, void *to, size_t bytes, int peer);

#endif
