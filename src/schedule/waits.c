/* Computes why stages wait, from the makespans of three simulations: all chunks take the same time
 * and messages none; chunks take their own times and messages none; both take their own times. */
#include "private.h"

double schedule_stage_work(const Schedule *schedule, const TaskCost *cost, int stage)
{
    double work = 0;
    for (int k = 0; k < schedule_chunks(schedule); ++k)
        if (schedule_stage(schedule, k) == stage) work += task_cost_passes(&cost[k]);
    return work * schedule->shape.micro_batches;
}

static Status makespan(const Schedule *schedule, const TaskCost *cost, double *time)
{
    ScheduleReport report;
    TRY(schedule_simulate(schedule, cost, &report));
    *time = report.makespan;
    schedule_report_fini(&report);
    return OK;
}

static TaskCost mean_cost(const TaskCost *cost, int chunks)
{
    TaskCost mean = {0};
    for (int k = 0; k < chunks; ++k) {
        mean.forward += cost[k].forward / chunks;
        mean.backward_data += cost[k].backward_data / chunks;
        mean.backward_weight += cost[k].backward_weight / chunks;
    }
    return mean;
}

/* Fills *waits. real_makespan: the makespan with the costs `cost`. */
static Status waits_fill(const Schedule *schedule, const TaskCost *cost, double real_makespan,
                         ScheduleWaits *waits)
{
    const ScheduleShape shape = schedule->shape;
    int chunks = schedule_chunks(schedule);
    double balanced = 0, free_of_messages = 0;
    TaskCost mean = mean_cost(cost, chunks), *changed = mem_new((size_t)chunks * sizeof *changed);
    *waits = (ScheduleWaits){0};
    for (int k = 0; k < chunks; ++k) {
        changed[k] = cost[k];
        changed[k].activations = changed[k].gradients = (MessageCost){0};
    }
    Status st = makespan(schedule, changed, &free_of_messages);
    for (int k = 0; k < chunks; ++k) changed[k] = mean;
    if (st == OK) st = makespan(schedule, changed, &balanced);
    mem_free(&changed);
    if (st != OK) return st;
    waits->work = task_cost_passes(&mean) * shape.chunks_per_stage * shape.micro_batches;
    waits->bubble = balanced - waits->work;
    waits->imbalance = free_of_messages - balanced;
    waits->messages = real_makespan - free_of_messages;
    return OK;
}

Status schedule_waits(const Schedule *schedule, const TaskCost *cost, ScheduleReport *report,
                      ScheduleWaits *waits)
{
    ScheduleReport real;
    TRY(schedule_simulate(schedule, cost, &real));
    Status st = waits_fill(schedule, cost, real.makespan, waits);
    if (st == OK && report)
        *report = real;
    else
        schedule_report_fini(&real);
    return st;
}
