/* Finds names by their bytes. */
#ifndef WEFT_DATA_NAME_INDEX_H
#define WEFT_DATA_NAME_INDEX_H

#include "base.h"

typedef struct IndexedName {
    /* borrowed; NULL: a free entry */
    const char *name;
    size_t length;
    int64_t number;
} IndexedName;
/* A hash table with open addressing; all zero: empty. */
typedef struct NameIndex {
    int64_t count, places;
    /* owned */
    IndexedName *entry;
} NameIndex;

/* Adds a name, which the index borrows. Returns false, and changes nothing, if it has the name. */
bool name_index_add(NameIndex *index, const char *name, size_t length, int64_t number);
/* Returns the number that was added with the name; -1: there is none. */
int64_t name_index_find(const NameIndex *index, const char *name, size_t length);
void name_index_fini(NameIndex *index);

#endif
