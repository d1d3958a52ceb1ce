/* Numbers the distinct (table, id) pairs 0, 1, ... in the order in which they first occur. Also
 * sparse_tree_sum, the sum over a tree with absent leaves. */
#ifndef WEFT_TABLE_ID_NUMBERS_H
#define WEFT_TABLE_ID_NUMBERS_H

#include "tensor.h"

typedef struct IdNumbers {
    /* hash table with linear probing: number of the pair in each slot, or -1 in an empty slot;
     * [mask + 1], a power of two; owned */
    int32_t *slot;
    uint64_t mask;
    /* id and table of each pair, by its number, [count]; owned */
    uint64_t *id;
    int32_t *table;
    int count;
} IdNumbers;

/* Allocates memory for at most `capacity` pairs. */
void id_numbers_init(IdNumbers *numbers, int64_t capacity);
void id_numbers_fini(IdNumbers *numbers);
/* Removes all pairs. */
void id_numbers_clear(IdNumbers *numbers);
/* Returns the pair's number. A new pair gets the number `count`. mix: row_hash of table and id. */
static inline int32_t id_numbers_get(IdNumbers *numbers, int32_t table, uint64_t id, uint64_t mix)
{
    for (uint64_t i = mix & numbers->mask;; i = (i + 1) & numbers->mask) {
        int32_t n = numbers->slot[i];
        if (n < 0) {
            n = numbers->count++;
            numbers->slot[i] = n;
            numbers->id[n] = id;
            numbers->table[n] = table;
            return n;
        }
        if (numbers->id[n] == id && numbers->table[n] == table) return n;
    }
}

/* Adds `count` arrays, at least one, of `width` floats in the order of a binary tree. position[k],
 * ascending and distinct, is the leaf of value[k]. On each level the values at 2i and 2i + 1 are
 * added; a value whose neighbour is absent moves up unchanged. The sum is in value[0]; positions
 * and the other values are overwritten. */
void sparse_tree_sum(int32_t *position, float **value, int count, int width);

#endif
