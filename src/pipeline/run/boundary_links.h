/* What travels between the stages of a replica: activations and gradients over the boundaries of
 * chunks, and, once a step, the gradients of parameters that are tied across stages. */
#ifndef WEFT_PIPELINE_BOUNDARY_LINKS_H
#define WEFT_PIPELINE_BOUNDARY_LINKS_H

#include "grad_sync.h"

/* The channels of a chunk's boundaries; -1 where the model begins or ends, or has one stage
 * only. */
typedef struct ChunkLinks {
    int activations_in, activations_out, gradients_in, gradients_out;
} ChunkLinks;

/* A parameter that is tied to one of another stage: their gradients come and go in pieces. */
typedef struct TieLink {
    /* borrowed: of this rank's shard of the gradient, */
    float *sum;
    /* so many */
    int64_t elements;
    /* channels */
    int out, in;
    /* elements of a message, at most */
    int64_t piece;
} TieLink;

typedef struct BoundaryLinks {
    const Context *context;
    /* owned; NULL with one stage */
    Channels *channels;
    /* owned; one a chunk of this stage */
    ChunkLinks *chunk;
    /* owned: where messages move when told */
    Moves moves, evaluation_moves;
    /* owned */
    TieLink *tie;
    int tie_count;
} BoundaryLinks;

/* sync is borrowed for good. Sets context->progress.stages. Collective on the grid; every rank
 * returns the same Status. */
Status boundary_links_init(BoundaryLinks *links, Context *context, const GradSync *sync,
                           const Schedule *evaluation);
/* Collective. */
void boundary_links_fini(BoundaryLinks *links);
/* The message task of a chunk for the micro-batch in slot: waits for a free place, or for the
 * message. */
void links_message(const BoundaryLinks *links, const SlotMemory *memory, const ChunkRun *chunk,
                   const Slot *slot, TaskKind kind);
/* One of two chunks of a stage that follow each other, with a micro-batch's slot in it. */
typedef struct MessageEnd {
    const ChunkRun *chunk;
    const Slot *slot;
} MessageEnd;
/* What would be a message were they on two stages: activations go on, gradients back. */
void links_copy_activations(const SlotMemory *memory, MessageEnd from, MessageEnd to);
void links_copy_gradients(const SlotMemory *memory, MessageEnd from, MessageEnd to);
/* Task number `task` of a list comes next: the messages that move before it. *next: of moves, from
 * 0 on. */
void links_move(const BoundaryLinks *links, const Moves *moves, int *next, int task);
/* Adds up the gradients of tied parameters. Collective on the stages. */
void links_sum_ties(const BoundaryLinks *links, const GradSync *sync);

#endif
