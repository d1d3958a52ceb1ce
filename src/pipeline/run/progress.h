/* These functions wait for messages and sums. While a rank waits for one message or sum, all other
 * communication that it has begun makes progress. They use only the communicator and the
 * channels. */
#ifndef WEFT_PIPELINE_PROGRESS_H
#define WEFT_PIPELINE_PROGRESS_H

#include "parallel.h"

/* All fields are borrowed. */
typedef struct Progress {
    Comm *comm;
    /* channels between the stages; NULL with one stage */
    Channels *stages;
    /* channels between the ranks of a tensor-parallel group; NULL if there are none */
    Channels *group;
    /* channels between replicas, for sums of synced operations; NULL if there are none */
    Channels *replicas;
} Progress;

/* Makes progress without waiting. Cheap. */
void progress_poll(const Progress *progress);
/* Returns the channel's slot for the next message; waits until one is free. If the slots are in the
 * GPU's memory, where messages move only in channels_move, await_slot and await_message die instead
 * of waiting. */
char *await_slot(const Progress *progress, Channels *channels, int channel);
/* Returns the channel's oldest message; waits until there is one. */
const char *await_message(const Progress *progress, Channels *channels, int channel);
/* Waits for a push or an all-gather. wait: comm_push_poll or comm_allgather_poll; number: the
 * result of comm_push_begin or comm_allgather_begin. */
void collective_wait(const Progress *progress, bool (*wait)(Comm *, int64_t), int64_t number);

#endif
