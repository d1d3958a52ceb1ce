/* Reads one array in one of the three ways that source.h describes. */
#include "source.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    /* largest size of HDF5's chunk cache in bytes; a smaller array has a cache of its own size plus
     * 1 MiB */
    CHUNK_CACHE_MAX = 256 << 20,
    /* number of hash slots of HDF5's chunk cache, a prime as HDF5 recommends */
    CHUNK_CACHE_SLOTS = 12421,
    /* largest array, in bytes, that source_keep reads into memory */
    WHOLE_MAX = 64 << 20,
    CACHE_LINE = 64,
    /* largest number of bytes of a sample that are prefetched */
    PREFETCH_MAX = 4096
};

static Status read_hdf5(const Source *s, int64_t first, int64_t count, void *to)
{
    hsize_t start[SHAPE_DIMS] = {(hsize_t)first}, size[SHAPE_DIMS] = {(hsize_t)count};
    for (int i = 1; i < s->array->ndim; ++i) size[i] = (hsize_t)s->array->dim[i];
    hdf5_lock();
    hid_t space = H5Dget_space(s->dataset);
    hid_t memory = H5Screate_simple(s->array->ndim, size, NULL);
    herr_t rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
    if (rc >= 0)
        rc = H5Dread(s->dataset, element_native(s->array->type), memory, space, H5P_DEFAULT, to);
    const char *reason = rc < 0 ? h5_error_text() : "";
    H5Sclose(memory);
    H5Sclose(space);
    hdf5_unlock();
    if (rc >= 0) return OK;
    return fail(ERR_IO, "%s: sample %lld of %s cannot be read: %s; check it with `weft data check`",
                s->file->path, (long long)first, s->array->name, reason);
}

/* Returns the status of a failed read: ERR_DATA if the file has become shorter since it was opened,
 * else ERR_IO with the reason `why`. */
static Status read_fail(const Source *s, int64_t first, const char *why)
{
    struct stat st;
    const int64_t end = s->array->offset + s->array->dim[0] * s->array->sample_bytes;
    if (fstat(s->file->fd, &st) == 0 && (int64_t)st.st_size < end)
        return fail(ERR_DATA,
                    "%s: sample %lld of %s: the file became shorter while it was being read, it "
                    "has %lld bytes; make or copy it again",
                    s->file->path, (long long)first, s->array->name, (long long)st.st_size);
    return fail(ERR_IO, "%s: reading sample %lld of %s failed: %s", s->file->path, (long long)first,
                s->array->name, why);
}

Status source_pread(const Source *s, int64_t first, size_t left, void *to)
{
    off_t at = (off_t)(s->array->offset + first * s->array->sample_bytes);
    for (uint8_t *p = to; left > 0;) {
        ssize_t n = pread(s->file->fd, p, left, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return read_fail(s, first, n < 0 ? strerror(errno) : "no bytes were read");
        p += n, at += n, left -= (size_t)n;
    }
    return OK;
}

Status source_read_head(const Source *s, int64_t first, int64_t count, int64_t bytes, void *to)
{
    if (first < 0 || count < 0 || first > s->array->dim[0] - count)
        return fail(ERR_BUG, "%s: sample %lld requested, but there are %lld", s->file->path,
                    (long long)(first + count - 1), (long long)s->array->dim[0]);
    if (s->base) {
        if (mapped_copy(to, s->base + first * s->array->sample_bytes, (size_t)bytes)) return OK;
        return read_fail(s, first, "its mapped pages cannot be read");
    }
    if (s->dataset >= 0) return read_hdf5(s, first, count, to);
    return source_pread(s, first, (size_t)bytes, to);
}

Status source_read(const Source *s, int64_t first, int64_t count, void *to)
{
    return source_read_head(s, first, count, count * s->array->sample_bytes, to);
}

static void source_map(Source *s)
{
    int64_t page = sysconf(_SC_PAGESIZE), base = s->array->offset & ~(page - 1);
    int64_t bytes = s->array->offset + s->array->dim[0] * s->array->sample_bytes - base;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, s->file->fd, (off_t)base);
    /* Some file systems cannot map files; pread is used instead. */
    if (p == MAP_FAILED) return;
    mapped_copy_init();
    s->mapped = p;
    s->mapped_bytes = (size_t)bytes;
    s->base = (const uint8_t *)p + (s->array->offset - base);
}

static Status source_open_hdf5(Source *s)
{
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    /* The call below sets is_external, and nothing reads it: facts.c has refused external links
     * when the set was opened. */
    bool is_external;
    hid_t access = hdf5_access_without_links(&is_external);
    /* Samples are read in random order, so each chunk is needed many times. A small array fits into
     * the cache; for a large array the cache keeps the chunks that were used last. */
    size_t cache = bytes < CHUNK_CACHE_MAX ? (size_t)bytes + (1 << 20) : CHUNK_CACHE_MAX;
    H5Pset_chunk_cache(access, CHUNK_CACHE_SLOTS, cache, 0.0);
    s->dataset = H5Dopen2(s->file->hdf5, s->array->name, access);
    H5Pclose(access);
    if (s->dataset < 0)
        return fail(ERR_DATA, "%s: %s cannot be opened: %s", s->file->path, s->array->name,
                    h5_error_text());
    return OK;
}

Status source_open(Source *s, int64_t request_bytes)
{
    TRY(source_check_extent(s));
    if (s->array->offset >= 0) {
        if (request_bytes <= SOURCE_MAPPED_MAX) source_map(s);
        return OK;
    }
    hdf5_lock();
    Status st = s->file->hdf5 >= 0 ? OK : h5_open(&s->file->hdf5, s->file->path);
    if (st == OK) st = source_open_hdf5(s);
    hdf5_unlock();
    return st;
}

Status source_keep(Source *s)
{
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    if (s->dataset < 0 || bytes > WHOLE_MAX) return OK;
    s->copy = mem_new((size_t)bytes);
    TRY(source_read(s, 0, s->array->dim[0], s->copy));
    s->base = s->copy;
    return OK;
}

void source_close(Source *s)
{
    if (s->mapped) munmap(s->mapped, s->mapped_bytes);
    if (s->dataset >= 0) H5Dclose(s->dataset);
    mem_free(&s->copy);
}

Status source_check_extent(const Source *s)
{
    const DataArray *a = s->array;
    struct stat st;
    if (fstat(s->file->fd, &st) != 0) return fail(ERR_IO, "%s: %s", s->file->path, strerror(errno));
    if (a->offset < 0 || a->offset + a->dim[0] * a->sample_bytes <= (int64_t)st.st_size) return OK;
    return fail(ERR_DATA, "%s: is truncated: %s should end at byte %lld, the file has %lld",
                s->file->path, a->name, (long long)(a->offset + a->dim[0] * a->sample_bytes),
                (long long)st.st_size);
}

void source_prefetch(const Source *s, int64_t sample, int64_t bytes)
{
    if (!s->mapped) return;
    const uint8_t *p = s->base + sample * bytes;
    if (bytes > PREFETCH_MAX) bytes = PREFETCH_MAX;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(p + i, 0, 3);
}
