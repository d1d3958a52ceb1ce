/* Ordered sums by messages, for ranks on several nodes. A range is cut in one share per rank, and moves in pieces, which
 * have a slice of every share. Two phases a piece: every rank sends each peer that peer's slice and sums its own slice from
 * all of them, in tree order; then it sends the sum to all. The bytes on the wire are those of a ring, and the order is ours.
 * Where a rank alone gets the sums of its share the second phase is left out; gathering values is the second phase alone. A
 * push is the first phase with another sum; its pieces are summed in the order in which they were begun.
 *
 * A few pieces are in flight at a time, each in a slot with its own staging memory, so that memory is bounded whatever the
 * range and counts stay far below 2^31. A thread (pump.h) moves pieces on and sums them, while the layers compute. */
#include "comm_values.h"
#include "mpi_check.h"
#include "pump.h"
#include "tree_sum.h"

#include <sched.h>
#include <string.h>

enum { PIECE = 1 << 18, SLOTS = 16 }; /* elements of a piece, about; pieces in flight */
/* A waiting rank looks itself for so long, and then leaves it to the pump; a push's looks after other messages after WAIT_S. */
static const double LOOK_S = 2e-4, WAIT_S = 1e-3;
enum { TAG_PIECES = 1 << 13 }; /* tags stay below the 32767 that every MPI allows */

typedef enum SlotState { SLOT_IDLE, SLOT_COLLECT, SLOT_SPREAD } SlotState;

/* What was begun. */
typedef struct Range {
    float *base; /* borders count from here: a place of the arena, or values */
    Cut cut;
    bool collect, spread; /* phases that it has */
    int64_t done;         /* elements of every share that are in pieces */
    CommPush push;        /* level NULL: it is none */
    int64_t number;       /* the push's, or the gathering's */
} Range;

/* One piece in flight. */
typedef struct Slot {
    SlotState state;
    Range range;          /* done: where in the shares this piece begins */
    uint32_t piece;       /* number of it */
    bool last;            /* of its range */
    float *staging;       /* owned: my slice from each peer, a slice's room apart */
    const float **in;     /* owned array: my slice of each rank, in rank order */
    MPI_Request *request; /* owned: room for one send and one receive per peer */
    int request_count;
} Slot;

typedef struct Messages {
    MPI_Comm comm; /* owned: its tags are ours alone */
    int64_t slice; /* elements, at most */
    Slot slot[SLOTS];
    Range *range; /* owned: begun, not yet wholly in slots; oldest first, from range_first */
    int range_first, range_count, range_room;
    uint32_t pieces; /* started so far */
    int busy;        /* slots not idle */
    int64_t pushed;  /* pushes done */
    Pump *pump;      /* owned: mpi_lock guards all of this but comm, slice and pump */
} Messages;

/* A rank's slice of a piece, in the arena or the values. */
typedef struct Slice {
    float *at;
    int count;
} Slice;
static Slice slice_of(const Comm *comm, const Slot *slot, int rank)
{
    const Messages *m = comm->impl;
    const Range *range = &slot->range;
    int64_t end = cut_border(&range->cut, comm->size, rank + 1);
    int64_t begin = cut_border(&range->cut, comm->size, rank) + range->done;
    if (begin > end) begin = end;
    int64_t count = end - begin < m->slice ? end - begin : m->slice;
    return (Slice){range->base + begin, (int)count};
}

static PumpTurn turn(void *of);

/* Elements of a slice, at most: borders move up to their cache line. What slots hold is no more than the arena. */
static int64_t slice_room(int ranks, int64_t elements)
{
    int64_t piece = elements / SLOTS < PIECE ? elements / SLOTS : PIECE;
    return (piece + ranks - 1) / ranks + 16;
}

static size_t slot_bytes(int ranks, int64_t elements)
{
    return (size_t)(ranks - 1) * (size_t)slice_room(ranks, elements) * sizeof(float);
}

size_t comm_mpi_staging(int ranks, int64_t elements)
{
    return SLOTS * slot_bytes(ranks, elements);
}

static Status mpi_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    Messages *m = mem_new(sizeof *m);
    MPI_CHECK(MPI_Comm_dup(comm->world->comm, &m->comm));
    m->slice = slice_room(comm->size, comm->arena_elements);
    size_t peers = (size_t)comm->size - 1, bytes = slot_bytes(comm->size, comm->arena_elements);
    for (int i = 0; i < SLOTS; ++i) {
        Slot *slot = &m->slot[i];
        slot->staging = mem_pages_new(bytes);
        memset(slot->staging, 0, bytes); /* taken now, as planned, whatever is in flight later */
        slot->in = mem_new((size_t)comm->size * sizeof(float *));
        slot->request = mem_new(2 * peers * sizeof(MPI_Request));
    }
    comm->arena = backend->table->alloc(backend, arena_bytes);
    comm->impl = m;
    m->pump = pump_new(turn, comm);
    return OK;
}

