/* Extends sets that grow (data.refresh) by files that have appeared since the set was opened, and
 * lists a set's files for a checkpoint. A file joins when it is complete: HDF5 opens it with all
 * variables, and it was not written to for QUIET_S seconds. A file that is unlike the first file of
 * the set stays out until it changes. */
#include "fields_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* seconds for which a file must not have been written to */
enum { QUIET_S = 5 };

/* Whether a file that the patterns of data.train match is in the set, will join it, or stays
 * out. */
typedef enum Membership { MEMBER, JOINS, STAYS_OUT } Membership;

/* A file that was left out, and that the log has named. */
typedef struct LeftOut {
    /* owned */
    char *path;
    /* state of the file when the log named it */
    struct stat state;
    /* true: the file is unlike the set, and stays out until it changes; false: the file was not
     * complete, or could not be read */
    bool is_misfit;
} LeftOut;

struct DataLeftOut {
    LeftOut *file;
    int count, room;
};

DataLeftOut *data_left_out_new(void)
{
    return mem_new(sizeof(DataLeftOut));
}

void data_left_out_free(DataLeftOut **list)
{
    if (!*list) return;
    for (int i = 0; i < (*list)->count; ++i) mem_free(&(*list)->file[i].path);
    mem_free(&(*list)->file);
    mem_free(list);
}

static bool same_state(const struct stat *a, const struct stat *b)
{
    return file_is_same(a, b) && a->st_size == b->st_size &&
           a->st_mtim.tv_sec == b->st_mtim.tv_sec && a->st_mtim.tv_nsec == b->st_mtim.tv_nsec;
}

static LeftOut *left_out_find(const DataLeftOut *list, const char *path)
{
    for (int i = 0; i < list->count; ++i)
        if (strcmp(list->file[i].path, path) == 0) return &list->file[i];
    return NULL;
}

/* Adds a file to the list of files that are left out. Logs fail_message and `consequence`, unless
 * the log has named the file in its present state already. */
static void leave_out(DataLeftOut *list, const char *path, bool is_misfit, const char *consequence)
{
    struct stat now = {0};
    LeftOut *file = left_out_find(list, path);
    const bool is_missing = stat(path, &now) != 0;
    if (file && !is_missing && file->is_misfit == is_misfit && same_state(&file->state, &now))
        return;
    if (!file) {
        if (list->count == list->room) {
            list->room = 2 * list->room + 16;
            list->file = mem_resize(list->file, (size_t)list->room * sizeof *list->file);
        }
        file = &list->file[list->count++];
        file->path = mem_text(path);
    }
    file->state = now;
    file->is_misfit = is_misfit;
    (is_misfit ? log_warn : log_info)("%s; %s", fail_message(), consequence);
}

/* Returns whether the file is complete. If it is not, the log says why. */
static bool is_complete(DataLeftOut *list, const Config *config, const char *path)
{
    struct stat now;
    const bool quiet = stat(path, &now) != 0 || now.st_mtime + QUIET_S <= time(NULL);
    const Status st = quiet ? field_file_check(config, path)
                            : fail(ERR_DATA, "%s: was written to a moment ago", path);
    if (st == OK) return true;
    leave_out(list, path, false, "it is left for the next epoch");
    return false;
}

/* Returns whether the file was found to be unlike the set, and has not changed since. */
static bool is_known_misfit(const DataLeftOut *list, const char *path)
{
    struct stat now;
    const LeftOut *file = left_out_find(list, path);
    return file && file->is_misfit && stat(path, &now) == 0 && same_state(&file->state, &now);
}

/* Returns the Membership of each path in `found`. The caller owns the array. */
static Membership *find_memberships(const DataSet *set, const Config *config,
                                    const FieldPaths *found, DataLeftOut *list)
{
    const FieldSet *f = &set->field_set;
    const size_t files = (size_t)f->files;
    const char **known = mem_new(files * sizeof *known);
    Membership *membership = mem_new((size_t)found->count * sizeof *membership);
    for (int i = 0; i < f->files; ++i) known[i] = field_path(f, i);
    qsort(known, files, sizeof *known, text_compare);
    for (int i = 0; i < found->count; ++i) {
        const char *path = found->path[i];
        if (bsearch(&path, known, files, sizeof *known, text_compare))
            membership[i] = MEMBER;
        else if (!is_known_misfit(list, path) && is_complete(list, config, path))
            membership[i] = JOINS;
        else
            membership[i] = STAYS_OUT;
    }
    mem_free(&known);
    return membership;
}

