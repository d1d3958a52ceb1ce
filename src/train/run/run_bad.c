/* Handles bad steps (train.on_bad): ends the run and explains the fault, skips the step, or rolls
 * back to the newest checkpoint and repeats the steps after it. If the repeated steps give the same
 * bits, the data or the model is at fault; if they do not, the machine is. All ranks make the same
 * decision, because they have the same numbers. */
#include "run.h"

#include "../step/explain.h"
#include "../mode/sync_points.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* largest number of consecutive bad steps that train.on_bad: skip tolerates */
enum { SKIPS_IN_A_ROW = 10 };

Status run_bad_advice(Status st)
{
    return fail(st,
                "%s; lower optim.lr, set optim.clip, or look at the data with `weft data check`; "
                "the newest checkpoint stays as it is",
                fail_message());
}

void run_bad_begin(Run *r)
{
    r->bad.rollback_step = -1;
    r->bad.first = r->trainer->step;
    if (r->config->train.on_bad == ON_BAD_ROLLBACK) executor_hash_steps(r->trainer->executor, true);
}

void run_bad_end(Run *r)
{
    mem_free(&r->bad.mark);
    mem_free(&r->bad.fault);
}

/* ---- results of steps ---- */

/* Stores the result of a step. last_step: step of the newest checkpoint; results of steps up to it
 * are dropped, because no rollback repeats these steps. */
static void add_mark(RunBad *b, int64_t last_step, StepMark mark)
{
    int64_t old = last_step - b->first;
    if (old > 0 && old <= b->marks) {
        b->marks -= old;
        memmove(b->mark, b->mark + old, (size_t)b->marks * sizeof *b->mark);
        b->first = last_step;
    }
    if (b->marks == b->marks_allocated) {
        b->marks_allocated = 2 * b->marks_allocated + 64;
        b->mark = mem_resize(b->mark, (size_t)b->marks_allocated * sizeof *b->mark);
    }
    b->mark[b->marks++] = mark;
}

typedef struct Differs {
    /* true: the hash of the gradients that this rank adds to the sums differs; false: nothing
     * differs, or only the loss, which is a sum over ranks */
    bool hash;
    char host[HOST_BYTES];
} Differs;

/* Logs the ranks whose gradients have other bits than in the first computation. If only the loss
 * differs, the fault may be on any rank. */
static void log_differing_ranks(const Run *r, const Differs *all)
{
    char ranks[512] = "";
    int used = 0, named = 0;
    for (int i = 0; i < r->world->size && used < (int)sizeof ranks; ++i)
        if (all[i].hash)
            used += snprintf(ranks + used, sizeof ranks - (size_t)used, "%srank %d on %s",
                             named++ ? ", " : "", i, all[i].host);
    observer_end_line(r->observer);
    log_warn("step %lld: its repetition gave other bits on %s%s: memory or a processor is at fault "
             "there; remove %s from the job",
             (long long)r->trainer->step, named ? "" : "an unknown rank", ranks,
             named > 1 ? "these nodes" : "the node");
}

/* Compares the result of a repeated step with its first result, which it then replaces. */
static void compare(Run *r, StepMark mark)
{
    RunBad *b = &r->bad;
    StepMark *before = &b->mark[r->trainer->step - 1 - b->first];
    Differs mine = {.hash = mark.hash != before->hash};
    int64_t ranks = mine.hash || memcmp(&mark.loss, &before->loss, sizeof mark.loss) != 0;
    *before = mark;
    if (b->differed) return;
    world_allreduce(r->world, &ranks, 1);
    b->differed = ranks > 0;
    if (!b->differed) return;
    Differs *all = mem_new((size_t)r->world->size * sizeof *all);
    host_name(mine.host, sizeof mine.host);
    world_allgather(r->world, &mine, sizeof mine, all);
    log_differing_ranks(r, all);
    mem_free(&all);
}

static void mark_step(Run *r, const StepResult *result)
{
    RunBad *b = &r->bad;
    StepMark mark = {executor_step_hash(r->trainer->executor), (float)result->loss};
    if (r->config->train.on_bad != ON_BAD_ROLLBACK) return;
    if (b->repeat_until == 0)
        add_mark(b, r->newest_path ? r->newest_step : 0, mark);
    else
        compare(r, mark);
}

/* ---- finding faults ---- */

/* Checks the trainer's state if a check is due. If the state is bad before an evaluation or a save,
 * also checks the gradient: a gradient that is not finite would be the cause. */
static Status find_bad_state(Run *r, StepResult *result, RunDue due)
{
    Trainer *t = r->trainer;
    int64_t every = r->config->train.check_every;
    bool now = every > 0 && t->step % every == 0 && sync_point_at(t, t->step);
    if (!due.evaluation && !due.save && !due.hook && !now) return OK;
    Status st = due.save ? train_check_and_copy(t) : train_check(t);
    if (st == OK) return OK;
    char *why = mem_text(fail_message());
    if ((due.evaluation || due.save) && !result->skipped && !isfinite(train_grad_norm(t))) {
        result->bad_kind = BAD_GRADIENT;
        result->bad_step = t->step;
    }
    st = fail(ERR_DATA, "after step %lld %s", (long long)t->step, why);
    mem_free(&why);
    return st;
}

/* Returns OK, or ERR_DATA with a message about a fault in the step's numbers or in the state after
 * the step. The state is also checked after a skipped step, because all replicas must have the same
 * state before a save. A fault in the state cannot be skipped. */
