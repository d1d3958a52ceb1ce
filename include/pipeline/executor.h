/* The executor: the memory of a plan, and the loop that runs it. Collective over the ranks of the
 * grid. */
#ifndef WEFT_PIPELINE_PUBLIC_EXECUTOR_H
#define WEFT_PIPELINE_PUBLIC_EXECUTOR_H

#include "pipeline/operation_times.h"
#include "pipeline/plan.h"

/* Micro-batches of data that a device has memory for in addition to those in use; they are copied
 * there in the background. */
enum { DATA_AHEAD = 1 };

/* The memory that a plan runs in, and the loop over its tasks. */
typedef struct Executor Executor;
typedef struct ExecutorOptions {
    uint64_t seed;
    /* transport of the messages between stages */
    int transport;
} ExecutorOptions;
/* comm connects the ranks of grid->dp_world; backward writes to its arena of
 * plan->micro_grad_elements floats. Owner: the caller; all arguments are borrowed. Collective on
 * the grid; all ranks return the same Status. */
Status executor_new(Executor **executor, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options);
/* Collective. */
void executor_free(Executor **executor);
/* The parameter arena; borrowed. With plan->zero it is comm->params: a rank updates only its shard
 * (plan_shard), and with comm->params_shared only one replica sets the rest. With gathered
 * parameters it holds only this rank's shard. plan_local_offset gives the offsets. */
float *executor_params(Executor *executor);
/* This rank's part of a parameter of its stage in that arena: the whole parameter, or its shard if
 * parameters are gathered. Borrowed. */
float *executor_param(Executor *executor, int param);
/* Sets the parameter from its whole value, in stored order, in host memory. */
void executor_set_param(Executor *executor, int param, const float *stored);
/* Call after the parameters changed: fetches the other replicas' shards if there are any, or drops
 * gathered parameters. Collective on grid->dp_world. */
void executor_params_changed(Executor *executor);
/* Source of the micro-batches of data, usually a loader. */
typedef struct BatchSource {
    void *user;
    /* has the contract of loader_next */
    Status (*next)(void *user, const Batch **batch, double *wait_s);
    /* has the contract of loader_release */
    void (*release)(void *user);
} BatchSource;
/* The loader is borrowed. */
BatchSource loader_source(Loader *loader);
/* Values of a step's batch, which change from step to step. */
typedef struct StepBatch {
    /* number of the step, keys the dropout masks */
    uint64_t step;
    /* 1 / (rows of the global batch), times fp16's loss scale */
    float scale;
    /* micro-batches of the global batch that contain a sample */
    int micros;
    /* the last micro-batch of them contains one sample only */
    bool last_single;
} StepBatch;
/* Runs the schedule's tasks for one step: takes micro-batches from the source, runs forward and
 * backward, and exchanges messages; each bucket's sum over the replicas begins when the bucket is
 * full. On a device all of it is queued and the host goes on: a micro-batch is released to the
 * source once it has been copied, when a later one is taken or in executor_settle. wait_s: as in
 * loader_next. Returns the source's errors. Collective. */
Status executor_forward_backward(Executor *executor, const BatchSource *source, const StepBatch *of,
                                 double *wait_s);
/* Finishes the gradients of a step: waits for their sums over the replicas, then adds the partial
 * gradients of tensor-parallel groups and of tied parameters. Collective. */
void executor_reduce(Executor *executor);
/* Updates the running statistics. Call it only for a step that is not skipped. */
void executor_move_statistics(Executor *executor, const StepBatch *of);
/* Sets whether executor_reduce, from the next step on, looks for gradients that are infinite or
 * NaN. If so, it waits for the step's statistics. */
void executor_find_overflow(Executor *executor, bool yes);
/* Returns the METRIC_COUNT sums over all ranks of the last step (behind 0) or the one before (1);
 * waits until they have arrived. In host memory, borrowed until the next call of the executor.
 * Collective. */
const float *executor_metrics(Executor *executor, int behind);
/* Returns true if a gradient of the last step was infinite or NaN; false if executor_find_overflow
 * is off. The same on all ranks. */
