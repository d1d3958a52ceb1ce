/* Computes the fingerprint of a data set: shapes, types, and a hash (XXH3, Collet) of its values. A
 * resumed run compares fingerprints to check that it reads the same samples, wherever the files are
 * now. Also hashes the addresses of arrays in their files. RULE has the number of the rule that
 * says which values are hashed and how; a changed rule needs a new number. field_hash.c hashes sets
 * of fields. For other sets, the following values of each file are hashed, in this order, file
 * after file:
 *   labels, targets  all labels, as classes; all targets up to 64 MB, larger targets like samples
 *   boxes            all arrays of a set of boxes, which has no other labels
 *   encoded pictures the index, and the orientations if readers rotate the pictures
 *   ids              (N,F) like samples; flat ids, and their index, like tokens
 *   samples          the first 16 KB of 4,096 samples, spread evenly from the first to the last, or
 *                    of all samples if there are fewer; in all at most 64 MB are hashed
 *   tokens           the first and last MB and 4,096 sequences of 1,024 tokens, spread evenly, or
 *                    all tokens if there are at most 4,096 x 1,024; bytes of encoded pictures in
 *                    the same way
 * After the last file, mean and deviation are hashed if samples are normalised by them. Values are
 * hashed as readers return them, so compression and stored byte order do not matter. They are in
 * the byte order of this machine, which is little-endian, as checkpoints require. Arrays that are
 * not contiguous are read through HDF5, which reads whole samples; this costs as much as reading
 * 4,096 samples in training. */
#include "../fields/fields_private.h"

#include <string.h>
#include <xxhash.h>

enum {
    /* number of samples, or of sequences of tokens, that are hashed */
    SPREAD_COUNT = 4096,
    /* number of bytes at the beginning of a sample that are hashed */
    SAMPLE_HEAD_BYTES = 16 << 10,
    /* number of tokens in a sequence that is hashed */
    RUN_TOKENS = 1024,
    /* number of bytes at the beginning, and at the end, of an array of tokens that are hashed */
    END_BYTES = 1 << 20,
    BUFFER_BYTES = 1 << 20,
    /* largest array of targets, in bytes, that is hashed completely */
    ALL_TARGETS_BYTES = 64 << 20
};
#define RULE "xxh3-1 "

/* State of hashing one array. */
typedef struct Digest {
    /* set by which the labels in the array become classes before they are hashed; borrowed. NULL:
     * values are hashed as readers return them */
    const DataSet *labels;
    /* state of the hash of the whole set; borrowed */
    XXH3_state_t *state;
    /* reader of the array; owned */
    Reader *reader;
    /* borrowed */
    const DataArray *array;
    /* memory of BUFFER_BYTES, or of one sample if that is larger; owned */
    uint8_t *buffer;
} Digest;

/* Replaces `count` labels in the buffer by their classes, stored in the labels' type. */
static void labels_to_classes(const Digest *d, int64_t count)
{
    size_t bytes = (size_t)d->array->sample_bytes;
    for (int64_t i = 0; i < count; ++i) {
        uint8_t *at = d->buffer + (size_t)i * bytes;
        int64_t class = label_class(d->labels, element_integer(d->array->type, at));
        memcpy(at, &class, bytes);
    }
}

/* Hashes all bytes of rows first .. first + count - 1. */
static Status hash_rows(Digest *d, int64_t first, int64_t count)
{
    int64_t each = d->array->sample_bytes;
    int64_t rows_max = each < BUFFER_BYTES ? BUFFER_BYTES / each : 1;
    for (int64_t end = first + count; first < end; first += rows_max) {
        int64_t n = end - first < rows_max ? end - first : rows_max;
        TRY(reader_get_rows(d->reader, first, n, d->buffer));
        if (d->labels) labels_to_classes(d, n);
        XXH3_64bits_update(d->state, d->buffer, (size_t)(n * each));
    }
    return OK;
}

