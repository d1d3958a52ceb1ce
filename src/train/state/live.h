/* Access to a trainer's tensors in place, to save and load checkpoints. */
#ifndef WEFT_TRAIN_LIVE_H
#define WEFT_TRAIN_LIVE_H

#include "sparse_io.h"
#include "tensors.h"

typedef struct Live {
    /* the tensors of the checkpoint, without rows of sparse tables */
    Tensors list;
    /* buffer for the host copy of a tensor; NULL if operations use host memory; owned, as are all
     * buffers below */
    float *host;
    /* buffer for a tensor that is assembled from shards; NULL if nothing is sharded */
    float *whole;
    /* buffer for this rank's slice of a tensor, assembled from the replicas' shards; NULL without
     * sharding or without slices */
    float *assembled_slice;
    /* transfers in progress, [collects]; owned */
    WorldCollect **collect;
    /* number of transfers in progress */
    int collects;
    /* this rank's slice of a tensor in plain order; NULL without tensor parallelism */
    float *slice;
    /* all slices of the tensor-parallel group in plain order; NULL without tensor parallelism */
    float *slices;
    /* rows of sparse tables, which follow the list's tensors; NULL: there are no tables; owned */
    SparseIo *sparse;
    /* descriptions of the list's tensors and of the rows; NULL without tables; owned */
    CheckpointTensor *tensor;
} Live;

/* Makes the list of tensors and allocates the buffers. params_only: as in tensors_init. If there
 * are rows of tables, the caller sets live->sparse before it calls live_io. Release with
 * live_fini. */
void live_init(Live *live, Trainer *t, bool params_only);
void live_fini(Live *live);
/* Returns the interface through which the checkpoint module accesses the tensors. It borrows from
 * `live`. Call it once. */
CheckpointIo live_io(Live *live);

#endif
