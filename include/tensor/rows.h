/* A store of rows by 64-bit id: what a sparse table has on one rank. Open addressing with linear
 * probing over a power of two places, at most 7 of 10 of which are taken; rows lie in slabs that
 * never move, so a pointer to one holds until the row is removed. Any id is allowed, 0 and
 * 2^64 - 1, too. One thread at a time. Not collective. */
#ifndef WEFT_TENSOR_ROWS_H
#define WEFT_TENSOR_ROWS_H

#include "base.h"

/* The mix of a table and an id: from its top ROW_SHARD_BITS bits follows the row's shard, which no
 * number of ranks changes; the store places by the low ones. It is the number that splitmix64
 * (Steele et al. 2014, "Fast splittable pseudorandom number generators") draws in the state
 * table + id: of one table no two ids have the same. Files are in its order: it stays as it is. */
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
/* Rows of so many floats, for the table of that hash (hash_text of its name). It takes limit_bytes
 * at most, slabs and index together, also while it grows; 0: as many as there are. Owner: the
 * caller. */
RowStore *row_store_new(uint64_t table, int floats, size_t limit_bytes);
void row_store_free(RowStore **store);
/* It takes so much at most from now on. */
void row_store_limit(RowStore *store, size_t limit_bytes);
int64_t row_store_count(const RowStore *store);
/* What it takes now. And what it takes at most until it has so many rows, for a plan: with this
 * limit so many can be added. */
size_t row_store_bytes(const RowStore *store);
size_t row_store_bytes_of(int64_t rows, int floats);
/* at[i]: the row of id[i], or NULL where it has none. Many are on their way from memory at once,
 * and then in the cache: ask for some hundreds, and work on them before the next. */
void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at);
/* Likewise, but those that are missing are added, zeroed; is_new[i] says which (may be NULL). An id
 * that comes twice has one row, new the first time. ERR_MEMORY at the limit, with what it has and
 * what would be needed, and nothing is added: rows and memory are as before. */
Status row_store_add(RowStore *store, const uint64_t *id, int64_t count, float **at, bool *is_new);
/* Asks memory for a row: some ROW_AHEAD rows before it is worked on, where rows are known. */
enum { ROW_AHEAD = 12 };
void row_store_ask(const RowStore *store, const float *row);
/* All rows, each once, in no order that means anything, while none is added or removed: the next
 * row and its id; NULL: there is none. *place is 0 before the first. */
float *row_store_next(const RowStore *store, int64_t *place, uint64_t *id);
/* Takes out the row of an id, if there is one. Its memory is the next new row's. */
void row_store_remove(RowStore *store, uint64_t id);

#endif
