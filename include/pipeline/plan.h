/* The plan of a rank's work in a step: a pure function of a planned graph, a cut of the model and a
 * schedule. A plan is read-only data. Planning is not collective. */
#ifndef WEFT_PIPELINE_PUBLIC_PLAN_H
#define WEFT_PIPELINE_PUBLIC_PLAN_H

#include "data.h"
#include "model.h"
#include "parallel.h"
#include "pipeline/operation_times.h"
#include "schedule.h"

/* Values of grid.zero, with what is sharded (0: nothing; 1: optimizer state; 2: also gradients; 3:
 * also parameters), and of grid.recompute. */
#define ZERO_WORDS(W)                                                                              \
    W(ZERO_NONE, "0") W(ZERO_STATE, "1") W(ZERO_GRADIENTS, "2") W(ZERO_PARAMS, "3")
#define RECOMPUTE_WORDS(W)                                                                         \
    W(RECOMPUTE_NONE, "none") W(RECOMPUTE_BLOCK, "block") W(RECOMPUTE_AUTO, "auto")
typedef enum Zero { ZERO_WORDS(LIST_CONSTANT) } Zero;
typedef enum Recompute { RECOMPUTE_WORDS(LIST_CONSTANT) } Recompute;
enum { PIPELINE_WORDS = 2 };
extern const ConfigWords pipeline_words[PIPELINE_WORDS];

/* The kinds of action. `index` is Action.index. A use is a ParamUse; gathering is explained at
 * ParamBucket, and the gradient arena after METRIC_PAD. */
typedef enum ActionKind {
    /* runs the node's forward operation */
    ACTION_FORWARD,
    /* runs the node's whole backward: backward_begin, backward_weight (unless the node is frozen),
     * backward_data */
    ACTION_BACKWARD,
    /* runs the node's backward, but leaves backward_weight to PASS_WEIGHT if the operation allows
     * this delay */
    ACTION_BACKWARD_DATA,
    /* does the node's work of PASS_WEIGHT: runs the delayed backward_weight, or copies gradients
     * from RunOffsets.dw to the gradient arena. For a node that no gradient reaches, it only writes
     * the node's batch statistics there. */
    ACTION_BACKWARD_WEIGHT,
    /* dst = src */
    ACTION_COPY,
    /* dst += src: adds up the gradients that a tensor gets from several readers, in the order of
     * the nodes */
    ACTION_ADD,
    /* waits until the memory of bucket `index` is free; later actions write gradients to it */
    ACTION_WAIT_FOR_BUCKET,
    /* begins to gather the parameters of use `index` and of the next few uses. Then waits until the
     * parameters of use `index` have been gathered, because the next actions read them. Only in
     * plans that gather parameters. */
    ACTION_GATHER,
    /* adds this micro-batch's gradients of bucket `index` to the partial sums. After the last
     * micro-batch the sum over the replicas begins. If a replica has several runs of micro-batches
     * (Deal), or gradients are sharded, a push begins instead after the last micro-batch of each
     * run. */
    ACTION_BUCKET,
} ActionKind;
typedef struct Action {
    ActionKind kind;
    /* an index into ChunkPlan, depending on the kind: of a run, a bucket or a use of parameters */
    int index;
    /* ACTION_COPY and ACTION_ADD. dst, src: places of the operands (see OFFSET_NONE); count: number
     * of elements */
    int64_t dst, src, count;
    /* element type of dst and src */
    DType type;
} Action;
/* Returns the bytes that an ACTION_COPY or an ACTION_ADD reads and writes. */
double action_moved_bytes(const Action *action);
/* Returns the bytes that are read and written when one micro-batch's gradients of a bucket of
 * `elements` floats are added to the partial sums: the mean over the `micro_batches` micro-batches
 * of a replica. */
double bucket_moved_bytes(double elements, double micro_batches);
typedef enum Pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHT, PASSES } Pass;
typedef struct ActionList {
    int count;
    /* actions in order; owned */
    Action *action;
} ActionList;

/* A place is a byte offset that also tells the memory. A place below ChunkPlan.kept_bytes is an
 * offset in the chunk's slot. From kept_bytes on, place - kept_bytes is an offset in scratch
 * memory. From OFFSET_BEFORE on, place - OFFSET_BEFORE is an offset in the slot that the same
 * micro-batch has in the chunk before this one, which is on the same stage. OFFSET_INPUT is the
 * input data; OFFSET_NONE is no place. */
