/* Writes a data set as OUT.part. First HDF5 lays out the file: contiguous arrays, aligned to 4 KiB,
 * with all space reserved, so that a full disk is noticed before anything is converted. Then
 * samples are written by pwrite at the arrays' file offsets. At the end the file is synced and
 * renamed to OUT, and its folder is synced. An existing OUT is kept until the rename; a failure or
 * a signal (part_signal.c) removes OUT.part.
 *
 * An import of a folder differs. part_open creates or opens its OUT.part, which stays after a
 * failure or a signal, so that the import can be resumed; part_lay_out lays it out after the
 * samples are written. */
#include "../data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ALIGN_BYTES: alignment of arrays in the file; SLACK_BYTES: space reserved for HDF5's metadata */
enum { ALIGN_BYTES = 4096, SLACK_BYTES = 1 << 16 };

herr_t h5_put_text(hid_t object, const char *name, const char *value)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(value) + 1);
    for (const char *c = value; *c; ++c)
        if ((unsigned char)*c >= 0x80) H5Tset_cset(type, H5T_CSET_UTF8);
    hid_t attr = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t rc = H5Awrite(attr, type, value);
    H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    return rc;
}

herr_t h5_put_numbers(hid_t object, const char *name, hid_t stored, hid_t type, const void *value,
                      hsize_t n)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(object, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t rc = H5Awrite(attr, type, value);
    H5Aclose(attr);
    H5Sclose(space);
    return rc;
}

herr_t h5_put_array(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim,
                    int64_t *offset)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(ndim, dim, NULL);
    H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);
    /* Without times, the same import always writes the same bytes. */
    H5Pset_obj_track_times(create, false);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    haddr_t at = dataset < 0 ? HADDR_UNDEF : H5Dget_offset(dataset);
    *offset = (int64_t)at;
    bool closed = dataset >= 0 && H5Dclose(dataset) >= 0;
    H5Sclose(space);
    H5Pclose(create);
    return closed && at != HADDR_UNDEF ? 0 : -1;
}

herr_t h5_fill_array(hid_t file, const char *name, hid_t type, const void *from)
{
    hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
    herr_t rc = dataset < 0 ? -1 : H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, from);
    /* HDF5 keeps small arrays in memory, and writes them when the data set is closed. */
    if (dataset >= 0 && H5Dclose(dataset) < 0) rc = -1;
    return rc;
}

Status part_fail(const PartFile *p, const char *why)
{
    return fail(ERR_IO, "%s: cannot be written: %s; free some space or choose another place",
                p->part, why);
}

Status part_reserve(const PartFile *p, int64_t bytes)
{
    struct statvfs fs;
    struct stat st;
    /* st_blocks counts units of 512 bytes. */
    double allocated = fstat(p->fd, &st) == 0 ? 512.0 * (double)st.st_blocks : 0;
    if (fstatvfs(p->fd, &fs) == 0 &&
        (double)fs.f_bavail * (double)fs.f_frsize + allocated < (double)bytes)
        return part_fail(p, strerror(ENOSPC));
    while (fallocate(p->fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) return OK;
        if (errno != EINTR) return part_fail(p, strerror(errno));
    }
    return OK;
}

/* Creates the file and reserves its space. This happens before HDF5 writes a byte, because HDF5 can
 * neither close a file nor exit cleanly if it cannot flush its buffers. */
static Status part_create(PartFile *p, int64_t bytes)
{
    p->fd = file_create_new(p->part, O_RDWR);
    if (p->fd < 0) return part_fail(p, strerror(errno));
    part_remove_on_signal(p->part);
    return part_reserve(p, bytes + SLACK_BYTES);
}

static hid_t access_new(void)
{
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_alignment(access, ALIGN_BYTES, ALIGN_BYTES);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, false, true);
#endif
    return access;
}

