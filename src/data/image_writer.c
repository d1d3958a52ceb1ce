/* Writes a weft data set of uint8 images as OUT.part: HDF5 lays the file out (contiguous, 4 KiB-aligned, space reserved
 * at once, so that a full disk shows before anything is converted), then the samples go in by pwrite at HDF5's own
 * offsets, like ranks read them. Mean and deviation per channel are summed exactly, in integers, on the way. At the end:
 * attributes, fsync, rename, fsync of the folder. An earlier file stays whole until that rename; a failure removes the
 * .part. */
#include "data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <math.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { ALIGN_BYTES = 4096, SLACK_BYTES = 1 << 16 }; /* slack: HDF5's own metadata */

struct ImageWriter {
    ImageLayout layout;
    char *out, *part; /* owned */
    int fd;
    int64_t x_offset, y_offset, written; /* written: samples so far */
    int64_t image_bytes;
    int32_t *labels;         /* owned: all of them, written at the end */
    uint64_t *sum, *squares; /* owned: per channel */
};

static herr_t put_text(hid_t file, const char *name, const char *value)
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

static herr_t put_numbers(hid_t file, const char *name, hid_t stored, hid_t type, const void *value,
                          hsize_t n)
{
    hid_t space = n ? H5Screate_simple(1, &n, NULL) : H5Screate(H5S_SCALAR);
    hid_t attr = H5Acreate2(file, name, stored, space, H5P_DEFAULT, H5P_DEFAULT);
    herr_t rc = H5Awrite(attr, type, value);
    H5Aclose(attr);
    H5Sclose(space);
    return rc;
}

/* classes: the names, or "0", "1", ... as fixed-length strings. */
static herr_t put_classes(hid_t file, const ImageLayout *layout)
{
    size_t width = 12;
    hsize_t n = (hsize_t)layout->classes;
    for (hsize_t i = 0; layout->class_names && i < n; ++i)
        if (strlen(layout->class_names[i]) + 1 > width) width = strlen(layout->class_names[i]) + 1;
    if (width > 64) width = 64; /* all of them must fit an attribute */
    char *text = mem_new(n * width);
    for (hsize_t i = 0; i < n; ++i) {
        char number[24];
        snprintf(number, sizeof number, "%llu", (unsigned long long)i);
        snprintf(text + i * width, width, "%s",
                 layout->class_names ? layout->class_names[i] : number);
    }
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, width);
    herr_t rc = put_numbers(file, "classes", type, type, text, n);
    H5Tclose(type);
    mem_free(&text);
    return rc;
}

/* Makes one contiguous data set with its space reserved; *offset: where its bytes lie. */
static herr_t put_array(hid_t file, const char *name, hid_t type, int ndim, const hsize_t *dim,
                        int64_t *offset)
{
    hid_t create = H5Pcreate(H5P_DATASET_CREATE), space = H5Screate_simple(ndim, dim, NULL);
    H5Pset_alloc_time(create, H5D_ALLOC_TIME_EARLY);
    H5Pset_fill_time(create, H5D_FILL_TIME_NEVER);
    hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, create, H5P_DEFAULT);
    haddr_t at = dataset < 0 ? HADDR_UNDEF : H5Dget_offset(dataset);
    *offset = (int64_t)at;
    if (dataset >= 0) H5Dclose(dataset);
    H5Sclose(space);
    H5Pclose(create);
    return at == HADDR_UNDEF ? -1 : 0;
}

static herr_t put_contents(ImageWriter *w, hid_t file)
{
    const ImageLayout *l = &w->layout;
    int version = 1;
    hsize_t dim[4] = {(hsize_t)l->samples, (hsize_t)l->channels, (hsize_t)l->height,
                      (hsize_t)l->width};
    float *zero = mem_new((size_t)l->channels * sizeof *zero);
    hsize_t c = dim[1];
    bool good = put_text(file, "format", "weft-data") >= 0 &&
                put_text(file, "kind", "image") >= 0 &&
                put_numbers(file, "version", H5T_STD_I32LE, H5T_NATIVE_INT, &version, 0) >= 0 &&
                put_numbers(file, "mean", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, zero, c) >= 0 &&
                put_numbers(file, "std", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, zero, c) >= 0 &&
                put_classes(file, l) >= 0 &&
                put_array(file, "/x", H5T_STD_U8LE, 4, dim, &w->x_offset) >= 0 &&
                put_array(file, "/y", H5T_STD_I32LE, 1, dim, &w->y_offset) >= 0;
    mem_free(&zero);
    return good ? 0 : -1;
}

