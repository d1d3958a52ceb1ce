/* Numbers distinct (table, id) pairs as they first come, from 0 on. */
#ifndef WEFT_TABLE_INTERN_H
#define WEFT_TABLE_INTERN_H

#include "tensor.h"

typedef struct Intern {
    /* owned: places of a hash table, a power of two; the number that lies there, or -1 */
    int32_t *place;
    uint64_t mask;
    /* owned: of each number */
    uint64_t *id;
    int32_t *table;
    int count;
} Intern;

/* For at most so many. */
void intern_init(Intern *names, int64_t most);
void intern_fini(Intern *names);
/* None is known. */
void intern_clear(Intern *names);
/* mix: row_mix of table and id. */
static inline int32_t intern_number(Intern *names, int32_t table, uint64_t id, uint64_t mix)
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

/* Adds up values by the tree of their positions, which rise: those of neighbours 2i and 2i + 1 are
 * joined, level by level, and one without a neighbour moves up. The sum is in value[0]; positions
 * and the other values are spoilt. */
void join_tree(int32_t *position, float **value, int count, int width);

#endif
