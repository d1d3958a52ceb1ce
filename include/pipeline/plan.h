/* The plan of what one rank does in a step: a pure function of a planned graph, a cut of the
 * model and a schedule. Read-only data; planning is not collective. */
#ifndef WEFT_PIPELINE_PUBLIC_PLAN_H
#define WEFT_PIPELINE_PUBLIC_PLAN_H

#include "data.h"
#include "model.h"
#include "parallel.h"
#include "pipeline/operation_times.h"
#include "schedule.h"

/* Values of grid.zero (0: nothing is sharded; 1: optimizer state; 2: gradients, too; 3: parameters,
 * too) and of grid.recompute. */
#define ZERO_WORDS(W)                                                                              \
    W(ZERO_NONE, "0") W(ZERO_STATE, "1") W(ZERO_GRADIENTS, "2") W(ZERO_PARAMS, "3")
#define RECOMPUTE_WORDS(W)                                                                         \
    W(RECOMPUTE_NONE, "none") W(RECOMPUTE_BLOCK, "block") W(RECOMPUTE_AUTO, "auto")
typedef enum Zero { ZERO_WORDS(LIST_CONSTANT) } Zero;
typedef enum Recompute { RECOMPUTE_WORDS(LIST_CONSTANT) } Recompute;
enum { PIPELINE_WORDS = 2 };
extern const ConfigWords pipeline_words[PIPELINE_WORDS];

typedef enum ActionKind {
    /* runs the node's forward operation */
    ACTION_FORWARD,
    /* runs the node's whole backward: backward_begin, backward_weight (unless it is frozen),
     * backward_data */
    ACTION_BACKWARD,
    /* runs backward without backward_weight if that can wait for PASS_WEIGHT */
    ACTION_BACKWARD_DATA,
    /* does the node's work of PASS_WEIGHT: runs the delayed backward_weight, or copies gradients
     * from RunOffsets.dw to the gradient arena; for a node that no gradient reaches, only passes on
     * its statistics */
    ACTION_BACKWARD_WEIGHT,
    /* dst = src */
    ACTION_COPY,
    /* dst += src; adds the gradients that a tensor gets from several readers, in node order */
    ACTION_ADD,
    /* waits until the memory of bucket `index` is free; later actions write gradients to it */
    ACTION_OPEN,
    /* only if the plan gathers parameters: begins to gather the parameters of the uses that follow
     * soon, and waits until those of use `index`, which the next actions read, have been
     * gathered */
    ACTION_GATHER,
    /* adds this micro-batch's gradients of bucket `index` to the partial sums. After the last
     * micro-batch the sum over the replicas begins or, if a replica has several runs of
     * micro-batches (Deal) or gradients are sharded, after the last one of each run a push. */
    ACTION_BUCKET,
} ActionKind;
typedef struct Action {
    ActionKind kind;
    /* index of a run, bucket or parameter use, depending on the kind */
    int index;
    /* operands of ACTION_COPY and ACTION_ADD: places (see OFFSET_*) and number of elements */
    int64_t dst, src, count;
    /* element type of dst and src */
    DType type;
} Action;
/* Bytes that a copy or an addition reads and writes. */
double action_moved_bytes(const Action *action);
/* Bytes that are read and written to add one micro-batch's gradients in a bucket of `elements`
 * floats to the partial sums: the mean over the `micros` micro-batches of a replica. */
double bucket_moved_bytes(double elements, double micros);
typedef enum Pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHT, PASSES } Pass;
typedef struct ActionList {
    int count;
    /* actions in order; owned */
    Action *action;
} ActionList;

/* A place is a byte offset that also tells the memory. Below kept_bytes it is an offset in the
 * chunk's slot. From kept_bytes on, place - kept_bytes is an offset in scratch memory. From
 * OFFSET_BEFORE on, place - OFFSET_BEFORE is an offset in the slot that the same micro-batch has in
 * the previous chunk of the same stage. OFFSET_INPUT denotes the input data. */
