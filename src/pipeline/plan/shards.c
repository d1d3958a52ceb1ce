/* ZeRO: cuts a stage's buckets among its replicas (Rajbhandari et al. 2020, section 5.1). A shard
 * begins at the start of a tensor or a multiple of FLAT_CHUNK elements after it, so that one rank
 * computes the partial norm of each FLAT_CHUNK elements. A tied gradient is cut like the gradient
 * of the parameter to which it is tied, so that the same rank has both parts of their sum. The last
 * replica has the metrics and sends them to the others. Frozen parameters are not cut: all replicas
 * store them. The ranks of a tensor-parallel group add up partial gradients of unsliced parameters
 * and must therefore cut these alike: all ranks cut as if they had the slices of the group's first
 * rank. */
#include "plan.h"

static int64_t padded(const Param *p)
{
    return arena_align(p->elements);
}

static int64_t clamp(int64_t n, int64_t least, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Returns true if this stage trains the parameter and stores its value separately, because the
 * parameter is not tied to another parameter of this stage. */
static bool owns_value(const Plan *plan, int param)
{
    return plan->gradient_offset[param] >= 0 && !param_shares_memory(plan, param);
}

int64_t shard_weight(const Plan *plan, int param)
{
    const Param *p = &plan->graph->param[param];
    return p->split.parts > 0 ? arena_align(param_slice_count(plan->graph, param, 0)) : padded(p);
}

/* Returns the parameters for which owns_value is true, in order of offset. Owner: the caller. */
static int *owned_params(const Plan *plan, int *count)
{
    int *param = mem_new((size_t)(plan->graph->param_count + 1) * sizeof *param);
    *count = 0;
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (owns_value(plan, i)) param[(*count)++] = i;
    return param;
}

/* Returns bucket b with its parameters. param: the array that owned_params returns; borrowed. */
static BucketParams bucket_params(const Plan *plan, const Buckets *buckets, int b, int *param,
                                  int count)
{
    BucketParams bucket = {.begin = buckets->offset[b],
                           .end = buckets->offset[b] + buckets->elements[b]};
    int low = 0;
    for (int high = count; low < high;) {
        int middle = low + (high - low) / 2;
        if (plan->param_offset[param[middle]] < bucket.begin)
            low = middle + 1;
        else
            high = middle;
    }
    bucket.param = param + low;
    while (low + bucket.count < count &&
           plan->param_offset[bucket.param[bucket.count]] < bucket.end)
        bucket.weight += shard_weight(plan, bucket.param[bucket.count++]);
    return bucket;
}

int64_t shard_bound(const Plan *plan, const BucketParams *bucket, int64_t weight, int64_t *below)
{
    *below = 0;
    for (int k = 0; k < bucket->count; ++k) {
        int i = bucket->param[k];
        int64_t here = shard_weight(plan, i);
        if (weight >= here) {
            weight -= here;
            *below += here;
            continue;
        }
        int64_t end = padded(&plan->graph->param[i]), low = weight / FLAT_CHUNK * FLAT_CHUNK;
        int64_t high = low + FLAT_CHUNK < here ? low + FLAT_CHUNK : here;
        int64_t nearest = weight - low <= high - weight ? low : high;
        if (param_is_whole(plan, i)) nearest = 2 * weight < here ? 0 : here;
        *below += nearest;
        return plan->param_offset[i] + (nearest == here || nearest > end ? end : nearest);
    }
    return bucket->end;
}

/* Chooses the owners of shards if there are more ranks than offsets at which a shard may begin. The
 * candidates for a shard are the rank that gets it by weight and the ranks directly after it that
 * get nothing. The choice rotates from shard to shard and from bucket to bucket. Over all buckets,
 * the ranks therefore get about equal amounts, and so do the halves that ranks exchange
 * (parallel/order/halving.h). below: weight before each rank's shard, [dp + 1]; it is the same on
 * all ranks of a tensor-parallel group. */
static void choose_owners(int64_t *boundary, const int64_t *below, int dp, int bucket)
{
    int shard = bucket;
    for (int r = 0, next; r < dp; r = next) {
        for (next = r + 1; next < dp && below[next] == below[next + 1];) ++next;
        if (below[r] == below[r + 1]) continue;
        int owner = r + shard++ % (next - r);
        for (int k = r + 1; k <= owner; ++k) boundary[k] = boundary[r];
    }
}

/* Cuts a bucket into shards of about equal weight. number: index of the bucket among those of the
 * stage. For a bucket of a parameter tied to another stage, 0 is used instead, so that both stages
 * cut it alike. */
static void cut_bucket(const Plan *plan, const BucketParams *bucket, int number, int64_t *boundary)
{
    int dp = plan->shape.dp;
    bool metrics = bucket->begin == plan->metrics_offset;
    int64_t *below = mem_new((size_t)(dp + 1) * sizeof *below);
    for (int r = 0; r < dp; ++r) {
        /* weight * r / dp without overflow */
        int64_t even = bucket->weight / dp * r + bucket->weight % dp * r / dp;
        boundary[r] = metrics ? bucket->begin : shard_bound(plan, bucket, even, &below[r]);
    }
    boundary[dp] = bucket->end;
    below[dp] = bucket->weight;
    if (bucket->count > 0 && plan_tied_across(plan, bucket->param[0])) number = 0;
    if (!metrics) choose_owners(boundary, below, dp, number);
    mem_free(&below);
}

/* Returns the shards of this stage's bucket that contains element `at` of the gradient arena, or
 * NULL. */
static const Bounds *shards_at(const Plan *plan, int64_t at)
{
    int b;
    const ChunkPlan *c = plan_bucket_at(plan, at, &b);
    return c ? &c->shard[b] : NULL;
}

/* Returns true if bucket b contains a tied gradient; tied gradients are after the metrics in the
 * arena. */
static bool is_tied(const Plan *plan, const Buckets *buckets, int b)
{
    return buckets->offset[b] > plan->metrics_offset;
}

bool plan_tied_across(const Plan *plan, int param)
{
    const Param *p = &plan->graph->param[param];
    return plan->tied_across[p->tied_param >= 0 ? p->tied_param : param];
}

void plan_shards(Plan *plan)
{
    const Graph *g = plan->graph;
    const bool whole = any_param_is_whole(plan);
    int dp = plan->shape.dp, number = 0;
    int64_t *load = mem_new((size_t)dp * sizeof *load);
    int64_t *boundary = mem_new((size_t)(dp + 1) * sizeof *boundary);
    int count, *param = owned_params(plan, &count);
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        c->shard = mem_new((size_t)(c->buckets.count + 1) * sizeof *c->shard);
        for (int b = 0; b < c->buckets.count; ++b) {
            if (is_tied(plan, &c->buckets, b)) continue;
            BucketParams bucket = bucket_params(plan, &c->buckets, b, param, count);
            if (!whole || !whole_cut(plan, &bucket, load, boundary))
                cut_bucket(plan, &bucket, number, boundary);
            ++number;
            bounds_init(&c->shard[b], boundary, dp);
        }
    }
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        for (int b = 0; b < c->buckets.count; ++b) {
            if (!is_tied(plan, &c->buckets, b)) continue;
            int tied = c->buckets.first_tensor[b];
            const Param *target = &g->param[g->param[tied].tied_param];
            int64_t at = plan->param_offset[tied];
            const Bounds *target_shards = shards_at(plan, at);
            for (int r = 0; r <= dp; ++r)
                boundary[r] = plan->gradient_offset[tied] +
                              clamp(bounds_at(target_shards, r) - at, 0, padded(target));
            bounds_init(&c->shard[b], boundary, dp);
        }
    }
    mem_free(&load);
    mem_free(&boundary);
    mem_free(&param);
    plan->param_shard = mem_new((size_t)(g->param_count + 1) * sizeof *plan->param_shard);
    for (int i = 0; i < g->param_count; ++i)
        if (plan->param_offset[i] >= 0 && !g->param[i].frozen)
            plan->param_shard[i] = shards_at(plan, plan->param_offset[i]);
}

void plan_shard(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count)
{
    int64_t elements = plan->graph->param[param].elements, at = plan->param_offset[param];
    *first = 0;
    *count = elements;
    if (!plan->zero || plan->graph->param[param].frozen) return;
    const Bounds *shard = plan->param_shard[param];
    int i = bounds_find(shard, dp_rank);
    int64_t begin = clamp(shard->begin[i] - at, 0, elements);
    *count =
        bounds_has(shard, i, dp_rank) ? clamp(shard->begin[i + 1] - at, 0, elements) - begin : 0;
    *first = *count > 0 ? begin : 0;
}

size_t shard_elements(const Plan *plan, int dp_rank, bool statistics)
{
    int64_t sum = 0;
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int64_t first, count;
        if ((plan->graph->param[i].info.is_statistic && !statistics) || !owns_value(plan, i))
            continue;
        plan_shard(plan, i, dp_rank, &first, &count);
        sum += arena_align(count);
    }
    return (size_t)sum;
}
