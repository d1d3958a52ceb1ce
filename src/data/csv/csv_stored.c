/* Reads what a data set stores of the import that made it: the schema's text, vocabularies, means
 * and deviations. HDF5 runs in a separate process, which sends the requested arrays one after the
 * other:
 *
 *     bytes of an element, number of elements; the elements       0, 0: the array is missing */
#include "csv.h"

#include <string.h>
#include <xxhash.h>

enum { BUSY_S = 600, CLOCK_S = 1800 };

/* The request is a path and the names of arrays, each followed by a zero byte. */
static const char *word_behind(const char *word)
{
    return word + strlen(word) + 1;
}

/* Returns the type to read as: fixed-length strings unchanged, floats as double; -1: neither. */
static hid_t memory_type(hid_t stored)
{
    if (H5Tget_class(stored) == H5T_FLOAT) return H5Tcopy(H5T_NATIVE_DOUBLE);
    if (H5Tget_class(stored) != H5T_STRING || H5Tis_variable_str(stored) > 0) return -1;
    return H5Tcopy(stored);
}

static void send_array(hid_t file, const char *path, const char *name, FILE *answer)
{
    uint64_t is[2] = {0, 0};
    char *value = NULL;
    bool elsewhere;
    hid_t access = hdf5_access_inside(&elsewhere);
    hid_t dataset = h5_has(file, name) ? H5Dopen2(file, name, access) : -1;
    if (dataset >= 0 && hdf5_in_one_file(file, dataset, path, name) == OK) {
        hid_t stored = H5Dget_type(dataset), type = memory_type(stored);
        hid_t space = H5Dget_space(dataset);
        hssize_t count = H5Sget_simple_extent_npoints(space);
        if (type >= 0 && count > 0) {
            is[0] = H5Tget_size(type);
            is[1] = (uint64_t)count;
            value = mem_new(is[0] * is[1]);
            if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0) is[0] = is[1] = 0;
        }
        H5Sclose(space);
        if (type >= 0) H5Tclose(type);
        H5Tclose(stored);
    }
    fwrite(is, sizeof is, 1, answer);
    if (is[0]) fwrite(value, is[0], is[1], answer);
    mem_free(&value);
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(access);
}

static void work(const void *input, size_t input_bytes, FILE *answer)
{
    const char *path = input, *end = path + input_bytes;
    hid_t file;
    hdf5_lock();
    if (h5_open(&file, path) == OK)
        for (const char *name = word_behind(path); name < end; name = word_behind(name))
            send_array(file, path, name, answer);
    hdf5_unlock();
}

/* arrays that the process has sent */
typedef struct Stored {
    const char *path;
    /* owned */
    char *text;
    size_t bytes, at;
} Stored;

/* Requests the arrays. Takes ownership of input. */
static Status stored_read_arrays(Stored *s, const char *path, char *input, size_t input_bytes)
{
    static const IsolatedJob job = {
        .subject = "HDF5, in the process that reads vocabularies,",
        .memory_bytes = (size_t)2 << 30,
        .busy_s = BUSY_S,
        .clock_s = CLOCK_S,
        .answer_bytes = (size_t)8 << 30,
        .work = work,
    };
    *s = (Stored){.path = path};
    Status st = isolated_run(&job, path, input, input_bytes, &s->text, &s->bytes);
    mem_free(&input);
    return st;
}

/* Returns the next array, borrowed; *each 0: it is missing. */
static Status stored_next(Stored *s, const char **value, uint64_t *each, uint64_t *count)
{
    uint64_t is[2] = {0};
    *value = NULL;
    *each = *count = 0;
    bool good = s->bytes - s->at >= sizeof is;
    if (good) memcpy(is, s->text + s->at, sizeof is);
    s->at += good ? sizeof is : 0;
    if (!good || !is[0] != !is[1] || (is[0] && is[1] > (s->bytes - s->at) / is[0]))
        return fail(ERR_DATA, "%s: vocabularies cannot be read: damaged, or no data set of weft's",
                    s->path);
    *value = s->text + s->at;
    *each = is[0];
    *count = is[1];
    s->at += is[0] * is[1];
    return OK;
}

/* ---- the schema ---- */

/* Takes the schema, the next array. ERR_DATA: the set stores none. */
static Status take_schema(Stored *s, CsvSchema *schema)
{
    const char *text;
    uint64_t each, count;
    TRY(stored_next(s, &text, &each, &count));
    if (each == 0 || count != 1)
        return fail(ERR_DATA,
                    "%s: does not say by which schema it was imported: name the file with --schema",
                    s->path);
    char *copy = mem_new(each + 1), *where = mem_format("%s, its /schema", s->path);
    memcpy(copy, text, each);
    Status st = csv_schema_take(schema, where, copy, strlen(copy));
    mem_free(&where);
    return st;
}

Status csv_stored_schema(CsvSchema *schema, const char *path)
{
    Stored s;
    char *input = mem_format("%s%c/schema", path, 0);
    *schema = (CsvSchema){0};
    Status st = stored_read_arrays(&s, path, input, strlen(path) + sizeof "/schema" + 1);
    if (st == OK) st = take_schema(&s, schema);
    mem_free(&s.text);
    return st;
}

/* ---- vocabularies, means and deviations ---- */

static Status another(const CsvSchema *schema, const char *path, const char *what)
{
    return fail(ERR_DATA, "%s: is not by the schema %s: %s; name the one of its import", path,
                schema->path, what);
}