enum { OFFSET_NONE = -1, OFFSET_INPUT = -2 };
#define OFFSET_BEFORE ((int64_t)1 << 60)
/* Places of the tensors of one run of a node. Tensors that are not needed at the same time may
 * share memory. A node runs once. In a recomputed block it may run a second time before backward,
 * and backward then uses the tensors of the second run. */
typedef struct RunOffsets {
    int node;
    /* places of the arrays with these names in OpRun: inputs, output, gradient of the output, saved
     * data of this node, saved data of the node that computes input 0, gradients of inputs */
    int64_t x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS];
    /* place of each parameter's gradient. OFFSET_NONE: backward writes the gradient directly to the
     * gradient arena or, for a frozen parameter, writes none. A frozen parameter has a place if its
     * operation may write the gradient nevertheless. */
    int64_t dw[SPEC_PARAMS];
    /* true: ACTION_BACKWARD_DATA also computes dw, and PASS_WEIGHT copies it to the gradient
     * arena */
    bool dw_waits;
    /* true: backward adds the gradient of input 0 to the content of dx[0] (OpRun.dx_add) */
    bool dx_add;
} RunOffsets;

/* One tensor of a message between two chunks. Tensors that cross a boundary together form one
 * message. */
typedef struct BoundaryTensor {
    /* index of the node; in a message of activations its output crosses the boundary, in a message
     * of gradients the gradient of its output */
    int node;
    /* place of the tensor in this chunk's memory */
    int64_t offset;
    /* at: byte offset of the tensor in the message; bytes: bytes of the tensor */
    size_t at, bytes;
} BoundaryTensor;
/* A message between two chunks. */
typedef struct Message {
    int count;
    /* tensors in node order; owned */
    BoundaryTensor *tensor;
    /* bytes of the message, a multiple of 64 */
    size_t bytes;
} Message;

/* The buckets of parameters that a node reads at the same time: indexes into GatherPlan.bucket. */
typedef struct ParamUse {
    int count, bucket[SPEC_PARAMS];
} ParamUse;

/* The plan of one chunk of the stage. */
typedef struct ChunkPlan {
    /* index of the chunk in the model */
    int chunk;
    /* the chunk has nodes first .. end - 1 */
    int first, end;
    ActionList pass[PASSES];
    int run_count;
    /* runs of the nodes in their order, [run_count]; if blocks are recomputed, second runs of the
     * same nodes follow; owned */
    RunOffsets *run;
    /* messages of forward: activations_in comes from the previous chunk, activations_out goes to
     * the next chunk */
    Message activations_in, activations_out;
    /* messages of backward: gradients_in comes from the next chunk, gradients_out goes to the
     * previous chunk */
    Message gradients_in, gradients_out;
    /* kept_bytes: bytes of a slot; scratch_bytes: bytes of scratch memory that the chunk needs */
    size_t kept_bytes, scratch_bytes;
    /* number of slots */
    int slots;
    /* gradient buckets in the order in which backward fills them; owned */
    Buckets buckets;
    /* index of the node that is the first, in the order of backward, to write to each bucket,
     * int[buckets.count]; owned */
    int *opening_node;
    /* indexes of the buckets, sorted by offset in the gradient arena, int[buckets.count]; owned */
    int *bucket_order;
    /* true: the chunk's first bucket includes the step's metrics */
    bool metrics;
    /* bounds of the replicas' shards of each bucket, [buckets.count]; owned; NULL: nothing is
     * sharded */
    Bounds *shard;
    /* offset of each bucket in the arena to which backward writes, in floats, [buckets.count];
     * owned; NULL: gradients are not sharded */
    int64_t *ring_offset;
    /* bounds by which each bucket is cut among the replicas for pushes if nothing is sharded,
     * [buckets.count]; owned; else NULL */
    Bounds *push_shard;
    /* shard_offset[b][i]: offset of shard i of bucket b (in the order of shard[b] or push_shard[b])
     * in the arenas of partial sums of the rank that owns the shard. The array and its entries are
     * owned. NULL: nothing is pushed. */
    int64_t **shard_offset;
    /* uses of gathered parameters in the order of the passes: pass p has use[use_first[p]] to
     * use[use_first[p + 1] - 1]; owned */
    ParamUse *use;
    int use_first[PASSES + 1];
} ChunkPlan;

/* part[p] is true if an action runs part p of an operation. */
typedef struct ActionParts {
    bool part[OPERATION_PART_COUNT];
} ActionParts;
ActionParts action_parts(const ChunkPlan *chunk, const Action *action);

