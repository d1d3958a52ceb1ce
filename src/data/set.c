/* Opens a data set: finds x and y, checks type, shape, storage and extent, and gathers what
 * training must know (classes, mean, deviation, scale). Takes weft data sets by their root
 * attributes and anybody's files by the config's data.x, data.y and data.layout; there one row of
 * integers is tokens. Refuses what could not be read later: missing filters, data in other files,
 * extents beyond the file's end. Only metadata is read; but where nothing says how many classes or
 * tokens there are, they are scanned. */
#include "data_private.h"
#include "layers.h"

#include <math.h>
#include <string.h>
#include <sys/stat.h>

/* what is at hand while a set is opened */
typedef struct Opening {
    DataSet *set;
    /* may be NULL: defaults */
    const Config *config;
    hid_t file;
    int64_t file_bytes;
    bool weft;
} Opening;

Shape data_set_shape(const DataSet *set, int64_t micro_batch)
{
    return data_kind(set)->shape(set, micro_batch);
}

int64_t data_steps_per_epoch(int64_t samples, int64_t batch)
{
    return (samples + batch - 1) / batch;
}

const char *dims_text(const DataArray *a, char *out)
{
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < a->ndim; ++i)
        used += (size_t)snprintf(out + used, DIMS_TEXT - used, "%s%lld", i ? "x" : "",
                                 (long long)a->dim[i]);
    return out;
}

static Status array_type(DataArray *a, const char *path, hid_t dataset)
{
    static const ElementType integer[2][4] = {{ELEM_U8, ELEM_U16, ELEM_U32, ELEM_U64},
                                              {ELEM_I8, ELEM_I16, ELEM_I32, ELEM_I64}};
    hid_t type = H5Dget_type(dataset);
    H5T_class_t kind = H5Tget_class(type);
    size_t bytes = H5Tget_size(type);
    int log2_bytes = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
    bool good = false;
    if (kind == H5T_INTEGER && log2_bytes >= 0 && H5Tget_precision(type) == 8 * bytes) {
        a->type = integer[H5Tget_sign(type) == H5T_SGN_2][log2_bytes];
        good = true;
    } else if (kind == H5T_FLOAT && (bytes == 4 || bytes == 8)) {
        a->type = bytes == 4 ? ELEM_F32 : ELEM_F64;
        good = H5Tequal(type, bytes == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) > 0 ||
               H5Tequal(type, bytes == 4 ? H5T_IEEE_F32BE : H5T_IEEE_F64BE) > 0;
    }
    a->big_endian = bytes > 1 && H5Tget_order(type) == H5T_ORDER_BE;
    H5Tclose(type);
    if (good) return OK;
    return fail(ERR_DATA,
                "%s: %s has a type that cannot be read; store it as (u)int8 to (u)int64, float32 "
                "or float64",
                path, a->name);
}

static Status array_shape(DataArray *a, const char *path, hid_t dataset)
{
    hid_t space = H5Dget_space(dataset);
    hsize_t dim[32];
    int ndim = H5Sget_simple_extent_ndims(space);
    if (ndim > 0) H5Sget_simple_extent_dims(space, dim, NULL);
    H5Sclose(space);
    if (ndim < 1 || ndim > SHAPE_DIMS)
        return fail(ERR_DATA, "%s: %s has %d dimensions; 1 to %d can be used", path, a->name,
                    ndim < 0 ? 0 : ndim, SHAPE_DIMS);
    double bytes = (double)element_bytes(a->type);
    a->ndim = ndim;
    for (int i = 0; i < SHAPE_DIMS; ++i) {
        a->dim[i] = i < ndim ? (int64_t)dim[i] : 1;
        bytes *= (double)a->dim[i];
        if (i > 0 && i < ndim) a->sample_bytes *= a->dim[i];
        if (a->dim[i] < 1)
            return fail(ERR_DATA, "%s: %s holds no samples (dimension %d is 0); make it again",
                        path, a->name, i);
    }
    if (bytes > 9e18) return fail(ERR_DATA, "%s: %s claims an impossible size", path, a->name);
    return OK;
}

