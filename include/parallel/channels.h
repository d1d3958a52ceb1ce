/* Channels, which carry messages between two ranks, and the exchange of slices between GPUs. */
#ifndef WEFT_PARALLEL_CHANNELS_H
#define WEFT_PARALLEL_CHANNELS_H

#include "parallel/world.h"
#include "tensor.h"

/* One-way channels between ranks of a world, each for messages of one size. The transport is NCCL
 * where world's GPUs are joined, shared memory where both ranks are on one node, and MPI otherwise.
 * A message is written to and read from one of the channel's `depth` slots, so a sender may run
 * `depth` messages ahead of its receiver (over MPI each end has slots, so up to twice as many). No
 * call here blocks unless its comment says so; NULL means "not yet". */
typedef struct ChannelSpec {
    int from, to, depth;
    /* bytes of each message, a multiple of 64; messages of 0 bytes are sent and received, too */
    size_t bytes;
} ChannelSpec;
typedef struct Channels Channels;
/* Opens the channels of spec[count], which is the same on all ranks. A transport that cannot serve
 * is refused as in comm_new. Release with channels_free. Collective on world. */
Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport);
/* Dies unless every message sent has been released. Collective. */
void channels_free(Channels **channels);
/* For the sender. channel_slot returns where to write the next message, or NULL while all slots are
 * taken; channel_send then sends that slot. */
void *channel_slot(Channels *channels, int channel);
void channel_send(Channels *channels, int channel);
/* For the receiver. channel_message returns the oldest message, or NULL while there is none;
 * channel_release then frees its slot. */
const void *channel_message(Channels *channels, int channel);
void channel_release(Channels *channels, int channel);
/* Lets MPI move messages; cheap. Not collective. */
void channels_progress(Channels *channels);
/* Tells the watchdog that this rank now waits for the channel's other end. what: the content of its
 * messages, for the report, for example "a message". */
void channel_mark(const Channels *channels, int channel, const char *what);
/* True if the slots lie in the GPU's memory. Their content is then produced and consumed by work
 * queued on the compute stream, and messages move only in channels_move. */
bool channels_on_device(const Channels *channels);
/* Moves the next message of each given channel; this rank is an end of all of them. Messages to
 * send have been sent (channel_send), and messages to receive have a free slot. The calls of all
 * ranks must follow one common sequence of messages (schedule_moves); then there is no deadlock
 * even where a call blocks until its peers reach theirs. Does nothing where messages move by
 * themselves. */
void channels_move(Channels *channels, const int *channel, int count);
/* Called in a loop by a rank that waits for a channel, with the seconds since the wait began. It
 * yields the core for longer and longer times, and dies if a peer's process has ended. */
void channels_wait(Channels *channels, double waited_s);

/* Makes the exchange of slices between ranks whose GPUs are joined (tensor.h, Exchange): grouped
 * sends and receives on the compute stream, so that work queued later sees the result; partial
 * results are added in rank order, fp32 ones by the binary tree of neighbours if `tree` is set.
 * most: bytes of the largest tensor that is exchanged. Returns NULL where world's GPUs are not
 * joined. The caller owns the result. Not collective. */
Exchange *gpu_exchange_new(const World *world, size_t most, bool tree);
void gpu_exchange_free(Exchange **exchange);
/* Bytes of GPU memory that such an exchange allocates. */
size_t gpu_exchange_bytes(int ranks, size_t most);

#endif
