/* Makes sums between GPUs (comm_nccl). An ordered sum cuts a range into one shard per rank. In one
 * group of sends, each rank sends its contribution to each shard to the owner of that shard. The
 * owner adds the contributions in the tree's order, and sends the sum to all ranks. A rank sends
 * the same number of bytes as in a ring, and the result has the bits of the tree. If any order of
 * additions is allowed, NCCL's all-reduce is used instead, but only for sums that all ranks get. A
 * reduce-scatter has only the first exchange (contributions), an all-gather only the second
 * (results). A push has the first exchange, and adds the received contributions to the tree's
 * partial sums; the last push of a tree with PUSH_TO_ALL also has the second exchange. Between many
 * ranks the exchanges of sums and all-gathers, but not of pushes, are rounds of halving
 * (halving.h), and each round is one group of sends. All work is queued on the communicator's
 * stream, which first waits for the compute stream. comm_wait makes the compute stream wait for the
 * communicator's stream; the host does not wait. */
#include "nccl.h"
#include "../order/cut.h"
#include "../order/halving.h"
#include "../order/tree_sum.h"
#include "../transport/comm_table.h"

#include <cuda_runtime_api.h>

/* A range with more floats than PIECE_ELEMENTS is summed in pieces of about that size, each with
 * one slice per rank. This limits the scratch memory to about 32 MB. */
static const int64_t PIECE_ELEMENTS = 8 << 20;
/* SLICE_ALIGN_FLOATS: alignment of a slice's capacity, in floats. SLICE_SLACK: reserve in a slice's
 * capacity, in floats. LINE_FLOATS: floats of a cache line; the bounds of an even cut are multiples
 * of it. LEVELS: largest number of levels of a tree. */
enum { SLICE_ALIGN_FLOATS = 32, SLICE_SLACK = 64, LINE_FLOATS = 16, LEVELS = 33 };

typedef struct NcclState {
    /* event recorded on the compute stream before each operation; owned */
    Event *computed;
    /* event recorded on the communicator's stream after each operation; owned */
    Event *summed;
    /* memory for one slice that is received from each other rank or, with halving, for the block
     * that is received in one round; owned */
    float *scratch;
    /* plan of halving; owned */
    Halving *halving;
    /* true: sums and all-gathers use halving; pushes never do */
    bool halves;
    size_t scratch_bytes;
    /* capacity of `scratch` for one slice, in floats */
    int64_t slice_elements;
    /* true: an operation has been queued for which the compute stream does not wait yet */
    bool in_flight;
} NcclState;

static const NcclComm *nccl_comm_of(const Comm *comm)
{
    return comm->world->nccl_comm;
}

static Stream *stream_of(const Comm *comm)
{
    return nccl_comm_of(comm)->stream;
}

/* ---- opening ---- */

static int64_t slice_capacity(int ranks, int64_t elements)
{
    int64_t piece = elements < PIECE_ELEMENTS ? elements : PIECE_ELEMENTS;
    return (piece / ranks + SLICE_SLACK) / SLICE_ALIGN_FLOATS * SLICE_ALIGN_FLOATS;
}

size_t comm_nccl_scratch(int ranks, int64_t elements)
{
    return (size_t)slice_capacity(ranks, elements) * (size_t)(ranks - 1) * sizeof(float);
}

static Status nccl_open(Comm *comm, Backend *backend, size_t arena_bytes)
{
    NcclState *state = comm->impl = mem_new(sizeof *state);
    state->slice_elements = slice_capacity(comm->size, comm->arena_elements);
    state->scratch_bytes = comm_nccl_scratch(comm->size, comm->arena_elements);
    state->scratch = backend->table->alloc(backend, state->scratch_bytes);
    state->halving = halving_new(comm->rank, comm->size);
    /* The choice between halving and all-to-all is made as for a sum of one piece, because the
     * pieces follow each other on one stream, and their waits do not overlap. */
    const SumShape piece = {
        .ranks = comm->size, .width = 1, .arena_elements = comm->arena_elements, .elements = 1};
    state->halves = sum_algorithm(&piece, comm->sum_algorithm) == COMM_HALVING;
    state->computed = backend->table->event_new(backend);
    state->summed = backend->table->event_new(backend);
    comm->arena = backend->table->alloc(backend, arena_bytes);
    return OK;
}

static void nccl_close(Comm *comm)
{
    NcclState *state = comm->impl;
    Backend *backend = comm->backend;
    const BackendTable *table = backend->table;
    table->sync(stream_of(comm));
    comm_params_release(comm);
    table->release(backend, comm->arena, (size_t)comm->arena_elements * sizeof(float));
    if (state->scratch) table->release(backend, state->scratch, state->scratch_bytes);
    table->event_free(&state->computed);
    table->event_free(&state->summed);
    halving_free(&state->halving);
    mem_free(&state);
    comm->impl = NULL;
}