/* A bucket of gathered parameters. Parameters are gathered with grid.zero 3 if the replicas share
 * no memory: a rank stores only its shard of the parameters. Before a pass reads a bucket of
 * parameters, the bucket is gathered from all replicas into its range of a ring, an arena in which
 * a later bucket may replace it. The repacked weights of the bucket are in a second ring, and are
 * replaced together with it. */
typedef struct ParamBucket {
    /* offset: first float of the bucket in the stage's parameters; elements: number of floats */
    int64_t offset, elements;
    /* bounds of the replicas' shards of the bucket; borrowed from ChunkPlan.shard */
    const Bounds *shard;
    /* offset of the bucket in the ring of parameters, in floats */
    int64_t ring_offset;
    /* cache_offset: offset of the bucket's repacked weights in their ring; cache_bytes: their size;
     * both in bytes */
    int64_t cache_offset, cache_bytes;
} ParamBucket;
/* How a rank gathers the parameters of its stage. */
typedef struct GatherPlan {
    /* number of buckets of all chunks of the stage */
    int count;
    /* [count]; owned */
    ParamBucket *bucket;
    /* index of the bucket that has each parameter's value, or -1 if the parameter is on another
     * stage or frozen; int[param_count], owned */
    int *bucket_of;
    /* elements: number of floats of the ring of parameters; frozen_elements: number of floats of
     * the frozen parameters, which follow the ring in the same memory and which every replica
     * stores */
    int64_t elements, frozen_elements;
    /* number of floats that are gathered in a step */
    double step_elements;
    /* number of buckets that are gathered in a step */
    int64_t step_gathers;
} GatherPlan;

/* Properties of one parameter's update that planning depends on. */
typedef struct ParamUpdate {
    /* number of optimizer state slots */
    int slots;
    /* true: if parameters are sharded, the update needs memory like one more state slot as
     * scratch */
    bool needs_scratch;
    /* true: the parameter is never cut; one replica has all of its gradient, state and value */
    bool is_uncut;
    /* whole_bytes: temporary bytes of an update of the whole tensor. slice_bytes: bytes in which
     * the tensor is assembled from the slices of a tensor-parallel group. Both are in addition to
     * the state and to one copy of the tensor. All parameters share this memory, so the plan
     * includes the largest whole_bytes and the largest slice_bytes. */
    size_t whole_bytes, slice_bytes;
} ParamUpdate;

/* Arguments of plan_new. */
typedef struct PlanOptions {
    GridShape shape;
    int stage;
    /* schedule with the chunks of all stages and the micro-batches of one replica; borrowed by the
     * plan */
    const Schedule *schedule;
    /* number of slots of each channel between stages (ScheduleReport.channel_depth) */
    int channel_depth;
    /* node at which each chunk of the model begins, as graph_partition returns it; borrowed for the
     * call */
    const int *chunk_begin;
    /* bytes of a gradient bucket (grid.bucket_mb) */
    size_t bucket_bytes;
    /* number of optimizer state slots of each parameter, for the estimate of memory */
    int state_slots;
    /* true: if parameters are sharded, the optimizer needs memory like one more state slot as
     * scratch */
    bool state_scratch;
    /* update of each parameter, [param_count]; used instead of state_slots and state_scratch;
     * borrowed by the plan; may be NULL */
    const ParamUpdate *updates;
    /* true: the optimizer averages trained parameters and running statistics (train.ema) */
    bool averages;
    /* a Zero value; has no effect with one replica */
    int zero;
    /* order in which the gradients of micro-batches are added over the replicas if gradients are
     * not sharded. Micro-batches are dealt to the replicas in the same way, or with synced batch
     * norms by DEAL_TURNS. */
    Deal deal;
    /* true: NCCL connects the ranks' GPUs; has no effect if operations use host memory */
    bool gpus_joined;
    /* number of ranks that share one parameter arena; 0 or 1: each rank has its own */
    int param_sharers;
    /* block of each node, as graph_blocks returns it. Activations inside a block are computed again
     * before the block's backward. NULL: nothing is recomputed. Borrowed for the call. */
    const int *block;
} PlanOptions;

