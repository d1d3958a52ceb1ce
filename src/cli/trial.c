/* A trial: one run of a verification. The run has its own configuration and folder, and its output
 * goes to a log. The run's losses, hashes, warnings and time are kept in memory, and its folder is
 * removed. The next trial overwrites the configuration and the log. */
#include "verify.h"

#include "train.h"

#include <errno.h>
#include <ftw.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- configuration ---- */

/* Appends the word key=value, unless value is NULL. The caller frees the word. */
static void add_word(char **words, int *count, const char *key, const char *value)
{
    if (value) words[(*count)++] = mem_format("%s=%s", key, value);
}

/* Sets the keys that all trials have. A trial makes v->steps steps from step 0, logs every loss,
 * and saves one checkpoint, after the last step. It has no evaluation, no traces, no run.map and no
 * run.max_time. If train.threads is not set, a rank has one thread. */
static void set_keys(Config *c, const Verification *v)
{
    c->run.trace = c->run.nvtx = c->run.map = false;
    c->run.max_time = 0;
    c->train.epochs = 0;
    c->train.steps = v->steps;
    c->train.log_every = 1;
    c->train.eval_every = 0;
    if (c->train.threads == 0) c->train.threads = 1;
    mem_free(&c->data.test);
    c->checkpoint.every_steps = 0;
    c->checkpoint.every_s = 0;
    c->checkpoint.best = false;
    c->checkpoint.resume = RESUME_NO;
}

Status trial_make_config(Config **config, const Verification *v, const Trial *t)
{
    enum { ADDED_MAX = 9 };
    char **words = mem_new((size_t)(v->argc + ADDED_MAX) * sizeof *words), number[16];
    int given = v->argc - 1, count = given;
    memcpy(words, v->argv + 1, (size_t)given * sizeof *words);
    snprintf(number, sizeof number, "%d", t->shape.dp);
    add_word(words, &count, "grid.dp", number);
    snprintf(number, sizeof number, "%d", t->shape.pp);
    add_word(words, &count, "grid.pp", number);
    snprintf(number, sizeof number, "%d", t->shape.tp);
    add_word(words, &count, "grid.tp", number);
    add_word(words, &count, "grid.pipeline_schedule", t->schedule);
    add_word(words, &count, "grid.zero", t->zero);
    add_word(words, &count, "grid.transport", t->transport);
    add_word(words, &count, "train.threads", t->threads);
    Status status = config_load(config, v->argv[0], count, words);
    for (int i = given; i < count; ++i) mem_free(&words[i]);
    mem_free(&words);
    if (status == OK) set_keys(*config, v);
    return status;
}

/* Sets run.dir and run.name so that the run's folder is "run" in v->dir, and writes the
 * configuration to the file `path`. ERR_IO: it cannot be written. */
