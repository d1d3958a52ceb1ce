/* Splits a block into records and values in place, by RFC 4180: values are separated, or in quotes,
 * where two quotes stand for one, and separators and line breaks are text. A quote inside a value
 * that did not begin with one is refused, since its meaning is unclear. Empty lines are not
 * records. */
#include "csv.h"

#include <stdarg.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define EACH UINT64_C(0x0101010101010101)

/* Returns the next byte that ends a value. There always is one: a line break follows the block, and
 * memory behind it may be read. */
#ifdef __SSE2__
static inline char *past_plain(const CsvReader *r, char *p)
{
    const __m128i line = _mm_set1_epi8('\n'), separator = _mm_set1_epi8((char)r->stop[1]),
                  quote = _mm_set1_epi8((char)r->stop[2]);
    for (;; p += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(x, line), _mm_cmpeq_epi8(x, separator));
        int places = _mm_movemask_epi8(_mm_or_si128(stop, _mm_cmpeq_epi8(x, quote)));
        if (places) return p + __builtin_ctz((unsigned)places);
    }
}
#else
/* Sets the high bit of each byte of x that is 0; bytes above the lowest of them may be set
 * wrongly. */
static uint64_t zeros(uint64_t x)
{
    return (x - EACH) & ~x & (EACH << 7);
}

static char *past_plain(const CsvReader *r, char *p)
{
    for (;; p += 8) {
        uint64_t x;
        memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        x = __builtin_bswap64(x);
#endif
        x = zeros(x ^ r->stop[0]) | zeros(x ^ r->stop[1]) | zeros(x ^ r->stop[2]);
        if (x) return p + __builtin_ctzll(x) / 8;
    }
}
#endif

void csv_reader_init(CsvReader *r, const CsvInput *input, const CsvBlock *block, bool wide)
{
    const CsvSchema *s = input->schema;
    *r = (CsvReader){.input = input, .block = block, .at = block->text};
    r->end = block->text + block->bytes;
    r->width = wide ? 0 : input->file[block->file].width;
    r->value = mem_new((size_t)(r->width ? r->width : CSV_COLUMNS_MOST) * sizeof *r->value);
    r->stop[0] = EACH * '\n';
    r->stop[1] = EACH * (uint8_t)s->separator;
    r->stop[2] = EACH * (uint8_t)(s->quotes ? '"' : '\n');
}

void csv_reader_fini(CsvReader *r)
{
    mem_free(&r->value);
}

/* Returns the line of an offset in the file. Lines are only counted for messages, by reading
 * again. */
static int64_t line_of(const CsvReader *r, int64_t until)
{
    enum { PIECE = 1 << 16 };
    PackedFile file;
    int64_t line = 1;
    if (packed_open(&file, r->input->file[r->block->file].path) != OK) return 0;
    char *piece = mem_new(PIECE);
    for (size_t n = 1; until > 0 && n > 0; until -= (int64_t)n) {
        if (packed_read(&file, piece, until < PIECE ? (size_t)until : PIECE, &n) != OK) break;
        for (size_t i = 0; i < n; ++i) line += piece[i] == '\n';
    }
    mem_free(&piece);
    packed_close(&file);
    return line;
}