/* Calls `put` for an open HDF5 file and closes the file. Called under hdf5_lock. */
static Status put_and_close(const PartFile *p, hid_t file, PartPut *put, void *user)
{
    bool good = file >= 0 && put(user, file) >= 0;
    if (file >= 0 && H5Fclose(file) < 0) good = false;
    return good ? OK : part_fail(p, h5_error_text());
}

/* Creates an HDF5 file at `path`, with the contents that `put` writes; it replaces a file that is
 * there. ordered: true if the root keeps the order in which arrays and attributes are created. */
static Status create_hdf5(const PartFile *p, const char *path, bool ordered, PartPut *put,
                          void *user)
{
    const unsigned order = H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED;
    hdf5_lock();
    hid_t access = access_new(), create = H5Pcreate(H5P_FILE_CREATE);
    if (ordered) {
        H5Pset_obj_track_times(create, false);
        H5Pset_link_creation_order(create, order);
        H5Pset_attr_creation_order(create, order);
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, create, access);
    H5Pclose(create);
    H5Pclose(access);
    Status st = put_and_close(p, file, put, user);
    hdf5_unlock();
    return st;
}

hid_t part_open_hdf5(const PartFile *p)
{
    hid_t access = access_new();
    hid_t file = H5Fopen(p->part, H5F_ACC_RDWR, access);
    H5Pclose(access);
    return file;
}

Status part_update(const PartFile *p, PartPut *put, void *user)
{
    hdf5_lock();
    Status st = put_and_close(p, part_open_hdf5(p), put, user);
    hdf5_unlock();
    return st;
}

/* Reserves the space again, since HDF5 has truncated the file. HDF5 opened the file by its path, so
 * this fails if the path leads to another file now. */
static Status reserve_again(const PartFile *p)
{
    struct stat st, named;
    if (fstat(p->fd, &st) != 0 || lstat(p->part, &named) != 0) return part_fail(p, strerror(errno));
    if (!file_is_same(&st, &named)) return part_fail(p, "its path is another file now");
    return part_reserve(p, (int64_t)st.st_size);
}

Status part_check_outputs(const char *out, const char *test, bool force)
{
    TRY(file_check_writable(out, force));
    if (!test) return OK;
    TRY(file_check_writable(test, force));
    if (strcmp(out, test) != 0) return OK;
    return fail(ERR_USAGE, "%s: is the path of both data sets; give two paths", out);
}

Status part_check_not_input(const char *out, const char *folder, const char *const *name, int count)
{
    Status status = OK;
    for (int i = 0; status == OK && i < count; ++i) {
        char *in = mem_format("%s/%s", folder, name[i]);
        status = file_check_not_input(out, (const char *const *)&in, 1);
        mem_free(&in);
    }
    return status;
}

static Status new_file(PartFile *p, const char *out, bool force, int64_t bytes, bool ordered,
                       PartPut *put, void *user)
{
    *p = (PartFile){.fd = -1};
    TRY(file_check_writable(out, force));
    p->out = mem_text(out);
    p->part = mem_format("%s.part", out);
    Status st = part_create(p, bytes);
    if (st == OK) st = create_hdf5(p, p->part, ordered, put, user);
    if (st == OK) st = reserve_again(p);
    if (st != OK) part_drop(p);
    return st;
}

Status part_new(PartFile *p, const char *out, bool force, int64_t bytes, PartPut *put, void *user)
{
    return new_file(p, out, force, bytes, false, put, user);
}

Status part_new_ordered(PartFile *p, const char *out, bool force, int64_t bytes, PartPut *put,
                        void *user)
{
    return new_file(p, out, force, bytes, true, put, user);
}

