/* Keeps the vocabulary of a field: an array of words, and a hash table with linear probing that
 * finds a word. In the first pass of an import each thread has its own vocabularies. After they
 * are joined and sorted, the result does not depend on which thread read which record. */
#include "csv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t load_eight_bytes(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Computes the key of a value. The key of a value of up to 16 bytes is its bytes, which are loaded
 * without a branch on their number. The key of a longer value is two hashes, and find_slot compares
 * the texts as well. */
static void make_key(const CsvValue *v, uint64_t key[2])
{
    enum { SHORT = 16 };
/* mask of the lowest n bytes */
#define LOW(n) (~UINT64_C(0) >> (64 - 8 * (n)))
    static const uint64_t mask[SHORT + 1][2] = {
        {0, 0},           {LOW(1), 0},      {LOW(2), 0},      {LOW(3), 0},      {LOW(4), 0},
        {LOW(5), 0},      {LOW(6), 0},      {LOW(7), 0},      {LOW(8), 0},      {LOW(8), LOW(1)},
        {LOW(8), LOW(2)}, {LOW(8), LOW(3)}, {LOW(8), LOW(4)}, {LOW(8), LOW(5)}, {LOW(8), LOW(6)},
        {LOW(8), LOW(7)}, {LOW(8), LOW(8)}};
#undef LOW
    if (v->length > SHORT) {
        key[0] = XXH3_64bits(v->text, v->length);
        key[1] = XXH3_64bits_withSeed(v->text, v->length, 1);
        return;
    }
    key[0] = load_eight_bytes(v->text) & mask[v->length][0];
    key[1] = load_eight_bytes(v->text + 8) & mask[v->length][1];
}

