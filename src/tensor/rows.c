/* Rows by id: an index that maps an id to a row number, and slabs of rows. An id's place in the
 * index is given by the low bits of row_mix(table, id), or is the next free place after that:
 *
 *     mix  [shard: 12 bits | ............ | tag: 32 bits]
 *     place[tag mod places]  {tag, number + 1}  ->  slab[number / rows]  {id, floats} {id, ..
 *
 * A place stores the low half of the mix, which gives its first choice of place: growth and removal
 * read no row. The id stands in front of the row, which a look-up reads anyway. A free place is all
 * zeros, as new memory is. Removal leaves no tombstone: later entries of the run move up. Growth
 * makes a new index and moves no row. A look-up waits for memory twice, for the place and for the
 * row; prefetching overlaps the waits of many look-ups. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALWAYS_INLINE __attribute__((always_inline))

typedef struct Place {
    /* number of the row + 1; 0: the place is free */
    uint32_t tag, row;
} Place;

enum {
    PAGE = 4 << 10,
    HUGE_PAGE = 2 << 20,
    SLAB_BYTES = 32 << 20,
    LINE = 64,
    /* one page */
    PLACES_LEAST = PAGE / (int)sizeof(Place),
    /* look-ups between the prefetch of a place and its use, and again between that and the row */
    AHEAD = ROW_AHEAD,
    /* cache lines of a row that are prefetched; the hardware prefetches the rest */
    ROW_LINES = 8,
};
/* A tag has 32 bits, and the index is addressed by tags. */
static const int64_t PLACES_MOST = (int64_t)1 << 32;

struct RowStore {
    /* hash of the table's name, for row_mix */
    uint64_t table;
    int floats;
    /* in bytes: the store's limit, 0: none; from one row to the next; a slab */
    size_t limit, stride, slab_bytes;
    /* the index, Place[mask + 1]; owned */
    Place *place;
    uint64_t mask;
    /* rows in the store; row numbers given out so far; head of the free list: number + 1 of the row
     * that was removed last, whose id field has the previous one's; length of the free list */
    int64_t count, numbers, spare, spares;
    /* the slabs, owned; their number; rows per slab */
    char **slab;
    int64_t slabs, slab_rows;
    /* number / slab_rows = number * inverse / 2^64 */
    uint64_t inverse;
};

/* ---- memory needed ---- */

static int64_t rows_most(int64_t places)
{
    return places / 10 * 7 + places % 10 * 7 / 10;
}

static int64_t places_for(int64_t rows)
{
    int64_t places = PLACES_LEAST;
    while (rows_most(places) < rows && places < PLACES_MOST) places *= 2;
    return places;
}

static size_t stride_of(int floats)
{
    return sizeof(uint64_t) + (size_t)floats * sizeof(float);
}

/* Rows per slab; a slab has room for two rows at least. */
static int64_t slab_rows_of(size_t stride)
{
    return stride > SLAB_BYTES / 2 ? 2 : (int64_t)(SLAB_BYTES / stride);
}

/* Bytes of slabs in memory with that many rows. Only pages that a row has touched count: 4 KiB
 * pages in a small store, huge pages beyond that. */
static size_t slabs_bytes(int64_t rows, size_t stride)
{
    int64_t each = slab_rows_of(stride);
    size_t slab = each == 2 ? 2 * stride : SLAB_BYTES;
    size_t bytes = (size_t)(rows / each) * slab + (size_t)(rows % each) * stride;
    size_t page = bytes > HUGE_PAGE ? HUGE_PAGE : PAGE;
    return (bytes + page - 1) / page * page;
}

static size_t index_bytes(int64_t places)
{
    return (size_t)places * sizeof(Place);
}

size_t row_store_bytes(const RowStore *store)
{
    return index_bytes((int64_t)store->mask + 1) + slabs_bytes(store->numbers, store->stride);
}

