/* The interface between channels.c and the transports of channels: pipes in memory that ranks of a
 * node share, messages by MPI, and NCCL between GPUs. */
#ifndef WEFT_PARALLEL_CHANNEL_H
#define WEFT_PARALLEL_CHANNEL_H

#include "parallel.h"

/* The end of a channel at which this rank is. END_ELSEWHERE: neither end. */
typedef enum ChannelEnd { END_ELSEWHERE, END_SENDER, END_RECEIVER } ChannelEnd;
typedef struct Channel Channel;

/* Functions of a transport. The functions slot, send, message and release act on the next message
 * in order. parallel/channels.h describes them at channel_slot, channel_send, channel_message and
 * channel_release. slot and message return NULL while the caller has to wait. */
typedef struct ChannelTable {
    /* true: this build lacks the transport, and all functions are NULL */
    bool absent;
    void *(*slot)(Channel *channel);
    void (*send)(Channel *channel);
    const void *(*message)(Channel *channel);
    void (*release)(Channel *channel);
    /* Moves messages. The member is NULL if the transport needs no calls to make progress. */
    void (*progress)(Channel *channel);
    /* Releases Channel.impl, and Channel.slots unless they are in shared memory. Called when no
     * message is in flight. */
    void (*close)(Channel *channel);
} ChannelTable;

/* Returns ERR_BUG, naming the member, if the table of a transport lacks something. name: the
 * transport's name for the message. */
Status channel_table_check(const char *name, const ChannelTable *table);

struct Channel {
    ChannelSpec spec;
    const ChannelTable *table;
    ChannelEnd end;
    /* index of the slot for the next message */
    int at;
    /* spec.depth slots of spec.bytes bytes each, in memory that the transport has allocated; NULL
     * if this rank is at neither end */
    char *slots;
    /* number of messages that this rank has sent or released so far; wraps */
    uint32_t passed;
    /* state of the transport, which owns it; NULL if this rank is at neither end */
    void *impl;
};

/* Returns the slot for the next message. */
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
