/* The plan of what one rank does in a step: a pure function of a planned graph, a cut of the
 * model and a schedule. Read-only data; planning is not collective. */
#ifndef WEFT_PIPELINE_PUBLIC_PLAN_H
#define WEFT_PIPELINE_PUBLIC_PLAN_H

#include "data.h"
#include "model.h"
#include "parallel.h"
#include "pipeline/operation_times.h"
#include "schedule.h"

/* Values of grid.zero (what replicas shard; each level includes those before it) and of
 * grid.recompute. */
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
    /* runs the delayed backward_weight; or copies gradients from RunOffsets.dw to the gradient
     * arena; or only passes on statistics, for a node that no gradient reaches */
    ACTION_BACKWARD_WEIGHT,
    /* dst = src */
    ACTION_COPY,
    /* dst += src; sums the gradients from several consumers in node order */
    ACTION_ADD,
    /* waits until the memory of bucket `index` is free; later actions write gradients to it */
    ACTION_OPEN,
    /* waits until the parameters of use `index`, which the next actions read, are gathered, and
     * begins to gather those needed soon after (only if the plan gathers parameters) */
    ACTION_GATHER,
    /* adds this micro-batch's gradients of bucket `index` to the partial sums; after the last
     * micro-batch the sum over the replicas begins. With sharded gradients each micro-batch begins
     * a push. */
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
/* Bytes that adding the gradients of one micro-batch in a bucket of `elements` floats to the
 * partial sums reads and writes, the mean over the `micros` micro-batches of a replica. */
double bucket_moved_bytes(double elements, double micros);
typedef enum Pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHT, PASSES } Pass;
typedef struct ActionList {
    int count;
    /* actions in order; owned */
    Action *action;
} ActionList;

/* A place is a byte offset. Below kept_bytes it counts from the start of the chunk's slot, from
 * kept_bytes on it lies in scratch memory, and from OFFSET_BEFORE on it lies in the slot that the
 * same micro-batch has in the previous chunk of the same stage. OFFSET_INPUT stands for the input
 * data. */
enum { OFFSET_NONE = -1, OFFSET_INPUT = -2 };
#define OFFSET_BEFORE ((int64_t)1 << 60)
/* Places of the tensors of one run of a node. Tensors that are never alive together share memory. A
 * node runs once; in a recomputed block it may run a second time before backward, and backward then
 * uses the second run's tensors. */
typedef struct RunOffsets {
    int node;
    int64_t x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS];
    /* place of each parameter's gradient. OFFSET_NONE: it is written directly to the gradient
     * arena, or the parameter is frozen and nothing is written. A frozen parameter has a place if
     * its operation may write the gradient anyway. */
    int64_t dw[SPEC_PARAMS];
    /* true: backward_data writes dw too, and PASS_WEIGHT copies it to the gradient arena */
    bool dw_waits;
    /* true: dx[0] is added to what is there, see OpRun */
    bool dx_add;
} RunOffsets;

/* One tensor of a message between two chunks. Tensors that cross a boundary together form one
 * message. */
typedef struct BoundaryTensor {
    /* node whose output, or whose output's gradient, crosses */
    int node;
    /* place in this chunk */
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
    /* messages from the previous chunk and to the next one */
    Message activations_in, activations_out;
    /* messages from the next chunk and to the previous one */
    Message gradients_in, gradients_out;
    size_t kept_bytes, scratch_bytes;
    int slots;
    /* gradient buckets in the order in which backward fills them; owned */
    Buckets buckets;
    /* first node, in backward's order, that writes to each bucket; int[buckets.count], owned */
    int *opens;
    /* bucket indices sorted by offset in the gradient arena; int[buckets.count], owned */
    int *bucket_order;
    /* the chunk's first bucket carries the step's metrics */
    bool metrics;
    /* Sharding, one entry for each bucket; owned; NULL if nothing is sharded. shard: the cut among
     * the replicas. With sharded gradients also ring: the bucket's offset in the arena that
     * backward writes to. */
    Bounds *shard;
    int64_t *ring;
    /* Pushes, one entry for each bucket; owned; NULL if nothing is pushed. even: the cut among the
     * replicas if nothing is sharded. shard_offset: each shard's offset in the arenas of partial
     * sums of the rank that owns it, in the order of the shards in `shard` or `even`. */
    Bounds *even;
    int64_t **shard_offset;
    /* Groups of buckets that the passes read, if parameters are gathered: pass p reads those from
     * use_first[p] to use_first[p + 1] - 1. Owned. */
    ParamUse *use;
    int use_first[PASSES + 1];
} ChunkPlan;

/* Which parts of its operation an action of the chunk runs. */
typedef struct ActionParts {
    bool part[OPERATION_PART_COUNT];
} ActionParts;
ActionParts action_parts(const ChunkPlan *chunk, const Action *action);

