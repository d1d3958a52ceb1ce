/* The executor: allocates the memory of a plan and executes its tasks. "Collective" means
 * collective on all ranks of the grid. */
#ifndef WEFT_PIPELINE_PUBLIC_EXECUTOR_H
#define WEFT_PIPELINE_PUBLIC_EXECUTOR_H

#include "pipeline/operation_times.h"
#include "pipeline/plan.h"

/* Number of micro-batches of data that are copied to a device in advance. The device has memory for
 * these in addition to the micro-batches in use. */
enum { DATA_AHEAD = 1 };

/* The memory of a plan, and the loop over the plan's tasks. */
typedef struct Executor Executor;
typedef struct ExecutorOptions {
    /* seed of the dropout masks */
    uint64_t seed;
    /* transport of the messages between stages (Transport) */
    int transport;
} ExecutorOptions;
/* Makes an executor. comm: communicator of grid->dp_world; backward writes gradients to its arena,
 * which must have at least plan->micro_grad_elements floats. All arguments are borrowed. Release
 * with executor_free. Collective; all ranks return the same Status. */
Status executor_new(Executor **executor, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options);
/* Collective. */
void executor_free(Executor **executor);
/* Returns the parameter arena; borrowed. plan_local_offset gives the offsets. With ZeRO (plan->zero
 * is not ZERO_NONE) the arena is comm->params, and a rank updates only its shard of it
 * (plan_shard). If comm->params_shared is true, all replicas have the same memory; the caller must
 * then set values outside the shards, such as initial values, on one replica only. If parameters
 * are gathered (plan->gathers), the arena has only this rank's shard. */
float *executor_params(Executor *executor);
/* Returns this rank's part of a parameter of its stage in the parameter arena: the whole parameter
 * or, if parameters are gathered, its shard. Borrowed. */
float *executor_param(Executor *executor, int param);
/* Sets this rank's part of a parameter. stored: the whole value of the parameter, in the
 * operation's stored order (tensor/op.h), in host memory. */
void executor_set_param(Executor *executor, int param, const float *stored);
/* Call it after each change of parameters. If parameters are sharded, fetches the shards of the
 * other replicas; if parameters are gathered (plan->gathers), discards the gathered values instead.
 * Repacks all weights that are not gathered. Collective on grid->dp_world. */
void executor_params_changed(Executor *executor);
/* Sets copy[p] for each parameter p of the graph: the address at which an operation on this rank
 * reads it in a 16-bit type, which the result names; NULL if there is none, if several operations
 * have one of p or of another parameter of this operation, or with ZeRO. If all are NULL, the
 * result is DTYPE_F32. From now on the caller's updates must write these copies. After an update
 * call executor_params_updated: it does what executor_params_changed does, but does not write these
 * copies again. */
DType executor_use_copies(Executor *executor, void **copy);
void executor_params_updated(Executor *executor);
/* A source of micro-batches of data, usually a loader. */
typedef struct BatchSource {
    /* first argument of both functions */
    void *user;
    /* behaves as loader_next */
    Status (*next)(void *user, const MicroBatch **batch, double *wait_s);
    /* behaves as loader_release */
    void (*release)(void *user);
} BatchSource;
/* Returns a source that reads from a loader. The loader is borrowed. */
BatchSource loader_source(Loader *loader);
/* The values of a step that the executor needs to know. */
typedef struct StepBatch {
    /* number of the step; the dropout masks depend on it */
    uint64_t step;
    /* factor on the gradients of the loss: 1 / (rows of the global batch), times fp16's loss
     * scale */
    float scale;
    /* number of micro-batches of the global batch that contain a sample */
    int micro_batches;
    /* true: the last micro-batch with a sample contains only one sample */
    bool last_single;
} StepBatch;
/* Executes the schedule's tasks for one step: gets micro-batches from the source, runs forward and
 * backward, and exchanges messages. The sum of a bucket over the replicas begins when the bucket is
 * full. On a device all work is queued, and the host does not wait for it; a micro-batch that has
 * been copied to the device is released to the source when a later one is fetched, or in
 * executor_release_batches. *wait_s: as in loader_next. Returns the errors of the source.
 * Collective. */
Status executor_forward_backward(Executor *executor, const BatchSource *source,
                                 const StepBatch *batch, double *wait_s);
/* Finishes the gradients of a step: waits for their sums over the replicas, then adds the partial
 * gradients of tensor-parallel groups and of tied parameters. Collective. */
void executor_reduce(Executor *executor);
/* Updates the running statistics with those of the step. Call it only if the step is not
 * skipped. */
void executor_move_statistics(Executor *executor, const StepBatch *batch);
/* Sets whether executor_reduce checks the gradients for infinite and NaN values, from the next step
 * on. If it is enabled, executor_reduce waits until the step's statistics have arrived. */
void executor_find_overflow(Executor *executor, bool enabled);
/* Returns the METRIC_COUNT sums over all ranks (METRIC_...) of the newest step (behind = 0) or of
 * the step before it (behind = 1). Waits until they have arrived. The array is in host memory and
 * borrowed until the next call of the executor. Collective. */
const float *executor_metrics(Executor *executor, int behind);
/* Returns true if a gradient of the newest step was infinite or NaN; false if
 * executor_find_overflow is off. The same on all ranks. */
