/* Lays out a new checkpoint on rank 0: groups, attributes, and contiguous data sets whose space is
 * allocated early; the ranks then write their bytes at the offsets found here. Object times are not
 * stored and large data sets begin at pages. HDF5 does not recover well from a full disk while it
 * closes a file, so space is checked and reserved before HDF5 is called. */
#include "layout.h"
#include "meta.h"
#include "data.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* upper bounds in bytes of HDF5's metadata for each tensor and for the file */
enum { TENSOR_OVERHEAD_BYTES = 2048, FILE_OVERHEAD_BYTES = 65536 };

/* Describes the file system of `path`, or of the folder of `path` if `path` does not exist. Returns
 * false on failure. */
static bool find_room(const char *path, struct statvfs *fs)
{
    if (statvfs(path, fs) == 0) return true;
    char *dir = mem_text(path), *slash = strrchr(dir, '/');
    if (slash) *slash = 0;
    bool good = statvfs(slash ? dir : ".", fs) == 0;
    mem_free(&dir);
    return good;
}

static double free_bytes(const struct statvfs *fs)
{
    return (double)fs->f_bavail * (double)fs->f_frsize;
}

static const char *cure_of(int error)
{
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; " CHECKPOINT_MAKE_ROOM;
    case EFBIG:
        return "; raise the limit on the size of files";
    default:
        return "";
    }
}

/* A file system may run out of inodes before it runs out of space; f_files is 0 if the file system
 * does not limit inodes. */
Status write_failed(const char *path, const char *what, int error)
{
    struct statvfs fs;
    char space[16] = "unknown space";
    bool known = find_room(path, &fs), space_left = known && fs.f_bavail > 0;
    if (known) text_bytes(free_bytes(&fs), space);
    bool no_inodes = error == ENOSPC && space_left && fs.f_files > 0 && fs.f_favail == 0;
    return fail(ERR_IO, "%s: %s failed: %s (%s free%s)%s", path, what, file_error(error), space,
                no_inodes ? ", but no inodes: it can hold no more files" : "", cure_of(error));
}

static int64_t file_bytes(const CheckpointMeta *meta, const CheckpointIo *io)
{
    int64_t bytes = FILE_OVERHEAD_BYTES + (meta->config ? (int64_t)strlen(meta->config) : 0) +
                    (meta->classes ? (int64_t)strlen(meta->classes) : 0) +
                    (int64_t)strlen(meta->columns.lines) +
                    meta->ranges.columns * (int64_t)sizeof(ColumnRange) +
                    (meta->algorithms ? (int64_t)strlen(meta->algorithms) : 0) +
                    (meta->data_files ? (int64_t)strlen(meta->data_files) : 0);
    for (int i = 0; i < io->count; ++i) {
        int64_t tensor_bytes = shape_count(io->tensor[i].shape) * (int64_t)sizeof(float);
        bytes +=
            TENSOR_OVERHEAD_BYTES + tensor_bytes + (tensor_bytes >= PAGE_BYTES ? PAGE_BYTES : 0);
    }
    return bytes;
}

static Status reserve(const char *part, int64_t bytes, int flags)
{
    int fd = file_create(part, O_WRONLY | flags);
    if (fd < 0) return write_failed(part, "creating the file", errno);
    int error = fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, (off_t)bytes) == 0 ? 0 : errno;
    close(fd);
    bool full = error == ENOSPC || error == EDQUOT || error == EFBIG || error == EIO;
    return full ? write_failed(part, "reserving the file's space", error) : OK;
}

/* Allocates disk blocks for the holes of the laid-out file, which tensors will fill: HDF5 has
 * truncated the file that check_space reserved. */
static Status reserve_all(const char *part)
{
    struct stat st;
    if (lstat(part, &st) != 0) return write_failed(part, "reading the file's size", errno);
    return reserve(part, (int64_t)st.st_size, 0);
}

