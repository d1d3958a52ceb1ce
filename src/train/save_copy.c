/* A checkpoint's copy. At one border each rank copies what it has as it lies in memory; whole
 * tensors come together at later borders, a piece each, and in plain order by a thread.
 *
 *       border      borders         thread        borders        thread
 *       parts  ->   replicas    ->  slices   ->   groups    ->   get
 *       (zero: shards, tp: slices)  in plain order               whole, in plain order
 *
 * What one rank sends another is one range of its copy, and what it receives is, too: the tensors
 * that the other one writes, in their order. */
#include "save_copy.h"

#include <string.h>

/* a rank's messages of a border, as a part of what its gradients' sums move in a step: 3 % of a
 * step are allowed, and ranks wait for each other, too; and the least that is worth one */
static const double BORDER = 0.02;
enum { LEAST_FLOATS = 1024 };

/* What goes to each rank of a group and comes from it, in numbers from the copy's beginning. */
typedef struct Swap {
    const World *world;
    /* owned, [size] */
    int64_t *to, *to_count, *from, *from_count;
    /* of a rank's range in one round */
    int64_t piece;
    int rounds;
} Swap;

struct SaveCopy {
    Tensors list;
    /* whose place in the grid */
    int dp_rank, tp_rank;
    /* owned, [count]: rank that writes a tensor */
    int *owner;
    /* owned, [count]: where this rank's part of a tensor is in the copy; -1: not here */
    int64_t *own;
    /* owned, [count], each [dp]: likewise all replicas', of a tensor that this one puts together;
     * else NULL */
    int64_t **part;
    /* owned, [count][tp]: likewise each slice, in plain order */
    int64_t *slice;
    /* owned, [count]: it lies there in plain order already */
    bool *plain;
    Swap swap[SAVE_COPY_LEVELS];
    int64_t floats;
    /* owned, of so many */
    float *room;
    /* owned: the largest tensor as it is stored, of those put together or brought in plain order */
    float *whole;
};

/* ---- who has what ---- */

