/* Reads samples by number. Three ways, chosen for each array when the reader is made:
 *   mapped   contiguous, this machine's byte order, small samples: a copy out of the page cache
 *            costs less than the system call of a pread (3 KB samples in random order: 2 to 3 times
 *            as many a second), and read-around warms the cache by itself. A file that shrinks
 *            meanwhile is an ERR_IO, not a dead process: see map.c.
 *   pread    contiguous, samples above MAP_SAMPLE bytes: one request a sample, which is what a
 *            parallel file system likes (page faults would come 4 KiB at a time), and errors come
 *            back as errors.
 *   HDF5     chunked, compressed, compact or foreign byte order: through the library, under its
 *            lock, with a chunk cache sized for random access. y is then read whole at the start
 *            where it is small.
 * In a token set a sample is `context` tokens of one long row, and a run is of tokens.
 * A reader has its own file descriptor and belongs to one thread. */
#include "data_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAP_SAMPLE = 64 << 10, CACHE_BYTES = 256 << 20, WHOLE_BYTES = 64 << 20, LINE = 64 };

/* one array as it is read */
typedef struct Source {
    const DataArray *array;
    /* owned; NULL: not mapped */
    void *mapped;
    size_t mapped_bytes;
    /* byte 0 of sample 0: mapped or in whole; NULL: pread or HDF5 */
    const uint8_t *first;
    /* owned; NULL: not in memory */
    uint8_t *whole;
    /* -1: not through HDF5 */
    hid_t dataset;
} Source;

struct Reader {
    DataSet set;
    int fd;
    /* -1 where HDF5 is not needed */
    hid_t file;
    Source x, y;
    /* one sample of y, raw */
    uint8_t *y_row;
};

static Status read_hdf5(const Reader *r, const Source *s, int64_t first, int64_t count, void *to)
{
    hsize_t start[SHAPE_DIMS] = {(hsize_t)first}, size[SHAPE_DIMS] = {(hsize_t)count};
    for (int i = 1; i < s->array->ndim; ++i) size[i] = (hsize_t)s->array->dim[i];
    hdf5_lock();
    hid_t space = H5Dget_space(s->dataset);
    hid_t memory = H5Screate_simple(s->array->ndim, size, NULL);
    herr_t rc = H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, size, NULL);
    if (rc >= 0)
        rc = H5Dread(s->dataset, element_native(s->array->type), memory, space, H5P_DEFAULT, to);
    const char *words = rc < 0 ? h5_words() : "";
    H5Sclose(memory);
    H5Sclose(space);
    hdf5_unlock();
    if (rc >= 0) return OK;
    return fail(ERR_IO, "%s: sample %lld of %s cannot be read: %s; check it with `weft data check`",
                r->set.path, (long long)first, s->array->name, words);
}

static Status read_file(const Reader *r, const Source *s, int64_t first, size_t left, void *to)
{
    off_t at = (off_t)(s->array->offset + first * s->array->sample_bytes);
    for (uint8_t *p = to; left > 0;) {
        ssize_t n = pread(r->fd, p, left, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0)
            return fail(ERR_IO, "%s: reading sample %lld of %s at byte %lld failed: %s",
                        r->set.path, (long long)first, s->array->name, (long long)at,
                        n < 0 ? strerror(errno) : "the file became shorter; make it again");
        p += n, at += n, left -= (size_t)n;
    }
    return OK;
}

/* The first `bytes` of these samples; HDF5 reads all of them. */
static Status source_read_head(const Reader *r, const Source *s, int64_t first, int64_t count,
                               int64_t bytes, void *to)
{
    if (first < 0 || count < 0 || first > s->array->dim[0] - count)
        return fail(ERR_BUG, "%s: sample %lld asked for, there are %lld", r->set.path,
                    (long long)(first + count - 1), (long long)s->array->dim[0]);
    if (s->first) {
        if (map_copy(to, s->first + first * s->array->sample_bytes, (size_t)bytes)) return OK;
        return fail(ERR_IO,
                    "%s: sample %lld of %s: the file became shorter or its file system failed "
                    "while it was being read; make or copy it again",
                    r->set.path, (long long)first, s->array->name);
    }
    if (s->dataset >= 0) return read_hdf5(r, s, first, count, to);
    return read_file(r, s, first, (size_t)bytes, to);
}

static Status source_read(const Reader *r, const Source *s, int64_t first, int64_t count, void *to)
{
    return source_read_head(r, s, first, count, count * s->array->sample_bytes, to);
}

static void source_map(const Reader *r, Source *s)
{
    int64_t page = sysconf(_SC_PAGESIZE), base = s->array->offset & ~(page - 1);
    int64_t bytes = s->array->offset + s->array->dim[0] * s->array->sample_bytes - base;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, r->fd, (off_t)base);
    /* this file system cannot: the same bytes by pread */
    if (p == MAP_FAILED) return;
    map_guard_install();
    s->mapped = p;
    s->mapped_bytes = (size_t)bytes;
    s->first = (const uint8_t *)p + (s->array->offset - base);
}

static Status source_open_hdf5(Reader *r, Source *s)
{
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    bool elsewhere;
    hid_t access = hdf5_access_inside(&elsewhere);
    /* Random order comes back to every chunk: keep all of a small set, the newest part of a big
     * one. */
    size_t cache = bytes < CACHE_BYTES ? (size_t)bytes + (1 << 20) : CACHE_BYTES;
    H5Pset_chunk_cache(access, 12421, cache, 0.0);
    s->dataset = H5Dopen2(r->file, s->array->name, access);
    H5Pclose(access);
    if (s->dataset < 0)
        return fail(ERR_DATA, "%s: %s cannot be opened: %s", r->set.path, s->array->name,
                    h5_words());
    return OK;
}

