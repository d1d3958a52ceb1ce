/* Channels as pipes in memory that a node's ranks share. */
#ifndef WEFT_PARALLEL_CHANNEL_SHM_H
#define WEFT_PARALLEL_CHANNEL_SHM_H

#include "../transport/channel.h"
#include "shm_segment.h"

extern const ChannelTable channel_pipe;

/* What all pipes of a node's ranks lie in. Without pipes nothing is shared, and bell is NULL. */
typedef struct PipeNode {
    ShmSegment shared;
    /* of this rank; borrowed from shared */
    struct Bell *bell;
    /* the bell when this rank last went to look what has come */
    uint32_t heard;
} PipeNode;
/* Opens this rank's ends of the channels whose table is channel_pipe. node: the ranks of this node
 * as a world; node_rank[r]: rank r's rank there, or -1. Collective on node; not OK: there is
 * nothing to release. */
Status pipes_open(PipeNode *pipes, const World *node, const int *node_rank, Channel *channel,
                  int count);
void pipes_close(PipeNode *pipes);
/* Sleeps until a peer has sent or released anything since the last call, at most limit_s (below
 * 1). */
void pipes_sleep(PipeNode *pipes, double limit_s);

#endif
