/* Reads the metadata of a data set with HDF5: types, shapes, offsets and storage of its arrays, and
 * the root attributes. Runs in a separate process (base/isolated.h), because HDF5 trusts the file
 * that it parses; the process that asked for it (facts_answer.c) receives bytes without pointers
 * and checks them again. Refuses files that could not be read later (missing filters, data in other
 * files, arrays beyond the file's end), and files that would need memory out of proportion to their
 * size. */
#include "facts.h"
#include "../csv/csv.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <xxhash.h>

/* largest accepted number of unpacked bytes for each stored byte; deflate reaches at most 1032 */
enum { UNPACK_RATIO_MAX = 1100 };

typedef struct Reading {
    const FactsRequest *request;
    SetFacts *facts;
    FactsFile in;
} Reading;

/* Returns the type of a data set's elements. For an enumeration, such as the one that h5py stores
 * for bool, it is the type of the values. The caller closes the type. */
static hid_t type_of(hid_t dataset)
{
    hid_t type = H5Dget_type(dataset);
    if (type < 0 || H5Tget_class(type) != H5T_ENUM) return type;
    hid_t values = H5Tget_super(type);
    H5Tclose(type);
    return values;
}

static Status read_type(DataArray *a, const char *path, hid_t dataset)
{
    static const ElementType integer[2][4] = {{ELEM_U8, ELEM_U16, ELEM_U32, ELEM_U64},
                                              {ELEM_I8, ELEM_I16, ELEM_I32, ELEM_I64}};
    hid_t type = type_of(dataset);
    H5T_class_t kind = H5Tget_class(type);
    size_t bytes = H5Tget_size(type);
    int log2_bytes = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : -1;
    bool supported = false;
    if (kind == H5T_INTEGER && log2_bytes >= 0 && H5Tget_precision(type) == 8 * bytes) {
        a->type = integer[H5Tget_sign(type) == H5T_SGN_2][log2_bytes];
        supported = true;
    } else if (kind == H5T_FLOAT && (bytes == 4 || bytes == 8)) {
        a->type = bytes == 4 ? ELEM_F32 : ELEM_F64;
        supported = H5Tequal(type, bytes == 4 ? H5T_IEEE_F32LE : H5T_IEEE_F64LE) > 0 ||
                    H5Tequal(type, bytes == 4 ? H5T_IEEE_F32BE : H5T_IEEE_F64BE) > 0;
    }
    a->big_endian = bytes > 1 && H5Tget_order(type) == H5T_ORDER_BE;
    H5Tclose(type);
    if (supported) return OK;
    return fail(ERR_DATA,
                "%s: %s has a type that cannot be read; store it as (u)int8 to (u)int64, float32 "
                "or float64",
                path, a->name);
}

/* Reads the dimensions. sample_bytes must be the size of an element before the call; it is
 * multiplied by all dimensions except the first. */
static Status read_shape(DataArray *a, const char *path, hid_t dataset)
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
        if (a->dim[i] < 1 && strcmp(a->name, "/sparse") == 0)
            return fail(ERR_DATA,
                        "%s: /sparse holds no ids (dimension %d is 0), and a set with it needs at "
                        "least one; make it again without /sparse and /sparse_offset",
                        path, i);
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
    const char *plugins = getenv("HDF5_PLUGIN_PATH");
    char searched[300] = "";
    if (plugins && *plugins)
        snprintf(searched, sizeof searched,
                 ", nor is there a plugin for it in HDF5_PLUGIN_PATH (%s)", plugins);
    for (int i = 0; i < filters; ++i) {
        unsigned flags, config;
        size_t values = 0;
        char words[64] = "";
        H5Z_filter_t id = H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, sizeof words,
                                         words, &config);
        if (H5Zfilter_avail(id) > 0) continue;
        return fail(
            ERR_DATA,
            "%s: %s is stored with filter %d (%s), which this HDF5 does not have%s; write it "
            "without filters where the filter is installed, such as with the program that made it "
            "(h5repack -f NONE without this filter omits %s, and exits with 0), or set "
            "HDF5_PLUGIN_PATH to the folder of a plugin that you trust",
            path, name, (int)id, words[0] ? words : "no name", searched, name);
    }
    return OK;
}