enum { OFFSET_NONE = -1, OFFSET_INPUT = -2 };
#define OFFSET_BEFORE ((int64_t)1 << 60)
/* Places of the tensors of one run of a node. Tensors that are never alive together share memory. A
 * node runs once; in a recomputed block it may run a second time before backward, and backward then
 * uses the second run's tensors. */
typedef struct RunOffsets {
    int node;
    /* inputs, output, gradient of the output, saved data of this node and of input 0's producer,
     * gradients of inputs; see OpRun */
    int64_t x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS];
    /* place of each parameter's gradient. OFFSET_NONE: backward writes the gradient directly to the
     * gradient arena or, for a frozen parameter, writes none. A frozen parameter has a place if its
     * operation may write the gradient anyway. */
    int64_t dw[SPEC_PARAMS];
    /* true: ACTION_BACKWARD_DATA computes dw too, and PASS_WEIGHT copies it to the gradient
     * arena */
    bool dw_waits;
    /* true: backward adds the gradient of input 0 to the content of dx[0] (OpRun) */
    bool dx_add;
} RunOffsets;

/* One tensor of a message between two chunks. Tensors that cross a boundary together form one
 * message. */
typedef struct BoundaryTensor {
    /* the node. In a message of activations its output crosses the boundary, in a message of
     * gradients the gradient of its output. */
    int node;
    /* place of the tensor in this chunk's memory */
    int64_t offset;
    /* byte offset in the message, and size */
    size_t at, bytes;
} BoundaryTensor;
typedef struct Message {
    int count;
    /* tensors in node order; owned */
    BoundaryTensor *tensor;
    /* size of the message, a multiple of 64 */
    size_t bytes;
} Message;

/* Buckets of parameters that a node reads together: indices into GatherPlan.bucket. */
typedef struct ParamUse {
    int count, bucket[SPEC_PARAMS];
} ParamUse;

typedef struct ChunkPlan {
    /* index of the chunk in the model */
    int chunk;
    /* the chunk has nodes first .. last-1 */
    int first, last;
    ActionList pass[PASSES];
    int run_count;
    /* run_count runs; owned */
    RunOffsets *run;
    /* messages of forward: from the previous chunk, and to the next chunk */
    Message activations_in, activations_out;
    /* messages of backward: from the next chunk, and to the previous chunk */
    Message gradients_in, gradients_out;
    /* bytes of a slot, and bytes of scratch memory that the chunk needs */
    size_t kept_bytes, scratch_bytes;
    /* number of slots */
    int slots;
    /* gradient buckets in the order in which backward fills them; owned */
    Buckets buckets;
    /* first node, in backward's order, that writes to each bucket; int[buckets.count], owned */
    int *opens;
    /* bucket indices sorted by offset in the gradient arena; int[buckets.count], owned */
    int *bucket_order;
    /* true: the chunk's first bucket includes the step's metrics */
    bool metrics;
    /* Sharding; arrays with one entry for each bucket; owned; NULL if nothing is sharded. shard:
     * the cut of the bucket among the replicas. ring (only with sharded gradients): the bucket's
     * offset in the arena to which backward writes, in floats. */
    Bounds *shard;
    int64_t *ring;
    /* Pushes; arrays with one entry for each bucket; owned; NULL if nothing is pushed. even: the
     * cut of the bucket among the replicas if nothing is sharded. shard_offset: each shard's offset
     * in the arenas of partial sums of the rank that owns it, in the order of the shards in `shard`
     * or `even`. */
    Bounds *even;
    int64_t **shard_offset;
    /* Groups of buckets that the passes read, if parameters are gathered: pass p reads
     * use[use_first[p]] to use[use_first[p + 1] - 1]. Owned. */
    ParamUse *use;
    int use_first[PASSES + 1];
} ChunkPlan;

/* For each part of an operation, true if an action runs it. */
typedef struct ActionParts {
    bool part[OPERATION_PART_COUNT];
} ActionParts;
ActionParts action_parts(const ChunkPlan *chunk, const Action *action);

/* Gathering of parameters (zero 3, if the replicas share no memory). A rank stores only its shard
 * of the parameters. Before a pass reads a bucket of parameters, the bucket is gathered from all
 * replicas into its range of a ring; it is dropped when another bucket needs that memory. The
 * repacked weights of the bucket are in a second ring and are dropped with the bucket. */
