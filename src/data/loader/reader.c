/* Reads samples by number, in one of three ways per array, chosen when the reader is created:
 *   mapped   contiguous, this machine's byte order, small samples: copying from the page cache
 *            costs less than a pread (3 KB samples in random order: 2 to 3 times as many per
 *            second), and the kernel's read-around fills the cache. If the file shrinks, the result
 *            is ERR_IO or ERR_DATA, not a crash: see mapped_copy.c.
 *   pread    contiguous, samples of more than MAPPED_SAMPLE_MAX bytes: one request per sample,
 *            which suits parallel file systems (page faults would fetch 4 KiB at a time) and
 *            reports errors.
 *   HDF5     chunked, compressed, compact or of the other byte order: through the library, under
 *            its lock, with a chunk cache sized for random access. A small y is then read whole at
 *            the start.
 * In a token set a sample is `context` tokens of one long array, but reader_get_run counts tokens.
 * Encoded pictures are read by pread, after their index entry; the index is not kept in memory (10
 * MB for a million pictures). Reading does not change a reader, so several threads may read at
 * once. */
#include "../fields/fields_private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MAPPED_SAMPLE_MAX = 64 << 10,
    CHUNK_CACHE_MAX = 256 << 20,
    /* number of hash slots of HDF5's chunk cache, a prime as HDF5 recommends */
    CHUNK_CACHE_SLOTS = 12421,
    /* a y of at most these bytes that HDF5 must read is kept in memory */
    WHOLE_Y_MAX = 64 << 20,
    CACHE_LINE = 64,
    /* bytes of a sample that are prefetched */
    PREFETCH_MAX = 4096
};

