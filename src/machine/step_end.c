/* Computes the end of a step: sums over replicas, then updates. Sums between nodes run while
 * backward passes still compute; sums on one node do not. */
#include "private.h"

/* The stage whose end is computed. */
typedef struct StageOf {
    const Machine *machine;
    const ForecastOf *of;
    Level level;
    const ScheduleReport *report;
    int stage;
    SumPlaces places;
} StageOf;

static const Plan *plan_of(const StageOf *s)
{
    return s->of->plan[s->stage];
}

/* Returns the end of the stage's last task. */
static double last_end(const StageOf *s)
{
    const Schedule *schedule = s->of->schedule;
    double end = 0;
    for (int i = 0; i < schedule->count[s->stage]; ++i) {
        double task = s->report->span[s->stage][i].end;
        if (task > end) end = task;
    }
    return end;
}

/* Returns the span of the last task that computes a chunk's gradients of weights. */
static ScheduleSpan last_backward(const StageOf *s, int chunk)
{
    const Schedule *schedule = s->of->schedule;
    TaskKind kind = schedule->split ? TASK_BACKWARD_WEIGHT : TASK_BACKWARD;
    ScheduleSpan last = {0, 0};
    for (int i = 0; i < schedule->count[s->stage]; ++i) {
        const Task *task = &schedule->task[s->stage][i];
        if (task->kind == kind && task->chunk == chunk) last = s->report->span[s->stage][i];
    }
    return last;
}

/* Sets part[b] to the fraction of last_backward's task after which bucket b is complete. */
static Status bucket_parts(const StageOf *s, const ChunkPlan *chunk, double *part)
{
    bool split = s->of->schedule->split;
    const ChunkOf c = {s->machine, s->of, plan_of(s), chunk, s->level};
    double time = 0, *all = &time;
    for (Pass p = PASS_BACKWARD; p < PASSES; ++p)
        for (int i = 0; i < chunk->pass[p].count; ++i) {
            const Action *a = &chunk->pass[p].action[i];
            if (split && p == PASS_BACKWARD) continue;
            TRY(add_action(&c, a, all, all));
            if (a->kind == ACTION_BUCKET) part[a->index] = time;
        }
    for (int b = 0; b < chunk->buckets.count; ++b) part[b] = time > 0 ? part[b] / time : 1;
    return OK;
}

/* Computes the seconds of one sum of a bucket, within nodes and between them. collect: values are
 * summed; spread: sums are distributed. docs/zero.md has the numbers of messages of both. */
static Status sum_s(const StageOf *s, double elements, bool collect, bool spread, double *seconds)
{
    const Plan *plan = plan_of(s);
    Link link = s->machine->network;
    link.s_per_byte *= s->places.sharers;
    SumShape shape = {.ranks = plan->shape.dp,
                      .width = s->places.width,
                      .arena_elements = plan->micro_grad_elements,
                      .elements = (int64_t)elements,
                      .collect = collect,
                      .spread = spread,
                      .push = collect && plan_shards_gradients(plan)};
    TRY(sum_on_node(s->machine, s->of, s->places.width, elements * sizeof(float), seconds));
    *seconds += sum_cost(&shape, sum_way(&shape, s->of->sums), link).seconds;
    return OK;
}

/* Computes the time of the sums of a stage whose replicas are on one node. The ranks' own cores
 * add, so this time is not hidden behind backward passes. */
static Status sums_on_node(const StageOf *s, double *seconds)
{
    const Plan *plan = plan_of(s);
    *seconds = 0;
    for (int c = 0; plan->shape.dp > 1 && c < plan->chunk_count; ++c)
        for (int b = 0; b < plan->chunk[c].buckets.count; ++b) {
            double one, bytes = (double)plan->chunk[c].buckets.elements[b] * sizeof(float);
            TRY(sum_on_node(s->machine, s->of, plan->shape.dp, bytes, &one));
            *seconds += one;
        }
    return OK;
}

/* The sums between nodes of one stage, which the network carries one after the other. */
typedef struct Carried {
    /* time from which the network is free; seconds of all sums that can run during the step;
     * seconds of all-gathers after the update */
    double free_at, during_s, after_s;
} Carried;

/* Adds the sums of a chunk. A sum begins when its bucket is complete in the last backward pass.
 * Sharded gradients are also sent to their owners after each earlier micro-batch. */
static Status carry_chunk(const StageOf *s, const ChunkPlan *chunk, Carried *carried)
{
    const Plan *plan = plan_of(s);
    int count = chunk->buckets.count;
    bool back = !plan->zero;
    int pushes = plan_shards_gradients(plan) ? s->of->micros : 1;
    double *part = mem_new(((size_t)count + 1) * sizeof *part);
    ScheduleSpan last = last_backward(s, chunk->chunk);
    Status st = bucket_parts(s, chunk, part);
    for (int b = 0; st == OK && b < count; ++b) {
        double one, gather = 0, elements = (double)chunk->buckets.elements[b];
        double ready = last.start + part[b] * (last.end - last.start);
        st = sum_s(s, elements, true, back, &one);
        if (st == OK && !back) st = sum_s(s, elements, false, true, &gather);
        if (ready > carried->free_at) carried->free_at = ready;
        carried->free_at += one;
        carried->during_s += one * pushes;
        carried->after_s += gather;
    }
    mem_free(&part);
    return st;
}

/* Computes the time from the end of the stage's last task until its sums between nodes are
 * complete. */
static Status sums_between_nodes(const StageOf *s, double end, double *seconds)
{
    const Plan *plan = plan_of(s);
    Carried carried = {0};
    TRY(network_known(s->machine, s->of));
    /* buckets are filled from the last chunk to the first */
    for (int c = plan->chunk_count - 1; c >= 0; --c) TRY(carry_chunk(s, &plan->chunk[c], &carried));
    double busy = carried.during_s - end;
    double exposed = carried.free_at > end ? carried.free_at - end : 0;
    *seconds = (busy > exposed ? busy : exposed) + carried.after_s;
    return OK;
}

/* Returns the number of trained parameters that a rank of the stage updates. */
static double updated_elements(const Plan *plan)
{
    double elements = (double)plan->trained_elements;
    return plan->zero ? elements / plan->shape.dp : elements;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

Status step_end(const Machine *m, const ForecastOf *of, Level level, const ScheduleReport *report,
                StepEnd *end)
{
    double summed = report->makespan, updated = report->makespan;
    for (int stage = 0; stage < of->schedule->shape.stages; ++stage) {
        const Plan *plan = of->plan[stage];
        StageOf s = {m, of, level, report, stage, sum_places(m, plan->shape, stage)};
        double sums = 0, tasks = last_end(&s);
        TRY(s.places.sharers > 0 ? sums_between_nodes(&s, tasks, &sums) : sums_on_node(&s, &sums));
        summed = larger(summed, tasks + sums);
        updated =
            larger(updated, tasks + sums + updated_elements(plan) * time_at(&m->update_s, level));
    }
    *end = (StepEnd){.sums_s = summed - report->makespan, .update_s = updated - summed};
    return OK;
}
