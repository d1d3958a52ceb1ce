/* A channel's transports, as the table in channels.c sees them: pipes in memory that a node's ranks share, MPI's messages, and NCCL
 * between GPUs. */
#ifndef WEFT_PARALLEL_CHANNEL_H
#define WEFT_PARALLEL_CHANNEL_H

#include "parallel.h"
#include "shm_segment.h"

typedef enum ChannelEnd { END_ELSEWHERE, END_SENDER, END_RECEIVER } ChannelEnd;
typedef struct Channel Channel;

/* Both sides' calls are for the next message in order; place and message return NULL where it has to wait. */
typedef struct ChannelTable {
    void *(*place)(Channel *channel);
    void (*send)(Channel *channel);
    const void *(*message)(Channel *channel);
    void (*release)(Channel *channel);
    void (*progress)(Channel *channel); /* NULL: nothing to do */
    void (*close)(Channel *channel);    /* nothing is under way any more */
} ChannelTable;
extern const ChannelTable channel_pipe, channel_mpi, channel_nccl;

struct Channel {
    ChannelSpec spec;
    const ChannelTable *table;
    ChannelEnd end;  /* this rank's */
    int at;          /* the next message's place, */
    char *places;    /* of these: spec.depth of spec.bytes each; NULL where this rank is no end */
    uint32_t passed; /* messages sent, or given back, here so far; wraps */
    void *impl;      /* owned by the transport; NULL where this rank is no end */
};

static inline void *channel_at(const Channel *channel)
{
    return channel->places + (size_t)channel->at * channel->spec.bytes;
}

/* After a send or a return. */
static inline void channel_step(Channel *channel)
{
    ++channel->passed;
    channel->at = channel->at + 1 == channel->spec.depth ? 0 : channel->at + 1;
}

/* What all pipes of a node's ranks lie in. Without pipes nothing is shared, and bell is NULL. */
typedef struct PipeNode {
    ShmSegment shared;
    struct Bell *bell; /* of this rank; borrowed from shared */
    uint32_t heard;    /* the bell when this rank last went to look what has come */
} PipeNode;
/* Opens this rank's ends of the channels whose table is channel_pipe. node: the ranks of this node as a world; node_rank[r]:
 * rank r's rank there, or -1. Collective on node; not OK: nothing is held. */
Status pipes_open(PipeNode *pipes, const World *node, const int *node_rank, Channel *channel,
                  int count);
void pipes_close(PipeNode *pipes);
/* Sleeps until a peer has sent or given back anything since the last call, at most limit_s (below 1). */
void pipes_sleep(PipeNode *pipes, double limit_s);

/* An end of channel whose table is channel_mpi. tag: the channel's own between its two ranks; comm is borrowed. */
void channel_mpi_open(Channel *channel, MPI_Comm comm, int tag);

/* An end of channel whose table is channel_nccl; gpus, of the channels' world, is borrowed. */
void channel_nccl_open(Channel *channel, const struct Gpus *gpus);
/* As channels_move. */
void channel_nccl_move(Channel *channel, const int *which, int count);

#endif
