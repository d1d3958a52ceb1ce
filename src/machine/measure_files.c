/* Measures the rates of writing and of reading a file. */
#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 20 };

/* Returns a writer's part of a quarter of the free space, at least one byte; BLOCK_BYTES if the
 * free space is not known. */
static double bytes_free(int file, int writers)
{
    struct statfs fs;
    if (fstatfs(file, &fs) != 0) return BLOCK_BYTES;
    return fmax((double)fs.f_bavail * (double)fs.f_bsize / 4 / writers, 1);
}

int file_write_rate(int fd, int writers, double bytes_max, double limit_s, double *bytes,
                    double *bytes_per_s)
{
    char *block = mem_new(BLOCK_BYTES);
    int error = 0;
    memset(block, 'w', BLOCK_BYTES);
    bytes_max = floor(fmin(bytes_max, bytes_free(fd, writers)));
    double begin_s = clock_s();
    *bytes = 0;
    while (!error && *bytes < bytes_max && clock_s() - begin_s < limit_s) {
        ssize_t count = (ssize_t)fmin(BLOCK_BYTES, bytes_max - *bytes);
        ssize_t written = pwrite(fd, block, (size_t)count, (off_t)*bytes);
        if (written != count) error = written < 0 ? errno : ENOSPC;
        *bytes += fmax((double)written, 0);
    }
    if (!error && fsync(fd) != 0) error = errno;
    *bytes_per_s = *bytes / (clock_s() - begin_s);
    mem_free(&block);
    return error;
}

int file_read_rate(int fd, double begin, double bytes, double limit_s, double *bytes_per_s)
{
    char *block = mem_new(BLOCK_BYTES);
    double done = 0;
    int error = 0;
    (void)!posix_fadvise(fd, (off_t)begin, (off_t)bytes, POSIX_FADV_DONTNEED);
    double begin_s = clock_s();
    while (!error && done < bytes && clock_s() - begin_s < limit_s) {
        size_t count = (size_t)fmin(BLOCK_BYTES, bytes - done);
        ssize_t got = pread(fd, block, count, (off_t)(begin + done));
        if (got <= 0) error = got < 0 ? errno : EIO;
        done += fmax((double)got, 0);
    }
    *bytes_per_s = done / (clock_s() - begin_s);
    mem_free(&block);
    return error;
}
