/* Channels between ranks of one node. Such a channel is a pipe in memory that the ranks share. */
#ifndef WEFT_PARALLEL_CHANNEL_SHM_H
#define WEFT_PARALLEL_CHANNEL_SHM_H

#include "../transport/channel.h"
#include "shm_segments.h"

extern const ChannelTable channel_pipe;

/* The memory of all pipes between the ranks of a node. Without pipes no memory is shared. */
typedef struct PipeNode {
    /* one segment per rank, with the rank's bell and the pipes from which it receives; owned */
    ShmSegments shared;
    /* bell of this rank, in its segment of `shared`; borrowed; NULL if there are no pipes */
    struct Bell *bell;
    /* value of bell->rung when pipes_sleep last returned without sleeping */
    uint32_t seen;
} PipeNode;
/* Opens this rank's ends of the channels whose table is channel_pipe. node: a world of the ranks of
 * this node. node_rank[r]: number in `node` of rank r of the channels' world; -1 if that rank is on
 * another node. On error pipes_close and ChannelTable.close need not be called. Collective on
 * `node`. */
Status pipes_open(PipeNode *pipes, const World *node, const int *node_rank, Channel *channel,
                  int count);
void pipes_close(PipeNode *pipes);
/* Sleeps for at most limit_s seconds; limit_s must be below 1. Returns early if a peer sends or
 * releases a message. Returns at once if a peer has done so since the last call that returned
 * without sleeping. */
void pipes_sleep(PipeNode *pipes, double limit_s);

#endif
