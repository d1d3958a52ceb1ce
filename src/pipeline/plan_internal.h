/* The planner's notes while it turns a graph into a Plan: tensors as storages with a life on the list's clock. */
#ifndef WEFT_PIPELINE_PLAN_INTERNAL_H
#define WEFT_PIPELINE_PLAN_INTERNAL_H

#include "pipeline.h"

enum { STORAGE_INPUT = -2 }; /* as a node's y: it is the data itself */

typedef struct Storage {
    size_t bytes;
    int first, last; /* actions between which its content is needed, both included */
    int64_t offset;  /* in the arena, bytes */
} Storage;

typedef struct NodeStorage {
    int y, dy, saved, dx[OP_INPUTS]; /* into Planner.storage; -1 none */
} NodeStorage;

typedef struct Planner {
    const Graph *graph; /* borrowed */
    Storage *storage;
    int storage_count, storage_room;
    NodeStorage *node;
    Action *action; /* handed to the Plan */
    int action_count, action_room;
} Planner;

#endif
