/* Channels between GPUs. Both ends have `depth` slots in the memory of their GPU. Work on the
 * compute stream fills and empties slots. A message moves on the communicator's stream when both
 * ranks call channel_nccl_move. Each slot has two events: `computed` is recorded when the compute
 * stream has filled or emptied the slot, `moved` when its message has moved. Until a channel is
 * closed, the host waits only inside calls of NCCL. */
#include "channel_nccl.h"
#include "nccl.h"

typedef struct NcclEnd {
    /* handle of the communicator; borrowed */
    const NcclComm *nccl_comm;
    /* the rank at the other end */
    int peer;
    /* Event of each slot, [depth]; owned. A wait for an event that was never recorded returns at
     * once. */
    Event **computed;
    /* event of each slot, [depth]; owned */
    Event **moved;
    /* number of messages whose move has been queued; wraps */
    uint32_t begun;
    /* number of messages whose event `moved` has been recorded; wraps */
    uint32_t recorded;
    /* index of the slot of the next message to move */
    int begun_at;
    /* index of the slot of the next event `moved` to record */
    int recorded_at;
} NcclEnd;

static const BackendTable *table_of(const NcclEnd *end)
{
    return end->nccl_comm->backend->table;
}

static Stream *compute_stream(const NcclEnd *end)
{
    return table_of(end)->stream(end->nccl_comm->backend);
}

static int next_slot(const Channel *channel, int at)
{
    return at + 1 == channel->spec.depth ? 0 : at + 1;
}

/* Returns the slot of the next message. Makes the compute stream wait until the previous message of
 * this slot has moved. */
static void *slot_after_move(Channel *channel)
{
    const NcclEnd *end = channel->impl;
    table_of(end)->event_wait(end->moved[channel->at], compute_stream(end));
    return channel_at(channel);
}

static void *slot(Channel *channel)
{
    const NcclEnd *end = channel->impl;
    bool full = channel->passed - end->begun == (uint32_t)channel->spec.depth;
    return full ? NULL : slot_after_move(channel);
}

static const void *message(Channel *channel)
{
    const NcclEnd *end = channel->impl;
    return end->begun == channel->passed ? NULL : slot_after_move(channel);
}

/* Records the event `computed` of the slot, and advances to the next slot. Implements send and
 * release. */
static void step(Channel *channel)
{
    const NcclEnd *end = channel->impl;
    table_of(end)->event_record(end->computed[channel->at], compute_stream(end));
    channel_step(channel);
}

static void begin_move(Channel *channel)
{
    NcclEnd *end = channel->impl;
    char *data = channel->slots + (size_t)end->begun_at * channel->spec.bytes;
    table_of(end)->event_wait(end->computed[end->begun_at], end->nccl_comm->stream);
    if (channel->end == END_SENDER)
        nccl_send(end->nccl_comm, data, channel->spec.bytes, end->peer);
    else
        nccl_receive(end->nccl_comm, data, channel->spec.bytes, end->peer);
    end->begun_at = next_slot(channel, end->begun_at);
    ++end->begun;
}

static void record_moves(Channel *channel)
{
    NcclEnd *end = channel->impl;
    for (; end->recorded != end->begun; ++end->recorded) {
        table_of(end)->event_record(end->moved[end->recorded_at], end->nccl_comm->stream);
        end->recorded_at = next_slot(channel, end->recorded_at);
    }
}

/* Returns whether the next message can move: the sender has sent a message that has not moved, or
 * the receiver has a free slot. */
static bool may_move(const Channel *channel)
{
    const NcclEnd *end = channel->impl;
    uint32_t depth = (uint32_t)channel->spec.depth;
    return channel->end == END_SENDER ? end->begun != channel->passed
                                      : end->begun - channel->passed < depth;
}

void channel_nccl_move(Channel *channel, const int *which, int count)
{
    if (count == 0) return;
    const NcclComm *nccl_comm = ((NcclEnd *)channel[which[0]].impl)->nccl_comm;
    nccl_group_begin(nccl_comm);
    for (int i = 0; i < count; ++i) {
        if (!may_move(&channel[which[i]]))
            die("channel %d: a move of a message that was not sent, or for which no slot is free",
                which[i]);
        begin_move(&channel[which[i]]);
    }
    nccl_group_end(nccl_comm);
    for (int i = 0; i < count; ++i) record_moves(&channel[which[i]]);
}

/* Returns the bytes to allocate for the slots: 1 if messages are empty, so that channel->slots is
 * not NULL. */
static size_t slots_bytes(const Channel *channel)
{
    size_t bytes = (size_t)channel->spec.depth * channel->spec.bytes;
    return bytes ? bytes : 1;
}

void channel_nccl_open(Channel *channel, const NcclComm *nccl_comm)
{
    const BackendTable *table = nccl_comm->backend->table;
    size_t depth = (size_t)channel->spec.depth;
    NcclEnd *end = channel->impl = mem_new(sizeof *end);
    *end = (NcclEnd){.nccl_comm = nccl_comm};
    end->peer = channel->end == END_SENDER ? channel->spec.to : channel->spec.from;
    end->computed = mem_new(depth * sizeof(Event *));
    end->moved = mem_new(depth * sizeof(Event *));
    for (size_t i = 0; i < depth; ++i) {
        end->computed[i] = table->event_new(nccl_comm->backend);
        end->moved[i] = table->event_new(nccl_comm->backend);
    }
    channel->slots = table->alloc(nccl_comm->backend, slots_bytes(channel));
}

static void close_end(Channel *channel)
{
    NcclEnd *end = channel->impl;
    Backend *backend = end->nccl_comm->backend;
    size_t depth = (size_t)channel->spec.depth;
    backend->table->sync(end->nccl_comm->stream);
    for (size_t i = 0; i < depth; ++i) {
        backend->table->event_free(&end->computed[i]);
        backend->table->event_free(&end->moved[i]);
    }
    if (channel->slots) backend->table->release(backend, channel->slots, slots_bytes(channel));
    mem_free(&end->computed);
    mem_free(&end->moved);
    mem_free(&channel->impl);
}

const ChannelTable channel_nccl = {
    .slot = slot,
    .send = step,
    .message = message,
    .release = step,
    .close = close_end,
};
