/* The position in the data of each step.
 *
 *     epoch 3:  |--5--|--5--|--5--|---10---|---10---|-5-|      train.batch 5, then 10
 *                           begin ^
 *
 * Trainer.begin is the position at which the steps of the current batch size and training set
 * begin: the first sample of epoch 0, the position of the loaded checkpoint, or the position at
 * which new files joined the set (position_move). All later positions are computed from it.
 *
 * The learning rate's curve and warm-up are functions of the number of steps of the batch size with
 * which the run began (schedule_batch). This number may be a fraction, so the rate is continuous
 * when the batch size changes. With train.steps, the run's length and the curve count steps of any
 * size; only milestones, which are epochs, depend on the position in the data. */
#include "position.h"

/* Computes the number of the run's last step, and the numbers of steps in an epoch, from t->begin
 * and t->begin_step. */
static void count_steps(Trainer *t)
{
    const Config *c = t->config;
    int64_t more = c->train.epochs - t->begin.epoch - 1;
    t->steps_per_epoch = data_steps_per_epoch(t->train_set.samples, t->batch);
    t->first_epoch_steps = data_steps_per_epoch(t->train_set.samples - t->begin.sample, t->batch);
    t->steps = t->begin_step;
    if (c->train.steps)
        t->steps = c->train.steps;
    else if (more >= 0)
        t->steps += t->first_epoch_steps + more * t->steps_per_epoch;
}

void position_init(Trainer *t)
{
    t->begin = (Position){0};
    t->begin_step = 0;
    t->schedule_batch = t->batch;
    count_steps(t);
}

void position_move(Trainer *t, Position at)
{
    t->begin = at;
    t->begin_step = t->step;
    count_steps(t);
}

Position position_after(const Trainer *t, int64_t steps)
{
    int64_t n = steps - t->begin_step, first = t->first_epoch_steps;
    Position p = t->begin;
    if (n <= 0) return p;
    if (n < first) {
        p.step += n;
        p.sample += n * t->batch;
        return p;
    }
    n -= first;
    p.epoch += 1 + n / t->steps_per_epoch;
    p.step = n % t->steps_per_epoch;
    p.sample = p.step * t->batch;
    return p;
}

bool position_ends_epoch(const Trainer *t, int64_t steps)
{
    return position_after(t, steps).sample == 0;
}

int64_t position_last_epoch(const Trainer *t, int64_t steps)
{
    Position p = position_after(t, steps);
    return p.epoch + (p.sample > 0);
}

int64_t position_batch_samples(const Trainer *t, int64_t steps)
{
    int64_t left = t->train_set.samples - position_after(t, steps).sample;
    return left < t->batch ? left : t->batch;
}

LrSteps position_lr(const Trainer *t, const Config *config)
{
    Position p = position_after(t, t->step);
    int64_t unit = t->schedule_batch;
    int64_t per_epoch = data_steps_per_epoch(t->train_set.samples, unit);
    double done = (double)(p.epoch * per_epoch) + (double)p.sample / (double)unit;
    if (config->train.steps == 0)
        return (LrSteps){.step = done,
                         .steps = (double)(config->train.epochs * per_epoch),
                         .steps_per_epoch = per_epoch};
    return (LrSteps){.step = (double)t->step,
                     .steps = (double)config->train.steps,
                     .steps_per_epoch = per_epoch,
                     .data_ahead = done - (double)t->step};
}

/* ---- checkpoints ---- */

void position_put(const Trainer *t, CheckpointMeta *meta)
{
    Position p = position_after(t, t->step);
    meta->epoch = p.epoch;
    meta->data_step = p.step;
    meta->epoch_samples = p.sample;
    meta->samples = t->train_set.samples;
    meta->batch = t->batch;
    meta->schedule_batch = t->schedule_batch;
}

void position_set_reported(Trainer *t, const CheckpointMeta *meta)
{
    t->begin_step = meta->step;
    t->begin = (Position){.epoch = meta->epoch};
    count_steps(t);
}

/* Computes the position of an old checkpoint that does not record a number of samples. All steps of
 * such a checkpoint had the same batch size, to which *batch is set. old: the checkpoint's
 * configuration, or NULL. ERR_CONFIG: the batch size is not known. */
static Status position_of_steps(const Trainer *t, const CheckpointMeta *meta, const Config *old,
                                Position *p, int64_t *batch)
{
    int64_t n = t->train_set.samples;
    *batch = old ? old->train.batch : 0;
    if (*batch < 1)
        return fail(ERR_CONFIG, "its configuration lacks train.batch, so the number of samples "
                                "done in its epoch is not known");
    int64_t per_epoch = data_steps_per_epoch(n, *batch);
    *p =
        (Position){meta->step / per_epoch, meta->step % per_epoch, meta->step % per_epoch * *batch};
    return OK;
}