/* ---- pieces ---- */

/* A range of the arena or of the parameters. */
typedef struct Range {
    /* address of the arena or of the parameters, plus the operation's shift; borrowed */
    float *base;
    /* the range, and its cut into shards */
    Cut cut;
    /* true: a piece is the next slice of every shard; false: a piece is the complete cut */
    bool slices;
} Range;

typedef struct Slice {
    float *at;
    int64_t elements;
} Slice;

/* Returns the slice of rank `rank` in the piece that begins `done` elements after the beginning of
 * each shard. An even cut may assign its parts in any order; the order of Halving.position is
 * used. */
static Slice slice_of(const Comm *comm, const Range *range, int64_t done, int rank)
{
    const NcclState *state = comm->impl;
    int part = range->cut.bounds ? rank : state->halving->position[rank];
    int64_t begin = cut_bound(&range->cut, comm->size, part) + done;
    int64_t left = cut_bound(&range->cut, comm->size, part + 1) - begin;
    if (range->slices && left > state->slice_elements) left = state->slice_elements;
    return (Slice){range->base + begin, left > 0 ? left : 0};
}

static size_t bytes_of(Slice slice)
{
    return (size_t)slice.elements * sizeof(float);
}

/* Returns the address of the contribution of rank `peer` to this rank's slice. The contribution of
 * this rank is in the arena, the contributions of other ranks are in the scratch memory. */
static float *part_of(const Comm *comm, Slice mine, int peer)
{
    const NcclState *state = comm->impl;
    if (peer == comm->rank) return mine.at;
    return state->scratch + state->slice_elements * (peer < comm->rank ? peer : peer - 1);
}

/* SCATTER: every rank receives the contributions of all other ranks to its slice. GATHER: every
 * rank sends its slice to all other ranks. */
typedef enum Direction { SCATTER, GATHER } Direction;
static void exchange(const Comm *comm, const Range *range, int64_t done, Direction direction)
{
    const NcclComm *nccl_comm = nccl_comm_of(comm);
    Slice mine = slice_of(comm, range, done, comm->rank);
    nccl_group_begin(nccl_comm);
    for (int peer = 0; peer < comm->size; ++peer) {
        if (peer == comm->rank) continue;
        Slice theirs = slice_of(comm, range, done, peer);
        Slice part = {part_of(comm, mine, peer), mine.elements};
        Slice out = direction == SCATTER ? theirs : mine;
        Slice in = direction == SCATTER ? part : theirs;
        nccl_send(nccl_comm, out.at, bytes_of(out), peer);
        nccl_receive(nccl_comm, in.at, bytes_of(in), peer);
    }
    nccl_group_end(nccl_comm);
}

/* ---- halving ---- */

/* The slices of a message of halving that next_slice has not yet returned. In an even cut they are
 * contiguous and count as one slice. */
typedef struct Block {
    const Comm *comm;
    const Range *range;
    int64_t done;
    HalvingMessage left;
} Block;

static bool next_slice(Block *block, Slice *slice)
{
    const NcclState *state = block->comm->impl;
    int first, last;
    if (!halving_next(state->halving, &block->left, !block->range->cut.bounds, &first, &last))
        return false;
    Slice end = slice_of(block->comm, block->range, block->done, last);
    *slice = slice_of(block->comm, block->range, block->done, first);
    slice->elements = end.at + end.elements - slice->at;
    return true;
}

/* Sends a block from its place in the range (sends = true), or receives it there. If scratch is not
 * NULL, receives it into `scratch` instead, from where add_block adds it later. */
static void move_block(Block block, bool sends, float *scratch)
{
    const NcclComm *nccl_comm = nccl_comm_of(block.comm);
    int peer = block.left.peer;
    Slice slice;
    while (next_slice(&block, &slice)) {
        if (sends)
            nccl_send(nccl_comm, slice.at, bytes_of(slice), peer);
        else
            nccl_receive(nccl_comm, scratch ? scratch : slice.at, bytes_of(slice), peer);
        if (scratch) scratch += slice.elements;
    }
}

/* Adds the block in the scratch memory to this rank's sums. mine_first = true: this rank's sum,
 * which is over the lower ranks, is the left operand. */
