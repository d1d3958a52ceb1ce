/* When a run stops by itself: run.max_time has passed, or the batch job that it is in is about to
 * end. Then it saves as for a signal. How early is known from the run itself: what comes between
 * the decision and the end of the program is steps, perhaps an evaluation, and saves, and they take
 * as long as they took. Rank 0's decision, which travels with a step's sums. */
#include "run.h"

#include <math.h>

/* What a program takes to end, and a job's script after it, and squeue to answer before. */
static const double END_S = 20;
/* Of a first save, a slow disk's: bytes/s, written and read back. */
static const double SAVE_RATE = 50e6;
/* A step's decision is known at its end, on a device a step later, and the last look was a step
 * ago. */
enum { STEPS_TO_STOP = 3 };

void run_time_begin(Run *r)
{
    if (r->world->rank == 0) job_end_init(&r->time.job);
}

void run_time_end(Run *r)
{
    if (r->world->rank == 0) job_end_fini(&r->time.job);
}

/* A step that took long once is forgotten in some hundred. */
void run_time_step(Run *r, double seconds)
{
    r->time.step_s = fmax(seconds, 0.98 * r->time.step_s);
}

void run_time_save(Run *r, double seconds)
{
    r->time.save_s = fmax(r->time.save_s, seconds);
}

void run_time_evaluation(Run *r, double seconds)
{
    r->time.eval_s = fmax(r->time.eval_s, seconds);
}

/* The test set once; before the first one as if its samples were trained on. */
static double pass_s(const Run *r)
{
    const Trainer *t = r->trainer;
    if (r->time.eval_s > 0 || r->rate <= 0) return r->time.eval_s;
    return (double)(t->test_set.samples * t->rows_per_sample) / r->rate;
}

/* Before the first one by what it writes. */
static double save_s(const Run *r)
{
    const Trainer *t = r->trainer;
    double values = (double)graph_param_count(t->graph) * t->shape.tp;
    if (r->time.save_s > 0) return r->time.save_s;
    return values * (1 + optim_slots(t->config)) * sizeof(float) / SAVE_RATE;
}

/* The end waits for the command that runs, for one of each moment that waits, and for its own. */
static double hooks_s(const Run *r)
{
    if (!r->hook) return 0;
    int last = run_hook_wants(r, HOOK_END), before = 0;
    for (int m = 0; m < HOOK_END; ++m) before += run_hook_wants(r, (HookMoment)m);
    return (last + (before > 0 ? before + 1 : 0)) * r->config->run.hook_s;
}

/* An evaluation, and best.h5 behind it. */
static double evaluation_s(const Run *r)
{
    bool saves = r->config->checkpoint.best && r->trainer->test_set.samples > 0;
    return pass_s(r) + (saves ? save_s(r) : 0);
}

/* A save that is due anyhow may come in between. */
static double margin(const Run *r)
{
    bool evaluates = false;
    for (int i = 1; i <= STEPS_TO_STOP; ++i)
        evaluates = evaluates || run_eval_due(r, r->trainer->step + i);
    return END_S + hooks_s(r) + STEPS_TO_STOP * r->time.step_s + 2 * save_s(r) +
           (evaluates ? evaluation_s(r) : 0);
}

static bool decide(Run *r)
{
    JobEnd *job = &r->time.job;
    double most = r->config->run.max_time, now = clock_s(), need = margin(r);
    if (most > 0 && now - clock_begin_s() >= most) {
        observer_break(r->observer);
        log_info("run.max_time: the program has run for %.0f s, so this run stops here",
                 now - clock_begin_s());
        return true;
    }
    job_end_look(job, need);
    if (!job_end_near(job, need)) return false;
    observer_break(r->observer);
    log_info("job %s ends in %.0f s, of which a stop may need %.0f: this run stops here", job->job,
             job->end_s - now, need);
    return true;
}

bool run_time_over(Run *r)
{
    if (r->world->rank != 0) return false;
    r->time.over = r->time.over || decide(r);
    return r->time.over;
}
