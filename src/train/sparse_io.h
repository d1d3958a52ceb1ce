/* Rows of sparse tables in checkpoints: blocks of some ten thousand rows, by (shard, id), which no
 * grid changes. */
#ifndef WEFT_TRAIN_SPARSE_IO_H
#define WEFT_TRAIN_SPARSE_IO_H

#include "trainer.h"

typedef struct SparseIo SparseIo;

/* What is to be saved: the rows as they are now. Owner: the caller. NULL where the model has no
 * table. Collective. */
SparseIo *sparse_io_saving(Trainer *t);
/* What a file has of the model's tables, of which all rows are forgotten; params_only: without
 * state. Collective; all ranks agree. */
Status sparse_io_loading(Trainer *t, const char *path, bool params_only, SparseIo **io);
void sparse_io_free(SparseIo **io);
int sparse_io_count(const SparseIo *io);
/* Borrowed. */
const CheckpointTensor *sparse_io_tensors(const SparseIo *io);
/* As CheckpointIo's functions, i from 0 among these. */
void sparse_io_collect(SparseIo *io, int i, int writer);
const float *sparse_io_get(const SparseIo *io, int i);
bool sparse_io_wants(const SparseIo *io, int i);
/* Ends the job with ERR_MEMORY where a row has no room. */
void sparse_io_set(SparseIo *io, int i, const float *plain);
/* Around all of them. Collective. */
void sparse_io_set_begin(SparseIo *io);
void sparse_io_set_end(SparseIo *io);

#endif
