/* Reads a checkpoint's tensor table and attributes through HDF5, and writes them as bytes for
 * stored.c. This code runs in a separate process (base/isolated.h), because HDF5 trusts what it
 * parses; only a file that this process has just written is read in the process itself. Only
 * /params, /optim, /buffers, /tables and /ema are read; anything else that another program put into
 * the file is ignored. Tensors are refused if they are neither floats nor contiguous 64-bit ids in
 * one dimension, do not have 1 to 4 dimensions, are in another file, are larger than this file can
 * hold, or have damaged checksums or huge chunks. */
#include "tensor_table.h"

#include "foreign/foreign_set.h"
#include "meta.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    /* levels of groups, including /params */
    GROUP_DEPTH = 4,
    TENSORS_MAX = 1 << 20,
    PATH_MAX_BYTES = 1024,
    CHUNK_BYTES = 1 << 30,
    BLOCKS_MAX = 1 << 16
};

/* Returns `status`, but ERR_IO if status is ERR_DATA and the file system has returned an error
 * (callers set errno to 0 before). HDF5 reports failure without a reason, and after an error of the
 * file system the file may be undamaged. */
static Status hdf5_status(const StoredFile *file, Status status)
{
    static const int file_system_errors[] = {EIO,    ESTALE, ETIMEDOUT, EACCES,
                                             EMFILE, ENFILE, ENOMEM};
    int error = errno;
    for (size_t i = 0; i < sizeof file_system_errors / sizeof *file_system_errors; ++i)
        if (status == ERR_DATA && error == file_system_errors[i])
            return fail(ERR_IO, "%s: reading failed: %s", file->path, strerror(error));
    return status;
}

static Status open_hdf5(StoredFile *file)
{
    if (H5Fis_hdf5(file->path) <= 0)
        return fail(ERR_DATA, "%s: not an HDF5 file, so not a checkpoint (%s)", file->path,
                    foreign_begins(file->path)
                        ? "it holds another program's tensors; convert it with `weft ckpt import`"
                        : "or its beginning is damaged");
    hid_t access = hdf5_file_access();
    file->id = H5Fopen(file->path, H5F_ACC_RDONLY, access);
    H5Pclose(access);
    if (file->id < 0)
        return fail(ERR_DATA,
                    "%s: HDF5 cannot open it: truncated or damaged; use an older checkpoint",
                    file->path);
    return OK;
}

static Status check_format(const StoredFile *file)
{
    int64_t version = 0;
    char *format = attr_text(file->id, "format");
    bool ours = format && strcmp(format, CHECKPOINT_FORMAT_NAME) == 0;
    mem_free(&format);
    if (!ours || !attr_int(file->id, "version", &version))
        return fail(ERR_DATA, "%s: an HDF5 file, but not a checkpoint (format is not \"%s\")",
                    file->path, CHECKPOINT_FORMAT_NAME);
    if (version != CHECKPOINT_FORMAT)
        return fail(ERR_DATA,
                    "%s: checkpoint format %lld, but this version of weft reads format %d only; "
                    "use the version that wrote it",
                    file->path, (long long)version, CHECKPOINT_FORMAT);
    return OK;
}

typedef struct Walk {
    StoredFile *file;
    /* path of the group whose members are visited: "/optim/momentum" */
    const char *prefix;
    /* level of that group; 1: "/optim" */
    int depth;
    Status status;
} Walk;

static Status fail_tensor(const Walk *walk, const char *path, const char *what)
{
    return fail(ERR_DATA, "%s: tensor %s %s; use another checkpoint", walk->file->path, path, what);
}

/* Reads the shape of a data set; sets unused dimensions to 1, which tensor_is_possible (stored.c)
 * checks. Support for more than SHAPE_DIMS dimensions needs changes in this function, its message,
 * and shape_made (foreign/import.c). */
