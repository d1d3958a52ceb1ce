/* The executor: allocates the memory of a plan and runs its tasks. A function whose comment says
 * Collective is collective on all ranks of the grid. */
#ifndef WEFT_PIPELINE_PUBLIC_EXECUTOR_H
#define WEFT_PIPELINE_PUBLIC_EXECUTOR_H

#include "pipeline/operation_times.h"
#include "pipeline/plan.h"

/* Number of micro-batches of data that are copied to a device in advance. The device has memory for
 * these in addition to the micro-batches in use. */
enum { DATA_AHEAD = 1 };

/* The memory that a plan runs in, and the loop over its tasks. */
typedef struct Executor Executor;
typedef struct ExecutorOptions {
    /* seed of the dropout masks */
    uint64_t seed;
    /* transport of the messages between stages (Transport) */
    int transport;
} ExecutorOptions;
/* comm connects the ranks of grid->dp_world; backward writes gradients to its arena, which has
 * plan->micro_grad_elements floats. The caller owns the executor; all arguments are borrowed.
 * Collective on the grid; all ranks return the same Status. */
Status executor_new(Executor **executor, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options);
/* Collective. */
void executor_free(Executor **executor);
/* The parameter arena; borrowed. With plan->zero it is comm->params, of which a rank updates only
 * its shard (plan_shard); if comm->params_shared, only one replica sets the values outside the
 * shards. With gathered parameters the arena contains only this rank's shard. plan_local_offset
 * gives the offsets. */
float *executor_params(Executor *executor);
/* This rank's part of a parameter of its stage in the parameter arena: the whole parameter, or its
 * shard if parameters are gathered. Borrowed. */
float *executor_param(Executor *executor, int param);
/* Sets this rank's part of a parameter. stored: the whole value of the parameter, in the
 * operation's stored order (tensor/op.h), in host memory. */
void executor_set_param(Executor *executor, int param, const float *stored);
/* Call it after the parameters have changed. Fetches the other replicas' shards if parameters are
 * sharded, or drops gathered parameters. Collective on grid->dp_world. */
void executor_params_changed(Executor *executor);
/* Source of the micro-batches of data, usually a loader. */
typedef struct BatchSource {
    void *user;
    /* behaves as loader_next */
    Status (*next)(void *user, const Batch **batch, double *wait_s);
    /* behaves as loader_release */
    void (*release)(void *user);
} BatchSource;
/* A source that reads from a loader, which is borrowed. */
BatchSource loader_source(Loader *loader);
/* Values of a step's batch, which change from step to step. */
typedef struct StepBatch {
    /* number of the step; the dropout masks depend on it */
    uint64_t step;
    /* 1 / (rows of the global batch), times fp16's loss scale */
    float scale;
    /* micro-batches of the global batch that contain a sample */
    int micros;
    /* true: the last micro-batch with a sample contains only one sample */
    bool last_single;
} StepBatch;
/* Runs the schedule's tasks for one step: gets micro-batches from the source, runs forward and
 * backward, and exchanges messages; each bucket's sum over the replicas begins when the bucket is
 * full. On a device all work is queued, and the host does not wait for it. In this case a
 * micro-batch is released to the source after it has been copied: when a later one is fetched, or
 * in executor_settle. wait_s: as in loader_next. Returns the source's errors. Collective. */
Status executor_forward_backward(Executor *executor, const BatchSource *source,
                                 const StepBatch *batch, double *wait_s);
/* Finishes the gradients of a step: waits for their sums over the replicas, then adds the partial
 * gradients of tensor-parallel groups and of tied parameters. Collective. */
void executor_reduce(Executor *executor);
/* Updates the running statistics. Call it only for a step that is not skipped. */
void executor_move_statistics(Executor *executor, const StepBatch *batch);
/* Sets whether executor_reduce, from the next step on, checks the gradients for infinite and NaN
 * values. If it does, it waits for the step's statistics. */
void executor_find_overflow(Executor *executor, bool yes);
/* Returns the METRIC_COUNT sums of the last step (behind 0) or of the step before it (behind 1),
 * each over all ranks; waits until they have arrived. The array is in host memory and borrowed
 * until the next call of the executor. Collective. */
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
/* From the next step on, the executor sums the squares of the gradients of each micro-batch of this
 * replica. The backend must use host memory, and grid.tp must be 1. */
