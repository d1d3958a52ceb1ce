/* Runs a step (forward and backward, the rest of the sums of gradients, and the update of running
 * statistics) and an evaluation. tasks.c runs the tasks. */
#include "tasks.h"

/* ---- running statistics ---- */

/* Argument of move_statistics. */
typedef struct Moving {
    Executor *e;
    const StepBatch *batch;
} Moving;

/* Returns the number of micro-batches in a batch norm's sum of statistics. A micro-batch with a
 * single value for each channel has no variance: the operation returns zeros, and the micro-batch
 * is not counted. Only the last micro-batch of the batch can have a single value. With synced
 * statistics (micro-batches are then dealt to the replicas in turns, DEAL_TURNS) it has a single
 * value only if it is the first of its turn, so that no other replica has samples in this turn. */
static int counted_micro_batches(const Moving *m, const OpSpec *spec)
{
    const Shape x = spec->x[0].shape;
    const StepBatch *batch = m->batch;
    int micro_batches = batch->micro_batches > 0 ? batch->micro_batches : 1;
    bool one = batch->last_single && shape_count(x) == x.dim[0] * x.dim[1];
    bool alone = !spec->synced || (micro_batches - 1) % m->e->context.plan->shape.dp == 0;
    return one && alone ? micro_batches - 1 : micro_batches;
}

/* Floats of running statistics that move by the same factors. */
typedef struct StatisticRun {
    /* the statistics, and the sum of the micro-batches' values */
    float *value;
    const float *sum;
    int64_t n;
    /* factors of `value` and of `sum` */
    float keep, share;
} StatisticRun;

/* Returns whether the run b continues a: only padding lies in between, which is 0 in both arenas.
 * With ZeRO the sums outside of this rank's shards are undefined, so that runs are not joined. */
static bool continues(const Plan *plan, const StatisticRun *a, const StatisticRun *b)
{
    if (plan->zero || a->n == 0) return false;
    const int64_t distance = arena_align(a->n);
    return b->value - a->value == distance && b->sum - a->sum == distance && a->keep == b->keep &&
           a->share == b->share;
}

static void move_run(const Context *c, const StatisticRun *run)
{
    if (run->n > 0)
        c->backend->table->flat->scale_add(c->stream, run->value, run->share, run->sum, run->keep,
                                           run->n);
}

/* Sets each running statistic to (1 - momentum) * its value + momentum * mean of the micro-batches'
 * values. Neighbours are moved as one: a GPU would take longer to launch the work of one layer than
 * to do it. */
static void move_statistics(void *user)
{
    const Moving *m = user;
    const Context *c = &m->e->context;
    const Graph *g = c->plan->graph;
    StatisticRun run = {0};
    for (int i = 0; i < g->param_count; ++i) {
        const Param *p = &g->param[i];
        int64_t at = c->plan->param_offset[i], first, count;
        if (!p->info.is_statistic || p->frozen || at < 0) continue;
        plan_shard(c->plan, i, c->grid->dp_rank, &first, &count);
        const OpSpec *spec = &g->node[p->node].spec;
        int micro_batches = counted_micro_batches(m, spec);
        if (count == 0 || micro_batches == 0) continue;
        float momentum = spec->momentum;
        const StatisticRun next = {
            .value = m->e->params.params + plan_local_offset(c->plan, at + first, c->grid->dp_rank),
            .sum = grad_sum(&m->e->gradients, at + first),
            .n = count,
            .keep = 1 - momentum,
            .share = momentum / (float)micro_batches};
        if (continues(c->plan, &run, &next)) {
            run.n = next.value + next.n - run.value;
            continue;
        }
        move_run(c, &run);
        run = next;
    }
    move_run(c, &run);
}

static bool has_statistics(const Plan *plan)
{
    const Graph *g = plan->graph;
    for (int i = 0; i < g->param_count; ++i)
        if (g->param[i].info.is_statistic && plan->gradient_offset[i] >= 0) return true;
    return false;
}

/* Captures the work for a full batch, which is the same at every step. */
void executor_move_statistics(Executor *e, const StepBatch *batch)
{
    const Plan *plan = e->context.plan;
    Moving moving = {e, batch};
    bool full = batch->micro_batches == plan->schedule->shape.micro_batches * plan->shape.dp &&
                !batch->last_single;
    Phase outer = phase_enter(PHASE_SUM);
    if (has_statistics(plan)) {
        if (full)
            capture_run(&e->captures.statistics, e->context.backend, move_statistics, &moving);
        else
            move_statistics(&moving);
    }
    phase_enter(outer);
}

/* ---- a step ---- */

Status executor_forward_backward(Executor *e, const BatchSource *source, const StepBatch *batch,
                                 double *wait_s)
{
    TaskRun p = {.schedule = e->context.plan->schedule,
                 .moves = &e->links.moves,
                 .last_task = e->context.plan->last_task,
                 .source = source,
                 .wait_s = wait_s,
                 .values = {.training = true,
                            .step = batch->step,
                            .scale = batch->scale,
                            .micro_batches = batch->micro_batches}};
    step_report_begin(&e->report, &p.values);
    e->gradients.hash = 0;
    return tasks_run(e, &p);
}

void executor_reduce(Executor *e)
{
    Phase outer = phase_enter(PHASE_SUM);
    grad_sync_wait(&e->gradients);
    if (e->group)
        tensor_group_sum(e->group, &e->gradients, step_report_sum(&e->report, &e->gradients));
    links_sum_ties(&e->links, &e->gradients);
    step_report_end(&e->report, &e->gradients);
    phase_enter(outer);
}

Status executor_evaluate(Executor *e, const BatchSource *source,
                         void (*visit)(void *user, const MicroBatch *batch, const float *results),
                         void *user)
{
    TaskRun p = {.schedule = e->evaluation,
                 .moves = &e->links.evaluation_moves,
                 .last_task = e->evaluation_last,
                 .source = source,
                 .visit = visit,
                 .user = user};
    /* the batches of a step and those of an evaluation belong to different sources */
    input_settle(&e->input);
    Status st = tasks_run(e, &p);
    input_settle(&e->input);
    return st;
}
