/* Reads and writes the attributes of a checkpoint. Strings are written with a fixed length, because
 * HDF5 keeps variable-length strings in a heap without checksums. They are read in either form,
 * because other programs may have rewritten them. */
#include "meta.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES_MAX = 16 << 20 };

void checkpoint_meta_fini(CheckpointMeta *meta)
{
    mem_free(&meta->config);
    mem_free(&meta->version);
    mem_free(&meta->classes);
    mem_free(&meta->algorithms);
    mem_free(&meta->data_files);
    data_ranges_fini(&meta->ranges);
}

bool attr_put_text(hid_t object, const char *name, const char *text)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(text) + 1);
    H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attr = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attr >= 0 && H5Awrite(attr, type, text) >= 0;
    if (attr >= 0 && H5Aclose(attr) < 0) good = false;
    H5Sclose(space);
    H5Tclose(type);
    return good;
}

/* Writes an attribute of this space, and closes the space. stored, native: the type in the file and
 * in memory. */
static bool put_space(hid_t object, const char *name, hid_t space, hid_t stored, hid_t native,
                      const void *value)
{
    hid_t attr = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    bool good = attr >= 0 && H5Awrite(attr, native, value) >= 0;
    if (attr >= 0 && H5Aclose(attr) < 0) good = false;
    H5Sclose(space);
    return good;
}

bool attr_put_hash(hid_t object, const char *name, uint64_t hash)
{
    char text[HASH_CHARS];
    snprintf(text, sizeof text, "%016" PRIx64, hash);
    return attr_put_text(object, name, text);
}

bool attr_hash(hid_t object, const char *name, uint64_t *hash, bool *found)
{
    char *text = attr_text(object, name), *end = NULL;
    *found = text != NULL;
    if (!text) return true;
    *hash = strtoull(text, &end, 16);
    bool good = strlen(text) == HASH_CHARS - 1 && *end == 0;
    mem_free(&text);
    return good;
}

uint64_t checksum_bind(const char *path, bool ids, int ndim, const int64_t *dim,
                       const uint64_t *hash, int hashes)
{
    const char *type = ids ? "u64" : "f32";
    HashPieces *pieces = hash_begin();
    hash_add(pieces, path, strlen(path) + 1);
    hash_add(pieces, type, strlen(type) + 1);
    hash_add(pieces, dim, (size_t)ndim * sizeof *dim);
    hash_add(pieces, hash, (size_t)hashes * sizeof *hash);
    return hash_end(&pieces);
}

bool attr_put_int(hid_t object, const char *name, int64_t value)
{
    return put_space(object, name, H5Screate(H5S_SCALAR), H5T_STD_I64LE, H5T_NATIVE_INT64, &value);
}

bool attr_put_real(hid_t object, const char *name, double value)
{
    return put_space(object, name, H5Screate(H5S_SCALAR), H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE,
                     &value);
}

bool attr_put_floats(hid_t object, const char *name, const float *value, int count)
{
    hsize_t many = (hsize_t)count;
    return count == 0 || put_space(object, name, H5Screate_simple(1, &many, NULL), H5T_IEEE_F32LE,
                                   H5T_NATIVE_FLOAT, value);
}

bool attr_put_array(hid_t object, const char *name, const int64_t *value, int count)
{
    hsize_t many = (hsize_t)count;
    return put_space(object, name, H5Screate_simple(1, &many, NULL), H5T_STD_I64LE,
                     H5T_NATIVE_INT64, value);
}

static bool put_scale(hid_t root, const CheckpointMeta *meta)
{
    if (meta->loss_scale == 0 && meta->skipped == 0) return true;
    return attr_put_int(root, "skipped", meta->skipped) &&
           attr_put_int(root, "loss_scale_good", meta->loss_scale_good) &&
           attr_put_real(root, "loss_scale", meta->loss_scale);
}

/* Writes a text unless it is empty. */
static bool put_known(hid_t root, const char *name, const char *text)
{
    return !*text || attr_put_text(root, name, text);
}

static bool put_ids(hid_t root, const DataIds *ids)
{
    const int64_t value[] = {(int64_t)ids->id_limit, (int64_t)ids->field_first_hash,
                             (int64_t)ids->vocabulary_hash};
    bool known = ids->id_limit || ids->field_first_hash || ids->vocabulary_hash;
    return !known || attr_put_array(root, "data_ids", value, 3);
}

static bool put_columns(hid_t root, const DataColumns *columns)
{
    const int64_t value[] = {(int64_t)columns->names, (int64_t)columns->scaling};
    if (!columns->names && !columns->scaling) return true;
    return attr_put_array(root, "data_columns", value, 2) &&
           put_known(root, "data_column_names", columns->lines);
}

