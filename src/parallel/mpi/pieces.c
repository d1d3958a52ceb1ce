/* Moves a piece. The piece is first summed inside the group, if the operation collects. Then the
 * ranks of the rail exchange messages, in up to two phases: collect and spread. If the operation
 * spreads, the result is last copied inside the group (parallel/sums.h explains group, rail and
 * phase). A phase is one round in which all ranks of the rail exchange messages (all to all), or
 * the rounds of halving. In some pushes a phase has both: collecting begins with halving, and
 * spreading ends with halving. order/sum_cost.c chooses the size of a piece. */
#include "pieces.h"
#include "../world/mpi_check.h"

#include <string.h>

/* number of consecutive pieces with different tags; all tags are below 32767, the largest tag that
 * every MPI allows */
enum { TAG_PIECES = 1 << 13 };

/* The part of a piece that is in one rank's shard. */
typedef struct Slice {
    /* first element, in the arena or in the parameters */
    int64_t at;
    /* number of elements */
    int count;
} Slice;

/* Returns the index of the part of the cut that belongs to rank rail_rank of the rail. With given
 * bounds it is the rank's number in the world. An even cut may assign its parts in any order: here
 * the parts of one rail are adjacent and in the order of Halving.position, so that the parts in one
 * message of halving are adjacent. */
static int part_of(const MpiState *m, const Operation *op, int rail_rank)
{
    if (op->cut.bounds) return rail_rank * m->group.size + m->group.rank;
    return m->group.rank * m->rail_size + m->halving->position[rail_rank];
}

/* Returns the slice of rank rail_rank of the rail in the slot's piece. */
static Slice slice_of(const Comm *comm, const Slot *slot, int rail_rank)
{
    const MpiState *m = comm->impl;
    const Operation *op = &slot->op;
    int part = part_of(m, op, rail_rank);
    int64_t end = cut_bound(&op->cut, comm->size, part + 1);
    int64_t begin = cut_bound(&op->cut, comm->size, part) + op->done;
    if (begin > end) begin = end;
    int64_t count = end - begin;
    if (op->slices && count > m->slice_elements) count = m->slice_elements;
    return (Slice){op->shift + begin, (int)count};
}

/* Returns the address of a slice in this rank's memory. */
static float *mine_at(const MpiState *m, const Slot *slot, Slice slice)
{
    return slot->op.base[m->group.rank] + slice.at;
}

static void send(Comm *comm, Slot *slot, float *from, int count, int to, int tag)
{
    const MpiState *m = comm->impl;
    if (count == 0) return;
    ++comm->message_count;
    comm->message_bytes += count * (int64_t)sizeof *from;
    MPI_CHECK(
        MPI_Isend(from, count, MPI_FLOAT, to, tag, m->comm, &slot->request[slot->request_count++]));
}

static void receive(const MpiState *m, Slot *slot, float *into, int count, int from, int tag)
{
    if (count > 0)
        MPI_CHECK(MPI_Irecv(into, count, MPI_FLOAT, from, tag, m->comm,
                            &slot->request[slot->request_count++]));
}

/* Handles the slices of all ranks of this rank's rail inside the group. before = true: sums each of
 * them over the ranks of the group, before the messages. before = false: copies each of them to the
 * other ranks of the group, after the messages. No other rank of the group handles these slices. */
static void join_group(Comm *comm, const Slot *slot, bool before)
{
    const MpiState *m = comm->impl;
    float *const *all = slot->op.base, *const *mine = &all[m->group.rank];
    int size = m->group.size;
    if (size == 1) return;
    for (int i = 0; i < m->rail_size; ++i) {
        Slice slice = slice_of(comm, slot, i);
        tree_sum(before ? mine : all, before ? 1 : size,
                 (const float *const *)(before ? all : mine), before ? size : 1, slice.at,
                 slice.count);
    }
}

/* Returns the number of neighbouring ranks of the rail that halving joins. It is 1 without halving,
 * and the number of all ranks of the rail for a sum or an all-gather. For a push it is
 * halving_group; if the rail has more ranks, an all to all then exchanges the sums of the joined
 * ranks. */
static int leaf_ranks(const MpiState *m, const Operation *op)
{
    if (!op->halves) return 1;
    return op->push.partial ? halving_group(m->rail_size) : m->rail_size;
}

/* ---- all to all ---- */

/* Begins the messages of one round all to all. It is between the ranks of the rail whose numbers
 * differ from this rank's by a multiple of leaf_ranks. To collect, a rank sends each peer the
 * peer's slice and receives its own slice from all peers; to spread, it sends the sum of its slice
 * to all peers and receives their sums. Every rank sends to the next higher rank first, so that the
 * ranks do not all send to the same rank at once. */
