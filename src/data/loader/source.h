/* One array of a file, read in one of three ways, chosen when it is opened:
 *   mapped   contiguous, this machine's byte order, small samples: copying from the page cache
 *            costs less than a pread (3 KB samples in random order: 2 to 3 times as many per
 *            second), and the kernel's read-around fills the cache. If the file shrinks, the result
 *            is ERR_IO or ERR_DATA, not a crash: see mapped_copy.c.
 *   pread    contiguous, samples of more than SOURCE_MAPPED_MAX bytes: one request per sample,
 *            which suits parallel file systems (page faults would fetch a sample in small pieces)
 *            and reports errors.
 *   HDF5     chunked, compressed, compact or of the other byte order: through the library, under
 *            its lock, with a chunk cache sized for random access.
 * Reading does not change a source, so several threads may read at once. */
#ifndef WEFT_DATA_SOURCE_H
#define WEFT_DATA_SOURCE_H

#include "../data_private.h"

/* An open file that holds arrays. */
typedef struct SourceFile {
    /* borrowed */
    const char *path;
    /* -1: not open */
    int fd;
    /* opened with the first array that needs HDF5; -1: not open */
    hid_t hdf5;
} SourceFile;
/* An array and the way to read it. The caller sets array and file, and dataset to -1, before it
 * calls the functions below. If source_open is not called, the array is read by pread. */
typedef struct Source {
    /* borrowed */
    const DataArray *array;
    SourceFile *file;
    /* owned, page-aligned; NULL: not mapped */
    void *mapped;
    size_t mapped_bytes;
    /* first byte of sample 0, in mapped or whole; NULL: use pread or HDF5 */
    const uint8_t *first;
    /* owned: copy of the array; NULL: none */
    uint8_t *whole;
    /* -1: HDF5 is not used */
    hid_t dataset;
} Source;

/* largest number of bytes that are read for one sample of a mapped array; larger samples are read
 * by pread */
enum { SOURCE_MAPPED_MAX = 64 << 10 };
/* Checks the extent (source_check_extent), and maps the array or opens it in HDF5, if it is read in
 * this way. request_bytes: bytes that are read for one sample. ERR_DATA, ERR_NOINPUT, ERR_IO. */
Status source_open(Source *s, int64_t request_bytes);
/* If the array is small and must be read through HDF5, reads it into memory, from which later reads
 * copy. */
Status source_keep(Source *s);
/* Releases the mapping, the HDF5 array and the copy. Call under hdf5_lock. */
void source_close(Source *s);
/* Checks that the file is still long enough; it may have changed since data_set_open, which another
 * rank may have called. ERR_DATA: the file is too short. */
Status source_check_extent(const Source *s);
/* Reads `count` samples from number `first` on. ERR_IO; ERR_DATA: the file has become shorter. */
Status source_read(const Source *s, int64_t first, int64_t count, void *to);
/* Reads the first `bytes` bytes of the run of `count` samples; HDF5 reads the whole run. */
Status source_read_head(const Source *s, int64_t first, int64_t count, int64_t bytes, void *to);
/* Reads `left` bytes of a contiguous array from sample `first` on with pread. */
Status source_pread(const Source *s, int64_t first, size_t left, void *to);
/* Prefetches the first 4 KiB of a sample of `bytes` bytes into the CPU's cache if the array is
 * mapped. */
void source_prefetch(const Source *s, int64_t sample, int64_t bytes);

#endif
