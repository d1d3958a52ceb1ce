/* Channels by messages of MPI, for ranks on different nodes or with grid.transport: mpi. Both ends
 * have `depth` slots. The receiver posts a receive into each slot before a message can arrive, so
 * no message is copied. When a receiver releases a slot it sends an empty message, a credit for one
 * more message. A slot of the sender is free again when MPI has finished the send and, if the
 * message needed a credit, the credit has arrived. Credits keep a sender from running further ahead
 * than the slots of both ends:
 *
 *     sender      message k from slot k % depth; from k = depth on, a message's slot is free again
 *                 only after a credit has arrived
 *     receiver    message k into slot k % depth; its release posts k + depth and sends a credit
 *
 * Synchronous sends would limit the sender, too. They are not used, because Open MPI 4.1.4 with two
 * TCP connections between two ranks (btl_tcp_links) never ends a short synchronous send if no
 * message is sent the other way. Counts of MPI must be below 2^31, so longer messages are sent in
 * pieces of PIECE_BYTES. */
#include "channel_mpi.h"
#include "../world/mpi_check.h"
#include "progress_thread.h"

static const size_t PIECE_BYTES = (size_t)1 << 30;

typedef struct MpiEnd {
    /* communicator of the channels; borrowed */
    MPI_Comm comm;
    /* the rank at the other end */
    int peer;
    /* tag of the messages */
    int tag;
    /* tag of the credits */
    int credit_tag;
    /* number of pieces in which a message of the channel is sent */
    int pieces;
    /* At the sender: number of messages that may still be sent without a credit, because the
     * receiver has posted receives for them. At the receiver: 0. */
    int free_sends;
    /* requests of each slot, [depth][pieces + 1]: one for each piece, then one for the credit.
     * MPI_REQUEST_NULL: nothing is in flight. Owned. */
    MPI_Request *request;
    /* bytes that are allocated for all slots; 64 if messages are empty */
    size_t bytes;
} MpiEnd;

static int requests_of(const Channel *channel)
{
    const MpiEnd *end = channel->impl;
    return (end->pieces + 1) * channel->spec.depth;
}

static MPI_Request *slot_requests(const Channel *channel, int at)
{
    const MpiEnd *end = channel->impl;
    return end->request + (size_t)at * (size_t)(end->pieces + 1);
}

/* Begins the credit of the slot with index `at`: the receiver sends it, and the sender receives
 * it. */
static void begin_credit(Channel *channel, int at)
{
    const MpiEnd *end = channel->impl;
    MPI_Request *request = slot_requests(channel, at) + end->pieces;
    if (channel->end == END_RECEIVER)
        MPI_CHECK(MPI_Isend(NULL, 0, MPI_BYTE, end->peer, end->credit_tag, end->comm, request));
    else
        MPI_CHECK(MPI_Irecv(NULL, 0, MPI_BYTE, end->peer, end->credit_tag, end->comm, request));
}

/* Begins to send the message in the slot with index `at`, or to receive a message into this
 * slot. */
static void begin_slot(Channel *channel, int at)
{
    MpiEnd *end = channel->impl;
    char *data = channel->slots + (size_t)at * channel->spec.bytes;
    size_t left = channel->spec.bytes;
    for (int i = 0; i < end->pieces; ++i, data += PIECE_BYTES) {
        MPI_Request *request = slot_requests(channel, at) + i;
        int count = (int)(left < PIECE_BYTES ? left : PIECE_BYTES);
        left -= (size_t)count;
        if (channel->end == END_SENDER)
            MPI_CHECK(MPI_Isend(data, count, MPI_BYTE, end->peer, end->tag, end->comm, request));
        else
            MPI_CHECK(MPI_Irecv(data, count, MPI_BYTE, end->peer, end->tag, end->comm, request));
    }
}

/* Returns the slot of the next message, or NULL while MPI still uses it. */
static void *finished_slot(Channel *channel)
{
    const MpiEnd *end = channel->impl;
    int done = 0;
    mpi_lock();
    MPI_CHECK(MPI_Testall(end->pieces + 1, slot_requests(channel, channel->at), &done,
                          MPI_STATUSES_IGNORE));
    mpi_unlock();
    return done ? channel_at(channel) : NULL;
}

static const void *received(Channel *channel)
{
    return finished_slot(channel);
}

static void begin_next(Channel *channel)
{
    MpiEnd *end = channel->impl;
    mpi_lock();
    begin_slot(channel, channel->at);
    if (end->free_sends > 0)
        --end->free_sends;
    else
        begin_credit(channel, channel->at);
    mpi_unlock();
    channel_step(channel);
}

static void progress(Channel *channel)
{
    const MpiEnd *end = channel->impl;
    int done = 0;
    /* If another thread has the lock, its calls of MPI move these messages, too. */
    if (!mpi_try_lock()) return;
    MPI_CHECK(MPI_Testall(requests_of(channel), end->request, &done, MPI_STATUSES_IGNORE));
    mpi_unlock();
}

void channel_mpi_open(Channel *channel, MPI_Comm comm, int tag)
{
    int depth = channel->spec.depth;
    size_t bytes = channel->spec.bytes;
    MpiEnd *end = channel->impl = mem_new(sizeof *end);
    *end = (MpiEnd){.comm = comm, .tag = 2 * tag, .credit_tag = 2 * tag + 1};
    end->peer = channel->end == END_SENDER ? channel->spec.to : channel->spec.from;
    end->free_sends = channel->end == END_SENDER ? depth : 0;
    end->pieces = bytes > 0 ? (int)((bytes + PIECE_BYTES - 1) / PIECE_BYTES) : 1;
    end->bytes = bytes > 0 ? (size_t)depth * bytes : 64;
    channel->slots = mem_pages_new(end->bytes);
    end->request = mem_new((size_t)requests_of(channel) * sizeof(MPI_Request));
    for (int i = 0; i < requests_of(channel); ++i) end->request[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < depth && channel->end == END_RECEIVER; ++i) begin_slot(channel, i);
}

/* Closes this rank's end. All messages have been received and released. The receiver cancels its
 * posted receives. The sender receives the credits that no message has waited for. */
static void close_end(Channel *channel)
{
    MpiEnd *end = channel->impl;
    const int depth = channel->spec.depth;
    for (int at = 0; at < depth && channel->end == END_RECEIVER; ++at)
        for (int i = 0; i < end->pieces; ++i)
            if (slot_requests(channel, at)[i] != MPI_REQUEST_NULL)
                MPI_CHECK(MPI_Cancel(&slot_requests(channel, at)[i]));
    MPI_CHECK(MPI_Waitall(requests_of(channel), end->request, MPI_STATUSES_IGNORE));
    for (int i = end->free_sends; i < depth && channel->end == END_SENDER; ++i)
        begin_credit(channel, i);
    MPI_CHECK(MPI_Waitall(requests_of(channel), end->request, MPI_STATUSES_IGNORE));
    mem_pages_free(channel->slots, end->bytes);
    mem_free(&end->request);
    mem_free(&channel->impl);
}

const ChannelTable channel_mpi = {
    .slot = finished_slot,
    .send = begin_next,
    .message = received,
    .release = begin_next,
    .progress = progress,
    .close = close_end,
};
