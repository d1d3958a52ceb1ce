/* Interface between the planner's files, and what the runtime needs of them in addition to
 * pipeline.h. Planning is a pure function from numbers to a plan: nothing here runs, waits or
 * allocates memory of a step. */
#ifndef WEFT_PIPELINE_PLAN_H
#define WEFT_PIPELINE_PLAN_H

#include "pipeline.h"

enum { PLACE_ALIGN = 256 };

static inline size_t place_align(size_t bytes)
{
    return (bytes + PLACE_ALIGN - 1) / PLACE_ALIGN * PLACE_ALIGN;
}

/* Tensors in arenas of floats begin at multiples of 16. */
static inline int64_t align_floats(int64_t n)
{
    enum { ALIGN_FLOATS = 16 };
    return (n + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

/* chunk.c: fills a ChunkPlan, whose slots and buckets must be set already. before: plan of the
 * previous chunk if this stage has it, else NULL. */
Status chunk_plan(ChunkPlan *chunk, const ChunkPlan *before, const Graph *graph,
                  const Schedule *schedule, bool messages_wait, const int *block);

/* boundary.c: the messages over the boundary in front of node `boundary`, with places not set
 * yet. */
void boundary_activations(Message *message, const Graph *graph, int boundary);
void boundary_gradients(Message *message, const Graph *graph, int boundary);
/* Returns for each boundary the bytes of its message of activations if that is a single tensor and
 * no layer after the boundary needs what a layer before it saves; else 0. Owner: the caller. */
size_t *boundary_singles(const Graph *graph);

/* ring.c: plans where backward writes gradients and where their sums lie. Call it after buckets and
 * shards are planned. */
void plan_micro_grads(Plan *plan);
/* Offset of replica dp_rank's shard of a bucket in its arenas of partial sums; unspecified if it
 * has no shard of it. */
int64_t shard_offset(const ChunkPlan *chunk, int bucket, int dp_rank);
typedef struct Span {
    int64_t begin, end;
} Span;
/* Returns the lowest offset for `length` elements that overlaps none of the spans taken. */
int64_t place_lowest(const Span *taken, int count, int64_t length);
/* true if the bucket contains parameters whose values this stage stores, not only tied gradients or
 * metrics */
bool bucket_has_params(const Plan *plan, const ChunkPlan *c, int bucket);

/* gather.c: plans which buckets of parameters are gathered, when, and where to. Call it after
 * shards and action lists are planned. Sets plan->cache and plan->weight_offset. */
Status plan_gather(Plan *plan);
/* Returns the bucket with which the repacked weights of a node are made and dropped; -1: they
 * stay. */
int gather_bucket_of(const Plan *plan, const Node *node);
bool action_reads_params(const Plan *plan, const ChunkPlan *chunk, const Action *action);
/* Walks through the parameter uses of a schedule's list and tracks which buckets are in memory. All
 * replicas walk alike, because they gather together. */
typedef struct Window {
    /* plan and schedule are borrowed */
    const Plan *plan;
    /* schedule whose list is walked */
    const Schedule *schedule;
    /* next use: task in the list, and use relative to the first one of the task's pass */
    int task, use;
    /* buckets in memory or being gathered; int[here_count], owned */
    int here_count, *here;
} Window;
enum { GATHER_AHEAD = 2, WINDOW_MOST = GATHER_AHEAD + 2 * SPEC_PARAMS };
void window_init(Window *window, const Plan *plan);
void window_fini(Window *window);
void window_start(Window *window, const Schedule *schedule);
/* Advances to the next use; returns NULL at the end. Sets gather to the buckets whose gathering
 * must begin now, for this use or the ones after it. */
const ParamUse *window_next(Window *window, int gather[WINDOW_MOST], int *count);

/* shards.c: cuts the buckets of all chunks among the replicas, after the buckets are planned. */
void plan_shards(Plan *plan);
/* Returns the chunk of this stage that has element `at` of the gradient arena, and its bucket;
 * NULL: none. */
const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket);
size_t shard_elements(const Plan *plan, int dp_rank);
/* Weight of a parameter when buckets are made and cut: its elements, or for a parameter sliced over
 * a tensor-parallel group, those of the first rank's slice. */
int64_t shard_weight(const Plan *plan, int param);
/* A bucket with the parameters in it whose values this stage stores, in the order of their
 * numbers. */
typedef struct BucketParams {
    /* borrowed */
    int *param;
    int count;
    /* weight: sum over the parameters; begin, end: the bucket's range in the gradient arena */
    int64_t weight, begin, end;
} BucketParams;
int64_t shard_bound(const Plan *plan, const BucketParams *bucket, int64_t weight, int64_t *below);
/* true if the parameter is tied to one of another stage */
bool plan_tied_across(const Plan *plan, int param);
/* True if the parameter shares the value of another parameter of this stage. */
bool param_shares_memory(const Plan *plan, int param);

/* whole.c: sharding for updates that need whole tensors. whole_cut computes the boundaries of a
 * bucket's shards and updates load, the elements that each replica has so far; call it only if
 * whole_any_wanted. It returns false if the bucket is to be cut as usual. whole_state_bytes returns
 * the bytes of the rank with the most state. */
bool whole_wanted(const Plan *plan, int param);
bool whole_any_wanted(const Plan *plan);
bool whole_cut(const Plan *plan, const BucketParams *bucket, int64_t *load, int64_t *boundary);
size_t whole_state_bytes(const Plan *plan);

/* Returns true if operations use host memory. */
static inline bool plan_in_host_memory(const Plan *plan)
{
    return plan->graph->node[plan->graph->loss].op->backend->table->host_memory;
}

/* tensor_group.c: what the ranks of a tensor-parallel group add up at the end of a step: the
 * METRIC_REQUESTS request flags (METRIC_STOP and after), and the gradients of which each rank has
 * only a partial sum. */
/* Returns true if replica dp_rank must add up a part of a parameter's gradient over the group, and
 * which elements. */
bool plan_group_part(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
int64_t plan_group_floats(const Plan *plan, int dp_rank);
/* Bytes of the largest tensor that the group exchanges. summed: bytes of the floats that it adds
 * up. */
size_t plan_largest_exchange(const Plan *plan, size_t summed);
/* Size of a piece in which slices pass through host memory, and entries of each channel between two
 * ranks. */
enum { EXCHANGE_PIECE_BYTES = 128 << 10, EXCHANGE_DEPTH = 2 };
/* adds the group's exchange buffers to the plan's memory */
void tensor_group_memory(Plan *plan, bool joined);

/* replicas.c: sums over the replicas within a micro-batch, for synced operations. They go up a tree
 * of the ranks and down again, in pieces of this size; each channel has this number of entries. */
enum { REPLICA_PIECE_BYTES = 8 << 10, REPLICA_DEPTH = 2 };
/* number of children of `rank` in a tree of `size` ranks; they are rank + 1, rank + 2, rank + 4,
 * ... */
int replica_children(int rank, int size);
/* adds the channels' entries to the plan's memory */
void replica_sums_memory(Plan *plan);

/* links.c: the channels between the stages of a replica, the same list on all ranks: for each
 * boundary in front of chunk 1, 2, ... one channel for activations, then one for gradients; then
 * for each parameter that is tied to one of another stage, in order, one channel from the owner's
 * stage and one to it. Empty with one stage. */
typedef struct Links {
    /* count channels; owned */
    ChannelSpec *spec;
    int count;
} Links;
/* Returns ERR_CONFIG if parameters of more than two stages are tied together. Release with
 * links_fini, also after an error. */
Status links_init(Links *links, const Plan *plan);
void links_fini(Links *links);
/* Returns true if the parameter is tied to one of another stage and is trained. */
bool plan_ties_stages(const Plan *plan, int param);
/* Adds the memory of exactly these channels to the plan. */
Status links_memory(Plan *plan, bool joined);

/* slots.c: memory that follows from the stage's list of tasks. */
void plan_slots(Plan *plan);
/* Returns true if another task may run between a message of the stage and the computation that it
 * belongs to. */
bool messages_may_wait(const Schedule *schedule, int stage);
/* Fills last_task[micro] with the index of the micro-batch's last task in the stage's list. Returns
 * the most micro-batches of data in use at once. */
int tasks_batches_out(const Schedule *schedule, int stage, int *last_task);

#endif
