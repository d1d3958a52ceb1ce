/* Repeats the last step with checks of all computed values, to explain a bad step. */
#include "step_loader.h"
#include "../mode/step_mode.h"

/* Replaces *fault on all ranks by the first fault on any rank. Sets its `largest` and
 * `largest_sample` to the largest loss of a sample on any rank. Collective. */
static void join_faults(const Trainer *t, StepFault *fault)
{
    int ranks = t->world->size;
    StepFault *all = mem_new((size_t)ranks * sizeof *all);
    world_allgather(t->world, fault, sizeof *fault, all);
    for (int r = 0; r < ranks; ++r) {
        double largest = fault->largest;
        int64_t sample = fault->largest_sample;
        if (step_fault_before(&all[r], fault)) *fault = all[r];
        bool larger = sample < 0 || all[r].largest > largest;
        if (all[r].largest_sample >= 0 && larger) {
            largest = all[r].largest;
            sample = all[r].largest_sample;
        }
        fault->largest = largest;
        fault->largest_sample = sample;
    }
    mem_free(&all);
}

Status train_repeat_step(Trainer *t, StepFault *fault, double *loss)
{
    int64_t number = t->step;
    executor_release_batches(t->executor);
    step_loader_close(t);
    t->step = number - 1;
    TRY(step_loader_open(t));
    executor_probe(t->executor, fault);
    t->mode->forward_backward(t);
    executor_probe(t->executor, NULL);
    const float *metrics = executor_metrics(t->executor, 0);
    *loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    t->step = t->stats_step = number;
    join_faults(t, fault);
    executor_release_batches(t->executor);
    step_loader_close(t);
    return OK;
}