/* A tensor that nobody else has a part of, and that is stored in plain order, needs none. */
static size_t scratch_bytes(const Trainer *t)
{
    const Graph *g = t->graph;
    int64_t largest = 0;
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        bool lies = op_stored_plain(g->node[p->node].op, p->slot) && !t->config->grid.zero;
        if (!lies && p->elements > largest) largest = p->elements;
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

/* Of the rank that writes tensor i: its replica, its place in the tensor group. */
static int writer_dp(const SaveCopy *c, int i)
{
    return (c->owner[i] - c->list.tensor[i].rank_first) / tp_of(c);
}

static int writer_tp(const SaveCopy *c, int i)
{
    return (c->owner[i] - c->list.tensor[i].rank_first) % tp_of(c);
}

/* Do the replicas of this place in the tensor group give the tensor to one of them? */
static bool is_copied(const SaveCopy *c, int i)
{
    const Tensors *list = &c->list;
    int first = list->plan->stage * dp_of(c) * tp_of(c);
    if (list->tensor[i].rank_first != first || tensors_zero(list, i)) return false;
    return tensors_sliced(list, i) || writer_tp(c, i) == c->tp_rank;
}

/* What of it replica `r` gives. Where nobody else has any, there is room for its plain order. */
static int64_t part_floats(const SaveCopy *c, int i, int r)
{
    const Tensors *list = &c->list;
    int64_t count = tensors_part(list, i, r);
    int64_t plain = shape_count(list->tensor[i].shape);
    bool whole = !tensors_in_parts(list, i) && !tensors_sliced(list, i);
    return whole && plain > count ? plain : count;
}

/* ---- where it lies ---- */

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

/* Parts that replica `from` gives replica `to`, of which this rank is one, lie at c->floats. */
static int64_t place_parts(SaveCopy *c, int from, int to)
{
    int64_t begin = c->floats;
    for (int i = 0; i < c->list.count; ++i) {
        if (!is_copied(c, i) || writer_dp(c, i) != to) continue;
        if (!tensors_in_parts(&c->list, i) && from != to) continue;
        if (from == c->dp_rank) c->own[i] = c->floats;
        if (c->part[i]) c->part[i][from] = c->floats;
        c->floats += part_floats(c, i, from);
    }
    return c->floats - begin;
}

/* Likewise slices. */
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

static void place(SaveCopy *c, Swap *s, int size, int rank,
                  int64_t (*put)(SaveCopy *c, int from, int to))
{
    for (int r = 0; r < size; ++r) {
        s->to[r] = c->floats;
        s->to_count[r] = put(c, rank, r);
    }
    for (int r = 0; r < size; ++r) {
        s->from[r] = c->floats;
        s->from_count[r] = r == rank ? 0 : put(c, r, rank);
    }
}

static void copy_init(SaveCopy *c, const Trainer *t, const Plan *plan, int dp_rank, int tp_rank)
{
    size_t dp = (size_t)t->shape.dp, tp = (size_t)t->shape.tp;
    *c = (SaveCopy){.dp_rank = dp_rank, .tp_rank = tp_rank};
    tensors_init(&c->list, t, plan, false);
    size_t count = (size_t)c->list.count + 1;
    c->owner = mem_new(count * sizeof *c->owner);
    c->own = mem_new(count * sizeof *c->own);
    c->plain = mem_new(count * sizeof *c->plain);
    c->part = mem_new(count * sizeof *c->part);
    c->slice = mem_new(count * tp * sizeof *c->slice);
    for (size_t i = 0; i < count * tp; ++i) c->slice[i] = -1;
    CheckpointIo io = {.count = c->list.count, .tensor = c->list.tensor};
    checkpoint_owners(&io, (int)(dp * tp) * t->shape.pp, c->owner);
    for (int i = 0; i < c->list.count; ++i) {
        bool joins = is_copied(c, i) && tensors_in_parts(&c->list, i) && writer_dp(c, i) == dp_rank;
        c->own[i] = -1;
        if (joins) c->part[i] = mem_new(dp * sizeof *c->part[i]);
    }
    swap_init(&c->swap[0], (int)dp);
    swap_init(&c->swap[1], (int)tp);
    place(c, &c->swap[0], (int)dp, dp_rank, place_parts);
    place(c, &c->swap[1], (int)tp, tp_rank, place_slices);
}

static void copy_fini(SaveCopy *c)
{
    for (int level = 0; level < SAVE_COPY_LEVELS; ++level) swap_fini(&c->swap[level]);
    for (int i = 0; i < c->list.count; ++i) mem_free(&c->part[i]);
    mem_free(&c->slice);
    mem_free(&c->part);
    mem_free(&c->own);
    mem_free(&c->plain);
    mem_free(&c->owner);
    tensors_fini(&c->list);
}

/* What the ranks of column q of the tensor groups have of tensor i: floats[replica][column]. */
static void count_column(const SaveCopy *c, int i, int q, int64_t *floats)
{
    const Tensors *list = &c->list;
    int dp = dp_of(c), tp = tp_of(c), writer = writer_dp(c, i);
    if (!tensors_in_parts(list, i)) floats[writer * tp + q] += part_floats(c, i, writer);
    for (int r = 0; r < dp && tensors_in_parts(list, i); ++r) {
        int64_t count = tensors_part(list, i, r);
        floats[r * tp + q] += count;
        if (r != writer) floats[writer * tp + q] += count;
    }
    if (!tensors_sliced(list, i)) return;
    int64_t slice = param_slice_count(list->trainer->graph, tensors_param(list, i), q);
    floats[writer * tp + q] += slice;
    if (q != writer_tp(c, i)) floats[writer * tp + writer_tp(c, i)] += slice;
}

/* As copy_init places it, of all ranks of a stage at once: there may be thousands. */
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
        if (c.list.tensor[i].rank_first != first || tensors_zero(&c.list, i)) continue;
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

/* The same pieces on both sides, and as many rounds on all ranks: by the whole model's size. */
static void plan_rounds(const SaveCopy *c, Swap *s, const World *world)
{
    const Trainer *t = c->list.trainer;
    int64_t own = graph_param_count(graph_whole(t->graph)) / (t->shape.pp * t->shape.tp);
    int64_t most = 0;
    s->world = world;
    s->piece = (int64_t)(2 * BORDER * (double)own) / (world->size > 1 ? world->size - 1 : 1);
    if (s->piece < LEAST_FLOATS) s->piece = LEAST_FLOATS;
    for (int r = 0; r < world->size; ++r) {
        if (r == world->rank) continue;
        if (s->to_count[r] > most) most = s->to_count[r];
        if (s->from_count[r] > most) most = s->from_count[r];
    }
    s->rounds = -world_least(t->world, -(int)((most + s->piece - 1) / s->piece));
}

static WorldPart part_of_round(const SaveCopy *c, int64_t at, int64_t count, int64_t done,
                               int64_t piece)
{
    int64_t left = count > done ? count - done : 0;
    return (WorldPart){c->room + at + done,
                       (size_t)(left < piece ? left : piece) * sizeof *c->room};
}

void save_copy_collect(SaveCopy *c, int level, int round)
{
    const Swap *s = &c->swap[level];
    int size = s->world->size;
    WorldPart *to = mem_new((size_t)size * sizeof *to), *from = mem_new((size_t)size * sizeof *to);
    int64_t done = round * s->piece;
    for (int r = 0; r < size; ++r) {
        if (r == s->world->rank) continue;
        to[r] = part_of_round(c, s->to[r], s->to_count[r], done, s->piece);
        from[r] = part_of_round(c, s->from[r], s->from_count[r], done, s->piece);
    }
    world_swap(s->world, to, from);
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
    size_t bytes = (size_t)c->floats * sizeof *c->room;
    c->room = mem_pages_new(bytes + 1);
    memset(c->room, 0, bytes);
    c->whole = mem_pages_new(scratch_bytes(t) + 1);
    memset(c->whole, 0, scratch_bytes(t));
    return c;
}

void save_copy_free(SaveCopy **copy)
{
    SaveCopy *c = *copy;
    if (!c) return;
    mem_pages_free(c->whole, scratch_bytes(c->list.trainer) + 1);
    mem_pages_free(c->room, (size_t)c->floats * sizeof *c->room + 1);
    copy_fini(c);
    mem_free(copy);
}

size_t save_copy_held(const SaveCopy *c)
{
    return (size_t)c->floats * sizeof *c->room + scratch_bytes(c->list.trainer);
}

/* ---- copying ---- */

float *save_copy_place(const SaveCopy *c, int param, int slot)
{
    for (int i = 0; i < c->list.count; ++i) {
        if (c->list.slot[i] != slot || !is_copied(c, i)) continue;
        if (tensors_param(&c->list, i) != param) continue;
        return c->own[i] < 0 ? NULL : c->room + c->own[i];
    }
    return NULL;
}

static void copy_range(const void *args, float *const range[FLAT_RANGES], int64_t n)
{
    (void)args;
    memcpy(range[1], range[0], (size_t)n * sizeof(float));
}

void save_copy_take(SaveCopy *c)
{
    const Trainer *t = c->list.trainer;
    const BackendTable *table = t->backend->table;
    for (int i = 0; i < c->list.count; ++i) {
        int64_t at = c->own[i];
        if (at < 0) continue;
        int64_t count = tensors_part(&c->list, i, c->dp_rank);
        if (count == 0) continue;
        float *from = tensors_memory(&c->list, i);
        if (table->host_memory)
            backend_cpu.flat->each(NULL, copy_range, NULL,
                                   (float *[FLAT_RANGES]){from, c->room + at}, count);
        else
            table->copy(table->stream(t->backend), c->room + at, from,
                        (size_t)count * sizeof *from);
    }
    if (!table->host_memory) table->sync(table->stream(t->backend));
}

void save_copy_begin(SaveCopy *c)
{
    memset(c->plain, 0, (size_t)c->list.count * sizeof *c->plain);
}

/* ---- in plain order: a thread's work ---- */

static void unpack(const SaveCopy *c, int i, const float *stored, float *plain)
{
    const Graph *g = c->list.trainer->graph;
    const Param *p = &g->param[tensors_param(&c->list, i)];
    op_unpack(g->node[p->node].op, p->slot, stored, plain);
}

/* The parts of all replicas, one behind the other. */
static const float *join_parts(const SaveCopy *c, int i)
{
    const int64_t *at = c->part[i];
    float *to = c->whole;
    if (!tensors_in_parts(&c->list, i)) return c->room + c->own[i];
    for (int r = 0; r < dp_of(c); ++r) {
        int64_t count = tensors_part(&c->list, i, r);
        memcpy(to, c->room + at[r], (size_t)count * sizeof *to);
        to += count;
    }
    return c->whole;
}

void save_copy_unpack(SaveCopy *c)
{
    int threads = threads_use(1);
    for (int i = 0; i < c->list.count; ++i) {
        int64_t at = c->slice[(int64_t)i * tp_of(c) + c->tp_rank];
        if (at >= 0) unpack(c, i, join_parts(c, i), c->room + at);
    }
    threads_use(threads);
}

static void join_slices(const SaveCopy *c, int i, float *plain)
{
    const Graph *g = c->list.trainer->graph;
    const int64_t *at = c->slice + (int64_t)i * tp_of(c);
    int param = tensors_param(&c->list, i);
    for (int r = 0; r < tp_of(c); ++r) param_slice_put(g, param, r, c->room + at[r], plain);
}

/* A tensor that is this rank's alone becomes plain where it lies. */
static const float *plain_in_place(SaveCopy *c, int i)
{
    const Graph *g = c->list.trainer->graph;
    const Param *p = &g->param[tensors_param(&c->list, i)];
    float *at = c->room + c->own[i];
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
    int threads = threads_use(1);
    if (tensors_zero(&c->list, i))
        memset(plain, 0, (size_t)shape_count(c->list.tensor[i].shape) * sizeof *plain);
    else if (tensors_sliced(&c->list, i))
        join_slices(c, i, plain);
    else if (tensors_in_parts(&c->list, i))
        unpack(c, i, join_parts(c, i), plain);
    else
        at = plain_in_place(c, i);
    threads_use(threads);
    return at;
}

CheckpointIo save_copy_io(SaveCopy *c)
{
    return (CheckpointIo){
        .count = c->list.count, .tensor = c->list.tensor, .user = c, .get = copy_get};
}
