/* One optimizer step, and the functions of mode sync (grid.mode) for models without sparse tables.
 * Start reading at train_step, at the end. Other modes have other functions (step_mode.h). */
#include "../run/data_watch.h"
#include "grad_noise.h"
#include "loss_scale.h"
#include "position.h"
#include "../mode/step_mode.h"

#include <math.h>
#include <string.h>

/* ---- forward and backward ---- */

StepBatch step_forward_backward(Trainer *t, int64_t samples)
{
    const int64_t rows = samples * t->rows_per_sample;
    const StepBatch batch = {.step = (uint64_t)t->step,
                             .scale = rows > 0 ? (float)t->loss_scale.next / (float)rows : 0,
                             .micro_batches =
                                 (int)((samples + t->micro_batch - 1) / t->micro_batch),
                             .last_single = samples > 0 && (samples - 1) % t->micro_batch == 0};
    Status st = executor_forward_backward(t->executor, &t->source, &batch, &t->data_wait_s);
    if (st != OK) data_watch_die(t->data_watch, st);
    executor_reduce(t->executor);
    return batch;
}

static StepBatch forward_backward(Trainer *t)
{
    return step_forward_backward(t, position_batch_samples(t, t->step));
}

/* ---- checks of a step ---- */

/* Records a fault if none is recorded yet. */
static void record_bad(StepResult *result, BadKind bad, int64_t step)
{
    if (result->bad_kind) return;
    result->bad_kind = bad;
    result->bad_step = step;
}

/* Checks the loss of step t->stats_step. A bad loss is not added to the window with which later
 * losses are compared. */
static void check_loss(Trainer *t, StepResult *result)
{
    double loss = t->step_stats.loss, limit = INFINITY;
    bool spike = loss_window_spike(&t->losses, t->config->train.spike, loss, &limit);
    if (isfinite(loss) && !spike) {
        loss_window_add(&t->losses, loss);
        return;
    }
    record_bad(result, spike ? BAD_SPIKE : BAD_LOSS, t->stats_step);
    if (result->bad_step != t->stats_step) return;
    result->bad_loss = loss;
    result->spike_limit = limit;
}

/* Reads the statistics of those steps up to number `step` that have not been read yet. Checks their
 * losses, and adds their requests, times and rows to *result. Sets loss, top1, top5 and column of
 * *result to the values of the last step that had samples, up to step `step`. */
static void read_stats(Trainer *t, StepResult *result, int64_t step)
{
    const bool local = step_mode_is_local(t->mode);
    while (t->stats_step < step) {
        const float *metrics = executor_metrics(t->executor, (int)(t->step - ++t->stats_step));
        /* If ranks step alone (STEP_RANKS_ALONE), this rank may have no samples of a short
         * batch. */
        bool empty = local && metrics[METRIC_ROWS] < 1;
        if (!empty)
            t->step_stats = (StepStats){
                .loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]),
                .top1 = (double)(metrics[METRIC_TOP1] / metrics[METRIC_ROWS]),
                .top5 = (double)(metrics[METRIC_TOP5] / metrics[METRIC_ROWS]),
                .column = {(double)(metrics[METRIC_COLUMN1] / metrics[METRIC_ROWS]),
                           (double)(metrics[METRIC_COLUMN2] / metrics[METRIC_ROWS])},
            };
        result->stop_requested |= metrics[METRIC_STOP] > 0;
        result->save_requested |= metrics[METRIC_SAVE] > 0;
        result->hook_requested |= metrics[METRIC_REQUEST] > 0;
        result->was_saving = metrics[METRIC_SAVING] > 0;
        for (int p = 0; p < PHASE_COUNT; ++p)
            result->summed_phase_s[p] += (double)metrics[METRIC_PHASES + p];
        result->timed_ranks += (int)metrics[METRIC_TIMED];
        /* with STEP_RANKS_ALONE the metrics count only this rank's rows */
        result->rows += local ? position_batch_samples(t, t->stats_step - 1) * t->rows_per_sample
                              : (int64_t)metrics[METRIC_ROWS];
        if (!empty) check_loss(t, result);
    }
    result->loss = t->step_stats.loss;
    result->top1 = t->step_stats.top1;
    result->top5 = t->step_stats.top5;
    memcpy(result->loss_result, t->step_stats.column, sizeof result->loss_result);
}

