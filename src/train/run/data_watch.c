/* Watches the files of data sets during a run. A changed size, time or inode is only a reason to
 * look closer: the fingerprint of the file's contents decides whether the data have changed. A
 * removed file does no harm, because the loader has it open; it is compared once it exists
 * again. The same data at other places of the file are a change, too: readers and HDF5 keep the
 * addresses of what is open, and have read other bytes since. */
#include "data_watch.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Watched {
    /* borrowed from the trainer */
    const char *path;
    struct stat was;
    /* hash of where its arrays lie (data_set_layout) */
    uint64_t layout;
    /* errno of why no regular file has the name, as it was last reported; 0: one has it */
    int missing;
} Watched;

typedef struct WatchedSet {
    const DataSet *set;
    const char *fingerprint;
    int first, count;
    /* it is opened again for each evaluation */
    bool evaluates;
} WatchedSet;

struct DataWatch {
    /* folder of the run's checkpoints; borrowed */
    const char *checkpoints;
    WatchedSet set[2];
    int sets;
    /* files of all sets; owned */
    Watched *file;
};

/* Returns 0, or errno if there is no such regular file. */
static int read_stat(const char *path, struct stat *is)
{
    if (stat(path, is) != 0) return errno;
    return S_ISREG(is->st_mode) ? 0 : S_ISDIR(is->st_mode) ? EISDIR : ENXIO;
}

static void watch_set(DataWatch *w, const World *world, const DataSet *set, const char *fingerprint,
                      bool evaluates)
{
    int first = w->sets ? w->set[0].count : 0, count = set->file_count ? set->file_count : 1;
    uint64_t layout[DATA_FILES] = {0};
    w->set[w->sets++] = (WatchedSet){set, fingerprint, first, count, evaluates};
    DataSet *now = mem_new(sizeof *now);
    *now = *set;
    /* if it cannot be found, nothing can be read, which the loader reports */
    if (world->rank == 0 && data_set_layout(now, layout) != OK) memset(layout, 0, sizeof layout);
    mem_free(&now);
    world_bcast(world, layout, sizeof layout, 0);
    for (int i = 0; i < count; ++i) {
        Watched *f = &w->file[first + i];
        f->path = set->file_count ? set->file[i].path : set->path;
        f->layout = layout[i];
        f->missing = read_stat(f->path, &f->was);
    }
}

DataWatch *data_watch_new(const Trainer *t, const char *checkpoints)
{
    DataWatch *w = mem_new(sizeof *w);
    w->checkpoints = checkpoints;
    w->file = mem_new(2 * DATA_FILES * sizeof *w->file);
    watch_set(w, t->world, &t->train_set, t->train_data, false);
    if (t->test_set.samples > 0) watch_set(w, t->world, &t->test_set, t->test_data, true);
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

/* Describes the difference between a file's former and present state; returns NULL if they are
 * equal. */
static const char *difference(const struct stat *was, const struct stat *is, char text[128])
{
    if (is->st_size != was->st_size)
        snprintf(text, 128, "it has %lld bytes, it had %lld", (long long)is->st_size,
                 (long long)was->st_size);
    else if (!file_is_same(is, was))
        snprintf(text, 128, "another file has taken its name");
    else if (!same_time(&is->st_mtim, &was->st_mtim))
        snprintf(text, 128, "it was written to");
    else if (!same_time(&is->st_ctim, &was->st_ctim))
        snprintf(text, 128, "its inode was changed");
    else
        return NULL;
    return text;
}

/* Returns true if the file exists and differs from its former state. Reports a removed file once,
 * and once more if something else than a file has taken its name since. */
static bool file_changed(Watched *f, bool evaluates, struct stat *is, char text[128])
{
    int error = read_stat(f->path, is);
    if (error && error != f->missing)
        log_warn("%s: is gone (%s); %s", f->path, file_error(error),
                 evaluates
                     ? "the next evaluation opens it, and without it the run ends there, saved"
                     : "training goes on with what is open, but a start needs it");
    f->missing = error;
    return !error && difference(&f->was, is, text) != NULL;
}

/* now: how the data differ; owned by this function. */
static Status changed(const DataWatch *w, const WatchedSet *s, const Watched *f, const char *what,
                      char *now)
{
    Status st = fail(
        ERR_DATA,
        s->evaluates
            ? "%s: was changed while this run evaluated on it: %s; %s; nothing was saved since. "
              "The checkpoints in %s are sound, for nothing was trained on it, but their "
              "evaluations are of the former data: start the same command again, with these put "
              "back or with the new ones, which begin a new best.h5"
            : "%s: was changed while this run trained on it: %s; %s; nothing was saved since. What "
              "is in %s was trained on the data of before: put them back and start the same "
              "command again, or choose another run.name",
        f->path, what, now, w->checkpoints);
    mem_free(&now);
    return st;
}

/* Takes a new state of the set's files, which hold the same data. ERR_DATA: a file that is open, or
 * will be opened again, holds them at other places. */
static Status accept(DataWatch *w, const WatchedSet *s, const struct stat *is,
                     const uint64_t *layout)
{
    char what[128];
    for (int i = 0; i < s->count; ++i) {
        Watched *f = &w->file[s->first + i];
        if (f->missing || !difference(&f->was, &is[i], what)) continue;
        if ((s->evaluates || file_is_same(&f->was, &is[i])) && f->layout != layout[i])
            return changed(w, s, f, what,
                           mem_text("it holds the same data at other places, and bytes at the "
                                    "former places may have been read as samples since"));
        f->was = is[i];
        f->layout = layout[i];
    }
    return OK;
}

static Status check_set(DataWatch *w, const WatchedSet *s)
{
    char text[DATA_FINGERPRINT], what[128], other[128];
    uint64_t layout[DATA_FILES];
    struct stat is[DATA_FILES];
    int found = -1;
    for (int i = 0; i < s->count; ++i)
        if (file_changed(&w->file[s->first + i], s->evaluates, &is[i], found < 0 ? what : other) &&
            found < 0)
            found = i;
    if (found < 0) return OK;
    Status st = data_set_fingerprint_anew(s->set, text, layout);
    const Watched *f = &w->file[s->first + found];
    if (st == ERR_IO) return st;
    /* a file that has been removed meanwhile is reported by the next look */
    for (int i = 0; st == ERR_NOINPUT && i < s->count; ++i)
        if (read_stat(w->file[s->first + i].path, &is[i]) != 0) return OK;
    if (st != OK)
        return changed(w, s, f, what, mem_format("%s, it was %s", fail_message(), s->fingerprint));
    if (strcmp(text, s->fingerprint) != 0)
        return changed(w, s, f, what, mem_format("it is %s, it was %s", text, s->fingerprint));
    TRY(accept(w, s, is, layout));
    log_info("%s: was touched (%s), and holds the same data", f->path, what);
    return OK;
}

Status data_watch_check(DataWatch *w)
{
    for (int i = 0; i < w->sets; ++i) TRY(check_set(w, &w->set[i]));
    return OK;
}

void data_watch_die(DataWatch *w, Status status)
{
    char *why = mem_text(fail_message());
    bool of_data = status == ERR_DATA || status == ERR_IO;
    if (of_data && w && data_watch_check(w) == ERR_DATA) die_as(ERR_DATA, "%s", fail_message());
    die_as(status, "%s", why);
}