Status csv_fail(const CsvReader *r, const char *at, int column, const char *format, ...)
{
    char what[600], where[300] = "";
    const CsvFile *file = &r->input->file[r->block->file];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (char *c = what; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    int named = column >= 0 && file->column && column < file->width ? file->column[column] : -1;
    if (column >= 0)
        snprintf(where, sizeof where, ", column %d%s%s%s", column + 1, named >= 0 ? " (" : "",
                 named >= 0 ? r->input->schema->column[named].name : "", named >= 0 ? ")" : "");
    int64_t line = line_of(r, r->block->at + (at - r->block->text));
    return fail(ERR_DATA, "%s: line %lld%s: %s", file->path, (long long)line, where, what);
}

/* Skips blanks before a value. */
static char *past_blanks(const CsvReader *r, char *p)
{
    while ((*p == ' ' || *p == '\t') && *p != r->input->schema->separator) ++p;
    return p;
}

/* Reads a value that begins with the quote at p. Leaves r->at at the byte that ends the value. */
static Status value_quoted(CsvReader *r, int column, char *p, CsvValue *v)
{
    char *from = p + 1, *to = from, *quote;
    v->text = from;
    for (;;) {
        quote = memchr(from, '"', (size_t)(r->end - from));
        if (!quote)
            return csv_fail(r, p, column, "a quote is opened here and not closed%s",
                            r->block->torn ? " within 4 MB" : "");
        if (to != from) memmove(to, from, (size_t)(quote - from));
        to += quote - from;
        if (quote + 1 >= r->end || quote[1] != '"') break;
        *to++ = '"';
        from = quote + 2;
    }
    v->length = (size_t)(to - v->text);
    char *next = quote + 1;
    if (r->input->schema->trim) next = past_blanks(r, next);
    if (*next == '\r' && next[1] == '\n') ++next;
    r->at = next;
    if (next >= r->end || *next == '\n' || *next == r->input->schema->separator) return OK;
    return csv_fail(r, next, column,
                    "there is text behind a closing quote; a quote in a value is "
                    "written as two");
}

/* Fast path for unquoted values: reads up to the end of the record, `most` values, or a value that
 * needs value_slow, where r->at then stands. Returns the number of values read so far. */
static int values_plain(CsvReader *r, int count, int most, bool *ended)
{
    const CsvSchema *s = r->input->schema;
    const bool quotes = s->quotes, trim = s->trim;
    const char separator = s->separator;
    char *p = r->at;
    *ended = false;
    for (; count < most; ++count) {
        char *from = p;
        while (trim && (*from == ' ' || *from == '\t') && *from != separator) ++from;
        char *stop = past_plain(r, from), *end = stop;
        if (quotes && (*from == '"' || *stop == '"')) break;
        if (*stop == '\n' && end > from && end[-1] == '\r') --end;
        while (trim && end > from && (end[-1] == ' ' || end[-1] == '\t')) --end;
        if (end - from > CSV_VALUE_MOST) break;
        r->value[count] = (CsvValue){from, (size_t)(end - from)};
        p = stop + 1;
        if (*stop != '\n') continue;
        *ended = true;
        r->at = stop;
        return count + 1;
    }
    r->at = p;
    return count;
}

/* Reads one value that is quoted or wrong. */
static Status value_slow(CsvReader *r, int column, CsvValue *v)
{
    char *p = r->at, *from = r->input->schema->trim ? past_blanks(r, p) : p;
    if (*from == '"' && r->input->schema->quotes) {
        TRY(value_quoted(r, column, from, v));
    } else {
        char *stop = past_plain(r, from);
        if (*stop == '"' && r->input->schema->quotes)
            return csv_fail(r, stop, column,
                            "a quote inside a value that begins without one; put all of it in "
                            "quotes, or set `quotes: false`");
        v->length = (size_t)(stop - from);
    }
    if (v->length <= CSV_VALUE_MOST) return OK;
    return csv_fail(r, p, column, "a value of %s%zu bytes; at most %d can be used",
                    r->block->torn ? "more than " : "", v->length, CSV_VALUE_MOST);
}

/* Skips lines without a record; false at the end of the block. */
static bool record_find(CsvReader *r)
{
    while (r->at < r->end) {
        char *p = r->input->schema->trim ? past_blanks(r, r->at) : r->at;
        if (*p == '\r' && p[1] == '\n') ++p;
        bool remark = csv_is_comment(r->input->schema, r->at, r->end);
        if (*p != '\n' && !remark) return true;
        p = remark ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : p;
        r->at = p ? p + 1 : r->end;
    }
    return false;
}

bool csv_count(CsvReader *r, int64_t *count)
{
    if (r->block->torn ||
        (r->input->schema->quotes && memchr(r->at, '"', (size_t)(r->end - r->at))))
        return false;
    for (*count = 0; record_find(r); ++*count) {
        char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = line ? line + 1 : r->end;
    }
    return true;
}

Status csv_next(CsvReader *r, bool *got)
{
    const CsvFile *file = &r->input->file[r->block->file];
    bool wide = file->column == NULL;
    int most = wide ? CSV_COLUMNS_MOST : file->width, count = 0;
    char *begin = r->at;
    *got = record_find(r);
    if (!*got && r->block->torn)
        return csv_fail(r, begin, -1, "a line of more than %d bytes", CSV_BLOCK);
    if (!*got) return OK;
    begin = r->at;
    for (bool ended = false;;) {
        count = values_plain(r, count, most, &ended);
        if (ended) break;
        if (count == most)
            return csv_fail(r, begin, -1, "more than %d values%s", most,
                            wide ? "" : ", which the first record has");
        TRY(value_slow(r, count, &r->value[count]));
        ++count;
        if (r->at >= r->end || *r->at == '\n') break;
        ++r->at;
    }
    if (r->at >= r->end && r->block->torn)
        return csv_fail(r, begin, -1,
                        "a record longer than %d bytes; its line breaks, or the end "
                        "of a quote, are missing",
                        CSV_BLOCK);
    if (r->at < r->end) ++r->at;
    if (wide) r->width = count;
    if (count == r->width) return OK;
    return csv_fail(r, begin, -1, "%d values, but the first record has %d", count, r->width);
}

Status csv_reader_begin(CsvReader *r, const CsvInput *input, const CsvBlock *b)
{
    bool got;
    csv_reader_init(r, input, b, false);
    if (!input->schema->header || b->at != input->file[b->file].begin) return OK;
    return csv_next(r, &got);
}
