/* Finds the nodes that take part in backward. Backward ends at the first trained parameter: nodes
 * before it keep nothing for backward and are not recomputed. Exceptions are batch norms whose
 * running statistics are updated. */
#include "chunk.h"

bool planner_updates_statistics(const Planner *p, int i)
{
    const Node *node = &p->graph->node[i];
    for (int k = 0; k < node->spec.w_count; ++k) {
        const Param *param = &p->graph->param[node->param[k]];
        if (param->info.is_statistic && !param->frozen) return true;
    }
    return false;
}

bool planner_runs_backward(const Planner *p, int i)
{
    const OpSpec *spec = &p->graph->node[i].op->spec;
    for (int k = 0; k < spec->x_count; ++k)
        if (spec->need_dx[k]) return true;
    return node_is_trained(p->graph, &p->graph->node[i]);
}

bool planner_reads_x(const Planner *p, int i, int k)
{
    return p->graph->node[i].op->needs_x[k] && planner_runs_backward(p, i);
}

bool planner_reads_y(const Planner *p, int i)
{
    return p->graph->node[i].op->needs_y && planner_runs_backward(p, i);
}

void planner_drop_blocks(Planner *p)
{
    int count = p->chunk->end - p->chunk->first;
    for (int from = 0, to; from < count; from = to) {
        bool back = false;
        for (to = from; to < count && p->block[to] == p->block[from]; ++to) {
            int i = p->chunk->first + to;
            back = back || planner_runs_backward(p, i) || planner_updates_statistics(p, i);
        }
        for (int k = from; k < to && !back; ++k) p->block[k] = -1;
    }
}
