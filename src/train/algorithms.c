/* The record of algorithms of a run on GPUs.
 *
 *     train.cuda_tune   record                                   shapes that are not in it
 *     off               none                                     the libraries' first choice
 *     time              that of the run's newest checkpoint      are timed
 *                       or of checkpoint.resume's file;
 *                       else a new one
 *     FILE              that of the file                         the libraries' first choice
 *
 * Shapes that are not in the record are added to it. Every rank plans all shapes of the model, also
 * those of other stages. Rank 0 therefore has the shapes of all ranks, except for slices of other
 * ranks of its tensor-parallel group. */
#include "algorithms.h"

#include "run/rundir.h"

#include <string.h>

/* largest size of a record, in bytes; it must fit into an HDF5 attribute */
enum { RECORD_BYTES = 60000 };
/* bytes of the text of library versions */
enum { LIBRARIES_TEXT = 320 };

static bool tune_is_time(const Trainer *t)
{
    return strcmp(t->config->train.cuda_tune, "time") == 0;
}

/* Returns true if a resumed run must give the same bits as a run without interruption. */
static bool keeps_bits(const Trainer *t)
{
    return t->config->train.reproducible == REPRODUCIBLE_ANY_GRID;
}

/* The record with which a run begins. */
typedef struct Source {
    /* text of the record; NULL: there is none; owned */
    char *text;
    /* path of the file from which the text was read; owned */
    char *path;
    /* true: the record is that of this run's newest checkpoint, and the run resumes (no
     * run.fresh) */
    bool of_this_run;
} Source;

/* ---- finding the record ---- */

static Status read_checkpoint_record(const char *path, Source *s)
{
    CheckpointMeta meta = {0};
    TRY(checkpoint_read_meta(path, &meta));
    if (meta.algorithms) {
        s->text = mem_text(meta.algorithms);
        s->path = mem_text(path);
    }
    checkpoint_meta_fini(&meta);
    return OK;
}

/* Reads the record of the run's newest checkpoint or, if there is none, of checkpoint.resume's
 * file. Ignores errors in these files, because they are reported when the files are loaded. */
static void read_run_record(const Trainer *t, Source *s)
{
    const Config *c = t->config;
    RunDir dir;
    run_dir_init(&dir, c);
    char *newest = checkpoint_newest_unverified(dir.checkpoints);
    if (!newest && checkpoint_newest(dir.checkpoints, NULL, &newest) != OK) newest = NULL;
    s->of_this_run = newest && !c->run.fresh;
    if (newest)
        (void)read_checkpoint_record(newest, s);
    else if (c->checkpoint.resume == RESUME_FILE)
        (void)read_checkpoint_record(c->checkpoint.resume_path, s);
    mem_free(&newest);
    run_dir_fini(&dir);
}

static Status read_record_file(const Trainer *t, Source *s)
{
    const char *path = t->config->train.cuda_tune;
    size_t bytes;
    Status st = file_text(path, RECORD_BYTES, &s->text, &bytes);
    if (st != OK) {
        char *why = mem_text(fail_message());
        st = config_fail_key(t->config, "train.cuda_tune",
                             "%s: expected off, time or a file that a run with time has written "
                             "(runs/NAME/algorithms.txt)",
                             why);
        mem_free(&why);
        return st;
    }
    s->path = mem_text(path);
    return OK;
}

/* ---- comparison of the machine ---- */

static Status fail_machine(const Trainer *t, const AlgorithmRecord *r, const char *path,
                           const char *libraries, const char *advice)
{
    return config_fail_key(
        t->config, "train.cuda_tune",
        "%s has algorithms for %s with %s; this is %s with %s, whose sums may be "
        "in another order: %s",
        path, algorithm_record_gpu(r), algorithm_record_libraries(r), t->backend->options.gpu,
        libraries, advice);
}

/* Keeps the record if it was made for this GPU model and these libraries. Otherwise there are three
 * cases. A record of train.cuda_tune=FILE is refused with ERR_CONFIG. So is the record of this run,
 * if the bits of a resumed run depend on it. Any other record is dropped, with a warning. */
static Status check_machine(Trainer *t, const Source *s, const char *libraries)
{
    const AlgorithmRecord *r = t->algorithms;
    if (strcmp(algorithm_record_gpu(r), t->backend->options.gpu) == 0 &&
        strcmp(algorithm_record_libraries(r), libraries) == 0)
        return OK;
    if (!tune_is_time(t))
        return fail_machine(t, r, s->path, libraries,
                            "train.cuda_tune=time makes a record for this machine");
    if (s->of_this_run && keeps_bits(t) && t->tunes)
        return fail_machine(t, r, s->path, libraries,
                            "continue on the machine of the record, or start another run.name "
                            "with checkpoint.resume=FILE, which times algorithms anew");
    if (t->world->rank == 0)
        log_warn("%s has algorithms for %s with %s: they are chosen anew for %s with %s", s->path,
                 algorithm_record_gpu(r), algorithm_record_libraries(r), t->backend->options.gpu,
                 libraries);
    algorithm_record_free(&t->algorithms);
    return OK;
}

/* Sets the trainer's record from the source, or to an empty record if algorithms may be timed. */
static Status set_record(Trainer *t, const Source *s, bool dry)
{
    char libraries[LIBRARIES_TEXT];
    backend_libraries(t->backend, libraries, sizeof libraries);
    if (s->text) TRY(algorithm_record_read(&t->algorithms, s->text, s->path));
    /* a dry run without a GPU only prints the record */
    if (t->backend->options.device < 0) return OK;
    if (t->algorithms) TRY(check_machine(t, s, libraries));
    t->recorded_count = t->algorithms ? algorithm_record_count(t->algorithms) : 0;
    if (t->recorded_count > 0 && !dry && t->world->rank == 0)
        log_info("train.cuda_tune: %d algorithms read from %s", t->recorded_count, s->path);
    if (!t->algorithms && t->tunes && !dry)
        t->algorithms = algorithm_record_new(t->backend->options.gpu, libraries);
    return OK;
}

