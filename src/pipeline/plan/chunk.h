/* State of the planner while it turns one chunk of a graph into a ChunkPlan. Each tensor becomes a
 * storage that is alive from a first to a last tick. A tick is the time of one action or of the
 * messages at one end of a pass; ticks are counted through all passes of the chunk. */
#ifndef WEFT_PIPELINE_CHUNK_H
#define WEFT_PIPELINE_CHUNK_H

#include "plan.h"

#include <limits.h>

/* STORAGE_INPUT: the input data, which no storage contains. */
enum { STORAGE_NONE = -1, STORAGE_INPUT = -2, NO_NODE = -1 };

/* Memory of one tensor, or of several that share it (aliases, in-place outputs). */
typedef struct Storage {
    size_t bytes;
    /* first tick at which the content is used; -1: it is never used */
    int first;
    /* last tick at which the content is used; -1: it is never used */
    int last;
    /* true: the storage is in the slot and keeps its content between tasks; false: it is in scratch
     * memory or in a part of the slot that is free during its life */
    bool kept;
    /* true: the storage is in the slot of the previous chunk, whose plan has set its place */
    bool in_previous;
    /* true: the next chunk reads the storage in this chunk's slot */
    bool read_by_next;
    /* true: no output may overwrite the storage, because a node's backward or a recomputed block
     * reads it again */
    bool must_stay;
    /* highest-numbered node whose forward reads the storage, or NO_NODE */
    int reader;
    /* lowest-numbered node whose backward reads the storage; it is the last one to do so, because
     * backward runs from the last node to the first. INT_MAX: no backward reads it */
    int back_first;
    /* highest-numbered node that has the storage as an input in planner_back_run, or NO_NODE */
    int input_last;
    /* place (pipeline/plan.h, OFFSET_*); set by storages_lay */
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
    /* true: other tasks may run between a message and the pass that uses it, so tensors of messages
     * are in slots */
    bool messages_wait;
    /* all storages; owned */
    Storage *storage;
    int storage_count, storage_capacity;
    /* storage of each node's output; int[node_count], owned */
    int *value;
    /* storage of the gradient of each node's output; int[node_count], owned */
    int *gradient;
    /* storage of each node's recomputed output; int[node_count], owned */
    int *recomputed;
    /* true: the node's gradient is in the same memory as another node's gradient, which must not
     * change; bool[node_count], owned */
    bool *borrows_gradient;
    /* the chunk's runs in node order, then the second runs of its nodes in the same order; owned */
    RunStorage *run;
    /* number of the block with which each of the chunk's nodes is recomputed, or -1; owned */
    int *block;
    /* last node that reads each node's output, or NO_NODE; int[node_count], owned */
    int *reader;
    /* last node of the recomputed block being planned that reads each node's output, or NO_NODE;
     * int[node_count], owned */
    int *block_reader;
    /* for each input of each of the chunk's nodes, the previous node that reads the same output, or
     * NO_NODE; owned */
    int (*previous_reader)[SPEC_INPUTS];
    /* buckets in the order in which backward opens them; owned */
    Opening *opening;
    /* current tick */
    int tick;
    /* first tick after each pass */
    int boundary[PASSES];
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

/* places.c: a tree that records which bytes are used at which ticks. */
typedef struct PlaceTree PlaceTree;
/* Makes a tree for ticks 0 to ticks - 1. Owner: the caller. */
PlaceTree *place_tree_new(int ticks);
void place_tree_free(PlaceTree **tree);
/* Marks the bytes of `span` as used from tick `first` to tick `last`, both included. */
void place_tree_add(PlaceTree *tree, int first, int last, Span span);
/* Returns the lowest offset, not below `from`, at which `bytes` bytes are free from tick `first` to
 * tick `last`, both included. */
int64_t place_tree_lowest(const PlaceTree *tree, int first, int last, int64_t from, int64_t bytes);

/* chunk.c. Returns true if the node is in this chunk. */
bool planner_owns(const Planner *p, int node);
/* Returns the run whose tensors the node's backward uses: in a recomputed block the second run,
 * otherwise the only one. */
RunStorage *planner_back_run(const Planner *p, int node);
/* Returns true if the node's backward_weight is delayed to PASS_WEIGHT. */
bool planner_delays_weight(const Planner *p, int node);
/* trained.c. Returns true if the node has running statistics that training updates. */
bool planner_updates_statistics(const Planner *p, int node);
/* Returns true if the node's backward runs: its gradients are needed for a trained parameter. */
bool planner_runs_backward(const Planner *p, int node);
/* Returns true if the node's backward runs and reads its input k. */
bool planner_reads_x(const Planner *p, int node, int k);
/* Returns true if the node's backward runs and reads its output. */
bool planner_reads_y(const Planner *p, int node);
/* Cancels the recomputation of blocks in which no node has backward work. */
void planner_drop_blocks(Planner *p);

/* inplace.c. Fills reader and previous_reader. */
void inplace_find_readers(Planner *p);
/* Records that the node's output is in a storage. last: Planner.reader or Planner.block_reader. */
void inplace_record_output(Planner *p, int node, int storage, const int *last);
/* Call it before node i's forward is planned. Protects the tensors from outside of i's block that i
 * reads, because the block reads them again in its second run. */
void inplace_keep_block_inputs(Planner *p, int i);
/* Returns true if a run may write its output over its first input: the operation can do so, the
 * output has the same size as the input, and nothing reads the input later. False for the input
 * data, which the loader owns, and for a storage in the previous chunk's slot. */
bool inplace_allowed(const Planner *p, const RunStorage *run);
/* Call it after the run's output has got a storage. Records which tensors the run's backward will
 * read. */
void inplace_record_run(Planner *p, const RunStorage *run);

/* gradient.c: chooses where node i's backward writes the gradients of its inputs, once the storage
 * of its dy is known. Sets to_add[k] to the storage that must be added to the gradient of input k
 * afterwards, or copied if the input has no gradient yet; STORAGE_NONE: nothing must be added. */
void gradients_route(Planner *p, int i, int to_add[SPEC_INPUTS]);

#endif
