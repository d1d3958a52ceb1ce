/* Reads and writes the names of classes, and of a table's columns and fields. A list is the root
 * attribute `classes` (`columns`, `fields`) of strings of fixed length. Since HDF5 limits
 * attributes to 64 KB, a list of more than ATTRIBUTE_BYTES_MAX bytes is written as a data set of
 * the same name. Readers accept both. HDF5 must parse an untrusted file to read names, so they are
 * read only when they are needed, and in a separate process. Control characters become '?'. */
#include "base/escape.h"
#include "../data_private.h"

#include <string.h>

enum {
    /* bytes of a list's name, such as "columns", with the final zero */
    LIST_BYTES = 32,
    /* larger lists, in bytes, are written as a data set */
    ATTRIBUTE_BYTES_MAX = 32 << 10,
    /* lists of more names are not read */
    NAMES_MAX = 1 << 20,
    /* lists that need more bytes in memory are not read; a string of variable length counts as its
     * pointer */
    NAMES_BYTES_MAX = 64 << 20,
    /* memory of the process that reads a list */
    MEMORY_BYTES = 512 << 20,
    /* CPU time of this process in seconds */
    BUSY_S = 30,
    /* elapsed time of this process in seconds */
    CLOCK_S = 300
};

herr_t h5_put_names(hid_t file, const char *list, const char *const *name, int64_t count)
{
    enum { WIDTH_MIN = 12 };
    char path[LIST_BYTES + 1];
    snprintf(path, sizeof path, "/%s", list);
    size_t width = WIDTH_MIN;
    hsize_t n = (hsize_t)count;
    for (hsize_t i = 0; name && i < n; ++i)
        if (strlen(name[i]) + 1 > width) width = strlen(name[i]) + 1;
    char *text = mem_new(n * width);
    for (hsize_t i = 0; i < n; ++i)
        if (name)
            memcpy(text + i * width, name[i], strlen(name[i]));
        else
            snprintf(text + i * width, width, "%llu", (unsigned long long)i);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, width);
    int64_t offset;
    herr_t rc;
    if (n * width <= ATTRIBUTE_BYTES_MAX)
        rc = h5_put_numbers(file, list, type, type, text, n);
    else if ((rc = h5_put_array(file, path, type, 1, &n, &offset)) >= 0)
        rc = h5_fill_array(file, path, type, text);
    H5Tclose(type);
    mem_free(&text);
    return rc;
}

herr_t h5_put_classes(hid_t file, const char *const *name, int64_t count)
{
    return h5_put_names(file, "classes", name, count);
}

/* A list of names in an open file. Handles are negative if they are not open; either `attribute` or
 * `dataset` is open. */
typedef struct StoredNames {
    hid_t attribute, dataset, type, space;
    int64_t count;
} StoredNames;

static void names_close(StoredNames *names)
{
    if (names->space >= 0) H5Sclose(names->space);
    if (names->type >= 0) H5Tclose(names->type);
    if (names->attribute >= 0) H5Aclose(names->attribute);
    if (names->dataset >= 0) H5Dclose(names->dataset);
}

/* Opens a list of names. Returns false if there is no list that can be read, or if its bytes are in
 * another file; then nothing needs to be closed. */
static bool names_open(StoredNames *names, hid_t file, const char *list)
{
    char path[LIST_BYTES + 1];
    snprintf(path, sizeof path, "/%s", list);
    *names = (StoredNames){-1, -1, -1, -1, 0};
    if (H5Aexists_by_name(file, "/", list, H5P_DEFAULT) > 0) {
        names->attribute = H5Aopen_by_name(file, "/", list, H5P_DEFAULT, H5P_DEFAULT);
        if (names->attribute >= 0) names->space = H5Aget_space(names->attribute);
        if (names->attribute >= 0) names->type = H5Aget_type(names->attribute);
    } else if (h5_has(file, path)) {
        bool is_external;
        hid_t access = hdf5_access_without_links(&is_external);
        names->dataset = H5Dopen2(file, path, access);
        H5Pclose(access);
        /* An untrusted file must not make weft read bytes of other files as names. */
        if (names->dataset >= 0 && hdf5_check_in_one_file(file, names->dataset, list, path) == OK) {
            names->space = H5Dget_space(names->dataset);
            names->type = H5Dget_type(names->dataset);
        }
    }
    if (names->space >= 0) names->count = (int64_t)H5Sget_simple_extent_npoints(names->space);
    if (names->type >= 0 && H5Tget_class(names->type) == H5T_STRING && names->count > 0 &&
        names->count <= NAMES_MAX &&
        (double)names->count * (double)H5Tget_size(names->type) <= NAMES_BYTES_MAX)
        return true;
    names_close(names);
    return false;
}

int64_t h5_class_count(hid_t file)
{
    StoredNames names;
    if (!names_open(&names, file, "classes")) return 0;
    names_close(&names);
    return names.count;
}

/* ---- in the separate process, which reads names ---- */

/* Writes a name and a zero byte; control characters become '?'. */
static void write_name(const char *name, size_t length, FILE *answer)
{
    for (size_t i = 0; i < length; ++i)
        fputc((unsigned char)name[i] < ' ' || name[i] == 127 ? '?' : name[i], answer);
    fputc(0, answer);
}

