/* The thread that ends the job when a communicator has an asynchronous error, or when the process
 * of a rank of this node has ended. It calls MPI only for the abort that ends the job. */
#include "nccl.h"

#include <string.h>

/* interval between two checks */
static const double WATCH_EVERY_S = 0.2;

static void check_peers(const NcclWatch *watch)
{
    char doing[192];
    snprintf(doing, sizeof doing, "%s, joined to others by NCCL", watch->gpu);
    if (watch->has_node) shm_segments_abort_if_peer_ended(&watch->node, doing);
}

void nccl_failed(const NcclWatch *watch, ncclResult_t result, const char *words, const char *call)
{
    /* if a rank of this node is dead, this call ends the job with a message that names the rank */
    if (watch) check_peers(watch);
    const char *gpu = watch ? watch->gpu : "NCCL", *what = nccl.error_string(result);
    if (result == ncclInvalidArgument || result == ncclInvalidUsage)
        die("%s: %s: %s: %s", gpu, call, what, words);
    die_lost("%s: %s: %s: %s; most likely another rank has died or a link has failed, and its own "
             "message says more: started again, the job resumes from its last checkpoint",
             gpu, call, what, words);
}

static void check_comm(const NcclWatch *watch, ncclComm_t comm)
{
    ncclResult_t state = ncclSuccess;
    ncclResult_t polled = nccl.comm_async_error(comm, &state);
    if (polled != ncclSuccess) state = polled;
    if (state == ncclSuccess || state == ncclInProgress) return;
    char words[1024];
    snprintf(words, sizeof words, "%s", nccl.last_error(comm));
    /* makes NCCL's kernels on the GPU end */
    nccl.comm_abort(comm);
    nccl_failed(watch, state, words, "ncclCommGetAsyncError");
}

static void *watch_run(void *user)
{
    NcclWatch *watch = user;
    pthread_mutex_lock(&watch->lock);
    while (!watch->stop) {
        if (cond_wait_for(&watch->wake, &watch->lock, WATCH_EVERY_S)) continue;
        check_peers(watch);
        for (int i = 0; i < WATCH_COMMS; ++i)
            if (watch->comm[i]) check_comm(watch, watch->comm[i]);
    }
    pthread_mutex_unlock(&watch->lock);
    return NULL;
}

Status nccl_watch_start(NcclWatch *watch)
{
    pthread_mutex_init(&watch->lock, NULL);
    cond_init(&watch->wake);
    int error = thread_begin(&watch->thread, watch_run, watch);
    if (error)
        return fail(ERR_IO, "cannot start the thread that watches NCCL: %s", strerror(error));
    watch->running = true;
    return OK;
}

void nccl_watch_stop(NcclWatch *watch)
{
    if (!watch->running) return;
    pthread_mutex_lock(&watch->lock);
    watch->stop = true;
    pthread_cond_signal(&watch->wake);
    pthread_mutex_unlock(&watch->lock);
    pthread_join(watch->thread, NULL);
    watch->running = false;
}
