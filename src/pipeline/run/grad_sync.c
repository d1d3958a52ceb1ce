/* Adds up the gradients of all micro-batches, bucket by bucket. Backward writes a micro-batch's
 * gradients to the arena that the summation tree chooses, and the partial sums of a run of
 * micro-batches (parallel/order.h) are added here. If a replica has one run, the sum over the
 * replicas begins after its last micro-batch. Otherwise each run's sum is pushed to the owners of
 * its shards, which add it to their partial sums; after the last run the whole sum is at the same
 * place as with one run. With sharded gradients (zero 2 and 3) every micro-batch is a run, backward
 * writes to a ring of buckets, and each owner keeps the sums of its shards. */
#include "grad_sync.h"

/* Returns the bytes of each arena level[k], k > 0, in which the gradients of a run are added. */
static size_t level_bytes(const Context *c)
{
    return (size_t)c->plan->gradient_elements * sizeof(float);
}

static size_t partial_bytes(const Context *c)
{
    return (size_t)plan_push_elements(c->plan, c->grid->dp_rank) * sizeof(float);
}

void grad_sync_init(GradSync *s, const Context *context)
{
    const Plan *plan = context->plan;
    Backend *backend = context->comm->partial_backend;
    size_t bytes = partial_bytes(context);
    *s = (GradSync){.context = context,
                    .level = {context->comm->arena},
                    .pushed = mem_new((size_t)plan->chunk_count * sizeof *s->pushed)};
    for (size_t k = 1; k < plan->sum_levels; ++k)
        s->level[k] = context_alloc(context, level_bytes(context));
    for (size_t k = 0; k < plan->push_levels && bytes > 0; ++k)
        s->partial[k] = backend->table->alloc(backend, bytes);
    s->sum = plan_shards_gradients(plan) ? s->partial[0] : s->level[0];
    for (int c = 0; c < plan->chunk_count; ++c)
        s->pushed[c] = mem_new((size_t)(plan->chunk[c].buckets.count + 1) * sizeof **s->pushed);
}

void grad_sync_fini(GradSync *s)
{
    if (!s->context) return;
    const Plan *plan = s->context->plan;
    Backend *backend = s->context->comm->partial_backend;
    for (size_t k = 1; k < plan->sum_levels; ++k)
        context_release(s->context, s->level[k], level_bytes(s->context));
    for (size_t k = 0; k < plan->push_levels; ++k)
        if (s->partial[k])
            backend->table->release(backend, s->partial[k], partial_bytes(s->context));
    for (int c = 0; c < plan->chunk_count; ++c) mem_free(&s->pushed[c]);
    mem_free(&s->pushed);
    micro_squares_fini(&s->squares);
}

float *grad_arena(const GradSync *s, int micro)
{
    MicroRun run = plan_micro_run(s->context->plan, micro);
    return s->level[tree_step(micro - run.first, run.count).write];
}

float *grad_sum(const GradSync *s, int64_t at)
{
    return s->sum + plan_sum_offset(s->context->plan, at, s->context->grid->dp_rank);
}

bool bucket_waits(const Plan *plan, int micro)
{
    return plan_shards_gradients(plan) || (micro > 0 && plan_micro_run(plan, micro).first == micro);
}

bool bucket_begins_sum(const Plan *plan, int micro)
{
    MicroRun run = plan_micro_run(plan, micro);
    return micro == run.first + run.count - 1;
}

/* Returns the offset of the bucket in the arena to which backward writes. */
static int64_t bucket_offset(const ChunkPlan *chunk, int bucket)
{
    return chunk->ring_offset ? chunk->ring_offset[bucket] : chunk->buckets.offset[bucket];
}

/* Waits until the bucket's memory is free: until no rank still reads the pushes of this bucket, or
 * of buckets that overlap it in the ring. */
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
    collective_wait(&s->context->progress, comm_push_poll, last);
}

/* A micro-batch without samples must not change the sums, so its bucket is filled with -0: x + -0
 * is x for every x, while x + 0 turns -0 into 0. */
