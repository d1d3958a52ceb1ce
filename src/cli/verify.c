/* weft verify: checks that training gives the same bits on several grids. Makes one run after the
 * other, and starts the ranks of each run itself, so it refuses to run under a launcher. Compares
 * the losses and the hashes of all tensors with those of the first run. An interrupt ends the
 * ranks, and all folders are removed. */
#include "verify.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct VerifyOptions {
    FlagList grids, schedules, zeros, transports, threads;
    int64_t steps;
    bool json;
} VerifyOptions;

static const Flag flags[] = {
    {"--grids", FLAG_FIELD(VerifyOptions, grids), .value = "1x1x1,2x1x1",
     .default_text = "1x1x1,2x1x1,1x2x1",
     .help = "dp x pp x tp of each grid; the others are compared with the first"},
    {"--steps", FLAG_FIELD(VerifyOptions, steps), .value = "S", .lo = 1, .hi = 1000000,
     .default_text = "3",
     .help = "optimizer steps from newly initialised parameters, without "
             "evaluation"},
    {"--schedules", FLAG_FIELD(VerifyOptions, schedules), .value = "gpipe,1f1b",
     .help = "run each grid with each of these values of grid.pipeline_schedule"},
    {"--zero", FLAG_FIELD(VerifyOptions, zeros), .value = "0,2,3",
     .help = "run each grid with several replicas with each of these values of grid.zero"},
    {"--transports", FLAG_FIELD(VerifyOptions, transports), .value = "shm,mpi",
     .help = "run each grid with several ranks with each of these values of grid.transport"},
    {"--threads", FLAG_FIELD(VerifyOptions, threads), .value = "1,2,4",
     .help = "run each grid with each of these numbers of threads of a rank"},
    {"--json", FLAG_FIELD(VerifyOptions, json), .help = "one JSON object per run and line"},
};

typedef struct Trials {
    int count;
    /* [count]; owned */
    Trial *trial;
    /* true: results are printed as JSON */
    bool json;
} Trials;

/* ---- command line ---- */

static Status parse_grid(const char *text, GridShape *shape)
{
    int64_t size[3];
    if (!sizes_read(text, 3, size))
        return fail(ERR_USAGE, "--grids: '%s' is no grid: expected dp x pp x tp, like 2x1x1", text);
    if ((double)size[0] * (double)size[1] * (double)size[2] > RANKS_MAX)
        return fail(ERR_USAGE, "--grids: %s is more than %d ranks", text, RANKS_MAX);
    *shape = (GridShape){.dp = (int)size[0], .pp = (int)size[1], .tp = (int)size[2]};
    return OK;
}

/* ---- list of runs ---- */

/* Adds a trial with the settings of t, and sets its name. */
static void add_trial(Trials *all, Trial t)
{
    const GridShape g = t.shape;
    all->trial = mem_resize(all->trial, (size_t)(all->count + 1) * sizeof *all->trial);
    t.name = mem_format("%dx%dx%d%s%s%s%s%s%s%s%s", g.dp, g.pp, g.tp, t.schedule ? ", " : "",
                        t.schedule ? t.schedule : "", t.zero ? ", zero " : "", t.zero ? t.zero : "",
                        t.transport ? ", " : "", t.transport ? t.transport : "",
                        t.threads ? ", threads " : "", t.threads ? t.threads : "");
    all->trial[all->count++] = t;
}

/* Returns word i of a list. If the list is empty, returns NULL, which stands for the
 * configuration's own setting. */
static const char *word_at(const FlagList *list, int i)
{
    return list->count ? list->word[i] : NULL;
}

/* Returns the number of values of a list that are tried on a grid. It is 1 if the list is empty or
 * its key has no effect on the grid (has_effect). */
static int word_count(const FlagList *list, bool has_effect)
{
    return has_effect && list->count ? list->count : 1;
}

/* Makes a trial for each combination of a grid with the values of all lists. If a list's key has no
 * effect on a grid, only the first value is used with that grid. */
static Status make_trials(Trials *all, const VerifyOptions *o)
{
    for (int g = 0; g < o->grids.count; ++g) {
        GridShape shape = {0};
        TRY(parse_grid(o->grids.word[g], &shape));
        int schedules = word_count(&o->schedules, true);
        int zeros = word_count(&o->zeros, shape.dp > 1);
        int transports = word_count(&o->transports, shape.dp * shape.pp * shape.tp > 1);
        int threads = word_count(&o->threads, true);
        for (int i = 0; i < schedules * zeros * transports * threads; ++i)
            add_trial(all,
                      (Trial){.shape = shape,
                              .schedule = word_at(&o->schedules, i / threads / transports / zeros),
                              .zero = word_at(&o->zeros, i / threads / transports % zeros),
                              .transport = word_at(&o->transports, i / threads % transports),
                              .threads = word_at(&o->threads, i % threads)});
    }
    if (all->count > 1) return OK;
    return fail(ERR_USAGE, "a single run has nothing to compare with: give several --grids, or "
                           "several --threads");
}