/* Checks two sizes against the number of bytes that are stored: the size of a chunk, which HDF5
 * allocates completely, and the size of the array, in which HDF5 fills in chunks that are not
 * stored. ERR_DATA: one of them is too large for the bytes. stored: number of bytes that are
 * stored. */
static Status chunks_check(const FactsFile *in, const DataArray *a, hid_t create, double stored)
{
    hsize_t chunk[32];
    const char *path = in->path;
    int ndim = H5Pget_chunk(create, 32, chunk);
    double chunk_bytes = (double)element_bytes(a->type);
    double array_bytes = (double)a->dim[0] * (double)a->sample_bytes;
    char array_text[16], chunk_text[16], stored_text[16];
    for (int i = 0; i < ndim && i < 32; ++i) chunk_bytes *= (double)chunk[i];
    if (ndim != a->ndim || chunk_bytes > CHUNK_BYTES_MAX)
        return fail(ERR_DATA,
                    "%s: a chunk of %s takes %s; at most 1 GB can be used: rewrite it with "
                    "h5repack -l CONTI OLD NEW, if you trust it",
                    path, a->name, text_bytes(chunk_bytes, chunk_text));
    if (stored <= (double)in->bytes && chunk_bytes <= stored * UNPACK_RATIO_MAX &&
        array_bytes <= stored * UNPACK_RATIO_MAX)
        return OK;
    return fail(ERR_DATA,
                "%s: %s claims %s, in chunks of %s, but only %s are stored, which cannot unpack "
                "to so much: make it again",
                path, a->name, text_bytes(array_bytes, array_text),
                text_bytes(chunk_bytes, chunk_text), text_bytes(stored, stored_text));
}

/* Checks that the file is long enough for a contiguous array. Sets a->offset, unless the values
 * have the other byte order: such an array is read through HDF5. */
static Status read_offset(const FactsFile *in, DataArray *a, hid_t dataset)
{
    haddr_t offset = H5Dget_offset(dataset);
    int64_t bytes = a->dim[0] * a->sample_bytes;
    bool host_big = __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__;
    if (offset > INT64_MAX || (int64_t)offset > in->bytes - bytes)
        return fail(ERR_DATA,
                    "%s: is truncated: %s should end at byte %llu, the file has %lld; copy or make "
                    "it again",
                    in->path, a->name, (unsigned long long)offset + (unsigned long long)bytes,
                    (long long)in->bytes);
    if (element_bytes(a->type) == 1 || a->big_endian == host_big) a->offset = (int64_t)offset;
    return OK;
}

/* Reads the rows of a chunk and, if weft can unpack the chunks itself, the size and the number of
 * chunks. */
static void read_chunks(DataArray *a, hid_t dataset, hid_t create)
{
    hsize_t chunk[32] = {0};
    bool shuffle = false, deflate = false;
    const int ndim = H5Pget_chunk(create, 32, chunk);
    a->chunk_rows = ndim > 0 && chunk[0] <= INT32_MAX ? (int64_t)chunk[0] : 0;
    if (!h5_chunk_filters(dataset, create, &shuffle, &deflate)) return;
    a->chunk_bytes = (int64_t)element_bytes(a->type);
    a->chunks = 1;
    for (int i = 0; i < a->ndim; ++i) {
        a->chunk_bytes *= (int64_t)chunk[i];
        a->chunks *= (a->dim[i] + (int64_t)chunk[i] - 1) / (int64_t)chunk[i];
    }
}

/* Reads how the array is stored, and checks that readers can read it. */
static Status read_storage(const FactsFile *in, DataArray *a, hid_t dataset)
{
    hid_t create = H5Dget_create_plist(dataset);
    H5D_layout_t layout = H5Pget_layout(create);
    double stored = (double)H5Dget_storage_size(dataset);
    h5_storage_text(dataset, a->storage, sizeof a->storage);
    a->offset = -1;
    Status st = filters_check(in->path, a->name, create);
    if (st == OK && layout != H5D_COMPACT && stored == 0)
        st = fail(ERR_DATA, "%s: %s was created but never written; make it again", in->path,
                  a->name);
    /* HDF5 would copy as many bytes as the shape has, even if fewer are stored. */
    if (st == OK && layout == H5D_COMPACT && stored != (double)a->dim[0] * (double)a->sample_bytes)
        st =
            fail(ERR_DATA,
                 "%s: %s is damaged: its shape does not match the %.0f bytes that are stored; copy "
                 "or make it again",
                 in->path, a->name, stored);
    if (st == OK && layout == H5D_CHUNKED) st = chunks_check(in, a, create, stored);
    if (st == OK && layout == H5D_CHUNKED) read_chunks(a, dataset, create);
    H5Pclose(create);
    return st == OK && layout == H5D_CONTIGUOUS ? read_offset(in, a, dataset) : st;
}

