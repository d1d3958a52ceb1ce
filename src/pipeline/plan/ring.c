/* Plans where gradients are until they are summed, and where the shards of their sums are. Without
 * sharded gradients, backward writes to the arena of partial sums that the summation tree chooses
 * (tree_step), at gradient_offset. With sharded gradients (zero 2 and 3), backward writes buckets
 * to a ring. While backward continues, pushes add these buckets to the sums of the ranks that own
 * the shards. Memory then contains only the buckets being written or pushed, and only this rank's
 * shards of the sums. Two buckets may overlap in the ring if at least IN_TRANSIT buckets are
 * between them and the first is complete before the second is opened. */
#include "plan.h"

/* Number of buckets that may be in transit to their owners while another bucket is written, before
 * a rank must wait. */
enum { IN_TRANSIT = 3 };

bool plan_shards_gradients(const Plan *plan)
{
    return plan->zero >= ZERO_GRADIENTS;
}

/* Returns true if buckets a and b, a < b, must not overlap in the ring. Bucket a is complete, and
 * is sent, after the backward of its first tensor's node. */
static bool must_not_overlap(const Plan *plan, const ChunkPlan *c, int a, int b)
{
    int tensor = c->buckets.first_tensor[a];
    int leaves = tensor < 0 ? c->end - 1 : plan->graph->param[tensor].node;
    return b - a <= IN_TRANSIT || c->opening_node[b] >= leaves;
}

int64_t place_lowest(const Span *taken, int count, int64_t length)
{
    int64_t at = 0;
    for (int i = 0; i < count; ++i) {
        if (at >= taken[i].end || taken[i].begin >= at + length) continue;
        at = taken[i].end;
        /* check all spans again */
        i = -1;
    }
    return at;
}

static void plan_ring(Plan *plan, ChunkPlan *c)
{
    const Buckets *buckets = &c->buckets;
    Span *taken = mem_new((size_t)(buckets->count + 1) * sizeof *taken);
    c->ring_offset = mem_new((size_t)(buckets->count + 1) * sizeof *c->ring_offset);
    for (int b = 0; b < buckets->count; ++b) {
        int count = 0;
        /* Buckets are sent in order: if one has been sent, all buckets before it have been sent. */
        for (int a = b - 1; a >= 0 && must_not_overlap(plan, c, a, b); --a)
            taken[count++] = (Span){c->ring_offset[a], c->ring_offset[a] + buckets->elements[a]};
        c->ring_offset[b] = place_lowest(taken, count, buckets->elements[b]);
        int64_t end = c->ring_offset[b] + buckets->elements[b];
        plan->micro_grad_elements =
            end > plan->micro_grad_elements ? end : plan->micro_grad_elements;
    }
    mem_free(&taken);
}

bool bucket_has_params(const Plan *plan, const ChunkPlan *c, int b)
{
    return c->buckets.offset[b] < plan->metrics_offset;
}

/* Places each rank's shards one after another: the shards of the buckets that contain parameters if
 * with_params is true, else those of all other buckets. end: offset after each rank's last shard,
 * in floats, [dp]. */
static void lay_shards(const Plan *plan, bool with_params, int64_t *end)
{
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        for (int b = 0; b < c->buckets.count; ++b) {
            const Bounds *shard = push_bounds(c, b);
            if (bucket_has_params(plan, c, b) != with_params) continue;
            c->shard_offset[b] = mem_new((size_t)(shard->count + 1) * sizeof *c->shard_offset[b]);
            for (int i = 0; i < shard->count; ++i) {
                c->shard_offset[b][i] = end[shard->rank[i]];
                end[shard->rank[i]] += shard->begin[i + 1] - shard->begin[i];
            }
        }
    }
}

/* Cuts the buckets evenly for pushes; used if nothing is sharded. */
static void cut_evenly(const Plan *plan, ChunkPlan *c)
{
    const Buckets *buckets = &c->buckets;
    c->push_shard = mem_new((size_t)(buckets->count + 1) * sizeof *c->push_shard);
    for (int b = 0; b < buckets->count; ++b)
        bounds_init_even(&c->push_shard[b], buckets->offset[b], buckets->elements[b],
                         plan->shape.dp);
}

static void plan_shard_offsets(Plan *plan)
{
    size_t dp = (size_t)plan->shape.dp;
    int64_t *end = mem_new(dp * sizeof *end);
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        c->shard_offset = mem_new((size_t)(c->buckets.count + 1) * sizeof *c->shard_offset);
        if (!c->shard) cut_evenly(plan, c);
    }
    lay_shards(plan, true, end);
    lay_shards(plan, false, end);
    mem_free(&end);
}

void plan_micro_grads(Plan *plan)
{
    const Graph *g = plan->graph;
    plan->micro_grad_offset =
        mem_new((size_t)(g->param_count + 1) * sizeof *plan->micro_grad_offset);
    plan->micro_grad_elements = plan_shards_gradients(plan) ? 0 : plan->gradient_elements;
    for (int k = 0; plan_shards_gradients(plan) && k < plan->chunk_count; ++k)
        plan_ring(plan, &plan->chunk[k]);
    for (int i = 0; i < g->param_count; ++i) {
        int b;
        int64_t at = plan->gradient_offset[i];
        const ChunkPlan *c = plan_shards_gradients(plan) ? plan_bucket_at(plan, at, &b) : NULL;
        plan->micro_grad_offset[i] = c ? c->ring_offset[b] + at - c->buckets.offset[b] : at;
    }
    if (plan_pushes(plan)) plan_shard_offsets(plan);
}

int64_t shard_offset(const ChunkPlan *c, int bucket, int dp_rank)
{
    return c->shard_offset[bucket][bounds_find(push_bounds(c, bucket), dp_rank)];
}

int64_t plan_sum_offset(const Plan *plan, int64_t at, int dp_rank)
{
    int b;
    const ChunkPlan *c = plan_shards_gradients(plan) ? plan_bucket_at(plan, at, &b) : NULL;
    if (!c) return at;
    return shard_offset(c, b, dp_rank) + at - bounds_at(&c->shard[b], dp_rank);
}

/* Returns the sum of the lengths of a rank's shards of all buckets or, with params_only, of the
 * buckets that contain parameters. */
static int64_t sum_shard_lengths(const Plan *plan, bool params_only, int dp_rank)
{
    int64_t sum = 0;
    for (int k = 0; k < plan->chunk_count; ++k) {
        const ChunkPlan *c = &plan->chunk[k];
        for (int b = 0; b < c->buckets.count; ++b) {
            if (!params_only || bucket_has_params(plan, c, b))
                sum += bounds_length(push_bounds(c, b), dp_rank);
        }
    }
    return sum;
}

int64_t plan_sum_elements(const Plan *plan, int dp_rank)
{
    return plan_shards_gradients(plan) ? plan_push_elements(plan, dp_rank)
                                       : plan->gradient_elements;
}

int64_t plan_push_elements(const Plan *plan, int dp_rank)
{
    return plan_pushes(plan) ? sum_shard_lengths(plan, false, dp_rank) : 0;
}

int64_t plan_local_offset(const Plan *plan, int64_t at, int dp_rank)
{
    return plan->gathers ? plan_sum_offset(plan, at, dp_rank) : at;
}

int64_t plan_local_elements(const Plan *plan, int dp_rank)
{
    return plan->gathers ? sum_shard_lengths(plan, true, dp_rank) : plan->param_elements;
}