Status algorithms_find(Trainer *t, const DryRun *only)
{
    Source source = {0};
    Status st = OK;
    if (!strcmp(t->config->train.cuda_tune, "off")) return OK;
    if (t->backend->table != &backend_cuda) {
        log_warn("train.cuda_tune=%s does nothing on CPUs", t->config->train.cuda_tune);
        return OK;
    }
    if (t->world->rank == 0 && tune_is_time(t)) read_run_record(t, &source);
    if (t->world->rank == 0 && !tune_is_time(t)) st = read_record_file(t, &source);
    st = status_agree(t->world, st);
    if (st == OK) {
        source.text = world_bcast_text(t->world, source.text);
        source.path = world_bcast_text(t->world, source.path);
        world_bcast(t->world, &source.of_this_run, sizeof source.of_this_run, 0);
        st = status_agree(t->world, set_record(t, &source, only != NULL));
    }
    mem_free(&source.text);
    mem_free(&source.path);
    return st;
}

/* ---- planning ---- */

/* Merges the record of rank `from` into all ranks' records. */
static Status share_record(Trainer *t, int from)
{
    bool mine = t->world->rank == from;
    char *text = mine ? algorithm_record_text(t->algorithms) : NULL;
    int64_t bytes = mine ? (int64_t)strlen(text) + 1 : 0;
    AlgorithmRecord *theirs = NULL;
    world_bcast(t->world, &bytes, sizeof bytes, from);
    if (!mine) text = mem_new((size_t)bytes);
    world_bcast(t->world, text, (size_t)bytes, from);
    Status st = mine ? OK : algorithm_record_read(&theirs, text, "another rank's record");
    if (theirs) algorithm_record_merge(t->algorithms, theirs);
    algorithm_record_free(&theirs);
    mem_free(&text);
    return status_agree(t->world, st);
}

static Status plan_recorded(Trainer *t)
{
    TRY(graph_plan(t->graph, t->backend));
    const char *key = algorithm_record_rejected(t->algorithms);
    if (key)
        return config_fail_key(t->config, "train.cuda_tune",
                               "the library does not accept the recorded algorithm of '%s': the "
                               "record was edited, or made by another library; "
                               "train.cuda_tune=time in a new run makes a new record",
                               key);
    return OK;
}

static Status check_size(const Trainer *t)
{
    char *text = algorithm_record_text(t->algorithms);
    size_t bytes = strlen(text);
    mem_free(&text);
    if (bytes <= RECORD_BYTES) return OK;
    return config_fail_key(t->config, "train.cuda_tune",
                           "the record of %d algorithms needs %zu bytes, but a checkpoint has room "
                           "for %d: set train.cuda_tune=off",
                           algorithm_record_count(t->algorithms), bytes, (int)RECORD_BYTES);
}

Status algorithms_plan(Trainer *t)
{
    if (!t->algorithms || t->backend->options.device < 0) return graph_plan(t->graph, t->backend);
    const World *world = t->world;
    const double begun = clock_s();
    /* Each rank of a tensor-parallel group has its own shapes, so the ranks of the first group plan
     * one after the other and share their records. A dry run has one process, whatever the grid. */
    int turns = world->size < t->shape.tp ? world->size : t->shape.tp;
    t->backend->options.record = t->algorithms;
    t->backend->options.times_algorithms = tune_is_time(t) && t->tunes;
    for (int turn = 0; turn < turns; ++turn) {
        TRY(status_agree(world, world->rank == turn ? plan_recorded(t) : OK));
        TRY(share_record(t, turn));
    }
    TRY(status_agree(world, world->rank < turns ? OK : plan_recorded(t)));
    int added = algorithm_record_count(t->algorithms) - t->recorded_count;
    if (added > 0 && world->rank == 0)
        log_info("train.cuda_tune: %d algorithms %s; planned in %.1f s", added,
                 t->backend->options.times_algorithms
                     ? "timed"
                     : "not in the record: the libraries' first choice is used",
                 clock_s() - begun);
    return status_agree(world, check_size(t));
}

/* ---- resuming ---- */

static Status compare(const Trainer *t, const AlgorithmRecord *old, const char *path)
{
    for (int i = 0; i < algorithm_record_count(old); ++i) {
        const char *key, *algorithm;
        algorithm_record_entry(old, i, &key, &algorithm);
        const char *now = algorithm_record_find(t->algorithms, key);
        if (now && strcmp(now, algorithm) != 0)
            return config_fail_key(
                t->config, "train.cuda_tune",
                "%s was trained with '%s' for '%s', but this run uses '%s': set "
                "train.cuda_tune=time, which uses the checkpoint's, or choose another run.name",
                path, algorithm, key, now);
    }
    return OK;
}

Status algorithms_check(const Trainer *t, const CheckpointMeta *meta, const char *path)
{
    AlgorithmRecord *old;
    if (!t->algorithms || !meta->algorithms || !keeps_bits(t)) return OK;
    TRY(algorithm_record_read(&old, meta->algorithms, path));
    Status st = compare(t, old, path);
    algorithm_record_free(&old);
    return st;
}

const AlgorithmRecord *train_algorithms(const Trainer *t)
{
    return t->algorithms;
}
