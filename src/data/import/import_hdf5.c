/* Imports an untrusted HDF5 file. Its arrays may be chunked, compressed, or in the other byte
 * order, so only HDF5 can read them. This process lays out OUT.part. A separate process with limits
 * reads the file through HDF5 and writes the plain values to OUT.part, so no rank decompresses
 * untrusted bytes. The new file keeps shapes and types, the size of the vocabulary, the tokenizer,
 * the classes, and mean and deviation. From weft's own sets it also keeps the kind, and how
 * pictures were rotated and resized. Arrays get the names that weft looks for. All other attributes
 * are lost, such as the names of columns. Refuses arrays that readers could not read (set/facts.c),
 * and sets of boxes, encoded pictures and tables with ids. */
#include "../set/facts.h"
#include "../data_private.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK_BYTES = 4 << 20 };

/* request to the separate process; has no pointers */
typedef struct Copy {
    FactsRequest request;
    DataArray x, y;
    /* true: there is no y, as in data sets of tokens */
    bool only_x;
    /* descriptor of OUT.part, which the process inherits */
    int out_fd;
    /* offsets of the arrays x and y in OUT.part */
    int64_t x_offset, y_offset;
    /* true: the samples with label drop_label are left out; false: all samples are copied, and the
     * two fields below are not used */
    bool drops;
    /* drop_label: label of the samples that are left out; rows_kept: number of samples that
     * remain */
    int64_t drop_label, rows_kept;
} Copy;

/* argument of lay_out */
typedef struct Layout {
    const SetFacts *facts;
    const ClassNames *names;
    Copy *copy;
} Layout;

/* ---- in the separate process ---- */

static Status write_rows(const Copy *copy, const uint8_t *from, int64_t bytes, int64_t at)
{
    while (bytes > 0) {
        ssize_t n = pwrite(copy->out_fd, from, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return fail(ERR_IO, "%s: cannot be copied: %s", copy->request.path,
                        n < 0 ? strerror(errno) : "nothing was written");
        from += n, at += n, bytes -= n;
    }
    return OK;
}

/* Removes the rows that are left out, without gaps, and returns the number of rows that remain.
 * rows: n rows of `bytes` bytes; left_out NULL: all rows remain. */
static int64_t close_gaps(uint8_t *rows, int64_t bytes, const bool *left_out, int64_t n)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < n; ++i) {
        if (left_out && left_out[i]) continue;
        if (kept != i) memcpy(rows + kept * bytes, rows + i * bytes, (size_t)bytes);
        ++kept;
    }
    return kept;
}

static Status copy_rows(const Copy *copy, Reader *reader, const DataArray *a, int64_t offset,
                        const bool *left_out)
{
    int64_t block = a->sample_bytes < BLOCK_BYTES ? BLOCK_BYTES / a->sample_bytes : 1;
    uint8_t *rows = mem_new((size_t)(block * a->sample_bytes));
    Status st = OK;
    for (int64_t at = 0; st == OK && at < a->dim[0]; at += block) {
        int64_t n = a->dim[0] - at < block ? a->dim[0] - at : block;
        st = reader_get_rows(reader, at, n, rows);
        int64_t kept = close_gaps(rows, a->sample_bytes, left_out ? left_out + at : NULL, n);
        if (st == OK) st = write_rows(copy, rows, kept * a->sample_bytes, offset);
        offset += kept * a->sample_bytes;
    }
    mem_free(&rows);
    return st;
}

/* Creates a reader of an array's rows. The array is presented as x of a table, because a reader
 * does not interpret such rows. */
static Status new_row_reader(Reader **reader, const Copy *copy, const DataArray *a)
{
    DataSet *set = mem_new(sizeof *set);
    *set = (DataSet){.kind = DATA_TABLE, .samples = a->dim[0], .x = *a};
    snprintf(set->path, sizeof set->path, "%s", copy->request.path);
    Status st = reader_new_part(reader, set, true, false);
    mem_free(&set);
    return st;
}

static Status copy_array(const Copy *copy, const DataArray *a, int64_t offset, const bool *left_out)
{
    Reader *reader;
    TRY(new_row_reader(&reader, copy, a));
    Status st = copy_rows(copy, reader, a, offset, left_out);
    reader_free(&reader);
    return st;
}

