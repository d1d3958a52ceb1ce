/* Reads the schema and the encoding (vocabularies, means and deviations) that a data set stores.
 * csv_stored_schema and csv_stored_encoding use HDF5 in a separate process, which sends the
 * requested arrays in the order of the request. csv_stored_scaling uses HDF5 directly, because
 * set/facts.c calls it in a separate process of its own. An array is sent as
 *
 *     bytes of an element (64 bits), number of elements (64 bits), the elements
 *
 * An array that is missing or empty, has another type than memory_type accepts, or cannot be read
 * is sent as two zeros. */
#include "csv.h"

#include <string.h>
#include <xxhash.h>

/* limits of the separate process: BUSY_S seconds of processor time, CLOCK_S seconds of elapsed
 * time */
enum { BUSY_S = 600, CLOCK_S = 1800 };

/* Returns the text that follows `text` in a request. A request consists of texts, each followed by
 * a zero byte: the path of a data set, then the names of its arrays. */
static const char *next_text(const char *text)
{
    return text + strlen(text) + 1;
}

/* Returns the type in memory for a stored type: double for floats, the stored type for strings of
 * fixed length, -1 for all other types. The caller closes it. */
static hid_t memory_type(hid_t stored)
{
    if (H5Tget_class(stored) == H5T_FLOAT) return H5Tcopy(H5T_NATIVE_DOUBLE);
    if (H5Tget_class(stored) != H5T_STRING || H5Tis_variable_str(stored) > 0) return -1;
    return H5Tcopy(stored);
}

static void send_array(hid_t file, const char *path, const char *name, FILE *answer)
{
    /* [0]: bytes of an element; [1]: number of elements */
    uint64_t size[2] = {0, 0};
    char *value = NULL;
    bool is_external;
    hid_t access = hdf5_access_without_links(&is_external);
    hid_t dataset = h5_has(file, name) ? H5Dopen2(file, name, access) : -1;
    if (dataset >= 0 && hdf5_check_in_one_file(file, dataset, path, name) == OK) {
        hid_t stored = H5Dget_type(dataset), type = memory_type(stored);
        hid_t space = H5Dget_space(dataset);
        hssize_t count = H5Sget_simple_extent_npoints(space);
        if (type >= 0 && count > 0) {
            size[0] = H5Tget_size(type);
            size[1] = (uint64_t)count;
            value = mem_new(size[0] * size[1]);
            if (H5Dread(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) < 0)
                size[0] = size[1] = 0;
        }
        H5Sclose(space);
        if (type >= 0) H5Tclose(type);
        H5Tclose(stored);
    }
    fwrite(size, sizeof size, 1, answer);
    if (size[0]) fwrite(value, size[0], size[1], answer);
    mem_free(&value);
    if (dataset >= 0) H5Dclose(dataset);
    H5Pclose(access);
}

/* Runs in the separate process. */
static void send_arrays(const void *input, size_t input_bytes, FILE *answer)
{
    const char *path = input, *end = path + input_bytes;
    hid_t file;
    hdf5_lock();
    if (h5_open(&file, path) == OK)
        for (const char *name = next_text(path); name < end; name = next_text(name))
            send_array(file, path, name, answer);
    hdf5_unlock();
}

/* the arrays that the separate process has sent */
typedef struct Stored {
    /* path of the data set, borrowed */
    const char *path;
    /* the arrays, in the form that the comment of this file describes; owned */
    char *text;
    /* length of text */
    size_t bytes;
    /* offset of the next array in text */
    size_t at;
} Stored;

/* Requests arrays of the data set `path`. input: the request, in the form that next_text describes;
 * it is freed here. The caller frees s->text. */
static Status stored_request(Stored *s, const char *path, char *input, size_t input_bytes)
{
    static const IsolatedJob job = {
        .subject = "HDF5, in the process that reads vocabularies,",
        .memory_bytes = (size_t)2 << 30,
        .busy_s = BUSY_S,
        .clock_s = CLOCK_S,
        .answer_bytes = (size_t)8 << 30,
        .work = send_arrays,
    };
    *s = (Stored){.path = path};
    Status st = isolated_run(&job, path, input, input_bytes, &s->text, &s->bytes);
    mem_free(&input);
    return st;
}

