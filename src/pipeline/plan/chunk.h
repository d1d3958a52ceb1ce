/* State of the planner while it turns one chunk of a graph into a ChunkPlan. Each tensor becomes a
 * storage that is alive from a first to a last tick; one clock of ticks runs through all of the
 * chunk's passes, one tick for each action. */
#ifndef WEFT_PIPELINE_CHUNK_H
#define WEFT_PIPELINE_CHUNK_H

#include "plan.h"

#include <limits.h>

/* STORAGE_INPUT: the input data, which no storage contains. */
enum { STORAGE_NONE = -1, STORAGE_INPUT = -2, NO_NODE = -1 };

/* Memory of one tensor, or of several that share it (aliases, in-place outputs). */
typedef struct Storage {
    size_t bytes;
    /* first and last tick at which the content is needed */
    int first, last;
    /* true: lies in the slot; false: in scratch memory */
    bool kept;
    /* lies in the slot of the previous chunk, which has set the place */
    bool in_previous;
    /* the next chunk reads it in this chunk's slot */
    bool read_by_next;
    /* no output may overwrite it, because a node's backward or a recomputed block reads it again */
    bool must_stay;
    /* last node whose forward reads it, or NO_NODE */
    int reader;
    /* first node whose backward reads it, or INT_MAX */
    int back_first;
    /* last node that has it as an input in the run that its backward uses, or NO_NODE */
    int input_last;
    /* offset in the arena (pipeline.h, OFFSET_*), once it is set */
    int64_t offset;
} Storage;

/* RunOffsets with indices into Planner.storage instead of places. */
typedef struct RunStorage {
    int node, x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS], dw[SPEC_PARAMS];
    bool dx_add, dw_waits;
} RunStorage;

/* The first node, in backward's order, that writes to a bucket. */
typedef struct Opening {
    int node, bucket;
} Opening;

typedef struct Planner {
    /* borrowed */
    const Graph *graph;
    const Schedule *schedule;
    ChunkPlan *chunk;
    /* plan of the previous chunk if this stage has it, else NULL; borrowed */
    const ChunkPlan *previous;
    /* other tasks may run between a message and the work on it, so tensors of messages lie in
     * slots */
    bool messages_wait;
    Storage *storage;
    int storage_count, storage_capacity;
    /* storage of each node's output and of its gradient; int[node_count], owned */
    int *value, *gradient;
    /* storage of each node's recomputed output; int[node_count], owned */
    int *recomputed;
    /* true: the node's gradient shares memory with another node's, which must not change;
     * bool[node_count], owned */
    bool *borrows_gradient;
    /* first the chunk's runs in node order, then the second runs of recomputed nodes; owned */
    RunStorage *run;
    /* block that each of the chunk's nodes is recomputed with, or -1; owned */
    int *block;
    /* last node that reads each node's output, or NO_NODE; int[node_count], owned */
    int *reader;
    /* the same among nodes of the recomputed block that is planned */
    int *block_reader;
    /* for each input of the chunk's nodes, the node before it that reads the same output, or
     * NO_NODE; owned */
    int (*previous_reader)[SPEC_INPUTS];
    /* buckets in the order in which backward opens them; owned */
    Opening *opening;
    /* current tick, and the tick at which each pass ends */
    int tick, boundary[PASSES];
    /* pass whose actions are being listed */
    Pass pass;
    /* capacity of each pass's action list */
    int capacity[PASSES];
} Planner;

/* layout.c. Returns the index of a new storage. */
int storage_new(Planner *p, size_t bytes);
/* Marks the storage as used at the current tick. */
void storage_use(Planner *p, int storage);
/* Places all storages; sets the chunk's kept_bytes and scratch_bytes. */
void storages_lay(Planner *p);
/* Returns the place of a storage, OFFSET_INPUT for STORAGE_INPUT, or OFFSET_NONE. */
int64_t storage_offset(const Planner *p, int storage);

/* places.c: which bytes are used at which ticks. */
typedef struct PlaceTree PlaceTree;
/* Makes a tree for ticks 0 to ticks - 1. Owner: the caller. */
PlaceTree *place_tree_new(int ticks);
void place_tree_free(PlaceTree **tree);
/* Marks the bytes of span as used from tick first to tick last, both included. */
void place_tree_add(PlaceTree *tree, int first, int last, Span span);
/* Returns the lowest offset >= from at which `bytes` bytes are free from tick first to tick
 * last. */
int64_t place_tree_lowest(const PlaceTree *tree, int first, int last, int64_t from, int64_t bytes);

/* chunk.c. True if the node is in this chunk. */
bool planner_owns(const Planner *p, int node);
/* The run whose tensors the node's backward uses: the second one in a recomputed block. */
RunStorage *planner_back_run(const Planner *p, int node);
/* True if the node's backward_weight is delayed to PASS_WEIGHT. */
bool planner_delays_weight(const Planner *p, int node);
/* trained.c. True if the node has running statistics that training updates. */
bool planner_updates_statistics(const Planner *p, int node);
/* True if the node's backward runs, because a gradient there reaches a trained parameter. */
bool planner_runs_backward(const Planner *p, int node);
/* True if the node's backward runs and reads its input k. */
bool planner_reads_x(const Planner *p, int node, int k);
/* True if the node's backward runs and reads its output. */
bool planner_reads_y(const Planner *p, int node);
/* Excludes blocks without any backward work from recomputation. */
void planner_drop_blocks(Planner *p);

/* inplace.c. Fills reader and previous_reader. */
void inplace_find_readers(Planner *p);
/* Records that the node's output lies in a storage. last: Planner.reader or block_reader. */
void inplace_record_output(Planner *p, int node, int storage, const int *last);
/* Call before node i's forward is planned: protects tensors from outside of i's block that i reads,
 * because the block runs a second time. */
void inplace_keep_block_inputs(Planner *p, int i);
/* True if a run may write its output over its first input: no later node reads that storage, and it
 * is not the input data, which the loader owns. */
bool inplace_allowed(const Planner *p, const RunStorage *run);
/* Call after the run's output has a storage: records which tensors the run's backward will read. */
void inplace_record_run(Planner *p, const RunStorage *run);

/* gradient.c: chooses where node i's backward writes the gradients of its inputs, once the storage
 * of its dy is known. Sets to_add[k] to the storage that must be added afterwards to the gradient
 * of input k, or copied if that input has no gradient yet; STORAGE_NONE: nothing to add. */
void gradients_route(Planner *p, int i, int to_add[SPEC_INPUTS]);

#endif
