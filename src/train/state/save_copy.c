/* Makes the copy from which a checkpoint is written:
 *
 *     1. After one step each rank copies its tensors, or its shards (grid.zero) and slices
 *        (tensor parallelism) of them, in their stored form.
 *     2. Rounds of level 0, one after each later step: replicas send a piece of their shards to the
 *        replica that writes the tensor.
 *     3. With tensor parallelism, a background thread converts the slices to plain order.
 *     4. Rounds of level 1: the ranks of a tensor-parallel group send a piece of their slices to
 *        the rank that writes the tensor.
 *     5. The thread that writes the file gets whole tensors in plain order (copy_get).
 *
 * The data that a rank sends to another rank is one range of the sender's copy: the parts of all
 * tensors that the receiver writes, in order. The data that a rank receives from another rank is
 * one range of the receiver's copy. */
#include "save_copy.h"

#include <string.h>

/* A rank's messages of a round, as a fraction of its messages of gradient sums in a step. Together
 * with the time in which ranks wait for each other, a round makes a step at most 3 % longer. */
static const double ROUND_SHARE = 0.02;
/* smallest piece, in floats */
enum { PIECE_FLOATS_MIN = 1024 };

/* Ranges of the copy that this rank sends to each rank of a group, and receives from it. */
typedef struct Swap {
    /* the replicas (level 0) or the tensor-parallel group (level 1); borrowed */
    const World *world;
    /* for each rank, offset in floats of the range that this rank sends to it; [size]; owned */
    int64_t *to;
    /* for each rank, floats of the range that this rank sends to it; [size]; owned */
    int64_t *to_count;
    /* for each rank, offset in floats of the range that it sends to this rank; [size]; owned */
    int64_t *from;
    /* for each rank, floats of the range that it sends to this rank; [size]; owned */
    int64_t *from_count;
    /* number of floats of a range that are sent in one round */
    int64_t piece;
    /* number of rounds, the same on all ranks */
    int rounds;
} Swap;

struct SaveCopy {
    /* tensors of a checkpoint; owned */
    Tensors list;
    /* replica for which the copy is planned */
    int dp_rank;
    /* rank of the tensor-parallel group for which the copy is planned */
    int tp_rank;
    /* rank that writes each tensor, [count]; owned */
    int *owner;
    /* offset in the copy of each tensor, or of this rank's shard or slice of it; -1: this rank does
     * not copy it; [count]; owned */
    int64_t *offset;
    /* for each tensor that this rank assembles from shards, the offset of each replica's shard;
     * NULL for other tensors; [count][dp]; owned */
    int64_t **shard;
    /* for each tensor that this rank assembles from slices, or whose slice it sends, the offset of
     * each slice in plain order; -1: this rank does not have that slice; [count][tp]; owned */
    int64_t *slice;
    /* true for tensors that have been converted to plain order in the copy; [count]; owned */
    bool *plain;
    /* ranges that the ranks exchange in the rounds of each level */
    Swap swap[SAVE_COPY_LEVELS];
    /* number of floats of the copy */
    int64_t floats;
    /* the copy, float[floats]; owned */
    float *copy;
    /* buffer for the largest stored tensor that is assembled or converted to plain order; owned */
    float *whole;
};

/* ---- the rank that copies a tensor and the rank that writes it ---- */

/* Returns the bytes of the buffer `whole`, which tensors need that are sharded, or not stored in
 * plain order. */
static size_t scratch_bytes(const Trainer *t)
{
    const Graph *g = t->graph;
    int64_t largest = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        bool needed = !op_stored_plain(g->node[p->node].op, p->slot) || t->config->grid.zero;
        if (needed && p->elements > largest) largest = p->elements;
    }
    return (size_t)largest * sizeof(float);
}

static int dp_of(const SaveCopy *c)
{
    return c->list.trainer->shape.dp;
}

static int tp_of(const SaveCopy *c)
{
    return c->list.trainer->shape.tp;
}

/* Returns the replica of the rank that writes tensor i; writer_tp returns this rank's number in its
 * tensor-parallel group. */