static void mpi_close(Comm *comm)
{
    Messages *m = comm->impl;
    size_t bytes = slot_bytes(comm->size, comm->arena_elements);
    pump_free(&m->pump);
    for (int i = 0; i < SLOTS; ++i) {
        mem_pages_free(m->slot[i].staging, bytes);
        mem_free(&m->slot[i].in);
        mem_free(&m->slot[i].request);
    }
    mem_free(&m->range);
    MPI_CHECK(MPI_Comm_free(&m->comm));
    comm_values_release(comm);
    comm->backend->table->release(comm->backend, comm->arena,
                                  (size_t)comm->arena_elements * sizeof(float));
    mem_free(&comm->impl);
    comm->arena = NULL;
}

static void begin(Comm *comm, Range range)
{
    Messages *m = comm->impl;
    mpi_lock();
    if (m->range_first == m->range_count) m->range_first = m->range_count = 0;
    if (m->range_count == m->range_room) {
        m->range_room = m->range_room ? 2 * m->range_room : 64;
        m->range = mem_resize(m->range, (size_t)m->range_room * sizeof *m->range);
    }
    m->range[m->range_count++] = range;
    turn(comm);
    pump_wake(m->pump);
    mpi_unlock();
}

static void mpi_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    begin(comm, (Range){.base = comm->arena,
                        .cut = {.offset = offset, .count = count},
                        .collect = true,
                        .spread = true});
}

static void mpi_reduce_begin(Comm *comm, const int64_t *border)
{
    begin(comm, (Range){.base = comm->arena, .cut = {.border = border}, .collect = true});
}

static void mpi_gather_begin(Comm *comm, const int64_t *border, int64_t shift)
{
    begin(comm, (Range){.base = comm->values + shift,
                        .cut = {.border = border},
                        .spread = true,
                        .number = comm->gathers});
}

static void mpi_push_begin(Comm *comm, const CommPush *push)
{
    begin(comm, (Range){.base = comm->arena + push->shift,
                        .cut = {.border = push->border},
                        .collect = true,
                        .push = *push,
                        .number = comm->pushes});
}

static int tag_of(const Slot *slot)
{
    return (int)(slot->piece % TAG_PIECES) * 2;
}

