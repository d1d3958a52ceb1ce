/* The loop over a plan's actions, and the arenas it runs in. All pointers are computed once, when it is made; a micro-batch
 * only sets what belongs to it (data, labels, the gradient arena it writes). Sums leave bucket by bucket while backward
 * still runs. Data arrives in host memory; a backend with memory of its own gets a copy of it. */
#include "pipeline.h"

#include <math.h>
#include <string.h>

struct Executor {
    const Plan *plan; /* borrowed, like backend and comm */
    Backend *backend;
    Comm *comm;
    ExecutorOptions options;
    Stream *stream;
    float *params;    /* owned arenas of the backend's memory */
    float *level[33]; /* gradient arenas; level[0] is the Comm's */
    char *activations, *cache, *workspace;
    OpRun *run;              /* owned, one a node */
    const void ***data_slot; /* owned: where a pointer to the data must be put */
    int data_slots;
    void *data; /* device copy of the data; NULL where host memory serves */
    int32_t *labels;
    float *targets, *columns, *columns_host;
    int64_t columns_per_sample, micro_batch;
    float metrics[METRIC_COUNT], signal;
};

static void *arena_new(Executor *e, size_t bytes)
{
    return bytes ? e->backend->table->alloc(e->backend, bytes) : NULL;
}

static void arena_free(Executor *e, void *arena, size_t bytes)
{
    if (arena) e->backend->table->release(e->backend, arena, bytes);
}

static void *place(Executor *e, int64_t offset)
{
    return offset >= 0 ? e->activations + offset : NULL;
}

/* Fixes everything of node i's OpRun that no micro-batch changes. */
static void bind_node(Executor *e, int i)
{
    const Graph *g = e->plan->graph;
    const Node *node = &g->node[i];
    const NodePlace *at = &e->plan->place[i];
    OpRun *run = &e->run[i];
    for (int k = 0; k < node->spec.x_count; ++k) {
        int64_t from = node->in[k] >= 0 ? e->plan->place[node->in[k]].y : PLACE_INPUT;
        if (from == PLACE_INPUT)
            e->data_slot[e->data_slots++] = &run->x[k];
        else
            run->x[k] = place(e, from);
        run->dx[k] = place(e, at->dx[k]);
    }
    run->y = place(e, at->y);
    run->dy = place(e, at->dy);
    run->saved = place(e, at->saved);
    run->cache = e->cache ? e->cache + e->plan->cache[i] : NULL;
    run->workspace = e->workspace;
    run->seed = e->options.seed;
    for (int k = 0; k < node->spec.w_count; ++k)
        run->w[k] = e->params + g->param[node->param[k]].offset;
}

static size_t data_bytes(const Executor *e)
{
    return desc_bytes(e->plan->graph->input);
}

static int64_t targets_count(const Executor *e)
{
    return shape_count(e->plan->graph->node[e->plan->graph->logits].spec.y.shape);
}

static void alloc_arenas(Executor *e)
{
    const Plan *plan = e->plan;
    e->params = arena_new(e, plan->param_bytes);
    e->level[0] = e->comm->arena;
    for (size_t k = 1; k < plan->sum_levels; ++k) e->level[k] = arena_new(e, plan->gradient_bytes);
    e->activations = arena_new(e, plan->activation_bytes);
    e->cache = arena_new(e, plan->cache_bytes);
    e->workspace = arena_new(e, plan->workspace_bytes);
    if (e->backend->table->host_memory) return;
    e->data = arena_new(e, data_bytes(e));
    e->labels = arena_new(e, (size_t)e->micro_batch * sizeof(int32_t));
    e->targets = arena_new(e, (size_t)targets_count(e) * sizeof(float));
}

Status executor_new(Executor **out, const Plan *plan, Backend *backend, Comm *comm,
                    ExecutorOptions options)
{
    const Graph *g = plan->graph;
    if (comm->arena_elements < g->arena_elements + METRIC_PAD)
        return fail(ERR_BUG, "the communicator's arena is smaller than the gradients");
    Executor *e = mem_new(sizeof *e);
    *e = (Executor){.plan = plan, .backend = backend, .comm = comm, .options = options};
    e->stream = backend->table->stream(backend);
    e->micro_batch = g->input.shape.dim[0];
    int64_t columns = shape_count(g->node[g->loss].op->spec.y.shape);
    e->columns_per_sample = columns / e->micro_batch;
    e->columns_host = mem_new((size_t)columns * sizeof(float));
    e->run = mem_new((size_t)g->node_count * sizeof *e->run);
    e->data_slot = mem_new((size_t)g->node_count * OP_INPUTS * sizeof *e->data_slot);
    alloc_arenas(e);
    for (int i = 0; i < g->node_count; ++i) bind_node(e, i);
    e->columns = e->run[g->loss].y;
    *out = e;
    return OK;
}

