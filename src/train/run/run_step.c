/* One step of a run, and the work that is due after it: its line in the log, evaluations,
 * checkpoints, the hook's requests. Every rank makes the same decisions. */
#include "../eval/detections.h"
#include "run.h"

#include "../agree.h"
#include "../step/position.h"

#include <math.h>
#include <string.h>

bool run_eval_due(const Run *r, int64_t step)
{
    const Trainer *t = r->trainer;
    int64_t every = r->config->train.eval_every;
    bool epoch_end = position_ends_epoch(t, step);
    return step == t->steps ||
           (every > 0 && epoch_end && position_after(t, step).epoch % every == 0);
}

/* Returns true on rank 0 if a checkpoint is due by the clock (checkpoint.every, or the next attempt
 * after a failed save). */
static bool save_wanted(const Run *r)
{
    double every = r->config->checkpoint.every_s;
    if (r->save_failing && (every <= 0 || every > RETRY_S)) every = RETRY_S;
    return r->world->rank == 0 && !r->save && every > 0 && clock_s() - r->saved_s >= every;
}

static void report(Run *r, const StepResult *result)
{
    const Trainer *t = r->trainer;
    double now = clock_s(), spent = now - r->tick_s;
    const int64_t counted = result->rows / t->rows_per_sample * t->counted_per_sample;
    const bool pixels = data_has_label_fields(&t->train_set);
    double rate = (double)counted / (spent > 0 ? spent : 1e-9);
    /* Without rows the device has only queued the step; its time is counted with that of the next
     * step. */
    if (result->rows > 0) {
        r->tick_s = now;
        run_time_step(r, spent);
        /* the first step is left out, because it includes warm-up */
        if (r->rate > 0) {
            r->steady_rows += (double)counted;
            r->steady_s += spent;
        }
        r->rate = r->rate > 0 ? 0.95 * r->rate + 0.05 * rate : rate;
    }
    /* With label fields top1 and top5 are not shown: their rows would include pixels without a
     * label. */
    const int top = pixels ? 0 : loss_top_k(loss_info(r->config));
    TrainLine line = {.step = t->step,
                      .steps = t->steps,
                      .epoch = position_last_epoch(t, t->step),
                      .epochs = r->config->train.epochs,
                      .loss = result->loss,
                      .lr = result->lr,
                      .samples_per_s = r->rate,
                      .grad_norm = result->grad_norm,
                      .has_grad_noise = !isnan(result->noise.variance),
                      .grad_square = result->noise.square,
                      .grad_variance = result->noise.variance,
                      .noise_scale = result->noise.scale,
                      .top1 = top >= 1 ? result->top1 : NAN,
                      .top5 = top >= 5 ? result->top5 : NAN,
                      .left_s = (double)((t->steps - t->step) * t->batch * t->counted_per_sample) /
                                r->rate,
                      .skipped = t->skipped,
                      .has_boxes = loss_info(r->config)->results == LOSS_RESULTS_PARTS,
                      .has_one_logit = loss_info(r->config)->results == LOSS_RESULTS_LOGIT,
                      .counts_tokens = data_has_tokens(&t->train_set)};
    detections_loss_parts(result->loss, result->loss_result, line.part);
    run_live_take(r, result);
    memcpy(line.time_s, r->live_s, sizeof line.time_s);
    observer_train(r->observer, &line, result->logged);
}

/* Returns true if number is a multiple of interval; interval 0: never. */
static bool is_multiple(int64_t number, int64_t interval)
{
    return interval > 0 && number % interval == 0;
}

static bool save_due(const Run *r, const StepResult *result)
{
    const Trainer *t = r->trainer;
    Position at = position_after(t, t->step);
    return is_multiple(t->step, r->config->checkpoint.every_steps) ||
           (at.sample == 0 && is_multiple(at.epoch, r->config->checkpoint.every_epochs)) ||
           result->save_requested || result->stop_requested || t->step == t->steps;
}

/* Returns true if this step ends an epoch, and the hook runs at the ends of epochs. */
static bool notifies_of_epoch(const Run *r)
{
    const Trainer *t = r->trainer;
    return position_ends_epoch(t, t->step) && run_hook_wants(r, HOOK_EPOCH);
}

/* Returns true if the hook runs after evaluations, and there is a test set to evaluate. */
static bool notifies_of_evaluation(const Run *r)
{
    return r->trainer->test_set.samples > 0 && run_hook_wants(r, HOOK_EVALUATION);
}

/* Evaluates, and notifies the hook of the epoch and the evaluation. Called before the step's
 * checkpoint is saved, so that the checkpoint contains the results. */