static int writer_dp(const SaveCopy *c, int i)
{
    return (c->owner[i] - c->list.tensor[i].rank_first) / tp_of(c);
}

static int writer_tp(const SaveCopy *c, int i)
{
    return (c->owner[i] - c->list.tensor[i].rank_first) % tp_of(c);
}

/* Returns true if a rank of this rank's column of replicas (the same rank of each tensor-parallel
 * group) copies the tensor or a part of it. */
static bool is_copied(const SaveCopy *c, int i)
{
    const Tensors *list = &c->list;
    int first = list->plan->stage * dp_of(c) * tp_of(c);
    if (list->tensor[i].rank_first != first || tensors_unused(list, i)) return false;
    return tensors_sliced(list, i) || writer_tp(c, i) == c->tp_rank;
}

/* Returns the floats of the copy for replica r's part of tensor i. A tensor that is neither sharded
 * nor sliced gets enough floats for its plain order as well. */
static int64_t part_floats(const SaveCopy *c, int i, int r)
{
    const Tensors *list = &c->list;
    int64_t count = tensors_replica_floats(list, i, r);
    int64_t plain = shape_count(list->tensor[i].shape);
    bool whole = !tensors_sharded(list, i) && !tensors_sliced(list, i);
    return whole && plain > count ? plain : count;
}

/* ---- offsets ---- */

static void swap_init(Swap *s, int size)
{
    size_t bytes = (size_t)size * sizeof *s->to;
    *s = (Swap){.to = mem_new(bytes),
                .to_count = mem_new(bytes),
                .from = mem_new(bytes),
                .from_count = mem_new(bytes)};
}

static void swap_fini(Swap *s)
{
    mem_free(&s->to);
    mem_free(&s->to_count);
    mem_free(&s->from);
    mem_free(&s->from_count);
}

/* Assigns offsets, from c->floats on, to the shards that replica `from` sends to replica `to`, and
 * to the tensors that `to` keeps for itself; this rank is `from` or `to`. Returns the number of
 * floats. */
static int64_t place_shards(SaveCopy *c, int from, int to)
{
    int64_t begin = c->floats;
    for (int i = 0; i < c->list.count; ++i) {
        if (!is_copied(c, i) || writer_dp(c, i) != to) continue;
        if (!tensors_sharded(&c->list, i) && from != to) continue;
        if (from == c->dp_rank) c->offset[i] = c->floats;
        if (c->shard[i]) c->shard[i][from] = c->floats;
        c->floats += part_floats(c, i, from);
    }
    return c->floats - begin;
}

/* Does for slices what place_shards does for shards: assigns offsets to the slices that rank `from`
 * of the tensor-parallel group sends to rank `to`. Returns the number of floats. */
static int64_t place_slices(SaveCopy *c, int from, int to)
{
    int64_t begin = c->floats;
    for (int i = 0; i < c->list.count; ++i) {
        if (!is_copied(c, i) || !tensors_sliced(&c->list, i)) continue;
        if (writer_dp(c, i) != c->dp_rank || writer_tp(c, i) != to) continue;
        c->slice[(int64_t)i * tp_of(c) + from] = c->floats;
        c->floats += param_slice_count(c->list.trainer->graph, tensors_param(&c->list, i), from);
    }
    return c->floats - begin;
}

/* Assigns offsets to all ranges of a swap. place_range: place_shards or place_slices. */
static void place_all(SaveCopy *c, Swap *s, int size, int rank,
                      int64_t (*place_range)(SaveCopy *c, int from, int to))
{
    for (int r = 0; r < size; ++r) {
        s->to[r] = c->floats;
        s->to_count[r] = place_range(c, rank, r);
    }
    for (int r = 0; r < size; ++r) {
        s->from[r] = c->floats;
        s->from_count[r] = r == rank ? 0 : place_range(c, r, rank);
    }
}