/* Checks the limit on file sizes and the free space, creates the file, and reserves its space. */
static Status check_space(const char *part, int64_t bytes)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
        limit.rlim_cur < (rlim_t)bytes)
        return write_failed(part, "keeping to the file size limit (ulimit -f)", EFBIG);
    struct statvfs fs;
    if (find_room(part, &fs) && free_bytes(&fs) < (double)bytes)
        return write_failed(part, "reserving the file's space", ENOSPC);
    return reserve(part, bytes, O_EXCL);
}

/* HDF5 property lists for creating data sets. */
typedef struct Recipe {
    /* for the link to the data set */
    hid_t link;
    /* for the data set itself */
    hid_t create;
} Recipe;

/* A data set of the file: one tensor, or all blocks of the ids, the rows or the state of a table
 * (CheckpointTensor.block). */
typedef struct DataSetLayout {
    /* path in the file; owned */
    char *path;
    /* number of blocks, or 0 if the data set is one tensor */
    int blocks;
    /* rows of each block, [blocks]; owned */
    int64_t *rows;
    /* sum of `rows` */
    int64_t all_rows;
} DataSetLayout;

static DataSetLayout data_set_layout(const CheckpointIo *io, int first)
{
    DataSetLayout set = {.path = mem_text(io->tensor[first].path)};
    if (!io->tensor[first].block) return set;
    *strrchr(set.path, CHECKPOINT_BLOCK) = 0;
    size_t chars = strlen(set.path);
    set.rows = mem_new((size_t)(io->count - first) * sizeof *set.rows);
    for (int i = first; i < io->count; ++i) {
        const char *path = io->tensor[i].path;
        bool same = strncmp(path, set.path, chars) == 0 && path[chars] == CHECKPOINT_BLOCK;
        if (!io->tensor[i].block || !same) break;
        set.rows[set.blocks++] = io->tensor[i].shape.dim[0];
        set.all_rows += io->tensor[i].shape.dim[0];
    }
    return set;
}

static bool put_hashes(hid_t object, const DataSetLayout *set, const uint64_t *hash, uint64_t bound)
{
    if (!attr_put_hash(object, "bound_xxh64", bound)) return false;
    if (set->blocks > 0)
        return attr_put_array(object, "block_rows", set->rows, set->blocks) &&
               attr_put_array(object, "block_xxh64", (const int64_t *)hash, set->blocks);
    return attr_put_hash(object, "xxh64", *hash);
}

static bool put_set(hid_t file, const Recipe *recipe, const CheckpointTensor *t,
                    const DataSetLayout *layout, const uint64_t *hash)
{
    hsize_t dim[SHAPE_DIMS];
    int64_t shape[SHAPE_DIMS];
    int ndim = t->ids ? 1 : t->shape.ndim;
    for (int i = 0; i < ndim; ++i) {
        shape[i] = i == 0 && layout->blocks > 0 ? layout->all_rows : t->shape.dim[i];
        dim[i] = (hsize_t)shape[i];
    }
    uint64_t bound = checksum_bind(layout->path, t->ids, ndim, shape, hash,
                                   layout->blocks > 0 ? layout->blocks : 1);
    hid_t space = H5Screate_simple(ndim, dim, NULL);
    hid_t type = t->ids ? H5T_STD_U64LE : H5T_IEEE_F32LE;
    hid_t set = space < 0 ? -1
                          : H5Dcreate2(file, layout->path, type, space, recipe->link,
                                       recipe->create, H5P_DEFAULT);
    bool good = set >= 0 && put_hashes(set, layout, hash, bound);
    if (set >= 0 && H5Dclose(set) < 0) good = false;
    if (space >= 0) H5Sclose(space);
    return good;
}

