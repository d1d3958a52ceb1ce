/* Reads and distributes the tensors of a load: one rank reads each tensor and sends it to the other
 * ranks that want it.
 *
 *     tensors, in their order      a          b          c          d      ...
 *     read by (readers.c)          rank 0     rank 5     rank 3     rank 0
 *     sent to                      1 2 3 5    -          0          ...
 *
 * All ranks go through the tensors in this order, and the ranks that want a tensor join its
 * multicast (multicast.h). Meanwhile a thread of each reading rank reads the rank's next tensors,
 * as far ahead as memory allows: into their final memory (io->place), or into a ring, from which
 * io->set copies them. A tensor that no rank wants is still verified. */
#include "load.h"

#include <fcntl.h>
#include <pthread.h>
#include <string.h>

/* If the tensors that have a destination and are not sent yet have at least this number of bytes,
 * no more tensors get a destination. Also the largest number of bytes that the kernel is asked to
 * read ahead. */
static const int64_t AHEAD_BYTES = 256 << 20;

/* A tensor that this rank reads. */
typedef struct Reading {
    /* index of the tensor */
    int i;
    /* destination; borrowed */
    float *plain;
    /* position in the ring, counted in elements over all its rounds; for a tensor that is not in
     * the ring, the end of the ring's last reservation */
    int64_t at;
    Status status;
    /* message of the failure; owned */
    char *why;
} Reading;

typedef struct Sharing {
    Load *load;
    /* tensors that this rank reads, in the common order, [count]; owned */
    Reading *mine;
    int count;
    /* end of the ring's last reservation, in elements over all rounds */
    int64_t reserved;
    /* bytes of tensors that have a destination and are not sent yet */
    int64_t ahead_bytes;
    /* buffer for a tensor that another rank has read; NULL in a world of one rank; owned */
    float *other;
    /* ranks that take part in the transfer of one tensor, [world->size]; owned */
    int *member;
    /* true: the thread that reads is running */
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    /* number of entries of `mine` that have a destination; guarded by `lock` */
    int placed;
    /* number of entries of `mine` that have been read; guarded by `lock` */
    int read;
    /* number of entries of `mine` that have been sent */
    int done;
    /* index of the first tensor that this rank could not read; the number of tensors if it could
     * read all of them */
    int failed;
    /* status of that tensor */
    Status status;
    /* message about that tensor; owned */
    char *why;
} Sharing;

/* ---- reading ---- */

static int64_t elements_of(const Load *load, int i)
{
    return shape_count(load->io->tensor[i].shape);
}

static int64_t bytes_of(const Load *load, int i)
{
    return elements_of(load, i) * (int64_t)sizeof(float);
}

/* Returns the caller's memory for tensor i (io->place), or NULL if io->set has to copy the
 * tensor. */
static float *place_of(const Load *load, int i)
{
    const CheckpointIo *io = load->io;
    bool wanted = readers_want(&load->readers, load->world->rank, i);
    return io->place && io->sets_early && wanted ? io->place(io->user, i) : NULL;
}

/* Reserves a piece of the ring for a tensor. If the tensor would cross the ring's end, the piece is
 * at the ring's beginning, in the next round. Returns false if there is not enough space. */
static bool place_in_ring(Sharing *s, Reading *r)
{
    const int64_t room = 2 * s->load->largest, elements = elements_of(s->load, r->i);
    int64_t at = s->reserved, left = room - at % room;
    if (elements > left) at += left;
    int64_t oldest = s->done < s->placed ? s->mine[s->done].at : at;
    if (at + elements - oldest > room) return false;
    r->at = at;
    r->plain = s->load->plain + at % room;
    s->reserved = at + elements;
    return true;
}

/* Assigns destinations to the next tensors, which the thread may then read. */
static void place_next(Sharing *s)
{
    while (s->placed < s->count && s->ahead_bytes < AHEAD_BYTES) {
        Reading *r = &s->mine[s->placed];
        r->plain = place_of(s->load, r->i);
        r->at = s->reserved;
        if (!r->plain && !place_in_ring(s, r)) return;
        s->ahead_bytes += bytes_of(s->load, r->i);
        pthread_mutex_lock(&s->lock);
        ++s->placed;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
    }
}

/* Asks the kernel to start reading the values of tensor i. */
static void read_ahead(const Load *load, int i)
{
    if (load->location[i].offset < 0) return;
    int64_t bytes = bytes_of(load, i);
    (void)posix_fadvise(load->file.fd, (off_t)load->location[i].offset,
                        (off_t)(bytes < AHEAD_BYTES ? bytes : AHEAD_BYTES), POSIX_FADV_WILLNEED);
}

