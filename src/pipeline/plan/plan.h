/* Functions of the planner that the files of plan/ and run/ call, in addition to the functions of
 * pipeline.h. They only compute offsets, sizes and lists; they do not wait or allocate the memory
 * of a step. */
#ifndef WEFT_PIPELINE_PLAN_H
#define WEFT_PIPELINE_PLAN_H

#include "pipeline.h"

/* Alignment of places in slots and scratch memory, in bytes. */
enum { PLACE_ALIGN = 256 };

static inline size_t place_align(size_t bytes)
{
    return (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* chunk.c: plans the passes of a chunk. The caller has set the fields `chunk`, `first`, `end`,
 * `slots`, `buckets` and `opening_node` of *chunk; chunk_plan sets the action lists, runs, messages
 * and sizes. previous: plan of the previous chunk if this stage has it, else NULL. messages_wait:
 * the result of messages_may_wait. block: the result of graph_blocks; NULL: nothing is recomputed.
 * ERR_BUG: a tensor of a message has no place. */
Status chunk_plan(ChunkPlan *chunk, const ChunkPlan *previous, const Graph *graph,
                  const Schedule *schedule, bool messages_wait, const int *block);

/* boundary.c: these functions list in *message the outputs that cross the boundary before node
 * `boundary`, or the gradients that cross it in backward. The tensors' places are OFFSET_NONE until
 * chunk_plan sets them. The caller owns message->tensor. */
void boundary_activations(Message *message, const Graph *graph, int boundary);
void boundary_gradients(Message *message, const Graph *graph, int boundary);
/* Returns for each boundary the bytes of its message of activations, [node_count + 1]; entry i
 * belongs to the boundary before node i. The entry is 0 if no tensor or more than one crosses the
 * boundary, or if a layer after the boundary reads the saved tensor of a layer before it. Owner:
 * the caller. */
size_t *boundary_singles(const Graph *graph);

/* ring.c: plans the offsets at which backward writes gradients and, if sums are pushed
 * (plan_pushes), the offsets of each rank's shards in its arenas of partial sums. Call it after
 * buckets and shards have been planned. */
void plan_micro_grads(Plan *plan);
/* Returns the shards into which a bucket is cut for pushes, one for each replica. */
static inline const Bounds *push_bounds(const ChunkPlan *chunk, int bucket)
{
    return chunk->shard ? &chunk->shard[bucket] : &chunk->push_shard[bucket];
}
/* Returns the run that contains micro-batch `micro`. A run is a number of consecutive micro-batches
 * whose gradients this rank adds before other ranks' gradients are added (Deal). */
static inline MicroRun plan_micro_run(const Plan *plan, int micro)
{
    return deal_micro_run(plan->deal, micro, plan->schedule->shape.micro_batches);
}
/* Returns true if the sum of each run of micro-batches is pushed to the owners of its shards. If
 * false, the rank has one run, and its sum is all-reduced or reduce-scattered. */
static inline bool plan_pushes(const Plan *plan)
{
    return plan_shards_gradients(plan) ||
           deal_runs(plan->deal, plan->schedule->shape.micro_batches) > 1;
}
/* Returns the offset of replica dp_rank's shard of a bucket in that replica's arenas of partial
 * sums; unspecified if the replica has no shard of the bucket. */
int64_t shard_offset(const ChunkPlan *chunk, int bucket, int dp_rank);
/* A range of offsets, from begin to end - 1. */
typedef struct Span {
    int64_t begin, end;
} Span;
/* Returns the lowest offset at which `length` elements do not overlap any span of taken[count]. */
int64_t place_lowest(const Span *taken, int count, int64_t length);
/* Returns true if the bucket contains parameters whose values this stage stores; false if it
 * contains only tied gradients or metrics. */
bool bucket_has_params(const Plan *plan, const ChunkPlan *c, int bucket);

/* gather.c: plans which buckets of parameters are gathered, when, and to which places. Call it
 * after shards and action lists are planned. Sets plan->gather, plan->weight_offset,
 * plan->cache_offset and plan->cache_bytes, and inserts ACTION_GATHER into the action lists. */
Status plan_gather(Plan *plan);
/* Returns the bucket (index into GatherPlan.bucket) after whose gathering the node's weights must
 * be repacked; -1: no bucket, so they are repacked only after updates. */
int gather_bucket_of(const Plan *plan, const Node *node);
/* Returns true if the action reads values of parameters. In backward only the computation of
 * gradients of inputs reads them. */
bool action_reads_params(const Plan *plan, const ChunkPlan *chunk, const Action *action);
/* Position in the list of parameter uses of a schedule, and the buckets that are in memory at this
 * position. All replicas visit the same uses in the same order, because they gather together. */
typedef struct Window {
    /* borrowed */
    const Plan *plan;
    /* schedule whose list is visited; borrowed */
    const Schedule *schedule;
    /* position in the list of the task that has the next use */
    int task;
    /* index of the next use among the uses of that task's pass */
    int use;
    /* number of buckets that are in memory or being gathered */
    int here_count;
    /* indices of the buckets that here_count counts, [plan->gather.count + 1]; owned */
    int *here;
} Window;
/* GATHER_AHEAD: number of buckets that are gathered in advance. WINDOW_MOST: largest number of
 * buckets that window_next can return. */
enum { GATHER_AHEAD = 2, WINDOW_MOST = GATHER_AHEAD + 2 * SPEC_PARAMS };
void window_init(Window *window, const Plan *plan);
void window_fini(Window *window);
/* Moves to the start of a schedule's list. The buckets in memory do not change. */
void window_start(Window *window, const Schedule *schedule);
/* Advances to the next use and returns it; returns NULL at the end. Writes to `gather` the indices
 * of the buckets whose gathering must begin now, for this use or later ones, and to *count their
 * number. */
const ParamUse *window_next(Window *window, int gather[WINDOW_MOST], int *count);

/* shards.c: cuts the buckets of all chunks among the replicas, after the buckets are planned. */
void plan_shards(Plan *plan);
/* plan.c. Returns the chunk of this stage whose buckets contain element `at` of the gradient arena,
 * and sets *bucket to the index of the bucket; returns NULL if no chunk of this stage contains
 * it. */
const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket);
/* shards.c. Returns the number of floats that one optimizer state slot needs for the shards of
 * replica dp_rank; the part of each tensor is padded. statistics = true: includes shards of running
 * statistics. */
size_t shard_elements(const Plan *plan, int dp_rank, bool statistics);
/* Returns the weight of a parameter, by which buckets are made and cut: the number of its elements,
 * padded. For a parameter that is sliced over a tensor-parallel group, it is the number in the
 * first rank's slice. */
int64_t shard_weight(const Plan *plan, int param);
/* A bucket and its parameters whose values this stage stores, in ascending order. */
typedef struct BucketParams {
    /* numbers of the parameters, [count]; borrowed */
    int *param;
    int count;
    /* sum of shard_weight over the parameters */
    int64_t weight;
    /* the bucket's range in the gradient arena */
    int64_t begin, end;
} BucketParams;
/* Returns an offset in the gradient arena at which a shard of the bucket may begin. Of all such
 * offsets, chooses the offset for which the weight of the parameters before it is nearest to
 * `weight`. *below: the weight before the chosen offset. */
int64_t shard_bound(const Plan *plan, const BucketParams *bucket, int64_t weight, int64_t *below);
/* Returns true if a parameter on another stage shares the value of this parameter: one of the two
 * is tied to the other, or both are tied to the same parameter. */
bool plan_tied_across(const Plan *plan, int param);
/* plan.c. Returns true if the parameter is tied to a parameter of this stage. It then uses the
 * value of that parameter. */
bool param_shares_memory(const Plan *plan, int param);

/* whole.c: sharding for updates that need whole tensors. */
/* Returns true if one replica must have the whole parameter (ParamUpdate.is_uncut). */
bool param_is_whole(const Plan *plan, int param);
/* Returns true if param_is_whole is true for any parameter. */
bool any_param_is_whole(const Plan *plan);
/* Computes the limits of a bucket's shards, boundary[dp + 1]: replica r's shard is boundary[r] to
 * boundary[r + 1] - 1. load[r]: weight of replica r's shards so far, to which the weight of the new
 * shard is added; it is not added for a parameter that is tied to a parameter of another stage.
 * Returns false, and changes nothing, if the bucket must be cut as in shards.c. Call it only if
 * any_param_is_whole. */
bool whole_cut(const Plan *plan, const BucketParams *bucket, int64_t *load, int64_t *boundary);
/* Returns the bytes of optimizer state, scratch and temporary memory of updates on the replica that
 * needs the most. */
size_t whole_state_bytes(const Plan *plan);

/* Returns true if operations use host memory. */
static inline bool plan_in_host_memory(const Plan *plan)
{
    return plan->graph->node[plan->graph->loss_node].op->backend->table->host_memory;
}

/* tensor_group.c. At the end of a step the ranks of a tensor-parallel group add up these floats:
 * the METRIC_REQUESTS metrics from METRIC_STOP on, and gradients of which each rank has only a
 * partial sum. */
/* Returns true if replica dp_rank must add up a part of the parameter's gradient over the group:
 * elements *first .. *first + *count - 1. */
bool plan_group_part(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
/* Returns the number of floats that replica dp_rank adds up over the group. */
int64_t plan_group_floats(const Plan *plan, int dp_rank);
/* Returns the bytes of the largest tensor that the group exchanges. summed: bytes of the floats
 * that the group adds up at the end of a step. */
size_t plan_largest_exchange(const Plan *plan, size_t summed);
/* EXCHANGE_PIECE_BYTES: bytes of the pieces in which slices are exchanged in host memory.
 * EXCHANGE_DEPTH: number of slots of each channel between two ranks of the group. */
enum { EXCHANGE_PIECE_BYTES = 128 << 10, EXCHANGE_DEPTH = 2 };
/* Returns true if the ranks of a tensor-parallel group add their parts of a sum in the order of a
 * binary tree; false: in the order of ranks. */
bool plan_sums_by_tree(const Plan *plan);
/* Returns the bytes of the partial sums that an exchange of `ranks` ranks in host memory keeps for
 * a piece. */
size_t exchange_sum_bytes(int ranks);
/* Adds the group's exchange buffers to the plan's memory. gpus_joined: see PlanOptions. */
void tensor_group_memory(Plan *plan, bool gpus_joined);

/* replicas.c: sums over the replicas within a micro-batch, for synced operations. The sums move up
 * a tree of the ranks and down again, in pieces of REPLICA_PIECE_BYTES; each channel has
 * REPLICA_DEPTH slots. */
enum { REPLICA_PIECE_BYTES = 8 << 10, REPLICA_DEPTH = 2 };
/* Returns the number of children of `rank` in a tree of `size` ranks. The children are rank + 1,
 * rank + 2, rank + 4, ... */
int replica_children(int rank, int size);
/* Adds the channels' slots to the plan's memory. */
void replica_sums_memory(Plan *plan);

/* links.c: the channels between the stages of a replica, the same list on all ranks. First come the
 * channels of the boundaries before chunk 1, 2, ...: each boundary whose two sides are on different
 * stages has one channel for activations and then one for gradients. Then come the channels of each
 * trained parameter that is tied to a parameter of another stage, its owner: one channel from the
 * owner's stage and then one to it. The list is empty with one stage. */
typedef struct Links {
    /* the channels, [count]; owned */
    ChannelSpec *spec;
    int count;
} Links;
/* Lists the channels. ERR_CONFIG: two parameters that are tied to the same owner are not on its
 * stage. Release with links_fini, also after an error. */
Status links_init(Links *links, const Plan *plan);
void links_fini(Links *links);
/* Returns true if the parameter is tied to a parameter of another stage and is trained. */
bool plan_ties_stages(const Plan *plan, int param);
/* Adds the memory of the channels to the plan. gpus_joined: see PlanOptions. Errors as in
 * links_init. */
Status links_memory(Plan *plan, bool gpus_joined);

/* slots.c: sets plan->slot, plan->last_task, plan->batches_in_use and the `slots` of each chunk. */
void plan_slots(Plan *plan);
/* Returns true if another task may run between a message of the stage and the pass that produces or
 * reads it. */
bool messages_may_wait(const Schedule *schedule, int stage);
/* Fills last_task[micro] with the index of the micro-batch's last task in the stage's list. Returns
 * the largest number of micro-batches of data that are in use at the same time. */
int tasks_batches_out(const Schedule *schedule, int stage, int *last_task);

#endif
