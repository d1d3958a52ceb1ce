/* Reads one array of a file in one of three ways, which is chosen when the array is opened:
 *   mapped   contiguous, this machine's byte order, small samples: copying from the page cache
 *            costs less than a pread (3 KB samples in random order: 2 to 3 times as many per
 *            second), and the kernel's read-around fills the cache. If the file shrinks, the result
 *            is ERR_IO or ERR_DATA, not a crash: see mapped_copy.c.
 *   pread    contiguous, samples of more than SOURCE_MAPPED_MAX bytes: one request per sample,
 *            which suits parallel file systems (page faults would fetch a sample in small pieces)
 *            and reports errors. Also the way if a file cannot be mapped.
 *   HDF5     chunked, compressed, compact or of the other byte order: through the library, under
 *            its lock, with a chunk cache sized for random access.
 * Reading does not change a source, so several threads may read at the same time. */
#ifndef WEFT_DATA_SOURCE_H
#define WEFT_DATA_SOURCE_H

#include "../data_private.h"

/* An open file that holds arrays. */
typedef struct SourceFile {
    /* borrowed */
    const char *path;
    /* descriptor for pread and mapping; -1: not open */
    int fd;
    /* HDF5's handle, opened with the first array that needs HDF5; -1: not open */
    hid_t hdf5;
} SourceFile;
/* An array and the way to read it. Before it calls the functions below, the caller sets array and
 * file, sets dataset to -1, and leaves the other fields zero. If source_open is not called, the
 * array is read by pread. */
typedef struct Source {
    /* borrowed */
    const DataArray *array;
    SourceFile *file;
    /* mapping of the file, which begins at a page; owned. NULL: not mapped */
    void *mapped;
    size_t mapped_bytes;
    /* first byte of sample 0 in `mapped` or in `copy`; NULL: use pread or HDF5 */
    const uint8_t *base;
    /* copy of the array, made by source_keep; owned. NULL: none */
    uint8_t *copy;
    /* the array's handle in HDF5; -1: HDF5 is not used */
    hid_t dataset;
} Source;

/* largest number of bytes of a sample that is read from a mapping; larger samples are read by
 * pread */
enum { SOURCE_MAPPED_MAX = 64 << 10 };
/* Checks the extent of the array (source_check_extent). Then maps the array, or opens it in HDF5,
 * if it is to be read in that way. request_bytes: size of a sample in bytes. ERR_DATA, ERR_NOINPUT,
 * ERR_IO. */
Status source_open(Source *s, int64_t request_bytes);
/* Reads the whole array into memory, from which later calls copy, if it is small and HDF5 is needed
 * to read it. Else does nothing. */
Status source_keep(Source *s);
/* Releases the mapping, the HDF5 array and the copy. Call under hdf5_lock. */
void source_close(Source *s);
/* Checks that the file is long enough for the array: it may have changed since data_set_open, which
 * another rank may have called. ERR_DATA: the file is too short. */
Status source_check_extent(const Source *s);
/* Reads `count` samples from number `first` on. ERR_IO; ERR_DATA: the file has become shorter. */
Status source_read(const Source *s, int64_t first, int64_t count, void *to);
/* Reads the first `bytes` bytes of `count` consecutive samples from number `first` on. `to` must
 * have space for all of them, since HDF5 always reads whole samples. */
Status source_read_head(const Source *s, int64_t first, int64_t count, int64_t bytes, void *to);
/* Reads `left` bytes of a contiguous array by pread, beginning at sample `first`. */
Status source_pread(const Source *s, int64_t first, size_t left, void *to);
/* Prefetches the first 4 KiB of a sample into the CPU's cache if the array is mapped. bytes: size
 * of a sample. */
void source_prefetch(const Source *s, int64_t sample, int64_t bytes);

#endif
