/* The input ring has the micro-batches of data that have been acquired from a source and not
 * released yet. Sources deliver data in host memory. If operations cannot read host memory, each
 * place of the ring has a copy on the device, made on a separate stream. On the device, the copy
 * waits for the work that last read the place, and new work waits for the copy. The host waits only
 * before it releases a batch to its source, until the copy of that batch is done. That copy began
 * when the ring last used the place, so the wait is short. */
#include "input_ring.h"

static Status next_batch(void *user, const MicroBatch **batch, double *wait_s)
{
    return loader_next(user, batch, wait_s);
}

static void release(void *user)
{
    loader_release(user);
}

BatchSource loader_source(Loader *loader)
{
    return (BatchSource){.user = loader, .next = next_batch, .release = release};
}

int input_place(const InputRing *ring, int micro)
{
    return (ring->base + micro) % ring->size;
}

const Input *input_of(const InputRing *ring, int micro)
{
    return &ring->input[input_place(ring, micro)];
}

void input_restart(InputRing *ring)
{
    ring->base = input_place(ring, ring->next);
    ring->first = ring->next = 0;
}

/* Returns the bytes of a micro-batch's labels; 0 if the loss does not read labels. */
static size_t labels_bytes(const Plan *plan)
{
    const Graph *g = plan->graph;
    if (op_info(g->node[g->loss_node].spec.kind)->reads != READS_LABELS) return 0;
    return (size_t)loss_labels(&g->node[g->loss_node].spec) * sizeof(int32_t);
}

/* Returns the bytes of a micro-batch's targets; 0 if the loss does not read targets. */
static size_t targets_bytes(const Plan *plan)
{
    const Graph *g = plan->graph;
    if (op_info(g->node[g->loss_node].spec.kind)->reads != READS_TARGETS) return 0;
    return (size_t)shape_count(g->node[g->logits_node].spec.y.shape) * sizeof(float);
}

/* Returns the bytes of the weights of one sample's targets. */
static size_t weights_bytes(const Plan *plan)
{
    return targets_bytes(plan) / (size_t)plan->graph->input.shape.dim[0];
}

/* Returns the bytes of the weights of a micro-batch's targets; 0 if all samples have the same
 * weights. */
static size_t own_weights_bytes(const Plan *plan)
{
    return plan->graph->weights_vary ? targets_bytes(plan) : 0;
}

/* Bytes of the arrays of BoxTargets; all 0 if the loss does not read boxes. */
typedef struct BoxBytes {
    size_t start, row, matches;
} BoxBytes;

static BoxBytes box_bytes(const Plan *plan)
{
    const Graph *g = plan->graph;
    const OpSpec *loss = &g->node[g->loss_node].spec;
    if (op_info(loss->kind)->reads != READS_BOXES) return (BoxBytes){0};
    return (BoxBytes){.start = (size_t)(g->input.shape.dim[0] + 1) * sizeof(int32_t),
                      .row = (size_t)(g->box_rows + 1) * BOX_NUMBERS * sizeof(float),
                      .matches = (size_t)(loss->x_count + 1) * sizeof(int64_t)};
}

/* Returns the bytes of a micro-batch's sample numbers; 0 if no operation reads them. */
static size_t samples_bytes(const Plan *plan)
{
    const Graph *g = plan->graph;
    bool read = false;
    for (int i = 0; i < g->node_count; ++i)
        read = read || op_info(g->node[i].spec.kind)->reads == READS_SAMPLES;
    return !read ? 0 : (size_t)plan->graph->input.shape.dim[0] * sizeof(int64_t);
}

void input_ring_init(InputRing *ring, const Context *context, int size)
{
    Backend *backend = context->backend;
    const BackendTable *t = backend->table;
    *ring = (InputRing){
        .context = context, .size = size, .input = mem_new((size_t)size * sizeof *ring->input)};
    if (t->host_memory) return;
    ring->copies = t->stream_new(backend);
    ring->weights = t->alloc(backend, weights_bytes(context->plan));
    for (int i = 0; i < size; ++i) {
        Input *in = &ring->input[i];
        in->data = t->alloc(backend, desc_bytes(context->plan->graph->input));
        in->labels = t->alloc(backend, labels_bytes(context->plan));
        in->targets = t->alloc(backend, targets_bytes(context->plan));
        in->weights = t->alloc(backend, own_weights_bytes(context->plan));
        in->sample = t->alloc(backend, samples_bytes(context->plan));
        const BoxBytes boxes = box_bytes(context->plan);
        in->box_start = t->alloc(backend, boxes.start);
        in->box_row = t->alloc(backend, boxes.row);
        in->matches = t->alloc(backend, boxes.matches);
        in->copied = t->event_new(backend);
        in->used = t->event_new(backend);
    }
}

void input_ring_fini(InputRing *ring)
{
    const Context *c = ring->context;
    /* set-up may have failed before input_ring_init */
    if (!c) return;
    for (int i = 0; i < ring->size; ++i) {
        Input *in = &ring->input[i];
        context_release(c, in->data, desc_bytes(c->plan->graph->input));
        context_release(c, in->labels, labels_bytes(c->plan));
        context_release(c, in->targets, targets_bytes(c->plan));
        context_release(c, in->weights, own_weights_bytes(c->plan));
        context_release(c, in->sample, samples_bytes(c->plan));
        const BoxBytes boxes = box_bytes(c->plan);
        context_release(c, in->box_start, boxes.start);
        context_release(c, in->box_row, boxes.row);
        context_release(c, in->matches, boxes.matches);
        if (in->copied) c->backend->table->event_free(&in->copied);
        if (in->used) c->backend->table->event_free(&in->used);
    }
    context_release(c, ring->weights, weights_bytes(c->plan));
    if (ring->copies) c->backend->table->stream_free(&ring->copies);
    mem_free(&ring->input);
}

