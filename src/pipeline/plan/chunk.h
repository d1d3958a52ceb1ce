/* A chunk's planner: its notes while it turns a chunk of a graph into a ChunkPlan. Tensors are
 * storages with a life on one clock, which runs through the chunk's passes. */
#ifndef WEFT_PIPELINE_CHUNK_H
#define WEFT_PIPELINE_CHUNK_H

#include "plan.h"

#include <limits.h>

enum { STORAGE_NONE = -1, STORAGE_INPUT = -2 /* the data itself */, NO_NODE = -1 };

typedef struct Storage {
    size_t bytes;
    /* ticks between which its content is needed, both included */
    int first, last;
    /* lies in the slot */
    bool kept;
    /* lies in the slot of the chunk before, which has placed it */
    bool before;
    /* the chunk behind reads it there */
    bool shown;
    /* Its content is needed once more, by a node's backward or by a block that is computed again:
     * no output may be written over it. */
    bool stays;
    /* the last node whose forward reads it; NO_NODE: none */
    int reader;
    /* Of the runs that backward belongs to: the first node whose backward reads it, INT_MAX: none;
     * and the last one that has it as an input, NO_NODE: none. */
    int back_first, input_last;
    int64_t offset;
} Storage;

/* as RunOffsets, indices into Planner.storage */
typedef struct RunStorage {
    int node, x[SPEC_INPUTS], y, dy, saved, x_saved, dx[SPEC_INPUTS], dw[SPEC_PARAMS];
    bool dx_add, dw_waits;
} RunStorage;

/* From which node on backward writes to a bucket. */
typedef struct Opening {
    int node, bucket;
} Opening;

typedef struct Planner {
    /* borrowed */
    const Graph *graph;
    const Schedule *schedule;
    ChunkPlan *chunk;
    /* the chunk before, where this stage has it; else NULL */
    const ChunkPlan *before;
    /* messages and work may lie apart in the list: what travels must lie in the slot */
    bool apart;
    Storage *storage;
    int storage_count, storage_capacity;
    /* owned, one a node: storage of its output, of that one's gradient */
    int *value, *gradient;
    /* owned, one a node: storage of its output when made again */
    int *again;
    /* owned, one a node: another node's gradient lies where its own does, and stays */
    bool *borrows;
    /* owned, two a node of the chunk: the first runs in node order, then the second ones */
    RunStorage *run;
    /* owned, one a node of the chunk: number of the block that is recomputed with it, or -1 */
    int *block;
    /* owned, one a node: the last one that reads its output, NO_NODE: none; among those of its
     * block, where it is computed again */
    int *reader, *reader_again;
    /* owned, one a node of the chunk and an input: the node before it that reads the same output */
    int (*reader_before)[SPEC_INPUTS];
    /* owned, one a bucket: in backward's order */
    Opening *opening;
    /* boundary: the tick at which the pass ends */
    int tick, boundary[PASSES];
    Pass pass;
    int room[PASSES];
} Planner;

/* layout.c */
int storage_new(Planner *p, size_t bytes);
/* now */
void storage_use(Planner *p, int storage);
/* sets kept_bytes and scratch_bytes, too */
void storages_lay(Planner *p);
int64_t storage_offset(const Planner *p, int storage);

/* places.c: what lies where at which ticks. */
typedef struct PlaceTree PlaceTree;
/* for ticks 0 to ticks - 1. Owner: the caller */
PlaceTree *place_tree_new(int ticks);
void place_tree_free(PlaceTree **tree);
/* first, last: ticks, both included; span: bytes */
void place_tree_add(PlaceTree *tree, int first, int last, Span span);
/* The lowest place from `from` on for `bytes` that meets nothing at ticks first to last. */
int64_t place_tree_lowest(const PlaceTree *tree, int first, int last, int64_t from, int64_t bytes);

/* chunk.c */
/* in the chunk */
bool planner_owns(const Planner *p, int node);
/* the run that its backward belongs to */
RunStorage *planner_back_run(const Planner *p, int node);
/* the weights' half, for its pass of its own? */
bool planner_waits(const Planner *p, int node);
/* trained.c. Has node running statistics that move? */
bool planner_moves(const Planner *p, int node);
/* Would a gradient at node go anywhere? */
bool planner_goes_back(const Planner *p, int node);
/* Does node's backward, if it has one, read its input k, or its output? */
bool planner_reads_x(const Planner *p, int node, int k);
bool planner_reads_y(const Planner *p, int node);
/* Blocks that have no part in backward are not computed again. */
void planner_leave_blocks(Planner *p);

/* inplace.c. Fills reader and reader_before. */
void inplace_readers(Planner *p);
/* A node's output lies in a storage. last: Planner.reader or reader_again. */
void inplace_output(Planner *p, int node, int storage, const int *last);
/* Before node i's forward: what its block reads from before it must stay as it is until the block
 * has run again. */
void inplace_block_inputs(Planner *p, int i);
/* May a run write its output over its first input's memory? Only if nobody reads any tensor there
 * later; never over the data, which is not ours. */
bool inplace_allowed(const Planner *p, const RunStorage *run);
/* Behind that: what the run's backward will read. */
void inplace_run(Planner *p, const RunStorage *run);

/* gradient.c: where node i's backward leaves what it gives its inputs, now that its dy is known.
 * to_add[k]: what must be added to the gradient of input k afterwards, or be copied where it has
 * none yet; STORAGE_NONE: nothing. */
void gradients_route(Planner *p, int i, int to_add[SPEC_INPUTS]);

#endif
