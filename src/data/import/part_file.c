/* Writes a data set as OUT.part: HDF5 lays the file out (contiguous, 4 KiB-aligned, space reserved
 * at once, so that a full disk shows before anything is converted); samples are then written by
 * pwrite at HDF5's offsets, just as ranks read them. At the end: fsync, rename, fsync of the
 * folder. An earlier file is kept until that rename; a failure or a signal (part_stop.c) removes
 * the .part. */
#include "../data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* SLACK_BYTES: room for HDF5's metadata */
enum { ALIGN_BYTES = 4096, SLACK_BYTES = 1 << 16 };

herr_t h5_put_text(hid_t file, const char *name, const char *value)
{
    hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR);
    H5Tset_size(type, strlen(value) + 1);
    hid_t attr = H5Acreate2(file, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t rc = H5Awrite(attr, type, value);
    H5Aclose(attr);
    H5Sclose(space);
    H5Tclose(type);
    return rc;
}

herr_t h5_put_numbers(hid_t file, const char *name, hid_t stored, hid_t type, const void *value,
                      hsize_t n)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
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
    /* The same import then writes the same bytes. */
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
    /* HDF5 keeps small arrays in memory and writes them here. */
    if (dataset >= 0 && H5Dclose(dataset) < 0) rc = -1;
    return rc;
}

Status part_failed(const PartFile *p, const char *why)
{
    return fail(ERR_IO, "%s: cannot be written: %s; free some space or choose another place",
                p->part, why);
}

/* Allocates `bytes` on the disk, if the file system supports it. */
static Status reserve(const PartFile *p, int64_t bytes)
{
    struct statvfs fs;
    struct stat st;
    double have = fstat(p->fd, &st) == 0 ? 512.0 * (double)st.st_blocks : 0;
    if (fstatvfs(p->fd, &fs) == 0 &&
        (double)fs.f_bavail * (double)fs.f_frsize + have < (double)bytes)
        return part_failed(p, strerror(ENOSPC));
    while (fallocate(p->fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) return OK;
        if (errno != EINTR) return part_failed(p, strerror(errno));
    }
    return OK;
}

/* Creates the file and reserves its space before HDF5 writes a byte: a library that cannot flush
 * its buffers can neither close the file nor exit cleanly. */
