/* Splits a block into records and values in place, by RFC 4180: inside a quoted value two quotes
 * mean one quote, and separators and line breaks are text. A quote inside a value that does not
 * begin with a quote is refused, since its meaning is unclear. With `quotes: false` quotes are
 * text. Empty lines are not records. */
#include "csv.h"

#include <stdarg.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* EACH * b is the number that has byte b in all of its eight bytes */
#define EACH UINT64_C(0x0101010101010101)

/* Returns the first byte from p on that is a line break, a separator or a quote. There always is
 * such a byte, since a line break follows the block. May read CSV_OVERREAD_BYTES beyond it. */
#ifdef __SSE2__
static inline char *find_stop(const CsvReader *r, char *p)
{
    const __m128i line = _mm_set1_epi8('\n'), separator = _mm_set1_epi8((char)r->stop[1]),
                  quote = _mm_set1_epi8((char)r->stop[2]);
    for (;; p += 16) {
        __m128i x = _mm_loadu_si128((const __m128i *)(const void *)p);
        __m128i stop = _mm_or_si128(_mm_cmpeq_epi8(x, line), _mm_cmpeq_epi8(x, separator));
        int mask = _mm_movemask_epi8(_mm_or_si128(stop, _mm_cmpeq_epi8(x, quote)));
        if (mask) return p + __builtin_ctz((unsigned)mask);
    }
}
#else
/* Returns a word in which the lowest byte with its high bit set is the lowest byte of x that is 0.
 * Higher bytes may be set wrongly. */
static uint64_t mark_zero_bytes(uint64_t x)
{
    return (x - EACH) & ~x & (EACH << 7);
}

static char *find_stop(const CsvReader *r, char *p)
{
    for (;; p += 8) {
        uint64_t x;
        memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        x = __builtin_bswap64(x);
#endif
        x = mark_zero_bytes(x ^ r->stop[0]) | mark_zero_bytes(x ^ r->stop[1]) |
            mark_zero_bytes(x ^ r->stop[2]);
        if (x) return p + __builtin_ctzll(x) / 8;
    }
}
#endif

void csv_reader_init(CsvReader *r, const CsvInput *input, const CsvBlock *block, bool any_width)
{
    const CsvSchema *s = input->schema;
    *r = (CsvReader){.input = input, .block = block, .at = block->text};
    r->end = block->text + block->bytes;
    r->width = any_width ? 0 : input->file[block->file].width;
    r->value = mem_new((size_t)(r->width ? r->width : CSV_COLUMNS_MAX) * sizeof *r->value);
    r->stop[0] = EACH * '\n';
    r->stop[1] = EACH * (uint8_t)s->separator;
    r->stop[2] = EACH * (uint8_t)(s->quotes ? '"' : '\n');
}

void csv_reader_fini(CsvReader *r)
{
    mem_free(&r->value);
}

/* Returns the number of the line that has byte `offset` of the file; 0: the file cannot be opened.
 * Reads the file again, since lines are only counted for messages. */
static int64_t find_line(const CsvReader *r, int64_t offset)
{
    enum { PIECE_BYTES = 1 << 16 };
    PackedFile file;
    int64_t line = 1;
    if (packed_open(&file, r->input->file[r->block->file].path) != OK) return 0;
    char *piece = mem_new(PIECE_BYTES);
    int64_t left = offset;
    for (size_t n = 1; left > 0 && n > 0; left -= (int64_t)n) {
        size_t most = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        if (packed_read(&file, piece, most, &n) != OK) break;
        for (size_t i = 0; i < n; ++i) line += piece[i] == '\n';
    }
    mem_free(&piece);
    packed_close(&file);
    return line;
}

Status csv_fail(const CsvReader *r, const char *at, int column, const char *format, ...)
{
    char what[600], column_text[300] = "";
    const CsvFile *file = &r->input->file[r->block->file];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    for (char *c = what; *c; ++c)
        if ((unsigned char)*c < ' ' || *c == 127) *c = '?';
    int named = column >= 0 && file->column && column < file->width ? file->column[column] : -1;
    if (named >= 0)
        snprintf(column_text, sizeof column_text, ", column %d (%s)", column + 1,
                 r->input->schema->column[named].name);
    else if (column >= 0)
        snprintf(column_text, sizeof column_text, ", column %d", column + 1);
    int64_t line = find_line(r, r->block->offset + (at - r->block->text));
    return fail(ERR_DATA, "%s: line %lld%s: %s", file->path, (long long)line, column_text, what);
}

static char *skip_blanks(const CsvReader *r, char *p)
{
    while ((*p == ' ' || *p == '\t') && *p != r->input->schema->separator) ++p;
    return p;
}

/* Reads a value that begins with the quote at p. Sets r->at to the separator or line break after
 * the value. */
