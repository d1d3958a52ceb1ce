/* The fingerprint of a data set: shapes, types, and XXH3 (Collet) of its values. A resumed run must
 * see the same samples, wherever the files are now. This is rule 1; a change of what is hashed
 * needs a new number. Hashed are, in this order:
 *   labels   all, as classes; targets, too, up to 64 MB, larger ones like samples
 *   samples  4,096, spread evenly from the first to the last, or all if there are no more: the
 *            first 16 KB of each, so that at most 64 MB are read
 *   tokens   the first and last MB and 4,096 runs of 1,024, spread evenly, or all if there are no
 *            more
 *   encoded pictures: the index, and orientations that are applied; the bytes like tokens
 *   ids      (N,F) like samples; flat ones and their index like tokens
 *   mean and deviation, if samples are normalised by them
 * Values are hashed as readers return them, so packing and stored byte order do not matter, in the
 * order of a little-endian machine, the only kind that checkpoints support. HDF5 reads whole
 * samples, which costs as much as 4,096 of them in training. */
#include "../data_private.h"

#include <string.h>
#include <xxhash.h>

enum {
    PLACES = 4096,
    HEAD_BYTES = 16 << 10,
    RUN_TOKENS = 1024,
    END_BYTES = 1 << 20,
    PIECE_BYTES = 1 << 20,
    TARGET_BYTES = 64 << 20
};
#define RULE "xxh3-1 "

typedef struct Digest {
    /* the set whose labels the array holds; NULL: the array holds no labels, or labels are their
     * classes */
    const DataSet *labels;
    /* owned */
    XXH3_state_t *state;
    /* owned: reads one array as if it were x */
    Reader *reader;
    const DataArray *array;
    /* owned: max(PIECE_BYTES, bytes of one sample) */
    uint8_t *piece;
} Digest;

/* Replaces labels by their classes, stored in the labels' type. */
static void labels_to_classes(const Digest *d, int64_t count)
{
    size_t bytes = (size_t)d->array->sample_bytes;
    for (int64_t i = 0; i < count; ++i) {
        uint8_t *at = d->piece + (size_t)i * bytes;
        int64_t class = label_class(d->labels, element_integer(d->array->type, at));
        memcpy(at, &class, bytes);
    }
}

/* Hashes all bytes of rows first .. first + count - 1. */
static Status add_rows(Digest *d, int64_t first, int64_t count)
{
    int64_t each = d->array->sample_bytes, most = each < PIECE_BYTES ? PIECE_BYTES / each : 1;
    for (int64_t end = first + count; first < end; first += most) {
        int64_t n = end - first < most ? end - first : most;
        TRY(reader_get_run(d->reader, first, n, d->piece));
        if (d->labels) labels_to_classes(d, n);
        XXH3_64bits_update(d->state, d->piece, (size_t)(n * each));
    }
    return OK;
}

/* Hashes PLACES runs of `run` rows, spread from the first row to the last; of single rows only the
 * first HEAD_BYTES. */
static Status add_spread(Digest *d, int64_t run)
{
    int64_t rows = d->array->dim[0], each = d->array->sample_bytes;
    int64_t head = each < HEAD_BYTES ? each : HEAD_BYTES;
    for (int64_t i = 0; i < PLACES && i < rows; ++i) {
        int64_t at = rows < PLACES ? i : i * (rows - run) / (PLACES - 1);
        if (run > 1) {
            TRY(add_rows(d, at, run));
        } else {
            TRY(reader_get_head(d->reader, at, head, d->piece));
            XXH3_64bits_update(d->state, d->piece, (size_t)head);
        }
    }
    return OK;
}

static Status add_tokens(Digest *d)
{
    int64_t rows = d->array->dim[0], end = END_BYTES / d->array->sample_bytes;
    if (rows <= (int64_t)PLACES * RUN_TOKENS) return add_rows(d, 0, rows);
    TRY(add_rows(d, 0, end));
    TRY(add_rows(d, rows - end, end));
    return add_spread(d, RUN_TOKENS);
}

