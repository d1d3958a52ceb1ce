/* Sums the squares of each micro-batch's gradient, parameter by parameter, in parts of FLAT_CHUNK
 * elements. The sums of the parts are added in order, so the bits do not depend on the grid.
 * Parameters with several uses are left out, because the gradients of their uses are added only at
 * the end of a step. Works only in host memory. */
#include "micro_squares.h"

static int64_t part_count(int64_t elements)
{
    return (elements + FLAT_CHUNK - 1) / FLAT_CHUNK;
}

void micro_squares_init(MicroSquares *squares, const Context *c)
{
    const Graph *g = c->plan->graph;
    const size_t micro_batches = (size_t)c->plan->schedule->shape.micro_batches;
    int64_t most = 1;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].elements > most) most = g->param[i].elements;
    squares->sum = mem_new(micro_batches * (size_t)(g->param_count + 1) * sizeof *squares->sum);
    squares->part = mem_new((size_t)part_count(most) * sizeof *squares->part);
}

void micro_squares_fini(MicroSquares *squares)
{
    mem_free(&squares->sum);
    mem_free(&squares->part);
}

void micro_squares_add(const MicroSquares *squares, const Context *c, const ChunkPlan *chunk,
                       int bucket, int micro, const float *place)
{
    const Graph *g = c->plan->graph;
    const int64_t begin = chunk->buckets.offset[bucket];
    const int64_t end = begin + chunk->buckets.elements[bucket];
    for (int i = 0; i < g->param_count; ++i) {
        const int64_t at = c->plan->gradient_offset[i], elements = g->param[i].elements;
        if (at < begin || at >= end || !graph_has_one_use(g, i)) continue;
        double *sum = &squares->sum[(int64_t)micro * g->param_count + i];
        c->backend->table->flat->squares(c->stream, squares->part, place + (at - begin), elements);
        *sum = 0;
        for (int64_t k = 0; k < part_count(elements); ++k) *sum += squares->part[k];
    }
}
