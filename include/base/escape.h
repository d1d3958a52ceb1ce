/* Text of strangers (names in files, paths) as a terminal may show it. */
#ifndef WEFT_BASE_ESCAPE_H
#define WEFT_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Copy of the text with control characters, and those that change the direction of what follows
 * (U+202E and its kin), written as \u202e. ascii: all characters beyond ASCII are written so, and
 * bytes that are no UTF-8 as \xff; else both stay. Line feeds and tabs stay. Owner: the caller. */
char *text_escape(const char *text, bool ascii);
/* The same without ascii, into `room` bytes, in which it may be cut off. For where no memory can be
 * asked for. */
void text_escape_to(char *out, size_t room, const char *text);
/* Two texts for a message that says that they differ: as text_escape does, with ascii where they
 * would look alike, as names that differ by Unicode normalisation alone. Owner of *x, *y: the
 * caller. */
void text_escape_pair(const char *a, const char *b, char **x, char **y);

#endif
