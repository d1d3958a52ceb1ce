/* Reads slabs of arrays that HDF5 stores in chunks:
 *
 *     slab --> its chunks --> in memory? -------------------------> copied to the slab
 *                             else claimed, read, inflated, unshuffled --^
 *
 * The addresses of a variable's chunks in a file are found with HDF5, under its lock, when a slab
 * of the variable is first read; afterwards HDF5 is not used. A thread that needs a chunk which
 * another thread, perhaps of another process, is unpacking waits until the chunk is complete
 * (chunk_memory.h). */
#include "field_chunks.h"
#include "../fields/fields_private.h"

#include <stdatomic.h>
#include <string.h>

/* seconds between two attempts to find a chunk that another thread is unpacking */
static const double CHECK_S = 1e-4;
/* number of attempts between two checks that the other processes have not ended */
enum { LOOKS = 1000 };

/* The chunks of one variable in one file. */
typedef struct Index {
    /* true: the array can be read without HDF5 */
    bool usable;
    /* true: the chunks have this filter */
    bool shuffle, deflate;
    /* size of a chunk along each dimension of the array */
    int64_t size[SHAPE_DIMS];
    /* number of chunks along each dimension of the array */
    int64_t grid[SHAPE_DIMS];
    /* number of elements of a chunk */
    int64_t elements;
    /* owned: offset of each chunk in the file */
    int64_t *offset;
    /* owned: stored bytes of each chunk */
    uint32_t *bytes;
} Index;

struct FieldChunks {
    const DataSet *set;
    const FieldSet *f;
    FieldFiles *files;
    /* owned, [files][variables]; NULL: not found yet */
    _Atomic(Index *) *index;
    /* the memory of chunks, which is shared.at or own; NULL: not made yet */
    _Atomic(ChunkMemory *) memory;
    /* memory that readers of several processes share; at NULL: none */
    FieldMemory shared;
    /* owned: memory of this reader alone; NULL: not made */
    void *own;
    /* size of own */
    size_t own_bytes;
    /* protects `own` */
    pthread_mutex_t mutex;
};

FieldChunks *field_chunks_new(const DataSet *set, FieldFiles *files)
{
    FieldChunks *c = mem_new(sizeof *c);
    c->set = set;
    c->f = &set->field_set;
    c->files = files;
    c->index = mem_new((size_t)c->f->files * (size_t)c->f->variables * sizeof *c->index);
    pthread_mutex_init(&c->mutex, NULL);
    return c;
}

void field_chunks_share(FieldChunks *c, const FieldMemory *memory)
{
    c->shared = *memory;
    atomic_store(&c->memory, memory->at);
}

/* Returns the memory of chunks. If the reader shares none and has none, makes one for this reader
 * alone. */
static ChunkMemory *memory_of(FieldChunks *c)
{
    ChunkMemory *memory = atomic_load(&c->memory);
    if (memory) return memory;
    pthread_mutex_lock(&c->mutex);
    if (!c->own) {
        c->own_bytes = data_fields_kept_bytes(c->set, 1);
        c->own = mem_pages_new(c->own_bytes);
        data_fields_memory_init(c->set, 1, c->own);
        atomic_store(&c->memory, c->own);
    }
    pthread_mutex_unlock(&c->mutex);
    return atomic_load(&c->memory);
}

int64_t field_chunks_unpacked(FieldChunks *c)
{
    ChunkMemory *memory = atomic_load(&c->memory);
    return memory ? chunk_memory_total(memory) : 0;
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
    if (c->own) mem_pages_free(c->own, c->own_bytes);
    pthread_mutex_destroy(&c->mutex);
    mem_free(&c->index);
    mem_free(chunks);
}

/* ---- finding chunks ---- */

/* Finds the offsets and sizes of all `count` chunks. unpacked: bytes of an unpacked chunk. Returns
 * false if HDF5 is older than 1.10.5, or if a chunk is not stored, has an impossible size, or was
 * written without one of the filters. */
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

/* Finds the chunks of a variable, whose array in the file is open as `dataset`. */
static void index_fill(const FieldSet *f, int file, int variable, hid_t dataset, Index *index)
{
    const FieldVariable *v = &f->variable[variable];
    hid_t create = H5Dget_create_plist(dataset);
    hsize_t size[32];
    bool good = H5Pget_layout(create) == H5D_CHUNKED && H5Pget_chunk(create, 32, size) == v->ndim &&
                h5_chunk_filters(dataset, create, &index->shuffle, &index->deflate);
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

/* Sets *found to the chunks of a variable in a file; c owns them. Finds the chunks at the first
 * call for this variable and file. */
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
        *found = index;
        atomic_store(at, index);
    }
    hdf5_unlock();
    return st;
}

/* ---- unpacking ---- */

/* Undoes HDF5's filter shuffle, which stores byte 0 of all elements, then byte 1 of all elements,
 * and so on. each: bytes of an element. */
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

