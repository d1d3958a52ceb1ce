/* Micro-batches of data while they are out of the loader: a ring from the first task that needs one to the last. Data
 * arrives in host memory; a backend with memory of its own gets a copy of it, on a stream of its own: a place's copy waits for
 * the work that read what lay there, the work for its copy, and the host for neither, but for a copy that was begun a
 * whole ring earlier, before the loader may have the memory back. */
#include "executor.h"

static Status next_batch(void *user, const Batch **batch, double *wait_s)
{
    return loader_next(user, batch, wait_s);
}

static void release(void *user)
{
    loader_return(user);
}

BatchSource loader_source(Loader *loader)
{
    return (BatchSource){.user = loader, .next = next_batch, .release = release};
}

int held_place(const Executor *e, int micro)
{
    return (e->held_base + micro) % e->held_room;
}

const Held *held_of(const Executor *e, int micro)
{
    return &e->held[held_place(e, micro)];
}

void held_restart(Executor *e)
{
    e->held_base = held_place(e, e->held_next);
    e->held_first = e->held_next = 0;
}

/* Bytes of what a micro-batch has beside its input: one of labels and targets, and the samples' numbers. */
static size_t labels_bytes(const Executor *e)
{
    const Graph *g = e->plan->graph;
    if (g->node[g->loss].spec.kind == OP_MSE_LOSS) return 0;
    return (size_t)(shape_count(g->node[g->loss].spec.y.shape) / LOSS_COLUMNS) * sizeof(int32_t);
}

static size_t targets_bytes(const Executor *e)
{
    const Graph *g = e->plan->graph;
    if (g->node[g->loss].spec.kind != OP_MSE_LOSS) return 0;
    return (size_t)shape_count(g->node[g->logits].spec.y.shape) * sizeof(float);
}

/* Dropout asks for the samples' numbers, and nobody else. */
static size_t samples_bytes(const Executor *e)
{
    const Graph *g = e->plan->graph;
    bool read = false;
    for (int i = 0; i < g->node_count; ++i) read = read || g->node[i].spec.kind == OP_DROPOUT;
    return !read ? 0 : (size_t)e->plan->graph->input.shape.dim[0] * sizeof(int64_t);
}

void held_new(Executor *e)
{
    const BackendTable *t = e->backend->table;
    e->held = mem_new((size_t)e->held_room * sizeof *e->held);
    if (t->host_memory) return;
    e->copies = t->stream_new(e->backend);
    for (int i = 0; i < e->held_room; ++i) {
        Held *h = &e->held[i];
        h->data = t->alloc(e->backend, desc_bytes(e->plan->graph->input));
        h->labels = t->alloc(e->backend, labels_bytes(e));
        h->targets = t->alloc(e->backend, targets_bytes(e));
        h->sample = t->alloc(e->backend, samples_bytes(e));
        h->copied = t->event_new(e->backend);
        h->used = t->event_new(e->backend);
    }
}

void held_free(Executor *e)
{
    const BackendTable *t = e->backend->table;
    for (int i = 0; e->held && i < e->held_room; ++i) {
        Held *h = &e->held[i];
        if (h->data) t->release(e->backend, h->data, desc_bytes(e->plan->graph->input));
        if (h->labels) t->release(e->backend, h->labels, labels_bytes(e));
        if (h->targets) t->release(e->backend, h->targets, targets_bytes(e));
        if (h->sample) t->release(e->backend, h->sample, samples_bytes(e));
        if (h->copied) t->event_free(&h->copied);
        if (h->used) t->event_free(&h->used);
    }
    if (e->copies) t->stream_free(&e->copies);
    mem_free(&e->held);
}

static const void *host_data(const Batch *batch)
{
    return batch->tokens ? (const void *)batch->tokens : batch->x;
}

static void copy_in(Executor *e, void *device, const void *host, size_t bytes)
{
    if (device && host) e->backend->table->copy(e->copies, device, host, bytes);
}

static void copy_batch(Executor *e, Held *h)
{
    const BackendTable *t = e->backend->table;
    t->event_wait(h->used, e->copies);
    copy_in(e, h->data, host_data(h->batch), desc_bytes(e->plan->graph->input));
    copy_in(e, h->labels, h->batch->labels, labels_bytes(e));
    copy_in(e, h->targets, h->batch->targets, targets_bytes(e));
    copy_in(e, h->sample, h->batch->sample, samples_bytes(e));
    t->event_record(h->copied, e->copies);
    t->event_wait(h->copied, e->stream);
}

static void give_batch_back(Executor *e, Held *h)
{
    if (!h->acquired) return;
    e->backend->table->event_sync(h->copied);
    h->source.release(h->source.user);
    h->acquired = false;
}

