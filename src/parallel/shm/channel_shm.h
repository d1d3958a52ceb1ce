/* Channels as pipes in memory shared by a node's ranks. */
#ifndef WEFT_PARALLEL_CHANNEL_SHM_H
#define WEFT_PARALLEL_CHANNEL_SHM_H

#include "../transport/channel.h"
#include "shm_segments.h"

extern const ChannelTable channel_pipe;

/* The memory of all pipes between the ranks of a node. If there are no pipes, no memory is shared,
 * and bell is NULL. */
typedef struct PipeNode {
    /* one segment per rank: its bell and the pipes that it receives from; owned */
    ShmSegments shared;
    /* bell of this rank; borrowed from shared */
    struct Bell *bell;
    /* value of bell->rung when pipes_sleep last returned without sleeping */
    uint32_t seen;
} PipeNode;
/* Opens this rank's ends of the channels whose table is channel_pipe. node: a world of the ranks of
 * this node; node_rank[r]: number in `node` of the channels' rank r, -1 if that rank is on another
 * node. Collective on node. On error there is nothing to release. */
Status pipes_open(PipeNode *pipes, const World *node, const int *node_rank, Channel *channel,
                  int count);
void pipes_close(PipeNode *pipes);
/* Sleeps for limit_s seconds at most; limit_s must be less than 1. Returns early if a peer sends or
 * releases a message, and at once if a peer has done so since the last call that returned without
 * sleeping. */
void pipes_sleep(PipeNode *pipes, double limit_s);

#endif
