/* Copies the loss's results and its input to host memory, unless they are there already. */
#include "outputs.h"

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
    mem_free(&o->logits);
}

/* Copies `bytes` bytes to *host and waits, or returns `from` if it is host memory already. */
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

/* Converts to float, starting at the end because `to` and `from` may be the same memory. */
static void widen(float *to, const void *from, Desc x)
{
    int64_t width = x.shape.dim[x.shape.ndim - 1], row = desc_row(x);
    for (int64_t i = shape_count(x.shape) - 1; i >= 0 && x.dtype != DTYPE_F32; --i) {
        int64_t at = i / width * row + i % width;
        to[i] = x.dtype == DTYPE_F16 ? f16_value(((const F16 *)from)[at])
                                     : bf16_value(((const Bf16 *)from)[at]);
    }
}

const float *outputs_logits(Outputs *o, const SlotMemory *memory)
{
    const Context *c = o->context;
    const Graph *g = c->plan->graph;
    const ChunkRun *chunk = &memory->chunk[c->plan->chunk_count - 1];
    if (!context_has_loss(c, chunk->plan)) return NULL;
    Desc x = g->node[g->loss_node].op->spec.x[0];
    const void *logits = slot_loss(memory, chunk, &chunk->slot[0])->x[0];
    if (c->backend->table->host_memory && x.dtype == DTYPE_F32) return logits;
    if (!o->logits) o->logits = mem_new((size_t)shape_count(x.shape) * sizeof *o->logits);
    widen(o->logits, host_read(c, logits, o->logits, desc_bytes(x)), x);
    return o->logits;
}