/* One array and the way to read it. */
typedef struct Source {
    const DataArray *array;
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

struct Reader {
    DataSet set;
    int fd;
    /* -1: HDF5 is not used */
    hid_t file;
    Source x, y, ids, id_first;
    /* owned: a reader for each file of a set of several files; fd, file and the sources are then
     * unused */
    Reader **file_reader;
    /* owned: sets of fields, which use nothing else; NULL: other kinds */
    FieldReader *fields;
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
    const char *reason = rc < 0 ? h5_error_text() : "";
    H5Sclose(memory);
    H5Sclose(space);
    hdf5_unlock();
    if (rc >= 0) return OK;
    return fail(ERR_IO, "%s: sample %lld of %s cannot be read: %s; check it with `weft data check`",
                r->set.path, (long long)first, s->array->name, reason);
}

/* Reports a failed read: ERR_DATA if the file has become shorter since it was opened; else ERR_IO,
 * with the reason `why`. */
static Status read_fail(const Reader *r, const Source *s, int64_t first, const char *why)
{
    struct stat st;
    const int64_t end = s->array->offset + s->array->dim[0] * s->array->sample_bytes;
    if (fstat(r->fd, &st) == 0 && (int64_t)st.st_size < end)
        return fail(ERR_DATA,
                    "%s: sample %lld of %s: the file became shorter while it was being read, it "
                    "has %lld bytes; make or copy it again",
                    r->set.path, (long long)first, s->array->name, (long long)st.st_size);
    return fail(ERR_IO, "%s: reading sample %lld of %s failed: %s", r->set.path, (long long)first,
                s->array->name, why);
}

/* Reads `left` bytes from sample `first` on with pread. */
static Status read_file(const Reader *r, const Source *s, int64_t first, size_t left, void *to)
{
    off_t at = (off_t)(s->array->offset + first * s->array->sample_bytes);
    for (uint8_t *p = to; left > 0;) {
        ssize_t n = pread(r->fd, p, left, at);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return read_fail(r, s, first, n < 0 ? strerror(errno) : "no bytes were read");
        p += n, at += n, left -= (size_t)n;
    }
    return OK;
}

/* Reads the first `bytes` bytes of `count` samples; HDF5 reads the samples whole. */
static Status source_read_head(const Reader *r, const Source *s, int64_t first, int64_t count,
                               int64_t bytes, void *to)
{
    if (first < 0 || count < 0 || first > s->array->dim[0] - count)
        return fail(ERR_BUG, "%s: sample %lld requested, but there are %lld", r->set.path,
                    (long long)(first + count - 1), (long long)s->array->dim[0]);
    if (s->first) {
        if (mapped_copy(to, s->first + first * s->array->sample_bytes, (size_t)bytes)) return OK;
        return read_fail(r, s, first, "its mapped pages cannot be read");
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
    /* Some file systems cannot map files; pread is used instead. */
    if (p == MAP_FAILED) return;
    mapped_copy_init();
    s->mapped = p;
    s->mapped_bytes = (size_t)bytes;
    s->first = (const uint8_t *)p + (s->array->offset - base);
}

static Status source_open_hdf5(Reader *r, Source *s)
{
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    bool is_external;
    hid_t access = hdf5_access_without_links(&is_external);
    /* Random access returns to every chunk: all of a small set is cached, or the chunks of a large
     * one that were used last. */
    size_t cache = bytes < CHUNK_CACHE_MAX ? (size_t)bytes + (1 << 20) : CHUNK_CACHE_MAX;
    H5Pset_chunk_cache(access, CHUNK_CACHE_SLOTS, cache, 0.0);
    s->dataset = H5Dopen2(r->file, s->array->name, access);
    H5Pclose(access);
    if (s->dataset < 0)
        return fail(ERR_DATA, "%s: %s cannot be opened: %s", r->set.path, s->array->name,
                    h5_error_text());
    return OK;
}

/* Returns the bytes that reading one sample of the set reads from the array. */
static int64_t request_bytes(const Reader *r, const DataArray *a)
{
    return a->sample_bytes * (data_kind(&r->set)->next_token ? r->set.context : 1);
}

static Status source_open(Reader *r, Source *s)
{
    if (s->array->offset >= 0) {
        if (request_bytes(r, s->array) <= MAPPED_SAMPLE_MAX) source_map(r, s);
        return OK;
    }
    hdf5_lock();
    Status st = r->file >= 0 ? OK : h5_open(&r->file, r->set.path);
    if (st == OK) st = source_open_hdf5(r, s);
    hdf5_unlock();
    int64_t bytes = s->array->dim[0] * s->array->sample_bytes;
    if (st != OK || s != &r->y || bytes > WHOLE_Y_MAX) return st;
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

/* Checks that the file is still long enough; it may have changed since data_set_open, which another
 * rank may have called. */
static Status extent_check(const Reader *r, const DataArray *a)
{
    struct stat st;
    if (fstat(r->fd, &st) != 0) return fail(ERR_IO, "%s: %s", r->set.path, strerror(errno));
    if (a->offset < 0 || a->offset + a->dim[0] * a->sample_bytes <= (int64_t)st.st_size) return OK;
    return fail(ERR_DATA, "%s: is truncated: %s should end at byte %lld, the file has %lld",
                r->set.path, a->name, (long long)(a->offset + a->dim[0] * a->sample_bytes),
                (long long)st.st_size);
}

static Status encoded_open(Reader *r)
{
    TRY(extent_check(r, &r->set.x));
    TRY(extent_check(r, &r->set.index));
    if (r->set.oriented) TRY(extent_check(r, &r->set.orient));
    posix_fadvise(r->fd, 0, 0, POSIX_FADV_RANDOM);
    return OK;
}

static Status reader_open(Reader *r, bool x, bool y)
{
    r->fd = file_open(r->set.path, O_RDONLY);
    if (r->fd < 0)
        return fail(ERR_NOINPUT, "%s: cannot be opened: %s", r->set.path, file_error(errno));
    if (x && r->set.encoded) {
        TRY(encoded_open(r));
    } else if (x) {
        TRY(extent_check(r, &r->set.x));
        if (request_bytes(r, &r->set.x) > MAPPED_SAMPLE_MAX)
            posix_fadvise(r->fd, 0, 0, POSIX_FADV_RANDOM);
        TRY(source_open(r, &r->x));
    }
    if (x && r->set.fields > 0) {
        TRY(extent_check(r, &r->set.ids));
        TRY(source_open(r, &r->ids));
    }
    if (x && r->set.id_first.ndim) {
        TRY(extent_check(r, &r->set.id_first));
        TRY(source_open(r, &r->id_first));
    }
    if (y) {
        TRY(extent_check(r, &r->set.y));
        TRY(source_open(r, &r->y));
    }
    return OK;
}

/* Creates a reader for each file of the set. */
static Status open_files(Reader *r, bool x, bool y)
{
    DataSet *file = mem_new(sizeof *file);
    Status st = OK;
    r->file_reader = mem_new((size_t)r->set.file_count * sizeof *r->file_reader);
    for (int i = 0; st == OK && i < r->set.file_count; ++i) {
        data_set_file(&r->set, i, file);
        st = reader_new_part(&r->file_reader[i], file, x, y);
    }
    mem_free(&file);
    return st;
}

/* Returns the reader of the file that holds *sample, and makes *sample its number in that file. */
static const Reader *reader_of(const Reader *r, int64_t *sample)
{
    if (!r->file_reader) return r;
    int file = files_find_sample(&r->set, *sample);
    *sample -= r->set.file[file].first;
    return r->file_reader[file];
}

Status reader_new_part(Reader **reader, const DataSet *set, bool x, bool y)
{
    Reader *r = mem_new(sizeof *r);
    r->set = *set;
    r->fd = -1;
    r->file = r->x.dataset = r->y.dataset = r->ids.dataset = r->id_first.dataset = -1;
    r->x.array = &r->set.x;
    r->y.array = &r->set.y;
    r->ids.array = &r->set.ids;
    r->id_first.array = &r->set.id_first;
    *reader = r;
    y = y && !data_kind(set)->next_token && !data_kind(set)->has_boxes;
    if (data_kind(set)->has_fields) return field_reader_new(&r->fields, set);
    Status st = set->file_count ? open_files(r, x, y) : reader_open(r, x, y);
    if (st != OK) reader_free(reader);
    return st;
}

Status reader_new_array(Reader **reader, const DataSet *set, const DataArray *array)
{
    DataSet *only_x = mem_new(sizeof *only_x);
    *only_x = *set;
    only_x->encoded = false;
    only_x->kind = DATA_TABLE;
    only_x->fields = 0;
    only_x->id_first.ndim = 0;
    only_x->x = *array;
    Status st = reader_new_part(reader, only_x, true, false);
    mem_free(&only_x);
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
    for (int i = 0; r->file_reader && i < r->set.file_count; ++i) reader_free(&r->file_reader[i]);
    mem_free(&r->file_reader);
    field_reader_free(&r->fields);
    hdf5_lock();
    source_close(&r->x);
    source_close(&r->y);
    source_close(&r->ids);
    source_close(&r->id_first);
    if (r->file >= 0) H5Fclose(r->file);
    hdf5_unlock();
    if (r->fd >= 0) close(r->fd);
    mem_free(reader);
}

Status token_fail(const DataSet *set, int64_t position, const void *raw)
{
    char token[24];
    return fail(ERR_DATA,
                "%s: token %lld of %s is %s, but there are %lld in the vocabulary (0 to %lld); "
                "correct the data set or model.vocab",
                set->path, (long long)position, set->x.name,
                element_integer_text(set->x.type, raw, token), (long long)set->vocab,
                (long long)set->vocab - 1);
}

/* Reads a sample's label, as its class, or its targets. */
static Status y_read(const Reader *r, int64_t sample, int32_t *label, float *target)
{
    const DataArray *y = &r->set.y;
    /* raw: the label or targets as they are stored; in `one` if they have at most 8 bytes */
    uint64_t one;
    if (data_kind(&r->set)->has_boxes)
        return fail(ERR_DATA, "%s: is a set of boxes, whose samples have no label", r->set.path);
    uint8_t *raw =
        y->sample_bytes <= (int64_t)sizeof one ? (uint8_t *)&one : mem_new((size_t)y->sample_bytes);
    Status st = source_read(r, &r->y, sample, 1, raw);
    if (st == OK && target)
        element_scale_row(y->type, target, 1, raw, 1, r->set.target_width, 1.0f, 0.0f);
    if (st == OK && label) {
        int64_t class = label_class(&r->set, element_integer(y->type, raw));
        if (class < 0 || class >= r->set.classes) st = label_fail(&r->set, sample, raw);
        *label = (int32_t) class;
    }
    if (raw != (uint8_t *)&one) mem_free(&raw);
    return st;
}

Status reader_get(Reader *reader, int64_t sample, void *x, int32_t *label, float *target)
{
    if (reader->fields) return field_read(reader->fields, sample, true, x, target);
    const Reader *r = reader_of(reader, &sample);
    int64_t count = data_kind(&r->set)->next_token ? r->set.context : 1;
    if (x) TRY(source_read(r, &r->x, sample * count, count, x));
    return label || target ? y_read(r, sample, label, target) : OK;
}

/* In a set of several files, the samples may be in more than one file. */
Status reader_get_run(Reader *reader, int64_t first, int64_t count, void *x)
{
    uint8_t *to = x;
    for (int64_t i = 0; reader->fields && i < count; ++i)
        TRY(field_read(reader->fields, first + i, true,
                       (void *)(to + i * reader->set.x.sample_bytes), NULL));
    if (reader->fields) return OK;
    while (count > 0) {
        int64_t at = first;
        const Reader *r = reader_of(reader, &at);
        int64_t left = r == reader ? count : r->set.samples - at, n = left < count ? left : count;
        TRY(source_read(r, &r->x, at, n, to));
        to += n * r->set.x.sample_bytes;
        first += n;
        count -= n;
    }
    return OK;
}

Status reader_get_head(Reader *reader, int64_t sample, int64_t bytes, void *x)
{
    if (reader->fields) return field_read(reader->fields, sample, true, x, NULL);
    const Reader *r = reader_of(reader, &sample);
    return source_read_head(r, &r->x, sample, 1, bytes, x);
}

static void source_prefetch(const Source *s, int64_t sample, int64_t bytes)
{
    if (!s->mapped) return;
    const uint8_t *p = s->first + sample * bytes;
    if (bytes > PREFETCH_MAX) bytes = PREFETCH_MAX;
    for (int64_t i = 0; i < bytes; i += CACHE_LINE) __builtin_prefetch(p + i, 0, 3);
}

void reader_prefetch(const Reader *reader, int64_t sample)
{
    if (sample < 0 || sample >= reader->set.samples) return;
    const Reader *r = reader_of(reader, &sample);
    source_prefetch(&r->x, sample, request_bytes(r, &r->set.x));
    if (r->set.y.ndim) source_prefetch(&r->y, sample, r->set.y.sample_bytes);
    if (!r->set.id_first.ndim) source_prefetch(&r->ids, sample, r->set.ids.sample_bytes);
}

/* Reads `bytes` bytes of a contiguous one-dimensional array, from value `first` on. */
static Status read_values(const Reader *r, const DataArray *a, int64_t first, size_t bytes,
                          void *to)
{
    Source s = {.array = a, .dataset = -1};
    return read_file(r, &s, first, bytes, to);
}

/* Reads the index of flat ids: the first id of each field, relative to the sample's first id, whose
 * index in the list is *begin. */
static Status read_id_index(const Reader *r, int64_t sample, int32_t *first, int64_t *begin)
{
    enum { BUFFER_FIELDS = 256 };
    const DataSet *set = &r->set;
    uint64_t index[BUFFER_FIELDS], last = 0, start = 0;
    for (int64_t f = 0; f <= set->fields; f += BUFFER_FIELDS) {
        int64_t left = set->fields + 1 - f, n = left < BUFFER_FIELDS ? left : BUFFER_FIELDS;
        TRY(source_read(r, &r->id_first, sample * set->fields + f, n, index));
        if (f == 0) last = start = index[0];
        for (int64_t i = 0; i < n; last = index[i++]) {
            if (index[i] < last || index[i] > (uint64_t)set->ids.dim[0] ||
                index[i] - start > (uint64_t)set->id_most)
                return ids_fail(set, sample, f + i);
            first[f + i] = (int32_t)(index[i] - start);
        }
    }
    *begin = (int64_t)start;
    return OK;
}

Status reader_get_ids(Reader *reader, int64_t sample, uint64_t *ids, int32_t *first)
{
    const Reader *r = reader_of(reader, &sample);
    const DataSet *set = &r->set;
    int64_t begin = sample, count = 1;
    if (set->id_first.ndim) {
        TRY(read_id_index(r, sample, first, &begin));
        count = first[set->fields];
    } else {
        for (int64_t f = 0; f <= set->fields; ++f) first[f] = (int32_t)f;
    }
    if (count > 0) TRY(source_read(r, &r->ids, begin, count, ids));
    element_ids(set->ids.type, ids, ids, first[set->fields]);
    return ids_range_check(set, sample, ids, first);
}

Status reader_get_encoded(Reader *reader, int64_t sample, uint8_t **bytes, size_t *capacity,
                          size_t *count, int *orientation)
{
    const Reader *r = reader_of(reader, &sample);
    /* offsets of the sample's first byte and of the next sample's */
    uint64_t offset[2];
    uint8_t stored = 1;
    if (sample < 0 || sample >= r->set.samples)
        return fail(ERR_BUG, "%s: sample %lld requested, but there are %lld", r->set.path,
                    (long long)sample, (long long)r->set.samples);
    TRY(read_values(r, &r->set.index, sample, sizeof offset, offset));
    if (r->set.oriented) TRY(read_values(r, &r->set.orient, sample, 1, &stored));
    if (offset[0] > offset[1] || offset[1] > (uint64_t)r->set.x.dim[0])
        return index_fail(&r->set, sample);
    *count = (size_t)(offset[1] - offset[0]);
    if (*count > *capacity) {
        mem_free(bytes);
        *bytes = mem_new(*count);
        *capacity = *count;
    }
    *orientation = stored >= 1 && stored <= 8 ? stored : 1;
    return read_values(r, &r->set.x, (int64_t)offset[0], *count, *bytes);
}

Status index_fail(const DataSet *set, int64_t sample)
{
    return fail(ERR_DATA,
                "%s: the index %s of sample %lld does not rise or points beyond its %lld bytes; "
                "make the file again",
                set->path, set->index.name, (long long)sample, (long long)set->x.dim[0]);
}

Status index_check(const DataSet *set)
{
    enum { BUFFER_ROWS = 1 << 16 };
    Reader *reader;
    int64_t total = set->index.dim[0], bad = -1;
    uint64_t last = 0, *offset = mem_new(BUFFER_ROWS * sizeof *offset);
    Status st = reader_new_array(&reader, set, &set->index);
    for (int64_t at = 0; st == OK && bad < 0 && at < total; at += BUFFER_ROWS) {
        int64_t n = total - at < BUFFER_ROWS ? total - at : BUFFER_ROWS;
        st = reader_get_run(reader, at, n, offset);
        for (int64_t i = 0; st == OK && bad < 0 && i < n; last = offset[i++])
            if (offset[i] < last || offset[i] > (uint64_t)set->x.dim[0]) bad = at + i;
    }
    mem_free(&offset);
    reader_free(&reader);
    return st == OK && bad >= 0 ? index_fail(set, bad) : st;
}

char *sample_name(const DataSet *set, int64_t sample, char *out, size_t room)
{
    const char *path = set->path;
    if (set->file_count) {
        const DataFile *file = &set->file[files_find_sample(set, sample)];
        path = file->path;
        sample -= file->first;
    }
    snprintf(out, room, "%s: sample %lld", path, (long long)sample);
    return out;
}
