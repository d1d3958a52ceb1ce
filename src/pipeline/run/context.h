/* The plan, the ranks and the device of an executor, which all of its parts use. All fields are
 * borrowed. Only set-up changes them. */
#ifndef WEFT_PIPELINE_CONTEXT_H
#define WEFT_PIPELINE_CONTEXT_H

#include "progress.h"

#include "../plan/plan.h"

typedef struct Context {
    const Plan *plan;
    const Grid *grid;
    Backend *backend;
    /* the backend's compute stream */
    Stream *stream;
    /* connects the ranks of grid->dp_world */
    Comm *comm;
    ExecutorOptions options;
    /* communication that makes progress while this rank waits */
    Progress progress;
} Context;

/* Allocates an arena in the backend's memory; NULL for 0 bytes. Release with context_release. */
static inline void *context_alloc(const Context *c, size_t bytes)
{
    return bytes ? c->backend->table->alloc(c->backend, bytes) : NULL;
}

static inline void context_release(const Context *c, void *arena, size_t bytes)
{
    if (arena) c->backend->table->release(c->backend, arena, bytes);
}

static inline void context_copy(const Context *c, void *to, const void *from, size_t bytes)
{
    c->backend->table->copy(c->stream, to, from, bytes);
}

/* Returns true if the chunk contains the loss. */
static inline bool context_has_loss(const Context *c, const ChunkPlan *chunk)
{
    return c->plan->graph->loss_node >= chunk->first && c->plan->graph->loss_node < chunk->end;
}

#endif
