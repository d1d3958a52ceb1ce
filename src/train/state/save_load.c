/* Saves and loads checkpoints of a Trainer, through the interface of checkpoint.h. */
#include "classes.h"
#include "init_from.h"
#include "live.h"
#include "meaning.h"
#include "../step/position.h"
#include "resume.h"
#include "save_copy.h"
#include "scaling.h"
#include "../mode/sparse.h"
#include "../step/step_loader.h"

#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

/* Writes a description of the samples to the metadata, for programs that use the checkpoint without
 * a data set. */
static void describe_input(const DataSet *set, CheckpointMeta *meta)
{
    CheckpointInput *input = &meta->input;
    if (data_has_tokens(set)) return;
    *input = (CheckpointInput){.classes = set->classes, .stat_count = set->stats_count};
    memcpy(input->mean, set->mean, sizeof input->mean);
    memcpy(input->std, set->std, sizeof input->std);
    if (!data_has_images(set) && !data_has_fields(set)) return;
    input->channels = set->channels;
    input->height = set->height;
    input->width = set->width;
    input->stored_height = set->encoded ? 0 : set->stored_height;
    input->stored_width = set->encoded ? 0 : set->stored_width;
    input->turned = set->orient_requested;
    input->bicubic = set->bicubic;
    input->scale = set->scale;
    if (!data_has_fields(set)) return;
    input->channels = set->field_set.step_inputs;
    if (!set->has_stats) return;
    input->target_count = set->field_set.step_targets;
    memcpy(input->target_mean, set->field_set.target_mean, sizeof input->target_mean);
    memcpy(input->target_std, set->field_set.target_std, sizeof input->target_std);
}

/* Writes the trainer's state, except for its tensors, to the metadata. */
static void fill_meta(const Trainer *t, CheckpointMeta *meta)
{
    *meta = (CheckpointMeta){.step = t->step,
                             .seed = t->config->run.seed,
                             .best_metric = t->best_metric,
                             .evaluations = t->evaluations,
                             .lr = t->lr,
                             .stop_best = t->early.best,
                             .stop_bad_evaluations = t->early.bad_evaluations,
                             .hook_stop = t->hook_stop,
                             .evaluation_due = t->evaluation_due,
                             .loss_scale = t->loss_scale.dynamic ? t->loss_scale.next : 0,
                             .loss_scale_good = t->loss_scale.good_steps,
                             .skipped = t->skipped,
                             .config = config_text(t->config)};
    position_put(t, meta);
    meta->version = mem_text(WEFT_VERSION);
    snprintf(meta->grid, sizeof meta->grid, "%dx%dx%d", t->shape.dp, t->shape.pp, t->shape.tp);
    meta->loss_count = loss_window_list(&t->losses, meta->loss);
    memcpy(meta->data_train, t->train_fingerprint, sizeof meta->data_train);
    memcpy(meta->data_test, t->test_fingerprint, sizeof meta->data_test);
    meta->data_ids = data_set_ids(&t->train_set);
    meta->columns = t->train_set.columns;
    meta->ranges = data_ranges_copy(&t->ranges);
    memcpy(meta->tokenizer_hash, t->train_set.tokenizer_hash, sizeof meta->tokenizer_hash);
    memcpy(meta->init_from, t->init_from, sizeof meta->init_from);
    snprintf(meta->best_of, sizeof meta->best_of, "%s", trainer_metric(t)->word.word);
    meta->classes = mem_text(t->classes);
    meta->data_files = mem_text(t->data_files);
    if (t->algorithms) meta->algorithms = algorithm_record_text(t->algorithms);
    describe_input(&t->train_set, meta);
}

/* ---- saving ---- */

struct TrainSave {
    Trainer *trainer;
    CheckpointMeta meta;
    CheckpointIo io;
    /* path of the checkpoint; owned */
    char *path;
    /* second name of the file; NULL: it has one name; owned */
    char *also;
    /* access to the trainer's tensors in place; used only if training waits for the save */
    Live live;
    /* level of the copy's next round */
    int level;
    /* number of the copy's next round within its level */
    int round;
    /* writes the file after the last round; NULL before; owned */
    CheckpointSave *save;
    /* true: a thread that unpacks slices has been started and not joined */
    bool threaded;
    pthread_t thread;
    /* true: the thread that unpacks slices has not finished */
    atomic_bool busy;
    /* seconds of copying, of the rounds, and of the thread that unpacks slices */
    double seconds;
};