/* Finds the next array. *value: its elements, borrowed. *each: bytes of an element; 0: the array is
 * missing or unusable. *count: number of elements. ERR_DATA: the answer is damaged. */
static Status stored_next(Stored *s, const char **value, uint64_t *each, uint64_t *count)
{
    uint64_t size[2] = {0};
    *value = NULL;
    *each = *count = 0;
    bool good = s->bytes - s->at >= sizeof size;
    if (good) memcpy(size, s->text + s->at, sizeof size);
    s->at += good ? sizeof size : 0;
    if (!good || !size[0] != !size[1] || (size[0] && size[1] > (s->bytes - s->at) / size[0]))
        return fail(ERR_DATA,
                    "%s: vocabularies cannot be read: the file is damaged, or is no data set of "
                    "weft's",
                    s->path);
    *value = s->text + s->at;
    *each = size[0];
    *count = size[1];
    s->at += size[0] * size[1];
    return OK;
}

/* ---- the schema ---- */

/* Parses the next array, which is the schema. ERR_DATA: the data set stores no schema. */
static Status read_schema(Stored *s, CsvSchema *schema)
{
    const char *text;
    uint64_t each, count;
    TRY(stored_next(s, &text, &each, &count));
    if (each == 0 || count != 1)
        return fail(ERR_DATA,
                    "%s: does not store the schema of its import: name the schema's file with "
                    "--schema",
                    s->path);
    char *copy = mem_new(each + 1), *name = mem_format("%s, its /schema", s->path);
    memcpy(copy, text, each);
    Status st = csv_schema_parse(schema, name, copy, strlen(copy));
    mem_free(&name);
    return st;
}

Status csv_stored_schema(CsvSchema *schema, const char *path)
{
    Stored s;
    char *input = mem_format("%s%c/schema", path, 0);
    *schema = (CsvSchema){0};
    Status st = stored_request(&s, path, input, strlen(path) + sizeof "/schema" + 1);
    if (st == OK) st = read_schema(&s, schema);
    mem_free(&s.text);
    return st;
}

/* ---- vocabularies, means and deviations ---- */

static Status fail_other_schema(const CsvSchema *schema, const char *path, const char *what)
{
    return fail(ERR_DATA,
                "%s: was not imported with the schema %s: %s; name the schema of its import", path,
                schema->path, what);
}

/* Reads the next array, the means or the deviations of all columns of numbers, and writes it to
 * `to`. If the array is missing, `to` is not changed. */
static Status read_numbers(Stored *s, const CsvSchema *schema, double *to)
{
    const char *value;
    uint64_t each, count;
    TRY(stored_next(s, &value, &each, &count));
    if (each == 0) return OK;
    if (each != sizeof *to || count != (uint64_t)(schema->numbers ? schema->numbers : 1))
        return fail_other_schema(schema, s->path, "its means differ");
    memcpy(to, value, (size_t)schema->numbers * sizeof *to);
    return OK;
}

/* Reads the next array, the words of the field whose first id is `first`. Words are padded with
 * zero bytes; a word may have zero bytes inside, but the import refuses one at its end. The field's
 * first two ids are for missing and for unknown values, so the ids of the words begin at first + 2.
 */
static Status read_words(Stored *s, uint64_t first, CsvVocab *vocab, uint64_t *count)
{
    const char *value;
    uint64_t each;
    TRY(stored_next(s, &value, &each, count));
    char *word = mem_new(each + CSV_OVERREAD_BYTES);
    for (uint64_t i = 0; i < *count; ++i) {
        uint64_t length = each;
        memcpy(word, value + i * each, each);
        while (length && !word[length - 1]) --length;
        CsvValue v = {word, length};
        csv_vocab_add(vocab, &v, first + 2 + i, 1);
    }
    mem_free(&word);
    return OK;
}

/* Reads all vocabularies and finds each field's first id, by the rules of assign_ids in
 * csv_import.c. ERR_DATA: the data set has another number of ids. */
