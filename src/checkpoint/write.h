/* Writing the tensors of a checkpoint that is laid out, on all ranks. */
#ifndef WEFT_CHECKPOINT_WRITE_H
#define WEFT_CHECKPOINT_WRITE_H

#include "checkpoint.h"

#include <sys/types.h>

/* A save, alike on all ranks but for `plain`. */
typedef struct Save {
    const World *world;
    const CheckpointIo *io;
    /* owned: the file until it has its name; unique, so that no host has heard of it */
    char *part;
    /* of part */
    ino_t inode;
    /* owned, [count]: rank that hashes and writes each tensor */
    int *owner;
    /* owned, [count] */
    uint64_t *hash;
    /* owned, [count] */
    int64_t *offset;
    /* owned: this rank's largest tensor */
    float *plain;
} Save;

/* Tensor i in save->plain where this rank is its owner, else false. Collective where tensors lie in
 * parts. */
bool save_get(const Save *save, int i);
/* Opens the part file, which rank 0 has made, with open's flags: ERR_IO where this host sees
 * another file under its name. *fd -1 on error. */
Status save_open(const Save *save, int flags, int *fd);
/* Writes all tensors and syncs. Collective; the ranks need not agree. */
Status save_write(const Save *save);
/* Reads the file back: rank 0 its table, the ranks a share of the tensors each, written by another
 * node where there are several. ERR_IO where something is not what was written. Collective; the
 * ranks need not agree. */
Status save_read_back(const Save *save);

#endif
