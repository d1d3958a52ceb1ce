/* Channels, which carry messages between two ranks, and the exchange of slices between GPUs. */
#ifndef WEFT_PARALLEL_CHANNELS_H
#define WEFT_PARALLEL_CHANNELS_H

#include "parallel/world.h"
#include "tensor.h"

/* One-way channels between ranks of a world, each for messages of one size. With TRANSPORT_AUTO the
 * transport is NCCL where world's GPUs are joined, shared memory where both ranks are on one node,
 * and MPI otherwise. A message is written to and read from one of the channel's `depth` slots, so a
 * sender may run `depth` messages ahead of its receiver. Over MPI each end has `depth` slots, and
 * the sender may run up to 2 * depth messages ahead. A function blocks only where its comment says
 * so; a result of NULL means "not yet". */
typedef struct ChannelSpec {
    /* ranks of the sender and the receiver, and the number of slots */
    int from, to, depth;
    /* bytes of each message, a multiple of 64; messages of 0 bytes are sent and received, too */
    size_t bytes;
} ChannelSpec;
typedef struct Channels Channels;
/* Opens the channels that spec describes, an array of `count` entries that is the same on all
 * ranks. ERR_CONFIG if the requested transport cannot connect the ranks, as in comm_new. Release
 * with channels_free. Collective on world. */
Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport);
/* Dies if a message that was sent has not been released. Collective. */
void channels_free(Channels **channels);
/* Called by the sender. channel_slot returns the slot for the next message, or NULL while all
 * slots are in use; channel_send then sends that slot. */
void *channel_slot(Channels *channels, int channel);
void channel_send(Channels *channels, int channel);
/* Called by the receiver. channel_message returns the oldest message, or NULL until one arrives;
 * channel_release then frees its slot. */
const void *channel_message(Channels *channels, int channel);
void channel_release(Channels *channels, int channel);
/* Lets MPI move messages; cheap. Not collective. */
void channels_progress(Channels *channels);
/* Tells the watchdog that this rank now waits for the channel's other end. what: what the messages
 * are, for the watchdog's report, for example "a slice". */
void channel_mark(const Channels *channels, int channel, const char *what);
/* True if the slots are in the GPU's memory. Their content is then produced and consumed by work
 * queued on the compute stream, and messages move only in channels_move. */
bool channels_on_device(const Channels *channels);
/* Moves the next message of each given channel; this rank is the sender or the receiver of each.
 * channel_send has been called for each message to send, and each message to receive has a free
 * slot. All ranks must call channels_move in the order of one common sequence of messages
 * (schedule_moves): a call may block until its peers make the matching call, and the common order
 * excludes a deadlock. Does nothing if the slots are in host memory, where messages move without
 * this call. */
void channels_move(Channels *channels, const int *channel, int count);
/* Called in a loop by a rank that waits for a channel, with the seconds since the wait began. It
 * gives up the core for longer and longer times, and, if ranks of this node have channels in shared
 * memory, dies if a peer's process on this node has ended. */
void channels_wait(Channels *channels, double waited_s);

/* Makes the exchange of slices between ranks whose GPUs are joined (tensor.h, Exchange). It queues
 * grouped sends and receives on the compute stream, so work queued later sees the result. Partial
 * results are added in rank order; if `tree` is set, fp32 partial results are added by the binary
 * tree of neighbours instead. most: bytes of the largest tensor that is exchanged. Returns NULL
 * where world's GPUs are not joined. The caller owns the result. Not collective. */
Exchange *gpu_exchange_new(const World *world, size_t most, bool tree);
void gpu_exchange_free(Exchange **exchange);
/* Bytes of GPU memory that gpu_exchange_new allocates. */
size_t gpu_exchange_bytes(int ranks, size_t most);

#endif
