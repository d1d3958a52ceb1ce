/* Computes the end of a step: sums over replicas, then updates. Sums between nodes run while
 * backward passes still compute (stage_sums.c); sums on one node do not. */
#include "private.h"

/* Returns the end of a stage's last task. */
static double last_end(const Schedule *schedule, const ScheduleReport *report, int stage)
{
    double end = 0;
    for (int i = 0; i < schedule->count[stage]; ++i) {
        double task = report->span[stage][i].end;
        if (task > end) end = task;
    }
    return end;
}

/* Adds to *seconds the time of the sums of a stage whose replicas are on one node. The ranks' own
 * cores add, so sums do not run during backward passes. */
static Status sums_on_node(const Machine *m, const ForecastInput *input, const Plan *plan,
                           double *seconds)
{
    for (int c = 0; plan->shape.dp > 1 && c < plan->chunk_count; ++c)
        for (int b = 0; b < plan->chunk[c].buckets.count; ++b) {
            double one, bytes = (double)plan->chunk[c].buckets.elements[b] * sizeof(float);
            TRY(sum_on_node(m, input, plan->shape.dp, bytes, &one));
            *seconds += one;
        }
    return OK;
}

/* Adds to *seconds the time in which the new parameters of a stage with grid.zero 1 or 2 are
 * gathered from other nodes, after the update. (With grid.zero 3 they are gathered before
 * passes.) */
static Status gathers_between_nodes(const Machine *m, const ForecastInput *input, const Plan *plan,
                                    SumPlaces places, double *seconds)
{
    for (int c = 0; plan->zero && !plan->gathers && c < plan->chunk_count; ++c)
        for (int b = 0; b < plan->chunk[c].buckets.count; ++b) {
            double one, elements = (double)plan->chunk[c].buckets.elements[b];
            TRY(sum_on_node(m, input, places.width, elements * sizeof(float), &one));
            *seconds +=
                one + sum_between_nodes(m, input, plan, places, elements, false, true).seconds;
        }
    return OK;
}

/* Computes the time from tasks_end, the end of a stage's last task, until its sums and the gathers
 * of its new parameters from other nodes are complete. last_sum_end: end of its last sum between
 * nodes. */
static Status sums_of_stage(const Machine *m, const ForecastInput *input, const Plan *plan,
                            double tasks_end, double last_sum_end, double *seconds)
{
    const SumPlaces places = sum_places(m, plan->shape, plan->stage);
    *seconds = last_sum_end > tasks_end ? last_sum_end - tasks_end : 0;
    return places.sharers > 0 ? gathers_between_nodes(m, input, plan, places, seconds)
                              : sums_on_node(m, input, plan, seconds);
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

Status step_end(const Machine *m, const ForecastInput *input, Level level,
                const ScheduleReport *report, const double *last_sum_end, StepEnd *end)
{
    double sums_end = report->makespan, updates_end = report->makespan;
    for (int stage = 0; stage < input->schedule->shape.stages; ++stage) {
        const Plan *plan = input->plan[stage];
        double sums, tasks_end = last_end(input->schedule, report, stage);
        TRY(sums_of_stage(m, input, plan, tasks_end, last_sum_end[stage], &sums));
        double update = updated_elements(plan) * time_at(&m->update_s, level);
        sums_end = larger(sums_end, tasks_end + sums);
        updates_end = larger(updates_end, tasks_end + sums + update);
    }
    *end = (StepEnd){.sums_s = sums_end - report->makespan, .update_s = updates_end - sums_end};
    return OK;
}
