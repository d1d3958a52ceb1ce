/* Reads slabs of arrays that HDF5 stores in chunks:
 *
 *     slab --> its chunks --> kept? ----------------------------> copied to the slab
 *                             else read, inflated, unshuffled, kept --^
 *
 * The addresses of a file's chunks are found with HDF5, under its lock, when a slab of the file is
 * first read; afterwards HDF5 is not used. A thread that needs a chunk which another thread is
 * unpacking waits for it. */
#include "field_chunks.h"
#include "fields_private.h"

#include <stdatomic.h>
#include <string.h>

enum {
    /* largest number of chunks of an array; arrays with more are read by HDF5 */
    CHUNKS_MOST = 1 << 20,
    /* largest number of bytes of unpacked chunks that are kept: KEPT_FRAMES_BYTES if the chunks of
     * an array have several frames each, else KEPT_BYTES, because a chunk of one frame is seldom
     * used twice */
    KEPT_FRAMES_BYTES = 256 << 20,
    KEPT_BYTES = 16 << 20,
    BUCKETS = 4096
};

/* The chunks of one variable in one file. */
typedef struct Index {
    /* usable: the array can be read without HDF5. shuffle, deflate: filters of its chunks. */
    bool usable, shuffle, deflate;
    /* sizes of a chunk, and numbers of chunks, by dimension */
    int64_t size[SHAPE_DIMS], grid[SHAPE_DIMS];
    /* elements of a chunk */
    int64_t elements;
    /* owned: offset and stored bytes of each chunk */
    int64_t *offset;
    uint32_t *bytes;
} Index;

/* An unpacked chunk. It is in the list of its bucket, and in the list of all kept chunks, in which
 * the chunk that was used last is the first. */
typedef struct Kept {
    int file, variable;
    /* the chunk's number in the grid of chunks */
    int64_t number;
    /* holds: number of threads that use the chunk. complete: its data are complete. failed: it
     * could not be read. */
    int holds;
    bool complete, failed;
    size_t bytes;
    struct Kept *next_in_bucket, *newer, *older;
    max_align_t data[];
} Kept;

struct FieldChunks {
    const FieldSet *f;
    FieldFiles *files;
    /* owned, [files][variables]; NULL: not found yet */
    _Atomic(Index *) *index;
    /* protects the fields below */
    pthread_mutex_t mutex;
    pthread_cond_t completed;
    Kept *bucket[BUCKETS], *newest, *oldest;
    size_t kept_bytes, most_bytes;
};

FieldChunks *field_chunks_new(const FieldSet *f, FieldFiles *files)
{
    FieldChunks *c = mem_new(sizeof *c);
    c->f = f;
    c->files = files;
    c->index = mem_new((size_t)f->files * (size_t)f->variables * sizeof *c->index);
    c->most_bytes = KEPT_BYTES;
    pthread_mutex_init(&c->mutex, NULL);
    pthread_cond_init(&c->completed, NULL);
    return c;
}

size_t data_fields_kept_bytes(const DataSet *set)
{
    const FieldSet *f = &set->field_set;
    const int64_t most = set->x.chunk_rows > 1 ? KEPT_FRAMES_BYTES : KEPT_BYTES;
    int64_t all = 0;
    if (!data_kind(set)->has_fields || f->files == 0) return 0;
    for (int i = 0; i < f->stored; ++i) {
        const FieldVariable *v = &f->variable[i];
        const FieldArray *array = field_array(f, 0, i);
        const int64_t frames = v->is_static ? 1 : field_frames(f);
        const int64_t values = v->size[FIELD_LEVEL] * v->size[FIELD_ROW] * v->size[FIELD_COLUMN];
        if (array->offset < 0) all += frames * values * (int64_t)element_bytes(array->type);
    }
    return (size_t)(all < most ? all : most);
}

static void index_free(Index **index)
{
    if (!*index) return;
    mem_free(&(*index)->offset);
    mem_free(&(*index)->bytes);
    mem_free(index);
}

void field_chunks_free(FieldChunks **chunks)
{
    FieldChunks *c = *chunks;
    if (!c) return;
    for (int64_t i = 0; i < (int64_t)c->f->files * c->f->variables; ++i) {
        Index *index = atomic_load(&c->index[i]);
        index_free(&index);
    }
    for (Kept *k = c->newest, *older; k; k = older) {
        older = k->older;
        mem_free(&k);
    }
    pthread_mutex_destroy(&c->mutex);
    pthread_cond_destroy(&c->completed);
    mem_free(&c->index);
    mem_free(chunks);
}

/* ---- finding chunks ---- */

