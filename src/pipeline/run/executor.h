/* The executor: its parts, each with its own header, and the functions that run a list of tasks on
 * them. */
#ifndef WEFT_PIPELINE_EXECUTOR_H
#define WEFT_PIPELINE_EXECUTOR_H

#include "boundary_links.h"
#include "captures.h"
#include "outputs.h"
#include "param_gather.h"
#include "probe.h"
#include "replica_sum.h"
#include "step_report.h"
#include "tensor_group.h"

struct Executor {
    Context context;
    ParamGather params;
    GradSync gradients;
    SlotMemory memory;
    InputRing input;
    BoundaryLinks links;
    /* NULL if the tensor-parallel group has one rank; owned */
    TensorGroup *group;
    /* NULL if there is no synced operation; owned */
    ReplicaSum *replicas;
    StepReport report;
    Outputs outputs;
    Captures captures;
    /* schedule of an evaluation, which has only forwards; owned */
    Schedule *evaluation;
    /* like plan->last_task, for the evaluation schedule; int[micro_batches], owned */
    int *evaluation_last;
    /* see executor_probe; NULL: values are not checked; borrowed */
    StepFault *fault;
    /* see executor_time_operations; NULL: times are not measured; borrowed */
    OperationTimes *times;
    /* see executor_pretend; NULL: operations are computed; borrowed */
    const PartSeconds *pretend_s;
    /* seconds by which the sleeps of executor_pretend have been too long so far; later sleeps are
     * shorter by this time */
    double overslept_s;
    /* times of this stage's chunks, [plan->chunk_count]; owned */
    ChunkTime *chunk_time;
};

/* actions.c. Sets the addresses of the weight gradients in the slot's runs to the gradient arena of
 * the micro-batch. */
void actions_bind(Executor *e, const ChunkRun *chunk, const Slot *slot, int micro);
/* Runs actions `from` to `to` - 1 of a pass of this chunk on the micro-batch in `slot`. */
void actions_run(Executor *e, const ChunkRun *chunk, const Slot *slot, Pass pass, int micro,
                 int from, int to);
/* Returns true if action number `action` of the pass communicates with other ranks: if it begins a
 * sum or a gathering, may wait for one, exchanges slices, or sums statistics over replicas. */
bool action_communicates(const Context *context, const ChunkRun *chunk, Pass pass, int micro,
                         int action);

#endif