/* Compares each file that would join with the first file of the set. A file that is unlike the
 * first file, or cannot be read, stays out. Returns the number of files that now stay out. */
static int leave_misfits_out(const DataSet *set, const Config *config, const FieldPaths *found,
                             Membership *membership, DataLeftOut *list)
{
    int misfits = 0;
    for (int i = 0; i < found->count; ++i) {
        const char *path = found->path[i];
        if (membership[i] != JOINS) continue;
        const Status st = field_files_compare(config, data_set_path(set, 0), path);
        if (st == OK) continue;
        /* a file that could not be read may be like the set */
        const bool unread = st == ERR_IO || st == ERR_NOINPUT;
        leave_out(list, path, !unread,
                  unread ? "it is left for the next epoch" : "the training set goes on without it");
        membership[i] = STAYS_OUT;
        ++misfits;
    }
    return misfits;
}

/* Opens the members of a set and the files that join as the set *next, in the order of `found`.
 * *added: number of files that join; if it is 0, no set is opened. */
static Status open_joined(DataSet *next, const Config *config, const FieldPaths *found,
                          const Membership *membership, int *added)
{
    char *paths;
    size_t bytes;
    FILE *out = open_memstream(&paths, &bytes);
    if (!out) die("out of memory: a list of files");
    *added = 0;
    for (int i = 0, lines = 0; i < found->count; ++i) {
        if (membership[i] == STAYS_OUT) continue;
        *added += membership[i] == JOINS;
        fprintf(out, "%s%s", lines++ ? "\n" : "", found->path[i]);
    }
    if (fclose(out) != 0) die("out of memory: a list of files");
    Status st = OK;
    if (*added > 0) {
        st = data_set_open(next, config, paths);
        if (st == OK) st = data_set_select_times(next, config, false);
        if (st == OK) st = data_set_take_patch(next, config, false);
        if (st != OK) data_set_fini(next);
    }
    free(paths);
    return st;
}

Status data_set_extend(DataSet *next, const DataSet *set, const Config *config, DataLeftOut *list,
                       int *added)
{
    FieldPaths found;
    *added = 0;
    Status st = field_paths_find(&found, config->data.train, "data.train");
    if (st == OK) {
        Membership *membership = find_memberships(set, config, &found, list);
        st = open_joined(next, config, &found, membership, added);
        if (st != OK) {
            char *why = mem_text(fail_message());
            const int misfits = leave_misfits_out(set, config, &found, membership, list);
            st = misfits > 0 ? open_joined(next, config, &found, membership, added)
                             : fail(st, "%s", why);
            mem_free(&why);
        }
        mem_free(&membership);
    }
    field_paths_free(&found);
    return st;
}

/* ---- the list of a checkpoint ---- */

enum { LINE_BYTES = DATA_PATH + 128 };

typedef struct Listing {
    const DataSet *set;
    FILE *out;
} Listing;

static Status describe_line(void *user, int64_t i, void *item)
{
    const char *path = data_set_path(((const Listing *)user)->set, (int)i);
    const size_t used = (size_t)snprintf(item, LINE_BYTES, "%s\t", path);
    file_describe(path, (char *)item + used, LINE_BYTES - used);
    return OK;
}

static Status write_line(void *user, int64_t i, const void *item)
{
    (void)i;
    fprintf(((const Listing *)user)->out, "%s\n", (const char *)item);
    return OK;
}

char *data_set_list_files(const DataSet *set)
{
    char *text;
    size_t bytes;
    Listing listing = {.set = set, .out = open_memstream(&text, &bytes)};
    if (!listing.out) die("out of memory: a list of files");
    /* describe_line and write_line always return OK */
    worker_pool_ahead(data_set_files(set), LINE_BYTES, describe_line, write_line, &listing);
    if (fclose(listing.out) != 0) die("out of memory: a list of files");
    char *list = mem_text(text);
    free(text);
    return list;
}

char *data_listed_paths(const char *list)
{
    char *paths = mem_text(list), *to = paths;
    for (const char *line = list; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\t\n");
        if (to > paths) *to++ = '\n';
        memmove(to, line, length);
        to += length;
    }
    *to = 0;
    return paths;
}
