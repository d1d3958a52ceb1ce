/* The functions that a communicator's transport provides, and the allocation of parameters for
 * transports whose ranks do not share them. comm.c chooses the transport. */
#ifndef WEFT_PARALLEL_COMM_TABLE_H
#define WEFT_PARALLEL_COMM_TABLE_H

#include "parallel.h"

/* Whether a transport can shard sums and gather parameters (grid.zero). */
typedef enum CommShards {
    /* the table does not set the field, which is an error */
    SHARDS_UNSET,
    SHARDS_NEVER,
    SHARDS_ALWAYS,
} CommShards;

/* Functions of a transport. A function without a comment is described in parallel/comm.h, at the
 * function of comm.c that calls it. */
struct CommTable {
    /* name that comm_name returns */
    const char *name;
    /* true: this build lacks the transport: `open` fails, and all other functions are NULL */
    bool absent;
    /* Sets comm->arena, and comm->impl if the transport has a state. On error it releases
     * everything that it made, and `close` is not called. Collective. */
    Status (*open)(Comm *comm, Backend *backend, size_t arena_bytes);
    void (*close)(Comm *comm);
    void (*sum_begin)(Comm *comm, int64_t offset, int64_t count);
    CommShards shards;
    /* Sets comm->params, and comm->params_shared if it is true. Transports that cannot shard
     * (SHARDS_NEVER) have NULL for params_open, reduce_begin, gather_begin and gather_poll. */
    Status (*params_open)(Comm *comm, size_t bytes);
    void (*reduce_begin)(Comm *comm, const Bounds *bounds);
    void (*gather_begin)(Comm *comm, const Bounds *bounds, int64_t shift);
    bool (*gather_poll)(Comm *comm, int64_t number);
    void (*push_begin)(Comm *comm, const CommPush *push);
    bool (*push_poll)(Comm *comm, int64_t number);
    /* Moves operations; returns true if nothing is in flight. The member is NULL if operations
     * progress without calls; `wait` is then not NULL. */
    bool (*progress)(Comm *comm);
    /* Waits until nothing is in flight. If the transport queues operations on a stream, the compute
     * stream waits instead of the host. If a progress thread moves messages, the calling thread
     * sleeps while it waits. The member is NULL if nothing is ever in flight. */
    void (*wait)(Comm *comm);
};

/* Returns ERR_BUG, naming the member, if the table of a transport lacks something. */
Status comm_table_check(const CommTable *table);
/* Returns whether the push has the last leaves of its tree. */
static inline bool push_is_last(const Comm *comm, const CommPush *push)
{
    return push->first + comm->size == push->leaves;
}

/* Implements params_open with memory of the backend, for this rank alone. */
Status comm_params_alloc(Comm *comm, size_t bytes);
/* Releases comm->params, which comm_params_alloc allocated; does nothing if they are NULL. */
void comm_params_release(Comm *comm);

#endif
