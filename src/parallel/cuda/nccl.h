/* NCCL, bound when the first communicator opens (linking it would slow down the start of runs that never use it), and
 * what watches a communicator for errors. */
#ifndef WEFT_PARALLEL_NCCL_H
#define WEFT_PARALLEL_NCCL_H

#include "base.h"

#include <nccl.h>
#include <pthread.h>

typedef struct Nccl {
    __typeof__(ncclGetUniqueId) *get_unique_id;
    __typeof__(ncclCommInitRankConfig) *comm_init;
    __typeof__(ncclCommGetAsyncError) *comm_async_error;
    __typeof__(ncclCommFinalize) *comm_finalize;
    __typeof__(ncclCommDestroy) *comm_destroy;
    __typeof__(ncclCommAbort) *comm_abort;
    __typeof__(ncclGroupStart) *group_start;
    __typeof__(ncclGroupEnd) *group_end;
    __typeof__(ncclSend) *send;
    __typeof__(ncclRecv) *recv;
    __typeof__(ncclGetErrorString) *error_string;
    __typeof__(ncclGetLastError) *last_error;
    __typeof__(ncclGetVersion) *get_version;
} Nccl;
extern Nccl nccl;
Status nccl_load(void);

/* A thread that asks the communicator for asynchronous errors a few times a second: the host may be waiting for a stream
 * that will never end because a peer is gone. An error aborts the communicator and is die(). */
typedef struct NcclWatch {
    ncclComm_t comm; /* borrowed */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool running, stop;
} NcclWatch;
Status nccl_watch_start(NcclWatch *watch, ncclComm_t comm);
void nccl_watch_stop(NcclWatch *watch);

#endif
