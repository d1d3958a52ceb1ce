/* pipeline: from a planned graph, a cut and a schedule to what one rank does in a step: memory,
 * messages, lists of actions; and the loop that runs them. A plan is read-only data: it can be
 * printed and measured without running, for any stage of any grid. Planning is not collective;
 * running is, over the ranks of the grid. A rank's stage has one or more chunks of the model. A
 * chunk has up to three passes (forward, backward, and the weights' half of backward where the
 * schedule splits it), each a list of actions on nodes. What a pass leaves for a later one lies in
 * a slot, one a micro-batch in flight; the rest in scratch memory that all chunks share. */
#ifndef WEFT_PIPELINE_H
#define WEFT_PIPELINE_H

#include "data.h"
#include "model.h"
#include "parallel.h"
#include "schedule.h"

/* The words of grid.zero: what replicas shard, each with all before it; and of grid.recompute. */
#define ZERO_WORDS(W)                                                                              \
    W(ZERO_NONE, "0") W(ZERO_STATE, "1") W(ZERO_GRADIENTS, "2") W(ZERO_PARAMS, "3")
#define RECOMPUTE_WORDS(W)                                                                         \
    W(RECOMPUTE_NONE, "none") W(RECOMPUTE_BLOCK, "block") W(RECOMPUTE_AUTO, "auto")
typedef enum Zero { ZERO_WORDS(LIST_CONSTANT) } Zero;
typedef enum Recompute { RECOMPUTE_WORDS(LIST_CONSTANT) } Recompute;
enum { PIPELINE_WORDS = 2 };
extern const ConfigWords pipeline_words[PIPELINE_WORDS];

typedef enum ActionKind {
    /* of run `index` */
    ACTION_FORWARD,
    /* its backward_begin, _weight (unless it is frozen), _data */
    ACTION_BACKWARD,
    /* without _weight where that can wait */
    ACTION_BACKWARD_DATA,
    /* what has waited; or the gradients in RunOffsets.dw to the arena; or statistics alone, where
     * no gradient comes so far */
    ACTION_BACKWARD_WEIGHT,
    /* dst = src */
    ACTION_COPY,
    /* dst += src: a gradient with several consumers, in node order */
    ACTION_ADD,
    /* From here on gradients of bucket `index` are written: waits until its memory is free. */
    ACTION_OPEN,
    /* The next actions read the parameters of use `index`: waits until they are here, and begins to
     * gather those that come after (where they are gathered). */
    ACTION_GATHER,
    /* The joins of this micro-batch for bucket `index`; after the last one the sum begins. Where
     * gradients are sharded its push begins, with each micro-batch. */
    ACTION_BUCKET,
} ActionKind;
typedef struct Action {
    ActionKind kind;
    /* run, bucket, or use */
    int index;
    /* ACTION_COPY, ACTION_ADD: places, elements */
    int64_t dst, src, count;
    /* of these */
    DType type;
} Action;
typedef enum Pass { PASS_FORWARD, PASS_BACKWARD, PASS_WEIGHT, PASSES } Pass;
typedef struct ActionList {
    int count;
    /* owned */
    Action *action;
} ActionList;

/* A place: bytes from the start of the chunk's slot, or, from kept_bytes on, of the scratch memory;
 * from OFFSET_BEFORE on, of the slot that the micro-batch has in the chunk before, on the same
 * stage. OFFSET_INPUT: the data itself. */
enum { OFFSET_NONE = -1, OFFSET_INPUT = -2 };
#define OFFSET_BEFORE ((int64_t)1 << 60)
/* Where the tensors of one run of a node lie. Tensors that are never alive together share memory. A
 * node runs once, or, in a block that is recomputed, a second time for backward, which then belongs
 * to the second run. */
typedef struct RunOffsets {
    int node;
    int64_t x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS];
    /* OFFSET_NONE: in the gradient arena; of a frozen parameter: nowhere, or where an operation may
     * leave it */
    int64_t dw[SPEC_PARAMS];
    /* dw is written with dx, and copied to the arena later */
    bool dw_waits;
    /* as OpRun's */
    bool dx_add;
} RunOffsets;

