/* Wraps NCCL's groups, sends and receives. The communicators are nonblocking, so a call may return
 * before it is complete. nccl_settle waits until a call is complete. Inside a group NCCL only
 * records calls: nccl_check_recorded checks their results and does not wait. Both functions end the
 * job if a call has failed. */
#include "nccl.h"

#include <sched.h>

static cudaStream_t raw_stream(const NcclComm *nccl_comm)
{
    return nccl_comm->backend->table->stream_handle(nccl_comm->stream);
}

void nccl_settle(const NcclComm *nccl_comm, ncclResult_t result, const char *call)
{
    while (result == ncclInProgress) {
        ncclResult_t polled = nccl.comm_async_error(nccl_comm->comm, &result);
        if (polled != ncclSuccess) result = polled;
        if (result == ncclInProgress) sched_yield();
    }
    if (result != ncclSuccess)
        nccl_failed(nccl_comm->watch, result, nccl.last_error(nccl_comm->comm), call);
}

void nccl_check_recorded(const NcclComm *nccl_comm, ncclResult_t result, const char *call)
{
    if (result != ncclInProgress) nccl_settle(nccl_comm, result, call);
}

void nccl_group_begin(const NcclComm *nccl_comm)
{
    nccl_check_recorded(nccl_comm, nccl.group_start(), "ncclGroupStart");
}

void nccl_group_end(const NcclComm *nccl_comm)
{
    nccl_settle(nccl_comm, nccl.group_end(), "ncclGroupEnd");
}

void nccl_send(const NcclComm *nccl_comm, const void *from, size_t bytes, int peer)
{
    if (bytes == 0) return;
    nccl_check_recorded(
        nccl_comm, nccl.send(from, bytes, ncclUint8, peer, nccl_comm->comm, raw_stream(nccl_comm)),
        "ncclSend");
}

void nccl_receive(const NcclComm *nccl_comm, void *to, size_t bytes, int peer)
{
    if (bytes == 0) return;
    nccl_check_recorded(
        nccl_comm, nccl.recv(to, bytes, ncclUint8, peer, nccl_comm->comm, raw_stream(nccl_comm)),
        "ncclRecv");
}
