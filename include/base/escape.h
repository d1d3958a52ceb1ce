/* Makes untrusted text (names in files, paths) safe for a terminal. */
#ifndef WEFT_BASE_ESCAPE_H
#define WEFT_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a copy of the text in which control characters, separators of lines and paragraphs, and
 * characters that change the direction of text are replaced by their codes, such as \u202e. ascii:
 * also escapes all other characters beyond ASCII, and writes each byte that is not UTF-8 as \x and
 * two hex digits; if false, both are kept. Line feeds and tabs are always kept. Owner: the
 * caller. */
char *text_escape(const char *text, bool ascii);
/* Does the same as text_escape without ascii, but writes into `room` bytes and cuts text that does
 * not fit; for callers that cannot allocate memory. */
void text_escape_to(char *out, size_t room, const char *text);
/* Escapes two texts for a message that says that they differ. Characters beyond ASCII are escaped
 * only if the two texts might look alike without this, because they have the same width, for
 * example two names that differ only in Unicode normalisation. The caller owns *x and *y. */
void text_escape_pair(const char *a, const char *b, char **x, char **y);

#endif
