/* UTF-8 (RFC 3629): lengths of characters, and widths on a terminal. Not collective. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

/* Returns the number of bytes, 1 to 4, of the character at c in a zero-terminated text; 0 if the
 * bytes there are not a character. */
int utf8_bytes(const unsigned char *c);
/* Returns the number of columns that a text takes on a terminal, the sum over its characters: 2 for
 * wide characters of East Asia and pictographs; 0 for combining marks, invisible format characters
 * and later letters of a Hangul syllable; 1 for all others, also for control characters and for
 * bytes that are not UTF-8. */
int utf8_columns(const char *text);
/* Writes the beginning of a text that fits into `columns` columns, padded with blanks to this
 * width, and returns out. Control characters and bytes that are not UTF-8 become question marks.
 * out: strlen(text) + columns + 1 bytes are enough; `columns` alone does not limit the text,
 * because combining marks take no column. */
char *utf8_fit(const char *text, int columns, char *out);

#endif
