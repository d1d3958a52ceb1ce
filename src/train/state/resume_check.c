/* Checks whether this run may resume from one of its checkpoints. The configuration must be the
 * same, except for train.epochs, train.steps, and the keys that copy_neutral_keys copies, such as
 * all keys of grid. The content of the training set must be the same; its file may be at another
 * path if the checkpoint has a fingerprint of the content. */
#include "../algorithms.h"
#include "resume.h"

#include "../step/position.h"

#include <string.h>

Status resume_know_data(Trainer *t)
{
    Status st =
        t->world->rank == 0 ? data_set_fingerprint(&t->train_set, t->train_fingerprint) : OK;
    if (t->world->rank == 0 && st == OK && t->test_set.samples > 0)
        st = data_set_fingerprint(&t->test_set, t->test_fingerprint);
    if (t->world->rank == 0 && st == OK) st = data_set_measure(&t->train_set, &t->ranges);
    TRY(status_agree(t->world, st));
    world_bcast(t->world, t->train_fingerprint, sizeof t->train_fingerprint, 0);
    world_bcast(t->world, t->test_fingerprint, sizeof t->test_fingerprint, 0);
    return OK;
}

bool resume_same_test(const Trainer *t, const CheckpointMeta *meta)
{
    return !*t->test_fingerprint || !data_fingerprint_known(meta->data_test) ||
           strcmp(t->test_fingerprint, meta->data_test) == 0;
}

bool resume_same_best(const Trainer *t, const CheckpointMeta *meta)
{
    return !*meta->best_of || !strcmp(meta->best_of, trainer_metric(t)->word.word);
}

/* Returns true if both configurations use GPUs and only one uses a record of algorithms.
 * algorithms_check compares the records themselves. */
static bool tunes_differently(const Config *a, const Config *b)
{
    bool gpus = a->train.device == DEVICE_CUDA && b->train.device == DEVICE_CUDA;
    return gpus && !strcmp(a->train.cuda_tune, "off") != !strcmp(b->train.cuda_tune, "off");
}

/* Copies from `now` to c the keys that may change when a run resumes: where and how it executes
 * (all keys of grid), what it logs and saves, its hook, early stopping, and how it handles bad
 * steps. The keys of evaluations are among them only if the learning rate does not depend on
 * evaluations. */
static void copy_neutral_keys(Config *c, const Config *now)
{
    int best = c->checkpoint.best_metric;
    c->grid = now->grid;
    c->checkpoint = now->checkpoint;
    if (lr_depends_on_evaluations(now)) {
        c->checkpoint.best_metric = best;
    } else {
        c->train.eval_every = now->train.eval_every;
        c->train.auc = now->train.auc;
    }
    c->run.hook = now->run.hook;
    c->run.hook_on = now->run.hook_on;
    c->run.hook_s = now->run.hook_s;
    c->run.hook_wait = now->run.hook_wait;
    c->train.grad_noise = now->train.grad_noise;
    c->train.early_stop = now->train.early_stop;
    c->train.early_stop_delta = now->train.early_stop_delta;
    c->run.name = now->run.name;
    c->run.dir = now->run.dir;
    c->run.fresh = now->run.fresh;
    c->run.order_log = now->run.order_log;
    c->run.replay = now->run.replay;
    c->run.trace = now->run.trace;
    c->run.nvtx = now->run.nvtx;
    c->run.map = now->run.map;
    c->run.max_time = now->run.max_time;
    c->run.machine = now->run.machine;
    c->train.hang_s = now->train.hang_s;
    if (!tunes_differently(c, now)) c->train.cuda_tune = now->train.cuda_tune;
    c->train.device = now->train.device;
    c->train.cuda_graphs = now->train.cuda_graphs;
    c->train.log_every = now->train.log_every;
    c->train.threads = now->train.threads;
    c->train.memory = now->train.memory;
    c->train.on_bad = now->train.on_bad;
    c->train.spike = now->train.spike;
    c->train.check_every = now->train.check_every;
    c->data.prefetch = now->data.prefetch;
    c->data.workers = now->data.workers;
}

/* Copies the keys of data files, which do not affect results if the fingerprint of the data is
 * known. */
static void copy_data_keys(Config *c, const Config *now)
{
    c->data.train = now->data.train;
    c->data.test = now->data.test;
    c->data.x = now->data.x;
    c->data.y = now->data.y;
}

/* Returns whether only one of two configurations has train.micro_batch, with the value that is the
 * other one's default. */
