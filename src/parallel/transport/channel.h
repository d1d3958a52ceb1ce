/* A channel's transports, as the table in channels.c sees them: pipes in memory that a node's ranks
 * share, MPI's messages, and NCCL between GPUs. */
#ifndef WEFT_PARALLEL_CHANNEL_H
#define WEFT_PARALLEL_CHANNEL_H

#include "parallel.h"

typedef enum ChannelEnd { END_ELSEWHERE, END_SENDER, END_RECEIVER } ChannelEnd;
typedef struct Channel Channel;

/* Both sides' calls are for the next message in order; slot and message return NULL where it has to
 * wait. */
typedef struct ChannelTable {
    void *(*slot)(Channel *channel);
    void (*send)(Channel *channel);
    const void *(*message)(Channel *channel);
    void (*release)(Channel *channel);
    /* NULL: nothing to do */
    void (*progress)(Channel *channel);
    /* nothing is under way any more */
    void (*close)(Channel *channel);
} ChannelTable;

struct Channel {
    ChannelSpec spec;
    const ChannelTable *table;
    /* this rank's */
    ChannelEnd end;
    /* the next message's slot, */
    int at;
    /* of these: spec.depth of spec.bytes each; NULL where this rank is no end */
    char *slots;
    /* messages sent, or released, here so far; wraps */
    uint32_t passed;
    /* owned by the transport; NULL where this rank is no end */
    void *impl;
};

static inline void *channel_at(const Channel *channel)
{
    return channel->slots + (size_t)channel->at * channel->spec.bytes;
}

/* After a send or a release. */
static inline void channel_step(Channel *channel)
{
    ++channel->passed;
    channel->at = channel->at + 1 == channel->spec.depth ? 0 : channel->at + 1;
}

#endif