static void copy_init(SaveCopy *c, const Trainer *t, const Plan *plan, int dp_rank, int tp_rank)
{
    size_t dp = (size_t)t->shape.dp, tp = (size_t)t->shape.tp;
    *c = (SaveCopy){.dp_rank = dp_rank, .tp_rank = tp_rank};
    tensors_init(&c->list, t, plan, false);
    size_t count = (size_t)c->list.count + 1;
    c->owner = mem_new(count * sizeof *c->owner);
    c->offset = mem_new(count * sizeof *c->offset);
    c->plain = mem_new(count * sizeof *c->plain);
    c->shard = mem_new(count * sizeof *c->shard);
    c->slice = mem_new(count * tp * sizeof *c->slice);
    for (size_t i = 0; i < count * tp; ++i) c->slice[i] = -1;
    CheckpointIo io = {.count = c->list.count, .tensor = c->list.tensor};
    checkpoint_owners(&io, (int)(dp * tp) * t->shape.pp, c->owner);
    for (int i = 0; i < c->list.count; ++i) {
        bool assembles =
            is_copied(c, i) && tensors_sharded(&c->list, i) && writer_dp(c, i) == dp_rank;
        c->offset[i] = -1;
        if (assembles) c->shard[i] = mem_new(dp * sizeof *c->shard[i]);
    }
    swap_init(&c->swap[0], (int)dp);
    swap_init(&c->swap[1], (int)tp);
    place_all(c, &c->swap[0], (int)dp, dp_rank, place_shards);
    place_all(c, &c->swap[1], (int)tp, tp_rank, place_slices);
}

static void copy_fini(SaveCopy *c)
{
    for (int level = 0; level < SAVE_COPY_LEVELS; ++level) swap_fini(&c->swap[level]);
    for (int i = 0; i < c->list.count; ++i) mem_free(&c->shard[i]);
    mem_free(&c->slice);
    mem_free(&c->shard);
    mem_free(&c->offset);
    mem_free(&c->plain);
    mem_free(&c->owner);
    tensors_fini(&c->list);
}

/* Adds to floats[dp][tp], which has a number for each rank of the stage, the floats that the ranks
 * need for slice q of tensor i. */
static void count_column(const SaveCopy *c, int i, int q, int64_t *floats)
{
    const Tensors *list = &c->list;
    int dp = dp_of(c), tp = tp_of(c), writer = writer_dp(c, i);
    if (!tensors_sharded(list, i)) floats[writer * tp + q] += part_floats(c, i, writer);
    for (int r = 0; r < dp && tensors_sharded(list, i); ++r) {
        int64_t count = tensors_replica_floats(list, i, r);
        floats[r * tp + q] += count;
        if (r != writer) floats[writer * tp + q] += count;
    }
    if (!tensors_sliced(list, i)) return;
    int64_t slice = param_slice_count(list->trainer->graph, tensors_param(list, i), q);
    floats[writer * tp + q] += slice;
    if (q != writer_tp(c, i)) floats[writer * tp + writer_tp(c, i)] += slice;
}

/* Computes the same numbers of floats as copy_init, but for all ranks of a stage in one pass,
 * because there may be thousands of ranks. */
size_t save_copy_bytes(const Trainer *t, const Plan *plan)
{
    SaveCopy c = {0};
    int ranks = t->shape.dp * t->shape.tp, first = plan->stage * ranks;
    int64_t most = 0, *floats = mem_new((size_t)ranks * sizeof *floats);
    tensors_init(&c.list, t, plan, false);
    c.owner = mem_new(((size_t)c.list.count + 1) * sizeof *c.owner);
    CheckpointIo io = {.count = c.list.count, .tensor = c.list.tensor};
    checkpoint_owners(&io, ranks * t->shape.pp, c.owner);
    for (int i = 0; i < c.list.count; ++i) {
        if (c.list.tensor[i].rank_first != first || tensors_unused(&c.list, i)) continue;
        bool sliced = tensors_sliced(&c.list, i);
        for (int q = 0; q < t->shape.tp; ++q)
            if (sliced || q == writer_tp(&c, i)) count_column(&c, i, q, floats);
    }
    for (int r = 0; r < ranks; ++r) most = floats[r] > most ? floats[r] : most;
    mem_free(&floats);
    mem_free(&c.owner);
    tensors_fini(&c.list);
    return (size_t)most * sizeof(float) + scratch_bytes(t);
}

