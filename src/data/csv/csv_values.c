/* Converts the text of a value to a number, a label or an id, as its column in the schema says.
 * Errors name the line and the column of the value. */
#include "csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Returns the number of bytes of a value that a message quotes. */
static int quoted_bytes(const CsvValue *v)
{
    return (int)(v->length < 60 ? v->length : 60);
}

bool csv_is_missing(const CsvSchema *s, const CsvValue *v)
{
    if (v->length == 0) return s->missing_empty;
    return s->missing_begins[(uint8_t)v->text[0]] &&
           csv_texts_contain(&s->missing, v->text, v->length);
}

/* Parses a number of up to 15 digits without an exponent. The digits and the power of ten are exact
 * doubles, so one division gives the nearest double. Returns false for any other text. */
static bool parse_short_number(const CsvValue *v, double *number)
{
    static const double power_of_ten[] = {1,   1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
    const char *p = v->text, *end = p + v->length;
    bool minus = p < end && *p == '-', point = false;
    int64_t digits = 0;
    int fraction_digits = 0, count = 0;
    if (p < end && (*p == '-' || *p == '+')) ++p;
    for (; p < end; ++p) {
        if (*p == '.' && !point) {
            point = true;
            continue;
        }
        unsigned digit = (unsigned)(*p - '0');
        if (digit > 9 || ++count > 15) return false;
        digits = 10 * digits + (int64_t)digit;
        fraction_digits += point;
    }
    if (count == 0) return false;
    *number = (double)digits / power_of_ten[fraction_digits];
    if (minus) *number = -*number;
    return true;
}

bool csv_parse_number(const CsvValue *v, double *number)
{
    enum { LENGTH_MAX = 400 };
    char text[LENGTH_MAX + 1], *end;
    if (parse_short_number(v, number)) return true;
    if (v->length == 0 || v->length > LENGTH_MAX) return false;
    /* strtod would also accept blanks, hexadecimal digits, inf and nan */
    for (size_t i = 0; i < v->length; ++i)
        if (!memchr("0123456789+-.eE", v->text[i], 15)) return false;
    memcpy(text, v->text, v->length);
    text[v->length] = 0;
    *number = strtod(text, &end);
    return *end == 0;
}

Status csv_convert_number(const CsvReader *r, int i, const CsvColumn *c, double *x)
{
    const CsvValue *v = &r->value[i];
    if (csv_is_missing(r->input->schema, v)) {
        if (!c->has_fill)
            return csv_fail(r, v->text, i,
                            "a value is missing, and the schema has no `fill` for this column");
        *x = c->fill;
    } else if (!csv_parse_number(v, x)) {
        return csv_fail(r, v->text, i, "'%.*s' is no number", quoted_bytes(v), v->text);
    } else if (!isfinite(*x)) {
        return csv_fail(r, v->text, i, "'%.*s' is out of range: numbers go up to 1.8e308",
                        quoted_bytes(v), v->text);
    } else if (c->whole && (*x != floor(*x) || fabs(*x) >= 0x1p63)) {
        return csv_fail(r, v->text, i, "'%.*s' is no whole number of 64 bits", quoted_bytes(v),
                        v->text);
    }
    if (c->log) *x = log1p(*x > 0 ? *x : 0);
    if (c->scaled) *x = (*x - c->min) / c->range;
    if (isfinite((float)*x)) return OK;
    return csv_fail(r, v->text, i, "the number is too large for float32");
}

Status csv_convert_label(const CsvReader *r, int i, const CsvColumn *c, int32_t *label)
{
    const CsvValue *v = &r->value[i];
    for (*label = 0; *label < 2; ++*label)
        if (csv_texts_contain(&c->label_text[*label], v->text, v->length)) return OK;
    return csv_fail(r, v->text, i, "label '%.*s' is neither '%s' (1) nor '%s' (0)", quoted_bytes(v),
                    v->text, c->label_text[1].text[0], c->label_text[0].text[0]);
}

/* Parses 1 to 8 hexadecimal digits. Sets *good to false if the value is anything else. */
static uint64_t parse_hex(const CsvValue *v, bool *good)
{
    /* 1 + the value of a hexadecimal digit, 0 for all other characters; so a digit needs no
     * branch */
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

Status csv_convert_id(const CsvReader *r, int i, const CsvColumn *c, const CsvVocab *vocab,
                      uint64_t first, uint64_t *id)
{
    const CsvSchema *schema = r->input->schema;
    const CsvValue *v = &r->value[i];
    bool missing = csv_is_missing(schema, v), good = true;
    switch (c->id_rule) {
    case CSV_IDS_HASH_SHARED:
        *id = XXH3_64bits_withSeed(v->text, missing ? 0 : v->length, c->seed) % schema->shared_ids;
        return OK;
    case CSV_IDS_HASH:
        *id = missing ? first
                      : first + 1 +
                            XXH3_64bits_withSeed(v->text, v->length, c->seed) % (c->id_count - 1);
        return OK;
    case CSV_IDS_HEX:
        *id = (uint64_t)c->slot << 33 | (missing ? UINT64_C(1) << 32 : parse_hex(v, &good));
        if (good) return OK;
        return csv_fail(r, v->text, i, "'%.*s' is not 1 to 8 hexadecimal digits", quoted_bytes(v),
                        v->text);
    default:
        *id = missing ? first : csv_vocab_find(vocab, v, first + 1);
        return OK;
    }
}

/* ---- records ---- */

void csv_encoding_init(CsvEncoding *encoding, const CsvSchema *s, int vocabs)
{
    encoding->vocab = mem_new((size_t)(vocabs + 1) * sizeof *encoding->vocab);
    encoding->first_id = mem_new((size_t)(s->categories + 1) * sizeof *encoding->first_id);
    encoding->mean = mem_new((size_t)(s->numbers + 1) * sizeof *encoding->mean);
    encoding->deviation = mem_new((size_t)(s->numbers + 1) * sizeof *encoding->deviation);
}

void csv_encoding_fini(CsvEncoding *encoding, int vocabs)
{
    for (int i = 0; i < vocabs && encoding->vocab; ++i) csv_vocab_fini(&encoding->vocab[i]);
    mem_free(&encoding->vocab);
    mem_free(&encoding->first_id);
    mem_free(&encoding->mean);
    mem_free(&encoding->deviation);
}

Status csv_convert_record(const CsvReader *r, const CsvEncoding *encoding, float *dense,
                          uint64_t *ids, int32_t *label)
{
    const CsvSchema *schema = r->input->schema;
    const CsvColumn *column = schema->column;
    const CsvFile *file = &r->input->file[r->block->file];
    if (schema->numbers == 0) dense[0] = 1;
    for (int i = 0; i < file->width; ++i)
        for (int k = file->column[i]; k >= 0; k = column[k].next_view) {
            const CsvColumn *c = &column[k];
            double x;
            if (c->type == CSV_LABEL) TRY(csv_convert_label(r, i, c, label));
            if (c->type == CSV_CATEGORY)
                TRY(csv_convert_id(r, i, c, &encoding->vocab[c->slot], encoding->first_id[c->slot],
                                   ids + c->slot));
            if (c->type != CSV_NUMBER) continue;
            TRY(csv_convert_number(r, i, c, &x));
            dense[c->slot] = (float)((x - encoding->mean[c->slot]) / encoding->deviation[c->slot]);
        }
    return OK;
}
