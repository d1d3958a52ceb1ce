/* State of the planner while it turns one chunk of a graph into a ChunkPlan. Each tensor becomes a
 * storage that is alive from a first to a last tick; one clock of ticks runs through all of the
 * chunk's passes, one tick for each action. */
#ifndef WEFT_PIPELINE_CHUNK_H
#define WEFT_PIPELINE_CHUNK_H

#include "plan.h"

#include <limits.h>

enum { STORAGE_NONE = -1, STORAGE_INPUT = -2 /* the input data itself */, NO_NODE = -1 };

typedef struct Storage {
    size_t bytes;
    /* first and last tick at which the content is needed */
    int first, last;
    /* true: lies in the slot; false: in scratch memory */
    bool kept;
    /* lies in the slot of the previous chunk, which has set the place */
    bool before;
    /* the next chunk reads it there */
    bool shown;
    /* No output may be written over it: a node's backward or a recomputed block reads it again. */
    bool stays;
    /* last node whose forward reads it, or NO_NODE */
    int reader;
    /* Among the runs that backward uses: the first node whose backward reads it, or INT_MAX, and
     * the last node that has it as an input, or NO_NODE. */
    int back_first, input_last;
    int64_t offset;
} Storage;

/* The fields of RunOffsets, as indices into Planner.storage instead of places. */
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
    const ChunkPlan *before;
    /* other tasks may run between a message and the work on it, so tensors of messages lie in
     * slots */
    bool messages_wait;
    Storage *storage;
    int storage_count, storage_capacity;
    /* storage of each node's output and of its gradient; int[node_count], owned */
    int *value, *gradient;
    /* storage of each node's recomputed output; int[node_count], owned */
    int *again;
    /* true: the node's gradient shares memory with another node's, which must not change;
     * bool[node_count], owned */
    bool *borrows;
    /* first the chunk's runs in node order, then the second runs of recomputed nodes; owned */
    RunStorage *run;
    /* block that each of the chunk's nodes is recomputed with, or -1; owned */
    int *block;
    /* last node that reads each node's output, or NO_NODE; reader_again counts only nodes of the
     * same recomputed block; int[node_count], owned */
    int *reader, *reader_again;
    /* for each input of the chunk's nodes, the previous node that reads the same output; owned */
    int (*reader_before)[SPEC_INPUTS];
    /* buckets in the order in which backward opens them; owned */
    Opening *opening;
    /* boundary[pass]: tick at which the pass ends */
    int tick, boundary[PASSES];
    Pass pass;
    int room[PASSES];
} Planner;

/* layout.c */
int storage_new(Planner *p, size_t bytes);
/* marks the storage as used at the current tick */
void storage_use(Planner *p, int storage);
/* places all storages; sets the chunk's kept_bytes and scratch_bytes */
void storages_lay(Planner *p);
int64_t storage_offset(const Planner *p, int storage);

/* places.c: which bytes are used at which ticks. */
typedef struct PlaceTree PlaceTree;
/* for ticks 0 to ticks - 1. Owner: the caller */
PlaceTree *place_tree_new(int ticks);
void place_tree_free(PlaceTree **tree);
/* marks the bytes of span as used from tick first to tick last, both included */
void place_tree_add(PlaceTree *tree, int first, int last, Span span);
/* Returns the lowest offset >= from at which `bytes` bytes are free from tick first to tick
 * last. */
int64_t place_tree_lowest(const PlaceTree *tree, int first, int last, int64_t from, int64_t bytes);

/* chunk.c */
/* true if the node is in this chunk */
bool planner_owns(const Planner *p, int node);
/* the run whose tensors the node's backward uses */
RunStorage *planner_back_run(const Planner *p, int node);
/* true if the node's backward_weight is delayed to PASS_WEIGHT */
bool planner_waits(const Planner *p, int node);
/* trained.c. Returns true if the node has running statistics that training updates. */
bool planner_moves(const Planner *p, int node);
/* Returns true if a gradient at the node reaches a trained parameter. */
bool planner_goes_back(const Planner *p, int node);
/* True if the node's backward runs and reads its input k, or its output. */
bool planner_reads_x(const Planner *p, int node, int k);
bool planner_reads_y(const Planner *p, int node);
/* Takes blocks without any backward work out of recomputation. */
void planner_leave_blocks(Planner *p);

/* inplace.c. Fills reader and reader_before. */
void inplace_readers(Planner *p);
/* Records that the node's output lies in a storage. last: Planner.reader or reader_again. */
void inplace_output(Planner *p, int node, int storage, const int *last);
/* Call before node i's forward is planned: protects the tensors that i's block reads from outside,
 * because the block runs again. */
void inplace_block_inputs(Planner *p, int i);
/* Returns true if a run may write its output over its first input: nobody reads a tensor there
 * later, and it is not the input data, which the loader owns. */
bool inplace_allowed(const Planner *p, const RunStorage *run);
/* Call after that: records which tensors the run's backward will read. */
void inplace_run(Planner *p, const RunStorage *run);

/* gradient.c: chooses where node i's backward writes the gradients of i's inputs, once the storage
 * of its dy is known. Sets to_add[k] to the storage that must be added afterwards to the gradient
 * of input k, or copied if that input has no gradient yet; STORAGE_NONE: nothing to add. */
void gradients_route(Planner *p, int i, int to_add[SPEC_INPUTS]);

#endif
