/* Tensors that ranks want, read by one of them each.
 *
 *     tensors, in their order      a          b          c          d      ...
 *     read by (readers.c)          rank 0     rank 5     rank 3     rank 0
 *     handed over                  0 -> 1 2 3 5 ..       3 -> 0     ...
 *
 * All ranks walk the tensors in this one order, and meet at those that they want (multicast.h). A
 * thread of each reader reads what the rank has next meanwhile, two tensors ahead at most. A tensor
 * that nobody wants is still verified. */
#include "load.h"

#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <string.h>

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
    /* owned: the tensors that this rank reads; how many of them it has handed over */
    int *mine, mine_count, done;
    /* of those with even and with odd numbers */
    Reading reading[2];
    /* owned: what the second of them reads; what another rank has read, NULL where there is none */
    float *second, *other;
    /* owned: those who have to do with a tensor */
    int *member;
    /* Reads; how many may be read, and have been. */
    bool threaded;
    pthread_t thread;
    sem_t free, full;
    /* The first tensor that this rank could not read, or the number of tensors; owned: why. */
    int failed;
    Status status;
    char *why;
} Sharing;

/* ---- reading ---- */

/* The disk begins with it. */
static void read_ahead(const Load *load, int i)
{
    if (i < 0 || load->location[i].offset < 0) return;
    int64_t bytes = shape_count(load->io->tensor[i].shape) * (int64_t)sizeof(float);
    (void)posix_fadvise(load->file.fd, (off_t)load->location[i].offset,
                        (off_t)(bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES), POSIX_FADV_WILLNEED);
}

static void read_tensor(Sharing *s, int k)
{
    Reading *r = &s->reading[k % 2];
    if (k + 1 < s->mine_count) read_ahead(s->load, s->mine[k + 1]);
    r->status = load_read(s->load, s->mine[k], r->plain);
    if (r->status != OK) r->why = mem_text(fail_message());
}

/* HDF5 is for the thread that calls it first and closes the file. */
static bool is_for_thread(const Sharing *s, int k)
{
    return s->threaded && s->load->location[s->mine[k]].offset >= 0;
}

static void wait_for(sem_t *count)
{
    while (sem_wait(count) != 0) continue;
}

static void *read_all(void *user)
{
    Sharing *s = user;
    for (int k = 0; k < s->mine_count; ++k) {
        wait_for(&s->free);
        if (is_for_thread(s, k)) read_tensor(s, k);
        sem_post(&s->full);
    }
    return NULL;
}

static void sharing_begin(Sharing *s)
{
    const Load *load = s->load;
    const World *world = load->world;
    s->failed = load->io->count;
    s->member = mem_new((size_t)world->size * sizeof *s->member);
    s->mine = mem_new(((size_t)load->io->count + 1) * sizeof *s->mine);
    for (int i = 0; i < load->io->count; ++i)
        if (load->readers.reader[i] == world->rank) s->mine[s->mine_count++] = i;
    if (world->size > 1) s->other = mem_pages_new(load->plain_bytes);
    s->second = mem_pages_new(load->plain_bytes);
    s->reading[0].plain = load->plain;
    s->reading[1].plain = s->second;
    sem_init(&s->free, 0, 2);
    sem_init(&s->full, 0, 0);
    /* the thread looks at it, too */
    s->threaded = s->mine_count > 0;
    if (s->threaded && thread_begin(&s->thread, read_all, s) != 0) s->threaded = false;
}

static void sharing_end(Sharing *s)
{
    if (s->threaded) pthread_join(s->thread, NULL);
    sem_destroy(&s->full);
    sem_destroy(&s->free);
    mem_pages_free(s->second, s->load->plain_bytes);
    if (s->other) mem_pages_free(s->other, s->load->plain_bytes);
    mem_free(&s->why);
    mem_free(&s->mine);
    mem_free(&s->member);
}

/* The next tensor that this rank reads, once it has been read. */
static Reading *reading_wait(Sharing *s)
{
    if (s->threaded) wait_for(&s->full);
    if (!is_for_thread(s, s->done)) read_tensor(s, s->done);
    return &s->reading[s->done % 2];
}

static void reading_done(Sharing *s)
{
    Reading *r = &s->reading[s->done % 2];
    int i = s->mine[s->done++];
    if (r->status != OK && s->status == OK) {
        s->failed = i;
        s->status = r->status;
        s->why = mem_text(r->why);
    }
    mem_free(&r->why);
    if (s->threaded) sem_post(&s->free);
}

/* ---- handing over ---- */

/* To those who have to do with it; whether it is what was written travels ahead of it. Those who
 * want it set it while it goes on. */
static void pass_on(Sharing *s, int i, bool good, float *plain)
{
    const Load *load = s->load;
    const World *world = load->world;
    const Readers *readers = &load->readers;
    int members = readers_members(readers, i, s->member);
    MulticastPlace place = multicast_place(s->member, members, readers->node, world->rank);
    Multicast said, values;
    multicast_begin(&said, world, place, &good, sizeof good);
    size_t bytes = good ? (size_t)shape_count(load->io->tensor[i].shape) * sizeof *plain : 0;
    multicast_begin(&values, world, place, plain, bytes);
    if (good && readers_want(readers, world->rank, i)) load->io->set(load->io->user, i, plain);
    multicast_wait(&said);
    multicast_wait(&values);
}

/* A rank that cannot read goes on to the end: others wait for its messages. */
static void hand_over(Sharing *s, int i)
{
    const Readers *readers = &s->load->readers;
    const int rank = s->load->world->rank;
    if (readers->reader[i] == rank) {
        const Reading *own = reading_wait(s);
        pass_on(s, i, own->status == OK, own->plain);
        reading_done(s);
    } else if (readers_want(readers, rank, i)) {
        pass_on(s, i, false, s->other);
    }
}

Status load_hand_over(Load *load)
{
    Sharing s = {.load = load};
    sharing_begin(&s);
    for (int i = 0; i < load->io->count; ++i) hand_over(&s, i);
    /* what is said does not depend on who reads what */
    bool said = world_least(load->world, s.failed) == s.failed && s.status != OK;
    Status status = said ? fail(s.status, "%s", s.why) : OK;
    sharing_end(&s);
    return status;
}
