/* Ordered sums by messages, for ranks on several nodes. A range is cut in pieces, and a piece in one slice per rank. Two
 * phases a piece: every rank sends each peer that peer's slice and sums its own slice from all of them, in tree order; then
 * it sends the sum to all. The bytes on the wire are those of a ring, and the order is ours.
 *
 * A few pieces are in flight at a time, each in a slot with its own staging memory, so that memory is bounded whatever the
 * range and counts stay far below 2^31. Requests make progress in comm_progress and comm_wait. */
#include "mpi_check.h"
#include "parallel.h"
#include "tree_sum.h"

#include <omp.h>

enum { PIECE = 1 << 19, SLOTS = 4 };  /* elements of a piece; pieces in flight */
enum { PARALLEL_ELEMENTS = 1 << 17 }; /* a slice shorter than this is summed by one thread */
enum { TAG_PIECES = 1 << 13 };        /* tags stay below the 32767 that every MPI allows */

typedef enum SlotState { SLOT_IDLE, SLOT_COLLECT, SLOT_SPREAD } SlotState;

/* One piece in flight. */
typedef struct Slot {
    SlotState state;
    int64_t offset, count;
    int tag;
    float *staging;       /* owned: my slice from each peer, slice_room apart */
    const float **in;     /* owned array: my slice of each rank, in rank order */
    MPI_Request *request; /* owned: room for one send and one receive per peer */
    int request_count;
} Slot;

typedef struct Range {
    int64_t offset, count;
} Range;

typedef struct Messages {
    MPI_Comm comm;             /* owned: its tags are ours alone */
    int64_t piece, slice_room; /* elements, at most */
    Slot slot[SLOTS];
    Range *range; /* owned: begun, not yet wholly in slots; oldest first, from range_first */
    int range_first, range_count, range_room;
    uint32_t pieces; /* started so far */
    int busy;        /* slots not idle */
} Messages;

static int slice_count(const Slot *slot, int size, int rank)
{
    return (int)(slice_border(slot->offset, slot->count, size, rank + 1) -
                 slice_border(slot->offset, slot->count, size, rank));
}

static Status mpi_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    Messages *m = mem_new(sizeof *m);
    MPI_CHECK(MPI_Comm_dup(comm->world->comm, &m->comm));
    m->piece = comm->arena_elements < PIECE ? comm->arena_elements : PIECE;
    int64_t even = (m->piece + comm->size - 1) / comm->size;
    m->slice_room = even + 16; /* a border moves up by less than 16 to its cache line */
    size_t peers = (size_t)comm->size - 1;
    for (int i = 0; i < SLOTS; ++i) {
        Slot *slot = &m->slot[i];
        slot->staging = mem_pages_new(peers * (size_t)m->slice_room * sizeof(float));
        slot->in = mem_new((size_t)comm->size * sizeof(float *));
        slot->request = mem_new(2 * peers * sizeof(MPI_Request));
    }
    comm->arena = backend->table->alloc(backend, arena_bytes);
    comm->impl = m;
    return OK;
}

static void mpi_close(Comm *comm)
{
    Messages *m = comm->impl;
    size_t peers = (size_t)comm->size - 1;
    for (int i = 0; i < SLOTS; ++i) {
        mem_pages_free(m->slot[i].staging, peers * (size_t)m->slice_room * sizeof(float));
        mem_free(&m->slot[i].in);
        mem_free(&m->slot[i].request);
    }
    mem_free(&m->range);
    MPI_CHECK(MPI_Comm_free(&m->comm));
    comm->backend->table->release(comm->backend, comm->arena,
                                  (size_t)comm->arena_elements * sizeof(float));
    mem_free(&comm->impl);
    comm->arena = NULL;
}

static void mpi_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    Messages *m = comm->impl;
    if (m->range_first == m->range_count) m->range_first = m->range_count = 0;
    if (m->range_count == m->range_room) {
        m->range_room = m->range_room ? 2 * m->range_room : 64;
        m->range = mem_resize(m->range, (size_t)m->range_room * sizeof *m->range);
    }
    m->range[m->range_count++] = (Range){offset, count};
    comm->table->progress(comm);
}

