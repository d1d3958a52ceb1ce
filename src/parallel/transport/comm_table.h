/* The functions that a communicator's transport provides (comm.c chooses one), and parameters that
 * each rank allocates, for the transports that do not share them. */
#ifndef WEFT_PARALLEL_COMM_TABLE_H
#define WEFT_PARALLEL_COMM_TABLE_H

#include "parallel.h"

/* Functions of a transport. A function without a comment does what comm.h says of the comm_
 * function that calls it. */
struct CommTable {
    /* returned by comm_name */
    const char *name;
    /* Sets comm->arena, and comm->impl if the transport has a state. On error it releases what it
     * made, and close is not called. Collective. */
    Status (*open)(Comm *comm, Backend *backend, size_t arena_bytes);
    void (*close)(Comm *comm);
    void (*sum_begin)(Comm *comm, int64_t offset, int64_t count);
    /* Sets comm->params and comm->params_shared. params_open, reduce_begin, gather_begin and
     * gather_wait are NULL in transports that cannot shard (comm_staged). */
    Status (*params_open)(Comm *comm, size_t bytes);
    void (*reduce_begin)(Comm *comm, const Bounds *bounds);
    void (*gather_begin)(Comm *comm, const Bounds *bounds, int64_t shift);
    bool (*gather_wait)(Comm *comm, int64_t number);
    void (*push_begin)(Comm *comm, const CommPush *push);
    bool (*push_wait)(Comm *comm, int64_t number);
    /* Returns true if nothing is in flight. NULL: operations progress without calls, and wait is
     * set. */
    bool (*progress)(Comm *comm);
    /* Waits until nothing is in flight. If operations are queued on a stream, the compute stream
     * waits instead of the host; if a progress thread moves messages, the calling thread sleeps.
     * NULL: nothing is ever in flight. */
    void (*wait)(Comm *comm);
};

/* True if the push has the last leaves of its tree. */
static inline bool push_is_last(const Comm *comm, const CommPush *push)
{
    return push->first + comm->size == push->leaves;
}

/* A params_open that allocates from the backend's memory. */
Status comm_params_alloc(Comm *comm, size_t bytes);
/* Releases comm->params, which comm_params_alloc allocated; does nothing if they are NULL. */
void comm_params_release(Comm *comm);

#endif