/* Writes the progress of the epoch, counted in samples. */
static bool put_position(hid_t root, const CheckpointMeta *meta)
{
    return meta->batch == 0 || (attr_put_int(root, "epoch_samples", meta->epoch_samples) &&
                                attr_put_int(root, "samples", meta->samples) &&
                                attr_put_int(root, "batch", meta->batch) &&
                                attr_put_int(root, "schedule_batch", meta->schedule_batch));
}

bool meta_put(hid_t root, const CheckpointMeta *meta)
{
    return attr_put_text(root, "format", CHECKPOINT_FORMAT_NAME) &&
           attr_put_int(root, "version", CHECKPOINT_FORMAT) &&
           attr_put_int(root, "step", meta->step) && attr_put_int(root, "epoch", meta->epoch) &&
           attr_put_int(root, "data_step", meta->data_step) && put_position(root, meta) &&
           attr_put_int(root, "seed", meta->seed) &&
           attr_put_real(root, "best_metric", meta->best_metric) &&
           put_known(root, "best_metric_of", meta->best_of) && put_scale(root, meta) &&
           attr_put_floats(root, "losses", meta->loss, meta->loss_count) &&
           meta_put_state(root, meta) && meta_put_input(root, meta) &&
           attr_put_text(root, "grid", meta->grid) &&
           put_known(root, "data_train", meta->data_train) &&
           put_known(root, "data_test", meta->data_test) &&
           put_known(root, "data_tokenizer", meta->tokenizer_hash) &&
           put_known(root, "init_from", meta->init_from) && put_ids(root, &meta->data_ids) &&
           put_columns(root, &meta->columns) &&
           attr_put_text(root, "config", meta->config ? meta->config : "") &&
           attr_put_text(root, "weft", meta->version ? meta->version : WEFT_VERSION);
}

/* Returns the text of an open attribute that holds one string, or NULL. Owner: the caller. */
static char *read_text(hid_t attr, hid_t type)
{
    char *text = NULL, *borrowed = NULL;
    if (H5Tis_variable_str(type) > 0) {
        hid_t memory = H5Tcopy(H5T_C_S1);
        H5Tset_size(memory, H5T_VARIABLE);
        H5Tset_cset(memory, H5Tget_cset(type));
        if (H5Aread(attr, memory, (void *)&borrowed) >= 0 && borrowed) text = mem_text(borrowed);
        H5free_memory(borrowed);
        H5Tclose(memory);
        return text;
    }
    size_t bytes = H5Tget_size(type);
    if (bytes == 0 || bytes > TEXT_BYTES_MAX) return NULL;
    text = mem_new(bytes + 1);
    if (H5Aread(attr, type, text) < 0) mem_free(&text);
    return text;
}

char *attr_text(hid_t object, const char *name)
{
    hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
    if (attr < 0) return NULL;
    hid_t type = H5Aget_type(attr), space = H5Aget_space(attr);
    char *text = NULL;
    if (type >= 0 && space >= 0 && H5Tget_class(type) == H5T_STRING &&
        H5Sget_simple_extent_npoints(space) == 1)
        text = read_text(attr, type);
    if (space >= 0) H5Sclose(space);
    if (type >= 0) H5Tclose(type);
    H5Aclose(attr);
    return text;
}

/* Reads `least` to `most` values. Returns their number, or -1 if there is no such attribute or it
 * has another number of values. */
static int read_values(hid_t object, const char *name, hid_t native, int least, int most,
                       void *value)
{
    if (H5Aexists(object, name) <= 0) return -1;
    hid_t attr = H5Aopen(object, name, H5P_DEFAULT);
    if (attr < 0) return -1;
    hid_t space = H5Aget_space(attr);
    hssize_t count = space >= 0 ? H5Sget_simple_extent_npoints(space) : -1;
    bool good = count >= least && count <= most && H5Aread(attr, native, value) >= 0;
    if (space >= 0) H5Sclose(space);
    H5Aclose(attr);
    return good ? (int)count : -1;
}

bool attr_floats(hid_t object, const char *name, float *value, int most, int *count)
{
    *count = 0;
    if (H5Aexists(object, name) <= 0) return true;
    int read = read_values(object, name, H5T_NATIVE_FLOAT, 0, most, value);
    if (read >= 0) *count = read;
    return read >= 0;
}

bool attr_array(hid_t object, const char *name, int most, int64_t **value, int *count)
{
    *value = NULL;
    *count = 0;
    if (H5Aexists(object, name) <= 0) return true;
    *value = mem_new((size_t)most * sizeof **value);
    int read = read_values(object, name, H5T_NATIVE_INT64, 0, most, *value);
    if (read > 0) *count = read;
    if (read <= 0) mem_free(value);
    return read > 0;
}

bool attr_real(hid_t object, const char *name, double *value)
{
    return read_values(object, name, H5T_NATIVE_DOUBLE, 1, 1, value) == 1;
}

