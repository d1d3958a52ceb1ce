/* Copies the loss's results and its inputs to host memory if they are not there already, and
 * converts the inputs to floats in plain order. */
#include "outputs.h"

#include <string.h>

void outputs_init(Outputs *o, const Context *context)
{
    const Graph *g = context->plan->graph;
    int64_t columns = shape_count(g->node[g->loss_node].op->spec.y.shape);
    *o = (Outputs){.context = context,
                   .columns = mem_new((size_t)columns * sizeof *o->columns),
                   .columns_per_sample = columns / g->input.shape.dim[0]};
}

void outputs_fini(Outputs *o)
{
    mem_free(&o->columns);
    for (int k = 0; k < SPEC_INPUTS; ++k) mem_free(&o->logits[k]);
}

void outputs_evaluated(Outputs *o, const Slot *slot)
{
    o->slot = slot;
    memset(o->converted, 0, sizeof o->converted);
}

/* Returns `from` if it is in host memory. Otherwise copies `bytes` bytes to host, waits, and
 * returns host. */
static const void *host_read(const Context *c, const void *from, void *host, size_t bytes)
{
    if (c->backend->table->host_memory) return from;
    context_copy(c, host, from, bytes);
    c->backend->table->sync(c->stream);
    return host;
}

const float *outputs_columns(const Outputs *o, const SlotMemory *memory, const ChunkRun *chunk,
                             const Slot *slot, int64_t rows)
{
    return host_read(o->context, slot_loss(memory, chunk, slot)->y, o->columns,
                     (size_t)(rows * o->columns_per_sample) * sizeof *o->columns);
}

/* Returns the index in memory of the element that has index i in plain (row-major) order. */
static int64_t index_of(Desc x, int64_t i)
{
    const int64_t *d = x.shape.dim, width = d[x.shape.ndim - 1];
    if (x.shape.ndim < 4) return i / width * desc_row_stride(x) + i % width;
    const int64_t pixels = d[2] * d[3], c = i / pixels % d[1], n = i / (pixels * d[1]);
    const int64_t blocks = (d[1] + x.block - 1) / x.block;
    return ((n * blocks + c / x.block) * pixels + i % pixels) * x.block + c % x.block;
}

/* Converts a tensor to floats in plain order; `to` and `from` must not overlap. */
static void to_plain(float *to, const void *from, Desc x)
{
    for (int64_t i = 0; i < shape_count(x.shape); ++i) {
        const int64_t at = index_of(x, i);
        to[i] = x.dtype == DTYPE_F16    ? f16_value(((const F16 *)from)[at])
                : x.dtype == DTYPE_BF16 ? bf16_value(((const Bf16 *)from)[at])
                                        : ((const float *)from)[at];
    }
}

const float *outputs_logits(Outputs *o, const SlotMemory *memory, int output)
{
    const Context *c = o->context;
    const bool host_memory = c->backend->table->host_memory;
    const Graph *g = c->plan->graph;
    const ChunkRun *chunk = &memory->chunk[c->plan->chunk_count - 1];
    if (!context_has_loss(c, chunk->plan)) return NULL;
    Desc x = g->node[g->loss_node].op->spec.x[output];
    const void *logits = slot_loss(memory, chunk, o->slot)->x[output];
    if (host_memory && x.dtype == DTYPE_F32 && desc_is_plain(x)) return logits;
    float **plain = &o->logits[output];
    if (o->converted[output]) return *plain;
    if (!*plain) *plain = mem_new((size_t)shape_count(x.shape) * sizeof **plain);
    void *copy = host_memory ? NULL : mem_new(desc_bytes(x));
    to_plain(*plain, host_read(c, logits, copy, desc_bytes(x)), x);
    mem_free(&copy);
    o->converted[output] = true;
    return *plain;
}