static Status write_config(Config *config, const Verification *v, const char *path)
{
    mem_free(&config->run.dir);
    mem_free(&config->run.name);
    config->run.dir = mem_text(v->dir);
    config->run.name = mem_text("run");
    char *text = config_text(config);
    FILE *file = file_create_stream(path);
    bool good = file && fputs(text, file) >= 0;
    if (file && fclose(file) != 0) good = false;
    mem_free(&text);
    return good ? OK : fail(ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* ---- folder ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *where)
{
    (void)st;
    (void)kind;
    (void)where;
    remove(path);
    return 0;
}

void folder_remove(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- log ---- */

/* Returns the lines of a log that contain the text `pattern`, each after "  | ". The caller owns
 * the result. */
static char *log_lines(const char *path, const char *pattern)
{
    char line[1024], *text = NULL;
    size_t bytes;
    FILE *file = file_open_stream(path), *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    while (file && fgets(line, sizeof line, file))
        if (strstr(line, pattern)) fprintf(out, "  | %s", line);
    if (file) fclose(file);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    return text;
}

static void show_log(const char *path)
{
    char *text = log_lines(path, "");
    fputs(text, stderr);
    mem_free(&text);
}

/* ---- results ---- */

/* Reads t->loss from metrics.jsonl. ERR_BUG: it has fewer losses than steps. */
static Status read_losses(Trial *t, const char *path, int steps)
{
    static const char key[] = ",\"loss\":";
    char line[4096];
    int count = 0;
    t->loss = mem_new((size_t)(steps + 1) * sizeof *t->loss);
    FILE *file = file_open_stream(path);
    if (!file) return fail(ERR_NOINPUT, "%s: cannot be read: %s", path, strerror(errno));
    while (count < steps && fgets(line, sizeof line, file)) {
        const char *at = strstr(line, key);
        if (!at) continue;
        at += strlen(key);
        t->loss[count++] = mem_format("%.*s", (int)strcspn(at, ",}"), at);
    }
    fclose(file);
    if (count == steps) return OK;
    return fail(ERR_BUG, "%s: holds %d losses of %d steps", path, count, steps);
}

/* Computes the trial's hash from the paths and hashes of all tensors. */
static void combine_hashes(Trial *t)
{
    for (int i = 0; i < t->hashes.count; ++i) {
        const CheckpointHash *h = &t->hashes.tensor[i];
        uint64_t chain[3] = {t->hash, hash_text(h->path), h->hash};
        t->hash = hash_bytes(chain, sizeof chain);
    }
}

static Status read_results(const Verification *v, Trial *t, const char *log)
{
    char *metrics = mem_format("%s/run/metrics.jsonl", v->dir);
    char *checkpoint = mem_format("%s/run/checkpoints/step-%08d.h5", v->dir, v->steps);
    Status status = read_losses(t, metrics, v->steps);
    if (status == OK) status = checkpoint_hashes(checkpoint, &t->hashes);
    if (status == OK) combine_hashes(t);
    t->warnings = log_lines(log, "warning:");
    if (status != OK) show_log(log);
    mem_free(&metrics);
    mem_free(&checkpoint);
    return status;
}

/* ---- the run ---- */

/* Prints the log, and fails with the status that the run's exit code means. For codes that a run
 * can only have because of a bug, a signal or mpirun, the status is ERR_BUG. */
static Status fail_run(const Trial *t, const char *log, int code)
{
    static const Status known[] = {ERR_USAGE,  ERR_DATA, ERR_NOINPUT,
                                   ERR_MEMORY, ERR_IO,   ERR_CONFIG};
    Status status = ERR_BUG;
    for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
        if ((int)known[i] == code) status = known[i];
    show_log(log);
    return fail(status, "grid %s: its run failed, exit code %d; its output is above", t->name,
                code);
}

/* exit code of mpirun for its own failures, which may occur after the ranks have ended; weft has no
 * exit code 1 */
enum { MPIRUN_ERROR = 1 };

/* Returns whether rank 0 has printed the run's summary. It prints the summary after all ranks have
 * agreed that the run is done. */
static bool is_complete(const char *log)
{
    char *lines = log_lines(log, "done after ");
    bool complete = *lines != 0;
    mem_free(&lines);
    return complete;
}

static Status run_ranks(Verification *v, Trial *t, const char *yaml, const char *log,
                        const Config *config)
{
    char *words[] = {"weft", "train", (char *)(uintptr_t)yaml, NULL};
    int ranks = t->shape.dp * t->shape.pp * t->shape.tp, code = 0;
    Runner *r = &v->runner;
    char id[RANDOM_ID_BYTES], *why,
        *folder = mem_format("%s/%s", config->run.dir, config->run.name);
    random_id(id);
    start_watch_set_id(&r->start_watch, folder, id, 1);
    r->single = ranks == 1;
    r->local = true;
    r->may_be_remote = in_batch_job();
    r->log = log;
    r->threads = (int)config->train.threads;
    r->hang_s = config->train.hang_s;
    double start = clock_s();
    Status status = launch_run(r, ranks, words, false, &code, &why);
    mem_free(&folder);
    mem_free(&why); /* the log has mpirun's words, too */
    TRY(status);
    t->seconds = clock_s() - start;
    if (r->first_signal)
        status = fail(ERR_STOPPED, "stopped by a signal");
    else if (r->problem)
        status = fail(ERR_IO, "grid %s: %s", t->name, r->problem);
    else if (code != 0 && (code != MPIRUN_ERROR || !is_complete(log)))
        status = fail_run(t, log, code);
    runner_fini_run(r);
    return status;
}

Status trial_run(Verification *v, Trial *t)
{
    Config *config = NULL;
    TRY(trial_make_config(&config, v, t));
    char *yaml = mem_format("%s/config.yaml", v->dir), *log = mem_format("%s/log", v->dir);
    char *run = mem_format("%s/run", v->dir);
    Status status = write_config(config, v, yaml);
    if (status == OK) status = run_ranks(v, t, yaml, log, config);
    config_free(&config);
    if (status == OK) status = read_results(v, t, log);
    folder_remove(run);
    mem_free(&yaml);
    mem_free(&log);
    mem_free(&run);
    return status;
}

void trial_fini(Trial *t)
{
    for (int i = 0; t->loss && t->loss[i]; ++i) mem_free(&t->loss[i]);
    mem_free(&t->loss);
    mem_free(&t->name);
    mem_free(&t->warnings);
    checkpoint_hashes_fini(&t->hashes);
}
