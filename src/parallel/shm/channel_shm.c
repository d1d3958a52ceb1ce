/* Channels in shared memory. A pipe is in the segment of its receiver. It has two counters, each on
 * its own cache line and written by one side only, and after them the slots. No locks are needed:
 * the sender's release store of `sent` publishes a message, and the receiver's release store of
 * `released` frees the slot. Each rank also has a bell, a counter that its peers increment after
 * each send and each release. A rank that waits for several channels sleeps on this one word. */
#include "channel_shm.h"
#include "futex.h"

#include <stdalign.h>
#include <stdatomic.h>

typedef struct Pipe {
    /* number of messages that the sender has sent; wraps */
    alignas(64) _Atomic uint32_t sent;
    /* number of messages that the receiver has released; wraps */
    alignas(64) _Atomic uint32_t released;
} Pipe;

struct Bell {
    /* number of sends and releases of the rank's peers; wraps */
    alignas(64) _Atomic uint32_t rung;
    /* number of processes asleep on `rung` (futex.h) */
    _Atomic uint32_t sleepers;
};

/* One end of a channel. */
typedef struct PipeEnd {
    /* the channel's pipe, in shared memory; borrowed */
    Pipe *pipe;
    /* bell of the rank at the other end, which this end rings; borrowed */
    struct Bell *peer_bell;
} PipeEnd;

static void ring(struct Bell *bell)
{
    atomic_fetch_add_explicit(&bell->rung, 1, memory_order_release);
    futex_wake(&bell->rung, &bell->sleepers);
}

static void *pipe_slot(Channel *channel)
{
    const PipeEnd *end = channel->impl;
    uint32_t released = atomic_load_explicit(&end->pipe->released, memory_order_acquire);
    return channel->passed - released < (uint32_t)channel->spec.depth ? channel_at(channel) : NULL;
}

static void pipe_send(Channel *channel)
{
    const PipeEnd *end = channel->impl;
    channel_step(channel);
    atomic_store_explicit(&end->pipe->sent, channel->passed, memory_order_release);
    ring(end->peer_bell);
}

static const void *pipe_message(Channel *channel)
{
    const PipeEnd *end = channel->impl;
    uint32_t sent = atomic_load_explicit(&end->pipe->sent, memory_order_acquire);
    return sent != channel->passed ? channel_at(channel) : NULL;
}

static void pipe_release(Channel *channel)
{
    const PipeEnd *end = channel->impl;
    channel_step(channel);
    atomic_store_explicit(&end->pipe->released, channel->passed, memory_order_release);
    ring(end->peer_bell);
}

static void pipe_close(Channel *channel)
{
    mem_free(&channel->impl);
}

const ChannelTable channel_pipe = {
    .slot = pipe_slot,
    .send = pipe_send,
    .message = pipe_message,
    .release = pipe_release,
    .close = pipe_close,
};

/* Computes the offset of each pipe in its receiver's segment, where the pipes follow the bell, and
 * the bytes of each segment. Every rank passes the same channels and gets the same result. Returns
 * the number of pipes. */
static int lay_out(const Channel *channel, int count, const int *node_rank, size_t *offset,
                   size_t *bytes, int ranks)
{
    int pipes = 0;
    for (int r = 0; r < ranks; ++r) bytes[r] = sizeof(struct Bell);
    for (int i = 0; i < count; ++i) {
        const ChannelSpec *spec = &channel[i].spec;
        int to = node_rank[spec->to];
        if (channel[i].table != &channel_pipe || to < 0) continue;
        offset[i] = bytes[to];
        bytes[to] += sizeof(Pipe) + (size_t)spec->depth * spec->bytes;
        ++pipes;
    }
    return pipes;
}

static void attach(PipeNode *pipes, const int *node_rank, Channel *channel, size_t offset)
{
    int from = node_rank[channel->spec.from], to = node_rank[channel->spec.to];
    int peer = channel->end == END_SENDER ? to : from;
    PipeEnd *end = channel->impl = mem_new(sizeof *end);
    end->pipe = (Pipe *)(pipes->shared.segment[to] + offset);
    end->peer_bell = (struct Bell *)pipes->shared.segment[peer];
    channel->slots = (char *)(end->pipe + 1);
}

Status pipes_open(PipeNode *pipes, const World *node, const int *node_rank, Channel *channel,
                  int count)
{
    size_t *offset = mem_new(((size_t)count + 1) * sizeof *offset);
    size_t *bytes = mem_new((size_t)node->size * sizeof *bytes);
    Status status = OK;
    if (lay_out(channel, count, node_rank, offset, bytes, node->size) > 0) {
        status =
            shm_segments_init(&pipes->shared, node, bytes[node->rank], "the pipeline's messages");
        if (status == OK) pipes->bell = (struct Bell *)pipes->shared.segment[node->rank];
    }
    for (int i = 0; i < count && status == OK; ++i)
        if (channel[i].table == &channel_pipe && channel[i].end != END_ELSEWHERE)
            attach(pipes, node_rank, &channel[i], offset[i]);
    mem_free(&offset);
    mem_free(&bytes);
    return status;
}

void pipes_close(PipeNode *pipes)
{
    if (pipes->bell) shm_segments_fini(&pipes->shared);
    pipes->bell = NULL;
}

void pipes_sleep(PipeNode *pipes, double limit_s)
{
    uint32_t rung = atomic_load_explicit(&pipes->bell->rung, memory_order_acquire);
    if (rung == pipes->seen) futex_sleep(&pipes->bell->rung, &pipes->bell->sleepers, rung, limit_s);
    /* a peer may have rung after the caller last checked for messages, so the caller must check
     * again */
    else
        pipes->seen = rung;
}
