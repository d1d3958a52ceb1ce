/* Lays out a new checkpoint file: everything but the tensors' bytes. */
#ifndef WEFT_CHECKPOINT_LAYOUT_H
#define WEFT_CHECKPOINT_LAYOUT_H

#include "checkpoint.h"

/* bytes of a page of the file; data sets of at least this size begin at a page */
enum { PAGE_BYTES = 4096 };

/* Creates the file `part` with all attributes and contiguous, allocated data sets: one for each
 * tensor, or one for all blocks of the ids, the rows or the state of a table. hash[i] is written
 * with tensor i. offset[count], a result: file offset of each tensor's bytes, 0 for the tensors of
 * an empty data set. An older `part` is removed first. Space for the whole file is reserved if the
 * file system can do so, so that a full disk is an error here. ERR_IO. Called on one rank. */
Status layout_create(const char *part, const CheckpointMeta *meta, const CheckpointIo *io,
                     const uint64_t *hash, int64_t *offset);
/* Fails with ERR_IO: "PATH: WHAT failed: REASON", with the free space of the file system of `path`
 * and, if it or a quota is full, CHECKPOINT_MAKE_ROOM. error: errno of the failure. */
Status write_failed(const char *path, const char *what, int error);

#endif
