/* First values of parameters in plain order, and their slices. */
#include "build.h"

#include <string.h>

/* The whole tensor is drawn, so that the numbers do not depend on who has which part. */
void param_init(const Graph *graph, int param, uint64_t seed, float *plain)
{
    const Graph *g = graph_whole(graph);
    const Param *p = &g->param[param];
    const OpSpec *spec = &g->node[p->node].spec;
    if (graph->param[param].cut.parts == 0) {
        layer_param_init(&p->info, spec, p->slot, p->name, seed, plain);
        return;
    }
    float *whole = mem_new((size_t)shape_count(p->shape) * sizeof *whole);
    layer_param_init(&p->info, spec, p->slot, p->name, seed, whole);
    param_slice_get(graph, param, graph->rank, whole, plain);
    mem_free(&whole);
}

/* A slice as runs: `outer` times a run of `count` numbers in each of cut.parts parts of `part` numbers. */
typedef struct Runs {
    int64_t outer, part, first, count;
} Runs;

static Runs runs_of(const Graph *graph, int param, int rank)
{
    const ParamCut *cut = &graph->param[param].cut;
    const Shape shape = graph_whole(graph)->param[param].shape;
    if (cut->parts == 0) return (Runs){1, shape_count(shape), 0, shape_count(shape)};
    int64_t inner = cut->unit;
    for (int d = cut->dim + 1; d < shape.ndim; ++d) inner *= shape.dim[d];
    Runs r = {.outer = 1, .part = cut->units * inner};
    for (int d = 0; d < cut->dim; ++d) r.outer *= shape.dim[d];
    r.first = slice_first(cut->units, graph->ranks, rank) * inner;
    r.count = slice_first(cut->units, graph->ranks, rank + 1) * inner - r.first;
    return r;
}

static int64_t run_count(const Graph *graph, int param, const Runs *r)
{
    const ParamCut *cut = &graph->param[param].cut;
    return r->outer * (cut->parts > 0 ? cut->parts : 1);
}

int64_t param_slice_count(const Graph *graph, int param, int rank)
{
    Runs r = runs_of(graph, param, rank);
    return run_count(graph, param, &r) * r.count;
}

void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *mine)
{
    Runs r = runs_of(graph, param, rank);
    for (int64_t i = 0; i < run_count(graph, param, &r); ++i)
        memcpy(mine + i * r.count, whole + i * r.part + r.first, (size_t)r.count * sizeof *mine);
}

void param_slice_put(const Graph *graph, int param, int rank, const float *mine, float *whole)
{
    Runs r = runs_of(graph, param, rank);
    for (int64_t i = 0; i < run_count(graph, param, &r); ++i)
        memcpy(whole + i * r.part + r.first, mine + i * r.count, (size_t)r.count * sizeof *mine);
}