static void *unpack_slices(void *user)
{
    TrainSave *s = user;
    const double begun = clock_s();
    save_copy_unpack(s->trainer->copy);
    s->seconds += clock_s() - begun;
    atomic_store(&s->busy, false);
    return NULL;
}

/* Begins the next level if the current one has no more rounds. With tensor parallelism, starts a
 * thread between the levels, which unpacks slices. After the last level, begins to write the
 * file. */
static void advance(TrainSave *s)
{
    SaveCopy *copy = s->trainer->copy;
    while (s->level < SAVE_COPY_LEVELS && s->round == save_copy_rounds(copy, s->level)) {
        s->round = 0;
        if (++s->level == SAVE_COPY_LEVELS || s->trainer->shape.tp == 1) continue;
        atomic_store(&s->busy, true);
        s->threaded = thread_begin(&s->thread, unpack_slices, s) == 0;
        if (!s->threaded) unpack_slices(s);
        return;
    }
    if (s->level == SAVE_COPY_LEVELS)
        s->save = checkpoint_save_begin(s->trainer->world, s->path, &s->meta, &s->io, true);
}

void train_make_save_copy(Trainer *t)
{
    if (t->saves_in_background && !t->copy) t->copy = save_copy_new(t);
}

TrainSave *train_save_begin(Trainer *t, const TrainSaveTo *to)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    TrainSave *s = mem_new(sizeof *s);
    const double begun = clock_s();
    s->trainer = t;
    s->path = mem_text(to->path);
    s->also = mem_text(to->second_path);
    fill_meta(t, &s->meta);
    train_make_save_copy(t);
    if (t->copy && !to->waits) {
        if (!t->copied) save_copy_take(t->copy);
        save_copy_begin(t->copy);
        t->copy_lent = true;
        t->copied = false;
        s->io = save_copy_io(t->copy);
    } else {
        live_init(&s->live, t, false);
        s->live.sparse = sparse_io_saving(t);
        s->io = live_io(&s->live);
    }
    if (to->hooks) s->io.hooks = *to->hooks;
    s->io.second_path = s->also;
    s->seconds = clock_s() - begun;
    if (t->copy_lent)
        advance(s);
    else
        s->save = checkpoint_save_begin(t->world, s->path, &s->meta, &s->io, false);
    phase_enter(outer);
    return s;
}

bool train_save_busy(const TrainSave *s)
{
    return atomic_load(&s->busy) || (s->save && checkpoint_save_busy(s->save));
}

bool train_save_collects(const TrainSave *s)
{
    return !s->save && !s->threaded;
}

Status train_save_next(TrainSave *s, bool *done)
{
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Status st = OK;
    *done = false;
    if (s->save) {
        st = checkpoint_save_next(s->save, done);
    } else {
        const double begun = clock_s();
        if (s->threaded) pthread_join(s->thread, NULL);
        s->threaded = false;
        if (s->round < save_copy_rounds(s->trainer->copy, s->level))
            save_copy_collect(s->trainer->copy, s->level, s->round++);
        s->seconds += clock_s() - begun;
        advance(s);
    }
    phase_enter(outer);
    return st;
}

double train_save_seconds(const TrainSave *s)
{
    return s->seconds + (s->save ? checkpoint_save_seconds(s->save) : 0);
}

void train_save_free(TrainSave **save)
{
    TrainSave *s = *save;
    if (!s) return;
    if (s->threaded) pthread_join(s->thread, NULL);
    checkpoint_save_free(&s->save);
    checkpoint_meta_fini(&s->meta);
    if (s->live.list.trainer) live_fini(&s->live);
    s->trainer->copy_lent = false;
    mem_free(&s->also);
    mem_free(&s->path);
    mem_free(save);
}

Status train_save(Trainer *t, const char *path)
{
    TrainSave *s = train_save_begin(t, &(TrainSaveTo){.path = path, .waits = true});
    Status st = OK;
    for (bool done = false; !done;) st = train_save_next(s, &done);
    train_save_free(&s);
    return st;
}

/* ---- loading ---- */

