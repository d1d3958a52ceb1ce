/* The functions of NCCL, the communicators that join GPUs, and the thread that watches them. The
 * library is loaded when the first communicator is made, or when comm_versions is called: linking
 * it would slow down the start of runs that never use it. */
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
/* Loads the library and sets `nccl`, unless it is loaded already. Errors as from library_bind. */
Status nccl_load(void);

/* A thread that checks five times per second whether a communicator has failed, and whether the
 * process of a rank of this node has ended. In both cases it ends the job. Over NVLink NCCL does
 * not notice a dead process; without this thread, the host would wait forever for a stream. */
enum { WATCH_COMMS = 4 };
typedef struct NcclWatch {
    /* communicators, in the order of Grid.nccl_comm; borrowed; NULL: the grid has no such
     * communicator */
    ncclComm_t comm[WATCH_COMMS];
    /* description of this rank's GPU, for messages */
    char gpu[128];
    /* shared memory by which the ranks of this node see that a rank has ended; set only if the node
     * has several ranks; owned */
    ShmSegments node;
    /* true: `node` is set */
    bool has_node;
    pthread_t thread;
    /* guards `stop`; the thread holds it except while it waits */
    pthread_mutex_t lock;
    /* signalled when `stop` has been set */
    pthread_cond_t wake;
    /* true: the thread has been started and not yet joined */
    bool running;
    /* true: the thread must end */
    bool stop;
} NcclWatch;
/* Starts the thread. The caller has set watch->comm, watch->gpu and watch->has_node, and
 * watch->node if has_node is true. ERR_IO if the thread cannot be started. Not collective. */
Status nccl_watch_start(NcclWatch *watch);
void nccl_watch_stop(NcclWatch *watch);
/* Ends the job. The message names a dead rank of this node or, if there is none, this rank's GPU
 * and the failed call. result: the error; words: NCCL's last error message; call: name of the
 * failed function. watch may be NULL; then no rank and no GPU is named. */
_Noreturn void nccl_failed(const NcclWatch *watch, ncclResult_t result, const char *words,
                           const char *call);

/* This rank's handle of a nonblocking communicator that joins the GPUs of all ranks of a world. The
 * work of the communicator is queued on one stream. For a tensor-parallel group this is the compute
 * stream, because the next layer needs the results at once; otherwise it is a separate stream. */
typedef struct NcclComm {
    /* the communicator; owned */
    ncclComm_t comm;
    /* backend of this rank's GPU; borrowed */
    Backend *backend;
    /* stream on which the communicator's work is queued; borrowed from `separate` or `backend` */
    Stream *stream;
    /* the stream if it is not the compute stream, else NULL; owned */
    Stream *separate;
    /* true: sums may be added in any order; false: in the order of the tree */
    bool any_order;
    /* the watch thread, which all communicators of a Grid share; owned by grid->nccl_comm[0], the
     * communicator of all ranks; NULL before it exists, and while the communicators are released */
    NcclWatch *watch;
} NcclComm;
/* Waits until a call of NCCL that returned `result` is complete, and ends the job if it has failed.
 * call: name of the called function, for messages. A call on a communicator must be complete before
 * the next call begins. */
void nccl_settle(const NcclComm *nccl_comm, ncclResult_t result, const char *call);
/* Ends the job if a call inside a group has failed. NCCL only records such a call, so this function
 * does not wait for it. result, call: as for nccl_settle. */
void nccl_check_recorded(const NcclComm *nccl_comm, ncclResult_t result, const char *call);
void nccl_group_begin(const NcclComm *nccl_comm);
void nccl_group_end(const NcclComm *nccl_comm);
/* nccl_send sends `bytes` bytes from GPU memory to rank `peer`; nccl_receive receives `bytes` bytes
 * from rank `peer` into GPU memory. Call both between nccl_group_begin and nccl_group_end. They do
 * nothing if `bytes` is 0. */
void nccl_send(const NcclComm *nccl_comm, const void *from, size_t bytes, int peer);
void nccl_receive(const NcclComm *nccl_comm, void *to, size_t bytes, int peer);

#endif