void executor_free(Executor **executor)
{
    Executor *e = *executor;
    if (!e) return;
    const Plan *plan = e->plan;
    arena_free(e, e->params, plan->param_bytes);
    for (size_t k = 1; k < plan->sum_levels; ++k) arena_free(e, e->level[k], plan->gradient_bytes);
    arena_free(e, e->activations, plan->activation_bytes);
    arena_free(e, e->cache, plan->cache_bytes);
    arena_free(e, e->workspace, plan->workspace_bytes);
    arena_free(e, e->data, data_bytes(e));
    arena_free(e, e->labels, (size_t)e->micro_batch * sizeof(int32_t));
    arena_free(e, e->targets, (size_t)targets_count(e) * sizeof(float));
    mem_free(&e->run);
    mem_free(&e->data_slot);
    mem_free(&e->columns_host);
    mem_free(executor);
}

float *executor_params(Executor *e)
{
    return e->params;
}
float *executor_grads(Executor *e)
{
    return e->level[0];
}
void executor_signal(Executor *e, float value)
{
    e->signal += value;
}

void executor_refresh(Executor *e)
{
    const Graph *g = e->plan->graph;
    for (int i = 0; i < g->node_count; ++i) op_refresh(g->node[i].op, &e->run[i]);
}

/* A host pointer, or its copy in the backend's memory. */
static const void *to_device(Executor *e, void *device, const void *host, size_t bytes)
{
    if (!device || !host) return host;
    e->backend->table->copy(e->stream, device, host, bytes);
    return device;
}

static void bind_batch(Executor *e, const Batch *batch, bool training, uint64_t step, float scale)
{
    const Graph *g = e->plan->graph;
    const void *host = batch->tokens ? (const void *)batch->tokens : batch->x;
    const void *data = to_device(e, e->data, host, data_bytes(e));
    size_t label_bytes = (size_t)e->micro_batch * sizeof(int32_t);
    const int32_t *labels = to_device(e, e->labels, batch->labels, label_bytes);
    const float *targets =
        to_device(e, e->targets, batch->targets, (size_t)targets_count(e) * sizeof(float));
    for (int i = 0; i < e->data_slots; ++i) *e->data_slot[i] = data;
    for (int i = 0; i < g->node_count; ++i) {
        OpRun *run = &e->run[i];
        run->rows = batch->rows;
        run->training = training;
        run->sample = batch->sample;
        run->step = step;
        run->labels = labels;
        run->targets = targets;
        run->loss_scale = scale;
        if (e->plan->place[i].y == PLACE_INPUT) run->y = (void *)(uintptr_t)data;
    }
}

static void bind_gradients(Executor *e, float *arena)
{
    const Graph *g = e->plan->graph;
    for (int i = 0; i < g->param_count; ++i)
        e->run[g->param[i].node].dw[g->param[i].slot] = arena + g->param[i].offset;
}

static const float *columns_read(Executor *e, int64_t rows)
{
    size_t bytes = (size_t)(rows * e->columns_per_sample) * sizeof(float);
    if (e->backend->table->host_memory) return e->columns;
    e->backend->table->copy(e->stream, e->columns_host, e->columns, bytes);
    e->backend->table->sync(e->stream);
    return e->columns_host;
}

static void metrics_write(Executor *e, float *arena, int rows)
{
    float metrics[METRIC_PAD] = {0};
    int64_t lines = rows * e->columns_per_sample / LOSS_COLUMNS;
    const float *columns = rows > 0 ? columns_read(e, rows) : NULL;
    double loss = 0;
    for (int64_t i = 0; i < lines; ++i) {
        loss += (double)columns[i * LOSS_COLUMNS];
        metrics[METRIC_TOP1] += columns[i * LOSS_COLUMNS + 1] < 1;
        metrics[METRIC_TOP5] += columns[i * LOSS_COLUMNS + 1] < 5;
    }
    metrics[METRIC_LOSS] = (float)loss;
    metrics[METRIC_ROWS] = (float)lines;
    metrics[METRIC_MICROS] = rows > 0;
    metrics[METRIC_SIGNAL] = e->signal;
    e->signal = 0;
    e->backend->table->copy(e->stream, arena + e->plan->graph->arena_elements, metrics,
                            sizeof metrics);
    if (!e->backend->table->host_memory) e->backend->table->sync(e->stream);
}

