/* Watches the files of data sets during a run. If a file's size, time or inode has changed, the
 * fingerprint of its content shows whether the data have changed. A removed file is only logged,
 * because the loader has the training set open; if a file with its name exists later, that file is
 * compared. The same data at other offsets in an open file are also a change: readers and HDF5
 * remember the former offsets, so they may have read wrong bytes since. */
#include "data_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Watched {
    /* borrowed from the trainer */
    const char *path;
    /* state of the file when the run began, or when data_watch_check last accepted it */
    struct stat before;
    /* hash of the offsets of the file's arrays (data_set_hash_layout) */
    uint64_t layout;
    /* 0, or errno of the last check if it found no regular file of this name */
    int missing;
} Watched;

typedef struct WatchedSet {
    /* borrowed */
    const DataSet *set;
    /* fingerprint of the set; borrowed */
    const char *fingerprint;
    /* index in DataWatch.file of the set's first file */
    int first;
    /* number of files */
    int count;
    /* true: the test set, which is opened again for each evaluation */
    bool is_test_set;
} WatchedSet;

struct DataWatch {
    /* folder of the run's checkpoints; borrowed */
    const char *checkpoints;
    /* the training set and, if there is one, the test set */
    WatchedSet set[2];
    /* number of sets */
    int sets;
    /* files of all sets; owned */
    Watched *file;
};

/* Returns 0, or errno if there is no regular file of this name. */
static int read_stat(const char *path, struct stat *now)
{
    if (stat(path, now) != 0) return errno;
    return S_ISREG(now->st_mode) ? 0 : S_ISDIR(now->st_mode) ? EISDIR : ENXIO;
}

static void watch_set(DataWatch *w, const World *world, const DataSet *set, const char *fingerprint,
                      bool is_test_set)
{
    int first = w->sets ? w->set[0].count : 0, count = data_set_files(set);
    const size_t bytes = (size_t)count * sizeof(uint64_t);
    uint64_t *layout = mem_new(bytes);
    const struct stat *opened = data_set_stat_at_open(set, 0, layout);
    w->set[w->sets++] = (WatchedSet){set, fingerprint, first, count, is_test_set};
    w->file = mem_resize(w->file, (size_t)(first + count) * sizeof *w->file);
    if (!opened) {
        DataSet *copy = mem_new(sizeof *copy);
        *copy = *set;
        /* An error is ignored here: the loader cannot read such a file either, and reports it. */
        if (world->rank == 0 && data_set_hash_layout(copy, layout) != OK) memset(layout, 0, bytes);
        mem_free(&copy);
        world_bcast(world, layout, bytes, 0);
    }
    for (int i = 0; i < count; ++i) {
        Watched *f = &w->file[first + i];
        *f = (Watched){.path = data_set_path(set, i), .layout = layout[i]};
        if (opened)
            f->before = *data_set_stat_at_open(set, i, &f->layout);
        else
            f->missing = read_stat(f->path, &f->before);
    }
    mem_free(&layout);
}

DataWatch *data_watch_new(const Trainer *t, const char *checkpoints)
{
    DataWatch *w = mem_new(sizeof *w);
    w->checkpoints = checkpoints;
    watch_set(w, t->world, &t->train_set, t->train_fingerprint, false);
    if (t->test_set.samples > 0) watch_set(w, t->world, &t->test_set, t->test_fingerprint, true);
    return w;
}