/* The plan of one rank. */
typedef struct Plan {
    /* borrowed */
    const Graph *graph;
    /* PlanOptions.updates; borrowed; may be NULL */
    const ParamUpdate *updates;
    GridShape shape;
    int stage;
    /* borrowed */
    const Schedule *schedule;
    /* number of chunks of this stage */
    int chunk_count;
    /* node at which each chunk of the model begins, then the number of nodes; owned */
    int *chunk_begin;
    /* chunks of this stage, [chunk_count]; owned */
    ChunkPlan *chunk;
    /* number of the slot that a micro-batch has in a chunk, [chunk of this stage][micro-batch of
     * this replica]; owned */
    int *slot;
    /* index in this stage's list of the last task of each micro-batch; owned */
    int *last_task;
    /* largest number of micro-batches of data that are in use at the same time */
    int batches_in_use;
    /* reads_data: true if the stage reads input data; reads_labels: true if it reads labels,
     * because it has the loss */
    bool reads_data, reads_labels;
    /* offset of each parameter's value in this stage's arena, in floats; -1: the parameter is on
     * another stage. Frozen parameters come after all others. int64_t[param_count], owned. */
    int64_t *param_offset;
    /* offset of each parameter's gradient in the gradient arena, in floats; -1: the parameter is
     * frozen and has no gradient. It equals param_offset, except for a parameter that is tied to
     * another parameter of this stage. int64_t[param_count], owned. */
    int64_t *gradient_offset;
    /* offset at which backward writes each gradient, in floats: if gradients are sharded, in the
     * ring of buckets; else it equals gradient_offset. int64_t[param_count], owned. */
    int64_t *micro_grad_offset;
    /* offset at which operations read each parameter, in floats: if parameters are gathered, in
     * their ring; else it equals param_offset. int64_t[param_count], owned. */
    int64_t *weight_offset;
    /* numbers of floats of the parameter arena and of the gradient arena */
    int64_t param_elements, gradient_elements;
    /* number of floats of the parameters that are not frozen; they are the first in the parameter
     * arena */
    int64_t trained_elements;
    /* number of floats of the arena to which backward writes gradients */
    int64_t micro_grad_elements;
    /* offset of the step's metrics in the gradient arena, in floats */
    int64_t metrics_offset;
    /* offset of each node's repacked weights in the cache arena, in bytes; size_t[node_count],
     * owned */
    size_t *cache_offset;
    /* number of slots of each channel between stages */
    int channel_depth;
    /* a Zero value; ZERO_NONE with one replica */
    int zero;
    /* order in which the gradients of micro-batches are added: DEAL_TURNS if they are sharded,
     * DEAL_BLOCKS with one replica, else PlanOptions.deal */
    Deal deal;
    /* entry i, for a parameter i that is not tied to an earlier one: true if parameter i, or a
     * parameter that is tied to it, is on another stage; bool[param_count], owned */
    bool *tied_across;
    /* bounds of the replicas' shards of the bucket that has each parameter's value, borrowed from
     * its ChunkPlan; NULL: the parameter is on another stage or frozen, or nothing is sharded. The
     * array, [param_count], is owned. */
    const Bounds **param_shard;
    /* true: parameters are gathered (ParamBucket) */
    bool gathers;
    /* set only if `gathers` is true */
    GatherPlan gather;
    /* bytes of the parameter arena and of a gradient arena if nothing is sharded */
    size_t param_bytes, gradient_bytes;
    /* number of arenas in which this rank adds the gradients of its micro-batches (tree_levels) */
    size_t sum_levels;
    /* number of arenas of partial sums of this rank's shards between pushes; 0: nothing is
     * pushed */
    size_t push_levels;
    /* bytes of this rank's part of the parameter arena, including the ring of gathered
     * parameters */
    size_t param_part_bytes;
    /* gradient_part_bytes: bytes of all gradient arenas; state_bytes: bytes of the optimizer state;
     * average_bytes: bytes of the average of parameters and running statistics, 0: there is none.
     * What is sharded counts as on the rank with the largest part. */
    size_t gradient_part_bytes, state_bytes, average_bytes;
    /* activation_bytes: bytes of slots and scratch memory; cache_bytes: bytes of repacked weights;
     * workspace_bytes: bytes of the operations' workspace */
    size_t activation_bytes, cache_bytes, workspace_bytes;
    /* bytes of the slots of channels from other stages, and of the buffers for exchanging slices */
    size_t message_bytes;
    /* bytes of the slots of channels to other stages, for transports with slots on both ends (MPI,
     * NCCL) */
    size_t send_slot_bytes;
    /* bytes of host memory through which a GPU's slices and messages are copied if NCCL does not
     * connect the GPUs */
    size_t staged_bytes;
} Plan;

/* Sums of a step over all ranks. They are floats, so counts are exact up to 2^24. The sums up to
 * METRIC_COLUMN2 are those of FlatTable.loss_sums. */
