/* One optimizer step. Start reading at train_step, near the end. */
#include "sync_points.h"
#include "data_watch.h"
#include "deferred_updates.h"
#include "local_steps.h"
#include "loss_scale.h"
#include "position.h"
#include "sparse.h"

#include <math.h>

/* Opens the loader at the step that follows t->step. Each replica takes a block of consecutive
 * micro-batches, or micro-batches in turn with the other replicas: with sharded gradients, and with
 * statistics over the micro-batches of a turn, so that these do not depend on grid.zero. */
static Status open_loader(Trainer *t)
{
    bool turns = train_takes_turns(t);
    Position at = position_after(t, t->step);
    LoaderPlan plan = {.batch = t->batch,
                       .micro_batch = t->micro_batch,
                       .micro_first = t->grid.dp_rank * (turns ? 1 : t->micros_local),
                       .micro_count = t->micros_local,
                       .micro_gap = turns ? t->shape.dp - 1 : 0,
                       .no_x = !t->plan->reads_data,
                       .no_y = !t->plan->reads_labels,
                       .epoch = at.epoch,
                       .step = at.step,
                       .shift = at.sample - at.step * t->batch,
                       .training = true,
                       .slots = train_data_slots(t, t->plan) + sparse_batches_out(t, t->plan),
                       .workers = train_workers(t, &t->train_set),
                       .backend = t->backend};
    t->known = t->step;
    return loader_new(&t->loader, &t->train_set, t->config, plan);
}

/* Returns the number of samples of the step that follows `steps` steps. The last batch of an epoch
 * may be short. */
static int64_t batch_samples(const Trainer *t, int64_t steps)
{
    int64_t left = t->train_set.samples - position_after(t, steps).sample;
    return left < t->batch ? left : t->batch;
}

/* Returns true if the last micro-batch of a batch of `samples` samples contains one sample only. */
static bool ends_single(const Trainer *t, int64_t samples)
{
    return samples > 0 && (samples - 1) % t->micro_batch == 0;
}

static StepBatch next_batch(const Trainer *t)
{
    int64_t samples = batch_samples(t, t->step);
    int micros;
    if (t->local) {
        samples = local_samples(t, samples, &micros);
        return (StepBatch){.step = (uint64_t)t->step,
                           .scale = samples > 0 ? 1 / (float)(samples * t->rows_per_sample) : 0,
                           .micros = micros,
                           .last_single = ends_single(t, samples)};
    }
    return (StepBatch){.step = (uint64_t)t->step,
                       .scale = (float)t->scale.now / (float)(samples * t->rows_per_sample),
                       .micros = (int)((samples + t->micro_batch - 1) / t->micro_batch),
                       .last_single = ends_single(t, samples)};
}

/* Returns true if the update clips gradients itself: this rank has all gradients and the optimizer
 * can compute their norm on the device. With a moving loss scale the host clips. */
static bool clips_here(const Trainer *t)
{
    return t->config->optim.clip > 0 && t->shape.pp == 1 && t->shape.tp == 1 && !t->scale.moves &&
           t->graph->table_count == 0 && optim_can_clip(t->optim);
}

static void found_bad(StepResult *result, Bad bad, int64_t step)
{
    if (result->bad) return;
    result->bad = bad;
    result->bad_step = step;
}

/* Returns the factor with which the update multiplies gradients. Computes their norm if it is
 * clipped or logged. */
static double clip(Trainer *t, StepResult *result)
{
    double most = t->config->optim.clip;
    bool clips = most > 0 && !clips_here(t);
    if (t->local) return 1;
    if (!clips && !result->logged) return 1;
    result->grad_norm = train_grad_norm(t);
    if (!isfinite(result->grad_norm)) found_bad(result, BAD_GRADIENT, t->step);
    return clips && result->grad_norm > most ? most / result->grad_norm : 1;
}

static void update_work(void *user)
{
    Trainer *t = user;
    const float *grads = executor_grads(t->executor);
    if (clips_here(t)) optim_clip(t->optim, grads, t->config->optim.clip);
    optim_update(t->optim, executor_params(t->executor), grads);
    executor_params_changed(t->executor);
}

/* With grid.zero the update ends with gathering the other replicas' shards, so it is not
 * captured. */
static void update_params(Trainer *t, UpdateArgs now)
{
    optim_begin(t->optim, now.lr, now.scale);
    if (optim_repeats(t->optim) && !t->plan->zero)
        capture_run(&t->update, t->backend, update_work, t);
    else
        update_work(t);
}

static void update(Trainer *t, double lr, double scale)
{
    UpdateArgs now = {lr, scale / t->scale.used};
    if (t->tables) tables_update(t->tables, now.lr, now.scale);
    if (deferred_update_due(t, &now)) update_params(t, now);
}

void deferred_updates_finish(Trainer *t)
{
    UpdateArgs now;
    while (deferred_update_next(t, &now)) update_params(t, now);
    if (t->tables) tables_apply_deferred(t->tables);
}

/* Judges the loss of step t->known. A bad loss is not added to the window with which later losses
 * are compared. */
static void judge_loss(Trainer *t, StepResult *result)
{
    double loss = t->step_stats.loss, most = INFINITY;
    bool spike = loss_window_spike(&t->losses, t->config->train.spike, loss, &most);
    if (isfinite(loss) && !spike) {
        loss_window_add(&t->losses, loss);
        return;
    }
    found_bad(result, spike ? BAD_SPIKE : BAD_LOSS, t->known);
    if (result->bad_step != t->known) return;
    result->bad_loss = loss;
    result->most = most;
}

