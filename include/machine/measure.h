/* Rates of memory and of files, which weft bench machine and weft doctor measure. */
#ifndef WEFT_MACHINE_MEASURE_H
#define WEFT_MACHINE_MEASURE_H

#include "parallel.h"

/* Measures memory by the triad a = b + s c of STREAM (McCalpin 1995), on all ranks of `world` at
 * the same time. threads: number of threads of this rank; limit_bytes: memory that the ranks of
 * this node may use. Returns the bytes per second that this rank's threads read and write.
 * Collective. */
double memory_rate(const World *world, int threads, double limit_bytes);

/* Writes up to bytes_max bytes at the beginning of an open file, for at most limit_s seconds, and
 * then calls fsync. At most a quarter of the file system's free space is written, but at least 1
 * MiB. *bytes: number of bytes written; *bytes_per_s: their rate, with fsync. Returns 0, or the
 * errno of the call that failed. Not collective. */
int file_write_rate(int file, double bytes_max, double limit_s, double *bytes, double *bytes_per_s);
/* Reads up to bytes_max bytes from byte `begin` of an open file, or up to the file's end, for at
 * most limit_s seconds. They come from the disk if the file system drops its cached pages on
 * request. *bytes_per_s: their rate; 0 if `begin` is not before the file's end. Returns 0 or errno.
 * Not collective. */
int file_read_rate(int file, double begin, double bytes_max, double limit_s, double *bytes_per_s);

#endif