/* Returns the index at which the search for a key begins (murmur3's mixing steps). */
static int64_t home_slot(const CsvVocab *v, const uint64_t key[2])
{
    uint64_t x = (key[0] ^ key[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 32) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (int64_t)((x ^ x >> 29) & (uint64_t)(v->slots - 1));
}

/* Returns the index of the value's slot; if the value is not in the vocabulary, the index of the
 * empty slot where it belongs. */
static int64_t find_slot(const CsvVocab *v, const CsvValue *value, const uint64_t key[2])
{
    int64_t at = home_slot(v, key);
    for (; v->slot[at]; at = (at + 1) & (v->slots - 1)) {
        const CsvWord *w = &v->word[v->slot[at] - 1];
        if (w->key[0] == key[0] && w->key[1] == key[1] && w->length == value->length &&
            (w->length <= 2 * sizeof *key ||
             memcmp(v->text + w->offset, value->text, value->length) == 0))
            break;
    }
    return at;
}

/* Rebuilds the hash table. */
static void fill_slots(CsvVocab *v)
{
    memset(v->slot, 0, (size_t)v->slots * sizeof *v->slot);
    for (int64_t i = 0; i < v->count; ++i) {
        int64_t at = home_slot(v, v->word[i].key);
        while (v->slot[at]) at = (at + 1) & (v->slots - 1);
        v->slot[at] = (uint32_t)(i + 1);
    }
}

/* Reserves memory for one more word, of `bytes` bytes. */
static void grow(CsvVocab *v, size_t bytes)
{
    if (v->count == v->room) {
        v->room = v->room ? 2 * v->room : 64;
        v->slots = 2 * v->room;
        v->word = mem_resize(v->word, (size_t)v->room * sizeof *v->word);
        v->slot = mem_resize(v->slot, (size_t)v->slots * sizeof *v->slot);
        fill_slots(v);
    }
    if (v->text && v->text_bytes + (int64_t)bytes + CSV_OVERREAD_BYTES <= v->text_room) return;
    v->text_room = 2 * (v->text_bytes + (int64_t)bytes + CSV_OVERREAD_BYTES) + 256;
    v->text = mem_resize(v->text, (size_t)v->text_room);
}

bool csv_vocab_add(CsvVocab *v, const CsvValue *value, uint64_t first, int64_t count)
{
    uint64_t key[2];
    make_key(value, key);
    int64_t at = v->slots ? find_slot(v, value, key) : 0;
    if (v->slots && v->slot[at]) {
        CsvWord *w = &v->word[v->slot[at] - 1];
        w->count += count;
        if (first < w->first_or_id) w->first_or_id = first;
        return true;
    }
    if (v->count == INT32_MAX) return false;
    int64_t slots = v->slots;
    grow(v, value->length);
    if (v->slots != slots) at = find_slot(v, value, key);
    if (value->length) memcpy(v->text + v->text_bytes, value->text, value->length);
    v->word[v->count] =
        (CsvWord){{key[0], key[1]}, first, count, (size_t)v->text_bytes, (uint32_t)value->length};
    v->text_bytes += (int64_t)value->length;
    v->slot[at] = (uint32_t)++v->count;
    return true;
}

uint64_t csv_vocab_find(const CsvVocab *v, const CsvValue *value, uint64_t unknown)
{
    if (!v->slots) return unknown;
    uint64_t key[2];
    make_key(value, key);
    int64_t at = find_slot(v, value, key);
    return v->slot[at] ? v->word[v->slot[at] - 1].first_or_id : unknown;
}

bool csv_vocab_join(CsvVocab *v, const CsvVocab *other)
{
    for (int64_t i = 0; i < other->count; ++i) {
        const CsvWord *w = &other->word[i];
        CsvValue value = {other->text + w->offset, w->length};
        if (!csv_vocab_add(v, &value, w->first_or_id, w->count)) return false;
    }
    return true;
}

static int by_first(const void *a, const void *b)
{
    const CsvWord *x = a, *y = b;
    return (x->first_or_id > y->first_or_id) - (x->first_or_id < y->first_or_id);
}

static int by_text(const void *a, const void *b, void *text)
{
    const CsvWord *x = a, *y = b;
    size_t shorter = x->length < y->length ? x->length : y->length;
    int order = memcmp((char *)text + x->offset, (char *)text + y->offset, shorter);
    return order ? order : (x->length > y->length) - (x->length < y->length);
}

void csv_vocab_assign_ids(CsvVocab *v, bool sorted, int64_t min_count, uint64_t first_id)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < v->count; ++i)
        if (v->word[i].count >= min_count) v->word[kept++] = v->word[i];
    v->count = kept;
    if (sorted && kept)
        qsort_r(v->word, (size_t)kept, sizeof *v->word, by_text, v->text);
    else if (kept)
        qsort(v->word, (size_t)kept, sizeof *v->word, by_first);
    if (v->slots) fill_slots(v);
    for (int64_t i = 0; i < kept; ++i) v->word[i].first_or_id = first_id + (uint64_t)i;
}

int64_t csv_vocab_longest(const CsvVocab *v)
{
    int64_t width = 1;
    for (int64_t i = 0; i < v->count; ++i)
        if (v->word[i].length > width) width = v->word[i].length;
    return width;
}

herr_t csv_vocab_put(const CsvVocab *v, hid_t file, const char *name)
{
    size_t width = (size_t)csv_vocab_longest(v);
    int64_t offset;
    hsize_t count = (hsize_t)v->count;
    char *text = mem_new((size_t)v->count * width + 1), *path = mem_format("/vocab/%s", name);
    for (int64_t i = 0; i < v->count; ++i)
        memcpy(text + (size_t)i * width, v->text + v->word[i].offset, v->word[i].length);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    herr_t rc = h5_put_array(file, path, type, 1, &count, &offset);
    if (rc >= 0) rc = h5_fill_array(file, path, type, text);
    H5Tclose(type);
    mem_free(&text);
    mem_free(&path);
    return rc;
}

uint64_t csv_vocab_hash(const CsvVocab *v, uint64_t before)
{
    XXH3_state_t *state = XXH3_createState();
    if (!state) die("out of memory: a hash's state");
    XXH3_64bits_reset_withSeed(state, before);
    for (int64_t i = 0; i < v->count; ++i) {
        const CsvWord *w = &v->word[i];
        XXH3_64bits_update(state, &w->length, sizeof w->length);
        if (w->length) XXH3_64bits_update(state, v->text + w->offset, w->length);
    }
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

void csv_vocab_fini(CsvVocab *v)
{
    mem_free(&v->word);
    mem_free(&v->slot);
    mem_free(&v->text);
}
