/* Labels of a data set and the names of its classes: checks, warnings, and matching by names. */
#ifndef WEFT_DATA_LABELS_H
#define WEFT_DATA_LABELS_H

#include "data/set.h"

/* Classes that occur in a data set's labels. */
enum { DATA_CLASSES_SEEN = 1 << 16 };
typedef struct LabelUse {
    /* least, most: the least and the largest class with samples. second: the largest class with
     * samples below `most`. -1: there is no such class. */
    int64_t least, most, second;
    /* number of classes below DATA_CLASSES_SEEN that have samples, and a bit for each of them */
    int64_t count;
    uint64_t seen[DATA_CLASSES_SEEN / 64];
} LabelUse;
/* Reads all labels once; ERR_DATA: a label has no class. Does nothing for tokens, targets and label
 * fields, which data_set_check reads. */
Status data_set_check_labels(const DataSet *set);
/* Does the same, and sets *use to the classes that have samples; tokens and targets have none. */
Status data_set_count_labels(const DataSet *set, LabelUse *use);
/* Returns a warning, with the key or command that helps, about labels that are probably wrong: no
 * label is 0, one label is far above the others, or there are large gaps. If classes have names, or
 * model.classes is set, labels are not checked. For a set of targets, whose `use` may be NULL, the
 * warning is about targets that are probably classes. NULL: no warning. Owner: the caller. */
char *data_set_label_warning(const DataSet *set, const Config *config, const LabelUse *use);
/* Returns a warning if labels of set are 1, 2, ... and those of like 0, 1, ..., and labels are
 * matched by number; else NULL. Owner: the caller. */
char *data_label_shift_warning(const DataSet *set, const LabelUse *use, const DataSet *like,
                               const LabelUse *like_use);
/* Compares each file of a set with its first file in the same way. *line: the first warning, or
 * NULL. Owner of *line: the caller. */
Status data_files_compare_labels(const DataSet *set, char **line);

/* Reads the names of a set's classes: the first file's, followed by names that only later files
 * have. Release with class_names_free. ERR_DATA: a file has a name twice. */
Status data_set_class_names(const DataSet *set, ClassNames *names);
/* Maps the labels of set, whose classes have the names `file_names`, to the classes with the names
 * `classes`, if one of the two lists contains all names of the other. classes_of: owner of
 * `classes`, for messages ("a.h5"). A sample of a class that only `file_names` has is then an error
 * of data_set_check_labels. ERR_DATA, with the first names that differ: each list has a name that
 * the other lacks. If a list is empty, or is 0, 1, 2, ... and does not match the other, labels keep
 * their numbers. *line: a message for the user; NULL: the lists are equal, or neither list names
 * classes. Owner of *line: the caller. */
Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line);

#endif