void data_watch_free(DataWatch **watch)
{
    if (*watch) mem_free(&(*watch)->file);
    mem_free(watch);
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
    return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

/* Describes the difference between a file's recorded state and its current one in `text`. Returns
 * `text`; NULL: there is no difference. */
static const char *difference(const struct stat *before, const struct stat *now, char text[128])
{
    if (now->st_size != before->st_size)
        snprintf(text, 128, "it has %lld bytes, it had %lld", (long long)now->st_size,
                 (long long)before->st_size);
    else if (!file_is_same(now, before))
        snprintf(text, 128, "another file has taken its name");
    else if (!same_time(&now->st_mtim, &before->st_mtim))
        snprintf(text, 128, "it was written to");
    else if (!same_time(&now->st_ctim, &before->st_ctim))
        snprintf(text, 128, "its inode was changed");
    else
        return NULL;
    return text;
}

/* Returns true if the file exists and differs from its recorded state. Logs a removed file once,
 * and again if a folder or device gets its name. */
static bool file_changed(Watched *f, bool is_test_set, struct stat *now, char text[128])
{
    int error = read_stat(f->path, now);
    if (error && error != f->missing)
        log_warn("%s: is gone (%s); %s", f->path, file_error(error),
                 is_test_set
                     ? "the next evaluation opens it, and without it the run ends there, saved"
                     : "training goes on with the open file, but the next start needs it");
    f->missing = error;
    return !error && difference(&f->before, now, text) != NULL;
}

/* Returns ERR_DATA with a message that the data have changed. file_change: how the file differs.
 * data_change: how the data differ; freed here. */
static Status fail_changed(const DataWatch *w, const WatchedSet *s, const Watched *f,
                           const char *file_change, char *data_change)
{
    Status st = fail(
        ERR_DATA,
        s->is_test_set
            ? "%s: was changed while this run evaluated on it: %s; %s; nothing was saved since. "
              "The checkpoints in %s are good, because nothing was trained on this file, but their "
              "evaluations are of the former data: start the same command again, either with the "
              "former data or with the new data, which begin a new best.h5"
            : "%s: was changed while this run trained on it: %s; %s; nothing was saved since. The "
              "checkpoints in %s were trained on the former data: restore these and start the same "
              "command again, or choose another run.name",
        f->path, file_change, data_change, w->checkpoints);
    mem_free(&data_change);
    return st;
}

/* Records the new state of the set's files, which contain the same data. ERR_DATA: the data are at
 * other offsets in a file that is open or will be opened again. */
static Status accept(DataWatch *w, const WatchedSet *s, const struct stat *now,
                     const uint64_t *layout)
{
    char what[128];
    for (int i = 0; i < s->count; ++i) {
        Watched *f = &w->file[s->first + i];
        if (f->missing || !difference(&f->before, &now[i], what)) continue;
        if ((s->is_test_set || file_is_same(&f->before, &now[i])) && f->layout != layout[i])
            return fail_changed(
                w, s, f, what,
                mem_text("it holds the same data at other offsets, and bytes at the "
                         "former offsets may have been read as samples since"));
        f->before = now[i];
        f->layout = layout[i];
    }
    return OK;
}

/* Compares the files of a set with their recorded state. now[] and layout[] are memory with an
 * entry for each file. */
static Status compare_set(DataWatch *w, const WatchedSet *s, struct stat *now, uint64_t *layout)
{
    char text[DATA_FINGERPRINT], what[128], other[128];
    int found = -1;
    for (int i = 0; i < s->count; ++i)
        if (file_changed(&w->file[s->first + i], s->is_test_set, &now[i],
                         found < 0 ? what : other) &&
            found < 0)
            found = i;
    if (found < 0) return OK;
    Status st = data_set_fingerprint_anew(s->set, text, layout);
    const Watched *f = &w->file[s->first + found];
    if (st == ERR_IO) return st;
    /* a file was removed after the check above; the next check reports it */
    for (int i = 0; st == ERR_NOINPUT && i < s->count; ++i)
        if (read_stat(w->file[s->first + i].path, &now[i]) != 0) return OK;
    if (st != OK)
        return fail_changed(w, s, f, what,
                            mem_format("%s, it was %s", fail_message(), s->fingerprint));
    if (strcmp(text, s->fingerprint) != 0)
        return fail_changed(w, s, f, what, mem_format("it is %s, it was %s", text, s->fingerprint));
    TRY(accept(w, s, now, layout));
    log_info("%s: was touched (%s), and holds the same data", f->path, what);
    return OK;
}

static Status check_set(DataWatch *w, const WatchedSet *s)
{
    struct stat *now = mem_new((size_t)s->count * sizeof *now);
    uint64_t *layout = mem_new((size_t)s->count * sizeof *layout);
    const Status st = compare_set(w, s, now, layout);
    mem_free(&layout);
    mem_free(&now);
    return st;
}

Status data_watch_check(DataWatch *w)
{
    for (int i = 0; i < w->sets; ++i) TRY(check_set(w, &w->set[i]));
    return OK;
}

void data_watch_die(DataWatch *w, Status status)
{
    char *why = mem_text(fail_message());
    bool may_be_data = status == ERR_DATA || status == ERR_IO;
    if (may_be_data && w && data_watch_check(w) == ERR_DATA) die_as(ERR_DATA, "%s", fail_message());
    die_as(status, "%s", why);
}