Status facts_read_array(const FactsFile *in, DataArray *a, const char *name, const char *key)
{
    hid_t dataset;
    const char *path = in->path;
    snprintf(a->name, sizeof a->name, "%s", name);
    TRY(h5_dataset(&dataset, in->file, path, name, key));
    Status st = hdf5_check_in_one_file(in->file, dataset, path, name);
    if (st == OK) st = read_type(a, path, dataset);
    a->sample_bytes = st == OK ? (int64_t)element_bytes(a->type) : 0;
    if (st == OK) st = read_shape(a, path, dataset);
    if (st == OK) st = read_storage(in, a, dataset);
    H5Dclose(dataset);
    return st;
}

/* Reads the root attributes `format`, `version` and `kind` of a weft data set. */
static Status read_format(const Reading *r)
{
    char text[32];
    const char *path = r->request->path;
    SetFacts *facts = r->facts;
    int64_t version = 0;
    TRY(h5_attr_text(r->in.file, path, "format", text, sizeof text));
    facts->by_weft = strcmp(text, "weft-data") == 0;
    if (strcmp(text, "weft-checkpoint") == 0)
        return fail(ERR_DATA, "%s: is a checkpoint, not a data set; name a data set", path);
    if (!facts->by_weft) return OK;
    if (!h5_attr_integer(r->in.file, "version", &version) || version != 1)
        return fail(ERR_DATA, "%s: is a weft data set of version %lld; this weft reads version 1",
                    path, (long long)version);
    TRY(h5_attr_text(r->in.file, path, "kind", text, sizeof text));
    int kind = data_kind_find(text);
    if (kind < 0 || data_kind_info((DataKind)kind)->x == X_FIELDS)
        return fail(ERR_DATA, "%s: root attribute kind must be image, tokens, table or boxes",
                    path);
    facts->kind = (DataKind)kind;
    return OK;
}

/* Reads the metadata of one array of an encoded set. The array must be contiguous, because readers
 * read it by its offset. rows: required number of elements; 0: any. */
static Status read_encoded_array(const Reading *r, DataArray *a, const char *name, ElementType type,
                                 int64_t rows)
{
    TRY(facts_read_array(&r->in, a, name, NULL));
    if (a->ndim == 1 && a->type == type && a->offset >= 0 && (rows == 0 || a->dim[0] == rows))
        return OK;
    return fail(ERR_DATA,
                "%s: %s of a set of encoded images must be one contiguous row of %s%s; make it "
                "again with `weft data import folder`",
                r->request->path, name, element_name(type),
                rows ? ", one for each label (x_offset: one more)" : "");
}

/* Reads the metadata of the arrays of encoded pictures: /x_bytes, /x_offset and, if pictures are to
 * be rotated, /x_orient. */
static Status read_encoded(const Reading *r)
{
    SetFacts *facts = r->facts;
    facts->encoded = true;
    facts->rotates_on_read = facts->orient_requested;
    TRY(read_encoded_array(r, &facts->x, "/x_bytes", ELEM_U8, 0));
    TRY(read_encoded_array(r, &facts->index, "/x_offset", ELEM_U64, 0));
    if (facts->index.dim[0] < 2)
        return fail(ERR_DATA, "%s: /x_offset holds no samples; make it again", r->request->path);
    if (!facts->rotates_on_read) return OK;
    return read_encoded_array(r, &facts->orient, "/x_orient", ELEM_U8, facts->index.dim[0] - 1);
}

/* Reads path and identity of the tokenizer. */
static Status read_tokenizer(const Reading *r)
{
    SetFacts *facts = r->facts;
    TRY(h5_attr_text(r->in.file, r->request->path, "tokenizer", facts->tokenizer,
                     sizeof facts->tokenizer));
    return h5_attr_text(r->in.file, r->request->path, "tokenizer_hash", facts->tokenizer_hash,
                        sizeof facts->tokenizer_hash);
}