/* Tensors that cross a boundary between chunks together, as one message. */
typedef struct BoundaryTensor {
    /* whose output, or output's gradient */
    int node;
    /* in this chunk */
    int64_t offset;
    /* in the message */
    size_t at, bytes;
} BoundaryTensor;
typedef struct Message {
    int count;
    /* owned; in node order */
    BoundaryTensor *tensor;
    /* a multiple of 64 */
    size_t bytes;
} Message;

/* Buckets of parameters that a node reads together: numbers in GatherPlan.bucket. */
typedef struct ParamUse {
    int count, bucket[SPEC_PARAMS];
} ParamUse;

typedef struct ChunkPlan {
    /* of the model */
    int chunk;
    /* nodes first .. last-1 */
    int first, last;
    ActionList pass[PASSES];
    int run_count;
    /* owned */
    RunOffsets *run;
    /* from the chunk before, to the one after */
    Message activations_in, activations_out;
    /* from the chunk after, to the one before */
    Message gradients_in, gradients_out;
    size_t kept_bytes, scratch_bytes;
    int slots;
    /* owned; in the order in which they fill */
    Buckets buckets;
    /* owned, one a bucket: backward's first node that writes to it */
    int *opens;
    /* owned: the buckets by their offset in the gradient arena, lowest first */
    int *bucket_order;
    /* its first bucket carries the metrics */
    bool metrics;
    /* Where replicas shard, one a bucket; NULL: they do not. All owned: how it is cut; and where
     * they shard gradients, where it begins in the arena that backward writes to, and where the
     * shards that the cut keeps lie in the arenas of sums of the ranks whose they are. */
    Bounds *shard;
    int64_t *ring, **shard_offset;
    /* Where parameters are gathered: what the passes read, each from use_first[pass] to
     * use_first[pass + 1]. Owned */
    ParamUse *use;
    int use_first[PASSES + 1];
} ChunkPlan;

/* Where replicas shard parameters and each has its own memory (zero 3): a rank holds its shard of
 * the parameters; what a pass reads is gathered from all of them, a bucket at a time, to the
 * bucket's place in a ring, and dropped when another one needs that memory. So are the other forms
 * of the bucket's weights, in a ring of their own. */
typedef struct ParamBucket {
    /* among the stage's parameters */
    int64_t offset, elements;
    /* borrowed from the chunk */
    const Bounds *shard;
    /* in the ring of parameters, in floats */
    int64_t ring_offset;
    /* in the ring of other forms, in bytes */
    int64_t cache, cache_bytes;
} ParamBucket;
typedef struct GatherPlan {
    /* of buckets, of all chunks of the stage */
    int count;
    /* owned */
    ParamBucket *bucket;
    /* owned, one a parameter: that of its value; -1: on other stages, or frozen */
    int *bucket_of;
    /* of the ring of parameters, and behind it, in the same memory, of the frozen ones: all have
     * them whole */
    int64_t elements, frozen;
    /* that are gathered in a step, */
    double step_elements;
    /* so many buckets in all */
    int64_t step_gathers;
} GatherPlan;

/* What planning must know of a parameter's update, where parameters differ in that. */
typedef struct ParamUpdate {
    /* of state */
    int slots;
    /* of a slot's size, where replicas shard */
    bool scratch;
    /* one replica has it all: gradient, state and value are not cut */
    bool whole;
    /* Beside its state and one more of it as it is stored, its update takes this, and slices of it:
     * once, for the one that needs most of each. */
    size_t whole_bytes, slice_bytes;
} ParamUpdate;

typedef struct PlanOptions {
    GridShape shape;
    int stage;
    /* borrowed; chunks and micros of a replica */
    const Schedule *schedule;
    /* from its simulation */
    int channel_depth;
    /* borrowed: nodes where chunks begin, as graph_partition gives them */
    const int *first;
    size_t bucket_bytes;
    /* the optimizer's, for the sum of memory; */
    int state_slots;
    /* and whether a share needs scratch of a slot's size */
    bool state_scratch;
    /* one a parameter; borrowed by the plan, in place of those two. NULL: they hold */
    const ParamUpdate *updates;
    /* Zero, of the config. Means nothing for one replica */
    int zero;
    /* NCCL joins the ranks' GPUs; of no account in host memory */
    bool joined;
    /* ranks that have one parameter arena in common; 0: each has its own */
    int param_sharers;
    /* borrowed for the call, as graph_blocks gives it: activations inside a block are made again
     * for its backward, not kept. NULL: all are kept */
    const int *block;
} PlanOptions;

