/* Channels between GPUs that NCCL joins; in a build without CUDA nccl_absent.c replaces them. */
#ifndef WEFT_PARALLEL_CHANNEL_NCCL_H
#define WEFT_PARALLEL_CHANNEL_NCCL_H

#include "../transport/channel.h"

extern const ChannelTable channel_nccl;

/* Opens this rank's end of a channel whose table is channel_nccl. gpus: the joined GPUs of the
 * channels' world; borrowed. */
void channel_nccl_open(Channel *channel, const struct Gpus *gpus);
/* Implements channels_move. channel: all channels, which `which` has indices of; they are of this
 * table. */
void channel_nccl_move(Channel *channel, const int *which, int count);

#endif
