/* The two phases of a piece, on its rail, and before and after them the sum and the copies inside
 * the group. */
#include "pieces.h"
#include "../world/mpi_check.h"

/* tags stay below the 32767 that every MPI allows */
enum { TAG_PIECES = 1 << 13 };

/* The slice of a piece that is the shard of the rail's rank number `rail_rank`, in the arena or the
 * parameters. */
typedef struct Slice {
    int64_t at;
    int count;
} Slice;
static Slice slice_of(const Comm *comm, const Slot *slot, int rail_rank)
{
    const Messages *m = comm->impl;
    const Range *range = &slot->range;
    int rank = rail_rank * m->group.size + m->group.rank;
    int64_t end = cut_bound(&range->cut, comm->size, rank + 1);
    int64_t begin = cut_bound(&range->cut, comm->size, rank) + range->done;
    if (begin > end) begin = end;
    int64_t count = end - begin < m->slice ? end - begin : m->slice;
    return (Slice){range->shift + begin, (int)count};
}

static float *mine_at(const Messages *m, const Slot *slot, Slice slice)
{
    return slot->range.base[m->group.rank] + slice.at;
}

static void send(const Messages *m, Slot *slot, float *from, int count, int to, int tag)
{
    if (count > 0)
        MPI_CHECK(MPI_Isend(from, count, MPI_FLOAT, to, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

static void receive(const Messages *m, Slot *slot, float *into, int count, int from, int tag)
{
    if (count > 0)
        MPI_CHECK(MPI_Irecv(into, count, MPI_FLOAT, from, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

/* The slices of the rail's ranks, which no other rank of the group has: summed over the group
 * before the messages, or handed out to it after them. */
static void join_group(Comm *comm, const Slot *slot, bool before)
{
    const Messages *m = comm->impl;
    float *const *all = slot->range.base, *const *mine = &all[m->group.rank];
    int size = m->group.size;
    if (size == 1) return;
    for (int i = 0; i < m->rail_size; ++i) {
        Slice slice = slice_of(comm, slot, i);
        tree_sum(before ? mine : all, before ? 1 : size,
                 (const float *const *)(before ? all : mine), before ? size : 1, slice.at,
                 slice.count);
    }
}

/* To collect, every rank sends each peer that peer's slice and takes its own from all; to spread,
 * it sends its own to all and takes theirs. Every rank starts with its neighbour above, so that not
 * all send to the first one first. */
static void start_phase(const Comm *comm, Slot *slot, SlotState phase)
{
    const Messages *m = comm->impl;
    bool collect = phase == SLOT_COLLECT;
    int tag = (int)(slot->piece % TAG_PIECES) * 2 + !collect;
    Slice mine = slice_of(comm, slot, m->rail_rank);
    slot->state = phase;
    slot->request_count = 0;
    slot->in[m->rail_rank] = mine_at(m, slot, mine);
    for (int i = 1; i < m->rail_size; ++i) {
        int from = (m->rail_rank + m->rail_size - i) % m->rail_size;
        Slice theirs = slice_of(comm, slot, from);
        float *staging = slot->staging + (i - 1) * m->slice;
        slot->in[from] = staging;
        if (collect)
            receive(m, slot, staging, mine.count, from, tag);
        else
            receive(m, slot, mine_at(m, slot, theirs), theirs.count, from, tag);
    }
    for (int i = 1; i < m->rail_size; ++i) {
        int to = (m->rail_rank + i) % m->rail_size;
        Slice slice = collect ? slice_of(comm, slot, to) : mine;
        send(m, slot, mine_at(m, slot, slice), slice.count, to, tag);
    }
}

/* A group's sum is one leaf of what is left of the tree. */
static void push_slice(const Comm *comm, const Slot *slot)
{
    const Messages *m = comm->impl;
    const CommPush *push = &slot->range.push;
    TreePush leaves = {.level = push->level,
                       .level_at = push->at + slot->range.done,
                       .in = slot->in,
                       .ins = m->rail_size,
                       .first = push->first / m->group.size,
                       .leaves = push->leaves / m->group.size};
    tree_push(&leaves, slice_of(comm, slot, m->rail_rank).count, 1);
}

static void sum_slice(const Comm *comm, const Slot *slot)
{
    const Messages *m = comm->impl;
    Slice mine = slice_of(comm, slot, m->rail_rank);
    float *out = mine_at(m, slot, mine);
    tree_sum(&out, 1, slot->in, m->rail_size, 0, mine.count);
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
    if (slot->range.push.level)
        push_slice(comm, slot);
    else
        sum_slice(comm, slot);
    if (slot->range.push.level && slot->last) m->pushed = slot->range.number;
}

bool piece_advance(Comm *comm, Slot *slot)
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
            start_phase(comm, slot, SLOT_SPREAD);
        } else {
            if (!sum) join_group(comm, slot, false);
            slot->state = SLOT_IDLE;
        }
    }
    return moved;
}

void piece_start(Comm *comm, Slot *slot)
{
    Messages *m = comm->impl;
    Range *range = &m->range[m->range_first];
    slot->range = *range;
    slot->piece = m->pieces++;
    range->done += m->slice;
    slot->last = range->done >= cut_longest(&range->cut, comm->size);
    if (slot->last) ++m->range_first;
    if (slot->range.collect) join_group(comm, slot, true);
    start_phase(comm, slot, slot->range.collect ? SLOT_COLLECT : SLOT_SPREAD);
}
