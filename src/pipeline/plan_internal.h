/* The planner's notes while it turns a chunk of a graph into a ChunkPlan: tensors as storages with a life on one clock,
 * which runs through the chunk's passes. */
#ifndef WEFT_PIPELINE_PLAN_INTERNAL_H
#define WEFT_PIPELINE_PLAN_INTERNAL_H

#include "pipeline.h"

enum {
    STORAGE_NONE = -1,
    STORAGE_INPUT = -2 /* the data itself */,
    NO_NODE = -1,
    PLACE_ALIGN = 256
};

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

typedef struct Storage {
    size_t bytes;
    int first, last; /* ticks between which its content is needed, both included */
    bool kept;       /* lies in the slot */
    bool before;     /* lies in the slot of the chunk before, which has placed it */
    bool lent;       /* the chunk behind reads it there */
    int64_t place;
} Storage;

typedef struct RunStorage { /* as RunPlace, indices into Planner.storage */
    int node, x[OP_INPUTS], y, dy, saved, x_saved, dx[OP_INPUTS], dw[OP_PARAMS];
    bool dx_add;
} RunStorage;

typedef struct Planner {
    const Graph *graph; /* borrowed */
    const Schedule *schedule;
    ChunkPlan *chunk;
    const ChunkPlan *before; /* the chunk before, where this stage has it; else NULL */
    bool apart; /* messages and work may lie apart in the list: what travels must lie in the slot */
    Storage *storage;
    int storage_count, storage_room;
    int *value, *gradient; /* owned, one a node: storage of its output, of that one's gradient */
    int *again;            /* owned, one a node: storage of its output when made again */
    bool *
        borrows; /* owned, one a node: another node's gradient lies where its own does, and stays */
    RunStorage *
        run; /* owned, two a node of the chunk: the first runs in node order, then the second ones */
    int *
        block; /* owned, one a node of the chunk: number of the block that is recomputed with it, or -1 */
    int tick, boundary[PASSES]; /* boundary: the tick at which the pass ends */
    Pass pass;
    int room[PASSES];
} Planner;

/* layout.c */
int storage_new(Planner *p, size_t bytes);
void storage_use(Planner *p, int storage); /* now */
void storages_place(Planner *p);           /* sets kept_bytes and scratch_bytes, too */
int64_t storage_place(const Planner *p, int storage);

/* chunk.c */
bool planner_owns(const Planner *p, int node);            /* in the chunk */
RunStorage *planner_back_run(const Planner *p, int node); /* the run that its backward belongs to */
bool planner_waits(const Planner *p, int node); /* the weights' half, for its pass of its own? */
/* Fills plan but for slots and buckets, which it must have already. before: the chunk before, planned, where the stage has it;
 * NULL: another stage does. */
Status chunk_plan(ChunkPlan *chunk, const ChunkPlan *before, const Graph *graph,
                  const Schedule *schedule, bool apart, const int *block);

/* gradient.c: where node i's backward leaves what it gives its inputs, now that its dy is known. to_add[k]: what must be added to
 * the gradient of input k afterwards, or be copied where it has none yet; STORAGE_NONE: nothing. */
void gradients_route(Planner *p, int i, int to_add[OP_INPUTS]);

/* boundary.c: the messages over the boundary in front of node `boundary`; places are not set. */
void boundary_values(Message *message, const Graph *graph, int boundary);
void boundary_gradients(Message *message, const Graph *graph, int boundary);

/* ring.c: where backward writes gradients, and where their sums lie; once buckets, and shares, are known. */
void plan_leaves(Plan *plan);
typedef struct Span {
    int64_t begin, end;
} Span;
/* The lowest place for `length` that meets none of the spans taken. */
int64_t place_lowest(const Span *taken, int count, int64_t length);
bool bucket_has_values(const Plan *plan, const ChunkPlan *c, int bucket); /* of its own */

/* fetch.c: where values are fetched, which, when and to where; once shares and lists are known. Sets cache and weight_at. */
Status plan_fetch(Plan *plan);
bool action_reads_values(const Plan *plan, const ChunkPlan *chunk, const Action *action);
/* A walk over the uses of a schedule's list, and what is here on the way: the same for all replicas, who fetch together. */
typedef struct Window {
    const Plan *plan;         /* borrowed, as schedule */
    const Schedule *schedule; /* of the list */
    int task, use;            /* the next one; use counts from its pass's first */
    int here_count, *here;    /* owned: buckets that are in memory, or on the way */
} Window;
enum { FETCH_AHEAD = 2, WINDOW_MOST = FETCH_AHEAD + 2 * OP_PARAMS };
void window_init(Window *window, const Plan *plan);
void window_fini(Window *window);
void window_start(Window *window, const Schedule *schedule);
/* The next use, or NULL at the end. Buckets that are to be fetched now, for it or for those after it, go to fetch. */
const ValueUse *window_next(Window *window, int fetch[WINDOW_MOST], int *count);

/* shares.c: cuts the buckets of all chunks among the replicas, once the buckets are planned; a rank's part of the state. */
void plan_shares(Plan *plan);
/* The chunk of this stage, and its bucket, that hold place `at` of the gradients; NULL: none. */
const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket);
size_t share_elements(const Plan *plan, int dp_rank);
/* What a parameter counts where buckets are made and cut: its elements, or those of the first slice of a group's. */
int64_t share_weight(const Plan *plan, int param);
bool plan_tied_across(const Plan *plan, int param); /* to a parameter of another stage */
/* Shares a value with a parameter of this stage whose it is. */
bool param_shares_value(const Plan *plan, int param);

/* Are pointers of operations the host's, too? */
static inline bool plan_in_host_memory(const Plan *plan)
{
    return plan->graph->node[plan->graph->loss].op->backend->table->host_memory;
}

/* group.c: adds what a rank of a tensor group holds to exchange slices. */
void group_memory(Plan *plan, bool joined);

/* messages.c: adds the places of messages between stages, the very ones that a run has. ERR_CONFIG where a parameter is tied over
 * more stages than two. */
Status messages_memory(Plan *plan, bool joined);

/* slots.c: what the stage's list says about memory. */
void plan_slots(Plan *plan);
bool tasks_apart(const Schedule *schedule, int stage);
/* Fills last_task[micro]: a micro-batch's last place in the stage's list. Returns how many micro-batches of data are held at
 * a time, at most. */
int tasks_hold(const Schedule *schedule, int stage, int *last_task);

#endif