static Status read_quoted_value(CsvReader *r, int column, char *p, CsvValue *v)
{
    char *from = p + 1, *to = from, *quote;
    v->text = from;
    for (;;) {
        quote = memchr(from, '"', (size_t)(r->end - from));
        if (!quote)
            return csv_fail(r, p, column, "a quote is opened here and not closed%s",
                            r->block->cut ? " within 4 MB" : "");
        if (to != from) memmove(to, from, (size_t)(quote - from));
        to += quote - from;
        if (quote + 1 >= r->end || quote[1] != '"') break;
        *to++ = '"';
        from = quote + 2;
    }
    v->length = (size_t)(to - v->text);
    char *next = quote + 1;
    if (r->input->schema->trim) next = skip_blanks(r, next);
    if (*next == '\r' && next[1] == '\n') ++next;
    r->at = next;
    if (next >= r->end || *next == '\n' || *next == r->input->schema->separator) return OK;
    return csv_fail(r, next, column,
                    "there is text after a closing quote; write a quote inside a value as two");
}

/* Reads unquoted values quickly. count: number of the record's values that have been read. Stops at
 * the end of the record: *ended is then true, and r->at is at the line break. Also stops when
 * `most` values have been read, or at a value that needs read_special_value; r->at is then at the
 * next value. Returns the new count. */
static int read_plain_values(CsvReader *r, int count, int most, bool *ended)
{
    const CsvSchema *s = r->input->schema;
    const bool quotes = s->quotes, trim = s->trim;
    const char separator = s->separator;
    char *p = r->at;
    *ended = false;
    for (; count < most; ++count) {
        char *from = p;
        while (trim && (*from == ' ' || *from == '\t') && *from != separator) ++from;
        char *stop = find_stop(r, from), *end = stop;
        if (quotes && (*from == '"' || *stop == '"')) break;
        if (*stop == '\n' && end > from && end[-1] == '\r') --end;
        while (trim && end > from && (end[-1] == ' ' || end[-1] == '\t')) --end;
        if (end - from > CSV_VALUE_BYTES_MAX) break;
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

/* Reads one value that is quoted, or fails because it is too long or has a quote inside. */
static Status read_special_value(CsvReader *r, int column, CsvValue *v)
{
    char *p = r->at, *from = r->input->schema->trim ? skip_blanks(r, p) : p;
    if (*from == '"' && r->input->schema->quotes) {
        TRY(read_quoted_value(r, column, from, v));
    } else {
        char *stop = find_stop(r, from);
        if (*stop == '"' && r->input->schema->quotes)
            return csv_fail(r, stop, column,
                            "a quote inside a value that does not begin with one; put the whole "
                            "value in quotes, or set `quotes: false`");
        v->length = (size_t)(stop - from);
    }
    if (v->length <= CSV_VALUE_BYTES_MAX) return OK;
    return csv_fail(r, p, column, "a value of %s%zu bytes; at most %d can be used",
                    r->block->cut ? "more than " : "", v->length, CSV_VALUE_BYTES_MAX);
}

/* Skips empty lines and comments. Returns false if there is no further record in the block. */
static bool find_record(CsvReader *r)
{
    while (r->at < r->end) {
        char *p = r->input->schema->trim ? skip_blanks(r, r->at) : r->at;
        if (*p == '\r' && p[1] == '\n') ++p;
        bool comment = csv_is_comment(r->input->schema, r->at, r->end);
        if (*p != '\n' && !comment) return true;
        p = comment ? memchr(r->at, '\n', (size_t)(r->end - r->at)) : p;
        r->at = p ? p + 1 : r->end;
    }
    return false;
}

bool csv_count_records(CsvReader *r, int64_t *count)
{
    if (r->block->cut || (r->input->schema->quotes && memchr(r->at, '"', (size_t)(r->end - r->at))))
        return false;
    for (*count = 0; find_record(r); ++*count) {
        char *line = memchr(r->at, '\n', (size_t)(r->end - r->at));
        r->at = line ? line + 1 : r->end;
    }
    return true;
}

Status csv_read_record(CsvReader *r, bool *got)
{
    const CsvFile *file = &r->input->file[r->block->file];
    /* while the columns are being found, a record may have any number of values */
    bool any_width = file->column == NULL;
    int most = any_width ? CSV_COLUMNS_MAX : file->width, count = 0;
    char *begin = r->at;
    *got = find_record(r);
    if (!*got && r->block->cut)
        return csv_fail(r, begin, -1, "a line of more than %d bytes", CSV_BLOCK_BYTES);
    if (!*got) return OK;
    begin = r->at;
    for (bool ended = false;;) {
        count = read_plain_values(r, count, most, &ended);
        if (ended) break;
        if (count == most)
            return csv_fail(r, begin, -1, "more than %s%d values%s", any_width ? "" : "the ", most,
                            any_width ? "" : " of the first record");
        TRY(read_special_value(r, count, &r->value[count]));
        ++count;
        if (r->at >= r->end || *r->at == '\n') break;
        ++r->at;
    }
    if (r->at >= r->end && r->block->cut)
        return csv_fail(r, begin, -1,
                        "a record longer than %d bytes: line breaks or a closing quote are missing",
                        CSV_BLOCK_BYTES);
    if (r->at < r->end) ++r->at;
    if (any_width) r->width = count;
    if (count == r->width) return OK;
    return csv_fail(r, begin, -1, "%d values, but the first record has %d", count, r->width);
}

Status csv_reader_begin(CsvReader *r, const CsvInput *input, const CsvBlock *b)
{
    bool got;
    csv_reader_init(r, input, b, false);
    if (!input->schema->header || b->offset != input->file[b->file].first_block_offset) return OK;
    return csv_read_record(r, &got);
}
