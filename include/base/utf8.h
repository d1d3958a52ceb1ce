/* UTF-8 (RFC 3629): lengths of characters, and widths on a terminal. */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

/* Returns the number of bytes of the character at c, in a zero-terminated text: 1 to 4; 0: the
 * bytes there are not a character. */
int utf8_bytes(const unsigned char *c);
/* Returns the number of terminal columns that a text takes: 2 for wide characters of East Asia and
 * pictographs, 0 for combining marks, 1 for other characters, bytes that are not UTF-8, and control
 * characters, for which utf8_fit prints a question mark. */
int utf8_columns(const char *text);
/* Writes the beginning of the text that fits into `columns` columns, padded with blanks; out: 4 *
 * columns + strlen(text) + 1 bytes are enough. Returns out. */
char *utf8_fit(const char *text, int columns, char *out);

#endif
