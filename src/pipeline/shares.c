/* ZeRO: how a stage's buckets are cut among its replicas (Rajbhandari et al. 2020, section 5.1). A share begins where a
 * tensor does, or a multiple of FLAT_CHUNK behind, so that the partial norms of a chunk are one rank's. A gradient that is
 * tied to another is cut as that one, so that a rank has both parts of its sum, on this stage or on its own. The metrics are
 * the last replica's, who tells the others. */
#include "plan_internal.h"

enum { ALIGN_FLOATS = 16 };

static int64_t padded(const Param *p)
{
    return (p->elements + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
}

static int64_t clamp(int64_t n, int64_t least, int64_t most)
{
    return n < least ? least : n > most ? most : n;
}

/* Does the parameter have a value of its own on this stage? */
static bool owns_value(const Plan *plan, int param)
{
    return plan->value_at[param] >= 0 && !param_shares_value(plan, param);
}

/* The place nearest to `at`, which lies among the values, where a share may begin. */
static int64_t allowed(const Plan *plan, int64_t at)
{
    const Graph *g = plan->graph;
    for (int i = 0; i < g->param_count; ++i) {
        int64_t begin = plan->value_at[i], end = begin + padded(&g->param[i]);
        if (!owns_value(plan, i) || at < begin || at >= end) continue;
        int64_t low = begin + (at - begin) / FLAT_CHUNK * FLAT_CHUNK;
        int64_t high = low + FLAT_CHUNK < end ? low + FLAT_CHUNK : end;
        return at - low <= high - at ? low : high;
    }
    return at;
}

/* Elements count * part / parts without overflow. */
static int64_t even(int64_t count, int parts, int part)
{
    return count / parts * part + count % parts * part / parts;
}

static void cut_bucket(const Plan *plan, const Buckets *buckets, int b, int64_t *border)
{
    int dp = plan->shape.dp;
    int64_t begin = buckets->offset[b], count = buckets->elements[b];
    bool metrics = begin == plan->metrics_at;
    for (int r = 0; r < dp; ++r)
        border[r] = metrics ? begin : allowed(plan, begin + even(count, dp, r));
    border[dp] = begin + count;
}

/* Borders of the bucket of this stage that holds place `at` of the gradients. */
static const int64_t *shares_at(const Plan *plan, int64_t at)
{
    int b;
    const ChunkPlan *c = plan_bucket_at(plan, at, &b);
    return c->share + (size_t)b * (size_t)(plan->shape.dp + 1);
}

static void cut_tied(const Plan *plan, int param, int64_t *border)
{
    const Param *own = &plan->graph->param[plan->graph->param[param].tied];
    int64_t at = plan->value_at[param];
    const int64_t *like = shares_at(plan, at);
    for (int r = 0; r <= plan->shape.dp; ++r)
        border[r] = plan->gradient_at[param] + clamp(like[r] - at, 0, padded(own));
}

static bool is_tied(const Plan *plan, const Buckets *buckets, int b)
{
    return buckets->offset[b] > plan->metrics_at;
}

static bool on_stage(const Plan *plan, int node)
{
    for (int k = 0; k < plan->chunk_count; ++k)
        if (node >= plan->chunk[k].first && node < plan->chunk[k].last) return true;
    return false;
}

bool plan_tied_across(const Plan *plan, int param)
{
    const Graph *g = plan->graph;
    int own = g->param[param].tied >= 0 ? g->param[param].tied : param;
    for (int i = 0; i < g->param_count; ++i)
        if ((i == own || g->param[i].tied == own) && !on_stage(plan, g->param[i].node)) return true;
    return false;
}

const ChunkPlan *plan_bucket_at(const Plan *plan, int64_t at, int *bucket)
{
    for (int k = 0; k < plan->chunk_count; ++k) {
        const Buckets *b = &plan->chunk[k].buckets;
        for (*bucket = 0; *bucket < b->count; ++*bucket)
            if (at >= b->offset[*bucket] && at < b->offset[*bucket] + b->elements[*bucket])
                return &plan->chunk[k];
    }
    return NULL;
}

void plan_shares(Plan *plan)
{
    size_t borders = (size_t)plan->shape.dp + 1;
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        c->share = mem_new((size_t)(c->buckets.count + 1) * borders * sizeof *c->share);
        for (int b = 0; b < c->buckets.count; ++b)
            if (!is_tied(plan, &c->buckets, b))
                cut_bucket(plan, &c->buckets, b, c->share + (size_t)b * borders);
    }
    for (int k = 0; k < plan->chunk_count; ++k) {
        ChunkPlan *c = &plan->chunk[k];
        for (int b = 0; b < c->buckets.count; ++b)
            if (is_tied(plan, &c->buckets, b))
                cut_tied(plan, c->buckets.first_tensor[b], c->share + (size_t)b * borders);
    }
}

void plan_share(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count)
{
    int64_t elements = plan->graph->param[param].elements, at = plan->value_at[param];
    *first = 0;
    *count = elements;
    if (!plan->zero) return;
    const int64_t *share = shares_at(plan, at);
    int64_t begin = clamp(share[dp_rank] - at, 0, elements);
    *count = clamp(share[dp_rank + 1] - at, 0, elements) - begin;
    *first = *count > 0 ? begin : 0;
}

size_t share_elements(const Plan *plan, int dp_rank)
{
    int64_t sum = 0;
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int64_t first, count;
        if (plan->graph->param[i].info.buffer || !owns_value(plan, i)) continue;
        plan_share(plan, i, dp_rank, &first, &count);
        sum += (count + ALIGN_FLOATS - 1) / ALIGN_FLOATS * ALIGN_FLOATS;
    }
    return (size_t)sum;
}
