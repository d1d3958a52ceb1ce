/* Converts the text of a value to a number, a label or an id, as its column says, or reports what
 * is wrong with it. */
#include "csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

bool csv_missing(const CsvSchema *s, const CsvValue *v)
{
    if (v->length == 0) return s->missing_empty;
    return s->missing_begins[(uint8_t)v->text[0]] &&
           csv_texts_have(&s->missing, v->text, v->length);
}

/* Fast path: up to 15 digits and a power of ten are exact doubles, so one division gives the
 * nearest double. false: use strtod. */
static bool number_short(const CsvValue *v, double *number)
{
    static const double ten[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = v->text, *end = p + v->length;
    bool minus = p < end && *p == '-', point = false;
    int64_t digits = 0;
    int after = 0, count = 0;
    if (p < end && (*p == '-' || *p == '+')) ++p;
    for (; p < end; ++p) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        unsigned digit = (unsigned)(*p - '0');
        if (digit > 9 || ++count > 15) return false;
        digits = 10 * digits + (int64_t)digit;
        after += point;
    }
    if (count == 0) return false;
    *number = (double)digits / ten[after];
    if (minus) *number = -*number;
    return true;
}

bool csv_number(const CsvValue *v, double *number)
{
    enum { MOST = 400 };
    char text[MOST + 1], *end;
    if (number_short(v, number)) return true;
    if (v->length == 0 || v->length > MOST) return false;
    for (size_t i = 0; i < v->length; ++i)
        if (!memchr("0123456789+-.eE", v->text[i], 15)) return false;
    memcpy(text, v->text, v->length);
    text[v->length] = 0;
    *number = strtod(text, &end);
    return *end == 0;
}

/* Returns the value before mean and deviation are applied. */
Status csv_value_number(const CsvReader *r, int at, const CsvColumn *c, double *x)
{
    const CsvValue *v = &r->value[at];
    if (csv_missing(r->input->schema, v)) {
        if (!c->has_fill)
            return csv_fail(r, v->text, at, "a value is missing, and the schema has no `fill`");
        *x = c->fill;
    } else if (!csv_number(v, x)) {
        return csv_fail(r, v->text, at, "'%.*s' is no number",
                        (int)(v->length < 60 ? v->length : 60), v->text);
    } else if (!isfinite(*x)) {
        return csv_fail(r, v->text, at, "'%.*s' is out of range, for a number has at most 1.8e308",
                        (int)(v->length < 60 ? v->length : 60), v->text);
    } else if (c->whole && (*x != floor(*x) || fabs(*x) >= 0x1p63)) {
        return csv_fail(r, v->text, at, "'%.*s' is no whole number of 64 bits",
                        (int)(v->length < 60 ? v->length : 60), v->text);
    }
    if (c->log) *x = log1p(*x > 0 ? *x : 0);
    if (c->scaled) *x = (*x - c->min) / c->range;
    if (isfinite((float)*x)) return OK;
    return csv_fail(r, v->text, at, "the number is too large for float32");
}

Status csv_value_label(const CsvReader *r, int at, const CsvColumn *c, int32_t *label)
{
    const CsvValue *v = &r->value[at];
    for (*label = 0; *label < 2; ++*label)
        if (csv_texts_have(&c->value[*label], v->text, v->length)) return OK;
    return csv_fail(r, v->text, at, "label '%.*s' is neither '%s' (1) nor '%s' (0)",
                    (int)(v->length < 60 ? v->length : 60), v->text, c->value[1].text[0],
                    c->value[0].text[0]);
}

static uint64_t hex_of(const CsvValue *v, bool *good)
{
    /* 1 + the digit, so that converting needs no branch */
    static const uint8_t digit[256] = {
        ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,
        ['6'] = 7,  ['7'] = 8,  ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
        ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
        ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16};
    uint64_t id = 0;
    unsigned bad = v->length < 1 || v->length > 8;
    for (size_t i = 0; i < v->length && i < 8; ++i) {
        unsigned d = digit[(uint8_t)v->text[i]];
        bad |= d == 0;
        id = id << 4 | ((d - 1) & 15);
    }
    *good = !bad;
    return id;
}

Status csv_value_id(const CsvReader *r, int at, const CsvColumn *c, const CsvVocab *vocab,
                    uint64_t first, uint64_t *id)
{
    const CsvSchema *schema = r->input->schema;
    const CsvValue *v = &r->value[at];
    bool missing = csv_missing(schema, v), good = true;
    switch (c->ids) {
    case CSV_HASH_ALL:
        *id = XXH3_64bits_withSeed(v->text, missing ? 0 : v->length, c->seed) % schema->hash_rows;
        return OK;
    case CSV_HASH:
        *id = missing
                  ? first
                  : first + 1 + XXH3_64bits_withSeed(v->text, v->length, c->seed) % (c->rows - 1);
        return OK;
    case CSV_HEX:
        *id = (uint64_t)c->slot << 33 | (missing ? UINT64_C(1) << 32 : hex_of(v, &good));
        if (good) return OK;
        return csv_fail(r, v->text, at, "'%.*s' is not 1 to 8 hexadecimal digits",
                        (int)(v->length < 60 ? v->length : 60), v->text);
    default:
        *id = missing ? first : csv_vocab_find(vocab, v, first + 1);
        return OK;
    }
}

/* ---- whole records ---- */

void csv_meaning_init(CsvMeaning *is, const CsvSchema *s, int vocabs)
{
    is->vocab = mem_new((size_t)(vocabs + 1) * sizeof *is->vocab);
    is->first = mem_new((size_t)(s->categories + 1) * sizeof *is->first);
    is->mean = mem_new((size_t)(s->numbers + 1) * sizeof *is->mean);
    is->deviation = mem_new((size_t)(s->numbers + 1) * sizeof *is->deviation);
}

void csv_meaning_fini(CsvMeaning *is, int vocabs)
{
    for (int i = 0; i < vocabs && is->vocab; ++i) csv_vocab_fini(&is->vocab[i]);
    mem_free(&is->vocab);
    mem_free(&is->first);
    mem_free(&is->mean);
    mem_free(&is->deviation);
}

Status csv_record(const CsvReader *r, const CsvMeaning *is, float *dense, uint64_t *ids,
                  int32_t *label)
{
    const CsvSchema *schema = r->input->schema;
    const CsvColumn *column = schema->column;
    const CsvFile *file = &r->input->file[r->block->file];
    if (schema->numbers == 0) dense[0] = 1;
    for (int i = 0; i < file->width; ++i)
        for (int k = file->column[i]; k >= 0; k = column[k].also) {
            const CsvColumn *c = &column[k];
            double x;
            if (c->type == CSV_LABEL) TRY(csv_value_label(r, i, c, label));
            if (c->type == CSV_CATEGORY)
                TRY(csv_value_id(r, i, c, &is->vocab[c->slot], is->first[c->slot], ids + c->slot));
            if (c->type != CSV_NUMBER) continue;
            TRY(csv_value_number(r, i, c, &x));
            dense[c->slot] = (float)((x - is->mean[c->slot]) / is->deviation[c->slot]);
        }
    return OK;
}