static void write_names(const StoredNames *names, FILE *answer)
{
    bool variable = H5Tis_variable_str(names->type) > 0;
    size_t each = variable ? sizeof(char *) : H5Tget_size(names->type);
    char *raw = mem_new((size_t)names->count * each);
    herr_t rc = names->attribute >= 0
                    ? H5Aread(names->attribute, names->type, raw)
                    : H5Dread(names->dataset, names->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, raw);
    for (int64_t i = 0; rc >= 0 && i < names->count; ++i) {
        const char *name = variable ? ((char **)(void *)raw)[i] : raw + (size_t)i * each;
        size_t length = !name ? 0 : variable ? strlen(name) : strnlen(name, each);
        while (!variable && length && name[length - 1] == ' ') --length;
        write_name(name, length, answer);
    }
    if (variable && rc >= 0) H5Dvlen_reclaim(names->type, names->space, H5P_DEFAULT, raw);
    mem_free(&raw);
}

bool h5_names_hash(hid_t file, const char *list, HashPieces *pieces, char *lines)
{
    StoredNames names;
    char *text = NULL;
    size_t bytes = 0;
    if (!names_open(&names, file, list)) return false;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory");
    write_names(&names, out);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory");
    hash_add(pieces, text, bytes);
    size_t used = strlen(lines);
    for (size_t i = 0; i < bytes && used + 1 < DATA_COLUMN_LINES; ++i)
        lines[used++] = text[i] ? text[i] : '\n';
    lines[used] = 0;
    mem_free(&text);
    names_close(&names);
    return true;
}

/* Request to the separate process. */
typedef struct NamesRequest {
    char list[LIST_BYTES], path[DATA_PATH];
} NamesRequest;

static void read_and_answer(const void *input, size_t input_bytes, FILE *answer)
{
    const NamesRequest *request = input;
    hid_t file;
    StoredNames names;
    (void)input_bytes;
    hdf5_lock();
    if (h5_open(&file, request->path) == OK && names_open(&names, file, request->list))
        write_names(&names, answer);
    hdf5_unlock();
}

/* ---- in the process that requests names ---- */

Status class_names_read(ClassNames *names, const char *path)
{
    return class_names_read_list(names, path, "classes");
}

Status class_names_read_list(ClassNames *names, const char *path, const char *list)
{
    static const IsolatedJob job = {
        .subject = "HDF5, in the process that reads the names of classes,",
        .memory_bytes = MEMORY_BYTES,
        .busy_s = BUSY_S,
        .clock_s = CLOCK_S,
        .answer_bytes = 2 * NAMES_BYTES_MAX,
        .work = read_and_answer,
    };
    char *text;
    size_t bytes;
    NamesRequest request = {0};
    *names = (ClassNames){0};
    if (strlen(path) >= sizeof request.path)
        return fail(ERR_NOINPUT, "the path %.60s... is longer than %d characters", path,
                    DATA_PATH - 1);
    snprintf(request.list, sizeof request.list, "%s", list);
    snprintf(request.path, sizeof request.path, "%s", path);
    TRY(isolated_run(&job, path, &request, sizeof request, &text, &bytes));
    class_names_split(names, text, bytes, 0);
    return OK;
}

/* Replaces each name by its text_escape. */
static void names_escape(ClassNames *names)
{
    size_t bytes = 1, used = 0;
    char **escaped = mem_new((size_t)(names->count + 1) * sizeof *escaped);
    for (int64_t i = 0; i < names->count; ++i) {
        escaped[i] = text_escape(names->name[i], false);
        bytes += strlen(escaped[i]) + 1;
    }
    char *text = mem_new(bytes);
    for (int64_t i = 0; i < names->count; ++i) {
        size_t length = strlen(escaped[i]) + 1;
        memcpy(text + used, escaped[i], length);
        names->name[i] = text + used;
        used += length;
        mem_free(&escaped[i]);
    }
    mem_free(&escaped);
    mem_free(&names->text);
    names->text = text;
}

void class_names_split(ClassNames *names, char *text, size_t bytes, char end)
{
    char *begin = text, **name;
    bool ascii = true;
    *names = (ClassNames){.text = text};
    for (size_t i = 0; i < bytes; ++i) names->count += text[i] == end || i + 1 == bytes;
    name = names->name = mem_new((size_t)(names->count + 1) * sizeof *names->name);
    for (char *at = text; at < text + bytes; ++at) {
        ascii = ascii && (unsigned char)*at < 0x80;
        if (*at == end || at + 1 == text + bytes) {
            *at = 0;
            *name++ = begin;
            begin = at + 1;
        } else if ((unsigned char)*at < ' ' || *at == 127) {
            *at = '?';
        }
    }
    if (!ascii) names_escape(names);
}

void class_names_from_lines(ClassNames *names, const char *lines)
{
    *names = (ClassNames){0};
    if (lines) class_names_split(names, mem_text(lines), strlen(lines) + 1, '\n');
}

void class_names_free(ClassNames *names)
{
    mem_free(&names->name);
    mem_free(&names->text);
    *names = (ClassNames){0};
}

const char *class_name(const ClassNames *names, int64_t i, char number[24])
{
    if (i < names->count) return names->name[i];
    snprintf(number, 24, "%lld", (long long)i);
    return number;
}
