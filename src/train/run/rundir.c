/* Handles a run's folder: its paths, and the files that are written to it at the start of a run.
 * Moves the files of an earlier run aside. Rank 0 owns the folder through a lease (base/lease.h),
 * so a folder that another run is using is refused. */
#include "rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* beginning of the name of a folder with the files of an earlier run, and the ending of this name
 * until all of them have been moved */
static const char EARLIER[] = "earlier-", PART[] = ".part";

void run_dir_init(RunDir *dir, const Config *config)
{
    dir->path = mem_format("%s/%s", config->run.dir, config->run.name);
    dir->checkpoints = mem_format("%s/checkpoints", dir->path);
    dir->best = mem_format("%s/best.h5", dir->checkpoints);
    dir->trace = mem_format("%s/trace.json", dir->path);
    dir->lease = NULL;
}

void run_dir_fini(RunDir *dir)
{
    lease_end(&dir->lease);
    mem_free(&dir->path);
    mem_free(&dir->checkpoints);
    mem_free(&dir->best);
    mem_free(&dir->trace);
}

char *run_dir_checkpoint(const RunDir *dir, int64_t step)
{
    return mem_format("%s/step-%08lld.h5", dir->checkpoints, (long long)step);
}

static Status make_folders(const char *path)
{
    Status st = file_make_folders(path);
    return st == OK ? OK : fail(st, "%s; choose another run.dir", fail_message());
}

Status run_dir_open(RunDir *dir, double beat_s)
{
    TRY(make_folders(dir->checkpoints));
    return lease_take(&dir->lease, dir->path, beat_s);
}

void run_dir_mend(const RunDir *dir)
{
    if (mkdir(dir->checkpoints, 0777) == 0)
        log_warn("%s: was missing, and has been created again", dir->checkpoints);
}

/* Returns true if a run writes a file or folder of this name. */
static bool is_run_file(const char *name)
{
    static const char *const names[] = {"config.yaml", "algorithms.txt", "trace.json",
                                        "topo.json",   "ledger.jsonl",   "checkpoints"};
    static const char *const beginnings[] = {"metrics.jsonl", "events.out.tfevents.", "hang-",
                                             "log.txt"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i)
        if (!strcmp(name, names[i])) return true;
    for (size_t i = 0; i < sizeof beginnings / sizeof *beginnings; ++i)
        if (!strncmp(name, beginnings[i], strlen(beginnings[i]))) return true;
    return false;
}

/* Returns the next name in a folder, or NULL at its end. *error: errno if the folder could not be
 * read completely, else 0. */
static const char *next_name(DIR *stream, int *error)
{
    errno = 0;
    const struct dirent *item = readdir(stream);
    *error = item ? 0 : errno;
    return item ? item->d_name : NULL;
}

static Status cannot_list(const char *path, int error)
{
    return fail(ERR_IO, "%s: cannot be listed: %s", path, strerror(error));
}

/* Sets *path to the path of the first file in the folder whose name begins with a or b; NULL: there
 * is none. */
static Status find_in(const char *folder, const char *a, const char *b, char **path)
{
    DIR *stream = opendir(folder);
    int error = stream ? 0 : errno;
    *path = NULL;
    for (const char *name; stream && !*path && (name = next_name(stream, &error));)
        if (!strncmp(name, a, strlen(a)) || !strncmp(name, b, strlen(b)))
            *path = mem_format("%s/%s", folder, name);
    if (stream) closedir(stream);
    return error && error != ENOENT ? cannot_list(folder, error) : OK;
}

Status run_dir_earlier(const RunDir *dir, char **path)
{
    TRY(find_in(dir->checkpoints, "step-", "best.h5", path));
    return *path ? OK : find_in(dir->path, "metrics.jsonl", "events.out.tfevents.", path);
}

/* Moves the file or folder `name` from one folder to another. */
static Status move_one(const char *from, const char *to, const char *name)
{
    char *source = mem_format("%s/%s", from, name), *destination = mem_format("%s/%s", to, name);
    Status st = OK;
    bool moved = rename(source, destination) == 0;
    int error = errno;
    /* the folder of checkpoints has been moved before, and this start has made an empty one */
    if (!moved && (error == ENOTEMPTY || error == EEXIST)) moved = rmdir(source) == 0;
    if (!moved) st = fail(ERR_IO, "%s: cannot be moved to %s: %s", source, to, strerror(error));
    mem_free(&source);
    mem_free(&destination);
    return st;
}