/* Reads how the import of weft's own set has rotated and resized the pictures. */
static Status read_treatment(const Reading *r)
{
    char filter[16];
    int64_t orient = 0;
    h5_attr_integer(r->in.file, "orient", &orient);
    r->facts->orient_requested = orient != 0;
    TRY(h5_attr_text(r->in.file, r->request->path, "filter", filter, sizeof filter));
    r->facts->bicubic = strcmp(filter, "bicubic") == 0;
    return OK;
}

/* Returns a hash of the values of a small array. Returns 0 if the array is missing, unreadable or
 * too large, or if its elements are not of the type class `class`. */
static uint64_t hash_small_array(const Reading *r, const char *name, H5T_class_t class)
{
    uint64_t hash = 0;
    hid_t dataset = -1;
    if (!h5_has(r->in.file, name) ||
        h5_dataset(&dataset, r->in.file, r->request->path, name, NULL) != OK)
        return 0;
    hid_t space = H5Dget_space(dataset), type = H5Dget_type(dataset);
    hid_t native = class == H5T_FLOAT ? H5T_NATIVE_DOUBLE : H5T_NATIVE_UINT64;
    hssize_t count = H5Sget_simple_extent_npoints(space);
    if (count > 0 && count <= DATA_SAMPLE_IDS_MAX + 1 && H5Tget_class(type) == class &&
        hdf5_check_in_one_file(r->in.file, dataset, r->request->path, name) == OK) {
        uint64_t *value = mem_new((size_t)count * sizeof *value);
        if (H5Dread(dataset, native, H5S_ALL, H5S_ALL, H5P_DEFAULT, value) >= 0)
            hash = XXH3_64bits(value, (size_t)count * sizeof *value);
        mem_free(&value);
    }
    H5Tclose(type);
    H5Sclose(space);
    H5Dclose(dataset);
    return hash;
}

/* Hashes the names of columns and fields, and how weft's import has scaled columns. */
static void read_columns(const Reading *r)
{
    DataColumns *columns = &r->facts->columns;
    HashPieces *pieces = hash_begin();
    bool columns_named = h5_names_hash(r->in.file, "columns", pieces, columns->lines);
    bool fields_named = h5_names_hash(r->in.file, "fields", pieces, columns->lines);
    uint64_t names = hash_end(&pieces), scaling[2];
    if (columns_named || fields_named) columns->names = names;
    if (!r->facts->by_weft) return;
    columns->scaling = csv_stored_scaling(r->in.file, r->request->path);
    if (columns->scaling) return;
    scaling[0] = hash_small_array(r, "/dense_mean", H5T_FLOAT);
    scaling[1] = hash_small_array(r, "/dense_deviation", H5T_FLOAT);
    if (scaling[0] && scaling[1]) columns->scaling = hash_bytes(scaling, sizeof scaling);
}

/* Reads the metadata of the ids of weft's own tables: /sparse and, if that is flat,
 * /sparse_offset. */
static Status read_ids(const Reading *r)
{
    SetFacts *facts = r->facts;
    char hash[32];
    if (facts->kind != DATA_TABLE || !h5_has(r->in.file, "/sparse")) return OK;
    h5_attr_integer(r->in.file, "id_most", &facts->ids_per_sample_max);
    h5_attr_integer(r->in.file, "id_rows", &facts->id_limit);
    TRY(h5_attr_text(r->in.file, r->request->path, "vocabulary_hash", hash, sizeof hash));
    facts->vocabulary_hash = strtoull(hash, NULL, 16);
    facts->field_first_hash = hash_small_array(r, "/field_first", H5T_INTEGER);
    TRY(facts_read_array(&r->in, &facts->ids, "/sparse", NULL));
    return facts->ids.ndim == 1 ? facts_read_array(&r->in, &facts->id_first, "/sparse_offset", NULL)
                                : OK;
}