/* Gets the offset of a data set's bytes. The data set must have elements and allocated space. */
static bool get_offset(hid_t file, const char *path, int64_t *offset)
{
    hid_t set = H5Dopen2(file, path, H5P_DEFAULT);
    if (set < 0) return false;
    haddr_t at = H5Dget_offset(set);
    H5Dclose(set);
    *offset = (int64_t)at;
    return at != HADDR_UNDEF;
}

static hid_t create_file(const char *part)
{
    hid_t access = hdf5_file_access(), create = H5Pcreate(H5P_FILE_CREATE);
    H5Pset_alignment(access, PAGE_BYTES, PAGE_BYTES);
    /* keeps the root's attributes in its object header */
    H5Pset_attr_phase_change(create, 64, 48);
    hid_t file = H5Fcreate(part, H5F_ACC_TRUNC, create, access);
    H5Pclose(create);
    H5Pclose(access);
    return file;
}

static Recipe recipe_new(void)
{
    Recipe recipe = {H5Pcreate(H5P_LINK_CREATE), H5Pcreate(H5P_DATASET_CREATE)};
    H5Pset_create_intermediate_group(recipe.link, 1);
    H5Pset_layout(recipe.create, H5D_CONTIGUOUS);
    H5Pset_alloc_time(recipe.create, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(recipe.create, H5D_FILL_TIME_NEVER);
    H5Pset_obj_track_times(recipe.create, 0);
    return recipe;
}

/* Creates the data set that begins with tensor *i, sets the offsets of the data set's tensors, and
 * moves *i behind the last of them. If it fails, *i stays. */
static bool put_tensors(hid_t file, const Recipe *recipe, const CheckpointIo *io, int *i,
                        const uint64_t *hash, int64_t *offset)
{
    DataSetLayout set = data_set_layout(io, *i);
    const CheckpointTensor *t = &io->tensor[*i];
    int count = set.blocks > 0 ? set.blocks : 1;
    int64_t at = 0;
    bool has_values = set.blocks > 0 ? set.all_rows > 0 : shape_count(t->shape) > 0;
    bool good = put_set(file, recipe, t, &set, hash + *i) &&
                (!has_values || get_offset(file, set.path, &at));
    for (int k = *i; k < *i + count; ++k) {
        offset[k] = at;
        at += shape_count(io->tensor[k].shape) * (int64_t)sizeof(float);
    }
    mem_free(&set.path);
    mem_free(&set.rows);
    if (good) *i += count;
    return good;
}

/* Creates the file with its attributes and data sets through HDF5. */
static Status write_layout(const char *part, const CheckpointMeta *meta, const CheckpointIo *io,
                           const uint64_t *hash, int64_t *offset)
{
    errno = 0;
    hid_t file = create_file(part);
    if (file < 0) return write_failed(part, "creating the file", errno ? errno : EIO);
    Recipe recipe = recipe_new();
    const char *culprit = meta_put(file, meta) ? NULL : "the attributes";
    for (int i = 0; i < io->count && !culprit;)
        if (!put_tensors(file, &recipe, io, &i, hash, offset)) culprit = io->tensor[i].path;
    H5Pclose(recipe.link);
    H5Pclose(recipe.create);
    bool closed = H5Fclose(file) >= 0;
    /* frees megabytes that HDF5 would keep for the next file */
    H5garbage_collect();
    if (!culprit && closed) return OK;
    char *what = mem_format("laying out %s with HDF5", culprit ? culprit : "the file");
    Status status = write_failed(part, what, errno ? errno : EIO);
    mem_free(&what);
    return status;
}

Status layout_create(const char *part, const CheckpointMeta *meta, const CheckpointIo *io,
                     const uint64_t *hash, int64_t *offset)
{
    if (unlink(part) != 0 && errno != ENOENT)
        return write_failed(part, "removing a stale file", errno);
    TRY(check_space(part, file_bytes(meta, io)));
    hdf5_lock();
    Status status = write_layout(part, meta, io, hash, offset);
    hdf5_unlock();
    return status == OK ? reserve_all(part) : status;
}
