/* A checkpoint that one process makes of what another file holds. */
#ifndef WEFT_CHECKPOINT_MAKE_H
#define WEFT_CHECKPOINT_MAKE_H

#include "checkpoint.h"

typedef struct CheckpointSource {
    int count;
    /* borrowed */
    const CheckpointTensor *tensor;
    void *user;
    /* fills plain with tensor i; not called again once it has failed */
    Status (*read)(void *user, int i, float *plain);
} CheckpointSource;
/* Errors as checkpoint_save's; what read returns, and then nothing new is at path. Not
 * collective. */
Status checkpoint_make(const char *path, const CheckpointMeta *meta,
                       const CheckpointSource *source);

#endif
