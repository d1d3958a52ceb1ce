/* State of a checkpoint that is being loaded, shared by load.c and share.c. */
#ifndef WEFT_CHECKPOINT_LOAD_H
#define WEFT_CHECKPOINT_LOAD_H

#include "readers.h"
#include "stored.h"

/* offset of a tensor that is not read from the file */
enum { NOT_TAKEN = -2 };
/* Location of a tensor in the file, which rank 0 broadcasts; plain bytes. offset: NOT_TAKEN, or as
 * in StoredTensor; has_hash, hash: as in StoredTensor. */
typedef struct Location {
    int64_t offset, has_hash;
    uint64_t hash;
} Location;

typedef struct Load {
    const World *world;
    const CheckpointIo *io;
    /* on rank 0 with table and attributes; on other ranks for pread, if they read a tensor */
    StoredFile file;
    /* owned, [count] */
    Location *location;
    /* owned, [count], including its texts: path of each tensor in the file; NULL if it is the path
     * in io->tensor, or if the tensor is not read */
    char **name;
    Readers readers;
    /* owned: two times `largest` floats; largest: elements of the largest tensor */
    float *plain;
    int64_t largest;
} Load;

/* Reads tensor i into plain and verifies it. */
Status load_read(Load *load, int i, float *plain);
/* Reads all tensors that any rank wants, each once in the job, and sets them on the ranks that want
 * them; tensors that no rank wants are verified. A tensor that cannot be read is set nowhere; the
 * reader of the first such tensor returns its error. Collective. */
Status load_share_tensors(Load *load);

#endif
