/* Tensors that a node's ranks want, read by one of them each.
 *
 *      round   rank 0 reads   rank 1 reads   then in turn
 *        0     tensor a       tensor b       0 -> those that want a, 1 -> those that want b
 *        1     tensor c       tensor d       ...
 *
 * While they set what was read in a round, a thread of each rank reads what it has in the next one.
 * A tensor that nobody wants is still verified, once in the job. */
#include "load.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

/* world_swap sends fewer bytes than 2^31 */
static const size_t PIECE_BYTES = (size_t)1 << 30;
/* that the disk reads while what was asked before is hashed */
static const int64_t AHEAD_BYTES = 128 << 20;

/* A tensor that a thread reads. */
typedef struct Reading {
    Load *load;
    /* -1: none; and the one after that */
    int tensor, following;
    /* borrowed */
    float *plain;
    pthread_t thread;
    bool threaded;
    Status status;
    /* of its failure; owned */
    char *why;
} Reading;

typedef struct Sharing {
    Load *load;
    World node;
    /* owned, [rank of the node][count]: does it want the tensor? */
    bool *wants;
    /* owned, [rank of the node][rounds]: the tensor that it reads; -1: none */
    int *reads, rounds;
    /* of rounds with even and with odd numbers */
    Reading reading[2];
    /* owned: what the second of them reads; what another rank has read, NULL where the node has one
     * rank */
    float *second, *other;
} Sharing;

/* ---- who reads what ---- */

static bool *wanted(const Load *load)
{
    const CheckpointIo *io = load->io;
    bool *mine = mem_new((size_t)io->count + 1);
    for (int i = 0; i < io->count; ++i) mine[i] = !io->wants || io->wants(io->user, i);
    return mine;
}

/* Those that nobody in the job wants are read by rank 0's node. */
static void gather_wants(Sharing *s, bool *nobody)
{
    const World *world = s->load->world;
    size_t count = (size_t)s->load->io->count;
    bool *mine = wanted(s->load), *all = mem_new((size_t)world->size * count + 1);
    s->wants = mem_new((size_t)s->node.size * count + 1);
    world_gather(world, mine, count, all);
    world_gather(&s->node, mine, count, s->wants);
    for (size_t i = 0; i < count; ++i) {
        nobody[i] = true;
        for (int r = 0; r < world->size; ++r) nobody[i] = nobody[i] && !all[(size_t)r * count + i];
    }
    mem_free(&all);
    mem_free(&mine);
}

/* The one that has least to read, of those that want the tensor, or of all where nobody does. */
static int reader_of(const Sharing *s, int i, const int64_t *load)
{
    int best = -1;
    bool any = false;
    for (int r = 0; r < s->node.size; ++r) any = any || s->wants[r * s->load->io->count + i];
    for (int r = 0; r < s->node.size; ++r) {
        if (any && !s->wants[r * s->load->io->count + i]) continue;
        if (best < 0 || load[r] < load[best]) best = r;
    }
    return best;
}

static bool is_read(const Sharing *s, int i, const bool *nobody, int first)
{
    if (nobody[i]) return first == 0;
    for (int r = 0; r < s->node.size; ++r)
        if (s->wants[r * s->load->io->count + i]) return true;
    return false;
}

static void assign(Sharing *s, const bool *nobody)
{
    const CheckpointIo *io = s->load->io;
    int size = s->node.size, first = s->load->world->rank;
    int64_t *load = mem_new((size_t)size * sizeof *load);
    int *count = mem_new((size_t)size * sizeof *count);
    s->reads = mem_new(((size_t)size * (size_t)io->count + 1) * sizeof *s->reads);
    world_bcast(&s->node, &first, sizeof first, 0);
    for (int k = 0; k < size * io->count; ++k) s->reads[k] = -1;
    for (int i = 0; i < io->count; ++i) {
        if (!is_read(s, i, nobody, first)) continue;
        int r = reader_of(s, i, load);
        load[r] += shape_count(io->tensor[i].shape);
        s->reads[r * io->count + count[r]++] = i;
        if (count[r] > s->rounds) s->rounds = count[r];
    }
    mem_free(&count);
    mem_free(&load);
}

/* ---- reading ---- */

