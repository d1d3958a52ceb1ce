/* Parameters between the arena (each op's stored order) and their plain order, and their first values. */
#include "build.h"

void param_get(const Graph *graph, int param, const float *arena, float *plain)
{
    const Param *p = &graph->param[param];
    op_unpack(graph->node[p->node].op, p->slot, arena + p->offset, plain);
}

void param_set(const Graph *graph, int param, const float *plain, float *arena)
{
    const Param *p = &graph->param[param];
    op_pack(graph->node[p->node].op, p->slot, plain, arena + p->offset);
}

void graph_init_params(const Graph *graph, uint64_t seed, float *arena)
{
    int64_t largest = 1;
    for (int i = 0; i < graph->param_count; ++i) {
        int64_t n = shape_count(graph->param[i].shape);
        if (n > largest) largest = n;
    }
    float *plain = mem_new((size_t)largest * sizeof *plain);
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        if (p->tied >= 0) continue;
        layer_param_init(&p->info, &graph->node[p->node].spec, p->slot, p->name, seed, plain);
        param_set(graph, i, plain, arena);
    }
    mem_free(&plain);
}