bool executor_overflowed(const Executor *executor);
/* Sets whether each step, from the next one on, hashes this rank's gradients: the first values of
 * each tensor, before the tensor is added to the sums over the replicas. On a device the hash is 0,
 * because the host would have to wait for the values. */
void executor_hash_steps(Executor *executor, bool enabled);
/* Returns the hash of the newest step (executor_hash_steps). */
uint64_t executor_step_hash(const Executor *executor);
/* From the next step on, the executor sums the squares of the gradients of each micro-batch of this
 * replica. The backend must use host memory, and grid.tp must be 1. */
void executor_measure_micro_batches(Executor *executor);
/* Returns the sums of squares of the newest step, [micro-batches of this replica][parameters of the
 * model], of the gradients that backward has written. A sum is 0 for parameters of other stages,
 * for parameters with several uses (graph_has_one_use), and for micro-batches without samples.
 * Borrowed. */
const double *executor_micro_squares(const Executor *executor);
/* largest number of bad samples that a StepFault lists */
enum { FAULT_SAMPLES = 8 };
/* The first infinite or NaN value of a step among the values that this rank has computed. */
typedef struct StepFault {
    /* index of the node whose output is bad or, in backward, whose gradient of an input is bad; -1:
     * no bad value was found */
    int node;
    /* index in the graph of the node's parameter whose gradient is bad; -1: the bad value is an
     * output or a gradient of an input */
    int param;
    /* true: the fault is in backward */
    bool backward;
    /* micro: index of the micro-batch in the global batch; sample_count: number of its bad samples,
     * 0 if a parameter's gradient is bad */
    int micro, sample_count;
    /* numbers of the first FAULT_SAMPLES bad samples */
    int64_t sample[FAULT_SAMPLES];
    /* number by which faults are ordered: `micro`. If micro-batches share statistics, it is the
     * number of the group of micro-batches instead, because a fault spreads inside the group. */
    int order;
    /* largest loss of a sample */
    double largest;
    /* number of the sample with this loss; -1: the stage has no loss */
    int64_t largest_sample;
} StepFault;
/* Returns true if fault a comes before fault b: faults of forward come before faults of backward,
 * then they are ordered by `order`, then in the order in which nodes run. A StepFault without a
 * fault comes last. */
bool step_fault_before(const StepFault *a, const StepFault *b);
/* From the next step on, checks every computed value and writes the first fault to *fault; this is
 * slow. A call with NULL ends the checks; until then fault is borrowed. */
void executor_probe(Executor *executor, StepFault *fault);
/* From the next step on, adds the time of each operation to *times. The times are by the host's
 * clock, so the backend must use host memory. A call with NULL ends the measurement; until then
 * times is borrowed. */
void executor_time_operations(Executor *executor, OperationTimes *times);
/* From the next step on, the rank sleeps for seconds[node].s[part] instead of computing that part
 * of an operation, except for operations that exchange data with other ranks. Results are
 * meaningless. The backend must use host memory. A call with NULL ends this; until then seconds,
 * [nodes of the graph], is borrowed. */
void executor_pretend(Executor *executor, const PartSeconds *seconds);
/* Times of one chunk in training steps, by the kind of its tasks. seconds: total time of the tasks
 * by the host's clock, without waits inside tasks; count: number of tasks. On a GPU the host only
 * queues work, and neither number contains work that is replayed (capture_run). */
typedef struct ChunkTime {
    double seconds[TASK_WORK_KINDS];
    int64_t count[TASK_WORK_KINDS];
} ChunkTime;
/* Returns the times of this stage's chunks so far, [chunks of the stage]; borrowed. */
const ChunkTime *executor_chunk_times(const Executor *executor);
/* Releases all micro-batches that have not been released to their sources yet. Call it before a
 * source is freed. */
void executor_release_batches(Executor *executor);
/* Returns the arena that has the sums of the gradients after executor_reduce, including those of
 * tied parameters; borrowed. It is arena 0 of the stack in which micro-batches are added
 * (tree_levels in parallel/order.h) or, if gradients are sharded, the first arena of this rank's
 * partial sums. plan_sum_offset gives the offsets. */
float *executor_grads(Executor *executor);
/* Sets this rank's value of a metric, METRIC_STOP or one after it in its enum, for the next step
 * only; without a call the value is 0. The value 1 makes a request, for example to stop with
 * METRIC_STOP. All ranks get the sum of the values at the end of the step. */
void executor_request(Executor *executor, int metric, float value);
/* Runs only forward, with running statistics, on as many micro-batches as a step has. On ranks with
 * the loss, calls visit for each micro-batch with the columns of the loss's results: (lines,
 * LOSS_COLUMNS), a line for each sample or token, in host memory. Collective. */
Status executor_evaluate(Executor *executor, const BatchSource *source,
                         void (*visit)(void *user, const MicroBatch *batch, const float *results),
                         void *user);
/* Returns one input of the loss for the last micro-batch that executor_evaluate has run, in plain
 * order and host memory. Output 0 is the logits, (N,K) or (N,T,K); of a detector, output i is the
 * grid (N,C,H,W) of level i. Borrowed until the next call of the executor. Returns NULL on ranks
 * without the loss. */
const float *executor_logits(Executor *executor, int output);

#endif