static void add_block(Block block, bool mine_first)
{
    const Comm *comm = block.comm;
    const NcclState *state = comm->impl;
    const float *from = state->scratch;
    Slice slice;
    while (next_slice(&block, &slice)) {
        if (slice.elements > 0)
            comm->backend->table->flat->add(stream_of(comm), slice.at, mine_first ? slice.at : from,
                                            mine_first ? from : slice.at, slice.elements);
        from += slice.elements;
    }
}

static void halve(const Comm *comm, const Range *range, int64_t done, Direction direction)
{
    const NcclState *state = comm->impl;
    const NcclComm *nccl_comm = nccl_comm_of(comm);
    bool out = direction == SCATTER;
    int rounds = state->halving->rounds;
    for (int i = 0; i < rounds; ++i) {
        const HalvingRound *round = &state->halving->round[out ? i : rounds - 1 - i];
        Block received = {comm, range, done, round->received};
        nccl_group_begin(nccl_comm);
        for (int k = 0; k < round->sends; ++k)
            move_block((Block){comm, range, done, round->sent[k]}, out, NULL);
        move_block(received, !out, out ? state->scratch : NULL);
        nccl_group_end(nccl_comm);
        if (out) add_block(received, round->is_lower);
    }
}

/* ---- sums ---- */

/* Adds the contributions of all ranks to the partial sums part[]. The contribution of rank r is the
 * leaf with index `first` + r in a tree of `leaves` leaves. Each sum overwrites its left
 * operand. */
static void grow(const Comm *comm, float **part, Slice mine, int first, int leaves)
{
    for (int rank = 0; rank < comm->size; ++rank) {
        TreeStep step = tree_step(first + rank, leaves);
        part[step.write] = part_of(comm, mine, rank);
        for (int j = 0; j < step.join_count; ++j) {
            float *to = part[step.to[j]];
            comm->backend->table->flat->add(stream_of(comm), to, to, part[step.to[j] + 1],
                                            mine.elements);
        }
    }
}

/* Copies the sum `part` to `to`, unless it is there already. */
static void settle_part(const Comm *comm, float *to, const float *part, Slice mine)
{
    if (part != to) comm->backend->table->copy(stream_of(comm), to, part, bytes_of(mine));
}

/* Sums the contributions of all ranks into this rank's slice. */
static void add_in_order(const Comm *comm, const Range *range, int64_t done)
{
    Slice mine = slice_of(comm, range, done, comm->rank);
    float *part[LEVELS];
    if (mine.elements == 0) return;
    grow(comm, part, mine, 0, comm->size);
    settle_part(comm, mine.at, part[0], mine);
}

/* Adds the contributions of all ranks as the next leaves of the push's tree. Keeps the tree's
 * partial sums in push->partial for the next push. After the last push the complete sum is in
 * push->partial[0] or, unless push->to is PUSH_TO_PARTIAL, in this rank's slice of the arena. */
static void add_to_tree(const Comm *comm, const Range *range, int64_t done, const CommPush *push)
{
    Slice mine = slice_of(comm, range, done, comm->rank);
    float *part[LEVELS];
    int before = tree_partial_count(push->first, push->leaves);
    int after = tree_partial_count(push->first + comm->size, push->leaves);
    if (mine.elements == 0) return;
    for (int k = 0; k < before; ++k) part[k] = push->partial[k] + push->partial_at + done;
    grow(comm, part, mine, push->first, push->leaves);
    bool to_arena = push->to != PUSH_TO_PARTIAL && push_is_last(comm, push);
    for (int k = 0; k < after; ++k)
        settle_part(comm, to_arena ? mine.at : push->partial[k] + push->partial_at + done, part[k],
                    mine);
}

/* ---- operations ---- */

static void begin(const Comm *comm)
{
    const BackendTable *table = comm->backend->table;
    const NcclState *state = comm->impl;
    table->event_record(state->computed, table->stream(comm->backend));
    table->event_wait(state->computed, stream_of(comm));
}

static void end(const Comm *comm)
{
    NcclState *state = comm->impl;
    comm->backend->table->event_record(state->summed, stream_of(comm));
    state->in_flight = true;
}

/* An operation to be queued. */
typedef struct Work {
    Range range;
    /* true: each rank sums its slice over all ranks; false for pushes and all-gathers */
    bool sum;
    /* true: each rank sends its slice to all ranks */
    bool spread;
    /* the push; NULL: the operation is not a push */
    const CommPush *push;
} Work;

/* Queues one piece. If range->slices is true, the piece consists of the slices that begin `done`
 * elements after the beginning of each shard; otherwise it is the complete range. */