static void read_tensor(Sharing *s, int k)
{
    Reading *r = &s->mine[k];
    if (k + 1 < s->count) read_ahead(s->load, s->mine[k + 1].i);
    r->status = load_read(s->load, r->i, r->plain);
    if (r->status != OK) r->why = mem_text(fail_message());
}

static void *read_all(void *user)
{
    Sharing *s = user;
    for (int k = 0; k < s->count; ++k) {
        pthread_mutex_lock(&s->lock);
        while (s->placed <= k) pthread_cond_wait(&s->changed, &s->lock);
        pthread_mutex_unlock(&s->lock);
        read_tensor(s, k);
        pthread_mutex_lock(&s->lock);
        s->read = k + 1;
        pthread_cond_signal(&s->changed);
        pthread_mutex_unlock(&s->lock);
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
        if (load->readers.reader[i] == world->rank) s->mine[s->count++].i = i;
    if (world->size > 1) s->other = mem_pages_new((size_t)load->largest * sizeof *s->other);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    /* set before the thread begins, and constant while it runs */
    s->threaded = s->count > 0;
    if (s->threaded && thread_begin(&s->thread, read_all, s) != 0) s->threaded = false;
    place_next(s);
}

static void sharing_end(Sharing *s)
{
    if (s->threaded) pthread_join(s->thread, NULL);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    if (s->other) mem_pages_free(s->other, (size_t)s->load->largest * sizeof *s->other);
    mem_free(&s->why);
    mem_free(&s->mine);
    mem_free(&s->member);
}

/* Waits for the next tensor that this rank reads, or reads it if there is no thread. */
static const Reading *reading_wait(Sharing *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->threaded && s->read <= s->done) pthread_cond_wait(&s->changed, &s->lock);
    pthread_mutex_unlock(&s->lock);
    if (!s->threaded) read_tensor(s, s->done);
    return &s->mine[s->done];
}

static void reading_done(Sharing *s)
{
    Reading *r = &s->mine[s->done];
    if (r->status != OK && s->status == OK) {
        s->failed = r->i;
        s->status = r->status;
        s->why = mem_text(r->why);
    }
    mem_free(&r->why);
    s->ahead_bytes -= bytes_of(s->load, r->i);
    ++s->done;
    place_next(s);
}

/* ---- sending ---- */

/* Sends tensor i from its reader to the ranks that want it, after a flag that is true if the tensor
 * is good. Ranks that want the tensor set it while they forward it. On the reader, `good` is the
 * flag and `plain` has the values. On other ranks, `good` is ignored, and `plain` is the memory
 * into which the tensor is received. */
static void pass_on(Sharing *s, int i, bool good, float *plain)
{
    const Load *load = s->load;
    const World *world = load->world;
    const Readers *readers = &load->readers;
    int members = readers_members(readers, i, s->member);
    MulticastPlace place = multicast_place(s->member, members, readers->node, world->rank);
    Multicast flag, values;
    multicast_begin(&flag, world, place, &good, sizeof good);
    size_t bytes = good ? (size_t)bytes_of(load, i) : 0;
    multicast_begin(&values, world, place, plain, bytes);
    if (good && readers_want(readers, world->rank, i)) load->io->set(load->io->user, i, plain);
    multicast_wait(&flag);
    multicast_wait(&values);
}

/* Reads or receives tensor i. A rank that cannot read a tensor continues, because others wait for
 * its messages. */
static void transfer_tensor(Sharing *s, int i)
{
    const Readers *readers = &s->load->readers;
    const int rank = s->load->world->rank;
    if (readers->reader[i] == rank) {
        const Reading *reading = reading_wait(s);
        pass_on(s, i, reading->status == OK, reading->plain);
        reading_done(s);
    } else if (readers_want(readers, rank, i)) {
        float *place = place_of(s->load, i);
        pass_on(s, i, false, place ? place : s->other);
    }
}

Status load_share_tensors(Load *load)
{
    Sharing s = {.load = load};
    sharing_begin(&s);
    for (int i = 0; i < load->io->count; ++i) transfer_tensor(&s, i);
    /* report the first failed tensor, whichever rank reads it */
    bool reports = world_min(load->world, s.failed) == s.failed && s.status != OK;
    Status status = reports ? fail(s.status, "%s", s.why) : OK;
    sharing_end(&s);
    return status;
}