/* Gathering of parameters (zero 3, if the replicas have no memory in common). A rank stores only
 * its shard of the parameters. Before a pass reads a bucket of them, the bucket is gathered from
 * all replicas into its place in a ring, and it is dropped when another bucket needs that memory.
 * The repacked forms of the bucket's weights lie in a second ring and are dropped with it. */
typedef struct ParamBucket {
    /* offset and length among the stage's parameters, in floats */
    int64_t offset, elements;
    /* bounds of the replicas' shards of the bucket; borrowed from the ChunkPlan */
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
    /* size in floats of the ring of parameters, and of the frozen parameters that lie behind it in
     * the same memory; every replica stores all frozen parameters */
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
    /* the update needs one more slot as scratch if replicas shard */
    bool scratch;
    /* the parameter is never cut: one replica has its gradient, state and value */
    bool whole;
    /* temporary memory of the update, for the whole tensor and for its slices, in addition to the
     * state and one copy of the tensor; it is shared, so the plan counts the largest over all
     * parameters */
    size_t whole_bytes, slice_bytes;
} ParamUpdate;

typedef struct PlanOptions {
    GridShape shape;
    int stage;
    /* schedule with its chunks and one replica's micro-batches; borrowed */
    const Schedule *schedule;
    /* entries of each channel between stages, from the schedule's simulation */
    int channel_depth;
    /* nodes where chunks begin, as graph_partition returns them; borrowed */
    const int *first;
    size_t bucket_bytes;
    /* optimizer state slots of each parameter, for the memory estimate */
    int state_slots;
    /* the optimizer needs one more slot as scratch if its parameters are sharded */
    bool state_scratch;
    /* update of each parameter, replaces state_slots and state_scratch; ParamUpdate[param_count],
     * borrowed by the plan, or NULL */
    const ParamUpdate *updates;
    /* the optimizer averages trained parameters and running statistics (train.ema) */
    bool averages;
    /* a Zero value; has no effect with one replica */
    int zero;
    /* how micro-batches are dealt to replicas that do not shard gradients */
    Deal deal;
    /* NCCL connects the ranks' GPUs; has no effect if operations use host memory */
    bool joined;
    /* ranks that share one parameter arena; 0: each rank has one */
    int param_sharers;
    /* block of each node, as graph_blocks returns it: activations inside a block are recomputed for
     * its backward. NULL: nothing is recomputed. Borrowed for the call. */
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
    /* chunks of this stage */
    int chunk_count;
    /* nodes where the model's chunks begin, then the node count; owned */
    int *first;
    /* chunks of this stage; owned */
    ChunkPlan *chunk;
    /* slot of each [local chunk][micro-batch]; owned */
    int *slot;
    /* index of the last task of each micro-batch in this stage's list; owned */
    int *last_task;
    /* most micro-batches of data in use at once */
    int batches_out;
    bool reads_data, reads_labels;
    /* Offset of each parameter's value in this stage's arena, in floats; -1: on another stage.
     * Frozen parameters come after all others. Owned. */
    int64_t *param_offset;
    /* Offset of each parameter's gradient in the gradient arena. It equals param_offset except for
     * a parameter tied to another one of this stage; -1: frozen, no gradient. Owned. */
    int64_t *gradient_offset;
    /* Offset at which backward writes each gradient. It equals gradient_offset, or with sharded
     * gradients it is an offset in the ring of buckets. Owned. */
    int64_t *micro_grad_offset;
    /* Offset at which operations read each parameter. It equals param_offset, or with gathered
     * parameters it is an offset in their ring. Owned. */
    int64_t *weight_offset;
    /* sizes of the parameter and gradient arenas, in floats */
    int64_t param_elements, gradient_elements;
    /* parameters that are not frozen, at the front of the parameter arena, in floats */
    int64_t trained_elements;
    /* size of the arena that backward writes to, in floats */
    int64_t micro_grad_elements;
    int64_t metrics_offset;
    /* offset of each node's repacked weights in the cache arena, in bytes; size_t[node_count],
     * owned */
    size_t *cache;
    int channel_depth;
    /* a Zero value; ZERO_NONE with one replica */
    int zero;
    /* how the gradients of micro-batches are added: DEAL_TURNS if they are sharded, and DEAL_BLOCKS
     * with one replica */
    Deal deal;
    /* true for a parameter that a parameter of another stage is tied to; bool[param_count],
     * owned */
    bool *tied_across;
    /* for each parameter, the bounds of the replicas' shards of the bucket that has its value,
     * borrowed from its ChunkPlan; NULL: the parameter is on another stage or frozen, or nothing is
     * sharded. The array is owned */
    const Bounds **param_shard;
    /* parameters are gathered: zero 3, and replicas have no memory in common */
    bool gathers;
    /* only filled if `gathers` */
    GatherPlan gather;
    /* sizes of a whole parameter arena and a whole gradient arena */
    size_t param_bytes, gradient_bytes;
    /* Number of arenas in which backward's gradients are added on this rank. */
    size_t sum_levels;
    /* Number of arenas of partial sums of this rank's shards between pushes; 0: nothing is
     * pushed. */
    size_t push_levels;
    /* This rank's part of the parameter arena, including the ring into which shards are
     * gathered. */
    size_t param_part_bytes;
    /* All gradient arenas, the optimizer state, and the average of parameters and running
     * statistics (0: there is none); if sharded, of the rank with the largest part. */
    size_t gradient_part_bytes, state_bytes, average_bytes;
    size_t activation_bytes, cache_bytes, workspace_bytes;
    /* Entries of the channels from other stages, and buffers for exchanging slices. */
    size_t message_bytes;
    /* Entries of the channels to other stages, for transports that keep them on both ends (MPI,
     * NCCL). */
    size_t sent_bytes;
    /* Host memory through which a GPU's slices and messages pass if NCCL does not connect the
     * GPUs. */
    size_t staged_bytes;
} Plan;