static Status filters_check(const char *path, const char *name, hid_t create)
{
    int filters = H5Pget_nfilters(create);
    for (int i = 0; i < filters; ++i) {
        unsigned flags, config;
        size_t values = 0;
        char words[64] = "";
        H5Z_filter_t id = H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, sizeof words,
                                         words, &config);
        if (H5Zfilter_avail(id) > 0) continue;
        return fail(ERR_DATA,
                    "%s: %s is stored with filter %d (%s), which this HDF5 does not have; rewrite "
                    "it: h5repack -f NONE OLD NEW, or set HDF5_PLUGIN_PATH",
                    path, name, (int)id, words[0] ? words : "no name");
    }
    return OK;
}

/* Where the bytes lie: offset, or -1 for "ask HDF5"; and that the file is long enough. */
static Status array_storage(const Opening *o, DataArray *a, hid_t dataset)
{
    const char *path = o->set->path;
    hid_t create = H5Dget_create_plist(dataset);
    H5D_layout_t layout = H5Pget_layout(create);
    Status st = filters_check(path, a->name, create);
    H5Pclose(create);
    TRY(st);
    a->offset = -1;
    if (layout == H5D_COMPACT) return OK;
    if (H5Dget_storage_size(dataset) == 0)
        return fail(ERR_DATA, "%s: %s was created but never written; make it again", path, a->name);
    if (layout != H5D_CONTIGUOUS) return OK;
    haddr_t offset = H5Dget_offset(dataset);
    int64_t bytes = a->dim[0] * a->sample_bytes;
    if (offset == HADDR_UNDEF || (int64_t)offset > o->file_bytes - bytes)
        return fail(ERR_DATA,
                    "%s: is truncated: %s should end at byte %lld, the file has %lld; copy or make "
                    "it again",
                    path, a->name, (long long)((int64_t)offset + bytes), (long long)o->file_bytes);
    bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (element_bytes(a->type) == 1 || a->big_endian == host_big) a->offset = (int64_t)offset;
    return OK;
}

static Status array_open(const Opening *o, DataArray *a, const char *name, const char *key)
{
    hid_t dataset;
    if (strlen(name) >= sizeof a->name)
        return fail(ERR_CONFIG, "%s is longer than %zu characters", key, sizeof a->name - 1);
    snprintf(a->name, sizeof a->name, "%s", name);
    TRY(h5_dataset(&dataset, o->file, o->set->path, name, key));
    Status st = hdf5_in_one_file(o->file, dataset, o->set->path, name);
    if (st == OK) st = array_type(a, o->set->path, dataset);
    a->sample_bytes = st == OK ? (int64_t)element_bytes(a->type) : 0;
    if (st == OK) st = array_shape(a, o->set->path, dataset);
    if (st == OK) st = array_storage(o, a, dataset);
    H5Dclose(dataset);
    return st;
}

/* Root attributes format, version, kind of a weft data set. */
static Status format_read(Opening *o)
{
    char text[32];
    const char *path = o->set->path;
    int count;
    int64_t total, version = 0;
    TRY(h5_attr_strings(o->file, path, "format", text, sizeof text, 1, &count, &total));
    o->weft = count == 1 && strcmp(text, "weft-data") == 0;
    if (count == 1 && strcmp(text, "weft-checkpoint") == 0)
        return fail(ERR_DATA, "%s: is a checkpoint, not a data set; name a data set", path);
    if (!o->weft) return OK;
    if (!h5_attr_integer(o->file, "version", &version) || version != 1)
        return fail(ERR_DATA, "%s: is a weft data set of version %lld; this weft reads version 1",
                    path, (long long)version);
    TRY(h5_attr_strings(o->file, path, "kind", text, sizeof text, 1, &count, &total));
    int kind = count == 1 ? data_kind_find(text) : -1;
    if (kind < 0)
        return fail(ERR_DATA, "%s: root attribute kind must be image, tokens or table", path);
    o->set->kind = (DataKind)kind;
    if (o->set->kind == DATA_TABLE && h5_has(o->file, "/sparse"))
        return fail(ERR_DATA,
                    "%s: has sparse columns (/sparse), which this version cannot train on; make a "
                    "file of the dense columns alone",
                    path);
    return OK;
}

