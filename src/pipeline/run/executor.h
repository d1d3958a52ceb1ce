/* The executor: its parts, each with a header of its own, and the functions that play a list of
 * tasks on them. */
#ifndef WEFT_PIPELINE_EXECUTOR_H
#define WEFT_PIPELINE_EXECUTOR_H

#include "boundary_links.h"
#include "captures.h"
#include "outputs.h"
#include "param_gather.h"
#include "probe.h"
#include "replica_sum.h"
#include "step_stats.h"
#include "tensor_group.h"

struct Executor {
    Context context;
    ParamGather params;
    GradSync gradients;
    SlotMemory memory;
    InputRing input;
    BoundaryLinks links;
    /* owned; NULL for one rank */
    TensorGroup *group;
    /* owned; NULL: no synced operation */
    ReplicaSum *replicas;
    StepReport report;
    Outputs outputs;
    Captures captures;
    /* owned: forwards only */
    Schedule *evaluation;
    /* owned: as plan->last_task */
    int *evaluation_last;
    /* borrowed: see executor_probe; NULL: nobody looks */
    StepFault *fault;
};

/* actions.c. A micro-batch's gradients go to its arena. */
void actions_bind(Executor *e, const ChunkRun *chunk, const Slot *slot, int micro);
/* Runs actions from .. to-1 of a pass. */
void actions_run(Executor *e, const ChunkRun *chunk, const Slot *slot, Pass pass, int micro,
                 int from, int to);
/* Does the action deal with other ranks: begin a sum, wait for one, exchange slices? */
bool action_asks_others(const Context *context, const ChunkRun *chunk, Pass pass, int micro,
                        int action);

#endif
