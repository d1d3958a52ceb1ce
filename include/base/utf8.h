/* What is UTF-8 (RFC 3629). */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

/* Bytes of the character at c, in a text that ends in a zero: 1 to 4; 0: it is none, and starts
 * with a byte that belongs to nothing. */
int utf8_bytes(const unsigned char *c);
/* Columns of a terminal that a text takes: 2 for the wide characters of East Asia and pictographs,
 * 0 for marks that combine with the one before, 1 for others, bytes that are no UTF-8, and control
 * characters, for which utf8_fit puts a question mark. */
int utf8_columns(const char *text);
/* The beginning of the text that has at most so many columns, with blanks up to just as many; out:
 * 4 * columns + strlen(text) + 1 bytes are enough. Returns out. */
char *utf8_fit(const char *text, int columns, char *out);

#endif