static Status read_shape(const Walk *walk, const char *path, hid_t set, Shape *shape)
{
    hsize_t dim[H5S_MAX_RANK] = {0};
    hid_t space = H5Dget_space(set);
    int ndim = space < 0 ? -1 : H5Sget_simple_extent_dims(space, dim, NULL);
    if (space >= 0) H5Sclose(space);
    if (ndim < 1 || ndim > SHAPE_DIMS)
        return fail_tensor(walk, path, "is damaged or has other than 1 to 4 dimensions");
    int64_t d[SHAPE_DIMS] = {1, 1, 1, 1}, bytes = sizeof(float);
    for (int i = 0; i < ndim; ++i)
        if (dim[i] > INT64_MAX || __builtin_mul_overflow(bytes, (int64_t)dim[i], &bytes))
            return fail_tensor(walk, path, "has an impossible size");
        else
            d[i] = (int64_t)dim[i];
    *shape = shape_of(ndim, d[0], d[1], d[2], d[3]);
    return OK;
}

/* Returns the file offset of the values if they are contiguous and of type `wanted`, or -1 if only
 * HDF5 can read them. */
static int64_t contiguous_offset(hid_t set, hid_t type, hid_t wanted, Shape shape)
{
    hid_t create = H5Dget_create_plist(set);
    bool contiguous =
        create >= 0 && H5Pget_layout(create) == H5D_CONTIGUOUS && H5Tequal(type, wanted) > 0;
    if (create >= 0) H5Pclose(create);
    if (!contiguous) return -1;
    if (shape_count(shape) == 0) return 0;
    haddr_t at = H5Dget_offset(set);
    return at == HADDR_UNDEF || at > INT64_MAX ? -1 : (int64_t)at;
}

static Status check_size(const Walk *walk, const StoredTensor *t)
{
    int64_t bytes = shape_count(t->shape) * (int64_t)sizeof(float);
    bool fits = t->offset >= 0 ? t->offset <= walk->file->bytes - bytes
                               : bytes / INFLATE_RATIO_MAX <= walk->file->bytes;
    return fits ? OK : fail_tensor(walk, t->path, "is larger than the file: truncated or damaged");
}

/* Limits a chunk's size, because HDF5 allocates memory for a whole chunk. */
static Status check_chunk(const Walk *walk, hid_t set, const char *path)
{
    hsize_t chunk[H5S_MAX_RANK] = {0};
    hid_t create = H5Dget_create_plist(set);
    bool chunked = create >= 0 && H5Pget_layout(create) == H5D_CHUNKED;
    int ndim = chunked ? H5Pget_chunk(create, H5S_MAX_RANK, chunk) : 0;
    if (create >= 0) H5Pclose(create);
    double bytes = sizeof(double);
    for (int i = 0; i < ndim; ++i) bytes *= (double)chunk[i];
    if (!chunked ||
        (bytes <= CHUNK_BYTES && bytes / INFLATE_RATIO_MAX <= (double)walk->file->bytes))
        return OK;
    return fail_tensor(walk, path,
                       "has chunks that are too large for the file's size, or above 1 GB");
}

/* Checks bound_xxh64, which binds the checksums to the tensor's name, shape and type. Files of
 * earlier versions and of other programs lack it, and pass. */
static Status check_binding(const Walk *walk, hid_t set, const StoredTensor *t,
                            const uint64_t *hash, int hashes)
{
    uint64_t bound = 0;
    bool found, good = attr_hash(set, "bound_xxh64", &bound, &found);
    if (good && !found) return OK;
    uint64_t computed =
        checksum_bind(t->path, t->ids, t->ids ? 1 : t->shape.ndim, t->shape.dim, hash, hashes);
    if (good && bound == computed) return OK;
    return fail_tensor(walk, t->path,
                       "has the checksum of another name, shape or type: tensors were exchanged, "
                       "renamed or damaged");
}

/* Checks that the checksums of the table's last entry are bound to its tensor (check_binding). If
 * the tensor was written in blocks of rows, each with its own checksum, replaces that entry by one
 * entry for each block. The blocks must cover all rows. */