/* ---- rounds ---- */

/* Chooses the size of pieces and the number of rounds. The size depends only on the whole model and
 * the grid, so sender and receiver choose the same; the number of rounds is the maximum over all
 * ranks. Collective. */
static void plan_rounds(const SaveCopy *c, Swap *s, const World *world)
{
    const Trainer *t = c->list.trainer;
    int64_t rank_params =
        graph_param_elements(graph_undivided(t->graph)) / (t->shape.pp * t->shape.tp);
    int64_t most = 0;
    s->world = world;
    s->piece =
        (int64_t)(2 * ROUND_SHARE * (double)rank_params) / (world->size > 1 ? world->size - 1 : 1);
    if (s->piece < PIECE_FLOATS_MIN) s->piece = PIECE_FLOATS_MIN;
    for (int r = 0; r < world->size; ++r) {
        if (r == world->rank) continue;
        if (s->to_count[r] > most) most = s->to_count[r];
        if (s->from_count[r] > most) most = s->from_count[r];
    }
    s->rounds = -world_min(t->world, -(int)((most + s->piece - 1) / s->piece));
}

/* Returns the next piece of the range that has `count` floats and begins at offset `at`. `done`:
 * the floats of the range that have been sent. After the end of the range the piece is empty. */
static MemoryRange part_of_round(const SaveCopy *c, int64_t at, int64_t count, int64_t done,
                                 int64_t piece)
{
    int64_t left = count > done ? count - done : 0;
    return (MemoryRange){c->copy + at + done,
                         (size_t)(left < piece ? left : piece) * sizeof *c->copy};
}

void save_copy_collect(SaveCopy *c, int level, int round)
{
    const Swap *s = &c->swap[level];
    int size = s->world->size;
    MemoryRange *to = mem_new((size_t)size * sizeof *to),
                *from = mem_new((size_t)size * sizeof *to);
    int64_t done = round * s->piece;
    for (int r = 0; r < size; ++r) {
        if (r == s->world->rank) continue;
        to[r] = part_of_round(c, s->to[r], s->to_count[r], done, s->piece);
        from[r] = part_of_round(c, s->from[r], s->from_count[r], done, s->piece);
    }
    world_alltoall(s->world, to, from);
    mem_free(&to);
    mem_free(&from);
}

int save_copy_rounds(const SaveCopy *c, int level)
{
    return c->swap[level].rounds;
}

SaveCopy *save_copy_new(Trainer *t)
{
    SaveCopy *c = mem_new(sizeof *c);
    copy_init(c, t, t->plan, t->grid.dp_rank, t->grid.tp_rank);
    plan_rounds(c, &c->swap[0], &t->grid.dp_world);
    plan_rounds(c, &c->swap[1], &t->grid.tp_world);
    size_t bytes = (size_t)c->floats * sizeof *c->copy;
    c->copy = mem_pages_new(bytes + 1);
    memset(c->copy, 0, bytes);
    c->whole = mem_pages_new(scratch_bytes(t) + 1);
    memset(c->whole, 0, scratch_bytes(t));
    return c;
}

void save_copy_free(SaveCopy **copy)
{
    SaveCopy *c = *copy;
    if (!c) return;
    mem_pages_free(c->whole, scratch_bytes(c->list.trainer) + 1);
    mem_pages_free(c->copy, (size_t)c->floats * sizeof *c->copy + 1);
    copy_fini(c);
    mem_free(copy);
}

size_t save_copy_local_bytes(const SaveCopy *c)
{
    return (size_t)c->floats * sizeof *c->copy + scratch_bytes(c->list.trainer);
}

/* ---- copying ---- */

float *save_copy_place(const SaveCopy *c, int param, int slot)
{
    for (int i = 0; i < c->list.count; ++i) {
        if (c->list.slot[i] != slot || !is_copied(c, i)) continue;
        if (tensors_param(&c->list, i) != param) continue;
        return c->offset[i] < 0 ? NULL : c->copy + c->offset[i];
    }
    return NULL;
}