static Status add_array(XXH3_state_t *state, const DataSet *set, const DataArray *array)
{
    bool ids = array == &set->ids || array == &set->id_first;
    bool tokens = ((data_kind(set)->next_token || set->encoded) && array == &set->x) ||
                  (ids && array->ndim == 1);
    bool y = array != &set->x && !ids;
    bool all = y && (array != &set->y || set->target_width == 0 ||
                     array->dim[0] <= TARGET_BYTES / array->sample_bytes);
    bool other = set->map.count > 0 || set->label_base != 0;
    Digest d = {.state = state, .array = array};
    if (array == &set->y && set->target_width == 0 && other) d.labels = set;
    TRY(reader_new_array(&d.reader, set, array));
    int64_t each = array->sample_bytes;
    d.piece = mem_new((size_t)(each < PIECE_BYTES ? PIECE_BYTES : each));
    Status st = all ? add_rows(&d, 0, array->dim[0]) : tokens ? add_tokens(&d) : add_spread(&d, 1);
    mem_free(&d.piece);
    reader_free(&d.reader);
    return st;
}

static Status add_file(XXH3_state_t *state, const DataSet *set)
{
    if (!data_kind(set)->next_token) TRY(add_array(state, set, &set->y));
    if (set->encoded) TRY(add_array(state, set, &set->index));
    if (set->oriented) TRY(add_array(state, set, &set->orient));
    if (set->fields > 0) TRY(add_array(state, set, &set->ids));
    if (set->id_first.ndim) TRY(add_array(state, set, &set->id_first));
    return add_array(state, set, &set->x);
}

static Status add_all(XXH3_state_t *state, const DataSet *set)
{
    DataSet *file = mem_new(sizeof *file);
    Status st = set->file_count ? OK : add_file(state, set);
    for (int i = 0; st == OK && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = add_file(state, file);
    }
    mem_free(&file);
    TRY(st);
    if (!set->has_stats) return OK;
    XXH3_64bits_update(state, set->mean, (size_t)set->stats_count * sizeof *set->mean);
    XXH3_64bits_update(state, set->std, (size_t)set->stats_count * sizeof *set->std);
    return OK;
}

Status data_set_fingerprint(const DataSet *set, char text[DATA_FINGERPRINT])
{
    char x[DIMS_TEXT], y[DIMS_TEXT] = "", labels[160] = "";
    bool tokens = data_kind(set)->next_token;
    text[0] = 0;
    XXH3_state_t *state = XXH3_createState();
    if (!state) die("out of memory: a hash's state");
    XXH3_64bits_reset(state);
    Status st = add_all(state, set);
    unsigned long long hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    TRY(st);
    if (!tokens)
        snprintf(labels, sizeof labels, "%s %s %s, ", set->target_width ? "targets" : "labels",
                 dims_text(&set->y, y), element_name(set->y.type));
    size_t used = strlen(labels);
    if (set->fields > 0)
        snprintf(labels + used, sizeof labels - used, "ids %s %s, ", dims_text(&set->ids, y),
                 element_name(set->ids.type));
    snprintf(text, DATA_FINGERPRINT, "%s %s%s, %s" RULE "%016llx", dims_text(&set->x, x),
             tokens ? "tokens " : "", element_name(set->x.type), labels, hash);
    return OK;
}

/* ---- layout ---- */

enum { ARRAYS = 6 };

/* Lists the arrays of a set; those that it does not have are without dimensions. */
static void arrays_of(const DataSet *set, const DataArray *array[ARRAYS])
{
    const DataArray *all[ARRAYS] = {&set->x,      &set->y,   &set->index,
                                    &set->orient, &set->ids, &set->id_first};
    memcpy(array, all, sizeof all);
}

