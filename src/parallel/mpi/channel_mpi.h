/* Channels by MPI's messages. */
#ifndef WEFT_PARALLEL_CHANNEL_MPI_H
#define WEFT_PARALLEL_CHANNEL_MPI_H

#include "../transport/channel.h"

extern const ChannelTable channel_mpi;

/* An end of channel whose table is channel_mpi. tag: the channel's own between its two ranks; comm
 * is borrowed. */
void channel_mpi_open(Channel *channel, MPI_Comm comm, int tag);

#endif
