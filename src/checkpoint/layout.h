/* Laying out a new checkpoint file: everything but the tensors' bytes. */
#ifndef WEFT_CHECKPOINT_LAYOUT_H
#define WEFT_CHECKPOINT_LAYOUT_H

#include "checkpoint.h"

/* of a file; larger tensors begin at one */
enum { PAGE_BYTES = 4096 };

/* Creates part with all attributes and a contiguous, allocated data set per tensor; hash[i] is
 * written with tensor i. offset[i]: where the bytes of tensor i belong. Space for the whole file is
 * reserved where the file system can, so that a full disk shows here. ERR_IO. On one rank. */
Status layout_create(const char *part, const CheckpointMeta *meta, const CheckpointIo *io,
                     const uint64_t *hash, int64_t *offset);
/* ERR_IO: "PATH: WHAT failed: REASON", with the free space of the file system that path is on, and
 * CHECKPOINT_MAKE_ROOM where that is full. */
Status write_failed(const char *path, const char *what, int error);

#endif
