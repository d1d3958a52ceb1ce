/* Parses the header of a .npy file. The header consists of magic bytes, a version, the length of a
 * text, and the text. The text is a Python literal, padded with blanks:
 *
 *     {'descr': '<u2', 'fortran_order': False, 'shape': (5000,), }
 *
 * The three keys may have any order; nothing is evaluated. Elements may have either byte order.
 * Refuses records (whose descr is a list) and objects ('|O'), repeated keys and keys other than the
 * three, sizes that overflow, and text after the closing brace. */
#include "npy.h"

#include <string.h>

static const char magic[] = "\x93NUMPY";

enum { MAGIC_BYTES = 6, ELEMENT_BYTES_MAX = 1 << 16 };

/* the part of the header's text that has not been parsed */
typedef struct Text {
    const char *path, *at, *end;
} Text;

bool npy_begins(const uint8_t *head, size_t bytes)
{
    return bytes >= MAGIC_BYTES && memcmp(head, magic, MAGIC_BYTES) == 0;
}

static Status npy_fail(const char *path, const char *why)
{
    return fail(ERR_DATA, "%s: its .npy header %s; save it again with numpy.save", path, why);
}

static void skip_blanks(Text *t)
{
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\n')) ++t->at;
}

/* Skips blanks, and then `word`. Returns false if the text does not continue with it. */
static bool skip_word(Text *t, const char *word)
{
    size_t length = strlen(word);
    skip_blanks(t);
    if ((size_t)(t->end - t->at) < length || memcmp(t->at, word, length) != 0) return false;
    t->at += length;
    return true;
}

/* Parses a whole number below 2^62 without leading zeros. Returns false if there is none. */
static bool parse_number(Text *t, int64_t *value)
{
    const char *begin = t->at;
    for (*value = 0; t->at < t->end && *t->at >= '0' && *t->at <= '9'; ++t->at) {
        if (*value >= INT64_C(1) << 58) return false;
        *value = 10 * *value + (*t->at - '0');
    }
    return t->at > begin && (*begin != '0' || t->at == begin + 1);
}

/* Parses a type, such as '<u2': in quotes the byte order, the kind and the number of bytes. */
static Status parse_type(Text *t, NpyHeader *h)
{
    static const char kinds_of_numbers[] = "uifcMmb";
    int64_t bytes;
    if (!skip_word(t, "'"))
        return npy_fail(t->path, "describes records or objects, not plain numbers");
    if (t->end - t->at < 3 || !memchr("<>|", *t->at, 3))
        return npy_fail(t->path, "has a type without a byte order");
    char order = *t->at++;
    h->kind = *t->at++;
    if (!parse_number(t, &bytes) || bytes < 1 || bytes > ELEMENT_BYTES_MAX || !skip_word(t, "'"))
        return npy_fail(t->path, "has an unknown type");
    /* Numbers of several bytes need a byte order. */
    if (order == '|' && bytes > 1 && memchr(kinds_of_numbers, h->kind, sizeof kinds_of_numbers - 1))
        return npy_fail(t->path, "has an unknown type");
    h->bytes = (int)bytes;
    h->big_endian = order == '>';
    return OK;
}

/* Parses a shape: (5000,) or (50, 100) or (). */
static Status parse_shape(Text *t, NpyHeader *h)
{
    bool comma = true;
    if (!skip_word(t, "(")) return npy_fail(t->path, "has no shape");
    h->elements = 1;
    while (!skip_word(t, ")")) {
        int64_t *dim = &h->dim[h->ndim];
        if (!comma || h->ndim == NPY_DIMS || !parse_number(t, dim) ||
            __builtin_mul_overflow(h->elements, *dim, &h->elements))
            return npy_fail(t->path, "has an invalid shape");
        ++h->ndim;
        comma = skip_word(t, ",");
    }
    int64_t bytes;
    /* In Python (5) is a number, and (5,) is a tuple with one element. */
    bool tuple = h->ndim != 1 || comma;
    if (tuple && !__builtin_mul_overflow(h->elements, (int64_t)h->bytes, &bytes)) return OK;
    return npy_fail(t->path, "has an invalid shape");
}

/* bits of the keys that have been parsed */
enum { TYPE = 1, ORDER = 2, SHAPE = 4, ALL = 7 };

/* Parses one key and its value. NpyHeader.bytes is 1 until the type has been parsed; so
 * parse_header checks the size of the array again at the end. */
static Status parse_entry(Text *t, NpyHeader *h, int *seen)
{
    int key = skip_word(t, "'descr'")           ? TYPE
              : skip_word(t, "'fortran_order'") ? ORDER
              : skip_word(t, "'shape'")         ? SHAPE
                                                : 0;
    if (key == 0 || (*seen & key) || !skip_word(t, ":"))
        return npy_fail(t->path, "has other keys than descr, fortran_order and shape, each once");
    *seen |= key;
    skip_blanks(t);
    if (key == TYPE) return parse_type(t, h);
    if (key == SHAPE) return parse_shape(t, h);
    h->fortran_order = skip_word(t, "True");
    return h->fortran_order || skip_word(t, "False")
               ? OK
               : npy_fail(t->path, "has a fortran_order that is neither True nor False");
}

static Status parse_header(Text *t, NpyHeader *h)
{
    int seen = 0;
    bool comma = true;
    int64_t bytes;
    if (!skip_word(t, "{")) return npy_fail(t->path, "is no dictionary");
    while (!skip_word(t, "}")) {
        if (!comma) return npy_fail(t->path, "is no dictionary");
        TRY(parse_entry(t, h, &seen));
        comma = skip_word(t, ",");
    }
    skip_blanks(t);
    if (seen != ALL) return npy_fail(t->path, "lacks one of descr, fortran_order and shape");
    if (t->at < t->end) return npy_fail(t->path, "has text after its closing brace");
    if (__builtin_mul_overflow(h->elements, (int64_t)h->bytes, &bytes))
        return npy_fail(t->path, "has an invalid shape");
    return OK;
}

Status npy_header_read(NpyHeader *header, const char *path, const uint8_t *head, size_t bytes)
{
    /* number of bytes before the header's text; the text's length is stored in 2 bytes in version
     * 1, and in 4 bytes in later versions */
    enum { SHORT_PREFIX = 10, LONG_PREFIX = 12 };
    *header = (NpyHeader){.bytes = 1};
    if (bytes < LONG_PREFIX || !npy_begins(head, bytes)) return npy_fail(path, "is truncated");
    if (head[6] < 1 || head[6] > 3 || head[7] != 0)
        return fail(ERR_DATA,
                    "%s: has .npy version %d.%d, but only 1.0, 2.0 and 3.0 can be read; save it "
                    "again with numpy.save",
                    path, head[6], head[7]);
    size_t prefix = head[6] == 1 ? SHORT_PREFIX : LONG_PREFIX, length = head[8] | head[9] << 8;
    if (head[6] > 1) length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
    if (prefix + length > NPY_HEAD_MAX)
        return npy_fail(path, "is longer than 64 KB, too long for an array of numbers");
    if (prefix + length > bytes) return npy_fail(path, "is truncated");
    Text text = {path, (const char *)head + prefix, (const char *)head + prefix + length};
    header->offset = (int64_t)(prefix + length);
    return parse_header(&text, header);
}