static const char *x_name(const Opening *o)
{
    const char *name = o->config && o->config->data.x ? o->config->data.x : "/x";
    if (!o->weft || strcmp(name, "/x") != 0) return name;
    return data_kind(o->set)->array;
}

/* x's dimensions -> channels, height, width. */
static Status x_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *x = &set->x;
    char dims[DIMS_TEXT];
    bool last = o->config && o->config->data.layout == LAYOUT_NHWC;
    set->channels = set->height = set->width = 1;
    bool row = x->ndim == 1 && !element_is_float(x->type);
    if (data_kind(set)->next_token && !row)
        return fail(ERR_DATA, "%s: %s must be one row of integers, it is %s of %s", set->path,
                    x->name, dims_text(x, dims), element_name(x->type));
    if (row && !o->weft) set->kind = DATA_TOKENS;
    if (data_kind(set)->next_token) return OK;
    if (x->ndim < 2 || (o->weft && set->kind != (x->ndim == 2 ? DATA_TABLE : DATA_IMAGE)))
        return fail(ERR_DATA,
                    "%s: %s has the shape %s; images are (N,C,H,W), (N,H,W,C) or (N,H,W), vectors "
                    "(N,D), tokens integers (N); name another with data.x",
                    set->path, x->name, dims_text(x, dims));
    set->kind = x->ndim == 2 ? DATA_TABLE : DATA_IMAGE;
    if (last && o->weft && x->ndim == 4)
        return config_fail_key(o->config, "data.layout",
                               "%s is a weft data set, which is always nchw; remove data.layout",
                               set->path);
    set->channels_last = last && x->ndim == 4;
    if (x->ndim != 3) set->channels = x->dim[set->channels_last ? 3 : 1];
    if (x->ndim == 2) return OK;
    set->height = x->dim[x->ndim == 3 || set->channels_last ? 1 : 2];
    set->width = x->dim[x->ndim == 3 || set->channels_last ? 2 : 3];
    return OK;
}

/* y's dimensions and type -> labels or targets. */
static Status y_shape(Opening *o)
{
    DataSet *set = o->set;
    const DataArray *y = &set->y;
    char dims[DIMS_TEXT];
    bool mse = o->config && o->config->train.loss == LOSS_MSE;
    if (y->dim[0] != set->samples)
        return fail(ERR_DATA,
                    "%s: %s has %lld samples, %s has %lld; both must have as many; make it again, "
                    "or name others with data.x and data.y",
                    set->path, set->x.name, (long long)set->samples, y->name, (long long)y->dim[0]);
    bool targets = mse || element_is_float(y->type);
    if (y->ndim > 2 || (!targets && y->ndim == 2 && y->dim[1] != 1))
        return fail(ERR_DATA,
                    "%s: %s has the shape %s; labels are integers (N), targets (N) or (N,K); name "
                    "another with data.y",
                    set->path, y->name, dims_text(y, dims));
    set->target_width = targets ? y->dim[1] : 0;
    return OK;
}

/* Reads all labels, or tokens, in pieces: each must lie in 0..classes-1 (vocab-1). *largest may be
 * NULL. */