void bucket_open(const GradSync *s, const ChunkRun *chunk, const Slot *slot, int bucket, int micro,
                 float **metrics)
{
    const Context *c = s->context;
    const Buckets *buckets = &chunk->plan->buckets;
    float *place = grad_arena(s, micro) + bucket_offset(chunk->plan, bucket);
    int64_t count = buckets->elements[bucket];
    int64_t at = c->plan->metrics_offset - buckets->offset[bucket];
    if (bucket_waits(c->plan, micro)) wait_for_place(s, chunk->plan, bucket);
    if (slot->empty) c->backend->table->flat->fill(c->stream, place, -0.0f, count);
    *metrics = at >= 0 && at < count ? place + at : NULL;
}

/* Adds to the hash the first values of each tensor in the bucket, before they are summed over the
 * replicas. */
static void bucket_hash(GradSync *s, const ChunkPlan *chunk, int bucket)
{
    enum { FIRST = 256 };
    const Plan *plan = s->context->plan;
    int64_t begin = bucket_offset(chunk, bucket), count = chunk->buckets.elements[bucket];
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int64_t at = plan->micro_grad_offset[i], elements = plan->graph->param[i].elements;
        if (at < begin || at >= begin + count) continue;
        if (elements > FIRST) elements = FIRST;
        s->hash = hash_seeded(s->level[0] + at, (size_t)elements * sizeof *s->level[0], s->hash);
    }
}

/* Begins a push, which adds the bucket of one run of each replica to the owners' partial sums. */
static void bucket_push(GradSync *s, const ChunkPlan *chunk, int bucket, MicroRun run)
{
    const Context *c = s->context;
    const Plan *plan = c->plan;
    int dp = plan->shape.dp, micro_batches = plan->schedule->shape.micro_batches;
    CommPush push = {.bounds = push_bounds(chunk, bucket),
                     .shift = bucket_offset(chunk, bucket) - chunk->buckets.offset[bucket],
                     .partial = s->partial,
                     .partial_at = shard_offset(chunk, bucket, c->grid->dp_rank),
                     /* In this tree every leaf is the sum of a run of this size. `first` is the
                      * number of rank 0's leaf, `leaves` the number of all leaves. The last run
                      * ends at the last leaf. */
                     .first = run.first / run.count * dp,
                     .leaves = ((micro_batches - 1) / run.count + 1) * dp,
                     .to = plan_shards_gradients(plan) ? PUSH_TO_PARTIAL
                           : plan->zero                ? PUSH_TO_OWNER
                                                       : PUSH_TO_ALL};
    s->pushed[chunk - plan->chunk][bucket] = comm_push_begin(c->comm, &push);
}

void bucket_done(GradSync *s, const ChunkRun *chunk, int bucket, int micro)
{
    const Context *c = s->context;
    const ChunkPlan *plan = chunk->plan;
    MicroRun run = plan_micro_run(c->plan, micro);
    TreeStep tree = tree_step(micro - run.first, run.count);
    int64_t at = plan->buckets.offset[bucket], count = plan->buckets.elements[bucket];
    if (s->squares.sum)
        micro_squares_add(&s->squares, c, plan, bucket, micro,
                          s->level[tree.write] + bucket_offset(plan, bucket));
    for (int j = 0; j < tree.join_count; ++j) {
        float *to = s->level[tree.to[j]] + at;
        c->backend->table->flat->add(c->stream, to, to, s->level[tree.to[j] + 1] + at, count);
    }
    if (!bucket_begins_sum(c->plan, micro)) return;
    if (s->hashes) bucket_hash(s, plan, bucket);
    if (plan_pushes(c->plan))
        bucket_push(s, plan, bucket, run);
    else if (plan->shard)
        comm_reduce_scatter_begin(c->comm, &plan->shard[bucket]);
    else
        comm_allreduce_begin(c->comm, at, count);
}

void grad_sync_wait(const GradSync *s)
{
    Comm *comm = s->context->comm;
    collective_wait(&s->context->progress, comm_push_poll, comm->pushes);
    comm_wait(comm);
}
