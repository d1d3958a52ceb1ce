/* Text for people and for files, and lists of names. Not collective. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* A list of named things is defined once, as a macro. An enum and an array of names are made from
 * the list:
 *
 *     #define SIDES(W) W(SIDE_LEFT, "left") W(SIDE_RIGHT, "right")
 *     enum { SIDES(LIST_CONSTANT) };
 *     const char *const names[] = {SIDES(LIST_NAME)};
 *
 * If the constants are bits of a set, there are two enums: the numbers of the bits, and the bits.
 *
 *     enum { SIDES(LIST_NUMBER) };
 *     enum { SIDES(LIST_BIT) }; */
#define LIST_CONSTANT(constant, ...) constant,
#define LIST_NAME(constant, name)    [constant] = name,
/* LIST_TEXT(SIDES): all names with bars between them, "left|right", as help shows them */
#define LIST_TEXT(list)             (&list(LIST_BAR)[1])
#define LIST_BAR(constant, name)    "|" name
#define LIST_NUMBER(constant, name) constant##_NUMBER,
#define LIST_BIT(constant, name)    constant = 1 << constant##_NUMBER,

/* Writes text in double quotes, escaped as in JSON and YAML. Bytes that are not UTF-8 are kept. */
void text_quote(FILE *out, const char *text);
/* Writes a number rounded to 15, 16 or 17 significant digits, without trailing zeros. The number of
 * digits is the smallest with which the text reads back as the same double. Writes null for NaN and
 * infinities. */
void text_real(FILE *out, double value);
/* Returns value, or for a NaN a NaN without sign: printf would print the sign although it means
 * nothing. */
double text_nan_without_sign(double value);
/* Compares two elements of an array of texts, for qsort and bsearch. */
int text_compare(const void *a, const void *b);
/* Returns the word of `words` that needs the fewest edits to become `word`, ignoring letter case;
 * NULL if no word is near. A word is near if the number of edits is at most a third of the letters
 * of `word`, rounded up, and less than the number of its letters. The result is borrowed from
 * words. */
const char *text_nearest(const char *word, const char *const *words, int count);
/* A list of words as text: "a, b, c". If more than `most` words are added, the text has the first
 * `most` words and the number of the others: "a, b, c and 3 more". */
typedef struct TextList {
    /* text so far, and its length; owned by the list until text_list_end */
    char *text;
    size_t bytes;
    /* stream that writes to `text` */
    FILE *out;
    /* count: number of words added; most: largest number of words that the text has */
    int count, most;
} TextList;
void text_list_begin(TextList *list, int most);
void text_list_add(TextList *list, const char *word);
/* Ends the list and returns its text, which the caller owns. */
char *text_list_end(TextList *list);
/* Writes a number of bytes with a unit, "45.2 MB" (1 MB is 10^6 bytes), to `out`, which has at
 * least 16 bytes. Returns out. */
char *text_bytes(double bytes, char *out);
/* Writes a time, rounded to seconds, as "1:23" (minutes and seconds) or "2:01:05" (with hours), to
 * `out`, which has at least 32 bytes. Returns out. */
char *text_seconds(double seconds, char *out);
/* Reads a duration: "90s", "1h30m", "1.5d"; or in Slurm's form "12:00:00", "1-12", "1-12:00",
 * "1-12:00:00". Returns false for any other text; *seconds is then undefined. */
bool text_read_seconds(const char *text, double *seconds);

#endif
