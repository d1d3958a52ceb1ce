/* Adds to the plan a rank's memory for its tensor-parallel group: the floats that the ranks add up
 * at the end of a step, and the buffers for exchanging slices. */
#include "plan.h"

bool plan_group_part(const Plan *plan, int param, int dp_rank, int64_t *first, int64_t *count)
{
    if (!plan->graph->param[param].partial || plan->gradient_offset[param] < 0) return false;
    plan_shard(plan, param, dp_rank, first, count);
    return *count > 0;
}

int64_t plan_group_floats(const Plan *plan, int dp_rank)
{
    int64_t summed = METRIC_REQUESTS, first, count;
    for (int i = 0; i < plan->graph->param_count; ++i)
        if (plan_group_part(plan, i, dp_rank, &first, &count)) summed += count;
    return summed;
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

size_t plan_largest_exchange(const Plan *plan, size_t summed)
{
    const Graph *g = plan->graph;
    size_t most = summed;
    for (int i = 0; i < g->node_count; ++i) {
        const Op *op = g->node[i].op;
        if (op_info(op->spec.kind)->communication == COMMUNICATES_ALWAYS)
            most = larger(most, larger(desc_bytes(op->spec.x[0]), desc_bytes(op->spec.y)));
        const bool gathers = op->spec.token_slices.total > op->spec.token_slices.count;
        if (i == g->loss_node || gathers) most = larger(most, op->workspace_bytes);
    }
    return most;
}

bool plan_sums_by_tree(const Plan *plan)
{
    const Graph *g = plan->graph;
    for (int i = 0; i < g->node_count; ++i)
        if (g->node[i].spec.slices.total > 0) return true;
    return false;
}

size_t exchange_sum_bytes(int ranks)
{
    size_t levels = 1;
    for (int i = 1; i < ranks; i *= 2) ++levels;
    return levels * 2 * EXCHANGE_PIECE_BYTES;
}

/* Returns the bytes of a rank's channel slots and of its buffers: the partial sums of a piece, and
 * a packed piece of its slice. */
static size_t pieces_bytes(int ranks)
{
    return exchange_sum_bytes(ranks) +
           (size_t)EXCHANGE_PIECE_BYTES * (1 + EXCHANGE_DEPTH * ((size_t)ranks - 1));
}

void tensor_group_memory(Plan *plan, bool gpus_joined)
{
    int ranks = plan->shape.tp;
    size_t summed = 0;
    if (ranks == 1) return;
    for (int r = 0; r < plan->shape.dp; ++r)
        summed = larger(summed, (size_t)plan_group_floats(plan, r) * sizeof(float));
    size_t most = plan_largest_exchange(plan, summed);
    plan->message_bytes += 2 * summed;
    if (plan_in_host_memory(plan))
        plan->message_bytes += pieces_bytes(ranks);
    else if (gpus_joined)
        plan->message_bytes += gpu_exchange_bytes(ranks, most);
    else
        plan->staged_bytes += 2 * most + pieces_bytes(ranks);
}