static void copy_range(const void *args, float *const array[FLAT_ARRAYS], int64_t n)
{
    (void)args;
    memcpy(array[1], array[0], (size_t)n * sizeof(float));
}

void save_copy_take(SaveCopy *c)
{
    const Trainer *t = c->list.trainer;
    const BackendTable *table = t->backend->table;
    for (int i = 0; i < c->list.count; ++i) {
        int64_t at = c->offset[i];
        if (at < 0) continue;
        int64_t count = tensors_replica_floats(&c->list, i, c->dp_rank);
        if (count == 0) continue;
        float *from = tensors_memory(&c->list, i);
        if (table->host_memory)
            backend_cpu.flat->run_elements(NULL, copy_range, NULL,
                                           (float *[FLAT_ARRAYS]){from, c->copy + at}, count);
        else
            table->copy(table->stream(t->backend), c->copy + at, from,
                        (size_t)count * sizeof *from);
    }
    if (!table->host_memory) table->sync(table->stream(t->backend));
}

void save_copy_begin(SaveCopy *c)
{
    memset(c->plain, 0, (size_t)c->list.count * sizeof *c->plain);
}

/* ---- conversion to plain order, in a background thread ---- */

static void unpack(const SaveCopy *c, int i, const float *stored, float *plain)
{
    const Graph *g = c->list.trainer->graph;
    const Param *p = &g->param[tensors_param(&c->list, i)];
    op_unpack(g->node[p->node].op, p->slot, stored, plain);
}

/* Returns tensor i, or this rank's slice of it, in stored form. If the tensor is sharded, first
 * copies its shards to c->whole, one after another. */
static const float *join_shards(const SaveCopy *c, int i)
{
    const int64_t *at = c->shard[i];
    float *to = c->whole;
    if (!tensors_sharded(&c->list, i)) return c->copy + c->offset[i];
    for (int r = 0; r < dp_of(c); ++r) {
        int64_t count = tensors_replica_floats(&c->list, i, r);
        memcpy(to, c->copy + at[r], (size_t)count * sizeof *to);
        to += count;
    }
    return c->whole;
}

void save_copy_unpack(SaveCopy *c)
{
    int threads = threads_set(1);
    for (int i = 0; i < c->list.count; ++i) {
        int64_t at = c->slice[(int64_t)i * tp_of(c) + c->tp_rank];
        if (at >= 0) unpack(c, i, join_shards(c, i), c->copy + at);
    }
    threads_set(threads);
}

static void join_slices(const SaveCopy *c, int i, float *plain)
{
    const Graph *g = c->list.trainer->graph;
    const int64_t *at = c->slice + (int64_t)i * tp_of(c);
    int param = tensors_param(&c->list, i);
    for (int r = 0; r < tp_of(c); ++r) param_slice_put(g, param, r, c->copy + at[r], plain);
}

/* Converts a tensor that is neither sharded nor sliced to plain order, in place. */
static const float *plain_in_place(SaveCopy *c, int i)
{
    const Graph *g = c->list.trainer->graph;
    const Param *p = &g->param[tensors_param(&c->list, i)];
    float *at = c->copy + c->offset[i];
    if (!c->plain[i] && !op_stored_plain(g->node[p->node].op, p->slot)) {
        memcpy(c->whole, at, (size_t)p->elements * sizeof *at);
        unpack(c, i, c->whole, at);
    }
    c->plain[i] = true;
    return at;
}

static const float *copy_get(void *user, int i, float *plain)
{
    SaveCopy *c = user;
    const float *at = plain;
    int threads = threads_set(1);
    if (tensors_unused(&c->list, i))
        memset(plain, 0, (size_t)shape_count(c->list.tensor[i].shape) * sizeof *plain);
    else if (tensors_sliced(&c->list, i))
        join_slices(c, i, plain);
    else if (tensors_sharded(&c->list, i))
        unpack(c, i, join_shards(c, i), plain);
    else
        at = plain_in_place(c, i);
    threads_set(threads);
    return at;
}

CheckpointIo save_copy_io(SaveCopy *c)
{
    return (CheckpointIo){
        .count = c->list.count, .tensor = c->list.tensor, .user = c, .get = copy_get};
}
