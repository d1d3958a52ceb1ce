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

/* One part of a row of the whole parameter: it has `whole` values, and the slice is `count` of them
 * from value `first` on. */
typedef struct Part {
    int64_t whole, first, count;
} Part;

/* A slice of a parameter as runs of adjacent values. The whole parameter has `outer` rows of
 * `parts` parts: `lead` is the first part, `other` each part after it. */
typedef struct Runs {
    int64_t outer, parts;
    Part lead, other;
} Runs;

/* One run: offset in the whole parameter, offset in the slice, number of values. */
typedef struct Run {
    int64_t whole, slice, count;
} Run;

/* Returns a part with `units` units of `unit` values each, which are divided among the ranks. */
static Part part_of(const Graph *graph, int rank, int64_t units, int64_t unit)
{
    const int64_t first = slice_first(units, graph->ranks, rank) * unit;
    return (Part){.whole = units * unit,
                  .first = first,
                  .count = slice_first(units, graph->ranks, rank + 1) * unit - first};
}

static Runs runs_of(const Graph *graph, int param, int rank)
{
    const ParamCut *cut = &graph->param[param].cut;
    const Shape shape = graph_whole(graph)->param[param].shape;
    const int64_t n = shape_count(shape);
    if (cut->parts == 0) return (Runs){.outer = 1, .parts = 1, .lead = {n, 0, n}};
    int64_t inner = cut->unit;
    for (int d = cut->dim + 1; d < shape.ndim; ++d) inner *= shape.dim[d];
    Runs r = {.outer = 1,
              .parts = cut->parts,
              .lead = part_of(graph, rank, cut->units, cut->lead * inner),
              .other = part_of(graph, rank, cut->others, inner)};
    for (int d = 0; d < cut->dim; ++d) r.outer *= shape.dim[d];
    return r;
}

/* Returns run i of a slice; each outer row has one run for each part. */
static Run run_at(const Runs *r, int64_t i)
{
    const int64_t row = i / r->parts, part = i % r->parts, others = r->parts - 1;
    Run run = {.whole = row * (r->lead.whole + others * r->other.whole) + r->lead.first,
               .slice = row * (r->lead.count + others * r->other.count),
               .count = r->lead.count};
    if (part == 0) return run;
    run.whole += r->lead.whole - r->lead.first + (part - 1) * r->other.whole + r->other.first;
    run.slice += r->lead.count + (part - 1) * r->other.count;
    run.count = r->other.count;
    return run;
}

int64_t param_slice_count(const Graph *graph, int param, int rank)
{
    Runs r = runs_of(graph, param, rank);
    return r.outer * (r.lead.count + (r.parts - 1) * r.other.count);
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
