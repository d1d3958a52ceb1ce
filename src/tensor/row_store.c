/* A hash table from ids to rows: an index of slots, and slabs of rows. The search for an id begins
 * at slot (hash & mask) and continues with the next slots (linear probing):
 *
 *     row_hash(table, id)  =  [shard: 12 bits | ............ | low: 32 bits]
 *     slot[low & mask]     =  {low, row number + 1}
 *     slab[number / slab_rows]  =  {id, floats} {id, floats} {id, floats} ...
 *                                               ^ row number % slab_rows
 *
 * Each slot stores the low 32 bits of the hash, the tag. So growth of the index reads no rows, and
 * deletion reads only rows whose tag is that of the id. The id is stored just before the floats, so
 * comparing it costs no extra cache miss. A free slot is all zeros, as new memory is. There are no
 * tombstones: deletion moves later entries of the probe sequence back. Growth makes a new index and
 * moves no row. A look-up has two cache misses, one for the slot and one for the row; prefetching
 * overlaps the cache misses of many look-ups. */
#include "tensor.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define ALWAYS_INLINE __attribute__((always_inline))

typedef struct Slot {
    /* low 32 bits of the id's hash */
    uint32_t tag;
    /* row number + 1; 0: the slot is free */
    uint32_t row_ref;
} Slot;

enum {
    PAGE = 4 << 10,
    HUGE_PAGE = 2 << 20,
    SLAB_BYTES = 32 << 20,
    LINE = 64,
    /* the smallest index is one page */
    SLOTS_MIN = PAGE / (int)sizeof(Slot),
    /* number of ids between the prefetch of a slot and its use, and again between that use and the
     * use of the row */
    AHEAD = 12,
    /* number of cache lines of a row that are prefetched; the hardware prefetches the rest */
    ROW_LINES = 8,
};
/* the tag, which has 32 bits, chooses the slot */
static const int64_t SLOTS_MAX = (int64_t)1 << 32;

struct RowStore {
    /* hash of the table's name, for row_hash */
    uint64_t table;
    int floats;
    /* maximum number of bytes that the store may use; 0: no limit */
    size_t limit;
    /* bytes from one row to the next */
    size_t stride;
    size_t slab_bytes;
    /* the index, Slot[mask + 1]; owned */
    Slot *slot;
    uint64_t mask;
    /* rows in the store */
    int64_t rows;
    /* number of row numbers that have been given to rows, removed rows included */
    int64_t rows_allocated;
    /* Head of the list of removed rows: row number + 1 of the row that was removed last; 0: the
     * list is empty. The id field of a removed row has this number for the next row of the list. */
    int64_t free_head;
    /* number of removed rows in this list */
    int64_t free_count;
    /* the slabs, [slabs]; owned */
    char **slab;
    int64_t slabs;
    /* rows of a slab */
    int64_t slab_rows;
    /* multiplier for the division by slab_rows: n / slab_rows = n * inverse / 2^64 */
    uint64_t inverse;
};

/* ---- memory needed ---- */

/* Returns the maximum number of rows of an index of `slots` slots: 70 % of the slots. */
static int64_t rows_max(int64_t slots)
{
    return slots / 10 * 7 + slots % 10 * 7 / 10;
}

/* Returns the number of slots of the smallest index for that number of rows. */
static int64_t slots_for(int64_t rows)
{
    int64_t slots = SLOTS_MIN;
    while (rows_max(slots) < rows && slots < SLOTS_MAX) slots *= 2;
    return slots;
}

static size_t stride_of(int floats)
{
    return sizeof(uint64_t) + (size_t)floats * sizeof(float);
}

/* Returns the number of rows per slab, which is at least two. */
static int64_t slab_rows_of(size_t stride)
{
    return stride > SLAB_BYTES / 2 ? 2 : (int64_t)(SLAB_BYTES / stride);
}

/* Returns the resident bytes of the slabs that hold `rows` rows. They are whole pages: of 4 KiB if
 * all rows fit into 2 MiB, else of 2 MiB. */