static Status evaluate_and_notify(Run *r, RunDue due, double *better)
{
    bool epoch = notifies_of_epoch(r);
    if (epoch) run_hook_notify(r, HOOK_EPOCH);
    Status st = due.evaluation ? run_evaluate(r, true, better) : OK;
    bool evaluated = due.evaluation && st == OK && !r->stopped && notifies_of_evaluation(r);
    if (evaluated) run_hook_notify(r, HOOK_EVALUATION);
    if ((epoch || evaluated) && r->config->run.hook_wait) run_hook_wait(r);
    return st;
}

/* Does the work that is due after a step: checks the step, carries out the hook's requests,
 * continues the running save, evaluates, saves. Every rank makes the same decisions. */
static Status between_steps(Run *r, StepResult *result)
{
    Trainer *t = r->trainer;
    const bool end = t->step == t->steps, epoch_end = position_ends_epoch(t, t->step);
    const bool requested = run_hook_receive(r, result);
    RunDue due = {.evaluation = run_eval_due(r, t->step),
                  .save = requested || save_due(r, result),
                  .hook = r->config->run.hook_wait && notifies_of_epoch(r)};
    /* Waits for the losses of the epoch before the training set grows, because new files begin a
     * new window of losses. */
    const bool grows = epoch_end && r->config->data.refresh != REFRESH_NEVER;
    if (due.evaluation || due.save || grows) train_step_stats(t, result);
    /* the next save uses the same memory for its copy as the running one */
    if (due.save) TRY(run_save_wait(r));

    /* First checks the data files and then the results of the step, because a changed file may be
     * the cause of a bad step. */
    if (result->bad_kind || due.evaluation || due.save || epoch_end)
        TRY(status_agree(
            r->world, r->data_watch && r->world->rank == 0 ? data_watch_check(r->data_watch) : OK));
    bool rolled_back = false;
    TRY(run_check_step(r, result, due, &rolled_back));
    if (rolled_back) return OK;
    run_hook_carry_out(r);
    TRY(run_save_continue(r, result));

    /* If the evaluation or the save of best.h5 fails, the step is saved before the run ends. */
    double better = NAN;
    Status evaluated = evaluate_and_notify(r, due, &better);
    r->stopped = r->stopped || (result->stop_requested && !end && !r->ended);
    const bool last = end || r->stopped || r->ended || evaluated != OK;
    due.save = due.save || r->save_requested || last;
    r->save_requested = false;
    if (!isnan(better)) evaluated = run_save_best(r, better, due.save);
    char *why = mem_text(evaluated == OK ? "" : fail_message());
    Status st = due.save ? run_save(r, last) : OK;
    if (st == OK && evaluated != OK) st = fail(evaluated, "%s", why);
    mem_free(&why);
    if (due.evaluation || due.save) r->tick_s = clock_s();
    return st;
}

Status run_evaluate_again(Run *r)
{
    Trainer *t = r->trainer;
    double better = NAN;
    bool due = t->evaluation_due;
    t->evaluation_due = false;
    TRY(run_evaluate(r, due, &better));
    if (r->stopped) return OK;
    bool evaluated = due && notifies_of_evaluation(r);
    if (evaluated) run_hook_notify(r, HOOK_EVALUATION);
    if (evaluated && r->config->run.hook_wait) run_hook_wait(r);
    if (!isnan(better)) TRY(run_save_best(r, better, due));
    r->save_again = due;
    r->save_requested = false;
    if (due) TRY(run_save(r, t->step == t->steps || r->ended));
    r->tick_s = clock_s();
    return OK;
}

/* On rank 0, at most once a second: ends the job if the run's folder was renamed, removed or
 * claimed by another run. */
static void check_folder(Run *r)
{
    static const double EVERY_S = 1;
    if (!r->dir.lease || clock_s() - r->folder_checked_s < EVERY_S) return;
    r->folder_checked_s = clock_s();
    lease_require(r->dir.lease);
}

Status run_step(Run *r)
{
    Trainer *t = r->trainer;
    StepResult result;
    TRY(run_refresh(r));
    bool stop = run_time_over(r) || stop_wanted() || tables_stop_wanted(t->tables);
    executor_request(t->executor, METRIC_STOP, stop);
    executor_request(t->executor, METRIC_SAVE, save_wanted(r));
    executor_request(t->executor, METRIC_REQUEST, run_hook_has_request(r));
    executor_request(t->executor, METRIC_SAVING, r->save && train_save_busy(r->save));
    beat_step_begin(t->step + 1);
    TRY(train_begin_steps(t));
    run_live_send(r);
    TRY(train_step(t, &result));
    beat_step_end();
    r->lr = result.lr;
    check_folder(r);
    report(r, &result);
    return between_steps(r, &result);
}
