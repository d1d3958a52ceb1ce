/* Makes untrusted text (names in files, paths) safe for a terminal. Not collective. */
#ifndef WEFT_BASE_ESCAPE_H
#define WEFT_BASE_ESCAPE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Returns a copy of the text in which codes such as \u202e replace control characters, separators
 * of lines and paragraphs, and characters that change the direction of text. ascii = true: all
 * other characters beyond ASCII are replaced, too, and each byte that is not UTF-8 becomes \x and
 * two hex digits; false: both are kept. Line feeds and tabs are always kept. The caller owns the
 * result. */
char *text_escape(const char *text, bool ascii);
/* Does what text_escape(text, false) does, but writes to `out`, at most `room` bytes including the
 * zero byte, and cuts text that does not fit; for callers that cannot allocate memory. */
void text_escape_to(char *out, size_t room, const char *text);
/* Prints what fprintf would print, escaped by text_escape(text, false). */
void text_escape_print(FILE *out, const char *fmt, ...) BASE_PRINTF(2, 3);
/* Escapes the texts a and b, for a message that says that they differ, to *x and *y, which the
 * caller owns. Characters beyond ASCII are escaped only if the two texts have the same width on a
 * terminal: they might then look alike, for example two names that differ only in Unicode
 * normalisation. */
void text_escape_pair(const char *a, const char *b, char **x, char **y);

#endif
