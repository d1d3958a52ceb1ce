/* UTF-8 (RFC 3629): lengths of characters, and widths on a terminal. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

/* Returns the number of bytes of the character at c, in a zero-terminated text: 1 to 4; 0: the
 * bytes there are not a character. */
int utf8_bytes(const unsigned char *c);
/* Returns the number of terminal columns that a text takes, the sum over its characters: 2 for wide
 * characters of East Asia and pictographs, 0 for combining marks, invisible format characters and
 * later letters of a Hangul syllable, 1 for all others, for control characters, and for bytes that
 * are not UTF-8. */
int utf8_columns(const char *text);
/* Writes the beginning of the text that fits into `columns` columns, padded with blanks. Control
 * characters and bytes that are not UTF-8 become question marks. out: strlen(text) + columns + 1
 * bytes are enough; the columns alone do not limit the text, since combining marks take none.
 * Returns out. */
char *utf8_fit(const char *text, int columns, char *out);

#endif
