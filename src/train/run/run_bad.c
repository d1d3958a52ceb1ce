/* Handles bad steps (train.on_bad): ends the run and explains the fault; or skips the step; or
 * rolls back to the newest checkpoint and repeats the steps after it. If the repetition gives the
 * same bits, the data or the model is at fault; otherwise the machine is. All decisions use numbers
 * that all ranks have. */
#include "run.h"

#include "../step/explain.h"
#include "../mode/sync_points.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

/* more than this many consecutive skips end the run */
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
    r->bad.from = -1;
    r->bad.first = r->trainer->step;
    if (r->config->train.on_bad == ON_BAD_ROLLBACK) executor_hash_steps(r->trainer->executor, true);
}

void run_bad_end(Run *r)
{
    mem_free(&r->bad.mark);
    mem_free(&r->bad.what);
}

/* ---- results of steps ---- */

/* Stores the result of a step, and drops results of steps that no rollback can repeat. */
static void add_mark(RunBad *b, int64_t last_step, StepMark mark)
{
    int64_t old = last_step - b->first;
    if (old > 0 && old <= b->marks) {
        b->marks -= old;
        memmove(b->mark, b->mark + old, (size_t)b->marks * sizeof *b->mark);
        b->first = last_step;
    }
    if (b->marks == b->room) {
        b->room = 2 * b->room + 64;
        b->mark = mem_resize(b->mark, (size_t)b->room * sizeof *b->mark);
    }
    b->mark[b->marks++] = mark;
}

typedef struct Differs {
    bool hash;
    char host[HOST_BYTES];
} Differs;

/* Names the ranks whose own part of the step has different bits; if no rank has, the fault may be
 * on any rank. */
static void name_ranks(const Run *r, const Differs *all)
{
    char who[512] = "";
    int used = 0, named = 0;
    for (int i = 0; i < r->world->size && used < (int)sizeof who; ++i)
        if (all[i].hash)
            used += snprintf(who + used, sizeof who - (size_t)used, "%srank %d on %s",
                             named++ ? ", " : "", i, all[i].host);
    observer_break(r->observer);
    log_warn("step %lld: the second time other bits%s%s: memory or a processor is at fault there; "
             "take %s out",
             (long long)r->trainer->step, named ? " come from " : ", from one of the ranks", who,
             named > 1 ? "these nodes" : "the node");
}

/* Compares a repeated step with its first result, which the new one replaces. */
static void compare(Run *r, StepMark mark)
{
    RunBad *b = &r->bad;
    StepMark *then = &b->mark[r->trainer->step - 1 - b->first];
    Differs mine = {.hash = mark.hash != then->hash};
    int64_t ranks = mine.hash || memcmp(&mark.loss, &then->loss, sizeof mark.loss) != 0;
    *then = mark;
    if (b->differed) return;
    world_add(r->world, &ranks, 1);
    b->differed = ranks > 0;
    if (!b->differed) return;
    Differs *all = mem_new((size_t)r->world->size * sizeof *all);
    host_name(mine.host, sizeof mine.host);
    world_gather(r->world, &mine, sizeof mine, all);
    name_ranks(r, all);
    mem_free(&all);
}

static void mark_step(Run *r, const StepResult *result)
{
    RunBad *b = &r->bad;
    StepMark mark = {executor_step_hash(r->trainer->executor), (float)result->loss};
    if (r->config->train.on_bad != ON_BAD_ROLLBACK) return;
    if (b->until == 0)
        add_mark(b, r->last ? r->last_step : 0, mark);
    else
        compare(r, mark);
}

/* ---- finding faults ---- */

/* Checks the trainer's state if that is due. Only if the state is bad, the gradient is checked: a
 * gradient that is not finite would explain it. */
static Status find_bad_state(Run *r, StepResult *result, RunDue due)
{
    Trainer *t = r->trainer;
    int64_t every = r->config->train.check_every;
    bool now = every > 0 && t->step % every == 0 && sync_point_at(t, t->step);
    if (!due.evaluation && !due.save && !due.request && !now) return OK;
    Status st = due.save ? train_check_and_copy(t) : train_check(t);
    if (st == OK) return OK;
    char *why = mem_text(fail_message());
    if ((due.evaluation || due.save) && !result->skipped && !isfinite(train_grad_norm(t))) {
        result->bad = BAD_GRADIENT;
        result->bad_step = t->step;
    }
    st = fail(ERR_DATA, "after step %lld %s", (long long)t->step, why);
    mem_free(&why);
    return st;
}

/* Returns OK, or ERR_DATA with a message about the fault: in the step's numbers, or in the state
 * that it left. The state is checked even after a skipped step, because all replicas must have the
 * same before a save; such a fault cannot be skipped. */
