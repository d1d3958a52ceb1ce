/* ZeRO for updates that need a whole tensor: one replica has all of the tensor's gradient, state
 * and value, so the update sends no messages. This is the ZeRO-1 of "Muon is scalable for LLM
 * training" (Liu et al. 2025, section 2.3) without its gathering. Each bucket is divided in rank
 * order so that most of it goes to the replicas with the least weight so far. A shard boundary
 * inside a tensor that must stay whole moves to the nearer end of the tensor; all other tensors are
 * cut as in shards.c. All ranks of a tensor-parallel group make the same choice, because they use
 * the weights of the group's first rank. */
#include "plan.h"

bool param_is_whole(const Plan *plan, int param)
{
    return plan->updates && plan->updates[param].is_uncut;
}

bool any_param_is_whole(const Plan *plan)
{
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (param_is_whole(plan, i)) return true;
    return false;
}

/* Sets quota[r] to replica r's part of `weight`, chosen so that the sums load[r] + quota[r] are as
 * equal as possible. */
static void fill_up(const int64_t *load, int dp, int64_t weight, int64_t *quota)
{
    int64_t low = 0, high = weight;
    for (int r = 0; r < dp; ++r)
        if (load[r] + weight > high) high = load[r] + weight;
    while (low < high) {
        int64_t level = low + (high - low + 1) / 2, needed = 0;
        for (int r = 0; r < dp; ++r) needed += level > load[r] ? level - load[r] : 0;
        if (needed <= weight)
            low = level;
        else
            high = level - 1;
    }
    int64_t left = weight;
    for (int r = 0; r < dp; ++r) {
        quota[r] = low > load[r] ? low - load[r] : 0;
        left -= quota[r];
    }
    quota[dp - 1] += left;
}

bool whole_cut(const Plan *plan, const BucketParams *bucket, int64_t *load, int64_t *boundary)
{
    int dp = plan->shape.dp;
    int64_t weight = bucket->weight, below = 0, last = 0;
    if (weight == 0) return false;
    if (plan_tied_across(plan, bucket->param[0])) {
        int param = bucket->param[0], tied = plan->graph->param[param].tied_param;
        if (!param_is_whole(plan, param)) return false;
        /* both stages must choose the same owner, so the choice depends only on the parameter's
         * number */
        int owner = (tied >= 0 ? tied : param) % dp;
        for (int r = 0; r <= dp; ++r) boundary[r] = r > owner ? bucket->end : bucket->begin;
        return true;
    }
    int64_t *quota = mem_new((size_t)dp * sizeof *quota), end = 0;
    fill_up(load, dp, weight, quota);
    boundary[0] = bucket->begin;
    for (int r = 0; r < dp; ++r, last = below) {
        end += quota[r];
        below = weight;
        boundary[r + 1] = r + 1 < dp ? shard_bound(plan, bucket, end, &below) : bucket->end;
        load[r] += below - last;
    }
    mem_free(&quota);
    return true;
}

/* ---- memory ---- */

static int64_t local_elements(const Plan *plan, int param, int dp_rank)
{
    int64_t first, count;
    if (plan->graph->param[param].info.is_statistic || plan->gradient_offset[param] < 0 ||
        param_shares_memory(plan, param))
        return 0;
    plan_shard(plan, param, dp_rank, &first, &count);
    return count;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Returns the bytes of a replica's updates: its state, scratch, and the temporary memory for whole
 * tensors and slices. With sharding or a tensor-parallel group, scratch has a place for each
 * parameter that needs it; otherwise it has one place, for the largest of them. Scratch is never
 * smaller than the largest tensor that must stay whole. */
static size_t update_bytes(const Plan *plan, int dp_rank)
{
    size_t state = 0, scratch = 0, largest = 0, whole = 0, slices = 0;
    bool shared = plan->zero || plan->shape.tp > 1;
    for (int i = 0; i < plan->graph->param_count; ++i) {
        const ParamUpdate *update = &plan->updates[i];
        size_t count = (size_t)local_elements(plan, i, dp_rank);
        size_t padded = (size_t)arena_align((int64_t)count);
        if (count == 0) continue;
        state += (size_t)update->slots * padded;
        if (update->needs_scratch && shared) scratch += padded;
        if (update->is_uncut || (update->needs_scratch && !shared))
            largest = larger(largest, count);
        whole = larger(whole, update->whole_bytes);
        slices = larger(slices, update->slice_bytes);
    }
    return (state + larger(scratch, largest)) * sizeof(float) + whole + slices;
}

size_t whole_state_bytes(const Plan *plan)
{
    size_t most = 0;
    for (int r = 0; r < plan->shape.dp; ++r) most = larger(most, update_bytes(plan, r));
    return most;
}
