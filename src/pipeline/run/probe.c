/* Checks on the host every output and gradient that an operation of a step has written, as soon as
 * it is written. This is slow; it is used when a bad step is repeated to find the cause. The first
 * fault is reported, because later ones are consequences. Faults are ordered by pass (forward, then
 * backward), then by micro-batch, then by layer. With synced layers, the micro-batches that have
 * the same number on their replicas share statistics. They form a turn, and faults are ordered by
 * turn before they are ordered by layer. */
#include "probe.h"

#include <math.h>

bool step_fault_before(const StepFault *a, const StepFault *b)
{
    if (a->node < 0 || b->node < 0) return a->node >= 0;
    if (a->backward != b->backward) return b->backward;
    if (a->order != b->order) return a->order < b->order;
    if (a->node != b->node) return a->backward ? a->node > b->node : a->node < b->node;
    return a->micro < b->micro;
}

static int turn_of(const Context *c, const MicroBatch *batch)
{
    const Graph *g = c->plan->graph;
    for (int i = 0; i < g->node_count; ++i)
        if (g->node[i].spec.synced) return batch->micro / c->plan->shape.dp;
    return batch->micro;
}

/* Returns true if a fault of this node would come before the fault found so far. */
static bool earlier(const StepFault *f, const Context *c, bool backward, int node,
                    const MicroBatch *batch)
{
    StepFault here = {
        .node = node, .backward = backward, .micro = batch->micro, .order = turn_of(c, batch)};
    return step_fault_before(&here, f);
}

/* Copies `bytes` bytes to host memory. Owner: the caller. */
static void *host_copy(const Context *c, const void *from, size_t bytes)
{
    void *host = mem_new(bytes + 1);
    context_copy(c, host, from, bytes);
    c->backend->table->sync(c->stream);
    return host;
}

static float value_at(const void *at, DType type, int64_t i)
{
    if (type == DTYPE_BF16) return bf16_value(((const Bf16 *)at)[i]);
    if (type == DTYPE_F16) return f16_value(((const F16 *)at)[i]);
    return ((const float *)at)[i];
}

static bool all_finite(const void *at, DType type, int64_t from, int64_t count)
{
    for (int64_t i = from; i < from + count; ++i)
        if (!isfinite(value_at(at, type, i))) return false;
    return true;
}

static void set_fault(StepFault *f, const Context *c, bool backward, int node, int param,
                      const MicroBatch *batch)
{
    f->node = node;
    f->param = param;
    f->backward = backward;
    f->micro = batch->micro;
    f->order = turn_of(c, batch);
    f->sample_count = 0;
}

/* Checks a tensor of the micro-batch, sample by sample. In every layout the samples follow each
 * other in memory. */
static void look_at_samples(StepFault *f, const Context *c, bool backward, int node,
                            const void *tensor, Desc desc, const MicroBatch *batch)
{
    bool is_first = true;
    if (!tensor || desc.dtype == DTYPE_I32 || !earlier(f, c, backward, node, batch)) return;
    int64_t each = desc_elements(desc) / desc.shape.dim[0];
    void *host = host_copy(c, tensor, desc_bytes(desc));
    for (int row = 0; row < batch->rows; ++row) {
        if (all_finite(host, desc.dtype, row * each, each)) continue;
        if (is_first) set_fault(f, c, backward, node, -1, batch);
        is_first = false;
        if (f->sample_count < FAULT_SAMPLES) f->sample[f->sample_count] = batch->sample[row];
        ++f->sample_count;
    }
    mem_free(&host);
}

static void look_at_weights(StepFault *f, const Context *c, const OpRun *run, int node,
                            const MicroBatch *batch)
{
    const Node *n = &c->plan->graph->node[node];
    for (int k = 0; k < n->op->spec.w_count; ++k) {
        bool frozen = c->plan->graph->param[n->param[k]].frozen;
        if (frozen || !run->dw[k] || !earlier(f, c, true, node, batch)) continue;
        void *host = host_copy(c, run->dw[k], (size_t)n->op->w_elements[k] * sizeof(float));
        if (!all_finite(host, DTYPE_F32, 0, n->op->w_elements[k]))
            set_fault(f, c, true, node, n->param[k], batch);
        mem_free(&host);
    }
}

/* Updates the largest loss of a sample (StepFault.largest). */
static void look_at_losses(StepFault *f, const Context *c, int node, const OpRun *run,
                           const MicroBatch *batch)
{
    const Op *op = c->plan->graph->node[node].op;
    int64_t lines = desc_elements(op->spec.y) / LOSS_COLUMNS;
    int64_t each = lines / c->plan->graph->input.shape.dim[0];
    void *host = host_copy(c, run->y, desc_bytes(op->spec.y));
    for (int row = 0; row < batch->rows; ++row) {
        double sum = 0;
        for (int64_t i = row * each; i < (row + 1) * each; ++i)
            sum += (double)value_at(host, DTYPE_F32, i * LOSS_COLUMNS);
        sum /= (double)each;
        if (f->largest_sample >= 0 && !(sum > f->largest)) continue;
        f->largest = sum;
        f->largest_sample = batch->sample[row];
    }
    mem_free(&host);
}

void probe_action(StepFault *f, const Context *c, const ChunkRun *chunk, const Slot *slot,
                  const Action *a, const MicroBatch *batch)
{
    const OpRun *run = &slot->run[a->index];
    int number = chunk->plan->run[a->index].node;
    const OpSpec *spec = &c->plan->graph->node[number].op->spec;
    if (a->kind == ACTION_FORWARD) {
        look_at_samples(f, c, false, number, run->y, spec->y, batch);
        if (number == c->plan->graph->loss_node) look_at_losses(f, c, number, run, batch);
    }
    if (a->kind == ACTION_BACKWARD || a->kind == ACTION_BACKWARD_WEIGHT)
        look_at_weights(f, c, run, number, batch);
    if (a->kind == ACTION_BACKWARD || a->kind == ACTION_BACKWARD_DATA)
        for (int k = 0; k < spec->x_count; ++k)
            if (spec->need_dx[k])
                look_at_samples(f, c, true, number, run->dx[k], spec->x[k], batch);
}