void executor_measure_micros(Executor *executor);
/* The sums of squares of the last step, [micro-batches of this replica][parameters of the model],
 * of gradients as backward wrote them. 0 for parameters of other stages, for parameters with
 * several uses (graph_has_one_use), and for micro-batches without samples. Borrowed. */
const double *executor_micro_squares(const Executor *executor);
/* The first infinite or NaN value of a step among those that this rank computed. */
enum { FAULT_SAMPLES = 8 };
typedef struct StepFault {
    /* node whose output is bad or, in backward, whose input has a bad gradient; -1: no bad value
     * was found */
    int node;
    /* number in the graph of the node's parameter whose gradient is bad; -1: the bad value is an
     * output or an input's gradient */
    int param;
    /* true: the fault is in backward */
    bool backward;
    /* micro: index of the micro-batch in the global batch; sample_count: number of its bad samples,
     * 0 if a parameter's gradient is bad; sample: the first FAULT_SAMPLES bad samples */
    int micro, sample_count;
    int64_t sample[FAULT_SAMPLES];
    /* number by which faults are ordered: micro, or the number of the micro-batch's group if
     * micro-batches share statistics, because a fault spreads inside the group */
    int turn;
    /* the largest loss of a sample, and number of that sample; -1: the stage has no loss */
    double largest;
    int64_t largest_sample;
} StepFault;
/* Orders faults: forward before backward, then by turn, then in the order in which nodes run; a
 * StepFault without a fault comes last. */
bool step_fault_before(const StepFault *a, const StepFault *b);
/* From the next step on, checks every computed value and writes the first fault to *fault; slow.
 * NULL ends the checks. fault is borrowed until then. */
void executor_probe(Executor *executor, StepFault *fault);
/* From the next step on, adds the time of each operation to *times. The times are by the host's
 * clock, so the backend must use host memory. NULL ends the measurement. times is borrowed until
 * then. */
void executor_time_operations(Executor *executor, OperationTimes *times);
/* From the next step on, the rank sleeps for seconds[node].s[part] instead of computing a part of
 * an operation, except for operations that exchange data with other ranks. Results are meaningless.
 * The backend must use host memory. A call with NULL ends this behaviour. seconds is borrowed until
 * then. */
void executor_pretend(Executor *executor, const PartSeconds *seconds);
/* Seconds and number of a chunk's training tasks of each kind. Seconds are by the host's clock,
 * without waits inside tasks. */
typedef struct ChunkTime {
    double seconds[TASK_WORK_KINDS];
    int64_t count[TASK_WORK_KINDS];
} ChunkTime;
/* The times of this stage's chunks so far, [chunks of a stage]; borrowed. */
const ChunkTime *executor_chunk_times(const Executor *executor);
/* Releases all micro-batches to their sources. Call it before a source is freed. */
void executor_settle(Executor *executor);
/* Gradient arena 0. After executor_reduce it has the sums, including those of tied gradients.
 * plan_sum_offset gives the offsets. Borrowed. */
float *executor_grads(Executor *executor);
/* Sets this rank's value of METRIC_STOP or a later metric for the next step only; without a call
 * the value is 0. All ranks get the sum of the values at the end of the step. Flags have the value
 * 1. */
void executor_request(Executor *executor, int metric, float value);
/* Runs forward only, with running statistics, on as many micro-batches as a step has. On ranks with
 * the loss, calls visit for each micro-batch with the results of the loss: columns (lines,
 * LOSS_COLUMNS), a line for each sample or token, in host memory. Collective. */
Status executor_evaluate(Executor *executor, const BatchSource *source,
                         void (*visit)(void *user, const Batch *batch, const float *columns),
                         void *user);
/* Returns input `output` of the loss in the last micro-batch that executor_evaluate ran, in plain
 * order and host memory: output 0: logits (N,K) or (N,T,K); of a detector, output i: the grid
 * (N,C,H,W) of level i. Borrowed until the next call of the executor. NULL on ranks without the
 * loss. */
const float *executor_logits(Executor *executor, int output);

#endif