static bool same_micro_batch(const Trainer *t, const Config *old)
{
    const int64_t a = old->train.micro_batch, b = t->config->train.micro_batch;
    return old->train.batch == t->batch && !a != !b && (a ? a : b) == train_default_micro_batch(t);
}

/* Copies the keys for images, which had no effect on other data before they were refused there. */
static void copy_image_keys(Config *c, const Config *now)
{
    c->data.augment = now->data.augment;
    c->data.resize = now->data.resize;
    c->data.random_resized_crop = now->data.random_resized_crop;
    c->data.random_crop = now->data.random_crop;
    c->data.center_crop = now->data.center_crop;
    c->data.color_jitter = now->data.color_jitter;
}

static Status check_config(const Trainer *t, const Config *old, bool data_known, const char *path)
{
    const Config *config = t->config;
    Config same = *old;
    copy_neutral_keys(&same, config);
    if (!data_has_images(&t->train_set)) copy_image_keys(&same, config);
    if (same_micro_batch(t, old)) same.train.micro_batch = config->train.micro_batch;
    same.train.epochs = config->train.epochs;
    same.train.steps = config->train.steps;
    if (data_known) copy_data_keys(&same, config);
    char *old_text = config_text(&same), *new_text = config_text(config), a[160], b[160];
    bool differ = config_difference(old_text, new_text, a, b, sizeof a);
    mem_free(&old_text);
    mem_free(&new_text);
    if (!differ) return OK;
    return fail(
        ERR_CONFIG,
        "%s was written with `%s`, the configuration now says `%s`: choose another run.name "
        "(with checkpoint.resume=%s it begins from there)",
        path, a, b, path);
}

/* Returns a text that names the training set in messages: its file, or the pattern or list of its
 * files, because the fingerprint does not show which file has changed. Owner: the caller. */
static char *set_text(const Trainer *t)
{
    const int files = data_set_files(&t->train_set);
    const char *train = t->config->data.train;
    if (files == 1) return mem_text(t->train_set.path);
    if (strchr(train, '\n'))
        return mem_format("data.train, %d files from %s on", files, t->train_set.path);
    return mem_format("%s, %d files", train, files);
}

static Status check_data(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    if (strcmp(meta->data_train, t->train_fingerprint) == 0) return OK;
    char *set = set_text(t);
    Status st = fail(ERR_DATA,
                     "%s: holds other data than this run was trained on: %s, it was %s; name that "
                     "data with data.train, or choose another run.name (with checkpoint.resume=%s "
                     "it begins from there)",
                     set, t->train_fingerprint, meta->data_train, path);
    mem_free(&set);
    return st;
}

Status resume_check(const Trainer *t, const char *path)
{
    CheckpointMeta meta = {0};
    Config *old = NULL;
    TRY(checkpoint_read_meta(path, &meta));
    bool known = data_fingerprint_known(meta.data_train);
    if (!known)
        log_info("%s has no fingerprint of its data: data.train must be the same path", path);
    Status st = config_parse(&old, path, meta.config ? meta.config : "", 0, NULL);
    if (st == OK) st = check_config(t, old, known, path);
    if (st == OK) st = position_check_end(t->config, &meta, path);
    if (st == OK && known) st = check_data(t, &meta, path);
    if (st == OK) st = algorithms_check(t, &meta, path);
    config_free(&old);
    checkpoint_meta_fini(&meta);
    return st;
}

char *resume_identity(const Trainer *t)
{
    const Config *c = t->config;
    Config *defaults = NULL, numbers = *c;
    if (config_load(&defaults, NULL, 0, NULL) != OK) die("%s", fail_message());
    copy_neutral_keys(&numbers, defaults);
    if (data_fingerprint_known(t->train_fingerprint)) copy_data_keys(&numbers, defaults);
    numbers.grid.mode = c->grid.mode;
    numbers.grid.geo_steps = c->grid.geo_steps;
    if (lr_depends_on_evaluations(c)) {
        numbers.checkpoint.best_metric = c->checkpoint.best_metric;
        numbers.train.eval_every = c->train.eval_every;
        numbers.train.auc = c->train.auc;
    }
    char *text = config_text(&numbers);
    char *all = mem_format("%sheld:\n  data.train: %s\n  model.init_from: %s\n", text,
                           t->train_fingerprint, t->init_from);
    mem_free(&text);
    config_free(&defaults);
    return all;
}