typedef struct ParamBucket {
    /* offset and length among the stage's parameters, in floats */
    int64_t offset, elements;
    /* bounds of the replicas' shards of the bucket; borrowed from ChunkPlan.shard */
    const Bounds *shard;
    /* offset in the ring of parameters, in floats */
    int64_t ring_offset;
    /* offset and size in the ring of repacked weights, in bytes */
    int64_t cache, cache_bytes;
} ParamBucket;
typedef struct GatherPlan {
    /* number of buckets over all chunks of the stage */
    int count;
    /* buckets; owned */
    ParamBucket *bucket;
    /* bucket that has each parameter's value, or -1 if it is on another stage or frozen;
     * int[param_count], owned */
    int *bucket_of;
    /* floats of the ring of parameters, and of the frozen parameters, which follow the ring in the
     * same memory; every replica stores all frozen parameters */
    int64_t elements, frozen;
    /* floats gathered in a step */
    double step_elements;
    /* buckets gathered in a step */
    int64_t step_gathers;
} GatherPlan;

/* Properties of one parameter's update that planning depends on. */
typedef struct ParamUpdate {
    /* optimizer state slots */
    int slots;
    /* true: if replicas shard, the update needs one more slot as scratch */
    bool scratch;
    /* true: the parameter is never cut; one replica has all of its gradient, state and value */
    bool whole;
    /* whole_bytes: temporary bytes of an update of the whole tensor. slice_bytes: bytes in which
     * the tensor is assembled from the slices of a tensor-parallel group. Both are in addition to
     * the state and one copy of the tensor. All parameters share this memory, so the plan includes
     * the largest of each. */
    size_t whole_bytes, slice_bytes;
} ParamUpdate;

typedef struct PlanOptions {
    GridShape shape;
    int stage;
    /* schedule with its chunks and one replica's micro-batches; borrowed */
    const Schedule *schedule;
    /* slots of each channel between stages, from the schedule's simulation */
    int channel_depth;
    /* nodes where chunks begin, as graph_partition returns them; borrowed */
    const int *first;
    /* size of a gradient bucket (grid.bucket_mb) */
    size_t bucket_bytes;
    /* optimizer state slots of each parameter, for the memory estimate */
    int state_slots;
    /* true: if parameters are sharded, the optimizer needs one more slot as scratch */
    bool state_scratch;
    /* update of each parameter, [param_count]; used instead of state_slots and state_scratch;
     * borrowed by the plan; may be NULL */
    const ParamUpdate *updates;
    /* true: the optimizer averages trained parameters and running statistics (train.ema) */
    bool averages;
    /* a Zero value; has no effect with one replica */
    int zero;
    /* order in which gradients of micro-batches are added over the replicas if they are not
     * sharded; micro-batches are dealt in the same way, or with synced batch norms by DEAL_TURNS */
    Deal deal;
    /* true: NCCL connects the ranks' GPUs; has no effect if operations use host memory */
    bool joined;
    /* number of ranks that share one parameter arena; 0 or 1: each rank has an arena of its own */
    int param_sharers;
    /* block of each node, as graph_blocks returns it. Activations inside a block are recomputed
     * before the block's backward. NULL: nothing is recomputed. Borrowed for the call. */
    const int *block;
} PlanOptions;

