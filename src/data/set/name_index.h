/* Declares a hash table from names to numbers. */
#ifndef WEFT_DATA_NAME_INDEX_H
#define WEFT_DATA_NAME_INDEX_H

#include "base.h"

typedef struct IndexedName {
    /* borrowed; NULL: a free entry */
    const char *name;
    size_t length;
    int64_t number;
} IndexedName;
/* All zero: empty. Release with name_index_fini. */
typedef struct NameIndex {
    /* number of names */
    int64_t count;
    /* number of entries, a power of two; 0 before the first name */
    int64_t capacity;
    /* [capacity], owned */
    IndexedName *entry;
} NameIndex;

/* Adds a name, which the index borrows. Returns false, and changes nothing, if the name is in the
 * index already. */
bool name_index_add(NameIndex *index, const char *name, size_t length, int64_t number);
/* Returns the number that was added with the name; -1: the name is not in the index. */
int64_t name_index_find(const NameIndex *index, const char *name, size_t length);
void name_index_fini(NameIndex *index);

#endif
