/* The planner's files among themselves, and what the runtime asks them beside pipeline.h. Planning
 * is pure: numbers in, a plan out; nothing here runs, waits or holds memory of a step. */
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

/* chunk.c: fills a ChunkPlan but for slots and buckets, which it must have already. before: the
 * chunk before, planned, where the stage has it; NULL: another stage does. */
Status chunk_plan(ChunkPlan *chunk, const ChunkPlan *before, const Graph *graph,
                  const Schedule *schedule, bool apart, const int *block);

/* boundary.c: the messages over the boundary in front of node `boundary`; places are not set. */
void boundary_activations(Message *message, const Graph *graph, int boundary);
void boundary_gradients(Message *message, const Graph *graph, int boundary);
/* For each boundary: the bytes of its message of activations where that is a single tensor, and no
 * layer behind the boundary needs what one before it saves; else 0. Owner: the caller. */
size_t *boundary_singles(const Graph *graph);

/* ring.c: where backward writes gradients, and where their sums lie; once buckets, and shares, are
 * known. */
void plan_micro_grads(Plan *plan);
/* Where replica dp_rank's shard of a bucket lies in its arenas of sums; anywhere, where it has
 * none. */
int64_t shard_offset(const ChunkPlan *chunk, int bucket, int dp_rank);
typedef struct Span {
    int64_t begin, end;
} Span;
/* The lowest place for `length` that meets none of the spans taken. */
int64_t place_lowest(const Span *taken, int count, int64_t length);
/* of its own */
bool bucket_has_params(const Plan *plan, const ChunkPlan *c, int bucket);

/* gather.c: where parameters are gathered, which, when and to where; once shares and lists are
 * known. Sets cache and weight_offset. */
Status plan_gather(Plan *plan);
/* With which bucket a node's other forms of its weights come and go; -1: they stay. */
int gather_bucket_of(const Plan *plan, const Node *node);
bool action_reads_params(const Plan *plan, const ChunkPlan *chunk, const Action *action);
/* A walk over the uses of a schedule's list, and what is here on the way: the same for all
 * replicas, who gather together. */
typedef struct Window {
    /* borrowed, as schedule */
    const Plan *plan;
    /* of the list */
    const Schedule *schedule;
    /* the next one; use counts from its pass's first */
    int task, use;
    /* owned: buckets that are in memory, or on the way */
    int here_count, *here;
} Window;
enum { GATHER_AHEAD = 2, WINDOW_MOST = GATHER_AHEAD + 2 * SPEC_PARAMS };
void window_init(Window *window, const Plan *plan);
void window_fini(Window *window);
void window_start(Window *window, const Schedule *schedule);
/* The next use, or NULL at the end. Buckets that are to be gathered now, for it or for those after
 * it, go to gather. */
const ParamUse *window_next(Window *window, int gather[WINDOW_MOST], int *count);

/* shards.c: cuts the buckets of all chunks among the replicas, once the buckets are planned; a
 * rank's part of the state. */
void plan_shards(Plan *plan);
/* The chunk of this stage, and its bucket, that hold place `at` of the gradients; NULL: none. */
const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket);
size_t shard_elements(const Plan *plan, int dp_rank);
/* What a parameter counts where buckets are made and cut: its elements, or those of the first slice
 * of a group's. */
int64_t shard_weight(const Plan *plan, int param);
/* A bucket, with the parameters in it that have a value of their own on this stage, by number. */
typedef struct BucketParams {
    /* borrowed */
    int *param;
    int count;
    /* of the parameters; where the bucket lies */
    int64_t weight, begin, end;
} BucketParams;
int64_t shard_bound(const Plan *plan, const BucketParams *bucket, int64_t weight, int64_t *below);
/* to a parameter of another stage */
bool plan_tied_across(const Plan *plan, int param);
/* Shards a value with a parameter of this stage whose it is. */
bool param_shares_memory(const Plan *plan, int param);

/* whole.c: where updates want whole tensors. whole_cut, only where any is wanted: the boundaries of
 * a bucket, and what the replicas have by now (load); false: cut it as where none are wanted. Bytes
 * are of the rank that has most. */
bool whole_wanted(const Plan *plan, int param);
bool whole_any_wanted(const Plan *plan);
bool whole_cut(const Plan *plan, const BucketParams *bucket, int64_t *load, int64_t *boundary);
size_t whole_state_bytes(const Plan *plan);

/* Are pointers of operations the host's, too? */
static inline bool plan_in_host_memory(const Plan *plan)
{
    return plan->graph->node[plan->graph->loss].op->backend->table->host_memory;
}

/* tensor_group.c: what the ranks of a tensor group owe each other at a step's end, in floats:
 * METRIC_ASKED for what was asked (METRIC_STOP and behind), and the gradients of which each rank
 * has a part only. */
/* What of a parameter's gradient the replica dp_rank has summed and owes; false: nothing. */
bool plan_owes(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count);
int64_t plan_owed_floats(const Plan *plan, int dp_rank);
/* Bytes of the largest tensor that the group exchanges; owed: of what it owes. */
size_t plan_largest_exchange(const Plan *plan, size_t owed);
/* Slices go through host memory in pieces; each two ranks' channels have so many places for one. */
enum { EXCHANGE_PIECE_BYTES = 128 << 10, EXCHANGE_DEPTH = 2 };
/* adds what a rank holds to exchange slices */
void tensor_group_memory(Plan *plan, bool joined);

/* replicas.c: what replicas sum while they are at work on a micro-batch, for synced operations: up
 * a tree of the ranks and down again, in pieces, for each of which a channel has so many places. */
enum { REPLICA_PIECE_BYTES = 8 << 10, REPLICA_DEPTH = 2 };
/* of rank `rank` of `size` in that tree: rank + 1, rank + 2, rank + 4, ... */
int replica_children(int rank, int size);
/* adds the places */
void replica_sums_memory(Plan *plan);

/* links.c: the channels between the stages of a replica, the same list on all ranks: for each
 * boundary in front of chunk 1, 2, ... one for activations, then one for gradients; then for each
 * parameter that is tied to one of another stage, in their order, one from its owner and one to it.
 * Empty with one stage. */
typedef struct Links {
    /* owned */
    ChannelSpec *spec;
    int count;
} Links;
/* ERR_CONFIG where a parameter is tied over more stages than two. Release with links_fini, also
 * after an error. */
Status links_init(Links *links, const Plan *plan);
void links_fini(Links *links);
/* Is it tied to one of another stage? */
bool plan_ties_stages(const Plan *plan, int param);
/* Adds the places of messages between stages, the very ones that a run has. */
Status links_memory(Plan *plan, bool joined);

/* slots.c: what the stage's list says about memory. */
void plan_slots(Plan *plan);
bool tasks_apart(const Schedule *schedule, int stage);
/* Fills last_task[micro]: a micro-batch's last place in the stage's list. Returns how many
 * micro-batches of data are held at a time, at most. */
int tasks_hold(const Schedule *schedule, int stage, int *last_task);

#endif