typedef struct Plan {
    /* borrowed */
    const Graph *graph;
    /* borrowed, or NULL */
    const ParamUpdate *updates;
    GridShape shape;
    int stage;
    /* borrowed */
    const Schedule *schedule;
    /* number of chunks of this stage */
    int chunk_count;
    /* nodes where the model's chunks begin, then the node count; owned */
    int *first;
    /* chunks of this stage; owned */
    ChunkPlan *chunk;
    /* slot of each [local chunk][micro-batch]; owned */
    int *slot;
    /* index of the last task of each micro-batch in this stage's list; owned */
    int *last_task;
    /* largest number of micro-batches of data that are in use at the same time */
    int batches_out;
    /* true: the stage reads input data; the stage reads labels, because it has the loss */
    bool reads_data, reads_labels;
    /* Offset of each parameter's value in this stage's arena, in floats; -1: on another stage.
     * Frozen parameters come after all others. Owned. */
    int64_t *param_offset;
    /* Offset of each parameter's gradient in the gradient arena. It equals param_offset except for
     * a parameter that is tied to another one of this stage; -1: the parameter is frozen and has no
     * gradient. Owned. */
    int64_t *gradient_offset;
    /* Offset at which backward writes each gradient. With sharded gradients it is an offset in the
     * ring of buckets, otherwise it equals gradient_offset. Owned. */
    int64_t *micro_grad_offset;
    /* Offset at which operations read each parameter. With gathered parameters it is an offset in
     * their ring, otherwise it equals param_offset. Owned. */
    int64_t *weight_offset;
    /* sizes of the parameter and gradient arenas, in floats */
    int64_t param_elements, gradient_elements;
    /* floats of the parameters that are not frozen, which are at the front of the parameter
     * arena */
    int64_t trained_elements;
    /* floats of the arena to which backward writes gradients */
    int64_t micro_grad_elements;
    /* offset of the step's metrics in the gradient arena, in floats */
    int64_t metrics_offset;
    /* offset of each node's repacked weights in the cache arena, in bytes; size_t[node_count],
     * owned */
    size_t *cache;
    /* slots of each channel between stages */
    int channel_depth;
    /* a Zero value; ZERO_NONE with one replica */
    int zero;
    /* how the gradients of micro-batches are added: DEAL_TURNS if they are sharded, and DEAL_BLOCKS
     * with one replica */
    Deal deal;
    /* true for a parameter that is tied to no other, if it or a parameter that is tied to it is on
     * another stage; bool[param_count], owned */
    bool *tied_across;
    /* For each parameter, the bounds of the replicas' shards of the bucket that has its value,
     * borrowed from its ChunkPlan. NULL: the parameter is on another stage or frozen, or nothing is
     * sharded. The array is owned. */
    const Bounds **param_shard;
    /* true: parameters are gathered, with zero 3 and replicas that share no memory */
    bool gathers;
    /* only filled if `gathers` */
    GatherPlan gather;
    /* bytes of a whole parameter arena and of a whole gradient arena */
    size_t param_bytes, gradient_bytes;
    /* Number of arenas in which backward's gradients are added on this rank. */
    size_t sum_levels;
    /* Number of arenas of partial sums of this rank's shards between pushes; 0: nothing is
     * pushed. */
    size_t push_levels;
    /* Bytes of this rank's part of the parameter arena, including the ring into which shards are
     * gathered. */
    size_t param_part_bytes;
    /* gradient_part_bytes: bytes of all gradient arenas. state_bytes: bytes of the optimizer state.
     * average_bytes: bytes of the average of parameters and running statistics; 0 if there is no
     * average. With sharding: bytes of the rank with the largest part. */
    size_t gradient_part_bytes, state_bytes, average_bytes;
    /* Bytes of slots and scratch memory, of repacked weights, and of the operations' workspace. */
    size_t activation_bytes, cache_bytes, workspace_bytes;
    /* Bytes of the slots of channels from other stages, and of the buffers for exchanging
     * slices. */
    size_t message_bytes;
    /* Bytes of the slots of channels to other stages, for transports with slots on both ends (MPI,
     * NCCL). */
    size_t sent_bytes;
    /* Bytes of host memory through which a GPU's slices and messages are copied if NCCL does not
     * connect the GPUs. */
    size_t staged_bytes;
} Plan;

/* Sums of a step over all ranks. They are floats, so counts are exact up to 2^24. The first ones
 * are those of FlatTable.loss_sums. */
