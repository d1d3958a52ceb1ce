/* Which ranks want which of a checkpoint's tensors, and which rank reads each of them. */
#ifndef WEFT_CHECKPOINT_READERS_H
#define WEFT_CHECKPOINT_READERS_H

#include "checkpoint.h"

typedef struct Readers {
    int ranks;
    /* owned: of each rank the first one of its node; ranks, node by node */
    int *node, *order;
    /* owned: a row of bits for each rank, one for each tensor: does it want that? */
    uint8_t *wants;
    size_t row_bytes;
    /* owned, [count]: the rank that reads it; -1: none */
    int *reader;
} Readers;

/* How a tensor is taken from the file: not, by any rank, or by rank 0, whose reading process
 * (apart_begin) unpacks it. */
typedef enum ReadBy { READ_NOT, READ_BY_ANY, READ_BY_FIRST } ReadBy;

/* Asks every rank what it wants (io->wants) of the tensors that are taken from the file, [count],
 * the same on every rank, and assigns. ranks * count / 8 bytes on every rank. Collective. Release
 * with readers_fini. */
void readers_init(Readers *readers, const World *world, const CheckpointIo *io,
                  const ReadBy *taken);
void readers_fini(Readers *readers);
/* Each tensor that is taken goes to rank 0, where only that may read it, or to one of those who
 * want it, or where nobody does to any rank, which verifies it: to the one that has fewest bytes to
 * read, and of equals to the one whose node has. What comes early in io->tensor comes early for its
 * reader. All but `reader` is there. A pure function. */
void readers_assign(Readers *readers, const CheckpointIo *io, const ReadBy *taken);
bool readers_want(const Readers *readers, int rank, int i);
/* The ranks that have to do with tensor i, as multicast_place wants them: its reader and those who
 * want it. member: room for all ranks. Returns how many they are. A pure function. */
int readers_members(const Readers *readers, int i, int *member);

#endif