bool attr_int(hid_t object, const char *name, int64_t *value)
{
    return read_values(object, name, H5T_NATIVE_INT64, 1, 1, value) == 1;
}

/* Reads a text, cut to `out_bytes` with its zero byte. Returns false if there is no such
 * attribute. */
static bool read_line(hid_t root, const char *name, char *out, size_t out_bytes)
{
    char *text = attr_text(root, name);
    bool found = text != NULL;
    if (found) snprintf(out, out_bytes, "%s", text);
    mem_free(&text);
    return found;
}

static void read_ids(hid_t root, DataIds *ids)
{
    int64_t value[3];
    if (read_values(root, "data_ids", H5T_NATIVE_INT64, 3, 3, value) != 3) return;
    *ids = (DataIds){(uint64_t)value[0], (uint64_t)value[1], (uint64_t)value[2]};
}

static void read_columns(hid_t root, DataColumns *columns)
{
    int64_t value[2];
    if (read_values(root, "data_columns", H5T_NATIVE_INT64, 2, 2, value) != 2) return;
    *columns = (DataColumns){.names = (uint64_t)value[0], .scaling = (uint64_t)value[1]};
    read_line(root, "data_column_names", columns->lines, sizeof columns->lines);
}

/* Reads the progress of the epoch, which files of earlier versions lack. Returns the name of an
 * attribute that is missing or invalid, or NULL. */
static const char *get_position(hid_t root, CheckpointMeta *meta)
{
    if (H5Aexists(root, "batch") <= 0) return NULL;
    const struct {
        const char *name;
        int64_t *value, least;
    } row[] = {{"batch", &meta->batch, 1},
               {"schedule_batch", &meta->schedule_batch, 1},
               {"samples", &meta->samples, 1},
               {"epoch_samples", &meta->epoch_samples, 0}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i)
        if (!attr_int(root, row[i].name, row[i].value) || *row[i].value < row[i].least)
            return row[i].name;
    if (meta->epoch_samples >= meta->samples) return "epoch_samples";
    if (meta->epoch < 0 || meta->epoch > meta->step) return "epoch";
    bool within = meta->data_step > 0 && meta->data_step <= meta->step;
    return within == (meta->epoch_samples > 0) && meta->data_step >= 0 ? NULL : "data_step";
}

Status meta_get(hid_t root, const char *path, CheckpointMeta *meta)
{
    *meta = (CheckpointMeta){.best_metric = NAN, .lr = lr_state_initial(), .stop_best = NAN};
    const struct {
        const char *name;
        int64_t *value;
    } whole[] = {{"step", &meta->step},
                 {"epoch", &meta->epoch},
                 {"data_step", &meta->data_step},
                 {"seed", &meta->seed}};
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof whole / sizeof *whole && !missing; ++i)
        if (!attr_int(root, whole[i].name, whole[i].value)) missing = whole[i].name;
    if (!missing && meta->step < 0) missing = "step";
    if (!missing) missing = get_position(root, meta);
    if (!missing && !attr_real(root, "best_metric", &meta->best_metric)) missing = "best_metric";
    const bool scaled = !missing && H5Aexists(root, "skipped") > 0;
    if (scaled && !attr_int(root, "skipped", &meta->skipped)) missing = "skipped";
    if (scaled && !attr_int(root, "loss_scale_good", &meta->loss_scale_good))
        missing = "loss_scale_good";
    if (scaled && !attr_real(root, "loss_scale", &meta->loss_scale)) missing = "loss_scale";
    if (!missing && !attr_floats(root, "losses", meta->loss, CHECKPOINT_LOSSES, &meta->loss_count))
        missing = "losses";
    if (!missing) missing = meta_get_state(root, meta);
    if (!missing) missing = meta_get_input(root, meta);
    if (!missing && !(meta->config = attr_text(root, "config"))) missing = "config";
    if (!missing && !(meta->version = attr_text(root, "weft"))) missing = "weft";
    if (!missing && !read_line(root, "grid", meta->grid, sizeof meta->grid)) missing = "grid";
    read_line(root, "best_metric_of", meta->best_of, sizeof meta->best_of);
    read_line(root, "data_train", meta->data_train, sizeof meta->data_train);
    read_line(root, "data_test", meta->data_test, sizeof meta->data_test);
    read_line(root, "data_tokenizer", meta->tokenizer_hash, sizeof meta->tokenizer_hash);
    read_line(root, "init_from", meta->init_from, sizeof meta->init_from);
    read_ids(root, &meta->data_ids);
    read_columns(root, &meta->columns);
    if (!missing) return OK;
    checkpoint_meta_fini(meta);
    return fail(ERR_DATA, "%s: attribute '%s' is missing or damaged; use another checkpoint", path,
                missing);
}
