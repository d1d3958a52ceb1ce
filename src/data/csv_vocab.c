/* The words of a field: open addressing over a row of words, whose texts lie behind each other.
 * Each thread has its own while it counts; joined and put in order they are the same whatever
 * thread met which word. */
#include "csv.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

static uint64_t eight(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint32_t four(const char *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

/* memcmp for words, which are short: by pieces that overlap. */
static bool same(const char *a, const char *b, size_t n)
{
    if (n > 16) return memcmp(a, b, n) == 0;
    if (n >= 8) return eight(a) == eight(b) && eight(a + n - 8) == eight(b + n - 8);
    if (n >= 4) return four(a) == four(b) && four(a + n - 4) == four(b + n - 4);
    while (n > 0 && a[n - 1] == b[n - 1]) --n;
    return n == 0;
}

static int64_t place_of(const CsvVocab *v, const CsvValue *value, uint64_t hash)
{
    int64_t at = (int64_t)(hash & (uint64_t)(v->places - 1));
    for (; v->place[at]; at = (at + 1) & (v->places - 1)) {
        const CsvWord *w = &v->word[v->place[at] - 1];
        if (w->hash == hash && w->length == value->length &&
            same(v->text + w->at, value->text, value->length))
            break;
    }
    return at;
}

/* Finds places for all words anew. */
static void places_fill(CsvVocab *v)
{
    memset(v->place, 0, (size_t)v->places * sizeof *v->place);
    for (int64_t i = 0; i < v->count; ++i) {
        int64_t at = (int64_t)(v->word[i].hash & (uint64_t)(v->places - 1));
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
    if (v->bytes + (int64_t)bytes <= v->bytes_room) return;
    v->bytes_room = 2 * (v->bytes + (int64_t)bytes) + 256;
    v->text = mem_resize(v->text, (size_t)v->bytes_room);
}

bool csv_vocab_add(CsvVocab *v, const CsvValue *value, uint64_t first, int64_t count)
{
    uint64_t hash = XXH3_64bits(value->text, value->length);
    int64_t at = v->places ? place_of(v, value, hash) : 0;
    if (v->places && v->place[at]) {
        CsvWord *w = &v->word[v->place[at] - 1];
        w->count += count;
        if (first < w->first) w->first = first;
        return true;
    }
    if (v->count == INT32_MAX) return false;
    int64_t places = v->places;
    grow(v, value->length);
    if (v->places != places) at = place_of(v, value, hash);
    if (value->length) memcpy(v->text + v->bytes, value->text, value->length);
    v->word[v->count] = (CsvWord){hash, first, count, (size_t)v->bytes, (uint32_t)value->length};
    v->bytes += (int64_t)value->length;
    v->place[at] = (uint32_t)++v->count;
    return true;
}

uint64_t csv_vocab_find(const CsvVocab *v, const CsvValue *value, uint64_t unknown)
{
    if (!v->places) return unknown;
    int64_t at = place_of(v, value, XXH3_64bits(value->text, value->length));
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

herr_t csv_vocab_put(const CsvVocab *v, hid_t file, const char *name)
{
    size_t width = 1;
    int64_t offset;
    hsize_t count = (hsize_t)v->count;
    for (int64_t i = 0; i < v->count; ++i)
        if (v->word[i].length > width) width = v->word[i].length;
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

void csv_vocab_fini(CsvVocab *v)
{
    mem_free(&v->word);
    mem_free(&v->place);
    mem_free(&v->text);
}
