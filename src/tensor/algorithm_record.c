/* The record of algorithms: sorted entries, written and read as text (algorithm_record.h). */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>

#define HEAD      "weft-algorithms 1"
#define GPU       "gpu "
#define LIBRARIES "libraries "
#define BETWEEN   " = "

typedef struct Entry {
    /* owned */
    char *key, *algorithm;
} Entry;

struct AlgorithmRecord {
    /* owned */
    char *gpu, *libraries;
    /* owned, sorted by key */
    Entry *entry;
    int count, room;
    /* owned; NULL: none */
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

/* The index of the first entry whose key is not smaller. */
static int place_of(const AlgorithmRecord *record, const char *key)
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

static bool has_at(const AlgorithmRecord *record, int place, const char *key)
{
    return place < record->count && strcmp(record->entry[place].key, key) == 0;
}

const char *algorithm_record_find(const AlgorithmRecord *record, const char *key)
{
    int place = place_of(record, key);
    return has_at(record, place, key) ? record->entry[place].algorithm : NULL;
}

void algorithm_record_set(AlgorithmRecord *record, const char *key, const char *algorithm)
{
    int place = place_of(record, key);
    if (has_at(record, place, key)) {
        mem_free(&record->entry[place].algorithm);
        record->entry[place].algorithm = mem_text(algorithm);
        return;
    }
    if (record->count == record->room) {
        record->room = record->room ? 2 * record->room : 32;
        record->entry = mem_resize(record->entry, (size_t)record->room * sizeof *record->entry);
    }
    memmove(record->entry + place + 1, record->entry + place,
            (size_t)(record->count - place) * sizeof *record->entry);
    record->entry[place] = (Entry){mem_text(key), mem_text(algorithm)};
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
        fprintf(out, "%s%s%s\n", record->entry[i].key, BETWEEN, record->entry[i].algorithm);
    if (fclose(out) != 0) die("open_memstream: no memory");
    char *owned = mem_text(text);
    free(text);
    return owned;
}

/* ---- reading ---- */

/* Cuts off and returns the next line; NULL at the end. */
static char *next_line(char **rest)
{
    char *line = *rest;
    if (!*line) return NULL;
    char *end = strchr(line, '\n');
    *rest = end ? end + 1 : line + strlen(line);
    if (end) *end = 0;
    return line;
}

static const char *behind(const char *line, const char *word)
{
    size_t length = strlen(word);
    return line && strncmp(line, word, length) == 0 ? line + length : NULL;
}

static Status read_entries(AlgorithmRecord *record, char *rest, const char *from)
{
    char *line;
    for (int number = 4; (line = next_line(&rest)); ++number) {
        char *between = strstr(line, BETWEEN);
        if (!between || between == line || !between[strlen(BETWEEN)])
            return fail(ERR_DATA,
                        "%s: line %d is no entry of a record of algorithms (KEY%sALGORITHM): %.60s",
                        from, number, BETWEEN, line);
        *between = 0;
        if (algorithm_record_find(record, line))
            return fail(ERR_DATA, "%s: line %d has the key of another line: %.60s", from, number,
                        line);
        algorithm_record_set(record, line, between + strlen(BETWEEN));
    }
    return OK;
}

Status algorithm_record_read(AlgorithmRecord **record, const char *text, const char *from)
{
    char *copy = mem_text(text), *rest = copy;
    *record = NULL;
    const char *head = next_line(&rest);
    const char *gpu = behind(head && strcmp(head, HEAD) == 0 ? next_line(&rest) : NULL, GPU);
    const char *libraries = behind(gpu ? next_line(&rest) : NULL, LIBRARIES);
    Status st = OK;
    if (libraries) {
        *record = algorithm_record_new(gpu, libraries);
        st = read_entries(*record, rest, from);
    } else {
        st = fail(ERR_DATA,
                  "%s is no record of algorithms: it does not begin with the lines '" HEAD
                  "', 'gpu MODEL' and 'libraries VERSIONS'",
                  from);
    }
    if (st != OK) algorithm_record_free(record);
    mem_free(&copy);
    return st;
}