static Status failed(const ImageWriter *w, const char *why)
{
    return fail(ERR_IO, "%s: cannot be written: %s; free some space or choose another place",
                w->part, why);
}

/* Takes `bytes` of disk now, where the file system can. */
static Status reserve(const ImageWriter *w, int64_t bytes)
{
    struct statvfs fs;
    if (fstatvfs(w->fd, &fs) == 0 && (double)fs.f_bavail * (double)fs.f_frsize < (double)bytes)
        return failed(w, strerror(ENOSPC));
    while (fallocate(w->fd, 0, 0, (off_t)bytes) != 0) {
        if (errno == EOPNOTSUPP || errno == ENOSYS) return OK;
        if (errno != EINTR) return failed(w, strerror(errno));
    }
    return OK;
}

/* Does the folder take the file, and the disk all of it? Asked before HDF5 writes a byte: a library that cannot flush
 * what it holds can neither close the file nor end well. */
static Status part_create(ImageWriter *w)
{
    w->fd = open(w->part, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (w->fd < 0) return failed(w, strerror(errno));
    return reserve(w,
                   w->layout.samples * (w->image_bytes + (int64_t)sizeof(int32_t)) + SLACK_BYTES);
}

static Status lay_out(ImageWriter *w)
{
    hdf5_lock();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
    H5Pset_alignment(access, ALIGN_BYTES, ALIGN_BYTES);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, false, true);
#endif
    hid_t file = H5Fcreate(w->part, H5F_ACC_TRUNC, H5P_DEFAULT, access);
    H5Pclose(access);
    herr_t rc = file < 0 ? -1 : put_contents(w, file);
    if (file >= 0 && H5Fclose(file) < 0) rc = -1;
    Status st = rc < 0 ? failed(w, h5_words()) : OK;
    hdf5_unlock();
    return st;
}

/* HDF5 began the file anew: takes the space again. */
static Status reserve_again(const ImageWriter *w)
{
    struct stat st;
    if (fstat(w->fd, &st) != 0) return failed(w, strerror(errno));
    return reserve(w, (int64_t)st.st_size);
}

Status image_writer_new(ImageWriter **writer, const char *out, bool force, ImageLayout layout)
{
    *writer = NULL;
    if (access(out, F_OK) == 0 && !force)
        return fail(ERR_USAGE,
                    "%s: is already there; choose another name, or replace it with --force", out);
    ImageWriter *w = mem_new(sizeof *w);
    w->layout = layout;
    w->out = mem_text(out);
    w->part = mem_format("%s.part", out);
    w->fd = -1;
    w->image_bytes = layout.channels * layout.height * layout.width;
    w->labels = mem_new((size_t)layout.samples * sizeof *w->labels);
    w->sum = mem_new((size_t)layout.channels * sizeof *w->sum);
    w->squares = mem_new((size_t)layout.channels * sizeof *w->squares);
    *writer = w;
    Status st = part_create(w);
    if (st == OK) st = lay_out(w);
    if (st == OK) st = reserve_again(w);
    if (st != OK) image_writer_drop(writer);
    return st;
}