static Status add_blocks(const Walk *walk, hid_t set)
{
    StoredFile *file = walk->file;
    StoredTensor whole = file->tensor[file->count - 1];
    int64_t *rows = NULL, *hash = NULL, rows_left = whole.shape.dim[0];
    int count = 0, hashes = 0;
    bool good = attr_array(set, "block_rows", BLOCKS_MAX, &rows, &count) &&
                attr_array(set, "block_xxh64", BLOCKS_MAX, &hash, &hashes);
    if (good && count == 0 && hashes == 0)
        return whole.has_hash ? check_binding(walk, set, &whole, &whole.hash, 1) : OK;
    if (good && hashes > 0) {
        Status status = check_binding(walk, set, &whole, (const uint64_t *)hash, hashes);
        if (status != OK) {
            mem_free(&rows);
            mem_free(&hash);
            return status;
        }
    }
    good = good && count == hashes && whole.offset >= 0 && file->count + count < TENSORS_MAX;
    for (int i = 0; i < count && good; ++i) {
        good = rows[i] >= 0 && rows[i] <= rows_left;
        rows_left -= good ? rows[i] : 0;
    }
    good = good && rows_left == 0;
    if (good) {
        --file->count;
        const size_t new_count = (size_t)(file->count + count);
        file->tensor = mem_resize(file->tensor, new_count * sizeof *file->tensor);
        for (int i = 0; i < count; ++i) {
            StoredTensor *t = &file->tensor[file->count++];
            *t = whole;
            t->path = mem_format("%s%c%04d", whole.path, CHECKPOINT_BLOCK, i);
            t->shape.dim[0] = rows[i];
            t->hash = (uint64_t)hash[i];
            t->has_hash = t->block = true;
            whole.offset += shape_count(t->shape) * (int64_t)sizeof(float);
        }
    }
    mem_free(&rows);
    mem_free(&hash);
    if (!good)
        return fail_tensor(walk, whole.path,
                           "has blocks that do not add up to the whole tensor, or lack checksums");
    mem_free(&whole.path);
    return OK;
}

/* Adds a tensor to the table: one entry, or one for each block of rows. Takes ownership of
 * `path`. */
static Status add_tensor(const Walk *walk, hid_t set, char *path)
{
    StoredFile *file = walk->file;
    if (file->count == TENSORS_MAX || strlen(path) > PATH_MAX_BYTES) {
        Status status = fail_tensor(walk, path, "has too long a name, or is one of too many");
        mem_free(&path);
        return status;
    }
    file->tensor = mem_resize(file->tensor, (size_t)(file->count + 1) * sizeof *file->tensor);
    StoredTensor *t = &file->tensor[file->count++];
    *t = (StoredTensor){.path = path};
    char *what = mem_format("tensor %s", path);
    Status status = hdf5_check_in_one_file(file->id, set, file->path, what);
    mem_free(&what);
    TRY(status);
    TRY(read_shape(walk, path, set, &t->shape));
    hid_t type = H5Dget_type(set);
    bool floats = type >= 0 && H5Tget_class(type) == H5T_FLOAT;
    t->ids = type >= 0 && t->shape.ndim == 1 && H5Tequal(type, H5T_STD_U64LE) > 0;
    /* an id of 64 bits counts as two floats from here on, so that the same code reads ids and
     * floats */
    if (t->ids) t->shape = shape_of(2, t->shape.dim[0], 2, 1, 1);
    if (floats || t->ids)
        t->offset = contiguous_offset(set, type, t->ids ? H5T_STD_U64LE : H5T_IEEE_F32LE, t->shape);
    if (type >= 0) H5Tclose(type);
    if (!floats && !t->ids) return fail_tensor(walk, path, "does not hold floating-point numbers");
    if (t->ids && t->offset < 0)
        return fail_tensor(walk, path, "holds ids that are compressed or in chunks");
    TRY(check_size(walk, t));
    TRY(check_chunk(walk, set, path));
    if (!attr_hash(set, "xxh64", &t->hash, &t->has_hash))
        return fail_tensor(walk, path, "has a damaged checksum");
    return add_blocks(walk, set);
}

/* Adds all tensors in a group and in the groups inside it. prefix, depth: as in Walk. */
static Status walk_group(StoredFile *file, hid_t group, const char *prefix, int depth);

static herr_t visit(hid_t group, const char *name, const H5L_info_t *info, void *user)
{
    Walk *walk = user;
    (void)info;
    char *path = mem_format("%s/%s", walk->prefix, name);
    /* set by H5Oopen */
    bool is_external;
    hid_t access = hdf5_access_without_links(&is_external);
    hid_t object = H5Oopen(group, name, access);
    H5Pclose(access);
    H5I_type_t type = object < 0 ? H5I_BADID : H5Iget_type(object);
    if (type == H5I_DATASET) {
        walk->status = add_tensor(walk, object, path);
        path = NULL;
    } else if (type == H5I_GROUP && walk->depth < GROUP_DEPTH) {
        walk->status = walk_group(walk->file, object, path, walk->depth + 1);
    } else if (is_external) {
        char *what = mem_format("tensor %s", path);
        walk->status = hdf5_link_fail(walk->file->path, what);
        mem_free(&what);
    } else {
        walk->status =
            fail_tensor(walk, path, "cannot be read: damaged, or in more than 4 levels of groups");
    }
    mem_free(&path);
    if (object >= 0) H5Oclose(object);
    return walk->status == OK ? 0 : -1;
}

