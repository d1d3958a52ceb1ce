/* Copies the statistics of the loss to the host and adds up the statistics of all stages. Also
 * checks gradients for overflow. */
#include "step_report.h"

#include <string.h>

/* index of StepBlock.overflow in the host's copy, after the metrics */
enum { STAT_OVERFLOW = METRIC_COUNT };
_Static_assert(sizeof(StepBlock) <= FLAT_PUT, "a step's numbers and requests are put at once");
_Static_assert((int)STAT_OVERFLOW < (int)METRIC_PAD,
               "the overflow flag has a place after the metrics");

static size_t stats_bytes(int places)
{
    return (size_t)places * METRIC_PAD * sizeof(float);
}

static int slot_count(const Plan *plan)
{
    int count = 0;
    for (int c = 0; c < plan->chunk_count; ++c) count += plan->chunk[c].slots;
    return count;
}

void step_report_init(StepReport *r, const Context *context, SlotMemory *memory)
{
    const Plan *plan = context->plan;
    const Graph *g = plan->graph;
    int64_t columns = shape_count(g->node[g->loss_node].op->spec.y.shape);
    *r = (StepReport){.context = context,
                      .rows_per_sample = columns / g->input.shape.dim[0] / LOSS_COLUMNS,
                      .block = context_alloc(context, sizeof *r->block),
                      .metrics = context_alloc(context, stats_bytes(slot_count(plan))),
                      .host = backend_host_new(context->backend, stats_bytes(2))};
    for (int i = 0; i < 2; ++i)
        r->arrived[i] = context->backend->table->event_new(context->backend);
    float *at = r->metrics;
    for (int c = 0; c < plan->chunk_count; ++c)
        for (int s = 0; s < plan->chunk[c].slots; ++s, at += METRIC_PAD)
            memory->chunk[c].slot[s].metrics = at;
}

void step_report_fini(StepReport *r)
{
    if (!r->context) return;
    context_release(r->context, r->block, sizeof *r->block);
    context_release(r->context, r->metrics, stats_bytes(slot_count(r->context->plan)));
    backend_host_free(r->context->backend, r->host, stats_bytes(2));
    for (int i = 0; i < 2; ++i)
        if (r->arrived[i]) r->context->backend->table->event_free(&r->arrived[i]);
}

void step_report_begin(StepReport *r, const StepValues *values)
{
    StepBlock block = {.numbers = {.step = values->step, .loss_factor = values->scale}};
    memcpy(block.requests, r->requests, sizeof r->requests);
    r->context->backend->table->flat->put(r->context->stream, r->block, &block, sizeof block);
    memset(r->requests, 0, sizeof r->requests);
    ++r->steps;
}

void step_report_loss(const StepReport *r, const SlotMemory *memory, const ChunkRun *chunk,
                      Slot *slot, int rows)
{
    const Context *c = r->context;
    if (!context_has_loss(c, chunk->plan)) return;
    c->backend->table->flat->loss_sums(c->stream, slot->metrics, slot_loss(memory, chunk, slot)->y,
                                       rows * r->rows_per_sample);
}

void step_report_copy(const StepReport *r, const Slot *slot, int micro, float *place)
{
    context_copy(r->context, place, slot->metrics, METRIC_PAD * sizeof *place);
    if (micro == 0)
        context_copy(r->context, place + METRIC_STOP, r->block->requests,
                     sizeof r->block->requests);
}

/* If replicas shard (plan->zero), the last replica has the sums. */
float *step_report_sum(const StepReport *r, const GradSync *sync)
{
    const Plan *plan = r->context->plan;
    if (plan->zero && r->context->grid->dp_rank != plan->shape.dp - 1) return NULL;
    return grad_sum(sync, plan->metrics_offset);
}

/* Returns the host's copy of the statistics of the step that is `behind` steps before the last one.
 * *arrived: the event that is recorded when they have arrived. */
static float *stats_of(const StepReport *r, int behind, Event **arrived)
{
    int at = (int)((r->steps - 1 - behind) % 2);
    *arrived = r->arrived[at];
    return r->host + (int64_t)at * METRIC_PAD;
}

/* Checks the sums in this rank's shard, tensor by tensor. The padding between tensors is not
 * checked, because it may contain values that another bucket of an earlier step has left in the
 * ring. */
static void find_not_finite(const StepReport *r, const GradSync *sync)
{
    const Context *c = r->context;
    const Plan *plan = c->plan;
    for (int i = 0; i < plan->graph->param_count; ++i) {
        int64_t first, count;
        if (plan->gradient_offset[i] < 0) continue;
        plan_shard(plan, i, c->grid->dp_rank, &first, &count);
        if (count == 0) continue;
        c->backend->table->flat->find_not_finite(c->stream, &r->block->overflow,
                                                 grad_sum(sync, plan->gradient_offset[i] + first),
                                                 count);
    }
}

/* Waits until the host has the statistics of the step that is `behind` steps before the last one,
 * and returns them. */
static const float *stats_await(const StepReport *r, int behind)
{
    Event *arrived;
    const float *stats = stats_of(r, behind, &arrived);
    const BackendTable *table = r->context->backend->table;
    if (table->event_sync) table->event_sync(arrived);
    return stats;
}

/* Returns true if any rank has found an overflow; each rank may have checked only a part of the
 * gradients. Collective on the grid. */
static bool anyone_overflowed(const StepReport *r)
{
    int64_t ranks = stats_await(r, 0)[STAT_OVERFLOW] > 0;
    world_allreduce(r->context->grid->world, &ranks, 1);
    return ranks > 0;
}

void step_report_end(StepReport *r, const GradSync *sync)
{
    const Context *c = r->context;
    bool finds = r->finds_overflow;
    Event *arrived;
    float *to = stats_of(r, 0, &arrived), *sum = step_report_sum(r, sync);
    if (finds) find_not_finite(r, sync);
    if (sum) context_copy(c, to, sum, sizeof r->sums);
    if (finds) context_copy(c, to + STAT_OVERFLOW, &r->block->overflow, sizeof *to);
    c->backend->table->event_record(arrived, c->stream);
    r->overflow = finds && anyone_overflowed(r);
}

/* Adds the metrics of all stages: the stage with the loss has the statistics, and every stage may
 * have set values (executor_request). */
static void add_stages(StepReport *r)
{
    const Grid *grid = r->context->grid;
    int stages = grid->shape.pp;
    float *all = mem_new((size_t)stages * sizeof r->sums);
    world_allgather(&grid->pp_world, r->sums, sizeof r->sums, all);
    for (int m = 0; m < METRIC_COUNT; ++m) {
        r->sums[m] = 0;
        for (int s = 0; s < stages; ++s) r->sums[m] += all[s * METRIC_COUNT + m];
    }
    mem_free(&all);
}

const float *step_report_read(StepReport *r, int behind)
{
    const Plan *plan = r->context->plan;
    memcpy(r->sums, stats_await(r, behind), sizeof r->sums);
    if (plan->zero)
        world_bcast(&r->context->grid->dp_world, r->sums, sizeof r->sums, plan->shape.dp - 1);
    if (plan->shape.pp > 1) add_stages(r);
    return r->sums;
}
