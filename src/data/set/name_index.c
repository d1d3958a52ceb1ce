/* A hash table of names. Tables may have 65,536 columns and folders as many classes, so comparing
 * each name with all others would take seconds. */
#include "name_index.h"

#include <string.h>

static IndexedName *entry_of(const NameIndex *index, const char *name, size_t length)
{
    const uint64_t last = (uint64_t)index->places - 1;
    uint64_t at = hash_bytes(name, length) & last;
    for (;; at = (at + 1) & last) {
        IndexedName *e = &index->entry[at];
        if (!e->name || (e->length == length && memcmp(e->name, name, length) == 0)) return e;
    }
}

static void grow(NameIndex *index)
{
    NameIndex old = *index;
    index->places = old.places ? 2 * old.places : 64;
    index->entry = mem_new((size_t)index->places * sizeof *index->entry);
    for (int64_t i = 0; i < old.places; ++i) {
        const IndexedName *e = &old.entry[i];
        if (e->name) *entry_of(index, e->name, e->length) = *e;
    }
    mem_free(&old.entry);
}

bool name_index_add(NameIndex *index, const char *name, size_t length, int64_t number)
{
    if (2 * index->count >= index->places) grow(index);
    IndexedName *e = entry_of(index, name, length);
    if (e->name) return false;
    *e = (IndexedName){name, length, number};
    ++index->count;
    return true;
}

int64_t name_index_find(const NameIndex *index, const char *name, size_t length)
{
    if (index->count == 0) return -1;
    const IndexedName *e = entry_of(index, name, length);
    return e->name ? e->number : -1;
}

void name_index_fini(NameIndex *index)
{
    mem_free(&index->entry);
    *index = (NameIndex){0};
}