/* Hashes SPREAD_COUNT sequences of `run` rows, spread evenly from the first row to the last. If run
 * is 1, hashes only the first SAMPLE_HEAD_BYTES of each row. */
static Status hash_spread(Digest *d, int64_t run)
{
    int64_t rows = d->array->dim[0], each = d->array->sample_bytes;
    int64_t head = each < SAMPLE_HEAD_BYTES ? each : SAMPLE_HEAD_BYTES;
    for (int64_t i = 0; i < SPREAD_COUNT && i < rows; ++i) {
        int64_t at = rows < SPREAD_COUNT ? i : i * (rows - run) / (SPREAD_COUNT - 1);
        if (run > 1) {
            TRY(hash_rows(d, at, run));
        } else {
            TRY(reader_get_head(d->reader, at, head, d->buffer));
            XXH3_64bits_update(d->state, d->buffer, (size_t)head);
        }
    }
    return OK;
}

static Status hash_tokens(Digest *d)
{
    int64_t rows = d->array->dim[0], end = END_BYTES / d->array->sample_bytes;
    if (rows <= (int64_t)SPREAD_COUNT * RUN_TOKENS) return hash_rows(d, 0, rows);
    TRY(hash_rows(d, 0, end));
    TRY(hash_rows(d, rows - end, end));
    return hash_spread(d, RUN_TOKENS);
}

static Status hash_array(XXH3_state_t *state, const DataSet *set, const DataArray *array)
{
    bool is_x = array == &set->x, is_y = array == &set->y;
    bool is_ids = array == &set->ids || array == &set->id_first;
    bool is_labels = is_y && set->target_width == 0;
    bool like_tokens =
        (is_x && (data_has_tokens(set) || set->encoded)) || (is_ids && array->ndim == 1);
    bool large_targets =
        is_y && !is_labels && array->dim[0] > ALL_TARGETS_BYTES / array->sample_bytes;
    bool all_rows = !is_x && !is_ids && !large_targets;
    Digest d = {.state = state, .array = array};
    if (is_labels && (set->map.count > 0 || set->label_base != 0)) d.labels = set;
    TRY(reader_new_array(&d.reader, set, array));
    int64_t each = array->sample_bytes;
    d.buffer = mem_new((size_t)(each < BUFFER_BYTES ? BUFFER_BYTES : each));
    Status st = all_rows      ? hash_rows(&d, 0, array->dim[0])
                : like_tokens ? hash_tokens(&d)
                              : hash_spread(&d, 1);
    mem_free(&d.buffer);
    reader_free(&d.reader);
    return st;
}

static Status hash_file(XXH3_state_t *state, const DataSet *set)
{
    const DataKindInfo *kind = data_kind(set);
    if (kind->x != X_TOKENS && kind->labels != LABELS_BOXES) TRY(hash_array(state, set, &set->y));
    for (int i = 0; i < BOX_ARRAYS; ++i)
        if (set->box[i].ndim) TRY(hash_array(state, set, &set->box[i]));
    if (set->encoded) TRY(hash_array(state, set, &set->index));
    if (set->rotates_on_read) TRY(hash_array(state, set, &set->orient));
    if (set->fields > 0) TRY(hash_array(state, set, &set->ids));
    if (set->id_first.ndim) TRY(hash_array(state, set, &set->id_first));
    return hash_array(state, set, &set->x);
}

