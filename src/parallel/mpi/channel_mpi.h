/* Channels by messages of MPI. */
#ifndef WEFT_PARALLEL_CHANNEL_MPI_H
#define WEFT_PARALLEL_CHANNEL_MPI_H

#include "../transport/channel.h"

extern const ChannelTable channel_mpi;

/* Opens this rank's end of a channel whose table is channel_mpi. tag: number of the channel among
 * the channels with the same sender and receiver. comm: borrowed until the channel is closed. */
void channel_mpi_open(Channel *channel, MPI_Comm comm, int tag);

#endif