static Status read_fields(Stored *s, const CsvSchema *schema, const DataSet *set,
                          CsvEncoding *encoding)
{
    uint64_t next = 0, count, rows;
    bool hex = false;
    for (int i = 0; i < schema->count; ++i) {
        const CsvColumn *c = &schema->column[i];
        if (c->type != CSV_CATEGORY) continue;
        encoding->first_id[c->slot] = next;
        hex |= c->id_rule == CSV_IDS_HEX;
        count = 0;
        if (csv_has_vocab(c)) TRY(read_words(s, next, &encoding->vocab[c->slot], &count));
        next += c->id_rule == CSV_IDS_HASH ? c->id_count : 2 + count;
    }
    rows = hex ? 0 : schema->shared_ids ? schema->shared_ids : next;
    return rows == set->id_limit ? OK : fail_other_schema(schema, set->path, "its ids differ");
}

/* Checks that the columns of one type in the schema have the names of a list that the data set
 * stores, in the same order. list: name of the attribute. */
static Status check_names(const CsvSchema *schema, const DataSet *set, CsvType type,
                          const char *list)
{
    ClassNames names;
    int64_t at = 0;
    TRY(class_names_read_list(&names, set->path, list));
    bool good = true;
    for (int i = 0; i < schema->count; ++i) {
        if (schema->column[i].type != type) continue;
        good = good && at < names.count && !strcmp(names.name[at], schema->column[i].name);
        ++at;
    }
    /* a data set without numbers has a column of ones, which the schema does not have */
    good = good && (at == names.count || (at == 0 && type == CSV_NUMBER));
    class_names_free(&names);
    return good
               ? OK
               : fail_other_schema(schema, set->path,
                                   type == CSV_NUMBER ? "its numbers differ" : "its fields differ");
}

Status csv_stored_encoding(CsvEncoding *encoding, const CsvSchema *schema, const DataSet *set)
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
        if (csv_has_vocab(&schema->column[i]))
            fprintf(out, "/vocab/%s%c", schema->column[i].name, 0);
    fclose(out);
    for (int i = 0; i < schema->numbers; ++i) encoding->deviation[i] = 1;
    Status st = stored_request(&s, set->path, input, bytes);
    if (st == OK) st = read_numbers(&s, schema, encoding->mean);
    if (st == OK) st = read_numbers(&s, schema, encoding->deviation);
    if (st == OK) st = read_fields(&s, schema, set, encoding);
    mem_free(&s.text);
    return st;
}

uint64_t csv_stored_scaling(int64_t file, const char *path)
{
    Stored s = {.path = path};
    CsvSchema schema = {0};
    CsvEncoding encoding = {0};
    FILE *answer = open_memstream(&s.text, &s.bytes);
    if (!answer) die_as(ERR_MEMORY, "out of memory");
    send_array(file, path, "/schema", answer);
    send_array(file, path, "/dense_mean", answer);
    send_array(file, path, "/dense_deviation", answer);
    if (fclose(answer) != 0) die_as(ERR_MEMORY, "out of memory");
    Status st = read_schema(&s, &schema);
    csv_encoding_init(&encoding, &schema, 0);
    for (int i = 0; i < schema.numbers; ++i) encoding.deviation[i] = 1;
    if (st == OK) st = read_numbers(&s, &schema, encoding.mean);
    if (st == OK) st = read_numbers(&s, &schema, encoding.deviation);
    HashPieces *pieces = hash_begin();
    for (int i = 0; st == OK && i < schema.count; ++i) {
        const CsvColumn *c = &schema.column[i];
        if (c->type != CSV_NUMBER) continue;
        const double rule[] = {c->log, c->scaled ? c->min : encoding.mean[c->slot],
                               c->scaled ? c->range : encoding.deviation[c->slot]};
        hash_add(pieces, rule, sizeof rule);
    }
    uint64_t hash = hash_end(&pieces);
    csv_encoding_fini(&encoding, 0);
    csv_schema_fini(&schema);
    mem_free(&s.text);
    return st == OK ? hash : 0;
}
