/* Implements OptimShard and OptimMerge: the elements of each range that this rank updates, and the
 * exchange of sums of squares, from which norms are computed. With ZeRO exactly one replica
 * computes the sum of each chunk of FLAT_CHUNK elements. All other replicas set their entry of this
 * sum to zero, so world_allreduce_disjoint gives all replicas the complete array. */
#include "shards.h"

#include <string.h>

struct Shards {
    /* borrowed */
    const Trainer *trainer;
    /* number of ranges that are trained; ranges of running statistics follow them and have no
     * norms */
    int count;
    /* for each range, this rank's first element of the range; owned */
    int64_t *first;
    /* for each range, number of elements of this rank; owned */
    int64_t *elements;
    /* for each range, offset of its first element's value in the arena of parameters; owned */
    int64_t *value;
    /* for each range, offset of its first element's gradient in the arena of gradients; owned */
    int64_t *gradient;
    /* for each range, number of its first element's chunk, counted over all trained ranges;
     * owned */
    int64_t *chunk;
    /* number of chunks of all trained ranges */
    int64_t chunks;
};

static int64_t chunks_of(int64_t elements)
{
    return (elements + FLAT_CHUNK - 1) / FLAT_CHUNK;
}

Shards *shards_new(const Trainer *t, const OptimRange *range, int count)
{
    Shards *s = mem_new(sizeof *s);
    const Plan *plan = t->plan;
    size_t entries = (size_t)count + 1;
    int rank = t->grid.dp_world.rank;
    *s = (Shards){.trainer = t};
    s->first = mem_new(entries * sizeof *s->first);
    s->elements = mem_new(entries * sizeof *s->elements);
    s->value = mem_new(entries * sizeof *s->value);
    s->gradient = mem_new(entries * sizeof *s->gradient);
    s->chunk = mem_new(entries * sizeof *s->chunk);
    for (int i = 0; i < count; ++i) {
        int param = t->range_param[i];
        plan_shard(plan, param, rank, &s->first[i], &s->elements[i]);
        s->value[i] = plan_local_offset(plan, plan->param_offset[param] + s->first[i], rank);
        s->gradient[i] = plan_sum_offset(plan, plan->gradient_offset[param] + s->first[i], rank);
        if (range[i].statistic) continue;
        s->count = i + 1;
        s->chunk[i] = s->chunks + s->first[i] / FLAT_CHUNK;
        s->chunks += chunks_of(range[i].elements);
    }
    return s;
}

void shards_free(Shards **shards)
{
    Shards *s = *shards;
    if (!s) return;
    mem_free(&s->first);
    mem_free(&s->elements);
    mem_free(&s->value);
    mem_free(&s->gradient);
    mem_free(&s->chunk);
    mem_free(shards);
}

/* Sets the sums of squares to zero that other replicas compute. chunk: the sums of all chunks. */
static void clear_others(const Shards *s, double *chunk)
{
    int64_t end = 0;
    for (int i = 0; i < s->count; ++i) {
        memset(chunk + end, 0, (size_t)(s->chunk[i] - end) * sizeof *chunk);
        end = s->chunk[i] + chunks_of(s->elements[i]);
    }
    memset(chunk + end, 0, (size_t)(s->chunks - end) * sizeof *chunk);
}

/* Completes the sums of squares of all chunks over the replicas (OptimShard.gather). chunk: `sets`
 * arrays of s->chunks sums. Without ZeRO every replica already has all sums. */
static void gather(void *user, double *chunk, int sets)
{
    const Shards *s = user;
    if (!s->trainer->plan->zero) return;
    for (int set = 0; set < sets; ++set) clear_others(s, chunk + set * s->chunks);
    world_allreduce_disjoint(&s->trainer->grid.dp_world, chunk, sets * s->chunks);
}

/* Adds the sums of squares of each sliced parameter over the tensor-parallel group, in the order of
 * ranks (OptimShard.join). For other parameters every rank already has the sum. squares: `sets`
 * arrays of s->count sums. */
static void join(void *user, double *squares, int sets)
{
    const Shards *s = user;
    const Trainer *t = s->trainer;
    const World *world = &t->grid.tp_world;
    int count = s->count * sets;
    double *all = mem_new((size_t)(count * world->size + 1) * sizeof *all);
    world_allgather(world, squares, (size_t)count * sizeof *squares, all);
    for (int i = 0; i < count; ++i) {
        if (t->graph->param[t->range_param[i % s->count]].split.parts == 0) continue;
        squares[i] = 0;
        for (int r = 0; r < world->size; ++r) squares[i] += all[r * count + i];
    }
    mem_free(&all);
}

OptimShard shards_mine(Shards *s)
{
    return (OptimShard){.first = s->first,
                        .count = s->elements,
                        .value_offset = s->value,
                        .grad_arena_offset = s->gradient,
                        .gather = gather,
                        .join = s->trainer->shape.tp > 1 ? join : NULL,
                        .user = s};
}

/* Replaces sum[0] to sum[count - 1], the sums of the ranges from number `first` on, by their sums
 * over the ranks of `world`. sliced = true: does so only for parameters that are sliced over the
 * tensor-parallel group. */
static void add_exact(const Trainer *t, const World *world, SquareSum *sum, int first, int count,
                      bool sliced)
{
    SquareSum *all = mem_new((size_t)count * (size_t)world->size * sizeof *all + 1);
    world_allgather(world, sum, (size_t)count * sizeof *sum, all);
    for (int i = 0; i < count; ++i) {
        if (sliced && t->graph->param[t->range_param[first + i]].split.parts == 0) continue;
        sum[i] = (SquareSum){0};
        for (int r = 0; r < world->size; ++r) square_sum_add(&sum[i], &all[r * count + i]);
    }
    mem_free(&all);
}

static void merge(void *user, SquareSum *sum, int first, int count)
{
    const Trainer *t = user;
    if (t->plan->zero) add_exact(t, &t->grid.dp_world, sum, first, count, /* sliced */ false);
    if (t->shape.tp > 1) add_exact(t, &t->grid.tp_world, sum, first, count, /* sliced */ true);
}

OptimMerge shards_merge(Trainer *t)
{
    if (!t->plan->zero && t->shape.tp == 1) return (OptimMerge){0};
    return (OptimMerge){.merge = merge, .user = t};
}
