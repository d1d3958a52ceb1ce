/* What a communicator's transport provides (comm.c chooses one), and parameters in each rank's own
 * memory, for the transports whose ranks have none in common. */
#ifndef WEFT_PARALLEL_COMM_TABLE_H
#define WEFT_PARALLEL_COMM_TABLE_H

#include "parallel.h"

struct CommTable {
    /* as comm_name has it */
    const char *name;
    /* Sets comm->arena and comm->impl. Collective. */
    Status (*open)(Comm *comm, Backend *backend, size_t arena_bytes);
    void (*close)(Comm *comm);
    void (*sum_begin)(Comm *comm, int64_t offset, int64_t count);
    /* NULL, as the five that follow: the transport cannot shard (comm_staged). Sets comm->params,
     * comm->params_shared. */
    Status (*params_open)(Comm *comm, size_t bytes);
    void (*reduce_begin)(Comm *comm, const Bounds *bounds);
    void (*gather_begin)(Comm *comm, const Bounds *bounds, int64_t shift);
    bool (*gather_wait)(Comm *comm, int64_t number);
    void (*push_begin)(Comm *comm, const CommPush *push);
    bool (*push_wait)(Comm *comm, int64_t number);
    /* true: nothing is in flight. NULL: all progresses by itself, and wait is there */
    bool (*progress)(Comm *comm);
    /* Until nothing is; where work is queued, the compute stream waits and not the host; where a
     * thread of its own moves messages, this one sleeps. NULL: comm_wait polls progress */
    void (*wait)(Comm *comm);
};

/* params_open, from the backend's memory. */
Status comm_params_own(Comm *comm, size_t bytes);
/* Releases them; nothing where there are none. */
void comm_params_release(Comm *comm);

#endif