/* offset: where arrays that are read by their offset lie now; -1: they are read through HDF5. */
static Status file_layout(const DataSet *file, uint64_t *layout, int64_t offset[ARRAYS])
{
    const DataArray *array[ARRAYS];
    hid_t opened = -1, dataset;
    arrays_of(file, array);
    HashPieces *hash = hash_begin();
    hdf5_lock();
    Status st = h5_open(&opened, file->path);
    for (int i = 0; st == OK && i < ARRAYS; ++i) {
        offset[i] = array[i]->offset;
        if (array[i]->ndim) st = h5_dataset(&dataset, opened, file->path, array[i]->name, NULL);
        if (!array[i]->ndim || st != OK) continue;
        haddr_t at = H5Dget_offset(dataset);
        if (offset[i] >= 0) offset[i] = at > INT64_MAX ? -1 : (int64_t)at;
        h5_layout_hash(dataset, hash);
        H5Dclose(dataset);
    }
    if (opened >= 0) H5Fclose(opened);
    hdf5_unlock();
    *layout = hash_end(&hash);
    return st;
}

Status data_set_layout(DataSet *set, uint64_t layout[DATA_FILES])
{
    DataSet *file = mem_new(sizeof *file);
    int64_t at[ARRAYS];
    Status st = OK;
    for (int i = 0; st == OK && i < (set->file_count ? set->file_count : 1); ++i) {
        DataFile *f = &set->file[i];
        int64_t *of_file[] = {&f->x.offset,      &f->y.offset,   &f->index.offset,
                              &f->orient.offset, &f->ids.offset, &f->id_first.offset};
        int64_t *of_set[] = {&set->x.offset,      &set->y.offset,   &set->index.offset,
                             &set->orient.offset, &set->ids.offset, &set->id_first.offset};
        *file = *set;
        if (set->file_count) data_set_file(set, i, file);
        st = file_layout(file, &layout[i], at);
        for (int k = 0; st == OK && k < ARRAYS; ++k)
            *(set->file_count ? of_file : of_set)[k] = at[k];
    }
    mem_free(&file);
    return st;
}

/* ---- in a separate process ---- */

typedef struct Fingerprinted {
    Status status;
    uint64_t layout[DATA_FILES];
    /* the fingerprint, or the message of the failure */
    char text[4096];
} Fingerprinted;

/* The process is a copy in which HDF5 may cache the file's former bytes; closing the library drops
 * them. */
static void fingerprint_anew(const void *input, size_t input_bytes, FILE *answer)
{
    Fingerprinted *f = mem_new(sizeof *f);
    DataSet *set = mem_new(sizeof *set);
    memcpy(set, input, input_bytes);
    hdf5_lock();
    H5close();
    hdf5_unlock();
    f->status = data_set_layout(set, f->layout);
    if (f->status == OK) f->status = data_set_fingerprint(set, f->text);
    if (f->status != OK) snprintf(f->text, sizeof f->text, "%s", fail_message());
    fwrite(f, sizeof *f, 1, answer);
}

Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT],
                                 uint64_t layout[DATA_FILES])
{
    const DataArray *array[ARRAYS];
    int64_t total = 0;
    char *answer;
    size_t bytes;
    arrays_of(set, array);
    for (int i = 0; i < ARRAYS; ++i)
        if (array[i]->ndim) total += array[i]->dim[0] * array[i]->sample_bytes;
    /* contiguous arrays are mapped whole */
    IsolatedJob job = hdf5_unpacking(total, total);
    job.answer_bytes = sizeof(Fingerprinted);
    job.work = fingerprint_anew;
    TRY(isolated_run(&job, set->path, set, sizeof *set, &answer, &bytes));
    const Fingerprinted *f = (const void *)answer;
    bool whole = bytes == sizeof *f;
    Status st = whole ? f->status : fail(ERR_DATA, "%s: HDF5 gave no answer", set->path);
    if (st == OK) snprintf(text, DATA_FINGERPRINT, "%.*s", DATA_FINGERPRINT - 1, f->text);
    if (st == OK) memcpy(layout, f->layout, sizeof f->layout);
    if (whole && st != OK) fail(st, "%.*s", (int)sizeof f->text - 1, f->text);
    mem_free(&answer);
    return st;
}

bool data_fingerprint_known(const char *text)
{
    return strstr(text, ", " RULE) != NULL;
}