/* Moves all files and folders that a run has written from one folder to another. */
static Status move_all(const char *from, const char *to)
{
    DIR *stream = opendir(from);
    int error = stream ? 0 : errno;
    Status st = OK;
    for (const char *name; stream && st == OK && (name = next_name(stream, &error));)
        if (is_run_file(name)) st = move_one(from, to, name);
    if (stream) closedir(stream);
    return st == OK && error ? cannot_list(from, error) : st;
}

/* Returns true if the name has the form earlier-N.part. */
static bool is_unfinished(const char *name)
{
    size_t length = strlen(name), ending = strlen(PART);
    return !strncmp(name, EARLIER, strlen(EARLIER)) && length > ending &&
           !strcmp(name + length - ending, PART);
}

/* Sets *path to the folder earlier-N.part of an earlier start that ended while it moved files;
 * NULL: there is none. */
static Status find_unfinished(const RunDir *dir, char **path)
{
    DIR *stream = opendir(dir->path);
    int error = stream ? 0 : errno;
    *path = NULL;
    for (const char *name; stream && !*path && (name = next_name(stream, &error));)
        if (is_unfinished(name)) *path = mem_format("%s/%s", dir->path, name);
    if (stream) closedir(stream);
    return error ? cannot_list(dir->path, error) : OK;
}

/* Makes the folder earlier-N.part with the first free N, and sets *path to its path. */
static Status make_part(const RunDir *dir, char **path)
{
    bool is_free = false;
    for (int n = 1; !is_free; ++n) {
        mem_free(path);
        *path = mem_format("%s/%s%d", dir->path, EARLIER, n);
        is_free = access(*path, F_OK) != 0;
    }
    char *part = mem_format("%s%s", *path, PART);
    mem_free(path);
    *path = part;
    return make_folders(part);
}

/* Renames the folder earlier-N.part to earlier-N. */
static Status finish_part(const char *part)
{
    char *whole = mem_format("%.*s", (int)(strlen(part) - strlen(PART)), part);
    Status st = OK;
    if (rename(part, whole) != 0)
        st = fail(ERR_IO, "%s: cannot be renamed to %s: %s", part, whole, strerror(errno));
    else
        log_info("the earlier run is kept in %s", whole);
    mem_free(&whole);
    return st;
}

Status run_dir_set_aside(const RunDir *dir)
{
    char *earlier = NULL, *part = NULL;
    TRY(find_unfinished(dir, &part));
    if (!part) {
        TRY(run_dir_earlier(dir, &earlier));
        if (!earlier) return OK;
        mem_free(&earlier);
    }
    Status st = part ? OK : make_part(dir, &part);
    if (st == OK) st = move_all(dir->path, part);
    if (st == OK) st = make_folders(dir->checkpoints);
    if (st == OK) st = finish_part(part);
    mem_free(&part);
    return st;
}

Status run_dir_take_back(const RunDir *dir)
{
    char *part = NULL;
    TRY(find_unfinished(dir, &part));
    if (!part) return OK;
    Status st = move_all(part, dir->path);
    if (st == OK && rmdir(part) != 0)
        st = fail(ERR_IO, "%s: cannot be removed: %s", part, strerror(errno));
    if (st == OK) log_info("files of this run that run.fresh=true had begun to move are back");
    mem_free(&part);
    return st;
}

/* Writes the text to a temporary file, which is then renamed. */
static Status write_text(const RunDir *dir, const char *leaf, const char *text)
{
    char *name = mem_format("%s/%s", dir->path, leaf), *part = mem_format("%s.part", name);
    FILE *file = file_create_new_stream(part);
    bool good = file && fputs(text, file) >= 0;
    good = file && fflush(file) == 0 && fsync(fileno(file)) == 0 && good;
    good = file && fclose(file) == 0 && good;
    good = good && rename(part, name) == 0;
    Status st = good ? OK : fail(ERR_IO, "%s: cannot be written: %s", name, strerror(errno));
    if (!good && file) unlink(part);
    mem_free(&name);
    mem_free(&part);
    return st;
}

Status run_dir_write_config(const RunDir *dir, const Config *config)
{
    char *text = config_text(config);
    Status st = write_text(dir, "config.yaml", text);
    mem_free(&text);
    return st;
}

Status run_dir_write_topology(const RunDir *dir, const Topology *topo)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory for the description of the nodes");
    topo_print(topo, out);
    fclose(out);
    Status st = write_text(dir, "topo.json", text);
    free(text);
    return st;
}

Status run_dir_write_algorithms(const RunDir *dir, const AlgorithmRecord *record)
{
    char *text = algorithm_record_text(record);
    Status st = write_text(dir, "algorithms.txt", text);
    mem_free(&text);
    return st;
}
