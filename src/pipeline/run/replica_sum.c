/* Makes the sums over the replicas within a micro-batch that operations request (tensor.h,
 * Replicas), in host memory. Neighbours 2i and 2i+1 are added, then their sums, and so on; the
 * total is sent back along the same tree.
 *
 *     0 <- 1   2 <- 3   4
 *     0 <----- 2        4
 *     0 <-------------- 4
 *
 * The parent of rank r is r without its lowest set bit, 2^b. The children of r are r + 1, r + 2,
 * r + 4, ... up to r + 2^(b - 1); rank 0 has children at all powers of two. A rank adds the sums of
 * its children in this order.
 *
 * Each rank has a channel to its parent and one from it. Numbers are sent in pieces of PIECE
 * doubles. While a rank waits, gradient sums and other messages make progress. The replicas of a
 * stage have the same list of tasks, so they all reach the same sums in the same order. */
#include "replica_sum.h"

#include <string.h>

enum { PIECE = REPLICA_PIECE_BYTES / (int)sizeof(double), LEVELS = 31 };

struct ReplicaSum {
    /* the interface for operations, with a pointer to this struct */
    Replicas interface;
    /* borrowed */
    const Context *context;
    /* channels of the tree; owned */
    Channels *channels;
    /* number of children of this rank */
    int children;
    /* channel from each child */
    int child_in[LEVELS];
    /* channel to each child */
    int child_out[LEVELS];
    /* channel from the parent; -1 on rank 0 */
    int parent_in;
    /* channel to the parent; -1 on rank 0 */
    int parent_out;
};

static int64_t piece_at(int64_t count, int64_t at)
{
    return count - at < PIECE ? count - at : PIECE;
}

static void send(const ReplicaSum *s, int channel, const double *from, int64_t n)
{
    char *to = await_slot(&s->context->progress, s->channels, channel);
    memcpy(to, from, (size_t)n * sizeof *from);
    channel_send(s->channels, channel);
}

static void add_children(const ReplicaSum *s, double *sums, int64_t n)
{
    for (int k = 0; k < s->children; ++k) {
        int channel = s->child_in[k];
        const void *message = await_message(&s->context->progress, s->channels, channel);
        const double *theirs = message;
        for (int64_t i = 0; i < n; ++i) sums[i] += theirs[i];
        channel_release(s->channels, channel);
    }
}

static void receive(const ReplicaSum *s, double *sums, int64_t n)
{
    memcpy(sums, await_message(&s->context->progress, s->channels, s->parent_in),
           (size_t)n * sizeof *sums);
    channel_release(s->channels, s->parent_in);
}

static void sum(const Replicas *replicas, double *sums, int64_t count)
{
    const ReplicaSum *s = replicas->user;
    Phase outer = phase_enter(PHASE_MESSAGES);
    for (int64_t at = 0; at < count; at += PIECE) {
        add_children(s, sums + at, piece_at(count, at));
        if (s->parent_out >= 0) send(s, s->parent_out, sums + at, piece_at(count, at));
    }
    for (int64_t at = 0; at < count; at += PIECE) {
        if (s->parent_in >= 0) receive(s, sums + at, piece_at(count, at));
        for (int k = s->children - 1; k >= 0; --k)
            send(s, s->child_out[k], sums + at, piece_at(count, at));
    }
    phase_enter(outer);
}

/* ---- set-up ---- */

/* Channel 2 * (r - 1) is from rank r to its parent, channel 2 * (r - 1) + 1 from the parent to rank
 * r. */
static Status open_channels(ReplicaSum *s, const World *world, int transport)
{
    int count = 2 * (world->size - 1), rank = world->rank;
    ChannelSpec *spec = mem_new((size_t)count * sizeof *spec);
    for (int r = 1; r < world->size; ++r) {
        int parent = r & (r - 1), out = 2 * (r - 1);
        spec[out] = (ChannelSpec){
            .from = r, .to = parent, .depth = REPLICA_DEPTH, .bytes = REPLICA_PIECE_BYTES};
        spec[out + 1] = spec[out];
        spec[out + 1].from = parent;
        spec[out + 1].to = r;
    }
    s->parent_out = rank > 0 ? 2 * (rank - 1) : -1;
    s->parent_in = rank > 0 ? s->parent_out + 1 : -1;
    s->children = replica_children(rank, world->size);
    for (int k = 0; k < s->children; ++k) {
        s->child_in[k] = 2 * (rank + (1 << k) - 1);
        s->child_out[k] = s->child_in[k] + 1;
    }
    Status st = channels_new(&s->channels, world, spec, count, transport);
    mem_free(&spec);
    return st;
}

Status replica_sum_new(ReplicaSum **out, Context *context)
{
    const World *world = &context->grid->dp_world;
    *out = NULL;
    if (plan_replica_sums(context->plan).count == 0) return OK;
    ReplicaSum *s = *out = mem_new(sizeof *s);
    *s =
        (ReplicaSum){.interface = {.size = world->size, .user = s, .sum = sum}, .context = context};
    TRY(open_channels(s, world, context->options.transport));
    context->progress.replicas = s->channels;
    return OK;
}

void replica_sum_free(ReplicaSum **replica_sum)
{
    ReplicaSum *s = *replica_sum;
    if (!s) return;
    if (s->channels) channels_free(&s->channels);
    mem_free(replica_sum);
}

const Replicas *replica_sum_interface(const ReplicaSum *s)
{
    return s ? &s->interface : NULL;
}
