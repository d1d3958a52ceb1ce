/* A step's statistics, and its end: sums awaited, statistics of all stages put together, running statistics moved. Figures stay in
 * the backend's memory until somebody asks for them. */
#include "executor.h"

#include <string.h>

static int slot_count(const Executor *e)
{
    int count = 0;
    for (int c = 0; c < e->plan->chunk_count; ++c) count += e->plan->chunk[c].slots;
    return count;
}

static size_t step_stats_bytes(int places)
{
    return (size_t)places * METRIC_PAD * sizeof(float);
}

void metrics_new(Executor *e)
{
    const BackendTable *t = e->backend->table;
    e->block = t->alloc(e->backend, sizeof *e->block);
    e->step_stats = t->alloc(e->backend, step_stats_bytes(slot_count(e)));
    e->step_stats_host = backend_host_new(e->backend, step_stats_bytes(2));
    for (int i = 0; i < 2; ++i) e->figured[i] = t->event_new(e->backend);
    float *at = e->step_stats;
    for (int c = 0; c < e->plan->chunk_count; ++c)
        for (int s = 0; s < e->plan->chunk[c].slots; ++s, at += METRIC_PAD)
            e->chunk[c].slot[s].metrics = at;
}

void metrics_free(Executor *e)
{
    const BackendTable *t = e->backend->table;
    if (e->block) t->release(e->backend, e->block, sizeof *e->block);
    if (e->step_stats) t->release(e->backend, e->step_stats, step_stats_bytes(slot_count(e)));
    if (e->step_stats_host) backend_host_free(e->backend, e->step_stats_host, step_stats_bytes(2));
    for (int i = 0; i < 2; ++i)
        if (e->figured[i]) t->event_free(&e->figured[i]);
    capture_drop(&e->statistics, e->backend);
}

void metrics_take(Executor *e, const ChunkRun *chunk, Slot *slot, int rows)
{
    int loss_node = e->plan->graph->loss;
    if (loss_node < chunk->plan->first || loss_node >= chunk->plan->last) return;
    e->backend->table->flat->loss_sums(e->stream, slot->metrics, columns_of(e, chunk, slot),
                                       rows * e->columns_per_sample / LOSS_COLUMNS);
}

_Static_assert(METRIC_SAVE == METRIC_STOP + 1, "what is asked lies side by side");

void metrics_put(Executor *e, const Slot *slot, int micro, float *place)
{
    const BackendTable *t = e->backend->table;
    t->copy(e->stream, place, slot->metrics, METRIC_PAD * sizeof *place);
    if (micro == 0)
        t->copy(e->stream, place + METRIC_STOP, e->block->asked, sizeof e->block->asked);
}

void step_begin(Executor *e, const RunOf *of)
{
    StepBlock block = {.numbers = {.step = of->step, .loss_scale = of->scale},
                       .asked = {e->asked[0], e->asked[1]}};
    e->backend->table->flat->put(e->stream, e->block, &block, sizeof block);
    executor_ask(e, false, false);
    ++e->steps;
}

static float *step_stats_of(const Executor *e, int behind, Event **there)
{
    int at = (int)((e->steps - 1 - behind) % 2);
    *there = e->figured[at];
    return e->step_stats_host + (int64_t)at * METRIC_PAD;
}

/* Where replicas share out, the last one has the sums. */
float *metrics_sum(const Executor *e)
{
    const Plan *plan = e->plan;
    int rank = e->grid->dp_rank;
    if (plan->zero && rank != plan->shape.dp - 1) return NULL;
    return e->level[0] + plan_sum_at(plan, plan->metrics_at, rank);
}

/* In what this rank has of the sums. Between tensors there may lie what another bucket left in a ring, a step before. */
static void find_overflow(Executor *e)
{
    const Plan *plan = e->plan;
    int rank = e->grid->dp_rank;
    for (int i = 0; e->options.finds_overflow && i < plan->graph->param_count; ++i) {
        int64_t first, count;
        if (plan->gradient_at[i] < 0) continue;
        plan_share(plan, i, rank, &first, &count);
        if (count == 0) continue;
        const float *sum = e->level[0] + plan_sum_at(plan, plan->gradient_at[i] + first, rank);
        e->backend->table->flat->find_overflow(e->stream, &e->block->overflow, sum, count);
    }
}

static void step_stats_copy(Executor *e)
{
    const BackendTable *t = e->backend->table;
    Event *there;
    float *to = step_stats_of(e, 0, &there), *sum = metrics_sum(e);
    if (sum) t->copy(e->stream, to, sum, sizeof e->metrics);
    if (e->options.finds_overflow)
        t->copy(e->stream, to + STAT_OVERFLOW, &e->block->overflow, sizeof *to);
    t->event_record(there, e->stream);
}

/* The host's wait for the figures of a step. */
static const float *step_stats_await(const Executor *e, int behind)
{
    Event *there;
    const float *step_stats = step_stats_of(e, behind, &there);
    if (e->backend->table->event_sync) e->backend->table->event_sync(there);
    return step_stats;
}

/* Only the stage with the loss has statistics, but every stage may ask for something. */
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

const float *executor_metrics(Executor *e, int behind)
{
    memcpy(e->metrics, step_stats_await(e, behind), sizeof e->metrics);
    if (e->plan->zero)
        world_bcast(&e->grid->dp_world, e->metrics, sizeof e->metrics, e->plan->shape.dp - 1);
    metrics_join(e);
    return e->metrics;
}

/* A rank may have a part of the gradients only. Collective on the grid. */
static bool anyone_overflowed(Executor *e)
{
    const World *world = e->grid->world;
    float mine = step_stats_await(e, 0)[STAT_OVERFLOW], most = mine;
    float *all = mem_new((size_t)world->size * sizeof *all);
    world_gather(world, &mine, sizeof mine, all);
    for (int r = 0; r < world->size; ++r) most = all[r] > most ? all[r] : most;
    mem_free(&all);
    return most > 0;
}

bool executor_overflowed(const Executor *e)
{
    return e->overflow;
}

typedef struct Moving {
    Executor *e;
    float micros; /* that the sums are of */
} Moving;

/* running = (1 - momentum) running + momentum * mean of the micro-batches' values. */
static void move_statistics(void *user)
{
    const Moving *m = user;
    Executor *e = m->e;
    const Graph *g = e->plan->graph;
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
        e->backend->table->flat->scale_add(e->stream, value, momentum / m->micros, sum,
                                           1 - momentum, count);
    }
}

static bool has_statistics(const Executor *e)
{
    const Graph *g = e->plan->graph;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].info.buffer && e->plan->value_at[i] >= 0) return true;
    return false;
}

void step_finish(Executor *e, const RunOf *of)
{
    Phase outer = phase_enter(PHASE_SUM);
    Moving moving = {e, of->micros > 0 ? (float)of->micros : 1};
    bool whole = of->micros == e->plan->schedule->shape.micros * e->plan->shape.dp;
    collective_wait(e, comm_push_wait, e->comm->pushes);
    comm_wait(e->comm);
    group_sum(e);
    ties_sum(e);
    find_overflow(e);
    step_stats_copy(e);
    e->overflow = e->options.finds_overflow && anyone_overflowed(e);
    if (e->overflow) {
        /* they stay as they are */
    } else if (has_statistics(e) && whole) {
        capture_run(&e->statistics, e->backend, move_statistics, &moving);
    } else {
        move_statistics(&moving);
    }
    phase_enter(outer);
}
