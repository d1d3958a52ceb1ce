/* The record of algorithms (algorithm_record.h): entries sorted by key, written and read as
 * text. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

/* HEAD is the text's first line. GPU and LIBRARIES begin its second and its third line. SEPARATOR
 * is between key and algorithm in all other lines. */
#define HEAD      "weft-algorithms 1"
#define GPU       "gpu "
#define LIBRARIES "libraries "
#define SEPARATOR " = "

typedef struct Entry {
    /* owned */
    char *key, *algorithm;
} Entry;

struct AlgorithmRecord {
    /* The GPU's model, and the versions of the libraries, for which the algorithms were chosen.
     * Owned. */
    char *gpu, *libraries;
    /* entries sorted by key, [count]; owned */
    Entry *entry;
    int count;
    /* number of entries for which `entry` has memory */
    int room;
    /* key of the first entry that was rejected; NULL: none; owned */
    char *rejected;
};

AlgorithmRecord *algorithm_record_new(const char *gpu, const char *libraries)
{
    AlgorithmRecord *record = mem_new(sizeof *record);
    record->gpu = mem_text(gpu);
    record->libraries = mem_text(libraries);
    return record;
}

void algorithm_record_free(AlgorithmRecord **record)
{
    AlgorithmRecord *r = *record;
    if (!r) return;
    for (int i = 0; i < r->count; ++i) {
        mem_free(&r->entry[i].key);
        mem_free(&r->entry[i].algorithm);
    }
    mem_free(&r->entry);
    mem_free(&r->rejected);
    mem_free(&r->gpu);
    mem_free(&r->libraries);
    mem_free(record);
}

/* Returns the index of the first entry whose key is not smaller than `key`; `count` if there is
 * none. */
static int lower_bound(const AlgorithmRecord *record, const char *key)
{
    int from = 0, to = record->count;
    while (from < to) {
        int middle = from + (to - from) / 2;
        if (strcmp(record->entry[middle].key, key) < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

static bool has_at(const AlgorithmRecord *record, int index, const char *key)
{
    return index < record->count && strcmp(record->entry[index].key, key) == 0;
}

const char *algorithm_record_find(const AlgorithmRecord *record, const char *key)
{
    int index = lower_bound(record, key);
    return has_at(record, index, key) ? record->entry[index].algorithm : NULL;
}

void algorithm_record_set(AlgorithmRecord *record, const char *key, const char *algorithm)
{
    int index = lower_bound(record, key);
    if (has_at(record, index, key)) {
        mem_free(&record->entry[index].algorithm);
        record->entry[index].algorithm = mem_text(algorithm);
        return;
    }
    if (record->count == record->room) {
        record->room = record->room ? 2 * record->room : 32;
        record->entry = mem_resize(record->entry, (size_t)record->room * sizeof *record->entry);
    }
    memmove(record->entry + index + 1, record->entry + index,
            (size_t)(record->count - index) * sizeof *record->entry);
    record->entry[index] = (Entry){.key = mem_text(key), .algorithm = mem_text(algorithm)};
    ++record->count;
}

void algorithm_record_merge(AlgorithmRecord *record, const AlgorithmRecord *from)
{
    for (int i = 0; i < from->count; ++i)
        if (!algorithm_record_find(record, from->entry[i].key))
            algorithm_record_set(record, from->entry[i].key, from->entry[i].algorithm);
}

void algorithm_record_reject(AlgorithmRecord *record, const char *key)
{
    if (!record->rejected) record->rejected = mem_text(key);
}

const char *algorithm_record_rejected(const AlgorithmRecord *record)
{
    return record->rejected;
}

void algorithm_record_entry(const AlgorithmRecord *record, int i, const char **key,
                            const char **algorithm)
{
    *key = record->entry[i].key;
    *algorithm = record->entry[i].algorithm;
}

int algorithm_record_count(const AlgorithmRecord *record)
{
    return record->count;
}

const char *algorithm_record_gpu(const AlgorithmRecord *record)
{
    return record->gpu;
}

const char *algorithm_record_libraries(const AlgorithmRecord *record)
{
    return record->libraries;
}

char *algorithm_record_text(const AlgorithmRecord *record)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out) die("open_memstream: no memory");
    fprintf(out, "%s\n%s%s\n%s%s\n", HEAD, GPU, record->gpu, LIBRARIES, record->libraries);
    for (int i = 0; i < record->count; ++i)
        fprintf(out, "%s%s%s\n", record->entry[i].key, SEPARATOR, record->entry[i].algorithm);
    if (fclose(out) != 0) die("open_memstream: no memory");
    char *owned = mem_text(text);
    free(text);
    return owned;
}

/* ---- reading ---- */

/* Returns the next line of *rest, without its newline, and moves *rest behind the line. Returns
 * NULL at the end. */
static char *next_line(char **rest)
{
    char *line = *rest;
    if (!*line) return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    return line;
}

/* Returns the rest of a line after `word`; NULL if `line` is NULL or does not begin with `word`. */
static const char *text_after(const char *line, const char *word)
{
    size_t length = strlen(word);
    return line && strncmp(line, word, length) == 0 ? line + length : NULL;
}

static Status read_entries(AlgorithmRecord *record, char *rest, const char *from)
{
    char *line;
    for (int number = 4; (line = next_line(&rest)); ++number) {
        char *separator = strstr(line, SEPARATOR);
        if (!separator || separator == line || !separator[strlen(SEPARATOR)])
            return fail(ERR_DATA, "%s: line %d is not an entry KEY%sALGORITHM: %.60s", from, number,
                        SEPARATOR, line);
        *separator = 0;
        if (algorithm_record_find(record, line))
            return fail(ERR_DATA, "%s: line %d repeats the key of an earlier line: %.60s", from,
                        number, line);
        algorithm_record_set(record, line, separator + strlen(SEPARATOR));
    }
    return OK;
}

Status algorithm_record_read(AlgorithmRecord **record, const char *text, const char *from)
{
    char *copy = mem_text(text), *rest = copy;
    *record = NULL;
    const char *head = next_line(&rest);
    const char *gpu = text_after(head && strcmp(head, HEAD) == 0 ? next_line(&rest) : NULL, GPU);
    const char *libraries = text_after(gpu ? next_line(&rest) : NULL, LIBRARIES);
    Status st = OK;
    if (libraries) {
        *record = algorithm_record_new(gpu, libraries);
        st = read_entries(*record, rest, from);
    } else {
        st = fail(ERR_DATA,
                  "%s is not a record of algorithms: it does not begin with the lines '" HEAD
                  "', 'gpu MODEL' and 'libraries VERSIONS'",
                  from);
    }
    if (st != OK) algorithm_record_free(record);
    mem_free(&copy);
    return st;
}