/* Checks each trial's configuration before the first one starts. */
static Status check_trials(const Trials *all, const Verification *v)
{
    for (int i = 0; i < all->count; ++i) {
        Config *config = NULL;
        TRY(trial_make_config(&config, v, &all->trial[i]));
        config_free(&config);
    }
    return OK;
}

/* ---- comparing ---- */

/* The differences between the results of a trial and those of the first trial. */
typedef struct Difference {
    /* first step with a different loss, counted from 1; 0: all losses are the same */
    int step;
    /* path of the first parameter that differs or, if no parameter does, of the first tensor that
     * differs; borrowed. NULL: all tensors are the same. */
    const char *tensor;
    /* number of tensors that differ */
    int tensors;
} Difference;

static bool is_param(const char *path)
{
    return strncmp(path, "/params/", strlen("/params/")) == 0;
}

/* Compares the results of trial b with those of trial a. */
static Difference compare(const Trial *a, const Trial *b, int steps)
{
    Difference d = {0};
    for (int s = steps; s > 0; --s)
        if (strcmp(a->loss[s - 1], b->loss[s - 1]) != 0) d.step = s;
    int count = a->hashes.count < b->hashes.count ? a->hashes.count : b->hashes.count;
    for (int i = 0; i < count; ++i) {
        const CheckpointHash *x = &a->hashes.tensor[i], *y = &b->hashes.tensor[i];
        if (strcmp(x->path, y->path) == 0 && x->hash == y->hash) continue;
        ++d.tensors;
        if (!d.tensor || (!is_param(d.tensor) && is_param(x->path))) d.tensor = x->path;
    }
    if (!d.tensor && a->hashes.count != b->hashes.count) {
        const CheckpointHashes *longer = a->hashes.count > count ? &a->hashes : &b->hashes;
        d.tensor = longer->tensor[count].path;
        d.tensors = longer->count - count;
    }
    return d;
}

/* ---- printing ---- */

static int name_width(const Trials *all)
{
    int width = (int)strlen("grid");
    for (int i = 0; i < all->count; ++i)
        if ((int)strlen(all->trial[i].name) > width) width = (int)strlen(all->trial[i].name);
    return width;
}

static int trial_ranks(const Trial *t)
{
    return t->shape.dp * t->shape.pp * t->shape.tp;
}

static void print_head(int width, FILE *out)
{
    fprintf(out, "%-*s  %5s  %7s  %s\n", width, "grid", "ranks", "seconds", "hash");
}

static void print_trial(const Trial *t, int width, const char *verdict, FILE *out)
{
    fprintf(out, "%-*s  %5d  %7.2f  %016" PRIx64 "%s%s\n", width, t->name, trial_ranks(t),
            t->seconds, t->hash, *verdict ? "  " : "", verdict);
    fflush(out);
}

static void print_json(const Trial *t, Difference d, int steps, FILE *out)
{
    Json json = json_to(out, true);
    json_object(&json, NULL);
    json_format(&json, "grid", "%dx%dx%d", t->shape.dp, t->shape.pp, t->shape.tp);
    json_int(&json, "ranks", trial_ranks(t));
    json_text(&json, "schedule", t->schedule);
    json_text(&json, "zero", t->zero);
    json_text(&json, "transport", t->transport);
    json_text(&json, "threads", t->threads);
    json_fixed(&json, "seconds", 3, t->seconds);
    json_format(&json, "hash", "%016" PRIx64, t->hash);
    json_bool(&json, "same", !d.step && !d.tensor);
    json_text(&json, "first_tensor", d.tensor);
    json_int(&json, "tensors_differ", d.tensors);
    json_int(&json, "tensors", t->hashes.count);
    json_int(&json, "loss_differs_at_step", d.step);
    json_array(&json, "loss");
    /* numbers as in metrics.jsonl */
    for (int s = 0; s < steps; ++s) json_raw(&json, NULL, t->loss[s]);
    json_end(&json);
    json_end(&json);
    fflush(out);
}

static Status fail_difference(const Trial *t, const Trial *first, Difference d)
{
    char *loss = d.step ? mem_format("; the losses of step %d are %s and %s", d.step,
                                     first->loss[d.step - 1], t->loss[d.step - 1])
                        : mem_text("; the losses are the same");
    Status status = fail(ERR_DATA, "grid %s and grid %s differ: %s%s (%d of %d tensors)%s",
                         first->name, t->name, d.tensor ? "first in tensor " : "in no tensor",
                         d.tensor ? d.tensor : "", d.tensors, t->hashes.count, loss);
    mem_free(&loss);
    return status;
}

