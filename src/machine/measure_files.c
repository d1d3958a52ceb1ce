/* Measures the rates of writing and of reading a file. */
#include "machine/measure.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <string.h>
#include <sys/statfs.h>
#include <unistd.h>

enum { BLOCK_BYTES = 1 << 20 };

/* Returns bytes_max or, if it is less, a quarter of the free space on the file system; at least a
 * block. */
static double bytes_to_write(int file, double bytes_max)
{
    struct statfs fs;
    double quarter =
        fstatfs(file, &fs) == 0 ? (double)fs.f_bavail * (double)fs.f_bsize / 4 : BLOCK_BYTES;
    return fmax(fmin(bytes_max, quarter), BLOCK_BYTES);
}

int file_write_rate(int file, double bytes_max, double limit_s, double *bytes, double *bytes_per_s)
{
    char *block = mem_new(BLOCK_BYTES);
    int error = 0;
    memset(block, 'w', BLOCK_BYTES);
    bytes_max = bytes_to_write(file, bytes_max);
    double begin_s = clock_s();
    for (*bytes = 0; !error && *bytes < bytes_max && clock_s() - begin_s < limit_s;
         *bytes += BLOCK_BYTES) {
        ssize_t written = pwrite(file, block, BLOCK_BYTES, (off_t)*bytes);
        if (written != BLOCK_BYTES) error = written < 0 ? errno : ENOSPC;
    }
    if (!error && fsync(file) != 0) error = errno;
    *bytes_per_s = *bytes / (clock_s() - begin_s);
    mem_free(&block);
    return error;
}

int file_read_rate(int file, double begin, double bytes_max, double limit_s, double *bytes_per_s)
{
    char *block = mem_new(BLOCK_BYTES);
    double done = 0;
    ssize_t got = 1;
    (void)!posix_fadvise(file, (off_t)begin, (off_t)bytes_max, POSIX_FADV_DONTNEED);
    double begin_s = clock_s();
    while (got > 0 && done < bytes_max && clock_s() - begin_s < limit_s) {
        got =
            pread(file, block, (size_t)fmin(BLOCK_BYTES, bytes_max - done), (off_t)(begin + done));
        if (got > 0) done += (double)got;
    }
    int error = got < 0 ? errno : 0;
    *bytes_per_s = done / (clock_s() - begin_s);
    mem_free(&block);
    return error;
}