enum {
    /* sum of the loss over its rows (samples or tokens) */
    METRIC_LOSS = LOSS_SUM,
    /* number of rows */
    METRIC_ROWS = LOSS_LINES,
    /* number of rows whose label is the likeliest class (METRIC_TOP1), or one of the five likeliest
     * (METRIC_TOP5) */
    METRIC_TOP1 = LOSS_TOP1,
    METRIC_TOP5 = LOSS_TOP5,
    /* number of micro-batches that contained a sample */
    METRIC_MICROS = LOSS_ANY,
    /* sums of the loss's columns 1 and 2 over its rows (LossResults) */
    METRIC_COLUMN1 = LOSS_COLUMN1,
    METRIC_COLUMN2 = LOSS_COLUMN2,
    /* numbers of ranks that request a stop (METRIC_STOP), that request a checkpoint (METRIC_SAVE),
     * that are still writing a checkpoint (METRIC_SAVING), and that have a pending request of the
     * hook (METRIC_REQUEST); see executor_request */
    METRIC_STOP = LOSS_SUMS,
    METRIC_SAVE,
    METRIC_SAVING,
    METRIC_REQUEST,
    /* number of ranks that have set their times (METRIC_TIMED), and from METRIC_PHASES on the
     * seconds in each Phase */
    METRIC_TIMED,
    METRIC_PHASES,
    METRIC_COUNT = METRIC_PHASES + PHASE_COUNT,
    /* number of values that each rank can set by executor_request */
    METRIC_REQUESTS = METRIC_COUNT - METRIC_STOP,
    /* floats that the metrics occupy in the gradient arena */
    METRIC_PAD = 32
};
/* The gradient arena contains the gradients of this stage's parameters at the offsets of their
 * values (of running statistics, their values in the batch), METRIC_PAD floats of metrics, and the
 * gradients of tied parameters. All are summed by the same tree. deal_number gives the
 * micro-batches of each replica. If gradients are sharded (grid.zero 2), no rank stores the whole
 * arena: backward writes each bucket to its place in a ring, and a push adds it to the partial sums
 * of the ranks that own its shards. If parameters are gathered, a rank's shard of the parameters
 * has the same layout as its sums. */

/* Chooses the blocks to recompute. Chunk i has nodes first[i] .. first[i + 1] - 1. Returns for each
 * node the number of its block in its chunk, or -1; the caller owns the array. The choice depends
 * on the sizes of tensors, so tensor-parallel ranks whose slices differ in size may choose
 * differently: use the result of one of them on all of them. */
int *graph_blocks(const Graph *graph, const int *first, int chunks);

/* Plans stage options->stage of the grid. The caller owns *plan; graph and schedule are borrowed
 * until plan_free. ERR_CONFIG: two parameters are tied to one parameter, and neither is on its
 * stage. */
Status plan_new(Plan **plan, const Graph *graph, const PlanOptions *options);
void plan_free(Plan **plan);
/* Returns the bytes of the plan's memory on this rank, without send_slot_bytes and staged_bytes,
 * which only some transports need. */
size_t plan_bytes(const Plan *plan);
/* Computes the part of a parameter of this stage that replica dp_rank updates: *count elements from
 * *first on, where *first is a multiple of FLAT_CHUNK. If nothing is sharded, the part is the whole
 * parameter. A tied parameter has the same part as the parameter to which it is tied. */
void plan_shard(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
/* Returns the offset, in arena 0 of replica dp_rank's partial sums, of the sum of element `at` of
 * the gradient arena. The element must be in this replica's shard. */
int64_t plan_sum_offset(const Plan *plan, int64_t at, int dp_rank);
/* Returns the number of floats in the arena of sums of replica dp_rank. */
int64_t plan_sum_elements(const Plan *plan, int dp_rank);
/* Returns the number of floats of replica dp_rank's shards of all buckets that are pushed; 0:
 * nothing is pushed. */
int64_t plan_push_elements(const Plan *plan, int dp_rank);
/* plan_local_offset returns the offset of element `at` of the parameter arena in executor_params of
 * replica dp_rank; plan_local_elements returns the number of floats there. */
int64_t plan_local_offset(const Plan *plan, int64_t at, int dp_rank);
int64_t plan_local_elements(const Plan *plan, int dp_rank);
/* Returns true if gradients are sharded; micro-batches are then dealt by DEAL_TURNS. */
bool plan_shards_gradients(const Plan *plan);
/* Sums over the replicas within a micro-batch (synced layers). count: number of sums for which a
 * rank of the stage waits in each micro-batch; bytes: bytes of all of them together. */
typedef struct ReplicaSums {
    int count;
    size_t bytes;
} ReplicaSums;
ReplicaSums plan_replica_sums(const Plan *plan);
void plan_print(const Plan *plan, FILE *out);

#endif
