/* Declares IdNumbers, which numbers distinct (table, id) pairs 0, 1, ... in the order in which they
 * first occur, and sparse_tree_sum, the sum over a tree of which leaves may be absent. */
#ifndef WEFT_TABLE_ID_NUMBERS_H
#define WEFT_TABLE_ID_NUMBERS_H

#include "tensor.h"

typedef struct IdNumbers {
    /* hash table with linear probing: number of the pair in each slot, -1 in an empty slot,
     * [mask + 1]; owned */
    int32_t *slot;
    /* number of slots, which is a power of two, minus 1 */
    uint64_t mask;
    /* id of each pair, indexed by its number, [count]; owned */
    uint64_t *id;
    /* table of each pair, indexed by its number, [count]; owned */
    int32_t *table;
    /* number of pairs */
    int count;
} IdNumbers;

/* Allocates memory for at most `capacity` pairs. */
void id_numbers_init(IdNumbers *numbers, int64_t capacity);
void id_numbers_fini(IdNumbers *numbers);
/* Removes all pairs. */
void id_numbers_clear(IdNumbers *numbers);
/* Returns the number of the pair (table, id). A new pair gets the number `count`. mix: row_hash of
 * table and id. */
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

/* Adds `count` arrays of `width` floats, at least one array, in the order of a binary tree.
 * position[k]: number of the leaf that value[k] is; positions are distinct and ascending. On each
 * level the values at 2i and 2i + 1 are added; a value whose neighbour is absent moves up
 * unchanged. The sum is in value[0]; positions and the other values are overwritten. */
void sparse_tree_sum(int32_t *position, float **value, int count, int width);

#endif
