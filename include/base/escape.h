/* Makes untrusted text (names in files, paths) safe for a terminal. */
#ifndef WEFT_BASE_ESCAPE_H
#define WEFT_BASE_ESCAPE_H

#include <stdbool.h>
#include <stddef.h>

/* Returns a copy of the text in which control characters, and those that change the direction of
 * text (U+202E and related ones), are written as \u202e. ascii: writes all characters beyond ASCII
 * that way, and bytes that are not UTF-8 as \xff; otherwise both are kept. Line feeds and tabs are
 * kept. Owner: the caller. */
char *text_escape(const char *text, bool ascii);
/* text_escape without ascii into `room` bytes; cuts text that does not fit. For callers that cannot
 * allocate memory. */
void text_escape_to(char *out, size_t room, const char *text);
/* Escapes two texts for a message that says that they differ: with ascii where they would look
 * alike, as names do that differ only by Unicode normalisation. Owner of *x, *y: the caller. */
void text_escape_pair(const char *a, const char *b, char **x, char **y);

#endif
