/* A store of rows by 64-bit id: what a sparse table has on one rank. Open addressing with linear
 * probing over a power of two places of {id, row number}; rows lie in slabs that never move, so a
 * pointer to one holds until the row is removed. Any id is allowed, 0 and 2^64 - 1, too. One thread
 * at a time. Not collective. */
#ifndef WEFT_TENSOR_ROWS_H
#define WEFT_TENSOR_ROWS_H

#include "base.h"

/* The mix of a table and an id: from its top ROW_SHARD_BITS bits follows the row's shard, which no
 * number of ranks changes; the store places by the low ones. */
enum { ROW_SHARD_BITS = 12, ROW_SHARDS = 1 << ROW_SHARD_BITS };
uint64_t row_mix(uint64_t table, uint64_t id);
static inline int row_shard(uint64_t mix)
{
    return (int)(mix >> (64 - ROW_SHARD_BITS));
}

typedef struct RowStore RowStore;
/* Rows of so many floats, for the table of that hash (hash_text of its name). It takes limit_bytes
 * at most, slabs and index together; 0: as many as there are. Owner: the caller. */
RowStore *row_store_new(uint64_t table, int floats, size_t limit_bytes);
void row_store_free(RowStore **store);
int64_t row_store_count(const RowStore *store);
/* What it takes now; and what it takes for so many rows, for a plan. */
size_t row_store_bytes(const RowStore *store);
size_t row_store_bytes_of(int64_t rows, int floats);
/* at[i]: the row of id[i], or NULL where it has none. */
void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at);
/* Likewise, but those that are missing are added, zeroed; is_new[i] says which (may be NULL). An id
 * that comes twice has one row. ERR_MEMORY at the limit, with what it has and what would be needed,
 * and nothing is added. */
Status row_store_add(RowStore *store, const uint64_t *id, int64_t count, float **at, bool *is_new);
/* Row number i, 0 <= i < count, in no order that means anything: its id, and the row. */
uint64_t row_store_at(const RowStore *store, int64_t i, float **row);
/* Takes out the row of an id, if there is one; another one then has its number. Its memory is the
 * next new row's. */
void row_store_remove(RowStore *store, uint64_t id);

#endif
