/* Implements a hash table from names to numbers, with linear probing. A table may have 65,536
 * columns, and a folder as many classes, so comparing each name with each other would take
 * seconds. */
#include "name_index.h"

#include <string.h>

/* Returns the entry of the name, or the free entry where it belongs. */
static IndexedName *find_entry(const NameIndex *index, const char *name, size_t length)
{
    const uint64_t mask = (uint64_t)index->capacity - 1;
    uint64_t at = hash_bytes(name, length) & mask;
    for (;; at = (at + 1) & mask) {
        IndexedName *e = &index->entry[at];
        if (!e->name || (e->length == length && memcmp(e->name, name, length) == 0)) return e;
    }
}

static void grow(NameIndex *index)
{
    NameIndex old = *index;
    index->capacity = old.capacity ? 2 * old.capacity : 64;
    index->entry = mem_new((size_t)index->capacity * sizeof *index->entry);
    for (int64_t i = 0; i < old.capacity; ++i) {
        const IndexedName *e = &old.entry[i];
        if (e->name) *find_entry(index, e->name, e->length) = *e;
    }
    mem_free(&old.entry);
}

bool name_index_add(NameIndex *index, const char *name, size_t length, int64_t number)
{
    if (2 * index->count >= index->capacity) grow(index);
    IndexedName *e = find_entry(index, name, length);
    if (e->name) return false;
    *e = (IndexedName){name, length, number};
    ++index->count;
    return true;
}

int64_t name_index_find(const NameIndex *index, const char *name, size_t length)
{
    if (index->count == 0) return -1;
    const IndexedName *e = find_entry(index, name, length);
    return e->name ? e->number : -1;
}

void name_index_fini(NameIndex *index)
{
    mem_free(&index->entry);
    *index = (NameIndex){0};
}
