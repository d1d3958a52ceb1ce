/* NCCL, bound when the first communicator opens (linking it would slow down the start of runs that
 * never use it); the GPUs that it joins, and what watches them. */
#ifndef WEFT_PARALLEL_NCCL_H
#define WEFT_PARALLEL_NCCL_H

#include "../shm/shm_segment.h"

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

/* A thread that looks a few times a second whether the communicators have failed, and whether the
 * processes of this node's ranks live: over NVLink NCCL does not notice that they do not, and the
 * host may wait for a stream that will never end. Either ends the job. */
enum { WATCH_COMMS = 4 };
typedef struct NcclWatch {
    /* borrowed; NULL: none */
    ncclComm_t comm[WATCH_COMMS];
    /* this rank's, for messages */
    char gpu[128];
    /* owned: this node's ranks, if there are several */
    ShmSegment node;
    bool has_node;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop;
} NcclWatch;
/* All but watch->node is set. Not collective. */
Status nccl_watch_start(NcclWatch *watch);
void nccl_watch_stop(NcclWatch *watch);
/* Ends the job: names this GPU, and the dead rank if there is one on this node. watch may be
 * NULL. */
_Noreturn void nccl_failed(const NcclWatch *watch, ncclResult_t result, const char *words,
                           const char *call);

/* The ranks of a world, joined by a communicator that does not block. What goes over it is queued
 * on its one stream: one of its own, or, where what comes is waited for at once, the compute
 * stream. */
typedef struct Gpus {
    ncclComm_t comm;
    /* borrowed */
    Backend *backend;
    /* own: the same, owned, or NULL */
    Stream *stream, *own;
    /* sums need not be the tree's */
    bool any_order;
    /* of all ranks' Gpus, which own it; NULL before it is there */
    NcclWatch *watch;
} Gpus;
/* Inside a step: anything but success is die(). A call may still be in progress; it must be over
 * before the next one. */
void nccl_settle(const Gpus *gpus, ncclResult_t result, const char *call);
/* In a group a call is only noted down. */
void nccl_noted(const Gpus *gpus, ncclResult_t result, const char *call);
void nccl_group_begin(const Gpus *gpus);
void nccl_group_end(const Gpus *gpus);
/* bytes may be 0: nothing. Between group_begin and group_end. */
void nccl_send(const Gpus *gpus, const void *from, size_t bytes, int peer);
void nccl_receive(const Gpus *gpus, void *to, size_t bytes, int peer);

#endif