static Status walk_group(StoredFile *file, hid_t group, const char *prefix, int depth)
{
    Walk walk = {file, prefix, depth, OK};
    if (H5Literate(group, H5_INDEX_NAME, H5_ITER_NATIVE, NULL, visit, &walk) < 0 &&
        walk.status == OK)
        return fail_tensor(&walk, prefix, "cannot be listed: damaged");
    return walk.status;
}

static Status fail_external_group(const StoredFile *file, const char *group)
{
    char *what = mem_format("tensor %s/...", group);
    Status status = hdf5_link_fail(file->path, what);
    mem_free(&what);
    return status;
}

static Status list_groups(StoredFile *file)
{
    static const char *const group_path[] = {"/params", "/optim", "/buffers", "/tables", "/ema"};
    for (size_t i = 0; i < sizeof group_path / sizeof *group_path; ++i) {
        htri_t found = H5Lexists(file->id, group_path[i], H5P_DEFAULT);
        if (found == 0) continue;
        /* set by H5Oopen */
        bool is_external;
        hid_t access = hdf5_access_without_links(&is_external);
        hid_t group = found < 0 ? -1 : H5Oopen(file->id, group_path[i], access);
        H5Pclose(access);
        if (is_external) return fail_external_group(file, group_path[i]);
        if (group < 0)
            return fail(ERR_DATA, "%s: group %s is damaged; use another checkpoint", file->path,
                        group_path[i]);
        Status status = walk_group(file, group, group_path[i], 1);
        H5Oclose(group);
        TRY(status);
    }
    return OK;
}

/* ---- writing the answer ---- */

static void put_text(FILE *out, const char *text)
{
    int64_t bytes = text ? (int64_t)strlen(text) : -1;
    fwrite(&bytes, sizeof bytes, 1, out);
    if (text) fwrite(text, 1, (size_t)bytes, out);
}

/* Writes a part's status and message. */
static bool put_status(FILE *out, Status status)
{
    fwrite(&status, sizeof status, 1, out);
    put_text(out, status == OK ? "" : fail_message());
    return status == OK;
}

static void put_table(FILE *out, const StoredFile *file)
{
    fwrite(&file->count, sizeof file->count, 1, out);
    for (int i = 0; i < file->count; ++i) {
        fwrite(&file->tensor[i], sizeof file->tensor[i], 1, out);
        put_text(out, file->tensor[i].path);
    }
}

static void put_meta(FILE *out, const CheckpointMeta *meta)
{
    fwrite(meta, sizeof *meta, 1, out);
    put_text(out, meta->config);
    put_text(out, meta->version);
    put_text(out, meta->classes);
    put_text(out, meta->algorithms);
    put_text(out, meta->data_files);
    const DataRanges *ranges = &meta->ranges;
    if (ranges->columns > 0)
        fwrite(ranges->column, sizeof *ranges->column, (size_t)ranges->columns, out);
}

/* If the file opens, reads the table and the attributes independently: an error of one does not
 * keep the other from being read. */
void tensor_table_read(const void *input, size_t input_bytes, FILE *answer)
{
    StoredFile file = {.id = -1};
    CheckpointMeta meta = {0};
    (void)input_bytes;
    Status status = stored_open_plain(&file, input);
    /* held until stored_close, even if the file could not be opened */
    stored_lock(&file);
    errno = 0;
    if (status == OK) status = hdf5_status(&file, open_hdf5(&file));
    if (status == OK) status = hdf5_status(&file, check_format(&file));
    if (put_status(answer, status)) {
        errno = 0;
        if (put_status(answer, hdf5_status(&file, list_groups(&file)))) put_table(answer, &file);
        errno = 0;
        if (put_status(answer, hdf5_status(&file, meta_get(file.id, file.path, &meta))))
            put_meta(answer, &meta);
    }
    checkpoint_meta_fini(&meta);
    stored_close(&file);
}
