/* Summation of gradient buckets. Without sharded gradients, backward writes to the arena that the
 * summation tree names, partial sums are joined here, and the last micro-batch's join begins the
 * sum over the replicas. With sharded gradients (zero 2), backward writes to a ring of buckets, and
 * each micro-batch's push brings them into their owners' partial sums. */
#include "grad_sync.h"

/* Bytes of one arena of partial sums. */
static size_t level_bytes(const Context *c)
{
    return (size_t)plan_sum_elements(c->plan, c->grid->dp_rank) * sizeof(float);
}

/* Index of the first arena that GradSync owns; those before it are the Comm's. */
static size_t first_owned_level(const Plan *plan)
{
    return plan_shards_gradients(plan) ? 0 : 1;
}

void grad_sync_init(GradSync *s, const Context *context)
{
    const Plan *plan = context->plan;
    *s = (GradSync){.context = context,
                    .level = {context->comm->arena},
                    .pushed = mem_new((size_t)plan->chunk_count * sizeof *s->pushed)};
    for (size_t k = first_owned_level(plan); k < plan->sum_levels; ++k)
        s->level[k] = context_alloc(context, level_bytes(context));
    for (int c = 0; c < plan->chunk_count; ++c)
        s->pushed[c] = mem_new((size_t)(plan->chunk[c].buckets.count + 1) * sizeof **s->pushed);
}

void grad_sync_fini(GradSync *s)
{
    if (!s->context) return;
    const Plan *plan = s->context->plan;
    for (size_t k = first_owned_level(plan); k < plan->sum_levels; ++k)
        context_release(s->context, s->level[k], level_bytes(s->context));
    for (int c = 0; c < plan->chunk_count; ++c) mem_free(&s->pushed[c]);
    mem_free(&s->pushed);
}

float *grad_arena(const GradSync *s, int micro)
{
    const Plan *plan = s->context->plan;
    if (plan_shards_gradients(plan)) return s->context->comm->arena;
    return s->level[tree_step(micro, plan->schedule->shape.micros).write];
}

float *grad_sum(const GradSync *s, int64_t at)
{
    return s->level[0] + plan_sum_offset(s->context->plan, at, s->context->grid->dp_rank);
}

/* Offset of the bucket in the arena that backward writes to. */
static int64_t bucket_offset(const ChunkPlan *chunk, int bucket)
{
    return chunk->ring ? chunk->ring[bucket] : chunk->buckets.offset[bucket];
}

/* Waits until the buckets that overlap this one in the ring have been sent. */
static void wait_for_place(const GradSync *s, const ChunkPlan *chunk, int bucket)
{
    const Plan *plan = s->context->plan;
    int64_t begin = bucket_offset(chunk, bucket);
    int64_t end = begin + chunk->buckets.elements[bucket], last = 0;
    for (int c = 0; c < plan->chunk_count; ++c) {
        const ChunkPlan *other = &plan->chunk[c];
        for (int b = 0; b < other->buckets.count; ++b) {
            int64_t at = bucket_offset(other, b);
            if (at < end && begin < at + other->buckets.elements[b] && s->pushed[c][b] > last)
                last = s->pushed[c][b];
        }
    }
    collective_wait(&s->context->progress, comm_push_wait, last);
}

/* A micro-batch without samples must not change the sums, so it fills the bucket with -0: x + -0 is
 * x for every x, while adding 0 would turn -0 into 0. */
void bucket_open(const GradSync *s, const ChunkRun *chunk, const Slot *slot, int bucket, int micro,
                 float **metrics)
{
    const Context *c = s->context;
    const Buckets *buckets = &chunk->plan->buckets;
    float *place = grad_arena(s, micro) + bucket_offset(chunk->plan, bucket);
    int64_t count = buckets->elements[bucket];
    int64_t at = c->plan->metrics_offset - buckets->offset[bucket];
    if (plan_shards_gradients(c->plan)) wait_for_place(s, chunk->plan, bucket);
    if (slot->empty) c->backend->table->flat->fill(c->stream, place, -0.0f, count);
    *metrics = at >= 0 && at < count ? place + at : NULL;
}

/* Hashes the first values of each tensor in the bucket, as this rank contributes them. */
static void bucket_hash(GradSync *s, const ChunkPlan *chunk, int bucket)
{
    enum { FIRST = 256 };
    const Plan *plan = s->context->plan;
    int64_t begin = bucket_offset(chunk, bucket), count = chunk->buckets.elements[bucket];
    const float *arena = plan_shards_gradients(plan) ? s->context->comm->arena : s->level[0];
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int64_t at = plan->micro_grad_offset[i], elements = plan->graph->param[i].elements;
        if (at < begin || at >= begin + count) continue;
        if (elements > FIRST) elements = FIRST;
        s->hash = hash_seeded(arena + at, (size_t)elements * sizeof *arena, s->hash);
    }
}

/* Adds a micro-batch's bucket to the partial sums. The last micro-batch begins the sum over the
 * replicas. With sharding a rank needs only its shard of the sum. */
static void bucket_join(GradSync *s, const ChunkPlan *chunk, int bucket, int micro)
{
    const Context *c = s->context;
    int micros = c->plan->schedule->shape.micros;
    TreeStep tree = tree_step(micro, micros);
    int64_t at = chunk->buckets.offset[bucket], count = chunk->buckets.elements[bucket];
    for (int j = 0; j < tree.join_count; ++j) {
        float *to = s->level[tree.to[j]] + at;
        c->backend->table->flat->add(c->stream, to, to, s->level[tree.to[j] + 1] + at, count);
    }
    if (micro < micros - 1) return;
    if (s->hashes) bucket_hash(s, chunk, bucket);
    if (chunk->shard)
        comm_reduce_scatter_begin(c->comm, &chunk->shard[bucket]);
    else
        comm_allreduce_begin(c->comm, at, count);
}

/* Begins a push: the bucket of one micro-batch of each replica is added to the owners' partial
 * sums. */
static void bucket_push(GradSync *s, const ChunkPlan *chunk, int bucket, int micro)
{
    const Context *c = s->context;
    CommPush push = {.bounds = &chunk->shard[bucket],
                     .shift = chunk->ring[bucket] - chunk->buckets.offset[bucket],
                     .level = s->level,
                     .at = shard_offset(chunk, bucket, c->grid->dp_rank),
                     .first = micro * c->plan->shape.dp,
                     .leaves = c->plan->schedule->shape.micros * c->plan->shape.dp};
    if (s->hashes) bucket_hash(s, chunk, bucket);
    s->pushed[chunk - c->plan->chunk][bucket] = comm_push_begin(c->comm, &push);
}

void bucket_done(GradSync *s, const ChunkRun *chunk, int bucket, int micro)
{
    if (plan_shards_gradients(s->context->plan))
        bucket_push(s, chunk->plan, bucket, micro);
    else
        bucket_join(s, chunk->plan, bucket, micro);
}

void grad_sync_wait(const GradSync *s)
{
    Comm *comm = s->context->comm;
    collective_wait(&s->context->progress, comm_push_wait, comm->pushes);
    comm_wait(comm);
}