/* Reads a chunk and unpacks it to `data`, which has `bytes` bytes, in this processor's byte
 * order. */
static Status read_chunk(const FieldChunks *c, const Index *index, const ChunkKey *key,
                         uint8_t *data, size_t bytes)
{
    const FieldArray *array = field_array(c->f, key->file, key->variable);
    const size_t each = element_bytes(array->type);
    const uint32_t stored = index->bytes[key->number];
    uLongf unpacked = bytes;
    uint8_t *packed = NULL, *shuffled = NULL;
    if (index->deflate) packed = mem_new(stored);
    if (index->shuffle) shuffled = mem_new(bytes);
    uint8_t *inflated = shuffled ? shuffled : data;
    Status st = field_read_bytes(c->files, c->f, key->file, key->variable,
                                 index->offset[key->number], stored, packed ? packed : inflated);
    if (st == OK && packed &&
        (uncompress(inflated, &unpacked, packed, stored) != Z_OK || unpacked != bytes))
        st = fail(ERR_IO,
                  "%s: %s cannot be read: a chunk is damaged, and deflate cannot unpack it; copy "
                  "or make the file again",
                  field_path(c->f, key->file), c->f->variable[key->variable].name);
    if (st == OK && shuffled) unshuffle(shuffled, index->elements, each, data);
    if (st == OK && each > 1 && array->big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        swap_bytes(data, index->elements, each);
    mem_free(&packed);
    mem_free(&shuffled);
    return st;
}

/* A chunk that a thread uses. */
typedef struct Unpacked {
    ChunkMemory *memory;
    /* the chunk in the memory; held.data points to the values also if `own` has them */
    ChunkHeld held;
    /* owned: the values, if the memory had no place for the chunk; else NULL */
    void *own;
} Unpacked;

/* Finds a chunk; waits while another thread is unpacking it. If the other thread cannot read the
 * chunk, this thread claims it, and then fails with its own message. */
static ChunkAnswer find_chunk(const FieldChunks *c, Unpacked *u, const ChunkKey *key, size_t bytes)
{
    const bool is_static = c->f->variable[key->variable].is_static;
    ChunkAnswer answer;
    int looks = 0;
    while ((answer = chunk_memory_find(u->memory, *key, bytes, is_static, &u->held)) ==
           CHUNK_AWAITED) {
        clock_sleep(CHECK_S);
        if (++looks % LOOKS == 0 && c->shared.check) c->shared.check(c->shared.user);
    }
    return answer;
}

/* Finds a chunk in the memory, or reads and unpacks it. Unless this fails, release *u with
 * release_chunk. */
static Status hold_chunk(FieldChunks *c, const Index *index, const ChunkKey *key, Unpacked *u)
{
    const FieldArray *array = field_array(c->f, key->file, key->variable);
    const size_t bytes = (size_t)index->elements * element_bytes(array->type);
    *u = (Unpacked){.memory = memory_of(c)};
    const ChunkAnswer answer = find_chunk(c, u, key, bytes);
    if (answer == CHUNK_COMPLETE) return OK;
    const bool claimed = answer == CHUNK_CLAIMED;
    if (!claimed) u->held.data = u->own = mem_new(bytes);
    Status st = read_chunk(c, index, key, u->held.data, bytes);
    if (claimed) chunk_memory_unpacked(u->memory, &u->held, st == OK);
    if (!claimed && st == OK) chunk_memory_count(u->memory);
    if (st != OK) mem_free(&u->own);
    return st;
}

static void release_chunk(Unpacked *u)
{
    if (!u->own) chunk_memory_release(u->memory, &u->held);
    mem_free(&u->own);
}

/* ---- slabs ---- */

/* The elements that a chunk and a slab have in common: a box of four dimensions. */
typedef struct Overlap {
    /* size of the box */
    int64_t count[SHAPE_DIMS];
    /* index of the box's first element in the chunk */
    int64_t chunk[SHAPE_DIMS];
    /* index of the box's first element in the slab */
    int64_t slab[SHAPE_DIMS];
    /* distance of neighbours along each dimension, in elements of the chunk */
    int64_t chunk_step[SHAPE_DIMS];
    /* distance of neighbours along each dimension, in elements of the slab */
    int64_t slab_step[SHAPE_DIMS];
} Overlap;

/* Returns the overlap of the slab and the chunk at index `at` in the grid of chunks. */
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
        ChunkKey key = {.file = s->file, .variable = s->variable};
        Unpacked unpacked;
        for (int i = 0; i < ndim; ++i) key.number = key.number * index->grid[i] + at[i];
        TRY(hold_chunk(c, index, &key, &unpacked));
        const Overlap overlap = overlap_of(index, s, ndim, at);
        copy_overlap(&overlap, each, unpacked.held.data, to);
        release_chunk(&unpacked);
        for (moved = ndim - 1; moved >= 0 && at[moved] == last[moved]; --moved)
            at[moved] = first[moved];
        if (moved >= 0) ++at[moved];
    }
    return st;
}