bool executor_overflowed(const Executor *executor);
/* Sets whether each step, from the next one on, hashes the first values of each gradient tensor
 * that this rank contributes to the sums. On a device the hash is 0, because the host would have to
 * wait for it. */
void executor_hash_steps(Executor *executor, bool yes);
/* Hash of the last step. */
uint64_t executor_step_hash(const Executor *executor);
/* From the next step on sums the squares of the gradients of each micro-batch of this replica. It
 * must work in host memory, and without tensor parallelism. */
void executor_measure_micros(Executor *executor);
/* The sums of squares of the last step, [micro-batches of this replica][parameters of the model],
 * of gradients as backward wrote them; 0 for parameters of other stages and those without
 * graph_has_one_use, and for micro-batches without samples. Borrowed. */
const double *executor_micro_squares(const Executor *executor);
/* The first infinite or NaN value of a step among those that this rank computed. */
enum { FAULT_SAMPLES = 8 };
typedef struct StepFault {
    /* node whose output is bad, or in backward whose input's gradient is; -1: nothing was found */
    int node;
    /* parameter of the node whose gradient is bad; -1: it is an output or an input's gradient */
    int param;
    bool backward;
    /* number of the micro-batch in the global batch, the number of its bad samples and the first
     * ones; no samples for a parameter */
    int micro, sample_count;
    int64_t sample[FAULT_SAMPLES];
    /* equals micro; but if micro-batches share statistics, and so spread a fault among each other,
     * the number of their group */
    int turn;
    /* the largest loss of a sample, and that sample; -1: the stage has no loss */
    double largest;
    int64_t largest_sample;
} StepFault;
/* Orders faults: forward before backward, then by turn, then in the order in which nodes run; a
 * StepFault without a fault comes last. */
bool step_fault_before(const StepFault *a, const StepFault *b);
/* Checks every computed value from the next step on and writes what is found to *fault; slow. NULL
 * turns it off. fault is borrowed until then. */
void executor_probe(Executor *executor, StepFault *fault);
/* Adds the time of each operation to *times from the next step on, by the host's clock, so it must
 * work in host memory. NULL turns it off. times is borrowed until then. */
void executor_time_operations(Executor *executor, OperationTimes *times);
/* From the next step on each part of an operation sleeps for seconds[node].s[part] instead of being
 * computed, unless it exchanges data with other ranks; results are meaningless. It must work in
 * host memory. NULL turns it off. seconds is borrowed until then. */
void executor_pretend(Executor *executor, const PartSeconds *seconds);
/* Time of a chunk's tasks in training by kind, without waiting inside tasks, by the host's clock,
 * and the number of tasks. */
typedef struct ChunkTime {
    double seconds[TASK_WORK_KINDS];
    int64_t count[TASK_WORK_KINDS];
} ChunkTime;
/* The times of this stage's chunks so far, [chunks of a stage]; borrowed. */
const ChunkTime *executor_chunk_times(const Executor *executor);
/* Releases all micro-batches to their sources. Call it before a source is freed. */
void executor_settle(Executor *executor);
/* Gradient arena 0: after executor_reduce the sums, tied gradients included; borrowed.
 * plan_sum_offset gives the offsets. */
float *executor_grads(Executor *executor);
/* Sets this rank's value of METRIC_STOP or a later metric for the coming step; it is 0 otherwise.
 * The metric is the sum over all ranks, which all learn at the end of the same step. A flag has
 * value 1. */
void executor_request(Executor *executor, int metric, float value);
/* Runs forward only, with running statistics, on as many micro-batches as a step has. On ranks with
 * the loss, visit is called for each micro-batch with its per-sample results: columns (rows,
 * LOSS_COLUMNS), in host memory. Collective. */
Status executor_evaluate(Executor *executor, const BatchSource *source,
                         void (*visit)(void *user, const Batch *batch, const float *columns),
                         void *user);
/* Returns input `output` of the loss in the last micro-batch that executor_evaluate ran, in plain
 * order and host memory: logits (N,K) or (N,T,K), which are output 0, or a detector's grid
 * (N,C,H,W) of that level. Borrowed until the next call of the executor. NULL on ranks without the
 * loss. */
const float *executor_logits(Executor *executor, int output);

#endif