static Status find_bad(Run *r, StepResult *result, RunDue due)
{
    bool checks_state = !result->bad_kind || result->skipped;
    Status st = checks_state ? find_bad_state(r, result, due) : OK;
    long long step = result->bad_step;
    if (st != OK && result->skipped) result->bad_kind = BAD_NOTHING;
    switch (result->bad_kind) {
    case BAD_NOTHING:
        return st;
    case BAD_LOSS:
        return fail(ERR_DATA, "step %lld: the loss is %g", step,
                    text_nan_without_sign(result->bad_loss));
    case BAD_SPIKE:
        return fail(ERR_DATA,
                    "step %lld: the loss is %g, a spike: %g deviations above the last %d losses "
                    "would be %g",
                    step, result->bad_loss, r->config->train.spike, CHECKPOINT_LOSSES,
                    result->spike_limit);
    case BAD_GRADIENT:
        return fail(ERR_DATA, "step %lld: a gradient is not finite", step);
    }
    return OK;
}

/* ---- reactions ---- */

/* Returns ERR_DATA with a message, which ends the run. fault: description of the fault. more: text
 * that is appended to the message. */
static Status stop(Run *r, const StepResult *result, const char *fault, const char *more)
{
    char why[EXPLAIN_BYTES] = "";
    Trainer *t = r->trainer;
    if (result->bad_kind && result->bad_step == t->step) TRY(explain(t, result, why));
    fail(ERR_DATA, "%s%s%s%s", fault, *why ? ": " : "", why, more);
    return run_bad_advice(ERR_DATA);
}

/* Lets the run continue after a bad step that made no update. Ends the run after any other fault,
 * or if more than SKIPS_IN_A_ROW such steps follow each other. */
static Status skip(Run *r, const StepResult *result, const char *fault)
{
    const Trainer *t = r->trainer;
    if (!result->bad_kind || !result->skipped || result->bad_step != t->step)
        return stop(r, result, fault, "");
    if (++r->bad.in_a_row > SKIPS_IN_A_ROW) {
        char before[64];
        snprintf(before, sizeof before, "; the %d steps before it were bad and skipped, too",
                 SKIPS_IN_A_ROW);
        return stop(r, result, fault, before);
    }
    observer_end_line(r->observer);
    log_warn("%s: skipped (%lld so far)", fault, (long long)t->skipped);
    return OK;
}

/* Loads the newest checkpoint or, if there is none, sets the trainer back to step 0. Opens the logs
 * again, without the lines of later steps. */
static Status load_newest(Run *r)
{
    Trainer *t = r->trainer;
    if (r->newest_path) {
        TRY(run_load(r, r->newest_path));
    } else {
        train_restart(t);
        TRY(train_init_params(t));
    }
    observer_free(&r->observer);
    Status st = OK;
    if (r->world->rank == 0)
        st = observer_new(&r->observer, r->dir.path, r->dir.lease, t->step, true);
    TRY(status_agree(r->world, st));
    r->tick_s = clock_s();
    return OK;
}

/* Rolls back to the newest checkpoint, after waiting for a running save. Ends the run if the last
 * rollback went to the same checkpoint. ERR_DATA of the save is not reported, because the save has
 * found the same fault. */
static Status roll_back(Run *r, const StepResult *result, const char *fault)
{
    RunBad *b = &r->bad;
    int64_t bad = result->bad_kind ? result->bad_step : r->trainer->step;
    Status st = run_save_wait(r);
    if (st != OK && st != ERR_DATA) return st;
    int64_t to = r->newest_path ? r->newest_step : 0;
    bool again = b->rollback_step >= 0 && b->rollback_step == to;
    if (again)
        return stop(r, result, fault,
                    "; and the run has already rolled back to its newest checkpoint once");
    observer_end_line(r->observer);
    log_warn("%s: going back to step %lld%s%s, and repeating the steps after it", fault,
             (long long)to, r->newest_path ? ", " : "", r->newest_path ? r->newest_path : "");
    TRY(load_newest(r));
    b->rollback_step = to;
    b->repeat_until = bad;
    b->differed = false;
    b->fault = mem_text(fault);
    r->trainer->checks_gradients = true;
    return OK;
}

/* Ends the repetition after all steps up to the bad one have been repeated without a fault. */
static void end_repetition(Run *r)
{
    RunBad *b = &r->bad;
    observer_end_line(r->observer);
    if (b->differed)
        log_warn("step %lld is good this time: the run goes on", (long long)b->repeat_until);
    else
        log_warn("step %lld is good this time, from the same state (%s): memory or a processor is "
                 "at fault; the run goes on",
                 (long long)b->repeat_until, b->fault);
    b->repeat_until = 0;
    b->marks = r->trainer->step - b->first;
    r->trainer->checks_gradients = false;
    mem_free(&b->fault);
}

bool run_repeats(const Run *r)
{
    return r->trainer->step < r->bad.repeat_until;
}

Status run_check_step(Run *r, StepResult *result, RunDue due, bool *rolled_back)
{
    RunBad *b = &r->bad;
    int mode = r->config->train.on_bad;
    Status st = find_bad(r, result, due);
    char *fault = mem_text(st == OK ? "" : fail_message());
    *rolled_back = false;
    mark_step(r, result);
    if (st == OK) {
        b->in_a_row = 0;
        if (b->repeat_until > 0 && r->trainer->step >= b->repeat_until) end_repetition(r);
    } else if (mode == ON_BAD_SKIP) {
        st = skip(r, result, fault);
    } else if (mode == ON_BAD_STOP) {
        st = stop(r, result, fault, "");
    } else if (b->repeat_until > 0) {
        st =
            stop(r, result, fault,
                 b->differed ? "; it was bad the first time, too, but with other bits: memory or a "
                               "processor is at fault"
                             : "; the second time, with the same bits: it is the data or the "
                               "model, not the machine");
    } else {
        st = roll_back(r, result, fault);
        *rolled_back = st == OK;
    }
    mem_free(&fault);
    return st;
}
