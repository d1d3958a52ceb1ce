/* Assigns to each tensor of a checkpoint the rank that reads it, and stores which ranks want the
 * tensor. */
#ifndef WEFT_CHECKPOINT_READERS_H
#define WEFT_CHECKPOINT_READERS_H

#include "checkpoint.h"

typedef struct Readers {
    int ranks;
    /* for each rank the lowest rank on its node, [ranks]; owned */
    int *node;
    /* the ranks, node by node, [ranks]; owned */
    int *order;
    /* a bit matrix with a row of row_bytes bytes for each rank; a row has a bit for each tensor,
     * set if the rank wants the tensor; owned */
    uint8_t *wants;
    size_t row_bytes;
    /* rank that reads each tensor, or -1 if no rank reads it, [count]; owned */
    int *reader;
} Readers;

/* Which rank may read a tensor from the file. */
typedef enum ReadBy {
    /* none */
    READ_NOT,
    /* any rank */
    READ_BY_ANY,
    /* only rank 0, whose reading process (isolated_begin) unpacks the tensor */
    READ_BY_FIRST
} ReadBy;

/* Exchanges which tensors every rank wants (io->wants) and assigns readers. taken[count]: which
 * rank may read each tensor; equal on every rank. Uses ranks * count / 8 bytes on every rank.
 * Collective. Release with readers_fini. */
void readers_init(Readers *readers, const World *world, const CheckpointIo *io,
                  const ReadBy *taken);
void readers_fini(Readers *readers);
/* Assigns a reader to each tensor that is read: rank 0 if only rank 0 may read it; else a rank that
 * wants it; if no rank wants it, any rank, which only verifies it. Among the permitted ranks the
 * reader is the rank with the fewest bytes to read so far; among several such ranks, a rank whose
 * node has the fewest bytes to read; among several such ranks, the lowest. A reader reads its
 * tensors in the order of io->tensor. All fields but `reader` must be set. A pure function. */
void readers_assign(Readers *readers, const CheckpointIo *io, const ReadBy *taken);
/* Returns true if the rank wants tensor i. */
bool readers_want(const Readers *readers, int rank, int i);
/* Lists the ranks that take part in the transfer of tensor i, in the order that multicast_place
 * requires: the reader, then the other ranks that want the tensor. member: room for all ranks.
 * Returns the number of listed ranks. A pure function. */
int readers_members(const Readers *readers, int i, int *member);

#endif
