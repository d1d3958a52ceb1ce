/* Channels, which carry messages between two ranks, and the exchange of slices between GPUs. */
#ifndef WEFT_PARALLEL_CHANNELS_H
#define WEFT_PARALLEL_CHANNELS_H

#include "parallel/world.h"
#include "tensor.h"

/* One-way channels between ranks of a world, each for messages of one size. With TRANSPORT_AUTO the
 * transport of a channel is NCCL if world has an NCCL communicator (World.nccl_comm), else shared
 * memory if both ranks are on one node, else MPI. A message is written to and read from one of the
 * channel's `depth` slots, so a sender may run `depth` messages ahead of its receiver. Over MPI
 * each end has `depth` slots, and the sender may run up to 2 * depth messages ahead. A function
 * blocks only if its comment says so; the result NULL means "not yet". */
typedef struct ChannelSpec {
    /* from: rank of the sender; to: rank of the receiver; depth: number of slots */
    int from, to, depth;
    /* bytes of each message, a multiple of 64; if it is 0, messages are sent and received, too */
    size_t bytes;
} ChannelSpec;
typedef struct Channels Channels;
/* Opens the channels that `spec` describes, [count], with the same entries on all ranks. transport:
 * a Transport. ERR_CONFIG: the requested transport cannot connect the ranks. Release with
 * channels_free. Collective on world. */
Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport);
/* Closes the channels. Ends the job if a message that was sent has not been released.
 * Collective. */
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
/* Marks, for the watchdog's report, that this rank now waits for the channel's other end. what: the
 * content of the messages, for example "a slice". */
void channel_mark(const Channels *channels, int channel, const char *what);
/* Returns true if the slots are in the GPU's memory. Work that is queued on the compute stream then
 * writes and reads them, and messages move only in channels_move. */
bool channels_on_device(const Channels *channels);
/* Moves the next message of each channel in channel[0 .. count - 1]; this rank is the sender or the
 * receiver of each. Before it, channel_send has been called for each message to send, and each
 * message to receive has a free slot. All ranks must call channels_move in the order of one common
 * sequence of messages (schedule_moves): a call may block until its peers make the matching call,
 * and the common order prevents deadlock. Does nothing if the slots are in host memory, where
 * messages move without this call. */
void channels_move(Channels *channels, const int *channel, int count);
/* Waits a little; call it in a loop while this rank waits for a channel. waited_s: seconds since
 * the wait began; the longer they are, the longer the call gives up the core. If ranks of this node
 * have channels in shared memory, it ends the job when the process of such a rank has ended. */
void channels_wait(Channels *channels, double waited_s);

/* Makes the exchange of slices between ranks whose GPUs NCCL connects (tensor.h, Exchange). It
 * queues grouped sends and receives on the compute stream, so work that is queued later sees the
 * result. Partial results are added in the order of the ranks. If `tree` is true, partial results
 * in fp32 are added by the binary tree of neighbours instead. most: bytes of the largest tensor
 * that is exchanged. Returns NULL if world has no NCCL communicator. The caller owns the result.
 * Not collective. */
Exchange *gpu_exchange_new(const World *world, size_t most, bool tree);
void gpu_exchange_free(Exchange **exchange);
/* Returns the bytes of GPU memory that gpu_exchange_new allocates for `ranks` ranks. */
size_t gpu_exchange_bytes(int ranks, size_t most);

#endif