/* Reads the statistics of the steps up to number `step` that have not been read yet. */
static void read_step_stats(Trainer *t, StepResult *result, int64_t step)
{
    while (t->known < step) {
        const float *metrics = executor_metrics(t->executor, (int)(t->step - ++t->known));
        /* a local step whose share of a short batch has no samples on this rank */
        bool empty = t->local && metrics[METRIC_ROWS] < 1;
        if (!empty)
            t->step_stats = (StepStats){
                .loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]),
                .top1 = (double)(metrics[METRIC_TOP1] / metrics[METRIC_ROWS]),
                .top5 = (double)(metrics[METRIC_TOP5] / metrics[METRIC_ROWS]),
            };
        result->stop_requested |= metrics[METRIC_STOP] > 0;
        result->save_requested |= metrics[METRIC_SAVE] > 0;
        result->hook_requested |= metrics[METRIC_REQUEST] > 0;
        result->saving = metrics[METRIC_SAVING] > 0;
        /* in local modes metrics cover this rank only, so rows of all ranks are computed */
        result->rows += t->local ? batch_samples(t, t->known - 1) * t->rows_per_sample
                                 : (int64_t)metrics[METRIC_ROWS];
        if (!empty) judge_loss(t, result);
    }
    result->loss = t->step_stats.loss;
    result->top1 = t->step_stats.top1;
    result->top5 = t->step_stats.top5;
}

void train_step_stats(Trainer *t, StepResult *result)
{
    read_step_stats(t, result, t->step);
}

/* Judges and applies the gradients, which are summed. A step with a bad loss or a bad gradient is
 * skipped. */
static Status apply(Trainer *t, StepResult *result, const StepBatch *batch)
{
    bool overflow = executor_overflowed(t->executor);
    if (overflow && !t->scale.moves) found_bad(result, BAD_GRADIENT, t->step);
    bool bad = result->bad_step == t->step;
    TRY(loss_scale_move(&t->scale, t->config, t->step, overflow && !bad));
    phase_enter(PHASE_UPDATE);
    if (!bad && !overflow)
        optim_add_slim(t->optim, executor_params(t->executor), executor_grads(t->executor),
                       t->scale.used);
    double scale = bad || overflow ? 0 : clip(t, result);
    result->skipped = overflow || result->bad_step == t->step;
    if (result->skipped) {
        ++t->skipped;
    } else {
        executor_move_statistics(t->executor, batch);
        if (!local_update(t, batch, result->lr, scale)) update(t, result->lr, scale);
    }
    phase_enter(PHASE_OTHER);
    return OK;
}

/* Ends the rank because its batch cannot be read. If the data have changed under the run, that is
 * the reason that is reported. */
static _Noreturn void die_of_batch(const Trainer *t, Status status)
{
    char *why = mem_text(fail_message());
    if (status == ERR_DATA && t->data_watch && data_watch_check(t->data_watch) == ERR_DATA)
        die_as(ERR_DATA, "%s", fail_message());
    die_as(status, "%s", why);
}

/* Runs the forward and backward passes of the step after t->step, and reduces the gradients. */
static void forward_backward(Trainer *t, const StepBatch *batch)
{
    BatchSource source = sparse_source(t);
    Status st = executor_forward_backward(t->executor, &source, batch, &t->data_wait_s);
    if (st != OK) die_of_batch(t, st);
    executor_reduce(t->executor);
    if (t->tables) tables_reduce(t->tables);
}

Status train_step(Trainer *t, StepResult *result)
{
    int64_t number = t->step + 1;
    bool first = !t->loader;
    if (first) TRY(status_agree(t->world, open_loader(t)));
    if (first) local_begin(t);
    sync_point_begin_step(t);
    const LrSteps at = position_lr(t);
    *result = (StepResult){.logged = first || number == t->steps ||
                                     number % t->config->train.log_every == 0,
                           .lr = lr_at(t->config, &t->lr, &at),
                           .grad_norm = NAN};
    StepBatch batch = next_batch(t);
    executor_find_overflow(t->executor, t->looks || t->scale.moves);
    t->copied = false;
    forward_backward(t, &batch);
    t->step = number;
    bool newest = result->logged || t->backend->table->host_memory || t->scale.moves || t->waits;
    read_step_stats(t, result, newest ? number : number - 1);
    TRY(apply(t, result, &batch));
    sync_point_end_step(t, result);
    return OK;
}

/* Sets *fault to the first fault, and to the largest loss, that any rank has found. */
static void join_faults(const Trainer *t, StepFault *fault)
{
    int ranks = t->world->size;
    StepFault *all = mem_new((size_t)ranks * sizeof *all);
    world_gather(t->world, fault, sizeof *fault, all);
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
    executor_settle(t->executor);
    sparse_close_loader(t);
    t->step = number - 1;
    TRY(status_agree(t->world, open_loader(t)));
    StepBatch batch = next_batch(t);
    executor_probe(t->executor, fault);
    forward_backward(t, &batch);
    executor_probe(t->executor, NULL);
    const float *metrics = executor_metrics(t->executor, 0);
    *loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    t->step = t->known = number;
    join_faults(t, fault);
    executor_settle(t->executor);
    sparse_close_loader(t);
    return OK;
}