static Status integers_scan(const DataSet *set, int64_t *largest)
{
    enum { PIECE = 1 << 16 };
    Reader *reader;
    bool tokens = data_kind(set)->next_token;
    const DataArray *array = tokens ? &set->x : &set->y;
    int64_t most = 0, below = tokens ? set->vocab : set->classes, total = array->dim[0];
    size_t bytes = element_bytes(array->type);
    /* as x, which is read in runs */
    DataSet alone = *set;
    alone.x = *array;
    TRY(reader_new_part(&reader, &alone, true, false));
    uint8_t *piece = mem_new(PIECE * bytes);
    Status st = OK;
    for (int64_t at = 0; st == OK && at < total; at += PIECE) {
        int64_t n = total - at < PIECE ? total - at : PIECE;
        st = reader_get_run(reader, at, n, piece);
        for (int64_t i = 0; st == OK && i < n; ++i) {
            int64_t v = element_integer(array->type, piece + (size_t)i * bytes);
            if (v < 0 || v >= below)
                st = tokens ? token_fail(set, at + i, v) : label_fail(set, at + i, v);
            if (v > most) most = v;
        }
    }
    mem_free(&piece);
    reader_free(&reader);
    if (largest) *largest = most;
    return st;
}

static Status classes_find(Opening *o)
{
    DataSet *set = o->set;
    int64_t named = 0, asked = o->config ? o->config->model.classes : 0;
    TRY(h5_attr_strings(o->file, set->path, "classes", set->class_name[0],
                        sizeof set->class_name[0], 128, &set->class_names, &named));
    if (set->target_width > 0) {
        set->class_names = 0;
        return OK;
    }
    if (named == 0) h5_attr_integer(o->file, "classes", &named);
    if (named < 0 || named >= INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute classes is %lld", set->path, (long long)named);
    if (asked > 0 && named > asked)
        return config_fail_key(o->config, "model.classes",
                               "%s has %lld classes, model.classes is %lld; remove it, or make it "
                               "%lld",
                               set->path, (long long)named, (long long)asked, (long long)named);
    set->classes = asked > 0 ? asked : named;
    if (set->classes > 0) return OK;
    int64_t largest = 0;
    set->classes = INT32_MAX;
    TRY(integers_scan(set, &largest));
    set->classes = largest + 1;
    return OK;
}

/* How many tokens there are: as the file or the config says; bytes have 256; else 1 + the
 * largest. */
static Status vocab_find(Opening *o)
{
    DataSet *set = o->set;
    int64_t named = 0, asked = o->config ? o->config->model.vocab : 0, largest = 0;
    h5_attr_integer(o->file, "vocab", &named);
    if (named < 0 || named > INT32_MAX)
        return fail(ERR_DATA, "%s: root attribute vocab is %lld", set->path, (long long)named);
    if (asked > 0 && named > asked)
        return config_fail_key(o->config, "model.vocab",
                               "%s has %lld tokens, model.vocab is %lld; remove it, or make it at "
                               "least %lld",
                               set->path, (long long)named, (long long)asked, (long long)named);
    set->vocab = asked > 0 ? asked : named > 0 ? named : set->x.type == ELEM_U8 ? 256 : INT32_MAX;
    if (set->vocab < INT32_MAX) return OK;
    TRY(integers_scan(set, &largest));
    set->vocab = largest + 1;
    return OK;
}

int64_t data_context(const Config *config)
{
    enum { CONTEXT = 256, GPT2_CONTEXT = 1024 };
    if (config && config->model.context > 0) return config->model.context;
    return config && config->model.size != GPT_OWN ? GPT2_CONTEXT : CONTEXT;
}

/* A sample is T tokens and the one after them. */
static Status tokens_shape(Opening *o)
{
    DataSet *set = o->set;
    int64_t total = set->x.dim[0];
    set->context = data_context(o->config);
    set->samples = (total - 1) / set->context;
    if (set->samples < 1)
        return fail(ERR_DATA,
                    "%s: holds %lld token%s, a sample is model.context (%lld) and the one after; "
                    "set a smaller model.context, or make a longer file",
                    set->path, (long long)total, total == 1 ? "" : "s", (long long)set->context);
    TRY(vocab_find(o));
    set->classes = set->vocab;
    return OK;
}

/* Mean and deviation from the config's lists or the file's attributes. */
static Status stats_find(Opening *o)
{
    DataSet *set = o->set;
    const Config *c = o->config;
    int means = 0, stds = 0;
    if (c && !c->data.normalize) return OK;
    bool own = c && (c->data.mean.count > 0 || c->data.std.count > 0);
    if (own) {
        means = c->data.mean.count, stds = c->data.std.count;
        for (int i = 0; i < means && i < DATA_CHANNELS; ++i)
            set->mean[i] = (float)c->data.mean.value[i];
        for (int i = 0; i < stds && i < DATA_CHANNELS; ++i)
            set->std[i] = (float)c->data.std.value[i];
    } else {
        TRY(h5_attr_floats(o->file, set->path, "mean", set->mean, DATA_CHANNELS, &means));
        TRY(h5_attr_floats(o->file, set->path, "std", set->std, DATA_CHANNELS, &stds));
    }
    if (means == 0 && stds == 0) return OK;
    bool good = means == stds && means <= DATA_CHANNELS && (means == 1 || means == set->channels);
    for (int i = 0; good && i < means; ++i)
        good = isfinite(set->mean[i]) && isfinite(set->std[i]) && set->std[i] > 0;
    if (!good && own)
        return config_fail_key(c, c->data.mean.count ? "data.mean" : "data.std",
                               "data.mean and data.std need one value each, or one for each of the "
                               "%lld channels of %s (at most %d), deviations above 0",
                               (long long)set->channels, set->path, DATA_CHANNELS);
    if (!good)
        return fail(ERR_DATA,
                    "%s: root attributes mean (%d values) and std (%d) do not fit its %lld "
                    "channels, or a deviation is not above 0; give data.mean and data.std",
                    set->path, means, stds, (long long)set->channels);
    set->has_stats = true;
    set->stats_count = means;
    return OK;
}

static Status contents_read(Opening *o)
{
    DataSet *set = o->set;
    TRY(format_read(o));
    TRY(array_open(o, &set->x, x_name(o), "data.x"));
    TRY(x_shape(o));
    if (data_kind(set)->next_token) return tokens_shape(o);
    set->samples = set->x.dim[0];
    double scale = o->config ? o->config->data.scale : 0.0;
    set->scale = (float)(scale != 0.0 ? scale : set->x.type == ELEM_U8 ? 1.0 / 255.0 : 1.0);
    const char *y = o->config && o->config->data.y ? o->config->data.y : "/y";
    TRY(array_open(o, &set->y, y, "data.y"));
    TRY(y_shape(o));
    TRY(classes_find(o));
    return stats_find(o);
}

Status data_set_open(DataSet *set, const Config *config, const char *path)
{
    struct stat st;
    memset(set, 0, sizeof *set);
    if (!path || !path[0])
        return fail(ERR_CONFIG, "no data set is named; set data.train (and data.test)");
    if (strlen(path) >= DATA_PATH)
        return fail(ERR_NOINPUT, "the path %.60s... is longer than %d characters", path,
                    DATA_PATH - 1);
    snprintf(set->path, sizeof set->path, "%s", path);
    Opening o = {.set = set, .config = config};
    hdf5_lock();
    Status status = h5_open(&o.file, path);
    if (status == OK) {
        o.file_bytes = stat(path, &st) == 0 ? (int64_t)st.st_size : 0;
        status = contents_read(&o);
        H5Fclose(o.file);
    }
    hdf5_unlock();
    return status;
}

Status data_set_check_labels(const DataSet *set)
{
    if (data_kind(set)->next_token || set->target_width > 0) return OK;
    return integers_scan(set, NULL);
}

Status tokens_check(const DataSet *set)
{
    return integers_scan(set, NULL);
}
