/* Parameters as this rank stores them and as operations read them. With gathering (zero 3, if the
 * replicas share no memory), buckets are gathered before they are used. All replicas run the same
 * lists, so they gather the same buckets in the same order, even for micro-batches without
 * samples. */
#ifndef WEFT_PIPELINE_PARAM_GATHER_H
#define WEFT_PIPELINE_PARAM_GATHER_H

#include "slot_memory.h"

typedef struct ParamGather {
    const Context *context;
    /* this rank's arena of parameters. It is the Comm's, and borrowed, with zero 1 and 2, and with
     * zero 3 if replicas share memory; otherwise it is owned */
    float *params;
    /* parameters as operations read them: `params`, or the Comm's ring of parameters; borrowed */
    float *weights;
    /* [node]: true: updates write the copies in the node's cache (params_use_copies), so that it is
     * repacked only after other changes; owned; NULL: no node */
    bool *copied;
    /* The next fields are only used if plan->gathers. */
    Window window;
    /* number of each bucket's newest all-gather, as comm_allgather_begin returned it; owned */
    int64_t *number;
    /* number of the all-gather after which each node's weights were last repacked; owned */
    int64_t *repacked;
} ParamGather;

/* Collective on the grid; every rank returns the same Status. */
Status param_gather_init(ParamGather *gather, const Context *context);
void param_gather_fini(ParamGather *gather);
/* Returns the address of the part of a parameter that this rank stores, elements *first .. *first +
 * *count - 1: the whole parameter, or its shard if it is gathered. */
float *param_local(const ParamGather *gather, int param, int64_t *first, int64_t *count);
/* Call it after the parameters have changed. Fetches the other replicas' shards, or drops gathered
 * buckets, and repacks all weights that are not gathered. updated: true: an update has made the
 * change, and has written the copies of params_use_copies, which are left out. Collective on the
 * replicas. */
void params_changed(ParamGather *gather, const SlotMemory *memory, bool updated);
/* Does what executor_use_copies does. */
DType params_use_copies(ParamGather *gather, const SlotMemory *memory, void **copy);
/* Call it at the start of a schedule's list. */
void gather_rewind(ParamGather *gather, const Schedule *schedule);
/* Advances to the next parameter use of the list: begins to gather the buckets that are needed
 * soon, and waits until this use's buckets have been gathered. Collective on the replicas. */
void gather_next(ParamGather *gather);
/* Call it before an action that reads parameters. Repacks the node's weights if their bucket has
 * been gathered since the last repacking. */
void gather_repack(ParamGather *gather, const OpRun *run, int node);

#endif
