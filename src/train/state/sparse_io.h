/* Rows of sparse tables in checkpoints. They are stored in blocks, sorted by (shard, id). A block
 * has at most 65,536 rows on average, or more in tables of over 268 million rows. The blocks are
 * the same on every grid. */
#ifndef WEFT_TRAIN_SPARSE_IO_H
#define WEFT_TRAIN_SPARSE_IO_H

#include "../trainer.h"

typedef struct SparseIo SparseIo;

/* Prepares to save the current rows. Returns NULL if the model has no table. Owner: the caller.
 * Collective. */
SparseIo *sparse_io_saving(Trainer *t);
/* Prepares to load the model's tables from a file, and clears their rows. params_only = true:
 * leaves out optimizer state. *io is NULL if the model has no table. Collective; all ranks return
 * the same Status. */
Status sparse_io_loading(Trainer *t, const char *path, bool params_only, SparseIo **io);
void sparse_io_free(SparseIo **io);
/* Returns the number of tensors; 0 if io is NULL. */
int sparse_io_count(const SparseIo *io);
/* Returns the tensors, borrowed from io. */
const CheckpointTensor *sparse_io_tensors(const SparseIo *io);
/* These four functions do the work of CheckpointIo's collect_begin, get, wants and set for the
 * tensors of SparseIo. i: number of the tensor, counted from 0 in sparse_io_tensors. */
void sparse_io_collect(SparseIo *io, int i, int writer);
const float *sparse_io_get(const SparseIo *io, int i);
bool sparse_io_wants(const SparseIo *io, int i);
/* Ends the job with ERR_MEMORY if there is no memory for a row. */
void sparse_io_set(SparseIo *io, int i, const float *plain);
/* Call sparse_io_set_begin before the first and sparse_io_set_end after the last sparse_io_set.
 * Collective. */
void sparse_io_set_begin(SparseIo *io);
void sparse_io_set_end(SparseIo *io);

#endif
