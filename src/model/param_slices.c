/* Computes initial values of parameters in plain order, and copies tensor-parallel slices from and
 * to undivided parameters. */
#include "build.h"

#include <string.h>

/* Computes the values of the undivided parameter first, so that they do not depend on how it is
 * divided among ranks. */
void param_init(const Graph *graph, int param, uint64_t seed, float *plain)
{
    const Graph *g = graph_undivided(graph);
    const Param *p = &g->param[param];
    const OpSpec *spec = &g->node[p->node].spec;
    if (graph->param[param].split.parts == 0) {
        layer_param_init(&p->info, spec, p->slot, p->name, seed, plain);
        return;
    }
    float *whole = mem_new((size_t)shape_count(p->shape) * sizeof *whole);
    layer_param_init(&p->info, spec, p->slot, p->name, seed, whole);
    param_slice_get(graph, param, graph->tp_rank, whole, plain);
    mem_free(&whole);
}

/* One part of a row (queries, for example), and the slice of it that belongs to a rank. */
typedef struct Part {
    /* number of values of the part in the undivided parameter */
    int64_t size;
    /* index in the part of the slice's first value */
    int64_t first;
    /* number of values of the slice */
    int64_t count;
} Part;

/* A rank's slice of a parameter. The undivided parameter is an array of rows, and a row is an array
 * of parts. The slice has a span of adjacent values of each part of each row. */
typedef struct SliceSpans {
    /* number of rows: product of the dimensions before the divided one */
    int64_t outer;
    /* number of parts of a row */
    int64_t parts;
    /* the first part of a row */
    Part lead;
    /* each of the other parts */
    Part other;
} SliceSpans;

/* Adjacent values of a slice. */
typedef struct Span {
    /* offset of the first value in the undivided parameter */
    int64_t whole_offset;
    /* offset of the first value in the slice */
    int64_t slice_offset;
    /* number of values */
    int64_t count;
} Span;

/* Returns a part of `units` units with `unit` values each; the units are divided among the
 * ranks. */
static Part part_of(const Graph *graph, int rank, int64_t units, int64_t unit)
{
    const int64_t first = slice_first(units, graph->tp_ranks, rank) * unit;
    return (Part){.size = units * unit,
                  .first = first,
                  .count = slice_first(units, graph->tp_ranks, rank + 1) * unit - first};
}

static SliceSpans spans_of(const Graph *graph, int param, int rank)
{
    const ParamSplit *split = &graph->param[param].split;
    const Shape shape = graph_undivided(graph)->param[param].shape;
    const int64_t n = shape_count(shape);
    if (split->parts == 0) return (SliceSpans){.outer = 1, .parts = 1, .lead = {n, 0, n}};
    int64_t inner = split->unit_rows;
    for (int d = split->dim + 1; d < shape.ndim; ++d) inner *= shape.dim[d];
    SliceSpans r = {.outer = 1,
                    .parts = split->parts,
                    .lead = part_of(graph, rank, split->units, split->first_unit_ratio * inner),
                    .other = part_of(graph, rank, split->other_units, inner)};
    for (int d = 0; d < split->dim; ++d) r.outer *= shape.dim[d];
    return r;
}

/* Returns span i of a slice, counted over rows and, within a row, over parts. */
static Span span_at(const SliceSpans *r, int64_t i)
{
    const int64_t row = i / r->parts, part = i % r->parts, others = r->parts - 1;
    Span span = {.whole_offset = row * (r->lead.size + others * r->other.size) + r->lead.first,
                 .slice_offset = row * (r->lead.count + others * r->other.count),
                 .count = r->lead.count};
    if (part == 0) return span;
    span.whole_offset += r->lead.size - r->lead.first + (part - 1) * r->other.size + r->other.first;
    span.slice_offset += r->lead.count + (part - 1) * r->other.count;
    span.count = r->other.count;
    return span;
}

int64_t param_slice_count(const Graph *graph, int param, int rank)
{
    SliceSpans r = spans_of(graph, param, rank);
    return r.outer * (r.lead.count + (r.parts - 1) * r.other.count);
}

void param_slice_get(const Graph *graph, int param, int rank, const float *whole, float *slice)
{
    SliceSpans r = spans_of(graph, param, rank);
    for (int64_t i = 0; i < r.outer * r.parts; ++i) {
        Span span = span_at(&r, i);
        memcpy(slice + span.slice_offset, whole + span.whole_offset,
               (size_t)span.count * sizeof *slice);
    }
}

void param_slice_put(const Graph *graph, int param, int rank, const float *slice, float *whole)
{
    SliceSpans r = spans_of(graph, param, rank);
    for (int64_t i = 0; i < r.outer * r.parts; ++i) {
        Span span = span_at(&r, i);
        memcpy(whole + span.whole_offset, slice + span.slice_offset,
               (size_t)span.count * sizeof *slice);
    }
}