/* Bytes that a sample takes: one read. */
static int64_t request_bytes(const Reader *r, const DataArray *a)
{
    return a->sample_bytes * (data_kind(&r->set)->next_token ? r->set.context : 1);
}

static Status source_open(Reader *r, Source *s)
{
    if (s->array->offset >= 0) {
        if (request_bytes(r, s->array) <= MAP_SAMPLE) source_map(r, s);
        return OK;
    }
    hdf5_lock();
    Status st = r->file >= 0 ? OK : h5_open(&r->file, r->set.path);
    if (st == OK) st = source_open_hdf5(r, s);
    hdf5_unlock();
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    if (st != OK || s != &r->y || bytes > WHOLE_BYTES) return st;
    s->whole = mem_new((size_t)bytes);
    TRY(source_read(r, s, 0, s->array->dim[0], s->whole));
    s->first = s->whole;
    return OK;
}

static void source_close(Source *s)
{
    if (s->mapped) munmap(s->mapped, s->mapped_bytes);
    if (s->dataset >= 0) H5Dclose(s->dataset);
    mem_free(&s->whole);
}

/* The file may have changed since data_set_open, on another rank even. */
static Status extent_check(const Reader *r, const DataArray *a)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0) return fail(ERR_IO, "%s: %s", r->set.path, strerror(errno));
    if (a->offset < 0 || a->offset + a->dim[0] * a->sample_bytes <= (int64_t)st.st_size) return OK;
    return fail(ERR_DATA, "%s: is truncated: %s should end at byte %lld, the file has %lld",
                r->set.path, a->name, (long long)(a->offset + a->dim[0] * a->sample_bytes),
                (long long)st.st_size);
}

static Status reader_open(Reader *r, bool x, bool y)
{
    r->fd = open(r->set.path, O_RDONLY | O_CLOEXEC);
    if (r->fd < 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", r->set.path, strerror(errno));
    if (x) {
        TRY(extent_check(r, &r->set.x));
        if (request_bytes(r, &r->set.x) > MAP_SAMPLE) posix_fadvise(r->fd, 0, 0, POSIX_FADV_RANDOM);
        TRY(source_open(r, &r->x));
    }
    if (y) {
        TRY(extent_check(r, &r->set.y));
        TRY(source_open(r, &r->y));
        r->y_row = mem_new((size_t)r->set.y.sample_bytes);
    }
    return OK;
}

Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y)
{
    Reader *r = mem_new(sizeof *r);
    r->set = *set;
    r->fd = -1;
    r->file = r->x.dataset = r->y.dataset = -1;
    r->x.array = &r->set.x;
    r->y.array = &r->set.y;
    *reader = r;
    Status st = reader_open(r, x, y && !data_kind(set)->next_token);
    if (st != OK) reader_free(reader);
    return st;
}

Status reader_new(Reader **reader, const DataSet *set)
{
    return reader_new_part(reader, set, true, true);
}

void reader_free(Reader **reader)
{
    Reader *r = *reader;
    if (!r) return;
    hdf5_lock();
    source_close(&r->x);
    source_close(&r->y);
    if (r->file >= 0) H5Fclose(r->file);
    hdf5_unlock();
    if (r->fd >= 0) close(r->fd);
    mem_free(&r->y_row);
    mem_free(reader);
}

Status token_fail(const DataSet *set, int64_t position, int64_t token)
{
    return fail(ERR_DATA,
                "%s: token %lld of %s is %lld, but there are %lld in the vocabulary (0 to %lld); "
                "correct the data set or model.vocab",
                set->path, (long long)position, set->x.name, (long long)token,
                (long long)set->vocab, (long long)set->vocab - 1);
}

Status label_fail(const DataSet *set, int64_t sample, int64_t label)
{
    if (label < 0)
        return fail(ERR_DATA,
                    "%s: sample %lld: its label in %s is %lld; labels begin at 0: correct the data "
                    "set",
                    set->path, (long long)sample, set->y.name, (long long)label);
    return fail(ERR_DATA,
                "%s: sample %lld: its label in %s is %lld, but there are %lld classes (0 to %lld); "
                "correct the data set or model.classes",
                set->path, (long long)sample, set->y.name, (long long)label,
                (long long)set->classes, (long long)set->classes - 1);
}

static Status y_read(Reader *r, int64_t sample, int32_t *label, float *target)
{
    const DataArray *y = &r->set.y;
    TRY(source_read(r, &r->y, sample, 1, r->y_row));
    if (target) element_row(y->type, target, 1, r->y_row, 1, r->set.target_width, 1.0f, 0.0f);
    if (!label) return OK;
    int64_t v = element_integer(y->type, r->y_row);
    if (v < 0 || v >= r->set.classes) return label_fail(&r->set, sample, v);
    *label = (int32_t)v;
    return OK;
}

Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target)
{
    int64_t count = data_kind(&reader->set)->next_token ? reader->set.context : 1;
    if (x) TRY(source_read(reader, &reader->x, sample * count, count, x));
    return label || target ? y_read(reader, sample, label, target) : OK;
}

Status reader_get_run(Reader *reader, int64_t first, int64_t count, void *x)
{
    return source_read(reader, &reader->x, first, count, x);
}

Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x)
{
    return source_read_head(reader, &reader->x, sample, 1, bytes, x);
}

void reader_hint(const Reader *reader, int64_t sample)
{
    int64_t bytes = request_bytes(reader, &reader->set.x);
    if (!reader->x.mapped || sample < 0 || sample >= reader->set.samples) return;
    const uint8_t *p = reader->x.first + sample * bytes;
    if (bytes > 4096) bytes = 4096;
    for (int64_t i = 0; i < bytes; i += LINE) __builtin_prefetch(p + i, 0, 3);
}