static void bucket_join(Executor *e, int bucket, const TreeStep *tree, bool last)
{
    int64_t at = e->plan->buckets.offset[bucket], count = e->plan->buckets.elements[bucket];
    for (int j = 0; j < tree->join_count; ++j) {
        float *to = e->level[tree->to[j]] + at;
        e->backend->table->flat->add(e->stream, to, to, e->level[tree->to[j] + 1] + at, count);
    }
    if (last) comm_sum_begin(e->comm, at, count);
}

static void run_backward(Executor *e, int node)
{
    const Op *op = e->plan->graph->node[node].op;
    op_backward_begin((Op *)op, &e->run[node]);
    op_backward_weight((Op *)op, &e->run[node]);
    op_backward_data((Op *)op, &e->run[node]);
}

static void run_action(Executor *e, const Action *a, const TreeStep *tree, bool last, bool empty)
{
    const FlatTable *flat = e->backend->table->flat;
    if (a->kind == ACTION_BUCKET) {
        bucket_join(e, a->node, tree, last);
    } else if (!empty) {
        float *dst = place(e, a->dst);
        const float *src = place(e, a->src);
        switch (a->kind) {
        case ACTION_FORWARD:
            op_forward(e->plan->graph->node[a->node].op, &e->run[a->node]);
            break;
        case ACTION_BACKWARD:
            run_backward(e, a->node);
            break;
        case ACTION_ADD:
            flat->add(e->stream, dst, dst, src, a->count);
            break;
        case ACTION_COPY:
            e->backend->table->copy(e->stream, dst, src, (size_t)a->count * sizeof *dst);
            break;
        case ACTION_BUCKET:
            break;
        }
    }
    comm_progress(e->comm);
}

void executor_train(Executor *e, const Batch *batch, int micro, uint64_t step, float scale)
{
    const Plan *plan = e->plan;
    TreeStep tree = tree_step(micro, e->options.micros);
    bool last = micro == e->options.micros - 1, empty = batch->rows == 0;
    float *arena = e->level[tree.write];
    bind_batch(e, batch, true, step, scale);
    bind_gradients(e, arena);
    if (empty) e->backend->table->zero(e->stream, arena, plan->gradient_bytes);
    phase_enter(PHASE_FORWARD);
    for (int i = 0; i < plan->forward_count; ++i)
        run_action(e, &plan->action[i], &tree, last, empty);
    metrics_write(e, arena, batch->rows);
    phase_enter(PHASE_BACKWARD);
    for (int i = plan->forward_count; i < plan->action_count; ++i)
        run_action(e, &plan->action[i], &tree, last, empty);
    phase_enter(PHASE_OTHER);
}

/* running = (1 - momentum) running + momentum * mean of the micro-batches' values. */
static void move_statistics(Executor *e)
{
    const Graph *g = e->plan->graph;
    float micros = fmaxf(e->metrics[METRIC_MICROS], 1);
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        if (!p->info.buffer) continue;
        float momentum = g->node[p->node].spec.momentum;
        e->backend->table->flat->scale_add(e->stream, e->params + p->offset, momentum / micros,
                                           e->level[0] + p->offset, 1 - momentum, p->elements);
    }
}

const float *executor_finish(Executor *e)
{
    phase_enter(PHASE_SUM);
    comm_wait(e->comm);
    e->backend->table->copy(e->stream, e->metrics, e->level[0] + e->plan->graph->arena_elements,
                            sizeof e->metrics);
    e->backend->table->sync(e->stream);
    move_statistics(e);
    phase_enter(PHASE_OTHER);
    return e->metrics;
}

const float *executor_eval(Executor *e, const Batch *batch)
{
    bind_batch(e, batch, false, 0, 0);
    for (int i = 0; i < e->plan->forward_count; ++i)
        op_forward(e->plan->graph->node[e->plan->action[i].node].op,
                   &e->run[e->plan->action[i].node]);
    return columns_read(e, batch->rows);
}
