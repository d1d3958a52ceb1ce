/* Copies parameters between an arena in host memory (stored order of each operation) and their
 * plain order. */
#ifndef WEFT_TESTS_MODEL_ARENA_H
#define WEFT_TESTS_MODEL_ARENA_H

#include "model.h"

/* Copies a parameter from the arena to `plain`, which has shape_count(shape) floats. */
static inline void param_get(const Graph *graph, int param, const float *arena, float *plain)
{
    const Param *p = &graph->param[param];
    op_unpack(graph->node[p->node].op, p->slot, arena + p->offset, plain);
}

static inline void param_set(const Graph *graph, int param, const float *plain, float *arena)
{
    const Param *p = &graph->param[param];
    op_pack(graph->node[p->node].op, p->slot, plain, arena + p->offset);
}

/* Fills the arena with the initial values of every parameter. */
static inline void arena_init(const Graph *graph, uint64_t seed, float *arena)
{
    for (int i = 0; i < graph->param_count; ++i) {
        if (graph->param[i].tied_param >= 0) continue;
        float *plain = mem_new((size_t)shape_count(graph->param[i].shape) * sizeof *plain);
        param_init(graph, i, seed, plain);
        param_set(graph, i, plain, arena);
        mem_free(&plain);
    }
}

#endif
