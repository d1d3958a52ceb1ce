/* Transfers between the stages of a replica: activations and gradients over the boundaries of
 * chunks and, once in a step, the gradients of parameters that are tied across stages. */
#ifndef WEFT_PIPELINE_BOUNDARY_LINKS_H
#define WEFT_PIPELINE_BOUNDARY_LINKS_H

#include "grad_sync.h"

/* Indices of the channels of a chunk's boundaries. -1: there is no channel, because the model
 * begins or ends at the boundary or the neighbouring chunk is on this stage. */
typedef struct ChunkLinks {
    int activations_in, activations_out, gradients_in, gradients_out;
} ChunkLinks;

/* A pair of tied parameters on two stages, which exchange their gradients in pieces. */
typedef struct TieLink {
    /* this rank's shard of the gradient's sum, float[elements]; borrowed */
    float *sum;
    /* length of the shard */
    int64_t elements;
    /* channel to the other stage */
    int out;
    /* channel from the other stage */
    int in;
    /* largest number of elements in a message */
    int64_t piece;
} TieLink;

typedef struct BoundaryLinks {
    const Context *context;
    /* NULL with one stage; owned */
    Channels *channels;
    /* channels of each chunk of this stage; owned */
    ChunkLinks *chunk;
    /* positions in the task list of training at which messages move; empty unless
     * channels_on_device; owned */
    Moves moves;
    /* the same for the task list of an evaluation; owned */
    Moves evaluation_moves;
    /* ties of this stage, [tie_count]; owned */
    TieLink *tie;
    int tie_count;
} BoundaryLinks;

/* Opens the channels and sets context->progress.stages. sync is borrowed until boundary_links_fini.
 * Collective on the grid; every rank returns the same Status. */
Status boundary_links_init(BoundaryLinks *links, Context *context, const GradSync *sync,
                           const Schedule *evaluation);
/* Collective. */
void boundary_links_fini(BoundaryLinks *links);
/* Runs a send or receive task of a chunk for the micro-batch in `slot`. Waits for a free slot of
 * the channel before it sends, or for the message that it receives. */
void links_message(const BoundaryLinks *links, const SlotMemory *memory, const ChunkRun *chunk,
                   const Slot *slot, TaskKind kind);
/* One of two consecutive chunks of a stage, and a micro-batch's slot in it. */
typedef struct MessageEnd {
    const ChunkRun *chunk;
    const Slot *slot;
} MessageEnd;
/* Copies, between two consecutive chunks of one stage, the tensors that would form a message if the
 * chunks were on two stages. Activations are copied to the later chunk, except those that it reads
 * in the earlier chunk's slot. Gradients are copied to the earlier chunk. */
void links_copy_activations(const SlotMemory *memory, MessageEnd from, MessageEnd to);
void links_copy_gradients(const SlotMemory *memory, MessageEnd from, MessageEnd to);
/* Moves the messages that must move before task number `task` of a list. *next: index of the next
 * move, which is advanced; set it to 0 at the start of a list. */
void links_move(const BoundaryLinks *links, const Moves *moves, int *next, int task);
/* Adds up the gradients of tied parameters, within the stage and across stages. Collective on the
 * stages. */
void links_sum_ties(const BoundaryLinks *links, const GradSync *sync);

#endif