static size_t slabs_bytes(int64_t rows, size_t stride)
{
    int64_t each = slab_rows_of(stride);
    size_t slab = each == 2 ? 2 * stride : SLAB_BYTES;
    size_t bytes = (size_t)(rows / each) * slab + (size_t)(rows % each) * stride;
    size_t page = bytes > HUGE_PAGE ? HUGE_PAGE : PAGE;
    return (bytes + page - 1) / page * page;
}

static size_t index_bytes(int64_t slots)
{
    return (size_t)slots * sizeof(Slot);
}

size_t row_store_bytes(const RowStore *store)
{
    return index_bytes((int64_t)store->mask + 1) +
           slabs_bytes(store->rows_allocated, store->stride);
}

/* Returns the larger of two amounts: at the end, and while the index grows for the last time.
 * During that growth, the old and the new index both exist, and the slabs hold the rows of the old
 * index. */
size_t row_store_peak_bytes(int64_t rows, int floats)
{
    size_t stride = stride_of(floats);
    int64_t slots = slots_for(rows), old_slots = slots / 2;
    size_t at_end = index_bytes(slots) + slabs_bytes(rows, stride);
    if (slots == SLOTS_MIN) return at_end;
    size_t rehashing =
        index_bytes(slots) + index_bytes(old_slots) + slabs_bytes(rows_max(old_slots), stride);
    return at_end > rehashing ? at_end : rehashing;
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
    s->mask = SLOTS_MIN - 1;
    s->slot = mem_pages_new(index_bytes(SLOTS_MIN));
    return s;
}

void row_store_set_limit(RowStore *s, size_t limit_bytes)
{
    s->limit = limit_bytes;
}

void row_store_free(RowStore **store)
{
    RowStore *s = *store;
    if (!s) return;
    for (int64_t i = 0; i < s->slabs; ++i) mem_pages_free(s->slab[i], s->slab_bytes);
    mem_free(&s->slab);
    mem_pages_free(s->slot, index_bytes((int64_t)s->mask + 1));
    mem_free(store);
}

int64_t row_store_count(const RowStore *store)
{
    return store->rows;
}

/* Adds a slab. The first 2 MiB of the first slab use pages of 4 KiB, so that a small table uses
 * little memory. All other memory uses huge pages, which save TLB misses. */
static void add_slab(RowStore *s)
{
    s->slab = mem_resize(s->slab, (size_t)(s->slabs + 1) * sizeof *s->slab);
    char *slab = mem_pages_new(s->slab_bytes);
    if (s->slabs == 0) madvise(slab, HUGE_PAGE, MADV_NOHUGEPAGE);
    s->slab[s->slabs++] = slab;
}

/* Moves all entries to a new index of `slots` slots. Entries are moved in the order of the old
 * slots, so that the writes go to few sequential ranges of the new index: two if it is twice as
 * large. */
static void grow_index(RowStore *s, int64_t slots)
{
    Slot *old = s->slot;
    uint64_t old_mask = s->mask;
    s->mask = (uint64_t)slots - 1;
    s->slot = mem_pages_new(index_bytes(slots));
    for (uint64_t i = 0; i <= old_mask; ++i) {
        if (!old[i].row_ref) continue;
        uint64_t p = old[i].tag & s->mask;
        while (s->slot[p].row_ref) p = (p + 1) & s->mask;
        s->slot[p] = old[i];
    }
    mem_pages_free(old, index_bytes((int64_t)old_mask + 1));
}

/* ---- rows ---- */

/* Returns the record of a row: its id, followed by its floats. */
static char *record_of(const RowStore *s, uint32_t row_ref)
{
    __extension__ typedef unsigned __int128 Wide;
    uint64_t number = (uint64_t)row_ref - 1;
    uint64_t slab = (uint64_t)((Wide)number * s->inverse >> 64);
    return s->slab[slab] + (number - slab * (uint64_t)s->slab_rows) * s->stride;
}

static float *floats_of(char *record)
{
    return (float *)(void *)(record + sizeof(uint64_t));
}

static uint64_t id_of(const char *record)
{
    uint64_t id;
    memcpy(&id, record, sizeof id);
    return id;
}

/* Returns the first slot from p on that is free or has the tag. */
static uint64_t next_match(const RowStore *s, uint64_t p, uint32_t tag)
{
    while (s->slot[p].row_ref && s->slot[p].tag != tag) p = (p + 1) & s->mask;
    return p;
}

