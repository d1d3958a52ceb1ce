/* Channels by MPI messages, for ranks on different nodes. Both ends have `depth` slots. The
 * receiver posts a receive into each slot before a message can arrive, so nothing is copied; the
 * sender's slots are free again when MPI has finished the send. Synchronous sends keep a sender
 * from running further ahead than the slots of both ends. MPI counts stay below 2^31: longer
 * messages are sent in pieces. */
#include "channel_mpi.h"
#include "../world/mpi_check.h"
#include "progress_thread.h"

static const size_t PIECE_BYTES = (size_t)1 << 30;

typedef struct MpiEnd {
    /* borrowed */
    MPI_Comm comm;
    int peer, tag;
    /* messages of MPI per message of the channel */
    int pieces;
    /* requests of each slot, [depth * pieces]; MPI_REQUEST_NULL where nothing is in flight;
     * owned */
    MPI_Request *request;
    /* bytes of all slots */
    size_t bytes;
} MpiEnd;

/* Begins the send or receive of slot `at`. */
static void begin_slot(Channel *channel, int at)
{
    MpiEnd *end = channel->impl;
    char *data = channel->slots + (size_t)at * channel->spec.bytes;
    size_t left = channel->spec.bytes;
    for (int i = 0; i < end->pieces; ++i, data += PIECE_BYTES) {
        MPI_Request *request = &end->request[at * end->pieces + i];
        int count = (int)(left < PIECE_BYTES ? left : PIECE_BYTES);
        left -= (size_t)count;
        if (channel->end == END_SENDER)
            MPI_CHECK(MPI_Issend(data, count, MPI_BYTE, end->peer, end->tag, end->comm, request));
        else
            MPI_CHECK(MPI_Irecv(data, count, MPI_BYTE, end->peer, end->tag, end->comm, request));
    }
}

/* The next message's slot, or NULL while MPI still uses it. */
static void *finished_slot(Channel *channel)
{
    const MpiEnd *end = channel->impl;
    int done = 0;
    mpi_lock();
    MPI_CHECK(MPI_Testall(end->pieces, end->request + channel->at * end->pieces, &done,
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
    mpi_lock();
    begin_slot(channel, channel->at);
    mpi_unlock();
    channel_step(channel);
}

static void progress(Channel *channel)
{
    const MpiEnd *end = channel->impl;
    int done = 0;
    /* another thread is calling MPI, which moves these messages, too */
    if (!mpi_try_lock()) return;
    MPI_CHECK(
        MPI_Testall(end->pieces * channel->spec.depth, end->request, &done, MPI_STATUSES_IGNORE));
    mpi_unlock();
}

void channel_mpi_open(Channel *channel, MPI_Comm comm, int tag)
{
    int depth = channel->spec.depth;
    size_t bytes = channel->spec.bytes;
    MpiEnd *end = channel->impl = mem_new(sizeof *end);
    *end = (MpiEnd){.comm = comm, .tag = tag};
    end->peer = channel->end == END_SENDER ? channel->spec.to : channel->spec.from;
    end->pieces = bytes > 0 ? (int)((bytes + PIECE_BYTES - 1) / PIECE_BYTES) : 1;
    end->bytes = bytes > 0 ? (size_t)depth * bytes : 64;
    channel->slots = mem_pages_new(end->bytes);
    end->request = mem_new((size_t)(depth * end->pieces) * sizeof(MPI_Request));
    for (int i = 0; i < depth * end->pieces; ++i) end->request[i] = MPI_REQUEST_NULL;
    for (int i = 0; i < depth && channel->end == END_RECEIVER; ++i) begin_slot(channel, i);
}

/* Closes an end. All messages have been received, so sends complete, and receives still posted are
 * cancelled. */
static void close_end(Channel *channel)
{
    MpiEnd *end = channel->impl;
    int requests = end->pieces * channel->spec.depth;
    for (int i = 0; i < requests && channel->end == END_RECEIVER; ++i)
        if (end->request[i] != MPI_REQUEST_NULL) MPI_CHECK(MPI_Cancel(&end->request[i]));
    MPI_CHECK(MPI_Waitall(requests, end->request, MPI_STATUSES_IGNORE));
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