static Status read_x(const Reading *r)
{
    const DataKindInfo *kind = data_kind_info(r->facts->kind);
    bool is_default_x = r->facts->by_weft && strcmp(r->request->x, "/x") == 0;
    char store[16] = "";
    if (r->facts->by_weft) TRY(read_tokenizer(r));
    h5_attr_integer(r->in.file, "vocab", &r->facts->vocab);
    if (is_default_x && kind->x == X_IMAGES) {
        TRY(read_treatment(r));
        TRY(h5_attr_text(r->in.file, r->request->path, "store", store, sizeof store));
    }
    if (strcmp(store, "encoded") == 0) return read_encoded(r);
    if (r->facts->by_weft) TRY(read_ids(r));
    read_columns(r);
    return is_default_x ? facts_read_array(&r->in, &r->facts->x, kind->array, NULL)
                        : facts_read_array(&r->in, &r->facts->x, r->request->x, "data.x");
}

/* Reads the metadata of all arrays that hold the labels of boxes. */
static Status read_boxes(const Reading *r)
{
    SetFacts *facts = r->facts;
    int64_t samples = facts->encoded ? facts->index.dim[0] - 1 : facts->x.dim[0];
    for (int i = 0; i < BOX_ARRAYS; ++i) {
        if (box_array_info[i].decoded_only && facts->encoded) continue;
        TRY(facts_read_array(&r->in, &facts->box[i], box_array_info[i].name, NULL));
    }
    const char *bad = box_arrays_find_bad(facts->box, samples, facts->encoded);
    if (!bad) return OK;
    return fail(ERR_DATA,
                "%s: %s has another shape or type than a set of boxes with %lld pictures has, or "
                "is not contiguous; import it again",
                r->request->path, bad, (long long)samples);
}

static Status read_y(const Reading *r)
{
    const DataArray *x = &r->facts->x;
    if (data_kind_info(r->facts->kind)->labels == LABELS_BOXES) return read_boxes(r);
    /* A vector of integers holds tokens, which have no y. */
    if (x->ndim == 1 && !element_is_float(x->type) && !r->facts->encoded) return OK;
    if (x->ndim == 2 && !element_is_float(x->type) && !r->facts->by_weft &&
        !h5_has(r->in.file, r->request->y))
        return fail(ERR_DATA,
                    "%s: %s has rows of integers, and there are no labels %s for them: name the "
                    "labels with data.y; if the integers are tokens, store all rows as one (N)",
                    r->request->path, x->name, r->request->y);
    return facts_read_array(&r->in, &r->facts->y, r->request->y, "data.y");
}

static Status read_classes(const Reading *r)
{
    SetFacts *facts = r->facts;
    facts->classes = facts->names = h5_class_count(r->in.file);
    if (facts->names == 0) h5_attr_integer(r->in.file, "classes", &facts->classes);
    return OK;
}

static Status read_mean_and_std(const Reading *r)
{
    const char *path = r->request->path;
    SetFacts *facts = r->facts;
    TRY(h5_attr_floats(r->in.file, path, "mean", facts->mean, DATA_CHANNELS, &facts->means));
    return h5_attr_floats(r->in.file, path, "std", facts->std, DATA_CHANNELS, &facts->stds);
}

Status facts_file_open(FactsFile *in, const char *path)
{
    *in = (FactsFile){.path = path, .file = -1};
    TRY(h5_open(&in->file, path));
    if (stat(path, &in->stat) == 0) in->bytes = (int64_t)in->stat.st_size;
    return OK;
}

void facts_read(const FactsRequest *request, SetFacts *facts)
{
    static Status (*const read_part[FACTS_PARTS])(const Reading *) = {
        [FACTS_FORMAT] = read_format,
        [FACTS_X] = read_x,
        [FACTS_Y] = read_y,
        [FACTS_CLASSES] = read_classes,
        [FACTS_STATS] = read_mean_and_std,
    };
    Reading r = {.request = request, .facts = facts};
    *facts = (SetFacts){0};
    hdf5_lock();
    facts->status = facts_file_open(&r.in, request->path);
    while (facts->status == OK && facts->parts < FACTS_PARTS) {
        facts->status = read_part[facts->parts](&r);
        facts->parts += facts->status == OK;
    }
    if (facts->status != OK) snprintf(facts->why, sizeof facts->why, "%s", fail_message());
    if (r.in.file >= 0) H5Fclose(r.in.file);
    hdf5_unlock();
}
