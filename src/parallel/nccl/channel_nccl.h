/* Channels between GPUs that NCCL joins; in a build without CUDA nccl_absent.c stands in for
 * them. */
#ifndef WEFT_PARALLEL_CHANNEL_NCCL_H
#define WEFT_PARALLEL_CHANNEL_NCCL_H

#include "../transport/channel.h"

extern const ChannelTable channel_nccl;

/* An end of channel whose table is channel_nccl; gpus, of the channels' world, is borrowed. */
void channel_nccl_open(Channel *channel, const struct Gpus *gpus);
/* As channels_move. */
void channel_nccl_move(Channel *channel, const int *which, int count);

#endif
