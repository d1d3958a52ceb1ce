/* A store of rows by 64-bit id: one rank's part of a sparse table. Open addressing with linear
 * probing over a power of two of places, at most 7 of 10 taken. Rows lie in slabs that never move,
 * so a pointer to a row is valid until that row is removed. Every id is allowed, including 0 and
 * 2^64 - 1. One thread at a time. Not collective. */
#ifndef WEFT_TENSOR_ROWS_H
#define WEFT_TENSOR_ROWS_H

#include "base.h"

/* Hashes a table and an id. The top ROW_SHARD_BITS bits are the row's shard, which does not depend
 * on the number of ranks; the store finds places with the low bits. The result is what splitmix64
 * (Steele et al. 2014, "Fast splittable pseudorandom number generators") draws in the state table +
 * id, so no two ids of a table collide. Files are sorted by it: it must not change. */
enum { ROW_SHARD_BITS = 12, ROW_SHARDS = 1 << ROW_SHARD_BITS };
static inline uint64_t row_mix(uint64_t table, uint64_t id)
{
    uint64_t z = table + id + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline int row_shard(uint64_t mix)
{
    return (int)(mix >> (64 - ROW_SHARD_BITS));
}

typedef struct RowStore RowStore;
/* Makes a store of rows of `floats` floats each for the table with that hash (hash_text of its
 * name). Slabs and index together take limit_bytes at most, even while the index grows; 0: no
 * limit. Owner: the caller. */
RowStore *row_store_new(uint64_t table, int floats, size_t limit_bytes);
void row_store_free(RowStore **store);
/* Changes the limit from now on. */
void row_store_limit(RowStore *store, size_t limit_bytes);
int64_t row_store_count(const RowStore *store);
/* Bytes that the store takes now; and the most that a store takes on its way to `rows` rows, for a
 * plan: with that limit all of them can be added. */
size_t row_store_bytes(const RowStore *store);
size_t row_store_bytes_of(int64_t rows, int floats);
/* at[i] = the row of id[i], or NULL if it has none. Overlaps the memory accesses of many ids and
 * leaves the rows in the cache: look up some hundreds, and work on them before the next. */
void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at);
/* row_store_find, but adds missing rows, zeroed; is_new[i] says which (may be NULL). An id that
 * appears twice gets one row, new at its first place. ERR_MEMORY at the limit, with the bytes taken
 * and the bytes needed; then nothing is added. */
Status row_store_add(RowStore *store, const uint64_t *id, int64_t count, float **at, bool *is_new);
/* Prefetches a row. Call it some ROW_AHEAD rows before the row is used. */
enum { ROW_AHEAD = 12 };
void row_store_prefetch(const RowStore *store, const float *row);
/* Iterates over all rows, each once, in no particular order, while none is added or removed.
 * Returns the next row and its id; NULL at the end. *place is 0 before the first call. */
float *row_store_next(const RowStore *store, int64_t *place, uint64_t *id);
/* Removes the row of an id, if there is one. The next new row reuses its memory. */
void row_store_remove(RowStore *store, uint64_t id);

#endif