typedef struct Plan {
    /* borrowed */
    const Graph *graph;
    /* borrowed; or NULL */
    const ParamUpdate *updates;
    GridShape shape;
    int stage;
    /* borrowed */
    const Schedule *schedule;
    /* of this stage */
    int chunk_count;
    /* owned: nodes where the model's chunks begin, and the end */
    int *first;
    /* owned */
    ChunkPlan *chunk;
    /* owned: slot of [local chunk][micro] */
    int *slot;
    /* owned: of each micro, its last place in this stage's list */
    int *last_task;
    /* micro-batches of data held at a time, at most */
    int batches_out;
    bool reads_data, reads_labels;
    /* Owned, one a parameter: offset of its value here, in floats; -1: on other stages. Those that
     * are frozen come behind the others. */
    int64_t *param_offset;
    /* Owned: of its gradient. The same but for one that is tied to a parameter of this stage; -1:
     * it has none, for it is frozen. */
    int64_t *gradient_offset;
    /* Owned: where backward writes it. The same, but with sharded gradients: in the ring of
     * buckets. */
    int64_t *micro_grad_offset;
    /* Owned: where operations read it. The same, but where parameters are gathered: in their
     * ring. */
    int64_t *weight_offset;
    /* of the arenas */
    int64_t param_elements, gradient_elements;
    /* of param_elements, the first: those that are not frozen */
    int64_t trained_elements;
    /* of the one that backward writes to */
    int64_t micro_grad_elements;
    int64_t metrics_offset;
    /* owned, one a node: offset in the cache arena */
    size_t *cache;
    int channel_depth;
    /* Zero; ZERO_NONE for one replica */
    int zero;
    /* Owned, one a parameter: one of those that are tied to it is of another stage. */
    bool *tied_across;
    /* Owned, one a parameter: how the bucket that has its value is cut, borrowed from its
     * ChunkPlan; NULL: of another stage, frozen, or nothing is sharded. */
    const Bounds **param_shard;
    /* zero 3, and replicas have no memory in common */
    bool gathers;
    /* where it is so */
    GatherPlan gather;
    /* of one whole arena */
    size_t param_bytes, gradient_bytes;
    /* arenas of partial sums */
    size_t sum_levels;
    /* Of the parameter arena, what counts for one rank; with the ring into which shards are
     * gathered. */
    size_t param_part_bytes;
    /* All arenas of gradients, and the optimizer's state; where sharded, of the rank that has
     * most. */
    size_t gradient_part_bytes, state_bytes;
    size_t activation_bytes, cache_bytes, workspace_bytes;
    /* Entries of channels from other stages, and what slices take. */
    size_t message_bytes;
    /* Entries of channels to other stages, where these are at both ends: MPI, NCCL. */
    size_t sent_bytes;
    /* Of the host's memory: through which a GPU's slices and messages go, where it is not
     * joined. */
    size_t staged_bytes;
} Plan;

/* A step's sums over all ranks. They are floats: counts are exact up to 2^24. The first ones are
 * FlatTable's loss_sums. */
enum {
    /* over the loss's rows: samples, or tokens */
    METRIC_LOSS = LOSS_SUM,
    /* how many */
    METRIC_ROWS = LOSS_LINES,
    /* right ones */
    METRIC_TOP1 = LOSS_TOP1,
    METRIC_TOP5 = LOSS_TOP5,
    /* micro-batches that held a sample */
    METRIC_MICROS = LOSS_ANY,
    /* ranks that ask all to stop, and to save, that are busy with a save, and that have a wish of a
     * hook's to tell: see executor_ask */
    METRIC_STOP,
    METRIC_SAVE,
    METRIC_SAVING,
    METRIC_WISH,
    METRIC_COUNT,
    METRIC_ASKED = METRIC_COUNT - METRIC_STOP,
    METRIC_PAD = 16
};
/* The gradient arena: the gradients of this stage's parameters at the offsets of their values, with
 * running statistics' batch values; METRIC_PAD floats of metrics; gradients of tied parameters. All
 * are summed by the same tree. Where gradients are sharded (zero 2) nobody has it whole. Replica
 * r's micro-batch number i is micro-batch i * dp + r of all; backward writes each bucket to its
 * place in a ring, and a push brings it into its owners' partial sums. Where parameters are
 * gathered, a rank's shard of them lies as their sums do. */

