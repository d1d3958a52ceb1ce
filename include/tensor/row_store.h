/* A hash table from 64-bit ids to rows of floats: one rank's part of a sparse table. Its index uses
 * open addressing with linear probing; the number of slots is a power of two, of which at most 70 %
 * are in use. Rows are stored in slabs that never move, so a pointer to a row is valid until that
 * row is removed. Every id is allowed, including 0 and 2^64 - 1. Only one thread at a time may use
 * a store. Not collective. */
#ifndef WEFT_TENSOR_ROW_STORE_H
#define WEFT_TENSOR_ROW_STORE_H

#include "base.h"

/* Returns the hash of an id in a table. table: hash_text of the table's name. The top
 * ROW_SHARD_BITS bits are the row's shard (row_shard), which does not depend on the number of
 * ranks; the low bits choose the slot in the index of the store. The hash is the output of
 * splitmix64 (Steele et al. 2014, "Fast splittable pseudorandom number generators") for the state
 * table + id, so no two ids of a table have the same hash. Files are sorted by this hash, so it
 * must never change. */
enum { ROW_SHARD_BITS = 12, ROW_SHARDS = 1 << ROW_SHARD_BITS };
static inline uint64_t row_hash(uint64_t table, uint64_t id)
{
    uint64_t z = table + id + 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}
static inline int row_shard(uint64_t hash)
{
    return (int)(hash >> (64 - ROW_SHARD_BITS));
}

typedef struct RowStore RowStore;
/* Makes a store of rows of `floats` floats each. table: hash_text of the table's name. limit_bytes:
 * largest memory of slabs and index together, also while the index grows; 0: no limit. Release with
 * row_store_free. */
RowStore *row_store_new(uint64_t table, int floats, size_t limit_bytes);
void row_store_free(RowStore **store);
/* Changes the limit from now on. */
void row_store_set_limit(RowStore *store, size_t limit_bytes);
int64_t row_store_count(const RowStore *store);
/* row_store_bytes returns the bytes of memory that are in use now. row_store_peak_bytes returns the
 * largest number of bytes that a store uses until it has `rows` rows; a store with this limit can
 * hold the rows. */
size_t row_store_bytes(const RowStore *store);
size_t row_store_peak_bytes(int64_t rows, int floats);
/* Sets at[i] to the row of id[i], or to NULL if it has none, for i < count. The function overlaps
 * the memory accesses of many ids and leaves the rows in the cache: pass a few hundred ids, and use
 * their rows before the next call. */
void row_store_find(const RowStore *store, const uint64_t *id, int64_t count, float **at);
/* Does what row_store_find does, and adds missing rows, filled with zeros. is_new: NULL, or
 * is_new[i] is set to true if the row of id[i] was added; if an id occurs twice, only at its first
 * index. ERR_MEMORY: the limit, or about 3 * 10^9 rows (70 % of 2^32), is reached; nothing is
 * added, and the message does not name the table. */
Status row_store_add(RowStore *store, const uint64_t *id, int64_t count, float **at, bool *is_new);
/* Returns the next row and its id, or NULL at the end, so that a loop visits each row once, in no
 * particular order. *cursor is 0 before the first call. No row may be added or removed until the
 * end. */
float *row_store_next(const RowStore *store, int64_t *cursor, uint64_t *id);
/* Removes the row of an id, if it has one. The next new row reuses its memory. */
void row_store_remove(RowStore *store, uint64_t id);

#endif