static void send(const Comm *comm, Slot *slot, const float *data, int count, int peer, int tag)
{
    const Messages *m = comm->impl;
    if (count > 0)
        MPI_CHECK(MPI_Isend(data, count, MPI_FLOAT, peer, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

static void receive(const Comm *comm, Slot *slot, float *data, int count, int peer, int tag)
{
    const Messages *m = comm->impl;
    if (count > 0)
        MPI_CHECK(MPI_Irecv(data, count, MPI_FLOAT, peer, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

/* Every rank starts with its neighbour above, so that not all send to rank 0 first. */
static void start_collect(const Comm *comm, Slot *slot)
{
    const Messages *m = comm->impl;
    int mine = slice_count(slot, comm->size, comm->rank);
    slot->state = SLOT_COLLECT;
    slot->request_count = 0;
    slot->in[comm->rank] =
        comm->arena + slice_border(slot->offset, slot->count, comm->size, comm->rank);
    for (int i = 1; i < comm->size; ++i) {
        int from = (comm->rank + comm->size - i) % comm->size;
        float *staging = slot->staging + (i - 1) * m->slice_room;
        slot->in[from] = staging;
        receive(comm, slot, staging, mine, from, slot->tag);
    }
    for (int i = 1; i < comm->size; ++i) {
        int to = (comm->rank + i) % comm->size;
        float *theirs = comm->arena + slice_border(slot->offset, slot->count, comm->size, to);
        send(comm, slot, theirs, slice_count(slot, comm->size, to), to, slot->tag);
    }
}

static void sum_slice(Comm *comm, Slot *slot)
{
    double start = clock_s();
    float *out = (float *)slot->in[comm->rank];
    int64_t n = slice_count(slot, comm->size, comm->rank);
    int parts = n < PARALLEL_ELEMENTS ? 1 : comm->backend->options.threads;
#pragma omp parallel for num_threads(parts) if (parts > 1)
    for (int i = 0; i < parts; ++i) {
        int64_t begin = slice_border(0, n, parts, i), end = slice_border(0, n, parts, i + 1);
        tree_sum(&out, 1, slot->in, comm->size, begin, end - begin);
    }
    comm->sum_s += clock_s() - start;
}

static void start_spread(const Comm *comm, Slot *slot)
{
    int mine = slice_count(slot, comm->size, comm->rank);
    slot->state = SLOT_SPREAD;
    slot->request_count = 0;
    for (int i = 1; i < comm->size; ++i) {
        int from = (comm->rank + comm->size - i) % comm->size;
        float *theirs = comm->arena + slice_border(slot->offset, slot->count, comm->size, from);
        receive(comm, slot, theirs, slice_count(slot, comm->size, from), from, slot->tag + 1);
    }
    for (int i = 1; i < comm->size; ++i) {
        int to = (comm->rank + i) % comm->size;
        send(comm, slot, slot->in[comm->rank], mine, to, slot->tag + 1);
    }
}

/* Moves a slot on as far as its messages allow. */
static void advance(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    while (slot->state != SLOT_IDLE) {
        int done = 0;
        MPI_CHECK(MPI_Testall(slot->request_count, slot->request, &done, MPI_STATUSES_IGNORE));
        if (!done) return;
        if (slot->state == SLOT_COLLECT) {
            sum_slice(comm, slot);
            start_spread(comm, slot);
        } else {
            slot->state = SLOT_IDLE;
            --m->busy;
        }
    }
}

static void start_piece(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    Range *range = &m->range[m->range_first];
    slot->offset = range->offset;
    slot->count = range->count < m->piece ? range->count : m->piece;
    slot->tag = (int)(m->pieces++ % TAG_PIECES) * 2;
    range->offset += slot->count;
    range->count -= slot->count;
    if (range->count == 0) ++m->range_first;
    ++m->busy;
    start_collect(comm, slot);
}

static bool mpi_progress(Comm *comm)
{
    Messages *m = comm->impl;
    for (int i = 0; i < SLOTS; ++i) {
        Slot *slot = &m->slot[i];
        if (slot->state == SLOT_IDLE && m->range_first < m->range_count) start_piece(comm, slot);
        advance(comm, slot);
    }
    return m->busy == 0 && m->range_first == m->range_count;
}

const CommTable comm_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .sum_begin = mpi_sum_begin,
    .progress = mpi_progress,
};
