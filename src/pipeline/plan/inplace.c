/* Decides which outputs may be written over their node's first input. While runs are planned in
 * order, each storage records the last node that will read it. */
#include "chunk.h"

void inplace_find_readers(Planner *p)
{
    const ChunkPlan *c = p->chunk;
    for (int i = 0; i < p->graph->node_count; ++i) p->reader[i] = NO_NODE;
    for (int i = 0; i < p->graph->node_count; ++i) {
        const Node *node = &p->graph->node[i];
        for (int k = 0; i >= c->first && i < c->end && k < node->spec.x_count; ++k)
            p->previous_reader[i - c->first][k] =
                node->in[k] < 0 ? NO_NODE : p->reader[node->in[k]];
        for (int k = 0; k < node->spec.x_count; ++k)
            if (node->in[k] >= 0) p->reader[node->in[k]] = i;
    }
}

void inplace_record_output(Planner *p, int node, int s, const int *last)
{
    if (s >= 0 && last[node] > p->storage[s].reader) p->storage[s].reader = last[node];
}

void inplace_record_run(Planner *p, const RunStorage *run)
{
    const int i = run->node;
    const bool back = run == planner_back_run(p, i);
    for (int k = 0; k < p->graph->node[i].spec.x_count; ++k) {
        if (run->x[k] < 0) continue;
        Storage *s = &p->storage[run->x[k]];
        const bool reads = planner_reads_x(p, i, k);
        s->must_stay |= reads;
        if (back && reads && i < s->back_first) s->back_first = i;
        if (back && i > s->input_last) s->input_last = i;
    }
    if (run->y < 0 || !planner_reads_y(p, i)) return;
    Storage *y = &p->storage[run->y];
    y->must_stay = true;
    if (back && i < y->back_first) y->back_first = i;
}

void inplace_keep_block_inputs(Planner *p, int i)
{
    const Node *node = &p->graph->node[i];
    int first = p->chunk->first, block = p->block[i - first];
    for (int k = 0; block >= 0 && k < node->spec.x_count; ++k) {
        int in = node->in[k];
        if (in < 0 || p->value[in] < 0 || (planner_owns(p, in) && p->block[in - first] == block))
            continue;
        p->storage[p->value[in]].must_stay = true;
    }
}

bool inplace_allowed(const Planner *p, const RunStorage *run)
{
    const int i = run->node, s = run->x[0];
    const Op *op = p->graph->node[i].op;
    if (!op->y_inplace || planner_reads_x(p, i, 0) || s < 0 || p->storage[s].in_previous)
        return false;
    if (desc_bytes(op->spec.x[0]) != desc_bytes(op->spec.y)) return false;
    for (int k = 1; k < op->spec.x_count; ++k)
        if (run->x[k] == s) return false;
    return !p->storage[s].must_stay && p->storage[s].reader <= i;
}