/* During the last growth there are two indices, and slabs with the rows of the smaller one. */
size_t row_store_bytes_of(int64_t rows, int floats)
{
    size_t stride = stride_of(floats);
    int64_t places = places_for(rows), before = places / 2;
    size_t end = index_bytes(places) + slabs_bytes(rows, stride);
    if (places == PLACES_LEAST) return end;
    size_t growth =
        index_bytes(places) + index_bytes(before) + slabs_bytes(rows_most(before), stride);
    return end > growth ? end : growth;
}

/* ---- memory ---- */

RowStore *row_store_new(uint64_t table, int floats, size_t limit_bytes)
{
    RowStore *s = mem_new(sizeof *s);
    s->table = table;
    s->floats = floats;
    s->limit = limit_bytes;
    s->stride = stride_of(floats);
    s->slab_rows = slab_rows_of(s->stride);
    s->slab_bytes = s->slab_rows == 2 ? 2 * s->stride : SLAB_BYTES;
    s->inverse = UINT64_MAX / (uint64_t)s->slab_rows + 1;
    s->mask = PLACES_LEAST - 1;
    s->place = mem_pages_new(index_bytes(PLACES_LEAST));
    return s;
}

void row_store_limit(RowStore *s, size_t limit_bytes)
{
    s->limit = limit_bytes;
}

void row_store_free(RowStore **store)
{
    RowStore *s = *store;
    if (!s) return;
    for (int64_t i = 0; i < s->slabs; ++i) mem_pages_free(s->slab[i], s->slab_bytes);
    mem_free(&s->slab);
    mem_pages_free(s->place, index_bytes((int64_t)s->mask + 1));
    mem_free(store);
}

int64_t row_store_count(const RowStore *store)
{
    return store->count;
}

/* Adds a slab. The first one uses no huge pages, so that a small table stays small. */
static void add_slab(RowStore *s)
{
    s->slab = mem_resize(s->slab, (size_t)(s->slabs + 1) * sizeof *s->slab);
    char *slab = mem_pages_new(s->slab_bytes);
    if (s->slabs == 0) madvise(slab, HUGE_PAGE, MADV_NOHUGEPAGE);
    s->slab[s->slabs++] = slab;
}

/* Moves entries in the order of places: neighbours in the old index go to two runs of neighbours in
 * the new one, which is sequential access. */
static void grow_index(RowStore *s, int64_t places)
{
    Place *old = s->place;
    uint64_t old_mask = s->mask;
    s->mask = (uint64_t)places - 1;
    s->place = mem_pages_new(index_bytes(places));
    for (uint64_t i = 0; i <= old_mask; ++i) {
        if (!old[i].row) continue;
        uint64_t p = old[i].tag & s->mask;
        while (s->place[p].row) p = (p + 1) & s->mask;
        s->place[p] = old[i];
    }
    mem_pages_free(old, index_bytes((int64_t)old_mask + 1));
}

/* ---- rows ---- */

static char *row_of(const RowStore *s, uint32_t row)
{
    __extension__ typedef unsigned __int128 Wide;
    uint64_t number = (uint64_t)row - 1;
    uint64_t slab = (uint64_t)((Wide)number * s->inverse >> 64);
    return s->slab[slab] + (number - slab * (uint64_t)s->slab_rows) * s->stride;
}

static float *floats_of(char *row)
{
    return (float *)(void *)(row + sizeof(uint64_t));
}

static uint64_t id_of(const char *row)
{
    uint64_t id;
    memcpy(&id, row, sizeof id);
    return id;
}

/* The first place from p on that is free or has the tag. */
static uint64_t next_match(const RowStore *s, uint64_t p, uint32_t tag)
{
    while (s->place[p].row && s->place[p].tag != tag) p = (p + 1) & s->mask;
    return p;
}

