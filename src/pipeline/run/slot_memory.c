/* Allocates slots, and computes the addresses of places in them. Sets those arguments of operations
 * that do not depend on the micro-batch; input_ring.c and actions.c set the data, the labels and
 * the gradient arena. */
#include "slot_memory.h"

void *slot_address(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot, int64_t place)
{
    if (place < 0) return NULL;
    if (place >= OFFSET_BEFORE) return slot->before ? slot->before + (place - OFFSET_BEFORE) : NULL;
    int64_t kept = (int64_t)chunk->plan->kept_bytes;
    return place < kept ? slot->memory + place : memory->scratch + (place - kept);
}

void slot_bind_before(const SlotMemory *memory, const ChunkRun *chunk, Slot *slot,
                      const Slot *before)
{
    slot->before = before->memory;
    for (int i = 0; i < chunk->plan->run_count; ++i) {
        const RunOffsets *at = &chunk->plan->run[i];
        OpRun *run = &slot->run[i];
        for (int k = 0; k < SPEC_INPUTS; ++k)
            if (at->x[k] >= OFFSET_BEFORE) run->x[k] = slot_address(memory, chunk, slot, at->x[k]);
        if (at->y >= OFFSET_BEFORE) run->y = slot_address(memory, chunk, slot, at->y);
    }
}

const OpRun *slot_loss(const SlotMemory *memory, const ChunkRun *chunk, const Slot *slot)
{
    return &slot->run[memory->context->plan->graph->loss_node - chunk->plan->first];
}

/* Sets the fields of a run that do not depend on the micro-batch. */
static void bind_run(const SlotMemory *m, const ChunkRun *chunk, const Slot *slot, int i,
                     const SlotLinks *links)
{
    const Plan *plan = m->context->plan;
    const RunOffsets *at = &chunk->plan->run[i];
    const Node *node = &plan->graph->node[at->node];
    OpRun *run = &slot->run[i];
    for (int k = 0; k < node->spec.x_count; ++k) {
        run->x[k] = slot_address(m, chunk, slot, at->x[k]);
        run->dx[k] = slot_address(m, chunk, slot, at->dx[k]);
    }
    run->dx_add = at->dx_add;
    run->y = slot_address(m, chunk, slot, at->y);
    run->dy = slot_address(m, chunk, slot, at->dy);
    run->saved = slot_address(m, chunk, slot, at->saved);
    run->x_saved = slot_address(m, chunk, slot, at->x_saved);
    run->cache = m->cache ? m->cache + plan->cache_offset[at->node] : NULL;
    run->workspace = m->workspace;
    run->exchange = links->exchange;
    run->replicas = links->replicas;
    run->seed = m->context->options.seed;
    for (int k = 0; k < node->spec.w_count; ++k) {
        run->w[k] = links->weights + plan->weight_offset[node->param[k]];
        run->dw[k] = slot_address(m, chunk, slot, at->dw[k]);
    }
}

/* Divides the activation arena into the slots of each chunk; the rest is scratch memory, which all
 * chunks share. */
static void lay_slots(SlotMemory *m)
{
    const Plan *plan = m->context->plan;
    char *at = m->activations;
    m->chunk = mem_new((size_t)plan->chunk_count * sizeof *m->chunk);
    for (int c = 0; c < plan->chunk_count; ++c) {
        ChunkRun *chunk = &m->chunk[c];
        chunk->plan = &plan->chunk[c];
        chunk->slot = mem_new((size_t)chunk->plan->slots * sizeof *chunk->slot);
        for (int s = 0; s < chunk->plan->slots; ++s, at += chunk->plan->kept_bytes)
            chunk->slot[s].memory = at;
    }
    m->scratch = at;
}

void slot_memory_init(SlotMemory *m, const Context *context, const SlotLinks *links)
{
    const Plan *plan = context->plan;
    *m = (SlotMemory){.context = context};
    m->activations = context_alloc(context, plan->activation_bytes);
    m->cache = context_alloc(context, plan->cache_bytes);
    m->workspace = context_alloc(context, plan->workspace_bytes);
    lay_slots(m);
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int s = 0; s < plan->chunk[c].slots; ++s) {
            Slot *slot = &m->chunk[c].slot[s];
            slot->run = mem_new((size_t)plan->chunk[c].run_count * sizeof *slot->run);
            for (int i = 0; i < plan->chunk[c].run_count; ++i)
                bind_run(m, &m->chunk[c], slot, i, links);
        }
}

void slot_memory_fini(SlotMemory *m)
{
    if (!m->context) return;
    const Plan *plan = m->context->plan;
    for (int c = 0; c < plan->chunk_count; ++c) {
        for (int s = 0; s < plan->chunk[c].slots; ++s) mem_free(&m->chunk[c].slot[s].run);
        mem_free(&m->chunk[c].slot);
    }
    mem_free(&m->chunk);
    context_release(m->context, m->activations, plan->activation_bytes);
    context_release(m->context, m->cache, plan->cache_bytes);
    context_release(m->context, m->workspace, plan->workspace_bytes);
}