static Status find_bad(Run *r, StepResult *result, RunDue due)
{
    bool looks = !result->bad || result->skipped;
    Status st = looks ? find_bad_state(r, result, due) : OK;
    long long step = result->bad_step;
    if (st != OK && result->skipped) result->bad = BAD_NOTHING;
    switch (result->bad) {
    case BAD_NOTHING:
        return st;
    case BAD_LOSS:
        return fail(ERR_DATA, "step %lld: the loss is %g", step,
                    text_unsigned_nan(result->bad_loss));
    case BAD_SPIKE:
        return fail(ERR_DATA,
                    "step %lld: the loss is %g, a spike: %g deviations above the last %d losses "
                    "would be %g",
                    step, result->bad_loss, r->config->train.spike, CHECKPOINT_LOSSES,
                    result->most);
    case BAD_GRADIENT:
        return fail(ERR_DATA, "step %lld: a gradient is not finite", step);
    }
    return OK;
}

/* ---- reactions ---- */

/* Ends the run. words: description of the fault. */
static Status stop(Run *r, const StepResult *result, const char *words, const char *more)
{
    char why[EXPLAIN_BYTES] = "";
    Trainer *t = r->trainer;
    if (result->bad && result->bad_step == t->step) TRY(explain(t, result, why));
    fail(ERR_DATA, "%s%s%s%s", words, *why ? ": " : "", why, more);
    return run_bad_advice(ERR_DATA);
}

static Status skip(Run *r, const StepResult *result, const char *words)
{
    const Trainer *t = r->trainer;
    if (!result->bad || !result->skipped || result->bad_step != t->step)
        return stop(r, result, words, "");
    if (++r->bad.in_a_row > SKIPS_IN_A_ROW)
        return stop(r, result, words, "; the 10 steps before it were bad and skipped, too");
    observer_break(r->observer);
    log_warn("%s: skipped (%lld so far)", words, (long long)t->skipped);
    return OK;
}

static Status load_state(Run *r)
{
    Trainer *t = r->trainer;
    if (r->last) {
        TRY(run_load(r, r->last));
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

/* Rolls back to the newest checkpoint, after waiting for a running save. ERR_DATA of that save is
 * not reported: it has found the same fault. */
static Status roll_back(Run *r, const StepResult *result, const char *words)
{
    RunBad *b = &r->bad;
    int64_t bad = result->bad ? result->bad_step : r->trainer->step;
    Status st = run_save_wait(r);
    if (st != OK && st != ERR_DATA) return st;
    int64_t to = r->last ? r->last_step : 0;
    bool again = b->from >= 0 && b->from == to;
    if (again)
        return stop(r, result, words,
                    "; and there is no newer checkpoint than the one that the "
                    "run has gone back to once");
    observer_break(r->observer);
    log_warn("%s: going back to step %lld%s%s, and making the steps behind it once more", words,
             (long long)to, r->last ? ", " : "", r->last ? r->last : "");
    TRY(load_state(r));
    b->from = to;
    b->until = bad;
    b->differed = false;
    b->what = mem_text(words);
    r->trainer->checks_gradients = true;
    return OK;
}

/* Ends the repetition: all steps up to the bad one have been repeated, and none is bad. */
static void end_replay(Run *r)
{
    RunBad *b = &r->bad;
    observer_break(r->observer);
    if (b->differed)
        log_warn("step %lld is good this time: the run goes on", (long long)b->until);
    else
        log_warn("step %lld is good this time, from the same state (%s): memory or a processor is "
                 "at fault; the run goes on",
                 (long long)b->until, b->what);
    b->until = 0;
    b->marks = r->trainer->step - b->first;
    r->trainer->checks_gradients = false;
    mem_free(&b->what);
}

bool run_repeats(const Run *r)
{
    return r->trainer->step < r->bad.until;
}

Status run_judge(Run *r, StepResult *result, RunDue due, bool *back)
{
    RunBad *b = &r->bad;
    int mode = r->config->train.on_bad;
    Status st = find_bad(r, result, due);
    char *words = mem_text(st == OK ? "" : fail_message());
    *back = false;
    mark_step(r, result);
    if (st == OK) {
        b->in_a_row = 0;
        if (b->until > 0 && r->trainer->step >= b->until) end_replay(r);
    } else if (mode == ON_BAD_SKIP) {
        st = skip(r, result, words);
    } else if (mode == ON_BAD_STOP) {
        st = stop(r, result, words, "");
    } else if (b->until > 0) {
        st = stop(r, result, words,
                  b->differed ? "; and it was bad before with other bits: memory or a processor is "
                                "at fault"
                              : "; the second time, with the same bits: it is the data or the "
                                "model, not the machine");
    } else {
        st = roll_back(r, result, words);
        *back = st == OK;
    }
    mem_free(&words);
    return st;
}