/* What rank `from` of the node has read, to those that want it; and those set it. good: it is what
 * was written. */
static void pass_on(Sharing *s, int i, int from, bool good, float *own)
{
    const CheckpointIo *io = s->load->io;
    int size = s->node.size, rank = s->node.rank;
    size_t bytes = (size_t)shape_count(io->tensor[i].shape) * sizeof(float);
    bool mine = s->wants[rank * io->count + i];
    WorldPart *to = mem_new((size_t)size * sizeof *to), *in = mem_new((size_t)size * sizeof *in);
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t piece = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;
        for (int r = 0; r < size && rank == from; ++r)
            if (r != rank && s->wants[r * io->count + i])
                to[r] = (WorldPart){(char *)own + done, piece};
        if (rank != from && mine) in[from] = (WorldPart){(char *)s->other + done, piece};
        world_swap(&s->node, to, in);
    }
    mem_free(&in);
    mem_free(&to);
    if (mine && good) io->set(io->user, i, rank == from ? own : s->other);
}

/* The disk begins with it. */
static void read_ahead(const Load *load, int i)
{
    if (i < 0 || load->location[i].offset < 0) return;
    int64_t bytes = shape_count(load->io->tensor[i].shape) * (int64_t)sizeof(float);
    (void)posix_fadvise(load->file.fd, (off_t)load->location[i].offset,
                        (off_t)(bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES), POSIX_FADV_WILLNEED);
}

static void *read_tensor(void *user)
{
    Reading *r = user;
    read_ahead(r->load, r->following);
    r->status = load_read(r->load, r->tensor, r->plain);
    if (r->status != OK) r->why = mem_text(fail_message());
    return NULL;
}

static int tensor_of_round(const Sharing *s, int round)
{
    return round < s->rounds ? s->reads[s->node.rank * s->load->io->count + round] : -1;
}

/* HDF5 is for this thread, which gives its lock back. */
static void reading_begin(Sharing *s, int round)
{
    Reading *r = &s->reading[round % 2];
    *r = (Reading){.load = s->load,
                   .tensor = tensor_of_round(s, round),
                   .following = tensor_of_round(s, round + 1),
                   .plain = round % 2 ? s->second : s->load->plain};
    if (r->tensor < 0) return;
    bool plain = s->load->location[r->tensor].offset >= 0;
    r->threaded = plain && thread_begin(&r->thread, read_tensor, r) == 0;
    if (!r->threaded) read_tensor(r);
}

/* A rank that cannot read goes on to the end: others wait for its messages. */
static Status read_round(Sharing *s, int round)
{
    const int count = s->load->io->count, size = s->node.size;
    Reading *own = &s->reading[round % 2];
    if (own->threaded) pthread_join(own->thread, NULL);
    reading_begin(s, round + 1);
    bool good = own->status == OK, *all = mem_new((size_t)size);
    world_gather(&s->node, &good, sizeof good, all);
    for (int r = 0; r < size; ++r) {
        int i = s->reads[r * count + round];
        if (i >= 0) pass_on(s, i, r, all[r], own->plain);
    }
    if (!good) fail(own->status, "%s", own->why);
    mem_free(&own->why);
    mem_free(&all);
    return own->status;
}

Status load_hand_over(Load *load)
{
    Sharing s = {.load = load};
    bool *nobody = mem_new((size_t)load->io->count + 1);
    char *why = NULL;
    Status status = OK;
    world_node(&s.node, load->world);
    gather_wants(&s, nobody);
    assign(&s, nobody);
    if (s.node.size > 1) s.other = mem_pages_new(load->plain_bytes);
    s.second = mem_pages_new(load->plain_bytes);
    reading_begin(&s, 0);
    for (int round = 0; round < s.rounds; ++round) {
        Status one = read_round(&s, round);
        if (one == OK || status != OK) continue;
        status = one;
        why = mem_text(fail_message());
    }
    if (status != OK) fail(status, "%s", why);
    mem_free(&why);
    mem_pages_free(s.second, load->plain_bytes);
    if (s.other) mem_pages_free(s.other, load->plain_bytes);
    mem_free(&s.reads);
    mem_free(&s.wants);
    mem_free(&nobody);
    world_part_fini(&s.node);
    return status;
}
