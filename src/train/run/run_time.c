/* Stops a run when run.max_time has passed, or before its batch job ends. The run then saves as
 * after a signal. Between the decision and the end of the program the run makes some more steps,
 * perhaps an evaluation, and saves. A step, an evaluation and a save are assumed to take as long as
 * earlier ones; the sum of their times is the margin before the job's end. Rank 0 decides, and the
 * other ranks get the decision as a flag in the step's metrics. */
#include "run.h"

#include <math.h>

/* seconds for squeue's answer, the end of the program, and the rest of the job's script */
static const double END_S = 20;
/* assumed speed of the first save on a slow disk, in bytes/s; a save writes the bytes and reads
 * them back */
static const double SAVE_RATE = 50e6;
/* Number of steps that may still run after a check that does not stop the run: one until the next
 * check, one until all ranks have rank 0's decision, and one more on a device. */
enum { STEPS_TO_STOP = 3 };

void run_time_init(Run *r)
{
    if (r->world->rank == 0) job_end_init(&r->time.job);
}

void run_time_fini(Run *r)
{
    if (r->world->rank == 0) job_end_fini(&r->time.job);
}

/* step_s is a maximum that decreases by 2 % per step, so that the effect of a single slow step
 * falls to an eighth in about a hundred steps. */
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

/* Returns the seconds of a pass over the test set; before the first pass, an estimate from the
 * speed of training. */
static double test_pass_s(const Run *r)
{
    const Trainer *t = r->trainer;
    if (r->time.eval_s > 0 || r->rate <= 0) return r->time.eval_s;
    return (double)(t->test_set.samples * t->counted_per_sample) / r->rate;
}

/* Returns the seconds of a save; before the first save, an estimate from its size. */
static double save_s(const Run *r)
{
    const Trainer *t = r->trainer;
    double values = (double)graph_param_elements(t->graph);
    if (r->time.save_s > 0) return r->time.save_s;
    int kinds = 1 + optim_slot_count(t->config) + (t->config->train.ema > 0);
    return values * kinds * sizeof(float) / SAVE_RATE;
}

/* Returns the seconds for which the run may wait for the hook before the run ends: for the running
 * command, for one queued command of each event, and for the command of the event `end`. */
static double hooks_s(const Run *r)
{
    if (!r->hook) return 0;
    int last = run_hook_wants(r, HOOK_END), queued = 0;
    for (int e = 0; e < HOOK_END; ++e) queued += run_hook_wants(r, (HookEvent)e);
    /* + 1: the running command */
    return (last + (queued > 0 ? queued + 1 : 0)) * r->config->run.hook_s;
}

/* Returns the seconds of an evaluation and of the save of best.h5 after it. */
static double evaluation_s(const Run *r)
{
    bool saves = r->config->checkpoint.best && r->trainer->test_set.samples > 0;
    return test_pass_s(r) + (saves ? save_s(r) : 0);
}

/* Returns the seconds that a stop may need. They include two saves, because a save that is running
 * when the run stops must end before the last one begins. */
static double stop_margin_s(const Run *r)
{
    bool evaluates = false;
    for (int i = 1; i <= STEPS_TO_STOP; ++i)
        evaluates = evaluates || run_eval_due(r, r->trainer->step + i);
    return END_S + hooks_s(r) + STEPS_TO_STOP * r->time.step_s + 2 * save_s(r) +
           (evaluates ? evaluation_s(r) : 0);
}

/* Returns true if the run must stop now, and logs the reason. */
static bool must_stop(Run *r)
{
    JobEnd *job = &r->time.job;
    double limit = r->config->run.max_time, now = clock_s(), need = stop_margin_s(r);
    if (limit > 0 && now - clock_begin_s() >= limit) {
        observer_end_line(r->observer);
        log_info("run.max_time: the program has run for %.0f s, so this run stops here",
                 now - clock_begin_s());
        return true;
    }
    job_end_poll(job, need);
    if (!job_end_near(job, need)) return false;
    observer_end_line(r->observer);
    log_info("job %s ends in %.0f s, of which a stop may need %.0f: this run stops here", job->job,
             job->end_s - now, need);
    return true;
}

bool run_time_over(Run *r)
{
    if (r->world->rank != 0) return false;
    r->time.over = r->time.over || must_stop(r);
    return r->time.over;
}
