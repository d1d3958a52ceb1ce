/* Sets that grow (data.refresh): files that have appeared since a set was opened, and the list of
 * its files that a checkpoint keeps. A file joins when it is complete: HDF5 opens it with all
 * variables, and it was not written to for a while. */
#include "fields_private.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

/* seconds for which a file must not have been written to */
enum { QUIET_S = 5 };

static int compare_texts(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Is the file complete? If not, the log says why. */
static bool is_complete(const Config *config, const char *path)
{
    struct stat now;
    const bool quiet = stat(path, &now) != 0 || now.st_mtime + QUIET_S <= time(NULL);
    const Status st = quiet ? field_file_check(config, path)
                            : fail(ERR_DATA, "%s: was written to a moment ago", path);
    if (st == OK) return true;
    log_info("%s; it is left for the next epoch", fail_message());
    return false;
}

/* Writes the paths that the set has, in their order, and those of complete new files to a text with
 * a line for each; *added: number of the new ones. Owner: the caller. */
static char *join_paths(const DataSet *set, const Config *config, const FieldPaths *found,
                        int *added)
{
    const FieldSet *f = &set->field_set;
    const char **known = mem_new((size_t)f->files * sizeof *known);
    char *text;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("out of memory: a list of files");
    for (int i = 0; i < f->files; ++i) known[i] = field_path(f, i);
    qsort(known, (size_t)f->files, sizeof *known, compare_texts);
    *added = 0;
    for (int i = 0, lines = 0; i < found->count; ++i) {
        const char *path = found->path[i];
        const bool is_known = bsearch(&path, known, (size_t)f->files, sizeof *known, compare_texts);
        if (!is_known && !is_complete(config, path)) continue;
        *added += !is_known;
        fprintf(out, "%s%s", lines++ ? "\n" : "", path);
    }
    mem_free(&known);
    if (fclose(out) != 0) die("out of memory: a list of files");
    return text;
}

Status data_set_extend(DataSet *next, const DataSet *set, const Config *config, int *added)
{
    FieldPaths found;
    *added = 0;
    Status st = field_paths_find(&found, config->data.train);
    char *paths = st == OK ? join_paths(set, config, &found, added) : NULL;
    field_paths_free(&found);
    if (st == OK && *added > 0) {
        st = data_set_open(next, config, paths);
        if (st == OK) st = data_set_select_times(next, config, false);
        if (st == OK) st = data_set_take_patch(next, config, false);
        if (st != OK) data_set_fini(next);
    }
    free(paths);
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
    /* neither can fail */
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
