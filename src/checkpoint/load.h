/* State of a checkpoint that is being loaded, shared by load.c and share.c. */
#ifndef WEFT_CHECKPOINT_LOAD_H
#define WEFT_CHECKPOINT_LOAD_H

#include "readers.h"
#include "stored.h"

/* offset of a tensor that is not read from the file */
enum { NOT_TAKEN = -2 };
/* Location of a tensor in the file. Rank 0 broadcasts it as bytes, so it has no pointers. */
typedef struct Location {
    /* NOT_TAKEN, or as in StoredTensor */
    int64_t offset;
    /* StoredTensor.has_hash: 1 for true */
    int64_t has_hash;
    /* StoredTensor.hash */
    uint64_t hash;
} Location;

typedef struct Load {
    const World *world;
    const CheckpointIo *io;
    /* the file: on rank 0 with table and attributes; on another rank only if it reads a tensor, for
     * pread */
    StoredFile file;
    /* location of each tensor, [count]; owned */
    Location *location;
    /* path of each tensor in the file, [count]; NULL if it is the path in io->tensor, or if the
     * tensor is not read; owned, including the texts */
    char **name;
    Readers readers;
    /* buffer of 2 * largest floats; owned */
    float *plain;
    /* elements of the largest tensor */
    int64_t largest;
} Load;

/* Reads tensor i into `plain` and verifies it. */
Status load_read(Load *load, int i, float *plain);
/* Reads all tensors that any rank wants, each on one rank only, and sets them on the ranks that
 * want them. Tensors that no rank wants are verified. A tensor that cannot be read is set nowhere;
 * the reader of the first such tensor returns its error, all other ranks return OK. Collective. */
Status load_share_tensors(Load *load);

#endif