static Status hash_set(XXH3_state_t *state, const DataSet *set)
{
    DataSet *file = mem_new(sizeof *file);
    const bool fields = data_has_fields(set);
    Status st = fields ? field_hash(state, set) : set->file_count ? OK : hash_file(state, set);
    for (int i = 0; st == OK && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = hash_file(state, file);
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
    char x[DIMS_TEXT], dims[DIMS_TEXT] = "", labels_and_ids[160] = "";
    bool tokens = data_has_tokens(set);
    text[0] = 0;
    XXH3_state_t *state = XXH3_createState();
    if (!state) die("out of memory: a hash's state");
    XXH3_64bits_reset(state);
    Status st = hash_set(state, set);
    unsigned long long hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    TRY(st);
    if (data_has_boxes(set))
        snprintf(labels_and_ids, sizeof labels_and_ids, "boxes %s, ",
                 dims_text(&set->box[BOX_ARRAY_BOXES], dims));
    else if (!tokens)
        snprintf(labels_and_ids, sizeof labels_and_ids, "%s %s %s, ",
                 set->target_width ? "targets" : "labels", dims_text(&set->y, dims),
                 element_name(set->y.type));
    size_t used = strlen(labels_and_ids);
    if (set->fields > 0)
        snprintf(labels_and_ids + used, sizeof labels_and_ids - used, "ids %s %s, ",
                 dims_text(&set->ids, dims), element_name(set->ids.type));
    snprintf(text, DATA_FINGERPRINT, "%s %s%s, %s" RULE "%016llx", dims_text(&set->x, x),
             tokens ? "tokens " : "", element_name(set->x.type), labels_and_ids, hash);
    return OK;
}

/* ---- layout ---- */

/* PLAIN_ARRAYS: number of arrays other than those of boxes */
enum { PLAIN_ARRAYS = 6, ARRAYS = PLAIN_ARRAYS + BOX_ARRAYS };

/* Lists the arrays of a set. An array that the set does not have has ndim 0. */
static void list_arrays(const DataSet *set, const DataArray *array[ARRAYS])
{
    const DataArray *plain[PLAIN_ARRAYS] = {&set->x,      &set->y,   &set->index,
                                            &set->orient, &set->ids, &set->id_first};
    memcpy(array, plain, sizeof plain);
    for (int i = 0; i < BOX_ARRAYS; ++i) array[PLAIN_ARRAYS + i] = &set->box[i];
}

/* Hashes the addresses of a file's arrays. offset[i]: present offset of array i; -1: the array is
 * read through HDF5. */
static Status hash_file_layout(const DataSet *file, uint64_t *layout, int64_t offset[ARRAYS])
{
    const DataArray *array[ARRAYS];
    hid_t opened = -1, dataset;
    list_arrays(file, array);
    HashPieces *hash = hash_begin();
    hdf5_lock();
    Status st = h5_open(&opened, file->path);
    for (int i = 0; st == OK && i < ARRAYS; ++i) {
        offset[i] = array[i]->offset;
        if (array[i]->ndim) st = h5_dataset(&dataset, opened, file->path, array[i]->name, NULL);
        if (!array[i]->ndim || st != OK) continue;
        haddr_t now = H5Dget_offset(dataset);
        if (offset[i] >= 0) offset[i] = now > INT64_MAX ? -1 : (int64_t)now;
        h5_layout_hash(dataset, hash);
        H5Dclose(dataset);
    }
    if (opened >= 0) H5Fclose(opened);
    hdf5_unlock();
    *layout = hash_end(&hash);
    return st;
}

Status data_set_hash_layout(DataSet *set, uint64_t *layout)
{
    DataSet *file = mem_new(sizeof *file);
    int64_t offset[ARRAYS];
    Status st = OK;
    for (int i = 0; st == OK && i < data_set_files(set); ++i) {
        if (data_has_fields(set)) {
            st = field_refresh_layout(set, i, &layout[i]);
            continue;
        }
        DataFile *f = &set->file[i];
        int64_t *of_file[] = {&f->x.offset,      &f->y.offset,   &f->index.offset,
                              &f->orient.offset, &f->ids.offset, &f->id_first.offset};
        int64_t *of_set[] = {&set->x.offset,      &set->y.offset,   &set->index.offset,
                             &set->orient.offset, &set->ids.offset, &set->id_first.offset};
        *file = *set;
        if (set->file_count) data_set_file(set, i, file);
        st = hash_file_layout(file, &layout[i], offset);
        for (int k = 0; st == OK && k < PLAIN_ARRAYS; ++k)
            *(set->file_count ? of_file : of_set)[k] = offset[k];
        /* A set of boxes is always one file. */
        for (int k = 0; st == OK && k < BOX_ARRAYS; ++k)
            set->box[k].offset = offset[PLAIN_ARRAYS + k];
    }
    mem_free(&file);
    return st;
}

const struct stat *data_set_stat_at_open(const DataSet *set, int i, uint64_t *layout)
{
    if (!data_has_fields(set)) return NULL;
    const FieldFile *file = &set->field_set.file[i];
    *layout = file->layout;
    return &file->stat;
}

/* ---- in a separate process ---- */

/* Answer of the separate process. */
typedef struct Fingerprinted {
    Status status;
    /* fingerprint, or message of the failure */
    char text[4096];
    /* hash of the layout of each file */
    uint64_t layout[];
} Fingerprinted;

static size_t answer_bytes(const DataSet *set)
{
    return sizeof(Fingerprinted) + (size_t)data_set_files(set) * sizeof(uint64_t);
}

/* Runs in the separate process. This process is a copy of its parent, so its HDF5 may have cached
 * bytes that the file had earlier. Closing the library drops them. */
static void fingerprint_and_answer(const void *input, size_t input_bytes, FILE *answer)
{
    DataSet *set = mem_new(sizeof *set);
    memcpy(set, input, sizeof *set);
    void *block = mem_new(input_bytes - sizeof *set + 1);
    memcpy(block, (const char *)input + sizeof *set, input_bytes - sizeof *set);
    data_set_give_block(set, block);
    Fingerprinted *f = mem_new(answer_bytes(set));
    hdf5_lock();
    H5close();
    hdf5_unlock();
    f->status = data_set_hash_layout(set, f->layout);
    if (f->status == OK) f->status = data_set_fingerprint(set, f->text);
    if (f->status != OK) snprintf(f->text, sizeof f->text, "%s", fail_message());
    fwrite(f, answer_bytes(set), 1, answer);
}

Status data_set_fingerprint_anew(const DataSet *set, char text[DATA_FINGERPRINT], uint64_t *layout)
{
    const DataArray *array[ARRAYS];
    int64_t total = 0;
    char *answer;
    size_t bytes;
    const void *block = data_set_block(set, &bytes);
    const size_t input_bytes = sizeof *set + bytes;
    list_arrays(set, array);
    for (int i = 0; i < ARRAYS; ++i)
        if (array[i]->ndim) total += array[i]->dim[0] * array[i]->sample_bytes;
    /* Contiguous arrays are mapped completely, which counts as memory of the process. */
    IsolatedJob job = hdf5_unpack_limits(total, total);
    job.answer_bytes = answer_bytes(set);
    job.work = fingerprint_and_answer;
    char *input = mem_new(input_bytes);
    memcpy(input, set, sizeof *set);
    if (block) memcpy(input + sizeof *set, block, bytes);
    Status ran = isolated_run(&job, set->path, input, input_bytes, &answer, &bytes);
    mem_free(&input);
    TRY(ran);
    const Fingerprinted *f = (const void *)answer;
    bool complete = bytes == answer_bytes(set);
    Status st = complete ? f->status : fail(ERR_DATA, "%s: HDF5 gave no answer", set->path);
    if (st == OK) snprintf(text, DATA_FINGERPRINT, "%.*s", DATA_FINGERPRINT - 1, f->text);
    if (st == OK) memcpy(layout, f->layout, bytes - sizeof *f);
    if (complete && st != OK) fail(st, "%.*s", (int)sizeof f->text - 1, f->text);
    mem_free(&answer);
    return st;
}

bool data_fingerprint_known(const char *text)
{
    return strstr(text, ", " RULE) != NULL;
}
