/* A step's figures, and its end: sums awaited, figures of all stages put together, running statistics moved. */
#include "executor.h"

#include <math.h>
#include <string.h>

void metrics_take(Executor *e, const ChunkRun *chunk, Slot *slot, int rows)
{
    int loss_node = e->plan->graph->loss;
    memset(slot->metrics, 0, sizeof slot->metrics);
    if (rows == 0 || loss_node < chunk->plan->first || loss_node >= chunk->plan->last) return;
    const float *columns = columns_read(e, chunk, slot, rows);
    int64_t lines = rows * e->columns_per_sample / LOSS_COLUMNS;
    double loss = 0;
    for (int64_t i = 0; i < lines; ++i) {
        loss += (double)columns[i * LOSS_COLUMNS];
        slot->metrics[METRIC_TOP1] += columns[i * LOSS_COLUMNS + 1] < 1;
        slot->metrics[METRIC_TOP5] += columns[i * LOSS_COLUMNS + 1] < 5;
    }
    slot->metrics[METRIC_LOSS] = (float)loss;
    slot->metrics[METRIC_ROWS] = (float)lines;
    slot->metrics[METRIC_MICROS] = 1;
}

void metrics_put(Executor *e, const Slot *slot, float *place)
{
    float metrics[METRIC_PAD];
    memcpy(metrics, slot->metrics, sizeof metrics);
    metrics[METRIC_SIGNAL] = e->signal;
    e->signal = 0;
    e->backend->table->copy(e->stream, place, metrics, sizeof metrics);
    if (!e->backend->table->host_memory) e->backend->table->sync(e->stream);
}

/* Where replicas share out, the last one has the sums. */
static void metrics_read(Executor *e)
{
    const Plan *plan = e->plan;
    int last = plan->shape.dp - 1;
    if (!plan->zero || e->grid->dp_rank == last) {
        int64_t at = plan_sum_at(plan, plan->metrics_at, e->grid->dp_rank);
        e->backend->table->copy(e->stream, e->metrics, e->level[0] + at, sizeof e->metrics);
        e->backend->table->sync(e->stream);
    }
    if (plan->zero) world_bcast(&e->grid->dp_world, e->metrics, sizeof e->metrics, last);
}

/* Only the stage with the loss has figures, but every stage may have a signal. */
static void metrics_join(Executor *e)
{
    int stages = e->grid->shape.pp;
    if (stages == 1) return;
    float *all = mem_new((size_t)stages * sizeof e->metrics);
    world_gather(&e->grid->pp_world, e->metrics, sizeof e->metrics, all);
    for (int m = 0; m < METRIC_COUNT; ++m) {
        e->metrics[m] = 0;
        for (int s = 0; s < stages; ++s) e->metrics[m] += all[s * METRIC_COUNT + m];
    }
    mem_free(&all);
}

/* running = (1 - momentum) running + momentum * mean of the micro-batches' values. */
static void move_statistics(Executor *e)
{
    const Graph *g = e->plan->graph;
    float micros = fmaxf(e->metrics[METRIC_MICROS], 1);
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        int64_t at = e->plan->value_at[i];
        if (!p->info.buffer || at < 0) continue;
        float momentum = g->node[p->node].spec.momentum;
        int64_t first, count;
        plan_share(e->plan, i, e->grid->dp_rank, &first, &count);
        if (count == 0) continue;
        at += first;
        const float *sum = e->level[0] + plan_sum_at(e->plan, at, e->grid->dp_rank);
        float *value = e->params + plan_held_at(e->plan, at, e->grid->dp_rank);
        e->backend->table->flat->scale_add(e->stream, value, momentum / micros, sum, 1 - momentum,
                                           count);
    }
}

void step_finish(Executor *e)
{
    Phase outer = phase_enter(PHASE_SUM);
    number_wait(e, comm_push_wait, e->comm->pushes);
    comm_wait(e->comm);
    metrics_read(e);
    metrics_join(e);
    group_sum(e);
    ties_sum(e);
    move_statistics(e);
    phase_enter(outer);
}