static void send(const Comm *comm, Slot *slot, Slice slice, int peer, int tag)
{
    const Messages *m = comm->impl;
    if (slice.count > 0)
        MPI_CHECK(MPI_Isend(slice.at, slice.count, MPI_FLOAT, peer, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

static void receive(const Comm *comm, Slot *slot, Slice slice, int peer, int tag)
{
    const Messages *m = comm->impl;
    if (slice.count > 0)
        MPI_CHECK(MPI_Irecv(slice.at, slice.count, MPI_FLOAT, peer, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

/* Every rank starts with its neighbour above, so that not all send to rank 0 first. */
static void start_collect(const Comm *comm, Slot *slot)
{
    const Messages *m = comm->impl;
    Slice mine = slice_of(comm, slot, comm->rank);
    slot->state = SLOT_COLLECT;
    slot->request_count = 0;
    slot->in[comm->rank] = mine.at;
    for (int i = 1; i < comm->size; ++i) {
        int from = (comm->rank + comm->size - i) % comm->size;
        Slice staging = {slot->staging + (i - 1) * m->slice, mine.count};
        slot->in[from] = staging.at;
        receive(comm, slot, staging, from, tag_of(slot));
    }
    for (int i = 1; i < comm->size; ++i) {
        int to = (comm->rank + i) % comm->size;
        send(comm, slot, slice_of(comm, slot, to), to, tag_of(slot));
    }
}

static void push_slice(const Comm *comm, const Slot *slot)
{
    const CommPush *push = &slot->range.push;
    TreePush leaves = {.level = push->level,
                       .level_at = push->at + slot->range.done,
                       .in = slot->in,
                       .ins = comm->size,
                       .first = push->first,
                       .leaves = push->leaves};
    int64_t n = slice_of(comm, slot, comm->rank).count;
    tree_push(&leaves, n, 1);
}

static void sum_slice(const Comm *comm, const Slot *slot)
{
    Slice mine = slice_of(comm, slot, comm->rank);
    tree_sum(&mine.at, 1, slot->in, comm->size, 0, mine.count);
}

/* Is an older piece of a push still to come? The sums of a tree are made in one order. */
static bool comes_early(const Messages *m, const Slot *slot)
{
    for (int i = 0; i < SLOTS && slot->range.push.level; ++i) {
        const Slot *other = &m->slot[i];
        if (other->state == SLOT_COLLECT && other->range.push.level &&
            (int32_t)(other->piece - slot->piece) < 0)
            return true;
    }
    return false;
}

/* What has been collected is summed. */
static void finish_collect(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    double start = clock_s();
    if (slot->range.push.level)
        push_slice(comm, slot);
    else
        sum_slice(comm, slot);
    if (slot->range.push.level && slot->last) m->pushed = slot->range.number;
    comm->sum_s += clock_s() - start;
}

static void start_spread(const Comm *comm, Slot *slot)
{
    Slice mine = slice_of(comm, slot, comm->rank);
    slot->state = SLOT_SPREAD;
    slot->request_count = 0;
    for (int i = 1; i < comm->size; ++i) {
        int from = (comm->rank + comm->size - i) % comm->size;
        receive(comm, slot, slice_of(comm, slot, from), from, tag_of(slot) + 1);
    }
    for (int i = 1; i < comm->size; ++i) {
        int to = (comm->rank + i) % comm->size;
        send(comm, slot, mine, to, tag_of(slot) + 1);
    }
}

/* Moves a slot on as far as its messages allow. Did it move? */
static bool advance(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    bool moved = false;
    while (slot->state != SLOT_IDLE) {
        int done = 0;
        MPI_CHECK(MPI_Testall(slot->request_count, slot->request, &done, MPI_STATUSES_IGNORE));
        if (!done || comes_early(m, slot)) break;
        bool sum = slot->state == SLOT_COLLECT;
        moved = true;
        if (sum) finish_collect(comm, slot);
        if (sum && slot->range.spread) {
            start_spread(comm, slot);
        } else {
            slot->state = SLOT_IDLE;
            --m->busy;
        }
    }
    return moved;
}

static void start_piece(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    Range *range = &m->range[m->range_first];
    slot->range = *range;
    slot->piece = m->pieces++;
    range->done += m->slice;
    slot->last = range->done >= cut_longest(&range->cut, comm->size);
    if (slot->last) ++m->range_first;
    ++m->busy;
    if (slot->range.collect)
        start_collect(comm, slot);
    else
        start_spread(comm, slot);
}

static bool at_rest(const Messages *m)
{
    return m->busy == 0 && m->range_first == m->range_count;
}

/* One look at all slots. */
static PumpTurn turn(void *of)
{
    Comm *comm = of;
    Messages *m = comm->impl;
    bool moved = false;
    for (int i = 0; i < SLOTS; ++i) {
        Slot *slot = &m->slot[i];
        if (slot->state == SLOT_IDLE && m->range_first < m->range_count) start_piece(comm, slot);
        moved |= advance(comm, slot);
    }
    return at_rest(m) ? PUMP_IDLE : moved ? PUMP_MOVED : PUMP_WAITING;
}

static void mpi_wait(Comm *comm)
{
    Messages *m = comm->impl;
    double end = clock_s() + LOOK_S;
    mpi_lock();
    while (turn(comm) != PUMP_IDLE) {
        if (clock_s() < end) {
            mpi_unlock();
            sched_yield();
            mpi_lock();
        } else {
            pump_wait(m->pump, WAIT_S);
        }
    }
    mpi_unlock();
}

static bool is_pushed(const Messages *m, int64_t number)
{
    return m->pushed >= number;
}

static bool gathers_up_to(const Range *range, int64_t number)
{
    return !range->collect && range->number <= number;
}

/* Its pieces may end in any order, so all that are left are looked at. */
static bool is_gathered(const Messages *m, int64_t number)
{
    for (int i = 0; i < SLOTS; ++i)
        if (m->slot[i].state != SLOT_IDLE && gathers_up_to(&m->slot[i].range, number)) return false;
    for (int i = m->range_first; i < m->range_count; ++i)
        if (gathers_up_to(&m->range[i], number)) return false;
    return true;
}

static bool wait_a_little(Comm *comm, bool (*is_done)(const Messages *, int64_t), int64_t number)
{
    Messages *m = comm->impl;
    mpi_lock();
    if (!is_done(m, number)) pump_wait(m->pump, WAIT_S);
    bool done = is_done(m, number);
    mpi_unlock();
    return done;
}

static bool mpi_gather_wait(Comm *comm, int64_t number)
{
    return wait_a_little(comm, is_gathered, number);
}

static bool mpi_push_wait(Comm *comm, int64_t number)
{
    return wait_a_little(comm, is_pushed, number);
}

const CommTable comm_mpi = {
    .name = "mpi",
    .open = mpi_open,
    .close = mpi_close,
    .sum_begin = mpi_sum_begin,
    .values_open = comm_values_own,
    .reduce_begin = mpi_reduce_begin,
    .gather_begin = mpi_gather_begin,
    .gather_wait = mpi_gather_wait,
    .push_begin = mpi_push_begin,
    .push_wait = mpi_push_wait,
    .wait = mpi_wait,
};
