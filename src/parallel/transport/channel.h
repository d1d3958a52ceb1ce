/* The interface between channels.c and the transports of a channel: pipes in memory that a node's
 * ranks share, MPI messages, and NCCL between GPUs. */
#ifndef WEFT_PARALLEL_CHANNEL_H
#define WEFT_PARALLEL_CHANNEL_H

#include "parallel.h"

typedef enum ChannelEnd { END_ELSEWHERE, END_SENDER, END_RECEIVER } ChannelEnd;
typedef struct Channel Channel;

/* Functions of a transport. slot, send, message and release act on the next message in order, as
 * channels.h says of channel_slot and so on; slot and message return NULL while the caller has to
 * wait. */
typedef struct ChannelTable {
    void *(*slot)(Channel *channel);
    void (*send)(Channel *channel);
    const void *(*message)(Channel *channel);
    void (*release)(Channel *channel);
    /* NULL: the transport needs no calls to make progress */
    void (*progress)(Channel *channel);
    /* Releases impl, and slots unless they are in shared memory; called when no message is in
     * flight. */
    void (*close)(Channel *channel);
} ChannelTable;

struct Channel {
    ChannelSpec spec;
    const ChannelTable *table;
    /* whether this rank sends, receives, or does neither */
    ChannelEnd end;
    /* index of the next message's slot */
    int at;
    /* spec.depth slots of spec.bytes each, in memory of the transport; NULL if this rank is not an
     * end of the channel */
    char *slots;
    /* messages that this rank has sent or released so far; wraps */
    uint32_t passed;
    /* state of the transport, which owns it; NULL if this rank is not an end of the channel */
    void *impl;
};

/* The next message's slot. */
static inline void *channel_at(const Channel *channel)
{
    return channel->slots + (size_t)channel->at * channel->spec.bytes;
}

/* Advances to the next message after a send or a release. */
static inline void channel_step(Channel *channel)
{
    ++channel->passed;
    channel->at = channel->at + 1 == channel->spec.depth ? 0 : channel->at + 1;
}

#endif