/* Sets left_out[i] to whether sample i has the label to be dropped, and *rows_kept to the number of
 * the samples that remain. */
static Status find_dropped(const Copy *copy, bool *left_out, int64_t *rows_kept)
{
    enum { PIECE_ROWS = 1 << 16 };
    Reader *reader;
    const DataArray *y = &copy->y;
    size_t bytes = element_bytes(y->type);
    TRY(new_row_reader(&reader, copy, y));
    uint8_t *piece = mem_new(PIECE_ROWS * bytes);
    Status st = OK;
    *rows_kept = 0;
    for (int64_t at = 0; st == OK && at < y->dim[0]; at += PIECE_ROWS) {
        int64_t n = y->dim[0] - at < PIECE_ROWS ? y->dim[0] - at : PIECE_ROWS;
        st = reader_get_rows(reader, at, n, piece);
        for (int64_t i = 0; st == OK && i < n; ++i) {
            int64_t label = element_integer(y->type, piece + (size_t)i * bytes);
            left_out[at + i] = label == copy->drop_label;
            *rows_kept += !left_out[at + i];
        }
    }
    mem_free(&piece);
    reader_free(&reader);
    return st;
}

/* Runs in a separate process. Answers with the number of samples that remain or, if this fails,
 * with '-' and a message. */
static void answer_rows_kept(const void *input, size_t input_bytes, FILE *answer)
{
    const Copy *copy = input;
    (void)input_bytes;
    int64_t rows_kept;
    bool *left_out = mem_new((size_t)copy->y.dim[0]);
    if (find_dropped(copy, left_out, &rows_kept) == OK)
        fprintf(answer, "%lld", (long long)rows_kept);
    else
        fprintf(answer, "-%s", fail_message());
}

/* Runs in a separate process. Copies the arrays to OUT.part. Answers with a message if this fails,
 * else with nothing. */
static void copy_arrays(const void *input, size_t input_bytes, FILE *answer)
{
    const Copy *copy = input;
    (void)input_bytes;
    int64_t rows_kept;
    bool *left_out = copy->drops ? mem_new((size_t)copy->y.dim[0]) : NULL;
    Status st = copy->drops ? find_dropped(copy, left_out, &rows_kept) : OK;
    if (st == OK) st = copy_array(copy, &copy->x, copy->x_offset, left_out);
    if (st == OK && !copy->only_x) st = copy_array(copy, &copy->y, copy->y_offset, left_out);
    if (st != OK) fprintf(answer, "%s", fail_message());
}

/* ---- in this process ---- */

static herr_t put_array(hid_t file, const char *name, const DataArray *a, const Copy *copy,
                        int64_t *offset)
{
    hsize_t dim[SHAPE_DIMS];
    for (int i = 0; i < a->ndim; ++i) dim[i] = (hsize_t)a->dim[i];
    if (copy->drops) dim[0] = (hsize_t)copy->rows_kept;
    return h5_put_array(file, name, element_native(a->type), a->ndim, dim, offset);
}

static herr_t put_integer(hid_t file, const char *name, int64_t value)
{
    return h5_put_numbers(file, name, H5T_STD_I64LE, H5T_NATIVE_INT64, &value, 0);
}

static herr_t put_floats(hid_t file, const char *name, const float *value, int count)
{
    return h5_put_numbers(file, name, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, value, (hsize_t)count);
}