/* The place of an id, or the free place where it would be inserted. */
static uint64_t place_of(const RowStore *s, uint64_t id)
{
    uint32_t tag = (uint32_t)row_mix(s->table, id);
    uint64_t p = next_match(s, tag & s->mask, tag);
    while (s->place[p].row && id_of(row_of(s, s->place[p].row)) != id)
        p = next_match(s, (p + 1) & s->mask, tag);
    return p;
}

/* Inline: the compiler would drop a call of a function that only prefetches, as it has no
 * effect. */
ALWAYS_INLINE static inline void prefetch_place(const RowStore *s, uint64_t id)
{
    __builtin_prefetch(&s->place[row_mix(s->table, id) & s->mask], 0, 3);
}

ALWAYS_INLINE static inline void prefetch_row(const RowStore *s, const char *row)
{
    const char *end = row + s->stride;
    if (s->stride > ROW_LINES * LINE) end = row + ROW_LINES * LINE;
    for (const char *line = row; line < end; line += LINE) __builtin_prefetch(line, 1, 3);
    __builtin_prefetch(end - 1, 1, 3);
}

/* The row that has the id's tag, which is almost always the id's row; starts its prefetch. */
static char *row_with_tag(const RowStore *s, uint64_t id)
{
    uint32_t tag = (uint32_t)row_mix(s->table, id);
    uint64_t p = next_match(s, tag & s->mask, tag);
    if (!s->place[p].row) return NULL;
    char *row = row_of(s, s->place[p].row);
    prefetch_row(s, row);
    return row;
}

static float *row_with_id(const RowStore *s, uint64_t id, char *row)
{
    if (row && id_of(row) != id) {
        uint32_t other = s->place[place_of(s, id)].row;
        row = other ? row_of(s, other) : NULL;
    }
    return row ? floats_of(row) : NULL;
}

void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at)
{
    char *row[AHEAD];
    for (int64_t i = 0; i < count + 2 * AHEAD; ++i) {
        int64_t second = i - AHEAD, third = second - AHEAD;
        if (i < count) prefetch_place(store, id[i]);
        if (third >= 0) at[third] = row_with_id(store, id[third], row[third % AHEAD]);
        if (second >= 0 && second < count) row[second % AHEAD] = row_with_tag(store, id[second]);
    }
}