Status part_write(const PartFile *p, const void *from, int64_t bytes, int64_t at)
{
    for (const uint8_t *c = from; bytes > 0;) {
        ssize_t n = pwrite(p->fd, c, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return part_fail(p, n < 0 ? strerror(errno) : "nothing was written");
        c += n, at += n, bytes -= n;
    }
    return OK;
}

void part_begin_sync(const PartFile *p, int64_t bytes, int64_t at)
{
    (void)sync_file_range(p->fd, (off_t)at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

Status part_copy(const PartFile *p, int from_fd, int64_t from, int64_t end, int64_t to)
{
    enum { PIECE_BYTES = 1 << 20 };
    uint8_t *piece = mem_new(PIECE_BYTES);
    Status st = OK;
    while (st == OK && from < end) {
        size_t most = end - from < PIECE_BYTES ? (size_t)(end - from) : PIECE_BYTES;
        ssize_t n = pread(from_fd, piece, most, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        st = n > 0 ? part_write(p, piece, n, to)
                   : fail(ERR_IO, "%s: data to be copied into it cannot be read: %s", p->part,
                          n < 0 ? strerror(errno) : "the source is too short");
        from += n, to += n;
    }
    mem_free(&piece);
    return st;
}

Status part_open_existing(PartFile *p, const char *out)
{
    *p = (PartFile){.out = mem_text(out), .part = mem_format("%s.part", out), .fd = -1};
    p->fd = file_open(p->part, O_RDWR | O_NOFOLLOW);
    Status st = p->fd < 0 ? part_fail(p, file_error(errno)) : OK;
    if (st != OK) part_close(p);
    return st;
}

Status part_open(PartFile *p, const char *out, bool keep, int64_t bytes)
{
    if (keep) {
        TRY(part_open_existing(p, out));
    } else {
        *p = (PartFile){.out = mem_text(out), .part = mem_format("%s.part", out)};
        p->fd = file_create_new(p->part, O_RDWR);
    }
    Status st = p->fd < 0 ? part_fail(p, strerror(errno)) : part_reserve(p, bytes + SLACK_BYTES);
    if (st != OK) (keep ? part_close : part_drop)(p);
    return st;
}

/* Copies the file `layout` to OUT.part, except for its hole: the `bytes` bytes at offset `hole`. */
static Status copy_layout(const PartFile *p, const char *layout, int64_t hole, int64_t bytes)
{
    struct stat st;
    int fd = file_open(layout, O_RDONLY | O_NOFOLLOW);
    Status status = OK;
    if (fd < 0 || fstat(fd, &st) != 0) status = part_fail(p, strerror(errno));
    if (status == OK) status = part_copy(p, fd, 0, hole, 0);
    if (status == OK) status = part_copy(p, fd, hole + bytes, (int64_t)st.st_size, hole + bytes);
    if (status == OK && ftruncate(p->fd, st.st_size) != 0) status = part_fail(p, strerror(errno));
    if (fd >= 0) close(fd);
    return status;
}

Status part_lay_out(const PartFile *p, PartPut *put, void *user, const int64_t *data_offset,
                    int64_t data_bytes, bool copy)
{
    char *layout = mem_format("%s.frame", p->part);
    int fd = file_create_new(layout, O_RDWR);
    Status st = fd < 0 ? part_fail(p, strerror(errno)) : create_hdf5(p, layout, false, put, user);
    if (fd >= 0) close(fd);
    if (st == OK && copy) st = copy_layout(p, layout, *data_offset, data_bytes);
    unlink(layout);
    mem_free(&layout);
    return st;
}

static Status publish(const PartFile *p)
{
    if (fsync(p->fd) != 0) return part_fail(p, strerror(errno));
    if (rename(p->part, p->out) != 0)
        return fail(ERR_IO, "%s: cannot be renamed to %s: %s", p->part, p->out, strerror(errno));
    int error = file_sync_entry(p->out);
    return error ? fail(ERR_IO, "%s: its folder cannot be synced: %s", p->out, strerror(error))
                 : OK;
}

void part_close(PartFile *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    if (p->part) part_keep_on_signal(p->part);
    mem_free(&p->out);
    mem_free(&p->part);
}

Status part_finish(PartFile *p)
{
    Status st = publish(p);
    if (st != OK)
        part_drop(p);
    else
        part_close(p);
    return st;
}

void part_drop(PartFile *p)
{
    if (p->fd >= 0) unlink(p->part);
    part_close(p);
}