static void start_all(Comm *comm, Slot *slot, int tag)
{
    const MpiState *m = comm->impl;
    bool collect = slot->state == SLOT_COLLECT;
    int stride = leaf_ranks(m, &slot->op);
    Slice mine = slice_of(comm, slot, m->rail_rank);
    slot->in[m->rail_rank / stride] = mine_at(m, slot, mine);
    for (int i = 1; i < m->rail_size / stride; ++i) {
        int from = (m->rail_rank + m->rail_size - i * stride) % m->rail_size;
        Slice theirs = slice_of(comm, slot, from);
        float *staging = slot->staging + (i - 1) * m->slice_elements;
        slot->in[from / stride] = staging;
        if (collect)
            receive(m, slot, staging, mine.count, from, tag);
        else
            receive(m, slot, mine_at(m, slot, theirs), theirs.count, from, tag);
    }
    for (int i = 1; i < m->rail_size / stride; ++i) {
        int to = (m->rail_rank + i * stride) % m->rail_size;
        Slice slice = collect ? slice_of(comm, slot, to) : mine;
        send(comm, slot, mine_at(m, slot, slice), slice.count, to, tag);
    }
}

/* ---- halving ---- */

/* The slices of a message of halving that next_slice has not yet returned. In an even cut they are
 * contiguous and count as one slice. */
typedef struct Block {
    const Comm *comm;
    const Slot *slot;
    /* the message, without the slices that have been returned; unchanged if bounds are given */
    HalvingMessage left;
    /* if bounds are given: index of the next stored shard to check */
    int shard;
} Block;

static Block block_of(const Comm *comm, const Slot *slot, HalvingMessage message)
{
    return (Block){comm, slot, message, slot->shard};
}

/* Returns true if the owner of the stored shard is on this rail and the owner's slice is in the
 * message. Sets *rank to the owner's number on the rail. */
static bool owner_in(const Block *block, int shard, int *rank)
{
    const MpiState *m = block->comm->impl;
    int owner = block->slot->op.cut.bounds->rank[shard];
    if (owner % m->group.size != m->group.rank) return false;
    *rank = owner / m->group.size;
    int position = m->halving->position[*rank];
    return position >= block->left.begin && position < block->left.end;
}

static bool next_slice(Block *block, Slice *slice)
{
    const MpiState *m = block->comm->impl;
    const Slot *slot = block->slot;
    int first, last;
    if (!slot->op.cut.bounds) {
        if (!halving_next(m->halving, &block->left, true, &first, &last)) return false;
        Slice end = slice_of(block->comm, slot, last);
        *slice = slice_of(block->comm, slot, first);
        slice->count = (int)(end.at + end.count - slice->at);
        return true;
    }
    while (block->shard < slot->shard_end) {
        if (!owner_in(block, block->shard++, &first)) continue;
        *slice = slice_of(block->comm, slot, first);
        if (slice->count > 0) return true;
    }
    return false;
}

static int block_count(Block block)
{
    Slice slice;
    int count = 0;
    while (next_slice(&block, &slice)) count += slice.count;
    return count;
}

/* Returns the address of a block that is one slice. Returns NULL if the block is empty or has
 * several slices, which are not contiguous. */
static float *block_contiguous(Block block)
{
    Slice slice, other;
    return next_slice(&block, &slice) && !next_slice(&block, &other)
               ? mine_at(block.comm->impl, block.slot, slice)
               : NULL;
}

static void block_pack(Block block, float *to)
{
    Slice slice;
    while (next_slice(&block, &slice)) {
        memcpy(to, mine_at(block.comm->impl, block.slot, slice), (size_t)slice.count * sizeof *to);
        to += slice.count;
    }
}

/* Copies a received block to its slices in the arena or the parameters. */
static void block_unpack(Block block, const float *from)
{
    Slice slice;
    while (next_slice(&block, &slice)) {
        memcpy(mine_at(block.comm->impl, block.slot, slice), from,
               (size_t)slice.count * sizeof *from);
        from += slice.count;
    }
}

/* Adds a received block to this rank's sums. mine_first = true: this rank's sum, which is over the
 * lower ranks, is the left operand. */
static void block_add(Block block, const float *from, bool mine_first)
{
    Slice slice;
    while (next_slice(&block, &slice)) {
        float *mine = mine_at(block.comm->impl, block.slot, slice);
        const float *both[] = {mine_first ? mine : from, mine_first ? from : mine};
        tree_sum(&mine, 1, both, 2, 0, slice.count);
        from += slice.count;
    }
}