static Status put_bytes(const ImageWriter *w, const void *from, int64_t bytes, int64_t at)
{
    for (const uint8_t *p = from; bytes > 0;) {
        ssize_t n = pwrite(w->fd, p, (size_t)bytes, (off_t)at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return failed(w, n < 0 ? strerror(errno) : "nothing was written");
        p += n, at += n, bytes -= n;
    }
    return OK;
}

/* Adds up one channel of one image; 2^24 pixels of 255^2 still fit the 64-bit sums 2^24 times over. */
static void sum_plane(const uint8_t *p, int64_t n, uint64_t *sum, uint64_t *squares)
{
    uint64_t s = 0, q = 0;
    for (int64_t i = 0; i < n; ++i) {
        s += p[i];
        q += (uint64_t)p[i] * p[i];
    }
    *sum += s;
    *squares += q;
}

Status image_writer_add(ImageWriter *writer, const uint8_t *images, const int32_t *labels,
                        int64_t count)
{
    ImageWriter *w = writer;
    int64_t plane = w->layout.height * w->layout.width, channels = w->layout.channels;
    if (count > w->layout.samples - w->written)
        return fail(ERR_BUG, "%s: more samples than laid out", w->part);
    for (int64_t i = 0; i < count * channels; ++i)
        sum_plane(images + i * plane, plane, &w->sum[i % channels], &w->squares[i % channels]);
    memcpy(w->labels + w->written, labels, (size_t)count * sizeof *labels);
    TRY(put_bytes(w, images, count * w->image_bytes, w->x_offset + w->written * w->image_bytes));
    w->written += count;
    return OK;
}

static herr_t change_numbers(hid_t file, const char *name, const float *value)
{
    hid_t attr = H5Aopen(file, name, H5P_DEFAULT);
    herr_t rc = attr < 0 ? -1 : H5Awrite(attr, H5T_NATIVE_FLOAT, value);
    if (attr >= 0) H5Aclose(attr);
    return rc;
}

/* Mean and deviation in units of 0..1. A constant channel has no deviation: 1 leaves it as it is. */
static Status put_stats(ImageWriter *w)
{
    int64_t channels = w->layout.channels;
    double n = (double)(w->layout.samples * w->layout.height * w->layout.width);
    float *mean = mem_new((size_t)channels * sizeof *mean);
    float *std = mem_new((size_t)channels * sizeof *std);
    for (int64_t c = 0; c < channels; ++c) {
        double m = (double)w->sum[c] / n, variance = (double)w->squares[c] / n - m * m;
        mean[c] = (float)(m / 255.0);
        std[c] = variance > 1e-6 ? (float)(sqrt(variance) / 255.0) : 1.0f;
    }
    hdf5_lock();
    hid_t access = H5Pcreate(H5P_FILE_ACCESS);
#if H5_VERSION_GE(1, 10, 7)
    H5Pset_file_locking(access, false, true);
#endif
    hid_t file = H5Fopen(w->part, H5F_ACC_RDWR, access);
    H5Pclose(access);
    bool good = file >= 0 && change_numbers(file, "mean", mean) >= 0 &&
                change_numbers(file, "std", std) >= 0;
    if (file >= 0 && H5Fclose(file) < 0) good = false;
    Status st = good ? OK : failed(w, h5_words());
    hdf5_unlock();
    mem_free(&mean);
    mem_free(&std);
    return st;
}

/* After this the new name survives a power failure, too. */
static Status sync_folder(const ImageWriter *w)
{
    char *copy = mem_text(w->out);
    int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int rc = fd < 0 ? -1 : fsync(fd);
    int why = errno;
    if (fd >= 0) close(fd);
    mem_free(&copy);
    if (rc == 0 || why == EINVAL) return OK; /* EINVAL: this file system has no such thing */
    return fail(ERR_IO, "%s: its folder cannot be synced: %s", w->out, strerror(why));
}

static Status put_rest(ImageWriter *w)
{
    if (w->written != w->layout.samples)
        return fail(ERR_BUG, "%s: %lld of %lld samples written", w->part, (long long)w->written,
                    (long long)w->layout.samples);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    for (int64_t i = 0; i < w->written; ++i)
        w->labels[i] = (int32_t)__builtin_bswap32((uint32_t)w->labels[i]);
#endif
    TRY(put_bytes(w, w->labels, w->written * (int64_t)sizeof *w->labels, w->y_offset));
    TRY(put_stats(w));
    if (fsync(w->fd) != 0) return failed(w, strerror(errno));
    if (rename(w->part, w->out) != 0)
        return fail(ERR_IO, "%s: cannot be renamed to %s: %s", w->part, w->out, strerror(errno));
    return sync_folder(w);
}

static void writer_free(ImageWriter **writer)
{
    ImageWriter *w = *writer;
    if (w->fd >= 0) close(w->fd);
    mem_free(&w->out);
    mem_free(&w->part);
    mem_free(&w->labels);
    mem_free(&w->sum);
    mem_free(&w->squares);
    mem_free(writer);
}

Status image_writer_finish(ImageWriter **writer)
{
    Status st = put_rest(*writer);
    if (st != OK)
        image_writer_drop(writer);
    else
        writer_free(writer);
    return st;
}

void image_writer_drop(ImageWriter **writer)
{
    if (!*writer) return;
    if ((*writer)->fd >= 0) unlink((*writer)->part);
    writer_free(writer);
}
