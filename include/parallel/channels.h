/* Messages between two ranks, and exchanges of slices between GPUs. */
#ifndef WEFT_PARALLEL_CHANNELS_H
#define WEFT_PARALLEL_CHANNELS_H

#include "parallel/world.h"
#include "tensor.h"

/* One-way channels between ranks of a world, each for messages of one size: NCCL where world's GPUs
 * are joined, shared memory where both ranks are on one node, MPI else. A message is written to and
 * read from one of the channel's `depth` slots, so a sender runs ahead by so many (over MPI each
 * end has its own: up to twice as many). Calls never wait: they say whether they could. */
typedef struct ChannelSpec {
    int from, to, depth;
    /* a multiple of 64; 0: messages carry nothing, but still come and go */
    size_t bytes;
} ChannelSpec;
typedef struct Channels Channels;
/* All ranks give the same list. transport: refused as in comm_new. Collective on world. */
Status channels_new(Channels **channels, const World *world, const ChannelSpec *spec, int count,
                    int transport);
/* Every message sent has been released. Collective. */
void channels_free(Channels **channels);
/* Sender: where to write the next message, or NULL while all slots are taken; then send what was
 * written. */
void *channel_slot(Channels *channels, int channel);
void channel_send(Channels *channels, int channel);
/* Receiver: the oldest message, or NULL while there is none; then release its slot. */
const void *channel_message(Channels *channels, int channel);
void channel_release(Channels *channels, int channel);
/* Makes MPI's messages progress; cheap. */
void channels_progress(Channels *channels);
/* For a watchdog: this rank waits for the channel's other end from now on. what: the channel
 * carries, as "a message". */
void channel_mark(const Channels *channels, int channel, const char *what);
/* Are slots in the GPU's memory? Their content is then queued work of the compute stream, and
 * messages move when both ranks say so. */
bool channels_on_device(const Channels *channels);
/* The next message of each of these channels, of which this rank is an end: those it sends have
 * been sent, and those it receives have a slot. All ranks' calls must be parts of one sequence of
 * messages (schedule_moves): then there is no dead end even where a call blocks until its peers
 * have come to theirs. Nothing to do where messages move by themselves. */
void channels_move(Channels *channels, const int *channel, int count);
/* For a rank that waits for a channel, called in a loop with the time since it began: leaves the
 * core to others, longer and longer, and dies where a peer's process has ended. */
void channels_wait(Channels *channels, double waited_s);

/* What lets ranks whose GPUs are joined exchange slices (tensor.h, Exchange): grouped sends and
 * receives on the compute stream, so that what is queued next finds the result, and additions in
 * the ranks' order. `most`: bytes of the largest tensor of which there are slices. NULL where
 * world's GPUs are not joined. Owner: the caller. Not collective. */
Exchange *gpu_exchange_new(const World *world, size_t most);
void gpu_exchange_free(Exchange **exchange);
/* Bytes of a GPU's memory that it takes. */
size_t gpu_exchange_bytes(int ranks, size_t most);

#endif