/* What is worth to be made again, in the chunks that begin at first[0..chunks]: for each node the
 * number of its block in its chunk, or -1. Decided by sizes: ranks with unequal slices of a model
 * may find different ones, and must take one's. Owner: the caller. */
int *graph_blocks(const Graph *graph, const int *first, int chunks);

/* What the stage options->stage of the grid does. Owner: the caller; graph and schedule are
 * borrowed. */
Status plan_new(Plan **plan, const Graph *graph, const PlanOptions *options);
void plan_free(Plan **plan);
/* all of it that this rank touches */
size_t plan_bytes(const Plan *plan);
/* What of a parameter of this stage replica dp_rank updates: elements *first .. *first + *count,
 * *first a multiple of FLAT_CHUNK; all of it where nothing is sharded. A tied one's are those of
 * what it is tied to. */
void plan_shard(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
/* Where replica dp_rank has the sum of what lies at place `at` of the gradient arena and is its
 * share, in arena 0. */
int64_t plan_sum_offset(const Plan *plan, int64_t at, int dp_rank);
/* of one arena of its sums */
int64_t plan_sum_elements(const Plan *plan, int dp_rank);
/* The same of the parameters: where what lies at `at` is in executor_params, and how many are
 * there. */
int64_t plan_local_offset(const Plan *plan, int64_t at, int dp_rank);
int64_t plan_local_elements(const Plan *plan, int dp_rank);
/* Do replicas shard gradients, so that their micro-batches take turns? */
bool plan_shards_gradients(const Plan *plan);
/* What a rank of the stage sums with the other replicas' for one micro-batch, waiting for each: how
 * many times, and bytes in all. */
typedef struct ReplicaSums {
    int count;
    size_t bytes;
} ReplicaSums;
ReplicaSums plan_replica_sums(const Plan *plan);
void plan_print(const Plan *plan, FILE *out);

/* A device has memory for so many micro-batches of data beside those that are worked on: they are
 * copied there meanwhile. */
enum { DATA_AHEAD = 1 };

/* The memory a plan runs in, and the loop over its tasks. */
typedef struct Executor Executor;
typedef struct ExecutorOptions {
    uint64_t seed;
    /* of the messages between stages */
    int transport;
} ExecutorOptions;
/* comm: over grid->dp_world; its arena, of plan->micro_grad_elements, is what backward writes to.
 * Owner: the caller; all arguments are borrowed. Collective on the grid; all ranks agree. */
Status executor_new(Executor **executor, const Plan *plan, const Grid *grid, Backend *backend,
                    Comm *comm, ExecutorOptions options);
/* Collective. */
void executor_free(Executor **executor);
/* The parameter arena; borrowed. Where plan->zero says so it is comm->params: a rank updates its
 * share (plan_shard), and where comm->params_shared, one of the replicas alone sets the rest. Where
 * parameters are gathered it is this rank's shard alone. plan_local_offset says what lies where. */
float *executor_params(Executor *executor);
/* What this rank has there of a parameter of its stage: all of it, or where parameters are gathered
 * its share. Borrowed. */
float *executor_param(Executor *executor, int param);
/* Sets it from the whole value, stored order, host memory. */
void executor_set_param(Executor *executor, int param, const float *stored);
/* Call after the parameters changed: brings the other replicas' shares, where there are any, or
 * forgets what was gathered. Collective on grid->dp_world. */
void executor_params_changed(Executor *executor);
/* Where micro-batches of data come from: a loader, as a rule. */
typedef struct BatchSource {
    void *user;
    /* as loader_next */
    Status (*next)(void *user, const Batch **batch, double *wait_s);
    /* as loader_release */
    void (*release)(void *user);
} BatchSource;
/* borrowed */
BatchSource loader_source(Loader *loader);
/* What a step has of its own. */
typedef struct StepOf {
    /* keys the dropout */
    uint64_t step;
    /* 1/(rows of the global batch), times fp16's loss scale */
    float scale;
    /* of the global batch, that hold a sample */
    int micros;
    /* true where the last of these micro-batches holds one sample only */
    bool last_single;
} StepOf;
/* The schedule's tasks for one step: micro-batches from the source, forward, backward, messages;
 * each bucket's sum over the replicas begins when it is full. On a device all of it is queued, and
 * the host goes on: a micro-batch goes back to the source when it has been copied, at a later one
 * or in executor_settle. wait_s: as loader_next has it. The source's errors come out here.
 * Collective. */
Status executor_forward_backward(Executor *executor, const BatchSource *source, const StepOf *of,
                                 double *wait_s);
/* The rest of a step: waits for the sums of gradients and adds up what tensor groups and tied
 * parameters have in parts. Collective. */
void executor_reduce(Executor *executor);
/* The step counts: moves the running statistics. */
void executor_move_statistics(Executor *executor, const StepOf *of);
/* From the next step on, does executor_reduce look for gradients that are infinite or no numbers?
 * Then it waits for the step's statistics. */
void executor_find_overflow(Executor *executor, bool yes);
/* The METRIC_COUNT sums over all ranks of the last step (behind 0) or the one before (1); waits
 * until they are there. Host, borrowed until the next call of the executor. Collective. */
const float *executor_metrics(Executor *executor, int behind);
/* Are the last step's gradients of no use? false where executor_find_overflow has not been said.
 * The same on all ranks. */
bool executor_overflowed(const Executor *executor);
/* From the next step on, takes a hash of what this rank puts into the step's sums: of each tensor's
 * gradient its first values. On a device, which the host would have to wait for, it is 0. */
void executor_hash_steps(Executor *executor, bool yes);
/* Of the last step. */
uint64_t executor_step_hash(const Executor *executor);
/* What is infinite or no number in a step, and first of all, of what this rank has computed. */
enum { FAULT_SAMPLES = 8 };
typedef struct StepFault {
    /* whose output, or in backward whose input's gradient; -1: nothing */
    int node;
    /* in backward: its parameter whose gradient it is; else -1 */
    int param;
    bool backward;
    /* of all micro-batches; how many samples of it, and the first ones; none for a parameter */
    int micro, sample_count;
    int64_t sample[FAULT_SAMPLES];
    /* micro; but of micro-batches that have statistics in common, and so infect each other, the
     * number that these have among all such */
    int turn;
    /* The largest loss of a sample, and whose; -1: the stage has no loss. */
    double largest;
    int64_t largest_sample;
} StepFault;
/* Forward before backward, turns in their order, in a turn a layer before those that read it;
 * nothing comes last. */
bool step_fault_before(const StepFault *a, const StepFault *b);
/* From the next step on, every number is looked at, and *fault says what was found; slow. NULL:
 * none is. Borrowed until then. */
void executor_probe(Executor *executor, StepFault *fault);
/* All micro-batches go back to their sources. Before one of these goes. */
void executor_settle(Executor *executor);
/* Gradient arena 0, summed after executor_reduce, tied ones added; borrowed. plan_sum_offset says
 * what lies where. */
float *executor_grads(Executor *executor);
/* What a rank has to say to all: from METRIC_STOP on a metric of the coming step counts those who
 * say so, so that all learn it at the same step's end. */
void executor_ask(Executor *executor, int metric, bool yes);
/* Forward only, with running statistics, of as many micro-batches as a step has. On ranks that hold
 * the loss, take is called for each with its per-sample results, columns (rows, LOSS_COLUMNS),
 * host. Collective. */
Status executor_evaluate(Executor *executor, const BatchSource *source,
                         void (*take)(void *user, const Batch *batch, const float *columns),
                         void *user);
/* What the loss was made of: the logits of the last micro-batch that executor_evaluate saw, (N,K)
 * or (N,T,K), host, borrowed until the next call of the executor. NULL on ranks without the
 * loss. */
const float *executor_logits(Executor *executor);

#endif