enum {
    /* sum of the loss over its rows (samples or tokens) */
    METRIC_LOSS = LOSS_SUM,
    /* number of rows */
    METRIC_ROWS = LOSS_LINES,
    /* rows whose label is the likeliest class; rows whose label is among the five likeliest */
    METRIC_TOP1 = LOSS_TOP1,
    METRIC_TOP5 = LOSS_TOP5,
    /* micro-batches that contained a sample */
    METRIC_MICROS = LOSS_ANY,
    /* sums of the loss's columns 1 and 2 over its rows (LossColumns) */
    METRIC_COLUMN1 = LOSS_COLUMN1,
    METRIC_COLUMN2 = LOSS_COLUMN2,
    /* number of ranks that request a stop, that request a checkpoint, that are still writing a
     * checkpoint, and that have a pending request from a hook; see executor_request */
    METRIC_STOP = LOSS_SUMS,
    METRIC_SAVE,
    METRIC_SAVING,
    METRIC_REQUEST,
    /* number of ranks that have set their times, and seconds in each phase (Phase) */
    METRIC_TIMED,
    METRIC_PHASES,
    METRIC_COUNT = METRIC_PHASES + PHASE_COUNT,
    /* number of values that each rank sets */
    METRIC_REQUESTS = METRIC_COUNT - METRIC_STOP,
    /* floats that the metrics occupy in the gradient arena */
    METRIC_PAD = 32
};
/* The gradient arena contains the gradients of this stage's parameters at the offsets of their
 * values (for running statistics, the batch values), METRIC_PAD floats of metrics, and the
 * gradients of tied parameters. All are summed by the same tree. deal_number gives the
 * micro-batches of each replica. With sharded gradients (zero 2) no rank stores the whole arena:
 * backward writes each bucket to its place in a ring, and a push adds it to the partial sums of the
 * shards' owners. With gathered parameters, a rank's shard of the parameters has the same layout as
 * its sums. */

/* Chooses the blocks to recompute. Chunk i has nodes first[i] .. first[i + 1] - 1. Returns for each
 * node the number of its block in its chunk, or -1. The choice depends on tensor sizes, so
 * tensor-parallel ranks with slices of different sizes may choose differently: the caller must use
 * one rank's result on all of them. Owner: the caller. */
int *graph_blocks(const Graph *graph, const int *first, int chunks);

/* Plans stage options->stage of the grid. Owner: the caller; graph and schedule are borrowed. */
Status plan_new(Plan **plan, const Graph *graph, const PlanOptions *options);
void plan_free(Plan **plan);
/* Bytes of the plan's memory on this rank, without sent_bytes and staged_bytes, which only some
 * transports need. */
size_t plan_bytes(const Plan *plan);
/* The part of a parameter of this stage that replica dp_rank updates: elements *first .. *first +
 * *count - 1, where *first is a multiple of FLAT_CHUNK; all elements if nothing is sharded. A tied
 * parameter has the same part as the parameter to which it is tied. */
void plan_shard(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
/* Offset of the sum of element `at` of the gradient arena, in arena 0 of replica dp_rank's partial
 * sums. The element must be in that replica's shard. */
int64_t plan_sum_offset(const Plan *plan, int64_t at, int dp_rank);
/* Number of floats in the arena of sums of replica dp_rank. */
int64_t plan_sum_elements(const Plan *plan, int dp_rank);
/* Number of floats of replica dp_rank's shards of all buckets that are pushed; 0: nothing is
 * pushed. */
int64_t plan_push_elements(const Plan *plan, int dp_rank);
/* plan_local_offset: offset of element `at` of the parameter arena in executor_params of replica
 * dp_rank. plan_local_elements: number of floats in executor_params of that replica. */
int64_t plan_local_offset(const Plan *plan, int64_t at, int dp_rank);
int64_t plan_local_elements(const Plan *plan, int dp_rank);
/* True if replicas shard gradients; their micro-batches are then dealt by DEAL_TURNS. */
bool plan_shards_gradients(const Plan *plan);
/* Sums over the replicas within a micro-batch (synced layers): the number of sums for which a rank
 * of the stage waits in each micro-batch, and the bytes of all of them. */
typedef struct ReplicaSums {
    int count;
    size_t bytes;
} ReplicaSums;
ReplicaSums plan_replica_sums(const Plan *plan);
void plan_print(const Plan *plan, FILE *out);

#endif
