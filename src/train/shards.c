/* Partial norms travel packed: a rank sends the sums of its own chunks, range by range, and knows
 * from the plan where those of the others belong. */
#include "shards.h"

#include <string.h>

/* What one rank has of one range. */
typedef struct Part {
    /* elements */
    int64_t first, count;
    /* among all ranges' chunks */
    int64_t chunk, chunks;
} Part;

struct Shards {
    /* borrowed */
    const Trainer *trainer;
    /* borrowed: the replicas */
    const World *world;
    /* ranges */
    int count;
    /* owned: this rank's of each range, */
    int64_t *first, *elements;
    /* and where its value and its gradient lie */
    int64_t *value, *gradient;
    /* owned; [rank][range] */
    Part *part;
    /* of all ranges; of the rank that has most */
    int64_t chunks, most;
    /* owned: packed */
    double *mine, *all;
};

static int64_t chunks_of(int64_t elements)
{
    return (elements + FLAT_CHUNK - 1) / FLAT_CHUNK;
}

static Part *parts_of(const Shards *s, int rank)
{
    return s->part + (size_t)rank * (size_t)s->count;
}

/* Fills the parts of one rank; returns its chunks. */
static int64_t fill_parts(Shards *s, const Trainer *t, const OptimRange *range, int rank)
{
    int64_t chunk = 0, own = 0;
    Part *part = parts_of(s, rank);
    for (int i = 0; i < s->count; ++i) {
        plan_shard(t->plan, t->range_param[i], rank, &part[i].first, &part[i].count);
        part[i].chunk = chunk + part[i].first / FLAT_CHUNK;
        part[i].chunks = chunks_of(part[i].count);
        own += part[i].chunks;
        chunk += chunks_of(range[i].elements);
    }
    s->chunks = chunk;
    return own;
}

Shards *shards_new(const Trainer *t, const OptimRange *range, int count)
{
    Shards *s = mem_new(sizeof *s);
    const World *world = &t->grid.dp_world;
    size_t ranks = (size_t)world->size, room = (size_t)count + 1;
    *s = (Shards){.trainer = t, .world = world, .count = count, .most = 1};
    s->part = mem_new(ranks * room * sizeof *s->part);
    s->first = mem_new(room * sizeof *s->first);
    s->elements = mem_new(room * sizeof *s->elements);
    s->value = mem_new(room * sizeof *s->value);
    s->gradient = mem_new(room * sizeof *s->gradient);
    for (int r = 0; r < world->size; ++r) {
        int64_t own = fill_parts(s, t, range, r);
        if (own > s->most) s->most = own;
    }
    for (int i = 0; i < count; ++i) {
        s->first[i] = parts_of(s, world->rank)[i].first;
        s->elements[i] = parts_of(s, world->rank)[i].count;
        int param = t->range_param[i];
        s->value[i] =
            plan_local_offset(t->plan, t->plan->param_offset[param] + s->first[i], world->rank);
        s->gradient[i] =
            plan_sum_offset(t->plan, t->plan->gradient_offset[param] + s->first[i], world->rank);
    }
    s->mine = mem_new((size_t)s->most * OPTIM_NORMS * sizeof *s->mine);
    s->all = mem_new(ranks * (size_t)s->most * OPTIM_NORMS * sizeof *s->all);
    return s;
}

void shards_free(Shards **shares)
{
    Shards *s = *shares;
    if (!s) return;
    mem_free(&s->part);
    mem_free(&s->first);
    mem_free(&s->elements);
    mem_free(&s->value);
    mem_free(&s->gradient);
    mem_free(&s->mine);
    mem_free(&s->all);
    mem_free(shares);
}

/* Between one rank's place in all chunks and its packed ones. */
static void pack(const Shards *s, const double *chunk, int sets)
{
    double *to = s->mine;
    const Part *part = parts_of(s, s->world->rank);
    for (int set = 0; set < sets; ++set)
        for (int i = 0; i < s->count; to += part[i++].chunks)
            memcpy(to, chunk + set * s->chunks + part[i].chunk,
                   (size_t)part[i].chunks * sizeof *to);
}

static void unpack(const Shards *s, double *chunk, int sets, int rank)
{
    const double *from = s->all + (int64_t)rank * s->most * sets;
    const Part *part = parts_of(s, rank);
    for (int set = 0; set < sets; ++set)
        for (int i = 0; i < s->count; from += part[i++].chunks)
            memcpy(chunk + set * s->chunks + part[i].chunk, from,
                   (size_t)part[i].chunks * sizeof *from);
}

/* Where nothing is sharded every replica has all chunks. */
static void gather(void *user, double *chunk, int sets)
{
    const Shards *s = user;
    if (!s->trainer->plan->zero) return;
    pack(s, chunk, sets);
    world_gather(s->world, s->mine, (size_t)(s->most * sets) * sizeof *s->mine, s->all);
    for (int r = 0; r < s->world->size; ++r)
        if (r != s->world->rank) unpack(s, chunk, sets, r);
}

/* In the ranks' order; of a tensor that is not divided every rank has the whole sum. */
static void join(void *user, double *squares, int sets)
{
    const Shards *s = user;
    const Trainer *t = s->trainer;
    const World *world = &t->grid.tp_world;
    int count = s->count * sets;
    double *all = mem_new((size_t)(count * world->size + 1) * sizeof *all);
    world_gather(world, squares, (size_t)count * sizeof *squares, all);
    for (int i = 0; i < count; ++i) {
        if (t->graph->param[t->range_param[i % s->count]].cut.parts == 0) continue;
        squares[i] = 0;
        for (int r = 0; r < world->size; ++r) squares[i] += all[r * count + i];
    }
    mem_free(&all);
}

OptimShard shards_mine(Shards *s)
{
    return (OptimShard){.first = s->first,
                        .count = s->elements,
                        .value = s->value,
                        .gradient = s->gradient,
                        .gather = gather,
                        .join = s->trainer->shape.tp > 1 ? join : NULL,
                        .user = s};
}