/* Are the filters none, shuffle, deflate, or shuffle and then deflate? */
static bool read_filters(hid_t create, Index *index)
{
    const int filters = H5Pget_nfilters(create);
    bool good = filters >= 0 && filters <= 2;
    for (int i = 0; good && i < filters; ++i) {
        unsigned flags, config;
        size_t values = 0;
        const H5Z_filter_t id =
            H5Pget_filter2(create, (unsigned)i, &flags, &values, NULL, 0, NULL, &config);
        good =
            (id == H5Z_FILTER_SHUFFLE && i == 0) || (id == H5Z_FILTER_DEFLATE && !index->deflate);
        index->shuffle |= id == H5Z_FILTER_SHUFFLE;
        index->deflate |= id == H5Z_FILTER_DEFLATE;
    }
    return good;
}

/* Finds all chunks; false: a chunk is not stored, a filter was skipped for it, or this HDF5 is
 * older than 1.10.5. */
static bool find_chunks(hid_t dataset, int ndim, int64_t count, size_t unpacked, Index *index)
{
#if H5_VERSION_GE(1, 10, 5)
    index->offset = mem_new((size_t)count * sizeof *index->offset);
    index->bytes = mem_new((size_t)count * sizeof *index->bytes);
    for (int64_t i = 0; i < count; ++i) {
        hsize_t at[SHAPE_DIMS], bytes = 0;
        haddr_t address = HADDR_UNDEF;
        unsigned mask = 1;
        int64_t rest = i;
        for (int d = ndim - 1; d >= 0; --d) {
            at[d] = (hsize_t)(rest % index->grid[d] * index->size[d]);
            rest /= index->grid[d];
        }
        if (H5Dget_chunk_info_by_coord(dataset, at, &mask, &address, &bytes) < 0 || mask != 0 ||
            address > INT64_MAX || bytes == 0 || bytes > UINT32_MAX ||
            (!index->deflate && bytes != unpacked))
            return false;
        index->offset[i] = (int64_t)address;
        index->bytes[i] = (uint32_t)bytes;
    }
    return true;
#else
    (void)dataset, (void)ndim, (void)count, (void)unpacked, (void)index;
    return false;
#endif
}

/* Finds the chunks of a variable in an open data set. */
static void index_fill(const FieldSet *f, int file, int variable, hid_t dataset, Index *index)
{
    const FieldVariable *v = &f->variable[variable];
    hid_t create = H5Dget_create_plist(dataset);
    hsize_t size[32];
    bool good = H5Pget_layout(create) == H5D_CHUNKED && H5Pget_chunk(create, 32, size) == v->ndim &&
                read_filters(create, index);
    int64_t count = 1;
    index->elements = 1;
    for (int i = 0; good && i < v->ndim; ++i) {
        const bool time = v->dim[i] == FIELD_TIME && !v->is_static;
        const int64_t length = time ? f->file[file].frames : v->size[v->dim[i]];
        index->size[i] = (int64_t)size[i];
        index->grid[i] = (length + index->size[i] - 1) / index->size[i];
        index->elements *= index->size[i];
        count *= index->grid[i];
        good = count <= CHUNKS_MOST;
    }
    const size_t unpacked =
        (size_t)index->elements * element_bytes(field_array(f, file, variable)->type);
    index->usable = good && find_chunks(dataset, v->ndim, count, unpacked, index);
    H5Pclose(create);
}

/* Returns the number of frames of a chunk. */
static int64_t frames_of(const FieldVariable *v, const Index *index)
{
    for (int i = 0; i < v->ndim; ++i)
        if (v->dim[i] == FIELD_TIME) return index->size[i];
    return 1;
}

static Status find_index(FieldChunks *c, int file, int variable, const Index **found)
{
    const FieldSet *f = c->f;
    _Atomic(Index *) *at = &c->index[(int64_t)file * f->variables + variable];
    Status st = OK;
    *found = atomic_load(at);
    if (*found) return OK;
    hdf5_lock();
    if (!(*found = atomic_load(at))) {
        Index *index = mem_new(sizeof *index);
        hid_t dataset;
        st = field_files_dataset(c->files, file, variable, &dataset);
        if (st == OK) index_fill(f, file, variable, dataset, index);
        if (st != OK) index_free(&index);
        pthread_mutex_lock(&c->mutex);
        if (st == OK && frames_of(&f->variable[variable], index) > 1)
            c->most_bytes = KEPT_FRAMES_BYTES;
        pthread_mutex_unlock(&c->mutex);
        *found = index;
        atomic_store(at, index);
    }
    hdf5_unlock();
    return st;
}

/* ---- unpacking ---- */

/* Undoes HDF5's filter shuffle, which stores byte 0 of all elements, then byte 1 of all elements,
 * and so on. */
static void unshuffle(const uint8_t *from, int64_t elements, size_t each, uint8_t *to)
{
    for (size_t b = 0; b < each; ++b)
        for (int64_t i = 0; i < elements; ++i) to[(size_t)i * each + b] = *from++;
}

