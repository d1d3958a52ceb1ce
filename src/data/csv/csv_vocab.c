/* The vocabulary of a field: a hash table with open addressing over an array of words, whose texts
 * are stored one behind the other. Each thread has its own while counting; joined and sorted, the
 * result does not depend on which thread saw which word. */
#include "csv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t eight(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Computes the key of a value: the bytes themselves up to 16, without a branch on their number;
 * else two hashes, and texts are compared as well. */
static void key_of(const CsvValue *v, uint64_t key[2])
{
    enum { SHORT = 16 };
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
    key[0] = eight(v->text) & mask[v->length][0];
    key[1] = eight(v->text + 8) & mask[v->length][1];
}

static int64_t first_place(const CsvVocab *v, const uint64_t key[2])
{
    uint64_t x = (key[0] ^ key[1] * UINT64_C(0x9e3779b97f4a7c15)) * UINT64_C(0xff51afd7ed558ccd);
    x = (x ^ x >> 32) * UINT64_C(0xc4ceb9fe1a85ec53);
    return (int64_t)((x ^ x >> 29) & (uint64_t)(v->places - 1));
}

static int64_t place_of(const CsvVocab *v, const CsvValue *value, const uint64_t key[2])
{
    int64_t at = first_place(v, key);
    for (; v->place[at]; at = (at + 1) & (v->places - 1)) {
        const CsvWord *w = &v->word[v->place[at] - 1];
        if (w->key[0] == key[0] && w->key[1] == key[1] && w->length == value->length &&
            (w->length <= 2 * sizeof *key ||
             memcmp(v->text + w->at, value->text, value->length) == 0))
            break;
    }
    return at;
}

/* Enters all words into the hash table again. */
static void places_fill(CsvVocab *v)
{
    memset(v->place, 0, (size_t)v->places * sizeof *v->place);
    for (int64_t i = 0; i < v->count; ++i) {
        int64_t at = first_place(v, v->word[i].key);
        while (v->place[at]) at = (at + 1) & (v->places - 1);
        v->place[at] = (uint32_t)(i + 1);
    }
}

static void grow(CsvVocab *v, size_t bytes)
{
    if (v->count == v->room) {
        v->room = v->room ? 2 * v->room : 64;
        v->places = 2 * v->room;
        v->word = mem_resize(v->word, (size_t)v->room * sizeof *v->word);
        v->place = mem_resize(v->place, (size_t)v->places * sizeof *v->place);
        places_fill(v);
    }
    if (v->text && v->bytes + (int64_t)bytes + CSV_BEYOND <= v->bytes_room) return;
    v->bytes_room = 2 * (v->bytes + (int64_t)bytes + CSV_BEYOND) + 256;
    v->text = mem_resize(v->text, (size_t)v->bytes_room);
}

bool csv_vocab_add(CsvVocab *v, const CsvValue *value, uint64_t first, int64_t count)
{
    uint64_t key[2];
    key_of(value, key);
    int64_t at = v->places ? place_of(v, value, key) : 0;
    if (v->places && v->place[at]) {
        CsvWord *w = &v->word[v->place[at] - 1];
        w->count += count;
        if (first < w->first) w->first = first;
        return true;
    }
    if (v->count == INT32_MAX) return false;
    int64_t places = v->places;
    grow(v, value->length);
    if (v->places != places) at = place_of(v, value, key);
    if (value->length) memcpy(v->text + v->bytes, value->text, value->length);
    v->word[v->count] =
        (CsvWord){{key[0], key[1]}, first, count, (size_t)v->bytes, (uint32_t)value->length};
    v->bytes += (int64_t)value->length;
    v->place[at] = (uint32_t)++v->count;
    return true;
}

uint64_t csv_vocab_find(const CsvVocab *v, const CsvValue *value, uint64_t unknown)
{
    if (!v->places) return unknown;
    uint64_t key[2];
    key_of(value, key);
    int64_t at = place_of(v, value, key);
    return v->place[at] ? v->word[v->place[at] - 1].first : unknown;
}

bool csv_vocab_join(CsvVocab *v, const CsvVocab *other)
{
    for (int64_t i = 0; i < other->count; ++i) {
        const CsvWord *w = &other->word[i];
        CsvValue value = {other->text + w->at, w->length};
        if (!csv_vocab_add(v, &value, w->first, w->count)) return false;
    }
    return true;
}

static int by_first(const void *a, const void *b)
{
    const CsvWord *x = a, *y = b;
    return (x->first > y->first) - (x->first < y->first);
}

static int by_text(const void *a, const void *b, void *text)
{
    const CsvWord *x = a, *y = b;
    size_t least = x->length < y->length ? x->length : y->length;
    int rc = memcmp((char *)text + x->at, (char *)text + y->at, least);
    return rc ? rc : (x->length > y->length) - (x->length < y->length);
}

void csv_vocab_done(CsvVocab *v, bool sorted, int64_t least, uint64_t id)
{
    int64_t kept = 0;
    for (int64_t i = 0; i < v->count; ++i)
        if (v->word[i].count >= least) v->word[kept++] = v->word[i];
    v->count = kept;
    if (sorted && kept)
        qsort_r(v->word, (size_t)kept, sizeof *v->word, by_text, v->text);
    else if (kept)
        qsort(v->word, (size_t)kept, sizeof *v->word, by_first);
    if (v->places) places_fill(v);
    for (int64_t i = 0; i < kept; ++i) v->word[i].first = id + (uint64_t)i;
}

int64_t csv_vocab_width(const CsvVocab *v)
{
    int64_t width = 1;
    for (int64_t i = 0; i < v->count; ++i)
        if (v->word[i].length > width) width = v->word[i].length;
    return width;
}

herr_t csv_vocab_put(const CsvVocab *v, hid_t file, const char *name)
{
    size_t width = (size_t)csv_vocab_width(v);
    int64_t offset;
    hsize_t count = (hsize_t)v->count;
    char *text = mem_new((size_t)v->count * width + 1), *at = mem_format("/vocab/%s", name);
    for (int64_t i = 0; i < v->count; ++i)
        memcpy(text + (size_t)i * width, v->text + v->word[i].at, v->word[i].length);
    hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, width);
    H5Tset_strpad(type, H5T_STR_NULLPAD);
    herr_t rc = h5_put_array(file, at, type, 1, &count, &offset);
    if (rc >= 0) rc = h5_fill_array(file, at, type, text);
    H5Tclose(type);
    mem_free(&text);
    mem_free(&at);
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
        if (w->length) XXH3_64bits_update(state, v->text + w->at, w->length);
    }
    uint64_t hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);
    return hash;
}

void csv_vocab_fini(CsvVocab *v)
{
    mem_free(&v->word);
    mem_free(&v->place);
    mem_free(&v->text);
}