void row_store_prefetch(const RowStore *store, const float *row)
{
    prefetch_row(store, (const char *)row - sizeof(uint64_t));
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The number of distinct ids among the `missing` ids without a row. */
static int64_t distinct(const uint64_t *id, float *const *at, int64_t count, int64_t missing)
{
    uint64_t *sorted = mem_new((size_t)missing * sizeof *sorted);
    int64_t n = 0, different = 1;
    for (int64_t i = 0; i < count; ++i)
        if (!at[i]) sorted[n++] = id[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 1; i < n; ++i) different += sorted[i] != sorted[i - 1];
    mem_free(&sorted);
    return different;
}

/* The most bytes that the store takes while that many rows are added. */
static size_t bytes_with(const RowStore *s, int64_t more)
{
    int64_t places = (int64_t)s->mask + 1, wanted = places_for(s->count + more);
    int64_t numbers = s->numbers + (more > s->spares ? more - s->spares : 0);
    size_t end = slabs_bytes(numbers, s->stride) + index_bytes(places);
    if (wanted <= places) return end;
    size_t growth = slabs_bytes(s->numbers, s->stride) + index_bytes(places) + index_bytes(wanted);
    end = slabs_bytes(numbers, s->stride) + index_bytes(wanted);
    return end > growth ? end : growth;
}

static bool has_room(const RowStore *s, int64_t more)
{
    return s->count + more <= rows_most(PLACES_MOST) &&
           (s->limit == 0 || bytes_with(s, more) <= s->limit);
}

static Status no_room(const RowStore *s, int64_t more)
{
    char has[16], limit[16], wants[16];
    if (s->count + more > rows_most(PLACES_MOST))
        return fail(ERR_MEMORY,
                    "a table has %lld rows on this rank, and %lld more would be beyond "
                    "%lld, the most: use more ranks",
                    (long long)s->count, (long long)more, (long long)rows_most(PLACES_MOST));
    return fail(ERR_MEMORY,
                "a table has %lld rows on this rank, in %s of the %s that it may take; %lld more "
                "want %s",
                (long long)s->count, text_bytes((double)row_store_bytes(s), has),
                text_bytes((double)s->limit, limit), (long long)more,
                text_bytes((double)bytes_with(s, more), wants));
}

/* Grows the index for the missing ids, or fails at the limit. Duplicates are counted only when that
 * may change the outcome. */
static Status make_room(RowStore *s, const uint64_t *id, float *const *at, int64_t count,
                        int64_t missing)
{
    int64_t more = missing;
    if (!has_room(s, more) || places_for(s->count + more) > (int64_t)s->mask + 1)
        more = distinct(id, at, count, missing);
    if (!has_room(s, more)) return no_room(s, more);
    int64_t places = places_for(s->count + more);
    if (places > (int64_t)s->mask + 1) grow_index(s, places);
    return OK;
}

static uint32_t new_row(RowStore *s, uint64_t id)
{
    uint32_t row = (uint32_t)s->spare;
    if (row) {
        s->spare = (int64_t)id_of(row_of(s, row));
        --s->spares;
        memset(row_of(s, row), 0, s->stride);
    } else {
        row = (uint32_t)++s->numbers;
        if (s->numbers > s->slabs * s->slab_rows) add_slab(s);
    }
    ++s->count;
    memcpy(row_of(s, row), &id, sizeof id);
    return row;
}

Status row_store_add(RowStore *store, const uint64_t *id, int64_t count, float **at, bool *is_new)
{
    row_store_find(store, id, count, at);
    if (is_new) memset(is_new, 0, (size_t)count * sizeof *is_new);
    int64_t missing = 0;
    for (int64_t i = 0; i < count; ++i) missing += !at[i];
    if (missing == 0) return OK;
    TRY(make_room(store, id, at, count, missing));
    for (int64_t i = 0; i < count; ++i) {
        if (i + AHEAD < count && !at[i + AHEAD]) prefetch_place(store, id[i + AHEAD]);
        if (at[i]) continue;
        Place *place = &store->place[place_of(store, id[i])];
        if (!place->row) {
            if (is_new) is_new[i] = true;
            *place = (Place){(uint32_t)row_mix(store->table, id[i]), new_row(store, id[i])};
        }
        at[i] = floats_of(row_of(store, place->row));
    }
    return OK;
}

float *row_store_next(const RowStore *store, int64_t *place, uint64_t *id)
{
    for (int64_t end = (int64_t)store->mask + 1; *place < end;) {
        int64_t p = (*place)++;
        if (p + AHEAD < end && store->place[p + AHEAD].row)
            prefetch_row(store, row_of(store, store->place[p + AHEAD].row));
        if (!store->place[p].row) continue;
        char *row = row_of(store, store->place[p].row);
        *id = id_of(row);
        return floats_of(row);
    }
    return NULL;
}

void row_store_remove(RowStore *store, uint64_t id)
{
    uint64_t hole = place_of(store, id), mask = store->mask;
    uint32_t row = store->place[hole].row;
    if (!row) return;
    uint64_t before = (uint64_t)store->spare;
    memcpy(row_of(store, row), &before, sizeof before);
    store->spare = row;
    ++store->spares;
    --store->count;
    for (uint64_t p = (hole + 1) & mask; store->place[p].row; p = (p + 1) & mask) {
        /* an entry whose own place lies behind the hole stays */
        if (((p - store->place[p].tag) & mask) < ((p - hole) & mask)) continue;
        store->place[hole] = store->place[p];
        hole = p;
    }
    store->place[hole] = (Place){0};
}