static void swap_bytes(uint8_t *data, int64_t elements, size_t each)
{
    for (int64_t i = 0; i < elements; ++i, data += each)
        for (size_t b = 0; b < each / 2; ++b) {
            const uint8_t keep = data[b];
            data[b] = data[each - 1 - b];
            data[each - 1 - b] = keep;
        }
}

/* Reads and unpacks chunk `number` to kept->data. */
static Status read_chunk(const FieldChunks *c, const Index *index, Kept *kept)
{
    const FieldArray *array = field_array(c->f, kept->file, kept->variable);
    const size_t each = element_bytes(array->type);
    const uint32_t stored = index->bytes[kept->number];
    uLongf unpacked = kept->bytes;
    uint8_t *data = (uint8_t *)kept->data, *packed = NULL, *shuffled = NULL;
    if (index->deflate) packed = mem_new(stored);
    if (index->shuffle) shuffled = mem_new(kept->bytes);
    uint8_t *inflated = shuffled ? shuffled : data;
    Status st = field_read_bytes(c->files, c->f, kept->file, kept->variable,
                                 index->offset[kept->number], stored, packed ? packed : inflated);
    if (st == OK && packed &&
        (uncompress(inflated, &unpacked, packed, stored) != Z_OK || unpacked != kept->bytes))
        st = fail(ERR_IO,
                  "%s: %s cannot be read: a chunk is damaged, and deflate cannot unpack it; copy "
                  "or make the file again",
                  field_path(c->f, kept->file), c->f->variable[kept->variable].name);
    if (st == OK && shuffled) unshuffle(shuffled, index->elements, each, data);
    if (st == OK && each > 1 && array->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        swap_bytes(data, index->elements, each);
    mem_free(&packed);
    mem_free(&shuffled);
    return st;
}

/* ---- kept chunks; all under the mutex ---- */

static Kept **bucket_of(FieldChunks *c, int file, int variable, int64_t number)
{
    const int64_t key[] = {file, variable, number};
    return &c->bucket[hash_bytes(key, sizeof key) % BUCKETS];
}

static void unlink_kept(FieldChunks *c, Kept *k)
{
    *(k->newer ? &k->newer->older : &c->newest) = k->older;
    *(k->older ? &k->older->newer : &c->oldest) = k->newer;
}

static void link_newest(FieldChunks *c, Kept *k)
{
    k->newer = NULL;
    k->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = k;
    c->newest = k;
}

/* Removes a chunk that nobody uses. */
static void drop(FieldChunks *c, Kept *k)
{
    Kept **at = bucket_of(c, k->file, k->variable, k->number);
    while (*at != k) at = &(*at)->next_in_bucket;
    *at = k->next_in_bucket;
    unlink_kept(c, k);
    c->kept_bytes -= k->bytes;
    mem_free(&k);
}

/* Adds an empty chunk, which this thread holds, and drops the oldest chunks above the limit. */
static Kept *add(FieldChunks *c, const FieldSlab *slab, int64_t number, size_t bytes)
{
    Kept **bucket = bucket_of(c, slab->file, slab->variable, number);
    Kept *k = mem_new(sizeof *k + bytes);
    k->file = slab->file;
    k->variable = slab->variable;
    k->number = number;
    k->holds = 1;
    k->bytes = bytes;
    k->next_in_bucket = *bucket;
    *bucket = k;
    link_newest(c, k);
    c->kept_bytes += bytes;
    for (Kept *old = c->oldest, *newer; old && c->kept_bytes > c->most_bytes; old = newer) {
        newer = old->newer;
        if (old->holds == 0) drop(c, old);
    }
    return k;
}

static Kept *find_kept(FieldChunks *c, const FieldSlab *slab, int64_t number)
{
    Kept *k = *bucket_of(c, slab->file, slab->variable, number);
    while (k && (k->file != slab->file || k->variable != slab->variable || k->number != number))
        k = k->next_in_bucket;
    return k;
}

static void release(FieldChunks *c, Kept *k)
{
    --k->holds;
    if (k->failed && k->holds == 0) drop(c, k);
}

/* Finds a chunk, or reads it. *kept: the chunk, which this thread holds until `release`. */
static Status hold_chunk(FieldChunks *c, const Index *index, const FieldSlab *slab, int64_t number,
                         Kept **kept)
{
    const FieldArray *array = field_array(c->f, slab->file, slab->variable);
    Status st = OK;
    pthread_mutex_lock(&c->mutex);
    Kept *k = *kept = find_kept(c, slab, number);
    if (k) {
        ++k->holds;
        unlink_kept(c, k);
        link_newest(c, k);
        while (!k->complete && !k->failed) pthread_cond_wait(&c->completed, &c->mutex);
    }
    const bool again = k && k->failed;
    if (again) release(c, k);
    if (!k) k = *kept = add(c, slab, number, (size_t)index->elements * element_bytes(array->type));
    const bool mine = !again && !k->complete;
    pthread_mutex_unlock(&c->mutex);
    /* Another thread could not read the chunk. This thread tries again, because messages are kept
     * per thread, and this thread needs its own. */
    if (again) return hold_chunk(c, index, slab, number, kept);
    if (!mine) return OK;
    st = read_chunk(c, index, k);
    pthread_mutex_lock(&c->mutex);
    k->complete = st == OK;
    k->failed = st != OK;
    if (st != OK) release(c, k);
    pthread_cond_broadcast(&c->completed);
    pthread_mutex_unlock(&c->mutex);
    return st;
}

/* ---- slabs ---- */

/* The elements that a chunk and a slab have in common, as a box of four dimensions. */
typedef struct Overlap {
    /* size of the box; index of its first element in the chunk, and in the slab */
    int64_t count[SHAPE_DIMS], chunk[SHAPE_DIMS], slab[SHAPE_DIMS];
    /* distance of neighbours along each dimension in the chunk, and in the slab, in elements */
    int64_t chunk_step[SHAPE_DIMS], slab_step[SHAPE_DIMS];
} Overlap;

/* Finds the overlap with the chunk at index `at` of the grid of chunks. */
static Overlap overlap_of(const Index *index, const FieldSlab *s, int ndim, const int64_t *at)
{
    Overlap o = {.count = {0}};
    int64_t in_chunk = 1, in_slab = 1;
    for (int i = SHAPE_DIMS - 1; i >= 0; --i) {
        const int d = i - (SHAPE_DIMS - ndim);
        o.count[i] = 1;
        if (d < 0) continue;
        const int64_t begin = at[d] * index->size[d], end = begin + index->size[d];
        const int64_t stop = s->start[d] + s->count[d];
        const int64_t low = begin > s->start[d] ? begin : s->start[d];
        o.count[i] = (end < stop ? end : stop) - low;
        o.chunk[i] = low - begin;
        o.slab[i] = low - s->start[d];
        o.chunk_step[i] = in_chunk;
        o.slab_step[i] = in_slab;
        in_chunk *= index->size[d];
        in_slab *= s->count[d];
    }
    return o;
}

static void copy_overlap(const Overlap *o, size_t each, const char *chunk, char *slab)
{
    _Static_assert(SHAPE_DIMS == 4, "a loop for each dimension");
    int64_t from = 0, to = 0;
    for (int i = 0; i < SHAPE_DIMS; ++i) {
        from += o->chunk[i] * o->chunk_step[i];
        to += o->slab[i] * o->slab_step[i];
    }
    for (int64_t a = 0; a < o->count[0]; ++a)
        for (int64_t b = 0; b < o->count[1]; ++b)
            for (int64_t c = 0; c < o->count[2]; ++c) {
                const int64_t x =
                    from + a * o->chunk_step[0] + b * o->chunk_step[1] + c * o->chunk_step[2];
                const int64_t y =
                    to + a * o->slab_step[0] + b * o->slab_step[1] + c * o->slab_step[2];
                memcpy(slab + (size_t)y * each, chunk + (size_t)x * each,
                       (size_t)o->count[3] * each);
            }
}

Status field_chunks_read(FieldChunks *c, const FieldSlab *s, void *to, bool *done)
{
    const int ndim = c->f->variable[s->variable].ndim;
    const size_t each = element_bytes(field_array(c->f, s->file, s->variable)->type);
    const Index *index;
    int64_t first[SHAPE_DIMS], last[SHAPE_DIMS], at[SHAPE_DIMS];
    Status st = find_index(c, s->file, s->variable, &index);
    *done = st == OK && index->usable;
    if (!*done) return st;
    for (int i = 0; i < ndim; ++i) {
        first[i] = at[i] = s->start[i] / index->size[i];
        last[i] = (s->start[i] + s->count[i] - 1) / index->size[i];
    }
    for (int moved = ndim; st == OK && moved >= 0;) {
        int64_t number = 0;
        Kept *kept;
        for (int i = 0; i < ndim; ++i) number = number * index->grid[i] + at[i];
        TRY(hold_chunk(c, index, s, number, &kept));
        const Overlap overlap = overlap_of(index, s, ndim, at);
        copy_overlap(&overlap, each, (const char *)kept->data, to);
        pthread_mutex_lock(&c->mutex);
        release(c, kept);
        pthread_mutex_unlock(&c->mutex);
        for (moved = ndim - 1; moved >= 0 && at[moved] == last[moved]; --moved)
            at[moved] = first[moved];
        if (moved >= 0) ++at[moved];
    }
    return st;
}