/* Returns the slot of an id, or the free slot where it would be inserted. */
static uint64_t slot_of(const RowStore *s, uint64_t id)
{
    uint32_t tag = (uint32_t)row_hash(s->table, id);
    uint64_t p = next_match(s, tag & s->mask, tag);
    while (s->slot[p].row_ref && id_of(record_of(s, s->slot[p].row_ref)) != id)
        p = next_match(s, (p + 1) & s->mask, tag);
    return p;
}

/* Inline, because the compiler would remove the call of a function that only prefetches: the call
 * has no effect. */
ALWAYS_INLINE static inline void prefetch_slot(const RowStore *s, uint64_t id)
{
    __builtin_prefetch(&s->slot[row_hash(s->table, id) & s->mask], 0, 3);
}

ALWAYS_INLINE static inline void prefetch_record(const RowStore *s, const char *record)
{
    const char *end = record + s->stride;
    if (s->stride > ROW_LINES * LINE) end = record + ROW_LINES * LINE;
    for (const char *line = record; line < end; line += LINE) __builtin_prefetch(line, 1, 3);
    __builtin_prefetch(end - 1, 1, 3);
}

/* Prefetches and returns the first record whose tag is that of the id; it is almost always the
 * record of the id itself. Returns NULL if no record has the tag. */
static char *prefetch_candidate(const RowStore *s, uint64_t id)
{
    uint32_t tag = (uint32_t)row_hash(s->table, id);
    uint64_t p = next_match(s, tag & s->mask, tag);
    if (!s->slot[p].row_ref) return NULL;
    char *record = record_of(s, s->slot[p].row_ref);
    prefetch_record(s, record);
    return record;
}

/* Returns the row of an id, which is in the candidate `record` or in another record with the same
 * tag. Returns NULL if the id has no row. */
static float *confirm_candidate(const RowStore *s, uint64_t id, char *record)
{
    if (record && id_of(record) != id) {
        uint32_t other = s->slot[slot_of(s, id)].row_ref;
        record = other ? record_of(s, other) : NULL;
    }
    return record ? floats_of(record) : NULL;
}

/* Works as a pipeline of three stages, AHEAD ids apart: prefetch the slot, prefetch the record,
 * compare the id. */
