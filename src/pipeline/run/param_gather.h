/* Parameters as this rank has them: its arena, what operations read, and, where zero shards them
 * (zero 3 without common memory), the gathering of buckets ahead of their use. All replicas run the
 * same lists, so they begin to gather the same buckets in the same order, whether their
 * micro-batches have samples or not. */
#ifndef WEFT_PIPELINE_PARAM_GATHER_H
#define WEFT_PIPELINE_PARAM_GATHER_H

#include "slot_memory.h"

typedef struct ParamGather {
    const Context *context;
    /* the arena: owned, or the Comm's (zero 1 and 2, and common memory) */
    float *params;
    /* borrowed: what operations read: params, or the Comm's ring of parameters */
    float *weights;
    /* where plan->gathers: */
    Window window;
    /* owned, one a bucket: of its last gathering */
    int64_t *number;
    /* owned, one a node: the gathering that its other forms of weights are of */
    int64_t *fresh;
} ParamGather;

/* Collective on the grid; every rank returns the same Status. */
Status param_gather_init(ParamGather *gather, const Context *context);
void param_gather_fini(ParamGather *gather);
/* What this rank has of a parameter: elements *first .. *first + *count of it. */
float *param_local(const ParamGather *gather, int param, int64_t *first, int64_t *count);
/* The parameters have changed: brings the other replicas' shards, or forgets what was gathered, and
 * makes the other forms of weights again. Collective on the replicas. */
void params_changed(ParamGather *gather, const SlotMemory *memory);
/* The schedule's list begins. */
void gather_start(ParamGather *gather, const Schedule *schedule);
/* The next use of the list: its buckets are here, and what comes soon is on its way. Collective on
 * the replicas. */
void gather_next(ParamGather *gather);
/* Before an action that reads parameters: makes the other forms of its node's weights, where they
 * are older than these. */
void gather_repack(ParamGather *gather, const OpRun *run, int node);

#endif