/* Restores the state of evaluations. With another metric or other test data the old metrics are not
 * comparable and are dropped. The state of the learning rate's curve is always restored, because
 * the curve has already used the old metrics. */
static void restore_evaluations(Trainer *t, const CheckpointMeta *meta)
{
    bool same = resume_same_test(t, meta) && resume_same_best(t, meta);
    bool counted = meta->evaluations > 0;
    t->best_metric = same ? meta->best_metric : (double)NAN;
    t->evaluations = meta->evaluations;
    t->lr = counted ? meta->lr : lr_state_initial();
    t->lr.lr = meta->lr.lr;
    t->early =
        counted && same ? (EarlyStop){meta->stop_best, meta->stop_bad_evaluations} : early_stop();
    t->hook_stop = meta->hook_stop;
    t->evaluation_due = meta->evaluation_due;
}

/* Checks the vocabulary of ids for evaluation, prediction and model.init_from. A run that resumes
 * from its own checkpoint compares the whole configuration and the data instead (resume_check). */
static Status check_ids(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    if (data_ids_match(data_set_ids(&t->train_set), meta->data_ids)) return OK;
    return fail(
        ERR_DATA,
        "%s: its ids (below %llu; 0: any) are from another vocabulary than those that %s was "
        "trained on (below %llu): set data.train to the data set that it was trained on",
        t->train_set.path, (unsigned long long)t->train_set.id_limit, path,
        (unsigned long long)meta->data_ids.id_limit);
}

/* On rank 0, checks that data and model have the same meaning as in the checkpoint's training,
 * which the shapes of tensors do not show. The layers are compared only if just parameters are
 * loaded: a run that resumes from its own checkpoint has already compared the whole
 * configuration. */
static Status check_meaning(const Trainer *t, const CheckpointMeta *meta, const char *path,
                            bool params_only)
{
    TRY(classes_check_loaded(t, meta, path));
    TRY(scaling_check(t, meta, path));
    TRY(meaning_check(t, meta, path));
    if (!params_only) {
        scaling_log_stats(t, meta, path);
        scaling_warn_ranges(t, meta, path, "");
        return OK;
    }
    return checkpoint_check_layers(path, meta, t->config, graph_undivided(t->graph));
}

/* Ends a load. Begins the run's average with the parameters, unless the load has restored the
 * average from the file. Logs whether averages are used, begin or end here. */
static void take_averages(Trainer *t, const CheckpointMeta *meta, const char *path, TrainLoad what)
{
    const bool averages = t->config->train.ema > 0;
    t->loaded_averages = what == LOAD_AVERAGES && meta->average_count > 0;
    if (t->loaded_averages)
        log_info("%s: using the EMA of the parameters (--no-ema: the parameters themselves)", path);
    if (what == LOAD_RUN && meta->average_count > 0 && averages) return;
    optim_average_begin(t->optim, executor_params(t->executor));
    if (what != LOAD_RUN || averages == (meta->average_count > 0)) return;
    if (averages)
        log_info("%s has no EMA of the parameters: train.ema begins with its parameters", path);
    else
        log_info("%s has an EMA of the parameters, which ends here, because train.ema is 0", path);
}

/* Restores the window of losses with which later losses are compared. If the training set has grown
 * since the checkpoint, begins a new window, because losses on new files may be higher. */
static void take_losses(Trainer *t, const CheckpointMeta *meta)
{
    const bool grown = t->config->data.refresh != REFRESH_NEVER &&
                       strcmp(meta->data_train, t->train_fingerprint) != 0;
    loss_window_init(&t->losses, meta->loss, grown ? 0 : meta->loss_count);
}

