/* Rates of memory and of files, which weft bench machine and weft doctor measure. */
#ifndef WEFT_MACHINE_MEASURE_H
#define WEFT_MACHINE_MEASURE_H

#include "parallel.h"

/* Measures the rate of memory by the triad a = b + s c of STREAM (McCalpin 1995), on all ranks of
 * world at the same time. Returns the bytes per second that this rank's threads read and write.
 * threads: number of threads of this rank; limit_bytes: largest number of bytes that the ranks of
 * this node may use together. Collective. */
double memory_rate(const World *world, int threads, double limit_bytes);

/* Writes up to bytes_max bytes at the beginning of an open file, for at most limit_s seconds, and
 * then calls fsync. writers: number of processes that do this on the same file system at the same
 * time; together they write at most a quarter of its free space. *bytes: number of bytes written;
 * *bytes_per_s: rate of writing, including fsync. Returns 0, or the errno of the call that failed.
 * Not collective. */
int file_write_rate(int fd, int writers, double bytes_max, double limit_s, double *bytes,
                    double *bytes_per_s);
/* Reads up to `bytes` bytes of an open file, from offset `begin` on, for at most limit_s seconds.
 * The bytes come from the disk if the file system drops its cached pages on request. *bytes_per_s:
 * rate of reading. Returns 0, or the errno of the call that failed; EIO: the file ended before. Not
 * collective. */
int file_read_rate(int fd, double begin, double bytes, double limit_s, double *bytes_per_s);

#endif