static Status take_numbers(Stored *s, const CsvSchema *schema, double *to)
{
    const char *value;
    uint64_t each, count;
    TRY(stored_next(s, &value, &each, &count));
    if (each == 0) return OK;
    if (each != sizeof *to || count != (uint64_t)(schema->numbers ? schema->numbers : 1))
        return another(schema, s->path, "its means differ");
    memcpy(to, value, (size_t)schema->numbers * sizeof *to);
    return OK;
}

/* Reads the words of the field whose ids begin at `first`. */
static Status take_words(Stored *s, uint64_t first, CsvVocab *vocab, uint64_t *count)
{
    const char *value;
    uint64_t each;
    TRY(stored_next(s, &value, &each, count));
    char *word = mem_new(each + CSV_BEYOND);
    for (uint64_t i = 0; i < *count; ++i) {
        memcpy(word, value + i * each, each);
        CsvValue v = {word, strnlen(word, each)};
        csv_vocab_add(vocab, &v, first + 2 + i, 1);
    }
    mem_free(&word);
    return OK;
}

/* Reads all vocabularies. The fields' ids follow each other as in the import. */
static Status take_fields(Stored *s, const CsvSchema *schema, const DataSet *set, CsvMeaning *is)
{
    uint64_t next = 0, count, rows;
    bool hex = false;
    for (int i = 0; i < schema->count; ++i) {
        const CsvColumn *c = &schema->column[i];
        if (c->type != CSV_CATEGORY) continue;
        is->first[c->slot] = next;
        hex |= c->ids == CSV_HEX;
        count = 0;
        if (csv_has_words(c)) TRY(take_words(s, next, &is->vocab[c->slot], &count));
        next += c->ids == CSV_HASH ? c->rows : 2 + count;
    }
    rows = hex ? 0 : schema->hash_rows ? schema->hash_rows : next;
    return rows == set->id_rows ? OK : another(schema, set->path, "its ids differ");
}

/* Do the names of the schema's columns of a type equal the set's list, in order? */
static Status check_names(const CsvSchema *schema, const DataSet *set, CsvType type,
                          const char *list)
{
    ClassNames names;
    int64_t at = 0;
    TRY(class_names_read_of(&names, set->path, list));
    bool good = true;
    for (int i = 0; i < schema->count; ++i) {
        if (schema->column[i].type != type) continue;
        good = good && at < names.count && !strcmp(names.name[at], schema->column[i].name);
        ++at;
    }
    /* A set without numbers has a column of ones. */
    good = good && (at == names.count || (at == 0 && type == CSV_NUMBER));
    class_names_free(&names);
    return good ? OK
                : another(schema, set->path,
                          type == CSV_NUMBER ? "its numbers differ" : "its fields differ");
}

Status csv_stored_meaning(CsvMeaning *is, const CsvSchema *schema, const DataSet *set)
{
    Stored s;
    char *input;
    size_t bytes;
    TRY(check_names(schema, set, CSV_NUMBER, "columns"));
    TRY(check_names(schema, set, CSV_CATEGORY, "fields"));
    FILE *out = open_memstream(&input, &bytes);
    if (!out) die("out of memory for names of vocabularies");
    fprintf(out, "%s%c/dense_mean%c/dense_deviation%c", set->path, 0, 0, 0);
    for (int i = 0; i < schema->count; ++i)
        if (csv_has_words(&schema->column[i]))
            fprintf(out, "/vocab/%s%c", schema->column[i].name, 0);
    fclose(out);
    for (int i = 0; i < schema->numbers; ++i) is->deviation[i] = 1;
    Status st = stored_read_arrays(&s, set->path, input, bytes);
    if (st == OK) st = take_numbers(&s, schema, is->mean);
    if (st == OK) st = take_numbers(&s, schema, is->deviation);
    if (st == OK) st = take_fields(&s, schema, set, is);
    mem_free(&s.text);
    return st;
}

uint64_t csv_stored_scaling(int64_t file, const char *path)
{
    Stored s = {.path = path};
    CsvSchema schema = {0};
    CsvMeaning is = {0};
    FILE *answer = open_memstream(&s.text, &s.bytes);
    if (!answer) die_as(ERR_MEMORY, "out of memory");
    send_array(file, path, "/schema", answer);
    send_array(file, path, "/dense_mean", answer);
    send_array(file, path, "/dense_deviation", answer);
    if (fclose(answer) != 0) die_as(ERR_MEMORY, "out of memory");
    Status st = take_schema(&s, &schema);
    csv_meaning_init(&is, &schema, 0);
    for (int i = 0; i < schema.numbers; ++i) is.deviation[i] = 1;
    if (st == OK) st = take_numbers(&s, &schema, is.mean);
    if (st == OK) st = take_numbers(&s, &schema, is.deviation);
    HashPieces *pieces = hash_begin();
    for (int i = 0; st == OK && i < schema.count; ++i) {
        const CsvColumn *c = &schema.column[i];
        if (c->type != CSV_NUMBER) continue;
        const double rule[] = {c->log, c->scaled ? c->min : is.mean[c->slot],
                               c->scaled ? c->range : is.deviation[c->slot]};
        hash_add(pieces, rule, sizeof rule);
    }
    uint64_t hash = hash_end(&pieces);
    csv_meaning_fini(&is, 0);
    csv_schema_fini(&schema);
    mem_free(&s.text);
    return st == OK ? hash : 0;
}
