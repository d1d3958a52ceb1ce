/* Lays out and manages the memory of unpacked chunks:
 *
 *     ChunkMemory | buckets | slots | places of static chunks | places of other chunks
 *
 * A place has the values of one chunk, and a slot describes the chunk. The slot is in the list of
 * its bucket, by which it is found, and in the list of its ring, in the order of places. There are
 * two rings, one for the places of static chunks and one for the others. A ring gives out places
 * one after the other, and begins again at its end. So the chunks that were claimed first are
 * dropped first; places of chunks that threads hold are passed over. Epochs that are shuffled by
 * chunks read one window of chunks after the other, so this order is as good as the order of last
 * use. All samples need the static chunks; their ring has places for all of them unless they are
 * very large (field_memory.c).
 *
 * Slots have numbers from 1, and places have offsets, because processes map the memory at different
 * addresses. A mutex protects everything but the values of claimed and held chunks. If a process
 * ends while it has the mutex, the next process that locks the mutex ends, too, and so does the
 * run. */
#include "chunk_memory.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* bytes at a multiple of which each part and each place begins */
enum { LINE_BYTES = 64 };
enum { STATIC_RING, OTHER_RING, RINGS };

typedef struct Slot {
    ChunkKey key;
    /* offset of the place in the memory */
    size_t at;
    /* size of the place */
    size_t bytes;
    /* next slot of the bucket, or of the list of free slots; 0: none */
    uint32_t next;
    /* slots of the places before and after this one in the ring; 0: none */
    uint32_t before, after;
    /* number of threads that hold the chunk or have claimed it */
    int32_t holds;
    /* index in ChunkMemory.ring */
    int8_t ring;
    /* true: the chunk is unpacked; false: it is claimed */
    bool complete;
} Slot;

typedef struct Ring {
    /* offsets in the memory of the beginning and the end of the places */
    size_t begin, end;
    /* offset from which on the next place is searched */
    size_t head;
    /* slots of the first and of the last place; 0: none */
    uint32_t first, last;
    /* slot of the first place at or after `head`; 0: none */
    uint32_t behind;
    /* number of chunks that may be added before one must be dropped */
    uint32_t left;
} Ring;

struct ChunkMemory {
    pthread_mutex_t mutex;
    /* number of chunks that have been unpacked, also outside the memory */
    _Atomic int64_t total;
    Ring ring[RINGS];
    /* number of slots that were ever used */
    uint32_t used;
    /* first slot of the list of slots that were used and are free; 0: none */
    uint32_t spare;
    /* number of buckets, a power of two */
    uint32_t buckets;
    /* offsets in the memory of the arrays of buckets and of slots */
    size_t bucket_at, slot_at;
};

/* ---- layout ---- */

static size_t whole_lines(size_t bytes)
{
    return (bytes + LINE_BYTES - 1) / LINE_BYTES * LINE_BYTES;
}

size_t chunk_place_bytes(size_t bytes)
{
    return whole_lines(bytes ? bytes : 1);
}

typedef struct Layout {
    /* number of buckets */
    uint32_t buckets;
    /* offsets in the memory of the arrays of buckets and of slots */
    size_t bucket_at, slot_at;
    /* offset of the places of static chunks */
    size_t fixed_at;
    /* offset of the places of other chunks */
    size_t other_at;
    /* size of the memory */
    size_t end;
} Layout;

static Layout layout_of(const ChunkSizes *sizes)
{
    const uint32_t slots = sizes->statics.chunks + sizes->other.chunks;
    Layout l = {.buckets = 64, .bucket_at = whole_lines(sizeof(ChunkMemory))};
    while (l.buckets < slots && l.buckets < 1u << 30) l.buckets *= 2;
    l.slot_at = l.bucket_at + whole_lines(l.buckets * sizeof(uint32_t));
    l.fixed_at = l.slot_at + whole_lines((size_t)slots * sizeof(Slot));
    l.other_at = l.fixed_at + whole_lines(sizes->statics.bytes);
    l.end = l.other_at + whole_lines(sizes->other.bytes);
    return l;
}

size_t chunk_memory_bytes(const ChunkSizes *sizes)
{
    return layout_of(sizes).end;
}

static void mutex_init(pthread_mutex_t *mutex)
{
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    const int rc = pthread_mutex_init(mutex, &attributes);
    if (rc != 0) die("a mutex for unpacked chunks cannot be made: %s", strerror(rc));
    pthread_mutexattr_destroy(&attributes);
}

ChunkMemory *chunk_memory_init(void *at, const ChunkSizes *sizes)
{
    ChunkMemory *m = at;
    const Layout l = layout_of(sizes);
    mutex_init(&m->mutex);
    m->buckets = l.buckets;
    m->bucket_at = l.bucket_at;
    m->slot_at = l.slot_at;
    m->ring[STATIC_RING] = (Ring){
        .begin = l.fixed_at, .head = l.fixed_at, .end = l.other_at, .left = sizes->statics.chunks};
    m->ring[OTHER_RING] =
        (Ring){.begin = l.other_at, .head = l.other_at, .end = l.end, .left = sizes->other.chunks};
    return m;
}

static Slot *slot_of(ChunkMemory *m, uint32_t slot)
{
    return (Slot *)(void *)((char *)m + m->slot_at) + (slot - 1);
}

static uint32_t *bucket_of(ChunkMemory *m, const ChunkKey *key)
{
    const uint64_t hash = hash_bytes(key, sizeof *key);
    return (uint32_t *)(void *)((char *)m + m->bucket_at) + (hash & (m->buckets - 1));
}