Status train_load(Trainer *t, const char *path, TrainLoad what)
{
    const bool params_only = what != LOAD_RUN;
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Live live;
    CheckpointMeta meta = {0};
    live_init(&live, t, params_only);
    Status st = sparse_io_loading(t, path, params_only, &live.sparse);
    CheckpointIo io = live_io(&live);
    io.params_only = params_only;
    io.loads_averages = what == LOAD_AVERAGES;
    io.sets_early = true;
    t->copied = false;
    if (st == OK) {
        sparse_io_set_begin(live.sparse);
        st = checkpoint_load(t->world, path, &meta, &io);
        sparse_io_set_end(live.sparse);
    }
    /* checks facts that the shapes of tensors do not show */
    if (st == OK && params_only) st = status_agree(t->world, check_ids(t, &meta, path));
    const bool is_rank_0 = t->world->rank == 0;
    if (st == OK)
        st = status_agree(t->world, is_rank_0 ? check_meaning(t, &meta, path, params_only) : OK);
    if (st == OK) {
        executor_release_batches(t->executor);
        /* the next step opens the loader at the new position */
        step_loader_close(t);
        t->step = meta.step;
        t->optim->step = meta.step - meta.skipped;
        t->skipped = meta.skipped;
        take_losses(t, &meta);
        if (t->loss_scale.dynamic && meta.loss_scale > 0) {
            t->loss_scale.next = meta.loss_scale;
            t->loss_scale.good_steps = meta.loss_scale_good;
        }
        restore_evaluations(t, &meta);
        memcpy(t->init_from, meta.init_from, sizeof t->init_from);
        executor_params_changed(t->executor);
        take_averages(t, &meta, path, what);
        if (params_only)
            position_set_reported(t, &meta);
        else
            st = position_take(t, &meta, path);
    }
    checkpoint_meta_fini(&meta);
    live_fini(&live);
    phase_enter(outer);
    return st;
}

/* Matches tensors by name for model.init_from (CheckpointIo.match), and sets t->init_from, the text
 * by which this run's checkpoints describe the source of their parameters. */
static Status match_init(void *user, const CheckpointMeta *meta, const CheckpointStored *stored,
                         int count, int *from)
{
    const Live *live = user;
    Trainer *t = live->list.trainer;
    const CheckpointIo io = {.tensor = live->sparse ? live->tensor : live->list.tensor,
                             .count = live->list.count + sparse_io_count(live->sparse)};
    const char *path = t->config->model.init_from;
    char *anew = NULL;
    TRY(init_match(t->config, &io, stored, count, from, &anew));
    /* Only a warning: the model may have been changed on purpose, for example to longer contexts or
     * another activation. */
    if (checkpoint_check_layers(path, meta, t->config, graph_undivided(t->graph)) != OK)
        log_warn("%s; training continues with the model as it is here", fail_message());
    scaling_log_difference(t, meta, path);
    int tensors = 0;
    bool rows = false;
    uint64_t hash = 0;
    for (int i = 0; i < io.count; ++i) {
        if (from[i] < 0) continue;
        const uint64_t pair[2] = {hash, stored[from[i]].hash};
        hash = hash_bytes(pair, sizeof pair);
        ++tensors;
        rows = rows || i >= live->list.count;
    }
    if ((rows && check_ids(t, meta, path) != OK) ||
        meaning_check_beginning(t, meta, path, !*anew) != OK) {
        mem_free(&anew);
        return ERR_DATA;
    }
    const bool averages = meta->average_count > 0 && t->config->model.init_ema;
    snprintf(t->init_from, sizeof t->init_from, "%.900s, step %lld, %d tensors%s, xxh64 %016llx",
             path, (long long)meta->step, tensors, averages ? " (EMA)" : "",
             (unsigned long long)hash);
    log_info("beginning with %s%s%s", t->init_from, *anew ? "; anew: " : "", anew);
    mem_free(&anew);
    return OK;
}

Status train_init_params(Trainer *t)
{
    const char *path = t->config->model.init_from;
    train_draw_params(t);
    if (!path || !*path) return OK;
    Phase outer = phase_enter(PHASE_CHECKPOINT);
    Live live;
    live_init(&live, t, true);
    Status st = sparse_io_loading(t, path, true, &live.sparse);
    CheckpointIo io = live_io(&live);
    io.params_only = true;
    io.loads_averages = t->config->model.init_ema;
    io.sets_early = true;
    io.match = match_init;
    if (st == OK) {
        sparse_io_set_begin(live.sparse);
        st = checkpoint_load(t->world, path, NULL, &io);
        sparse_io_set_end(live.sparse);
    }
    world_bcast(t->world, t->init_from, sizeof t->init_from, 0);
    if (st == OK) executor_params_changed(t->executor);
    if (st == OK) optim_average_begin(t->optim, executor_params(t->executor));
    t->copied = false;
    live_fini(&live);
    phase_enter(outer);
    return st;
}