/* ---- the verb ---- */

/* Runs all trials, even after one that differs, and prints the result of each. ERR_DATA: a trial
 * differs; the message is about the first such trial. */
static Status run_all(Trials *all, Verification *v)
{
    const Trial *first = all->trial;
    Status verdict = OK;
    char *message = NULL;
    int width = name_width(all);
    if (!all->json) print_head(width, stdout);
    for (int i = 0; i < all->count; ++i) {
        Trial *t = &all->trial[i];
        Status status = trial_run(v, t);
        if (status != OK) {
            mem_free(&message);
            return status;
        }
        Difference d = compare(first, t, v->steps);
        bool same = !d.step && !d.tensor;
        if (all->json)
            print_json(t, d, v->steps, stdout);
        else
            print_trial(t, width, t == first ? "" : same ? "same" : "differs", stdout);
        if (!same) fprintf(stderr, "%s%s", verdict == OK ? first->warnings : "", t->warnings);
        if (same || verdict != OK) continue;
        verdict = fail_difference(t, first, d);
        message = mem_text(fail_message());
    }
    if (verdict != OK) fail(verdict, "%s", message);
    if (verdict == OK && !all->json)
        printf("the same to the bit: %d tensors and the losses of %d steps on %d runs\n",
               first->hashes.count, v->steps, all->count);
    mem_free(&message);
    return verdict;
}

/* Refuses runs that choose algorithms by timing, because each run may choose different algorithms,
 * even on the same grid. */
static Status check_tune(const Config *config)
{
    if (config->train.device != DEVICE_CUDA || strcmp(config->train.cuda_tune, "time") != 0)
        return OK;
    return config_fail_key(config, "train.cuda_tune",
                           "each of the compared runs would choose algorithms by timing: set the "
                           "record of a run (runs/NAME/algorithms.txt), or off");
}

/* Calls check_tune, and then makes the folder v->dir. It is next to run.dir, where there is space
 * for runs, and where other nodes see it. */
static Status make_folder(Verification *v)
{
    Config *config = NULL;
    TRY(config_load(&config, v->argv[0], v->argc - 1, v->argv + 1));
    size_t length = strlen(config->run.dir);
    while (length > 1 && config->run.dir[length - 1] == '/') --length;
    v->dir = mem_format("%.*s.verify-XXXXXX", (int)length, config->run.dir);
    Status status = check_tune(config);
    config_free(&config);
    if (status == OK && !mkdtemp(v->dir))
        status = fail(ERR_IO, "%s: this folder cannot be made: %s; choose another run.dir", v->dir,
                      strerror(errno));
    if (status != OK) mem_free(&v->dir);
    return status;
}

static Status run_trials(Trials *all, Verification *v)
{
    TRY(check_trials(all, v));
    /* Shells start background jobs with SIGINT ignored. Here an interrupt must be received, so that
     * the folders are removed. */
    signal(SIGINT, SIG_DFL);
    runner_init(&v->runner);
    Status status = make_folder(v);
    if (status == OK) status = run_all(all, v);
    if (v->dir) folder_remove(v->dir);
    mem_free(&v->dir);
    /* all folders are removed, so the signal that ended a run may end this process */
    if (v->runner.first_signal) {
        fflush(NULL);
        signal(v->runner.first_signal, SIG_DFL);
        raise(v->runner.first_signal);
    }
    sigprocmask(SIG_SETMASK, &v->runner.former_mask, NULL);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    const VerifyOptions *o = options;
    Trials all = {.json = o->json};
    if (is_launched())
        return fail(ERR_USAGE, "verify starts its ranks itself: run it without mpirun or srun");
    Verification v = {.argc = argc, .argv = argv, .steps = (int)o->steps};
    Status status = make_trials(&all, o);
    if (status == OK) status = run_trials(&all, &v);
    for (int i = 0; i < all.count; ++i) trial_fini(&all.trial[i]);
    mem_free(&all.trial);
    return status;
}

const Verb verb_verify = {
    .name = "verify",
    .words = "CONFIG [key=value ...]",
    .help = "trains a few steps on several grids and compares all bits; exit 65 if they differ",
    .more = "The runs are made one after the other. Each rank has train.threads threads, 1 by "
            "default, unless --threads lists other numbers. The losses of all steps are compared, "
            "and the hash of every parameter, running statistic and tensor of the optimizer state. "
            "The folders of these runs are made in the folder that contains run.dir, and removed.",
    VERB_FLAGS(VerifyOptions, flags),
    .traits = VERB_CONFIG | VERB_DATA,
    .run = run,
};
