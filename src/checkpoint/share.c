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
#include <semaphore.h>
#include <string.h>

/* world_swap sends fewer bytes than 2^31 */
static const size_t PIECE_BYTES = (size_t)1 << 30;
/* that the disk reads while what was asked before is hashed */
static const int64_t AHEAD_BYTES = 128 << 20;

/* A tensor that has been read. */
typedef struct Reading {
    /* borrowed */
    float *plain;
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
    /* Reads, two tensors ahead at most; how many may be read, and have been. */
    bool threaded;
    pthread_t thread;
    sem_t free, full;
} Sharing;

/* ---- who reads what ---- */

static bool *wanted(const Load *load)
{
    const CheckpointIo *io = load->io;
    bool *mine = mem_new((size_t)io->count + 1);
    for (int i = 0; i < io->count; ++i)
        mine[i] = load->location[i].offset != NOT_TAKEN && (!io->wants || io->wants(io->user, i));
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
    if (s->load->location[i].offset == NOT_TAKEN) return false;
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

static int tensor_of_round(const Sharing *s, int round)
{
    return round < s->rounds ? s->reads[s->node.rank * s->load->io->count + round] : -1;
}

static void read_tensor(Sharing *s, int round)
{
    Reading *r = &s->reading[round % 2];
    read_ahead(s->load, tensor_of_round(s, round + 1));
    r->status = load_read(s->load, tensor_of_round(s, round), r->plain);
    if (r->status != OK) r->why = mem_text(fail_message());
}

/* HDF5 is for the thread that calls it first and closes the file. */
static bool is_for_thread(const Sharing *s, int round)
{
    int i = tensor_of_round(s, round);
    return s->threaded && i >= 0 && s->load->location[i].offset >= 0;
}

static void wait_for(sem_t *count)
{
    while (sem_wait(count) != 0) continue;
}

static void *read_all(void *user)
{
    Sharing *s = user;
    for (int round = 0; round < s->rounds; ++round) {
        wait_for(&s->free);
        if (is_for_thread(s, round)) read_tensor(s, round);
        sem_post(&s->full);
    }
    return NULL;
}

static void reading_begin(Sharing *s)
{
    s->second = mem_pages_new(s->load->plain_bytes);
    s->reading[0].plain = s->load->plain;
    s->reading[1].plain = s->second;
    sem_init(&s->free, 0, 2);
    sem_init(&s->full, 0, 0);
    /* the thread looks at it, too */
    s->threaded = true;
    if (thread_begin(&s->thread, read_all, s) != 0) s->threaded = false;
}

static void reading_end(Sharing *s)
{
    if (s->threaded) pthread_join(s->thread, NULL);
    sem_destroy(&s->full);
    sem_destroy(&s->free);
    mem_pages_free(s->second, s->load->plain_bytes);
}

/* A rank that cannot read goes on to the end: others wait for its messages. */
static Status read_round(Sharing *s, int round)
{
    const int count = s->load->io->count, size = s->node.size;
    Reading *own = &s->reading[round % 2];
    if (s->threaded) wait_for(&s->full);
    if (tensor_of_round(s, round) >= 0 && !is_for_thread(s, round)) read_tensor(s, round);
    bool good = own->status == OK, *all = mem_new((size_t)size);
    world_gather(&s->node, &good, sizeof good, all);
    for (int r = 0; r < size; ++r) {
        int i = s->reads[r * count + round];
        if (i >= 0) pass_on(s, i, r, all[r], own->plain);
    }
    Status status = own->status;
    if (!good) fail(status, "%s", own->why);
    mem_free(&own->why);
    mem_free(&all);
    own->status = OK;
    if (s->threaded) sem_post(&s->free);
    return status;
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
    reading_begin(&s);
    for (int round = 0; round < s.rounds; ++round) {
        Status one = read_round(&s, round);
        if (one == OK || status != OK) continue;
        status = one;
        why = mem_text(fail_message());
    }
    if (status != OK) fail(status, "%s", why);
    mem_free(&why);
    reading_end(&s);
    if (s.other) mem_pages_free(s.other, load->plain_bytes);
    mem_free(&s.reads);
    mem_free(&s.wants);
    mem_free(&nobody);
    world_part_fini(&s.node);
    return status;
}