/* Sends a block from its place in the arena or, if it is not contiguous there, packed in the
 * staging memory. Returns the staging memory for the next block of the round. */
static float *send_block(Comm *comm, Slot *slot, HalvingMessage message, int tag, float *staging)
{
    Block block = block_of(comm, slot, message);
    float *from = block_contiguous(block);
    int count = block_count(block);
    if (!from) block_pack(block, staging);
    send(comm, slot, from ? from : staging, count, message.peer, tag);
    return staging + count;
}

/* Receives a block. A block that will be added, or that is not contiguous in the arena, is received
 * into the staging memory. Returns the staging memory for the next block of the round. */
static float *receive_block(Comm *comm, Slot *slot, HalvingMessage message, int tag, float *staging)
{
    Block block = block_of(comm, slot, message);
    float *in_place = slot->state == SLOT_COLLECT ? NULL : block_contiguous(block);
    int count = block_count(block);
    receive(comm->impl, slot, in_place ? in_place : staging, count, message.peer, tag);
    return staging + count;
}

static const HalvingRound *round_of(const Comm *comm, const Slot *slot)
{
    return &((const MpiState *)comm->impl)->halving->round[slot->round];
}

static void start_round(Comm *comm, Slot *slot, int tag)
{
    const HalvingRound *round = round_of(comm, slot);
    bool collect = slot->state == SLOT_COLLECT;
    float *at = slot->staging;
    if (collect) at = receive_block(comm, slot, round->received, tag, at);
    for (int i = 0; i < round->sends; ++i)
        at = (collect ? send_block : receive_block)(comm, slot, round->sent[i], tag, at);
    if (!collect) send_block(comm, slot, round->received, tag, at);
}

static void end_round(const Comm *comm, const Slot *slot)
{
    const HalvingRound *round = round_of(comm, slot);
    const float *at = slot->staging;
    if (slot->state == SLOT_COLLECT)
        block_add(block_of(comm, slot, round->received), at, round->is_lower);
    for (int i = 0; slot->state == SLOT_SPREAD && i < round->sends; ++i) {
        Block block = block_of(comm, slot, round->sent[i]);
        if (!block_contiguous(block)) block_unpack(block, at);
        at += block_count(block);
    }
}

/* ---- phases ---- */

/* Returns the number of rounds of halving; 0 without halving. If these rounds do not join all ranks
 * of the rail, one round all to all follows them while collecting, and precedes them while
 * spreading. */
static int rounds_of(const MpiState *m, const Operation *op)
{
    int joined = leaf_ranks(m, op);
    return joined == m->rail_size ? m->halving->rounds : halving_rounds(joined);
}

/* Returns the index of the last round while collecting, which is the first while spreading. An all
 * to all counts as one round. */
static int last_round(const MpiState *m, const Operation *op)
{
    bool exchanges = !op->halves || leaf_ranks(m, op) < m->rail_size;
    return rounds_of(m, op) - !exchanges;
}

static void start_messages(Comm *comm, Slot *slot)
{
    const MpiState *m = comm->impl;
    int tag = (int)(slot->piece % TAG_PIECES) * 2 + (slot->state == SLOT_SPREAD);
    slot->request_count = 0;
    if (slot->round < rounds_of(m, &slot->op))
        start_round(comm, slot, tag);
    else
        start_all(comm, slot, tag);
}

static void start_phase(Comm *comm, Slot *slot, SlotState phase)
{
    const MpiState *m = comm->impl;
    slot->state = phase;
    slot->received = false;
    slot->round = phase == SLOT_SPREAD ? last_round(m, &slot->op) : 0;
    start_messages(comm, slot);
}

/* Processes the received messages, and begins the messages of the next round. Returns false if the
 * phase has no further round. */
static bool next_round(Comm *comm, Slot *slot)
{
    const MpiState *m = comm->impl;
    bool collect = slot->state == SLOT_COLLECT;
    if (slot->round < rounds_of(m, &slot->op)) end_round(comm, slot);
    slot->round += collect ? 1 : -1;
    if (slot->round < 0 || slot->round > last_round(m, &slot->op)) return false;
    start_messages(comm, slot);
    return true;
}

/* ---- sums ---- */

/* Adds the collected slices to the partial sums of the push. A leaf of the tree is here a sum over
 * several ranks: the ranks that halving has joined, and all ranks of their groups. The tree has
 * correspondingly fewer leaves. */