static void queue_piece(const Comm *comm, const Work *work, const Range *range, int64_t done)
{
    const NcclState *state = comm->impl;
    bool halves = state->halves && !work->push;
    void (*move)(const Comm *, const Range *, int64_t, Direction) = halves ? halve : exchange;
    if (work->sum || work->push) move(comm, range, done, SCATTER);
    if (work->sum && !halves) add_in_order(comm, range, done);
    if (work->push) add_to_tree(comm, range, done, work->push);
    if (work->spread) move(comm, range, done, GATHER);
}

/* Queues an operation in pieces. All slices of a piece fit into the scratch memory. In an even cut
 * a slice exceeds an even share by at most one cache line. With given bounds a piece is either a
 * slice of every shard or a consecutive range. With halving, except for pushes, the form with fewer
 * pieces is used; otherwise the slices are used. One round of halving may receive a complete range,
 * so a range is at most as large as the scratch memory. */
static void queue(const Comm *comm, const Work *work)
{
    const NcclState *state = comm->impl;
    Range piece = work->range;
    Cut whole = piece.cut;
    int64_t slice = state->slice_elements, room = slice * (comm->size - 1);
    int64_t step = (slice - LINE_FLOATS) * comm->size, all = whole.count;
    if (whole.bounds && step > room) step = room;
    int64_t longest = whole.bounds ? cut_longest(&whole, comm->size) : 0;
    piece.slices = whole.bounds && (!state->halves || work->push ||
                                    (longest + slice - 1) / slice < (all + step - 1) / step);
    if (piece.slices) {
        step = slice;
        all = longest;
    }
    begin(comm);
    for (int64_t done = 0; done < all; done += step) {
        if (!piece.slices) {
            piece.cut.offset = whole.offset + done;
            piece.cut.count = all - done < step ? all - done : step;
        }
        queue_piece(comm, work, &piece, piece.slices ? done : 0);
    }
    end(comm);
}

static void sum_in_any_order(const Comm *comm, int64_t offset, int64_t count)
{
    const NcclComm *nccl_comm = nccl_comm_of(comm);
    float *at = comm->arena + offset;
    cudaStream_t stream = comm->backend->table->stream_handle(nccl_comm->stream);
    begin(comm);
    nccl_settle(nccl_comm,
                nccl.all_reduce(at, at, (size_t)count, ncclFloat, ncclSum, nccl_comm->comm, stream),
                "ncclAllReduce");
    end(comm);
}

static void nccl_sum_begin(Comm *comm, int64_t offset, int64_t count)
{
    Range range = {.base = comm->arena, .cut = {.offset = offset, .count = count}};
    if (nccl_comm_of(comm)->any_order)
        sum_in_any_order(comm, offset, count);
    else
        queue(comm, &(Work){.range = range, .sum = true, .spread = true});
}

static void nccl_reduce_begin(Comm *comm, const Bounds *bounds)
{
    Range range = {.base = comm->arena, .cut = cut_at(bounds)};
    queue(comm, &(Work){.range = range, .sum = true});
}

static void nccl_gather_begin(Comm *comm, const Bounds *bounds, int64_t shift)
{
    Range range = {.base = comm->params + shift, .cut = cut_at(bounds)};
    queue(comm, &(Work){.range = range, .spread = true});
}

static void nccl_push_begin(Comm *comm, const CommPush *push)
{
    Range range = {.base = comm->arena + push->shift, .cut = cut_at(push->bounds)};
    bool spread = push->to == PUSH_TO_ALL && push_is_last(comm, push);
    queue(comm, &(Work){.range = range, .push = push, .spread = spread});
}

static void nccl_wait(Comm *comm)
{
    const BackendTable *table = comm->backend->table;
    NcclState *state = comm->impl;
    if (!state->in_flight) return;
    table->event_wait(state->summed, table->stream(comm->backend));
    state->in_flight = false;
}

/* Makes the compute stream wait for all operations. A send is complete when its peer has the data.
 * Therefore work that is queued on the compute stream after this call may overwrite the leaves or
 * the parameters that this rank has sent, and read the parameters that it has received. */
static bool nccl_collective_wait(Comm *comm, int64_t number)
{
    (void)number;
    nccl_wait(comm);
    return true;
}

const CommTable comm_nccl = {
    .name = "nccl",
    .open = nccl_open,
    .close = nccl_close,
    .sum_begin = nccl_sum_begin,
    .shards = SHARDS_ALWAYS,
    .params_open = comm_params_alloc,
    .reduce_begin = nccl_reduce_begin,
    .gather_begin = nccl_gather_begin,
    .gather_poll = nccl_collective_wait,
    .push_begin = nccl_push_begin,
    .push_poll = nccl_collective_wait,
    .wait = nccl_wait,
};