static bool put_attributes(hid_t file, const SetFacts *facts, const ClassNames *names)
{
    bool good = true;
    if (facts->by_weft)
        good = h5_put_text(file, "format", "weft-data") >= 0 &&
               h5_put_text(file, "kind", data_kind_info(facts->kind)->name) >= 0 &&
               put_integer(file, "version", 1) >= 0;
    if (good && facts->vocab > 0) good = put_integer(file, "vocab", facts->vocab) >= 0;
    if (good && names->count > 0 && names->count == facts->classes)
        good = h5_put_classes(file, (const char *const *)names->name, names->count) >= 0;
    else if (good && facts->classes > 0)
        good = put_integer(file, "classes", facts->classes) >= 0;
    if (good && *facts->tokenizer)
        good = h5_put_text(file, "tokenizer", facts->tokenizer) >= 0 &&
               h5_put_text(file, "tokenizer_hash", facts->tokenizer_hash) >= 0;
    if (good && facts->orient_requested) good = put_integer(file, "orient", 1) >= 0;
    if (good && facts->bicubic) good = h5_put_text(file, "filter", "bicubic") >= 0;
    if (good && facts->means > 0) good = put_floats(file, "mean", facts->mean, facts->means) >= 0;
    if (good && facts->stds > 0) good = put_floats(file, "std", facts->std, facts->stds) >= 0;
    return good;
}

static herr_t lay_out(void *user, hid_t file)
{
    const Layout *layout = user;
    Copy *copy = layout->copy;
    const char *x = layout->facts->by_weft ? data_kind_info(layout->facts->kind)->array : "/x";
    bool good = put_attributes(file, layout->facts, layout->names) &&
                put_array(file, x, &copy->x, copy, &copy->x_offset) >= 0 &&
                (copy->only_x || put_array(file, "/y", &copy->y, copy, &copy->y_offset) >= 0);
    return good ? 0 : -1;
}

static int64_t array_bytes(const DataArray *a)
{
    return a->dim[0] * a->sample_bytes;
}

/* Runs copy_arrays in a separate process. bytes: size of both arrays before samples are left
 * out. */
static Status copy_in_child(const Copy *copy, int64_t bytes)
{
    struct stat st;
    if (fstat(copy->out_fd, &st) != 0)
        return fail(ERR_IO, "%s: %s", copy->request.path, strerror(errno));
    IsolatedJob job = hdf5_unpack_limits(bytes, 0);
    job.answer_bytes = 1 << 16;
    job.file_bytes = (size_t)st.st_size;
    job.work = copy_arrays;
    char *answer = NULL;
    size_t length;
    Status status = isolated_run(&job, copy->request.path, copy, sizeof *copy, &answer, &length);
    if (status == OK && length > 0) status = fail(ERR_DATA, "%s", answer);
    mem_free(&answer);
    return status;
}

/* Counts the samples that remain, if some are to be left out. Runs answer_rows_kept in a separate
 * process, since the labels may be compressed. */
static Status count_rows_kept(Copy *copy)
{
    const DataArray *y = &copy->y;
    char *answer = NULL;
    size_t length;
    if (!copy->drops) return OK;
    if (copy->only_x || element_is_float(y->type) || y->sample_bytes > 8 ||
        y->dim[0] != copy->x.dim[0])
        return fail(ERR_DATA,
                    "%s: %s does not have one label for each sample, so no samples can be dropped",
                    copy->request.path, copy->request.y);
    IsolatedJob job = hdf5_unpack_limits(array_bytes(y), y->dim[0]);
    job.answer_bytes = 1 << 16;
    job.work = answer_rows_kept;
    TRY(isolated_run(&job, copy->request.path, copy, sizeof *copy, &answer, &length));
    Status st = *answer == '-' ? fail(ERR_DATA, "%s", answer + 1) : OK;
    copy->rows_kept = st == OK ? strtoll(answer, NULL, 10) : 0;
    mem_free(&answer);
    if (st == OK && (copy->rows_kept < 0 || copy->rows_kept > y->dim[0]))
        st = fail(ERR_DATA, "%s: HDF5's answer about it is impossible", copy->request.path);
    if (st == OK && copy->rows_kept == 0)
        st = fail(ERR_DATA, "%s: all samples have the label %lld, so none would remain",
                  copy->request.path, (long long)copy->drop_label);
    return st;
}

