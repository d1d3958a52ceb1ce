/* The tensors of a trainer as they lie in memory now, as a checkpoint's are given and taken. */
#ifndef WEFT_TRAIN_LIVE_H
#define WEFT_TRAIN_LIVE_H

#include "sparse_io.h"
#include "tensors.h"

typedef struct Live {
    Tensors list;
    /* copy of a tensor; NULL where the backend's memory is the host's */
    float *host;
    /* a tensor whose parts several ranks have; NULL where nothing is sharded */
    float *whole;
    /* likewise, of a slice of a tensor that others have too; NULL where tensors are not both */
    float *column;
    /* owned: parts that are on their way */
    WorldCollect **collect;
    int collects;
    /* In plain order, NULL where tensor parallelism divides nothing: this rank's slice of a tensor,
     * those of the group. */
    float *slice, *slices;
    /* owned: rows of sparse tables, whose tensors come behind the list's; NULL: there are none */
    SparseIo *sparse;
    /* owned: both, where there are */
    CheckpointTensor *tensor;
} Live;

/* Memory for what is on its way. Without rows of tables: a caller sets .sparse. */
void live_init(Live *live, Trainer *t, bool params_only);
void live_fini(Live *live);
/* Borrowed from live. */
CheckpointIo live_io(Live *live);

#endif
