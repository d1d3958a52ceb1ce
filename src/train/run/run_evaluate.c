/* Evaluations of a run, and decisions that depend on them: best.h5, the learning rate (plateau),
 * early stopping. All ranks have the same metrics, so they make the same decisions. */
#include "../step/position.h"
#include "run.h"

#include <math.h>

Status run_evaluations_check(const Run *r)
{
    const Trainer *t = r->trainer;
    bool tokens = data_has_tokens(&t->train_set);
    return best_check(r->config, tokens, t->test_set.samples > 0);
}

void run_end_early(Run *r, const char *fmt, ...)
{
    va_list args;
    char why[160];
    if (r->ended) return;
    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    r->ended = mem_text(why);
    observer_end_line(r->observer);
    log_info("the run ends early: %s", why);
}

static void end_by_evaluations(Run *r)
{
    const Trainer *t = r->trainer;
    if (isnan(t->early.best))
        run_end_early(r, "%s was not defined in %lld evaluations (train.early_stop)",
                      trainer_metric(t)->word.word, (long long)t->early.bad_evaluations);
    else
        run_end_early(r, "%s was not better than %.6g in %lld evaluations (train.early_stop)",
                      trainer_metric(t)->word.word, t->early.best,
                      (long long)t->early.bad_evaluations);
}

/* Counts an evaluation for the learning rate's curve and early stopping, and logs what follows from
 * it: a lower rate, or the end of the run. */
static void count_evaluation(Run *r, const BestMetric *metric, const EvalLine *line)
{
    Trainer *t = r->trainer;
    const Config *c = r->config;
    const LrSteps at = position_lr(t, t->config);
    double value = metric->value(line);
    int64_t falls = t->lr.falls;
    if (c->train.early_stop == 0 && !lr_depends_on_evaluations(c)) return;
    ++t->evaluations;
    lr_evaluated(c, &t->lr, &at, value, metric->better == BETTER_LARGE);
    early_stop_count(c, &t->early, value, metric->better == BETTER_LARGE);
    if (t->lr.falls > falls)
        log_info("step %lld: %s is no better than %.6g, so the learning rate is %.6g from here on",
                 (long long)t->step, metric->word.word, t->lr.best, lr_at(c, &t->lr, &at));
    if (!early_stop_over(c, &t->early) || t->step == t->steps) return;
    end_by_evaluations(r);
    DecisionLine event = {
        .step = t->step, .epoch = line->epoch, .event = "early_stop", .why = r->ended};
    observer_decision(r->observer, &event);
}

/* Handles a failed evaluation: if it counts, marks it as due, so that the next start of the run
 * repeats it. */
static Status fail_evaluation(Run *r, Status st, bool counts)
{
    Trainer *t = r->trainer;
    t->evaluation_due = counts;
    return fail(st,
                "the evaluation after step %lld cannot be made: %s; the run is saved: correct this "
                "and start the same command again, which evaluates first",
                (long long)t->step, fail_message());
}

/* Handles an evaluation that a stop request interrupted. */
static Status interrupt_evaluation(Run *r, bool counts)
{
    Trainer *t = r->trainer;
    r->stopped = true;
    t->evaluation_due = counts;
    observer_end_line(r->observer);
    log_info("step %lld: a stop request interrupts the evaluation: the next start repeats it",
             (long long)t->step);
    return OK;
}

Status run_evaluate(Run *r, bool counts, double *better)
{
    Trainer *t = r->trainer;
    const BestMetric *metric = trainer_metric(t);
    EvalLine line = {0};
    if (t->test_set.samples == 0) return OK;
    Status st = train_evaluate(t, &t->test_set, &line, &(EvalExtras){.pictures = true});
    if (st == ERR_STOPPED) return interrupt_evaluation(r, counts);
    if (st != OK) return fail_evaluation(r, st, counts);
    run_time_evaluation(r, line.seconds);
    r->summary.eval = line;
    observer_eval(r->observer, &line);
    if (counts) count_evaluation(r, metric, &line);
    double value = metric->better == BETTER_LARGE ? metric->value(&line) : -metric->value(&line);
    if (isnan(value) && !r->metric_undefined)
        log_warn("step %lld: %s is not defined (NaN) for this test set, so there is no best.h5 of "
                 "this evaluation; set checkpoint.best_metric to another metric",
                 (long long)t->step, metric->word.word);
    r->metric_undefined = isnan(value);
    if (!isfinite(value)) return OK;
    if (isnan(t->best_metric) || value > t->best_metric) t->best_metric = value;
    bool better_than_saved = isnan(r->best_saved) || value > r->best_saved;
    if (better_than_saved && r->config->checkpoint.best) *better = value;
    return OK;
}

bool run_complete(Run *r)
{
    const Trainer *t = r->trainer;
    if (t->step >= t->steps) return true;
    if (t->hook_stop) run_end_early(r, "run.hook requested it after step %lld", (long long)t->step);
    if (early_stop_over(r->config, &t->early)) end_by_evaluations(r);
    return r->ended != NULL;
}