static void push_slice(const Comm *comm, const Slot *slot)
{
    const MpiState *m = comm->impl;
    const CommPush *push = &slot->op.push;
    Slice mine = slice_of(comm, slot, m->rail_rank);
    float *out = mine_at(m, slot, mine);
    const float *sum = out;
    int joined = leaf_ranks(m, &slot->op), ranks = joined * m->group.size;
    int64_t in_shard = mine.at - slot->op.shift - bounds_at(push->bounds, comm->rank);
    TreePush leaves = {.level = push->partial,
                       .level_at = push->partial_at + in_shard,
                       .in = joined == m->rail_size ? &sum : slot->in,
                       .ins = m->rail_size / joined,
                       .first = push->first / ranks,
                       .leaves = push->leaves / ranks,
                       .out = &out,
                       .outs = push->to != PUSH_TO_PARTIAL};
    tree_push(&leaves, mine.count, 1);
}

/* Returns true if this piece and an older piece are both collecting for a push. The older piece
 * must be added first, because leaves are added to a tree in order. */
static bool must_wait_for_older(const MpiState *m, const Slot *slot)
{
    bool collects = slot->state == SLOT_COLLECT && slot->op.push.partial;
    for (int i = 0; i < m->slots && collects; ++i) {
        const Slot *other = &m->slot[i];
        if (other->state == SLOT_COLLECT && other->op.push.partial &&
            (int32_t)(other->piece - slot->piece) < 0)
            return true;
    }
    return false;
}

/* Sums the collected slices, or adds them to the partial sums of a push. A sum by halving has
 * already added its slices round by round. */
static void finish_collect(Comm *comm, Slot *slot)
{
    MpiState *m = comm->impl;
    if (slot->op.push.partial) {
        push_slice(comm, slot);
    } else if (!slot->op.halves) {
        Slice mine = slice_of(comm, slot, m->rail_rank);
        float *out = mine_at(m, slot, mine);
        tree_sum(&out, 1, slot->in, m->rail_size, 0, mine.count);
    }
    if (slot->op.push.partial && slot->last) m->pushed = slot->op.number;
}

bool piece_advance(Comm *comm, Slot *slot)
{
    MpiState *m = comm->impl;
    bool moved = false;
    while (slot->state != SLOT_IDLE) {
        int done = 0;
        MPI_CHECK(MPI_Testall(slot->request_count, slot->request, &done, MPI_STATUSES_IGNORE));
        if (!done) break;
        if (!slot->received) {
            moved = true;
            if (next_round(comm, slot)) continue;
            slot->received = true;
        }
        if (must_wait_for_older(m, slot)) break;
        bool sum = slot->state == SLOT_COLLECT;
        moved = true;
        if (sum) finish_collect(comm, slot);
        if (sum && slot->op.spread) {
            start_phase(comm, slot, SLOT_SPREAD);
        } else {
            if (!sum) join_group(comm, slot, false);
            slot->state = SLOT_IDLE;
        }
    }
    return moved;
}

/* Sets slot->shard and slot->shard_end, the limits of the stored shards that may have elements in
 * the piece. If pieces are slices, these are all shards from op->shard on. If pieces are ranges,
 * they are the shards that overlap the slot's cut; then also advances op->shard. */
static void find_shards(Operation *op, Slot *slot)
{
    const Cut *cut = &slot->op.cut;
    const Bounds *b = cut->bounds;
    slot->shard = op->shard;
    slot->shard_end = b->count;
    if (op->slices) return;
    while (slot->shard < b->count && b->begin[slot->shard + 1] <= cut->offset) ++slot->shard;
    op->shard = slot->shard_end = slot->shard;
    while (slot->shard_end < b->count && b->begin[slot->shard_end] < cut->offset + cut->count)
        ++slot->shard_end;
}

/* Puts the next piece of the oldest operation into the slot: a slice of every shard, or a
 * consecutive range. */
static void cut_piece(const Comm *comm, MpiState *m, Slot *slot)
{
    Operation *op = &m->op[m->op_first];
    int64_t all = op->cut.count, most = op->cut.bounds ? m->uneven_elements : m->even_elements;
    slot->op = *op;
    if (op->slices) {
        op->done += m->slice_elements;
        all = cut_longest(&op->cut, comm->size);
    } else {
        Cut *cut = &slot->op.cut;
        cut->offset += op->done;
        cut->count = all - op->done < most ? all - op->done : most;
        slot->op.done = 0;
        op->done += cut->count;
    }
    if (op->cut.bounds) find_shards(op, slot);
    slot->last = op->done >= all;
}

void piece_start(Comm *comm, Slot *slot)
{
    MpiState *m = comm->impl;
    cut_piece(comm, m, slot);
    slot->piece = m->pieces++;
    if (slot->last) ++m->op_first;
    if (slot->op.collect) join_group(comm, slot, true);
    start_phase(comm, slot, slot->op.collect ? SLOT_COLLECT : SLOT_SPREAD);
}