static const void *host_data(const MicroBatch *batch)
{
    return batch->tokens ? (const void *)batch->tokens : batch->x;
}

static void copy_in(const InputRing *ring, void *device, const void *host, size_t bytes)
{
    if (device && host) ring->context->backend->table->copy(ring->copies, device, host, bytes);
}

static void copy_boxes(const InputRing *ring, Input *in)
{
    const BoxBytes bytes = box_bytes(ring->context->plan);
    const int64_t samples = ring->context->plan->graph->input.shape.dim[0];
    const size_t rows = (size_t)in->batch->box_start[samples];
    copy_in(ring, in->box_start, in->batch->box_start, bytes.start);
    copy_in(ring, in->box_row, in->batch->box_row, rows * BOX_NUMBERS * sizeof(float));
    copy_in(ring, in->matches, in->batch->matches, bytes.matches);
}

static void copy_weights(InputRing *ring, const Input *in)
{
    const Plan *plan = ring->context->plan;
    const float *weights = in->batch->target_weights;
    if (in->batch->weights_stride > 0) {
        copy_in(ring, in->weights, weights, own_weights_bytes(plan));
    } else if (weights && weights != ring->weights_of) {
        ring->weights_of = weights;
        copy_in(ring, ring->weights, weights, weights_bytes(plan));
    }
}

static void copy_batch(InputRing *ring, Input *in)
{
    const Plan *plan = ring->context->plan;
    const BackendTable *t = ring->context->backend->table;
    t->event_wait(in->used, ring->copies);
    copy_in(ring, in->data, host_data(in->batch), desc_bytes(plan->graph->input));
    copy_in(ring, in->labels, in->batch->labels, labels_bytes(plan));
    copy_in(ring, in->targets, in->batch->targets, targets_bytes(plan));
    copy_weights(ring, in);
    copy_in(ring, in->sample, in->batch->sample, samples_bytes(plan));
    if (in->batch->box_start) copy_boxes(ring, in);
    t->event_record(in->copied, ring->copies);
    t->event_wait(in->copied, ring->context->stream);
}

static void release_batch(const InputRing *ring, Input *in)
{
    if (!in->acquired) return;
    ring->context->backend->table->event_sync(in->copied);
    in->source.release(in->source.user);
    in->acquired = false;
}

Status input_take(InputRing *ring, const BatchSource *source, int micro, double *wait_s)
{
    while (ring->next <= micro) {
        if (ring->next - ring->first == ring->size)
            return fail(ERR_BUG, "more micro-batches are needed at a time than were planned");
        Input *in = &ring->input[input_place(ring, ring->next)];
        Phase outer = phase_enter(PHASE_DATA);
        release_batch(ring, in);
        Status st = source->next(source->user, &in->batch, wait_s);
        if (st == OK && !in->batch) st = fail(ERR_BUG, "the data ended inside a step");
        if (st == OK) {
            in->source = *source;
            in->acquired = ring->copies != NULL;
            if (ring->copies) copy_batch(ring, in);
        }
        phase_enter(outer);
        TRY(st);
        ++ring->next;
    }
    return OK;
}

void input_return(InputRing *ring, const BatchSource *source, const int *last_task, int end)
{
    for (; ring->first < ring->next && last_task[ring->first] < end; ++ring->first) {
        if (ring->copies)
            ring->context->backend->table->event_record(
                ring->input[input_place(ring, ring->first)].used, ring->context->stream);
        else
            source->release(source->user);
    }
}

/* Releases batches in order, the oldest first. */
void input_settle(InputRing *ring)
{
    input_restart(ring);
    for (int i = 0; i < ring->size; ++i) release_batch(ring, &ring->input[input_place(ring, i)]);
}

void input_bind(const InputRing *ring, ChunkRun *chunk, Slot *slot, int micro,
                const StepValues *values, const StepNumbers *numbers)
{
    const Input *in = input_of(ring, micro);
    const MicroBatch *batch = in->batch;
    bool host_memory = ring->context->backend->table->host_memory;
    const void *data = host_memory ? host_data(batch) : in->data;
    const float *weights = batch->weights_stride > 0 ? in->weights : ring->weights;
    slot->empty = batch->rows == 0;
    for (int i = 0; i < chunk->plan->run_count; ++i) {
        const RunOffsets *at = &chunk->plan->run[i];
        OpRun *run = &slot->run[i];
        run->sample_count = batch->rows;
        run->training = values->training;
        run->sample = host_memory ? batch->sample : in->sample;
        run->step = values->step;
        run->labels = host_memory ? batch->labels : in->labels;
        run->labels_other = host_memory ? batch->labels_other : NULL;
        run->label_share = batch->label_share;
        run->targets = host_memory ? batch->targets : in->targets;
        run->target_weights =
            host_memory || !batch->target_weights ? batch->target_weights : weights;
        run->weights_stride = batch->weights_stride;
        run->boxes = host_memory ? (BoxTargets){batch->box_start, batch->box_row, batch->matches}
                                 : (BoxTargets){in->box_start, in->box_row, in->matches};
        run->bag = batch->bag;
        run->loss_factor = values->scale;
        run->numbers = host_memory ? NULL : numbers;
        for (int k = 0; k < SPEC_INPUTS; ++k)
            if (at->x[k] == OFFSET_INPUT) run->x[k] = data;
        if (at->y == OFFSET_INPUT) run->y = (void *)(uintptr_t)data;
    }
}