/* Sums of a step over all ranks, as floats, so counts are exact up to 2^24. The first ones are
 * FlatTable's loss_sums. */
enum {
    /* sum of the loss over its rows (samples or tokens) */
    METRIC_LOSS = LOSS_SUM,
    /* number of rows */
    METRIC_ROWS = LOSS_LINES,
    /* rows whose label is the likeliest class, and among the five likeliest */
    METRIC_TOP1 = LOSS_TOP1,
    METRIC_TOP5 = LOSS_TOP5,
    /* micro-batches that contained a sample */
    METRIC_MICROS = LOSS_ANY,
    /* sums of the loss's columns 1 and 2 over its rows (LossColumns) */
    METRIC_COLUMN1 = LOSS_COLUMN1,
    METRIC_COLUMN2 = LOSS_COLUMN2,
    /* ranks that request a stop, ranks that request a checkpoint, ranks that are still writing one,
     * and ranks with a pending request from a hook; see executor_request */
    METRIC_STOP = LOSS_SUMS,
    METRIC_SAVE,
    METRIC_SAVING,
    METRIC_REQUEST,
    /* ranks that have set their times, and seconds in each phase (Phase) */
    METRIC_TIMED,
    METRIC_PHASES,
    METRIC_COUNT = METRIC_PHASES + PHASE_COUNT,
    /* number of values that each rank sets */
    METRIC_REQUESTS = METRIC_COUNT - METRIC_STOP,
    METRIC_PAD = 32
};
/* The gradient arena holds the gradients of this stage's parameters at the offsets of their values
 * (for running statistics, the batch values), METRIC_PAD floats of metrics, and the gradients of
 * tied parameters. All are summed by the same tree. deal_number tells which micro-batches a replica
 * has. With sharded gradients (zero 2) no rank stores the whole arena:
 * backward writes each bucket to its place in a ring, and a push brings it into its owners' partial
 * sums. With gathered parameters a rank's shard of them has the same layout as its sums. */

/* Chooses the blocks to recompute, in the chunks that begin at first[0..chunks]. Returns for each
 * node the number of its block in its chunk, or -1. The choice depends on tensor sizes: ranks with
 * unequal slices of a model may choose differently and must agree on one rank's result. Owner: the
 * caller. */
int *graph_blocks(const Graph *graph, const int *first, int chunks);

/* Plans stage options->stage of the grid. Owner: the caller; graph and schedule are borrowed. */
Status plan_new(Plan **plan, const Graph *graph, const PlanOptions *options);
void plan_free(Plan **plan);
/* all memory that this rank uses */
size_t plan_bytes(const Plan *plan);
/* The part of a parameter of this stage that replica dp_rank updates: elements *first .. *first +
 * *count - 1, where *first is a multiple of FLAT_CHUNK; all elements if nothing is sharded. A tied
 * parameter has the same part as the one that it is tied to. */
void plan_shard(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
/* Offset, in arena 0 of replica dp_rank's partial sums, of the sum of element `at` of the gradient
 * arena. The element must lie in that replica's shard. */
int64_t plan_sum_offset(const Plan *plan, int64_t at, int dp_rank);
/* floats in the arena of sums of replica dp_rank */
int64_t plan_sum_elements(const Plan *plan, int dp_rank);
/* floats of replica dp_rank's shards of all buckets that are pushed; 0: nothing is pushed */
int64_t plan_push_elements(const Plan *plan, int dp_rank);
/* The same for parameters: the offset of element `at` in executor_params, and the number of floats
 * there. */
int64_t plan_local_offset(const Plan *plan, int64_t at, int dp_rank);
int64_t plan_local_elements(const Plan *plan, int dp_rank);
/* Returns true if replicas shard gradients, so that their micro-batches take turns. */
bool plan_shards_gradients(const Plan *plan);
/* Sums over the replicas for one micro-batch that a rank of the stage must wait for: how many, and
 * bytes in all. */
typedef struct ReplicaSums {
    int count;
    size_t bytes;
} ReplicaSums;
ReplicaSums plan_replica_sums(const Plan *plan);
void plan_print(const Plan *plan, FILE *out);

#endif