/* Returns, for a message, why the samples of the checkpoint's current epoch or their order have
 * changed since; NULL if they have not. old: the checkpoint's configuration, or NULL. */
static const char *order_changed(const Trainer *t, const CheckpointMeta *meta, const Config *old)
{
    const Config *c = t->config;
    bool known =
        data_fingerprint_known(meta->data_train) && data_fingerprint_known(t->train_fingerprint);
    if (known && strcmp(meta->data_train, t->train_fingerprint) != 0)
        return "data.train holds other data";
    if (meta->samples > 0 && meta->samples != t->train_set.samples)
        return "data.train has another number of samples";
    if (meta->seed != c->run.seed) return "run.seed has changed";
    if (old && old->data.shuffle != c->data.shuffle) return "data.shuffle has changed";
    bool tokens = data_has_tokens(&t->train_set);
    if (old && tokens && data_context(old) != data_context(c)) return "model.context has changed";
    return NULL;
}

static const char *length_text(const Config *c, char text[48])
{
    bool steps = c->train.steps > 0;
    int64_t n = steps ? c->train.steps : c->train.epochs;
    snprintf(text, 48, "%lld %s%s", (long long)n, steps ? "step" : "epoch", n == 1 ? "" : "s");
    return text;
}

static void log_batch(const Trainer *t, int64_t batch)
{
    LrSteps at = position_lr(t, t->config);
    log_info("train.batch was %lld and is %lld: continuing in epoch %lld after %lld of its %lld "
             "samples, %lld steps are left; the learning rate follows %s, the next is %.6g",
             (long long)batch, (long long)t->batch, (long long)t->begin.epoch + 1,
             (long long)t->begin.sample, (long long)t->train_set.samples,
             (long long)(t->steps > t->step ? t->steps - t->step : 0),
             t->config->train.steps ? "steps" : "samples", lr_at(t->config, &t->lr, &at));
}

static void log_length(const Trainer *t, const Config *old)
{
    Config earlier = *t->config;
    char before[48], now[48];
    earlier.train.epochs = old->train.epochs;
    earlier.train.steps = old->train.steps;
    LrSteps was = position_lr(t, &earlier), at = position_lr(t, t->config);
    log_info("the run was to end after %s, and now ends after %s: %s; the next learning rate is "
             "%.6g, with the former end it would be %.6g",
             length_text(old, before), length_text(t->config, now), lr_text_if_end_moves(t->config),
             lr_at(t->config, &t->lr, &at), lr_at(&earlier, &t->lr, &was));
}

static void log_changes(const Trainer *t, const Config *old, int64_t batch,
                        const char *restart_reason)
{
    const Config *c = t->config;
    if (restart_reason)
        log_info("%s: epoch %lld, which was not complete, begins again", restart_reason,
                 (long long)t->begin.epoch + 1);
    if (batch != t->batch) log_batch(t, batch);
    if (old && (old->train.epochs != c->train.epochs || old->train.steps != c->train.steps))
        log_length(t, old);
}

Status position_take(Trainer *t, const CheckpointMeta *meta, const char *path)
{
    Config *old = NULL;
    Position p = {meta->epoch, meta->data_step, meta->epoch_samples};
    int64_t batch = meta->batch;
    if (config_parse(&old, path, meta->config ? meta->config : "", 0, NULL) != OK) old = NULL;
    const char *restart_reason = order_changed(t, meta, old);
    Status st = OK;
    if (batch == 0 && restart_reason) {
        /* The epoch begins again, so p.sample only needs to show whether the epoch had begun. */
        p = (Position){meta->epoch, meta->data_step, meta->data_step};
        batch = old ? old->train.batch : t->batch;
    } else if (batch == 0) {
        st = position_of_steps(t, meta, old, &p, &batch);
    }
    if (st != OK) {
        config_free(&old);
        return fail(st, "%s: %s; begin from it with model.init_from", path, fail_message());
    }
    if (p.sample == 0) restart_reason = NULL;
    if (restart_reason) p = (Position){.epoch = p.epoch};
    t->begin = p;
    t->begin_step = meta->step;
    t->schedule_batch = meta->schedule_batch > 0 ? meta->schedule_batch : batch;
    count_steps(t);
    log_changes(t, old, batch, restart_reason);
    config_free(&old);
    return OK;
}

Status position_check_end(const Config *c, const CheckpointMeta *meta, const char *path)
{
    int64_t epochs = meta->epoch + (meta->data_step > 0);
    bool steps = c->train.steps > 0;
    if (steps ? meta->step <= c->train.steps : epochs <= c->train.epochs) return OK;
    return config_fail_key(c, steps ? "train.steps" : "train.epochs",
                           "%s is already at %s %lld: set this number or a higher one, or choose "
                           "another run.name",
                           path, steps ? "step" : "epoch",
                           (long long)(steps ? meta->step : epochs));
}