static Status part_create(PartFile *p, int64_t bytes)
{
    p->fd = file_create_new(p->part, O_RDWR);
    if (p->fd < 0) return part_failed(p, strerror(errno));
    part_stop_removes(p->part);
    return reserve(p, bytes + SLACK_BYTES);
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

/* Calls put for an open file and closes it. Called under the lock. */
static Status put_close(const PartFile *p, hid_t file, PartPut *put, void *user)
{
    bool good = file >= 0 && put(user, file) >= 0;
    if (file >= 0 && H5Fclose(file) < 0) good = false;
    return good ? OK : part_failed(p, h5_words());
}

static Status lay_out(const PartFile *p, const char *path, PartPut *put, void *user)
{
    hdf5_lock();
    hid_t access = access_new();
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    Status st = put_close(p, file, put, user);
    hdf5_unlock();
    return st;
}

Status part_change(const PartFile *p, PartPut *put, void *user)
{
    hdf5_lock();
    hid_t access = access_new();
    hid_t file = H5Fopen(p->part, H5F_ACC_RDWR, access);
    H5Pclose(access);
    Status st = put_close(p, file, put, user);
    hdf5_unlock();
    return st;
}

/* HDF5 has truncated the file by its name: reserves the space again, if it is still the same
 * file. */
static Status reserve_again(const PartFile *p)
{
    struct stat st, named;
    if (fstat(p->fd, &st) != 0 || lstat(p->part, &named) != 0)
        return part_failed(p, strerror(errno));
    if (!file_is_same(&st, &named))
        return part_failed(p, "another file has taken its name meanwhile");
    return reserve(p, (int64_t)st.st_size);
}

Status part_free_places(const char *out, const char *test, bool force)
{
    TRY(file_free_place(out, force));
    if (!test) return OK;
    TRY(file_free_place(test, force));
    if (strcmp(out, test) != 0) return OK;
    return fail(ERR_USAGE, "%s: is named for training and for the test; give two names", out);
}

Status part_no_input(const char *out, const char *folder, const char *const *name, int count)
{
    Status status = OK;
    for (int i = 0; status == OK && i < count; ++i) {
        char *in = mem_format("%s/%s", folder, name[i]);
        status = file_no_input(out, (const char *const *)&in, 1);
        mem_free(&in);
    }
    return status;
}

Status part_new(PartFile *p, const char *out, bool force, int64_t bytes, PartPut *put, void *user)
{
    *p = (PartFile){.fd = -1};
    TRY(file_free_place(out, force));
    p->out = mem_text(out);
    p->part = mem_format("%s.part", out);
    Status st = part_create(p, bytes);
    if (st == OK) st = lay_out(p, p->part, put, user);
    if (st == OK) st = reserve_again(p);
    if (st != OK) part_drop(p);
    return st;
}

Status part_write(const PartFile *p, const void *from, int64_t bytes, int64_t at)
{
    for (const uint8_t *c = from; bytes > 0;) {
        ssize_t n = pwrite(p->fd, c, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return part_failed(p, n < 0 ? strerror(errno) : "nothing was written");
        c += n, at += n, bytes -= n;
    }
    return OK;
}

void part_begin_sync(const PartFile *p, int64_t bytes, int64_t at)
{
    (void)sync_file_range(p->fd, (off_t)at, (off_t)bytes, SYNC_FILE_RANGE_WRITE);
}

Status part_take(const PartFile *p, int from_fd, int64_t from, int64_t end, int64_t to)
{
    enum { PIECE = 1 << 20 };
    uint8_t *piece = mem_new(PIECE);
    Status st = OK;
    while (st == OK && from < end) {
        size_t most = end - from < PIECE ? (size_t)(end - from) : PIECE;
        ssize_t n = pread(from_fd, piece, most, (off_t)from);
        if (n < 0 && errno == EINTR) continue;
        st = n > 0 ? part_write(p, piece, n, to)
                   : fail(ERR_IO, "%s: what goes into it cannot be read: %s", p->part,
                          n < 0 ? strerror(errno) : "it is too short");
        from += n, to += n;
    }
    mem_free(&piece);
    return st;
}

Status part_join(PartFile *p, const char *out)
{
    *p = (PartFile){.out = mem_text(out), .part = mem_format("%s.part", out), .fd = -1};
    p->fd = file_open(p->part, O_RDWR | O_NOFOLLOW);
    Status st = p->fd < 0 ? part_failed(p, file_error(errno)) : OK;
    if (st != OK) part_leave(p);
    return st;
}

Status part_open(PartFile *p, const char *out, bool keep, int64_t bytes)
{
    if (keep) {
        TRY(part_join(p, out));
    } else {
        *p = (PartFile){.out = mem_text(out), .part = mem_format("%s.part", out)};
        p->fd = file_create_new(p->part, O_RDWR);
    }
    Status st = p->fd < 0 ? part_failed(p, strerror(errno)) : reserve(p, bytes + SLACK_BYTES);
    if (st != OK) (keep ? part_leave : part_drop)(p);
    return st;
}

static Status take_frame(const PartFile *p, const char *frame, int64_t at, int64_t bytes)
{
    struct stat st;
    int fd = file_open(frame, O_RDONLY | O_NOFOLLOW);
    Status status = OK;
    if (fd < 0 || fstat(fd, &st) != 0) status = part_failed(p, strerror(errno));
    if (status == OK) status = part_take(p, fd, 0, at, 0);
    if (status == OK) status = part_take(p, fd, at + bytes, (int64_t)st.st_size, at + bytes);
    if (status == OK && ftruncate(p->fd, st.st_size) != 0) status = part_failed(p, strerror(errno));
    if (fd >= 0) close(fd);
    return status;
}

Status part_frame(const PartFile *p, PartPut *put, void *user, const int64_t *data_offset,
                  int64_t data_bytes, bool fill)
{
    char *frame = mem_format("%s.frame", p->part);
    int fd = file_create_new(frame, O_RDWR);
    Status st = fd < 0 ? part_failed(p, strerror(errno)) : lay_out(p, frame, put, user);
    if (fd >= 0) close(fd);
    if (st == OK && fill) st = take_frame(p, frame, *data_offset, data_bytes);
    unlink(frame);
    mem_free(&frame);
    return st;
}

static Status publish(const PartFile *p)
{
    if (fsync(p->fd) != 0) return part_failed(p, strerror(errno));
    if (rename(p->part, p->out) != 0)
        return fail(ERR_IO, "%s: cannot be renamed to %s: %s", p->part, p->out, strerror(errno));
    int error = file_sync_entry(p->out);
    return error ? fail(ERR_IO, "%s: its folder cannot be synced: %s", p->out, strerror(error))
                 : OK;
}

void part_leave(PartFile *p)
{
    if (p->fd >= 0) close(p->fd);
    p->fd = -1;
    part_stop_keeps(p->part);
    mem_free(&p->out);
    mem_free(&p->part);
}

Status part_finish(PartFile *p)
{
    Status st = publish(p);
    if (st != OK)
        part_drop(p);
    else
        part_leave(p);
    return st;
}

void part_drop(PartFile *p)
{
    if (p->fd >= 0) unlink(p->part);
    part_leave(p);
}
