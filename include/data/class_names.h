/* Lists of names that data sets store: of classes, in the order of the labels, and of a table's
 * columns and fields. */
#ifndef WEFT_DATA_CLASS_NAMES_H
#define WEFT_DATA_CLASS_NAMES_H

#include "base.h"

/* A list of names. A list of class names may be shorter than the number of classes, or empty. */
typedef struct ClassNames {
    int64_t count;
    /* owned */
    char **name, *text;
} ClassNames;
/* Reads the class names of the data set at path, whichever program made it. A file that is missing,
 * is not HDF5 or has no list of classes gives no names and no error. Release with class_names_free.
 * ERR_NOINPUT: the path is too long; other errors: the process that reads the names failed. */
Status class_names_read(ClassNames *names, const char *path);
/* Does the same for the list `list`: "classes", "columns" or "fields". */
Status class_names_read_list(ClassNames *names, const char *path, const char *list);
/* Splits text, of `bytes` bytes, into names. A name ends before each byte `end` and before the last
 * byte of text, which is part of no name. Takes ownership of text, replaces other control
 * characters by '?' and escapes what a terminal would not show. */
void class_names_split(ClassNames *names, char *text, size_t bytes, char end);
void class_names_free(ClassNames *names);
/* Appends to `all`, in order, the names of `more` that `all` lacks, but does nothing if each of the
 * two lists has a name that the other lacks. */
void class_names_merge(ClassNames *all, const ClassNames *more);
/* Are the names the numbers 0, 1, 2, ...? Importers that know no names write such a list. */
bool class_names_are_numbers(const ClassNames *names);
/* Returns the names, one per line. Owner: the caller. */
char *class_names_lines(const ClassNames *names);
/* Splits the lines of class_names_lines, as class_names_split does; lines NULL: no names. */
void class_names_from_lines(ClassNames *names, const char *lines);
/* Returns the name of class i. If the class has no name, writes the number i to `number`, and
 * returns `number`. */
const char *class_name(const ClassNames *names, int64_t i, char number[24]);

#endif
