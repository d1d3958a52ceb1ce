/* Channels between GPUs that NCCL joins. In a build without CUDA nccl_absent.c replaces these
 * functions. */
#ifndef WEFT_PARALLEL_CHANNEL_NCCL_H
#define WEFT_PARALLEL_CHANNEL_NCCL_H

#include "../transport/channel.h"

extern const ChannelTable channel_nccl;

/* Opens this rank's end of a channel whose table is channel_nccl. nccl_comm: this rank's handle of
 * the communicator of the channels' world; borrowed. */
void channel_nccl_open(Channel *channel, const struct NcclComm *nccl_comm);
/* Implements channels_move. channel: array of all channels. which: indices in this array of the
 * channels to move, [count]; their table is channel_nccl. */
void channel_nccl_move(Channel *channel, const int *which, int count);

#endif
