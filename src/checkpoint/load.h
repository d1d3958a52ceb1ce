/* A checkpoint that is being loaded. */
#ifndef WEFT_CHECKPOINT_LOAD_H
#define WEFT_CHECKPOINT_LOAD_H

#include "readers.h"
#include "stored.h"

/* of a tensor that is not taken from the file */
enum { NOT_TAKEN = -2 };
/* what rank 0 tells of a tensor; plain bytes */
typedef struct Location {
    int64_t offset, has_hash;
    uint64_t hash;
} Location;

typedef struct Load {
    const World *world;
    const CheckpointIo *io;
    StoredFile file;
    /* owned, [count] */
    Location *location;
    /* owned, [count] and each: its name in the file; NULL: its own, or not taken */
    char **name;
    Readers readers;
    /* owned: room for two of the largest tensor, which has so many elements */
    float *plain;
    int64_t largest;
} Load;

/* Tensor i, verified. */
Status load_read(Load *load, int i, float *plain);
/* Reads all tensors that any rank wants, each once in the job, and sets them where they are wanted;
 * what nobody wants is verified. A tensor that cannot be read is set nowhere; the first one's error
 * is returned by the rank that reads it. Collective. */
Status load_hand_over(Load *load);

#endif
