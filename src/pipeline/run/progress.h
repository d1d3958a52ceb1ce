/* Waiting without standing still: while a rank waits for one thing, all else that it has begun
 * moves on. A leaf: it knows the communicator and channels, and nothing of who uses them. */
#ifndef WEFT_PIPELINE_PROGRESS_H
#define WEFT_PIPELINE_PROGRESS_H

#include "parallel.h"

/* borrowed, all */
typedef struct Progress {
    Comm *comm;
    /* between the stages; NULL: there is one */
    Channels *stages;
    /* between the ranks of a tensor group; NULL: none that must be moved */
    Channels *group;
    /* between replicas, for sums of synced operations; NULL: there are none */
    Channels *replicas;
} Progress;

/* Moves on what can be. Cheap. */
void progress_poll(const Progress *progress);
/* The channel's place for the next message: waits until one is free. */
char *await_slot(const Progress *progress, Channels *channels, int channel);
/* The channel's oldest message: waits until there is one. */
const char *await_message(const Progress *progress, Channels *channels, int channel);
/* Waits for a push or a gathering: wait is comm_push_wait or comm_allgather_wait, number what the
 * beginning returned. */
void collective_wait(const Progress *progress, bool (*wait)(Comm *, int64_t), int64_t number);

#endif