void train_step_stats(Trainer *t, StepResult *result)
{
    read_stats(t, result, t->step);
}

/* Returns the factor by which the update multiplies gradients so that their norm is at most
 * optim.clip. Returns 1 if optim.clip is 0, or if the device clips during the update
 * (Trainer.update_clips). Computes the norm only if the factor depends on it or the step is logged.
 * With STEP_RANKS_ALONE the norm is never computed, not even for a logged step; optim.clip is
 * refused there. */
static double clip_factor(Trainer *t, StepResult *result)
{
    double limit = t->config->optim.clip;
    bool clips = limit > 0 && !t->update_clips;
    if (step_mode_is_local(t->mode) || (!clips && !result->logged)) return 1;
    result->grad_norm = train_grad_norm(t);
    if (!isfinite(result->grad_norm)) record_bad(result, BAD_GRADIENT, t->step);
    return clips && result->grad_norm > limit ? limit / result->grad_norm : 1;
}

/* ---- update ---- */

/* Updates the parameters; a device may capture this work and replay it. */
static void update_work(void *user)
{
    Trainer *t = user;
    const float *grads = executor_grads(t->executor);
    if (t->update_clips) optim_clip(t->optim, grads, t->config->optim.clip);
    optim_update(t->optim, executor_params(t->executor), grads);
    executor_params_updated(t->executor);
}

void step_update_params(Trainer *t, UpdateArgs args)
{
    /* With grid.zero the update is not captured, because it ends with an all-gather of shards. */
    optim_begin(t->optim, &args.rates, args.scale);
    if (optim_repeats(t->optim) && !t->plan->zero)
        capture_run(&t->update, t->backend, update_work, t);
    else
        update_work(t);
}

const StepMode mode_sync = {.ranks = STEP_RANKS_TOGETHER,
                            .forward_backward = forward_backward,
                            .update = step_update_params};

/* ---- a step ---- */

bool train_logs_step(const Trainer *t, int64_t number)
{
    return t->is_first_step || number == t->steps || number % t->config->train.log_every == 0;
}

Status train_step(Trainer *t, StepResult *result)
{
    const StepMode *mode = t->mode;
    const int64_t number = t->step + 1;
    if (mode->begin) mode->begin(t);
    const LrSteps at = position_lr(t, t->config);
    const UpdateRates rates = rates_at(t->config, &t->lr, &at);
    *result = (StepResult){.logged = train_logs_step(t, number), .lr = rates.lr, .grad_norm = NAN};
    t->is_first_step = false;
    executor_find_overflow(t->executor, t->checks_gradients || t->loss_scale.dynamic);
    t->copied = false;
    const StepBatch batch = mode->forward_backward(t);
    t->step = number;
    /* The statistics of this step are read now in these four cases. In all other cases they are
     * read after the next step, so that the host does not wait for the device. */
    bool reads_now = result->logged || t->backend->table->host_memory || t->loss_scale.dynamic ||
                     t->waits_for_loss;
    read_stats(t, result, reads_now ? number : number - 1);

    /* With fp16's loss scale a step whose gradients overflow is only skipped; otherwise it is a bad
     * step. */
    const bool overflow = executor_overflowed(t->executor);
    if (overflow && !t->loss_scale.dynamic) record_bad(result, BAD_GRADIENT, number);
    bool bad = result->bad_step == number;
    TRY(loss_scale_update(&t->loss_scale, t->config, number, overflow && !bad));

    phase_enter(PHASE_UPDATE);
    double factor = 0;
    if (!bad && !overflow) {
        grad_noise_add(t, position_batch_samples(t, number - 1));
        optim_add_slim(t->optim, executor_params(t->executor), executor_grads(t->executor),
                       t->loss_scale.last);
        factor = clip_factor(t, result);
    }
    result->noise = result->logged ? grad_noise_take(t) : (GradNoise){NAN, NAN, NAN};
    result->skipped = overflow || result->bad_step == number;
    if (result->skipped) {
        ++t->skipped;
    } else {
        executor_move_statistics(t->executor, &batch);
        mode->update(t, (UpdateArgs){rates, factor / t->loss_scale.last, batch.micro_batches});
    }
    phase_enter(PHASE_OTHER);
    if (mode->after_update) mode->after_update(t, result);
    return OK;
}