void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at)
{
    char *candidate[AHEAD];
    for (int64_t i = 0; i < count + 2 * AHEAD; ++i) {
        int64_t second = i - AHEAD, third = second - AHEAD;
        if (i < count) prefetch_slot(store, id[i]);
        if (third >= 0) at[third] = confirm_candidate(store, id[third], candidate[third % AHEAD]);
        if (second >= 0 && second < count)
            candidate[second % AHEAD] = prefetch_candidate(store, id[second]);
    }
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Returns the number of distinct ids that have no row. missing: their number with duplicates. */
static int64_t count_distinct(const uint64_t *id, float *const *at, int64_t count, int64_t missing)
{
    uint64_t *sorted = mem_new((size_t)missing * sizeof *sorted);
    int64_t n = 0, distinct = 1;
    for (int64_t i = 0; i < count; ++i)
        if (!at[i]) sorted[n++] = id[i];
    qsort(sorted, (size_t)n, sizeof *sorted, by_value);
    for (int64_t i = 1; i < n; ++i) distinct += sorted[i] != sorted[i - 1];
    mem_free(&sorted);
    return distinct;
}

/* Returns the peak memory of the store while `more` rows are added. */
static size_t bytes_with(const RowStore *s, int64_t more)
{
    int64_t slots = (int64_t)s->mask + 1, slots_needed = slots_for(s->rows + more);
    int64_t allocated = s->rows_allocated + (more > s->free_count ? more - s->free_count : 0);
    size_t at_end = slabs_bytes(allocated, s->stride) + index_bytes(slots);
    if (slots_needed <= slots) return at_end;
    size_t rehashing =
        slabs_bytes(s->rows_allocated, s->stride) + index_bytes(slots) + index_bytes(slots_needed);
    at_end = slabs_bytes(allocated, s->stride) + index_bytes(slots_needed);
    return at_end > rehashing ? at_end : rehashing;
}

static bool has_room(const RowStore *s, int64_t more)
{
    return s->rows + more <= rows_max(SLOTS_MAX) &&
           (s->limit == 0 || bytes_with(s, more) <= s->limit);
}

static Status fail_no_room(const RowStore *s, int64_t more)
{
    char used[16], limit[16], needed[16];
    if (s->rows + more > rows_max(SLOTS_MAX))
        return fail(ERR_MEMORY,
                    "%lld rows on this rank and %lld more exceed the maximum of %lld rows per rank",
                    (long long)s->rows, (long long)more, (long long)rows_max(SLOTS_MAX));
    return fail(ERR_MEMORY,
                "%lld rows on this rank use %s of %s allowed; %lld more need %s in total",
                (long long)s->rows, text_bytes((double)row_store_bytes(s), used),
                text_bytes((double)s->limit, limit), (long long)more,
                text_bytes((double)bytes_with(s, more), needed));
}

/* Grows the index for the missing ids, or fails with ERR_MEMORY at the limit. missing: number of
 * ids without a row, with duplicates. The number without duplicates takes a sort; it is computed
 * only if the number with duplicates would grow the index or exceed the limit. */
static Status make_room(RowStore *s, const uint64_t *id, float *const *at, int64_t count,
                        int64_t missing)
{
    int64_t more = missing;
    if (!has_room(s, more) || slots_for(s->rows + more) > (int64_t)s->mask + 1)
        more = count_distinct(id, at, count, missing);
    if (!has_room(s, more)) return fail_no_room(s, more);
    int64_t slots = slots_for(s->rows + more);
    if (slots > (int64_t)s->mask + 1) grow_index(s, slots);
    return OK;
}

/* Makes a row of zeros for an id and returns its number + 1. Reuses the memory of the row that was
 * removed last, if there is one. */
static uint32_t new_row(RowStore *s, uint64_t id)
{
    uint32_t row_ref = (uint32_t)s->free_head;
    if (row_ref) {
        s->free_head = (int64_t)id_of(record_of(s, row_ref));
        --s->free_count;
        memset(record_of(s, row_ref), 0, s->stride);
    } else {
        row_ref = (uint32_t)++s->rows_allocated;
        if (s->rows_allocated > s->slabs * s->slab_rows) add_slab(s);
    }
    ++s->rows;
    memcpy(record_of(s, row_ref), &id, sizeof id);
    return row_ref;
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
        if (i + AHEAD < count && !at[i + AHEAD]) prefetch_slot(store, id[i + AHEAD]);
        if (at[i]) continue;
        Slot *slot = &store->slot[slot_of(store, id[i])];
        if (!slot->row_ref) {
            if (is_new) is_new[i] = true;
            *slot = (Slot){(uint32_t)row_hash(store->table, id[i]), new_row(store, id[i])};
        }
        at[i] = floats_of(record_of(store, slot->row_ref));
    }
    return OK;
}

float *row_store_next(const RowStore *store, int64_t *cursor, uint64_t *id)
{
    for (int64_t end = (int64_t)store->mask + 1; *cursor < end;) {
        int64_t p = (*cursor)++;
        if (p + AHEAD < end && store->slot[p + AHEAD].row_ref)
            prefetch_record(store, record_of(store, store->slot[p + AHEAD].row_ref));
        if (!store->slot[p].row_ref) continue;
        char *record = record_of(store, store->slot[p].row_ref);
        *id = id_of(record);
        return floats_of(record);
    }
    return NULL;
}

void row_store_remove(RowStore *store, uint64_t id)
{
    uint64_t hole = slot_of(store, id), mask = store->mask;
    uint32_t row_ref = store->slot[hole].row_ref;
    if (!row_ref) return;
    uint64_t next_free = (uint64_t)store->free_head;
    memcpy(record_of(store, row_ref), &next_free, sizeof next_free);
    store->free_head = row_ref;
    ++store->free_count;
    --store->rows;
    for (uint64_t p = (hole + 1) & mask; store->slot[p].row_ref; p = (p + 1) & mask) {
        /* an entry whose search begins after the hole stays */
        if (((p - store->slot[p].tag) & mask) < ((p - hole) & mask)) continue;
        store->slot[hole] = store->slot[p];
        hole = p;
    }
    store->slot[hole] = (Slot){0};
}
