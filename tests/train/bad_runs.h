/* Makes runs with bad data or damaged memory, for tests of what such a run does and what it
 * reports. */
#ifndef WEFT_TESTS_BAD_RUNS_H
#define WEFT_TESTS_BAD_RUNS_H

#include "tiny_main.h"

#include "train/run/run.h"

#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>

enum { SAMPLES = 24, CLASSES = 4, PIXELS = 16, BAD = 17, MANY = 300, WORDS = 24 };

/* good_path: data without faults; bad_path: one image has values that are too large; far_path: a
 * larger set with one unusual image; said_path: file with rank 0's messages */
static char good_path[64], bad_path[64], far_path[64], said_path[64];

/* Writes n images of floats around 0. Only image number `odd` differs: all its values are
 * `value`. */
static void float_data(const char *path, int n, int odd, float value)
{
    float *x = mem_new((size_t)n * PIXELS * sizeof *x);
    int32_t *y = mem_new((size_t)n * sizeof *y);
    RngKey key = rng_key(11, RNG_TEST, 0, 0);
    for (int i = 0; i < n; ++i) {
        y[i] = (i + (i == odd)) % CLASSES;
        for (int k = 0; k < PIXELS; ++k) {
            float noise = rng_uniform(key, (uint64_t)(i * PIXELS + k)) - 0.5f;
            x[i * PIXELS + k] = i == odd ? value : noise + (k % CLASSES == y[i] ? 1.0f : 0.0f);
        }
    }
    tiny_images(path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, x, y, n, 1, 4, 4);
    mem_free(&x);
    mem_free(&y);
}

/* Returns the number of the sample that is at position 250 of the first epoch. */
static int late_sample(void)
{
    return (int)sampler_at(MANY, 3, 0, 250);
}

static void prepare(void)
{
    snprintf(good_path, sizeof good_path, "%s/good.h5", tiny_folder);
    snprintf(bad_path, sizeof bad_path, "%s/bad.h5", tiny_folder);
    snprintf(far_path, sizeof far_path, "%s/far.h5", tiny_folder);
    snprintf(said_path, sizeof said_path, "%s/said", tiny_folder);
    if (tiny_rank > 0) return;
    float_data(good_path, SAMPLES, -1, 0);
    float_data(bad_path, SAMPLES, BAD, FLT_MAX);
    float_data(far_path, MANY, late_sample(), 400.0f);
}

/* The result of a run. */
typedef struct Outcome {
    Status status;
    /* tiny_hash at the end */
    uint64_t hash;
    /* step: last step; skipped: number of steps that were skipped */
    int64_t step, skipped;
    /* message: why the run ended; said: rank 0's messages until then */
    char message[2048], said[4096];
} Outcome;

typedef struct Case {
    /* name: name of the run; data: path of the training set */
    const char *name, *data;
    int ranks;
    /* key=value overrides, "a=b c=d", or "a=b;c=d" if values contain spaces */
    const char *more;
    /* called on every rank before each step, to damage the run; NULL: nothing is damaged */
    void (*hurt)(Run *run);
} Case;

static Config *config_of(const Case *c)
{
    Config *config = NULL;
    char *text = mem_format("run: {seed: 3, dir: %s, name: %s}\n"
                            "model: {layers: [flatten, dense: {width: 64}, relu, dense: {width: "
                            "12}, relu, dense: {width: %d}]}\n"
                            "data: {train: %s}\n"
                            "train: {batch: 8, micro_batch: 2, threads: 1, steps: 12}\n"
                            "optim: {lr: 0.05, momentum: 0.9}\n"
                            "checkpoint: {every_s: 0, best: false}\n",
                            tiny_folder, c->name, CLASSES, c->data);
    char *words[WORDS], *copy = mem_text(c->more), *rest = copy;
    const char *between = strchr(c->more, ';') ? ";" : " ";
    int count = 0;
    for (char *word; (word = strsep(&rest, between));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "bad.yaml", text, count, words));
    mem_free(&text);
    mem_free(&copy);
    return config;
}

static Status make_steps(const Case *c, Run *r, Outcome *out)
{
    Trainer *t = r->trainer;
    Status st = status_agree(
        r->world, r->world->rank == 0 ? run_dir_open(&r->dir, r->config->run.heartbeat_s) : OK);
    if (st == OK) st = run_resume(r);
    if (st == OK) run_bad_begin(r);
    while (st == OK && t->step < t->steps) {
        if (c->hurt) c->hurt(r);
        st = run_step(r);
    }
    if (st != OK) snprintf(out->message, sizeof out->message, "%s", fail_message());
    Status saved = run_save_wait(r);
    st = st == OK ? saved : st;
    out->step = t->step;
    out->skipped = t->skipped;
    out->hash = tiny_hash(t);
    return st;
}

/* Does what train_run does, without the output at the end. */
static void run_case(const Case *c, const World *world, Outcome *out)
{
    Config *config = config_of(c);
    Run r = {.config = config, .world = world, .best_saved = NAN};
    if (world->rank == 0) r.verified = known_files_new();
    run_dir_init(&r.dir, config);
    run_time_init(&r);
    out->status = trainer_new(&r.trainer, config, world);
    if (out->status == OK) out->status = make_steps(c, &r, out);
    hook_free(&r.hook);
    run_time_fini(&r);
    run_bad_end(&r);
    observer_free(&r.observer);
    train_save_free(&r.save);
    trainer_free(&r.trainer);
    run_dir_fini(&r.dir);
    known_files_free(&r.verified);
    mem_free(&r.newest_path);
    mem_free(&r.saving_path);
    config_free(&config);
}

/* Runs the case on the first c.ranks ranks of the program. Returns the same outcome on all
 * ranks. */
static Outcome run(Case c)
{
    World sub;
    Outcome out = {0};
    fflush(stdout);
    int err = dup(2), words = dup(1), nothing = open("/dev/null", O_WRONLY),
        file = open(said_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    tiny_barrier();
    log_init(tiny_rank == 0);
    if (tiny_rank == 0) dup2(file, 2);
    dup2(nothing, 1);
    if (tiny_world(&sub, c.ranks)) run_case(&c, &sub, &out);
    tiny_world_fini(&sub);
    fflush(stdout);
    dup2(err, 2);
    dup2(words, 1);
    close(words);
    close(nothing);
    log_init(false);
    if (tiny_rank == 0 && pread(file, out.said, sizeof out.said - 1, 0) < 0) out.said[0] = 0;
    close(err);
    close(file);
    tiny_bcast(&out, sizeof out);
    return out;
}

/* Checks that a text contains `what`. */
static void says(const char *text, const char *what)
{
    if (!strstr(text, what) && tiny_rank == 0) printf("  lacks '%s': %s\n", what, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, what));
}

/* Returns whether run `name` has a checkpoint of this step. */
static bool saved(const char *name, int step)
{
    char *path = mem_format("%s/%s/checkpoints/step-%08d.h5", tiny_folder, name, step);
    bool there = access(path, F_OK) == 0;
    mem_free(&path);
    return there;
}

#endif