/* ---- locking ---- */

static void lock(ChunkMemory *m)
{
    const int rc = pthread_mutex_lock(&m->mutex);
    if (rc == EOWNERDEAD)
        die_lost("reading chunks of fields: a process of this node has ended while it used the "
                 "memory that is shared; its own message, or the system's log, says why");
    if (rc != 0) die("pthread_mutex_lock of the unpacked chunks: %s", strerror(rc));
}

static void unlock(ChunkMemory *m)
{
    pthread_mutex_unlock(&m->mutex);
}

/* ---- slots ---- */

/* The functions of this section are called under the mutex. */

/* Returns the slot of a chunk; 0: it is not in the memory. */
static uint32_t find(ChunkMemory *m, const ChunkKey *key)
{
    uint32_t slot = *bucket_of(m, key);
    for (; slot; slot = slot_of(m, slot)->next) {
        const ChunkKey *k = &slot_of(m, slot)->key;
        if (k->file == key->file && k->variable == key->variable && k->number == key->number) break;
    }
    return slot;
}

/* Removes a chunk; its place and its slot become free. */
static void drop(ChunkMemory *m, uint32_t slot)
{
    Slot *s = slot_of(m, slot);
    Ring *ring = &m->ring[s->ring];
    uint32_t *link = bucket_of(m, &s->key);
    while (*link != slot) link = &slot_of(m, *link)->next;
    *link = s->next;
    *(s->before ? &slot_of(m, s->before)->after : &ring->first) = s->after;
    *(s->after ? &slot_of(m, s->after)->before : &ring->last) = s->before;
    if (ring->behind == slot) ring->behind = s->after;
    ++ring->left;
    s->next = m->spare;
    m->spare = slot;
}

/* Moves the head of the ring to a free place of `bytes` bytes, and ensures that there is a free
 * slot. Drops chunks in the way that no thread holds. Returns false if the ring is too small, or if
 * threads hold too many of its chunks. */
static bool make_place(ChunkMemory *m, Ring *ring, size_t bytes)
{
    bool begun_again = false;
    if (bytes > ring->end - ring->begin) return false;
    for (;;) {
        const Slot *s = ring->behind ? slot_of(m, ring->behind) : NULL;
        if (ring->end - ring->head < bytes || (!s && ring->left == 0)) {
            if (begun_again) return false;
            begun_again = true;
            ring->head = ring->begin;
            ring->behind = ring->first;
        } else if (ring->left > 0 && (!s || s->at - ring->head >= bytes)) {
            return true;
        } else if (s->holds > 0) {
            /* a thread holds the chunk, so the head moves behind it */
            ring->head = s->at + s->bytes;
            ring->behind = s->after;
        } else {
            drop(m, ring->behind);
        }
    }
}

/* Adds a claimed chunk at the head of ring r, where make_place has made a place. Returns its
 * slot. */
static uint32_t add(ChunkMemory *m, int r, const ChunkKey *key, size_t bytes)
{
    Ring *ring = &m->ring[r];
    const uint32_t slot = m->spare ? m->spare : ++m->used, after = ring->behind;
    const uint32_t before = after ? slot_of(m, after)->before : ring->last;
    uint32_t *bucket = bucket_of(m, key);
    Slot *s = slot_of(m, slot);
    if (slot == m->spare) m->spare = s->next;
    *s = (Slot){.key = *key,
                .at = ring->head,
                .bytes = bytes,
                .next = *bucket,
                .before = before,
                .after = after,
                .holds = 1,
                .ring = (int8_t)r};
    *bucket = slot;
    *(before ? &slot_of(m, before)->after : &ring->first) = slot;
    *(after ? &slot_of(m, after)->before : &ring->last) = slot;
    ring->head += bytes;
    --ring->left;
    return slot;
}

/* ---- use ---- */

ChunkAnswer chunk_memory_find(ChunkMemory *m, ChunkKey key, size_t bytes, bool is_static,
                              ChunkHeld *held)
{
    const int ring = is_static ? STATIC_RING : OTHER_RING;
    ChunkAnswer answer = CHUNK_NO_PLACE;
    bytes = chunk_place_bytes(bytes);
    lock(m);
    uint32_t slot = find(m, &key);
    if (slot && !slot_of(m, slot)->complete) {
        answer = CHUNK_AWAITED;
    } else if (slot) {
        answer = CHUNK_COMPLETE;
        ++slot_of(m, slot)->holds;
    } else if (make_place(m, &m->ring[ring], bytes)) {
        answer = CHUNK_CLAIMED;
        slot = add(m, ring, &key, bytes);
    }
    if (answer == CHUNK_COMPLETE || answer == CHUNK_CLAIMED)
        *held = (ChunkHeld){.slot = slot, .data = (char *)m + slot_of(m, slot)->at};
    unlock(m);
    return answer;
}

void chunk_memory_unpacked(ChunkMemory *m, const ChunkHeld *held, bool success)
{
    lock(m);
    slot_of(m, held->slot)->complete = success;
    if (!success) drop(m, held->slot);
    unlock(m);
    if (success) chunk_memory_count(m);
}

void chunk_memory_release(ChunkMemory *m, const ChunkHeld *held)
{
    lock(m);
    --slot_of(m, held->slot)->holds;
    unlock(m);
}

void chunk_memory_count(ChunkMemory *m)
{
    atomic_fetch_add(&m->total, 1);
}

int64_t chunk_memory_total(ChunkMemory *m)
{
    return atomic_load(&m->total);
}
