/* What is UTF-8 (RFC 3629). */
#ifndef WEFT_BASE_UTF8_H
#define WEFT_BASE_UTF8_H

/* Bytes of the character at c, in a text that ends in a zero: 1 to 4; 0: it is none, and starts
 * with a byte that belongs to nothing. */
int utf8_bytes(const unsigned char *c);

#endif
