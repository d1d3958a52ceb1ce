/* Makes a checkpoint, in one process, from the content of another file. */
#ifndef WEFT_CHECKPOINT_MAKE_H
#define WEFT_CHECKPOINT_MAKE_H

#include "checkpoint.h"

typedef struct CheckpointSource {
    int count;
    /* [count]; borrowed */
    const CheckpointTensor *tensor;
    void *user;
    /* fills `plain` with tensor i; called twice for each tensor (save.c), but not again after a
     * call has failed */
    Status (*read)(void *user, int i, float *plain);
} CheckpointSource;
/* Writes a checkpoint. Returns errors of checkpoint_save and of source->read. After an error the
 * file at `path` is unchanged, unless only the sync of its folder failed. Not collective. */
Status checkpoint_make(const char *path, const CheckpointMeta *meta,
                       const CheckpointSource *source);

#endif