static Status import(const SetFacts *facts, const ClassNames *names, Copy *copy, const char *out,
                     bool force)
{
    PartFile part;
    Layout layout = {facts, names, copy};
    if (facts->status != OK) return fail(facts->status, "%s", facts->why);
    if (data_kind_info(facts->kind)->labels == LABELS_BOXES || facts->encoded ||
        facts->ids.ndim > 0)
        return fail(ERR_DATA, "%s: is a set of %s, whose arrays are plain already; use it as it is",
                    copy->request.path,
                    data_kind_info(facts->kind)->labels == LABELS_BOXES ? "boxes"
                    : facts->encoded                                    ? "encoded pictures"
                                                                        : "tables");
    copy->x = facts->x;
    copy->y = facts->y;
    copy->only_x = facts->y.ndim == 0;
    int64_t bytes = array_bytes(&copy->x);
    if (!copy->only_x && __builtin_add_overflow(bytes, array_bytes(&copy->y), &bytes))
        return fail(ERR_DATA, "%s: claims an impossible size", copy->request.path);
    TRY(count_rows_kept(copy));
    TRY(part_new(&part, out, force, bytes, lay_out, &layout));
    copy->out_fd = part.fd;
    Status st = copy_in_child(copy, bytes);
    if (st == OK) return part_finish(&part);
    part_drop(&part);
    return st;
}

Status data_import_hdf5(const char *file, const char *x, const char *y, const char *out, bool force,
                        LabelDrop *drop)
{
    Copy *copy = mem_new(sizeof *copy);
    copy->drops = drop != NULL;
    copy->drop_label = drop ? drop->label : 0;
    SetFacts *facts = mem_new(sizeof *facts);
    Status st = file_check_writable(out, force);
    if (st == OK) st = facts_request_init(&copy->request, file, x, y);
    if (st == OK) st = facts_request_run(&copy->request, facts);
    ClassNames names = {0};
    if (st == OK) st = class_names_read(&names, file);
    if (st == OK) st = import(facts, &names, copy, out, force);
    if (st == OK && drop) drop->count = copy->y.dim[0] - copy->rows_kept;
    class_names_free(&names);
    mem_free(&facts);
    mem_free(&copy);
    return st;
}

/* ---- the verb ---- */

typedef struct Hdf5Options {
    const char *out, *x, *y, *drop;
    bool force;
} Hdf5Options;

static const Flag flags[] = {
    FLAG_OUT(Hdf5Options, out, "the data set to write"),
    {"--x", FLAG_FIELD(Hdf5Options, x), .value = "NAME", .default_text = "/x",
     .help = "name of the samples in FILE"},
    {"--y", FLAG_FIELD(Hdf5Options, y), .value = "NAME", .default_text = "/y",
     .help = "name of the labels or targets in FILE"},
    {"--drop-label", FLAG_FIELD(Hdf5Options, drop), .value = "LABEL",
     .help = "leave out samples with this label, such as 255 or -1 for unlabelled samples"},
    FLAG_FORCE(Hdf5Options, force),
};

static Status run(int argc, char **argv, const void *options)
{
    const Hdf5Options *o = options;
    (void)argc;
    LabelDrop drop = {0, 0};
    char *end = NULL;
    errno = 0;
    if (o->drop) drop.label = strtoll(o->drop, &end, 10);
    if (o->drop && (end == o->drop || *end || errno))
        return fail(ERR_USAGE, "--drop-label %s: expected a whole number", o->drop);
    TRY(data_import_hdf5(argv[0], o->x, o->y, o->out, o->force, o->drop ? &drop : NULL));
    if (o->drop)
        log_info("wrote %s: %lld samples with the label %lld are left out", o->out,
                 (long long)drop.count, (long long)drop.label);
    else
        log_info("wrote %s", o->out);
    data_import_warn_of_labels(o->out);
    return OK;
}

/* listed in IMPORTERS (src/data/importers.c) */
const Verb import_hdf5 = {
    .name = "data import hdf5",
    .words = "FILE",
    .words_min = 1,
    .words_max = 1,
    .expects = "one file, and -o OUT",
    .help = "converts an HDF5 file, also a chunked or compressed one, to a plain data set",
    .more = "A separate process with limits on memory and time reads FILE through HDF5, so that "
            "a malicious file does no harm. OUT has uncompressed values at /x and /y, which "
            "ranks read without HDF5.",
    VERB_FLAGS(Hdf5Options, flags),
    .traits = VERB_NO_TRAITS,
    .run = run,
};