Status held_take(Executor *e, const BatchSource *source, int micro, double *wait_s)
{
    while (e->held_next <= micro) {
        if (e->held_next - e->held_first == e->held_room)
            return fail(ERR_BUG, "more micro-batches are needed at a time than were planned");
        Held *h = &e->held[held_place(e, e->held_next)];
        Phase outer = phase_enter(PHASE_DATA);
        give_batch_back(e, h);
        TRY(source->next(source->user, &h->batch, wait_s));
        if (!h->batch) return fail(ERR_BUG, "the data ended inside a step");
        h->source = *source;
        h->acquired = e->copies != NULL;
        if (e->copies) copy_batch(e, h);
        phase_enter(outer);
        ++e->held_next;
    }
    return OK;
}

void held_return(Executor *e, const BatchSource *source)
{
    Held *h = &e->held[held_place(e, e->held_first++)];
    if (e->copies)
        e->backend->table->event_record(h->used, e->stream);
    else
        source->release(source->user);
}

/* The oldest first. */
void executor_settle(Executor *e)
{
    held_restart(e);
    for (int i = 0; i < e->held_room; ++i) give_batch_back(e, &e->held[held_place(e, i)]);
}

void held_bind(Executor *e, ChunkRun *chunk, Slot *slot, int micro, const RunOf *of)
{
    const Held *h = held_of(e, micro);
    const Batch *batch = h->batch;
    bool host = e->backend->table->host_memory;
    const void *data = host ? host_data(batch) : h->data;
    slot->empty = batch->rows == 0;
    for (int i = 0; i < chunk->plan->run_count; ++i) {
        const RunPlace *at = &chunk->plan->run[i];
        OpRun *run = &slot->run[i];
        run->rows = batch->rows;
        run->training = of->training;
        run->sample = host ? batch->sample : h->sample;
        run->step = of->step;
        run->labels = host ? batch->labels : h->labels;
        run->targets = host ? batch->targets : h->targets;
        run->loss_scale = of->scale;
        run->numbers = host ? NULL : &e->block->numbers;
        for (int k = 0; k < OP_INPUTS; ++k) {
            if (at->x[k] == PLACE_INPUT) run->x[k] = data;
            if (at->x[k] >= PLACE_BEFORE) run->x[k] = executor_place(e, chunk, slot, at->x[k]);
        }
        if (at->y == PLACE_INPUT) run->y = (void *)(uintptr_t)data;
        if (at->y >= PLACE_BEFORE) run->y = executor_place(e, chunk, slot, at->y);
    }
}

/* count floats in host memory: themselves, or a copy in *host. */
static const float *host_read(Executor *e, const float *from, float *host, int64_t count)
{
    if (e->backend->table->host_memory) return from;
    e->backend->table->copy(e->stream, host, from, (size_t)count * sizeof *host);
    e->backend->table->sync(e->stream);
    return host;
}

static const OpRun *loss_run(const Executor *e, const ChunkRun *chunk, const Slot *slot)
{
    return &slot->run[e->plan->graph->loss - chunk->plan->first];
}

const float *columns_of(const Executor *e, const ChunkRun *chunk, const Slot *slot)
{
    return loss_run(e, chunk, slot)->y;
}

const float *columns_read(Executor *e, const ChunkRun *chunk, const Slot *slot, int64_t rows)
{
    return host_read(e, columns_of(e, chunk, slot), e->columns_host, rows * e->columns_per_sample);
}

const float *executor_logits(Executor *e)
{
    const Graph *g = e->plan->graph;
    const ChunkRun *chunk = &e->chunk[e->plan->chunk_count - 1];
    if (g->loss < chunk->plan->first || g->loss >= chunk->plan->last) return NULL;
    Desc x = g->node[g->loss].op->spec.x[0];
    int64_t count = shape_count(x.shape);
    const void *logits = loss_run(e, chunk, &chunk->slot[0])->x[0];
    bool host = e->backend->table->host_memory;
    if (host && x.dtype == DTYPE_F32) return logits;
    if (!e->logits_host) e->logits_host = mem_new((size_t)count * sizeof *e->logits_host);
    if (!host) {
        e->backend->table->copy(e->stream, e->logits_host, logits, desc_bytes(x));
        e->backend->table->sync(e->stream);
        logits = e->logits_host;
    }
    /* From the end, as they may lie in the same place. */
    int64_t width = x.shape.dim[x.shape.ndim - 1], row = desc_row(x);
    for (int64_t i = count - 1; i >= 0 && x.dtype != DTYPE_F32; --i) {
        int64_t at = i / width * row + i % width;
        e->logits_host[i] = x.dtype == DTYPE_F16 ? f16_value(((const F16 *)logits)[at])
                                                 : bf16_value(((const Bf16 *)logits)[at]);
    }
    return e->logits_host;
}
