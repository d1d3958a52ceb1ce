/* Wraps NCCL's groups, sends and receives, which have a nonblocking communicator. nccl_settle waits
 * until a call is complete. Inside a group NCCL only records calls: nccl_check_recorded checks
 * their results and does not wait. Both functions end the job if a call has failed. */
#include "nccl.h"

#include <sched.h>

static cudaStream_t raw_stream(const Gpus *gpus)
{
    return gpus->backend->table->stream_handle(gpus->stream);
}

void nccl_settle(const Gpus *gpus, ncclResult_t result, const char *call)
{
    while (result == ncclInProgress) {
        ncclResult_t polled = nccl.comm_async_error(gpus->comm, &result);
        if (polled != ncclSuccess) result = polled;
        if (result == ncclInProgress) sched_yield();
    }
    if (result != ncclSuccess) nccl_failed(gpus->watch, result, nccl.last_error(gpus->comm), call);
}

void nccl_check_recorded(const Gpus *gpus, ncclResult_t result, const char *call)
{
    if (result != ncclInProgress) nccl_settle(gpus, result, call);
}

void nccl_group_begin(const Gpus *gpus)
{
    nccl_check_recorded(gpus, nccl.group_start(), "ncclGroupStart");
}

void nccl_group_end(const Gpus *gpus)
{
    nccl_settle(gpus, nccl.group_end(), "ncclGroupEnd");
}

void nccl_send(const Gpus *gpus, const void *from, size_t bytes, int peer)
{
    if (bytes == 0) return;
    nccl_check_recorded(gpus, nccl.send(from, bytes, ncclUint8, peer, gpus->comm, raw_stream(gpus)),
                        "ncclSend");
}

void nccl_receive(const Gpus *gpus, void *to, size_t bytes, int peer)
{
    if (bytes == 0) return;
    nccl_check_recorded(gpus, nccl.recv(to, bytes, ncclUint8, peer, gpus->comm, raw_stream(gpus)),
                        "ncclRecv");
}
