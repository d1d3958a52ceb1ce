/* Computes, for the line of a logged step, the time by activity since the previous logged step, as
 * the mean over the ranks. Each rank sends its times with the metrics of the logged step, before
 * that step's work, so they do not include this step. */
#include "run.h"

void run_live_send(Run *r)
{
    const Trainer *t = r->trainer;
    Executor *executor = t->executor;
    if (t->is_first_step || !train_logs_step(t, t->step + 1)) return;
    executor_request(executor, METRIC_TIMED, 1);
    for (int p = 0; p < PHASE_COUNT; ++p) {
        double now_s = phase_s((Phase)p);
        executor_request(executor, METRIC_PHASES + p, (float)(now_s - r->live_from_s[p]));
        r->live_from_s[p] = now_s;
    }
}

void run_live_take(Run *r, const StepResult *result)
{
    double mean_s[PHASE_COUNT];
    if (result->timed_ranks == 0 && !result->logged) return;
    for (int p = 0; p < PHASE_COUNT; ++p)
        mean_s[p] = result->timed_ranks > 0 ? result->summed_phase_s[p] / result->timed_ranks : 0;
    run_lines_of(r, mean_s, r->live_s);
}
