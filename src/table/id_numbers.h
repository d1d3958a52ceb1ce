/* Gives distinct (table, id) pairs the numbers 0, 1, ... in the order in which they first occur.
 * Also sparse_tree_sum, the sum over a tree with absent leaves. */
#ifndef WEFT_TABLE_ID_NUMBERS_H
#define WEFT_TABLE_ID_NUMBERS_H

#include "tensor.h"

typedef struct IdNumbers {
    /* hash table: the number at each place, or -1. The number of places is a power of two, mask +
     * 1. Owned */
    int32_t *place;
    uint64_t mask;
    /* id and table of each number, [count]; owned */
    uint64_t *id;
    int32_t *table;
    int count;
} IdNumbers;

/* Makes room for at most `most` pairs. */
void id_numbers_init(IdNumbers *names, int64_t most);
void id_numbers_fini(IdNumbers *names);
/* Forgets all pairs. */
void id_numbers_clear(IdNumbers *names);
/* Returns the pair's number, a new one if needed. mix: row_mix of table and id. */
static inline int32_t id_numbers_get(IdNumbers *names, int32_t table, uint64_t id, uint64_t mix)
{
    for (uint64_t at = mix & names->mask;; at = (at + 1) & names->mask) {
        int32_t n = names->place[at];
        if (n < 0) {
            n = names->count++;
            names->place[at] = n;
            names->id[n] = id;
            names->table[n] = table;
            return n;
        }
        if (names->id[n] == id && names->table[n] == table) return n;
    }
}

/* Adds arrays of `width` floats by the tree of their ascending positions: level by level,
 * neighbours 2i and 2i + 1 are added, and one without a neighbour moves up unchanged. The sum is in
 * value[0]; positions and the other values are overwritten. */
void sparse_tree_sum(int32_t *position, float **value, int count, int width);

#endif
