/* Computes initial values of parameters in plain order, and copies tensor-parallel slices from and
 * to whole parameters. */
#include "build.h"

#include <string.h>

/* Computes the whole tensor's values, so that they do not depend on how it is divided among
 * ranks. */
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

/* A slice of a parameter as runs of adjacent values. The whole parameter has `outer` rows of
 * `parts` parts with `part` values each; in each part, the slice is a run of `count` values that
 * begins at value `first`. In the first part, `part`, `first` and `count` are `lead` times as
 * large. */
typedef struct Runs {
    int64_t outer, parts, lead, part, first, count;
} Runs;

/* One run: offset in the whole parameter, offset in the slice, number of values. */
typedef struct Run {
    int64_t whole, slice, count;
} Run;

static Runs runs_of(const Graph *graph, int param, int rank)
{
    const ParamCut *cut = &graph->param[param].cut;
    const Shape shape = graph_whole(graph)->param[param].shape;
    const int64_t n = shape_count(shape);
    if (cut->parts == 0) return (Runs){1, 1, 1, n, 0, n};
    int64_t inner = cut->unit;
    for (int d = cut->dim + 1; d < shape.ndim; ++d) inner *= shape.dim[d];
    Runs r = {.outer = 1, .parts = cut->parts, .lead = cut->lead, .part = cut->units * inner};
    for (int d = 0; d < cut->dim; ++d) r.outer *= shape.dim[d];
    r.first = slice_first(cut->units, graph->ranks, rank) * inner;
    r.count = slice_first(cut->units, graph->ranks, rank + 1) * inner - r.first;
    return r;
}

/* Returns the length of an outer row in parts; the first part counts `lead` times. */
static int64_t row_parts(const Runs *r)
{
    return r->parts - 1 + r->lead;
}

/* Returns run i of a slice; each outer row has one run for each part. */
static Run run_at(const Runs *r, int64_t i)
{
    const int64_t row = i / r->parts, k = i % r->parts, wide = k ? 1 : r->lead;
    const int64_t before = row * row_parts(r) + (k ? r->lead + k - 1 : 0);
    return (Run){before * r->part + wide * r->first, before * r->count, wide * r->count};
}

int64_t param_slice_count(const Graph *graph, int param, int rank)
{
    Runs r = runs_of(graph, param, rank);
    return r.outer * row_parts(&r) * r.count;
}

void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *slice)
{
    Runs r = runs_of(graph, param, rank);
    for (int64_t i = 0; i < r.outer * r.parts; ++i) {
        Run run = run_at(&r, i);
        memcpy(slice + run.slice, whole + run.whole, (size_t)run.count * sizeof *slice);
    }
}

void param_slice_put(const Graph *graph, int param, int rank, const float *slice, float *whole)
{
    Runs r = runs_of(graph, param, rank);
    for (int64_t i = 0; i < r.outer * r.parts; ++i) {
        Run run = run_at(&r, i);
        memcpy(whole + run.whole, slice + run.slice, (size_t)run.count * sizeof *slice);
    }
}
