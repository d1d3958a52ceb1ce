/* Lists of names that data sets store: names of classes, in the order of the labels, and names of a
 * table's columns and fields. */
#ifndef WEFT_DATA_CLASS_NAMES_H
#define WEFT_DATA_CLASS_NAMES_H

#include "base.h"

/* A list of names. A list of class names may be shorter than the number of classes, or empty. */
typedef struct ClassNames {
    int64_t count;
    /* name: the names, [count]; text: their memory; both are owned */
    char **name, *text;
} ClassNames;
/* Reads the names of the classes of the data set at path, whichever program has made it. A file
 * that is missing, is no HDF5 file or has no list of classes gives no names and no error.
 * ERR_NOINPUT: the path is too long. Other errors: the process that reads the names has failed.
 * Release with class_names_free. */
Status class_names_read(ClassNames *names, const char *path);
/* Does what class_names_read does, but for the list `list`: "classes", "columns" or "fields". */
Status class_names_read_list(ClassNames *names, const char *path, const char *list);
/* Splits `bytes` bytes of text into names. A name ends before each byte `end` and before the last
 * byte of text, which belongs to no name. Takes ownership of text. Replaces other control
 * characters by '?', and escapes characters that a terminal would not show. */
void class_names_split(ClassNames *names, char *text, size_t bytes, char end);
void class_names_free(ClassNames *names);
/* Appends to `all`, in order, the names of `more` that `all` lacks. Does nothing if each of the two
 * lists has a name that the other lacks. */
void class_names_merge(ClassNames *all, const ClassNames *more);
/* Returns true if the names are the numbers 0, 1, 2, ...; importers that do not know names write
 * such a list. */
bool class_names_are_numbers(const ClassNames *names);
/* Returns the names as text, one per line. The caller owns the text. */
char *class_names_lines(const ClassNames *names);
/* Splits the text of class_names_lines into names, as class_names_split does. lines NULL: there are
 * no names. */
void class_names_from_lines(ClassNames *names, const char *lines);
/* Returns the name of class i. If it has none, writes the number i to `number` and returns
 * `number`. */
const char *class_name(const ClassNames *names, int64_t i, char number[24]);

#endif
