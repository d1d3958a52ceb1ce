/* Text for people and for files, and lists of names. Not collective. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Things that have names are one list, #define SIDES(W) W(SIDE_LEFT, "left") W(SIDE_RIGHT,
 * "right"), from which come their enum, enum { SIDES(LIST_CONSTANT) }, and their names, const char
 * *const names[] = {SIDES(LIST_NAME)}, or, where each is a bit of a set, enum { SIDES(LIST_NUMBER)
 * }; enum { SIDES(LIST_BIT) }. */
#define LIST_CONSTANT(constant, ...) constant,
#define LIST_NAME(constant, name)    [constant] = name,
/* "a|b": all names, a bar between them, as help shows them: LIST_TEXT(SIDES) */
#define LIST_TEXT(list)             (&list(LIST_BAR)[1])
#define LIST_BAR(constant, name)    "|" name
#define LIST_NUMBER(constant, name) constant##_NUMBER,
#define LIST_BIT(constant, name)    constant = 1 << constant##_NUMBER,

/* Text in double quotes, escaped as in JSON and YAML; bytes that are no UTF-8 stay as they are. */
void text_quote(FILE *out, const char *text);
/* The shortest of 15, 16 or 17 digits that reads back as the same double; null for NaN and
 * infinities. */
void text_real(FILE *out, double value);
/* For printing: printf shows a NaN's sign, which says nothing. */
double text_unsigned_nan(double value);
/* The nearest of `count` words to `word` by edit distance, or NULL if none is near. Borrowed from
 * words. */
const char *text_nearest(const char *word, const char *const *words, int count);
/* Words with commas between them, of which the first `most` are kept, and "and 3 more". */
typedef struct TextList {
    /* the list's own */
    char *text;
    size_t bytes;
    FILE *out;
    int count, most;
} TextList;
void text_list_begin(TextList *list, int most);
void text_list_add(TextList *list, const char *word);
/* Ends the list. Owner of the text: the caller. */
char *text_list_end(TextList *list);
/* Bytes as people read them ("45.2 MB"), into a buffer of at least 16 chars, which it returns. */
char *text_bytes(double bytes, char *out);
/* "1:23" or "2:01:05", into at least 32 chars, which it returns. */
char *text_seconds(double seconds, char *out);
/* "90s", "1h30m", "1.5d"; as Slurm writes them "12:00:00", "1-12", "1-12:00", "1-12:00:00". False
 * for anything else; *seconds is then of no use. */
bool text_read_seconds(const char *text, double *seconds);

#endif
