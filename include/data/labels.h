/* Labels of a data set and the names of its classes: checks, warnings, and matching by names. */
#ifndef WEFT_DATA_LABELS_H
#define WEFT_DATA_LABELS_H

#include "data/set.h"

/* number of classes for which LabelUse has a bit */
enum { DATA_CLASSES_SEEN = 1 << 16 };
/* The classes that occur in a data set's labels. */
typedef struct LabelUse {
    /* least, most: smallest and largest class with samples; second: largest class with samples
     * below `most`; -1: there is no such class */
    int64_t least, most, second;
    /* number of classes below DATA_CLASSES_SEEN that have samples */
    int64_t count;
    /* bit i % 64 of seen[i / 64] is set if class i has samples */
    uint64_t seen[DATA_CLASSES_SEEN / 64];
} LabelUse;
/* Reads and checks all labels. ERR_DATA: a label has no class. Does nothing for sets of tokens,
 * targets or label fields; data_set_check reads those of label fields. */
Status data_set_check_labels(const DataSet *set);
/* Does what data_set_check_labels does, and sets *use to the classes that have samples; tokens and
 * targets have none. */
Status data_set_count_labels(const DataSet *set, LabelUse *use);
/* Returns a warning, with the key or command that helps, about labels that are probably wrong: no
 * label is 0, one label is far above the others, or there are large gaps. If classes have names, or
 * model.classes is set, labels are not checked. For a set of targets, whose `use` may be NULL, the
 * warning is about targets that are probably classes. Returns NULL if there is no warning. The
 * caller owns the text. */
char *data_set_label_warning(const DataSet *set, const Config *config, const LabelUse *use);
/* Returns a warning if labels are matched by number, and the labels of the set `set` begin at 1,
 * those of the set `like` at 0 (counted from DataSet.label_base); else NULL. The caller owns the
 * text. */
char *data_label_shift_warning(const DataSet *set, const LabelUse *use, const DataSet *like,
                               const LabelUse *like_use);
/* Compares the labels of each file of a set with those of its first file, as
 * data_label_shift_warning does. *line: the first warning, or NULL; owned by the caller. */
Status data_files_compare_labels(const DataSet *set, char **line);

/* Reads the names of a set's classes: the names of the first file, followed by names that only
 * later files have. ERR_DATA: a file has a name twice. Release with class_names_free. */
Status data_set_class_names(const DataSet *set, ClassNames *names);
/* Maps the labels of the set, whose classes have the names `file_names`, to the classes with the
 * names `classes`, if one of the two lists contains all names of the other. A sample of a class
 * that only `file_names` has is then an error of data_set_check_labels. ERR_DATA: each list has a
 * name that the other lacks; the message has the first names that differ. Labels keep their numbers
 * if a list is empty. They also keep them if the lists do not match and the names of one list are
 * the numbers 0, 1, 2, ... classes_of: owner of `classes`, for messages ("a.h5"). *line: a message
 * for the user, owned by the caller; NULL: the lists are equal, or neither list has names. */
Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line);

#endif
