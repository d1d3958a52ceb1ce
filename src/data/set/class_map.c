/* Maps labels to classes when two lists of class names are combined: the lists of two files of a
 * set, of a training and a test set, or of a set and a checkpoint. Labels are matched by name if
 * one list contains all names of the other. Importers that know no names write the list 0, 1, 2,
 * ... If such a list matches, it is used like any other. If it does not match, it is treated like a
 * missing list: labels keep their numbers, and a message says so. */
#include "base/escape.h"
#include "../data_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists of names ---- */

/* A name and its index in its list. */
typedef struct SortedName {
    const char *name;
    int64_t i;
} SortedName;

static int compare_names(const void *a, const void *b)
{
    const SortedName *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->i > right->i) - (left->i < right->i);
}

/* Returns the names in ascending order, [names->count], owned by the caller. */
static SortedName *names_sorted(const ClassNames *names)
{
    SortedName *sorted = mem_new((size_t)(names->count + 1) * sizeof *sorted);
    for (int64_t i = 0; i < names->count; ++i) sorted[i] = (SortedName){names->name[i], i};
    qsort(sorted, (size_t)names->count, sizeof *sorted, compare_names);
    return sorted;
}

Status class_names_check(const ClassNames *names, const char *path)
{
    SortedName *sorted = names_sorted(names);
    Status st = OK;
    for (int64_t i = 1; st == OK && i < names->count; ++i)
        if (strcmp(sorted[i].name, sorted[i - 1].name) == 0)
            st = fail(ERR_DATA,
                      "%s: classes %lld and %lld are both named '%.80s', so labels cannot be "
                      "matched by name; give each class its own name",
                      path, (long long)sorted[i - 1].i, (long long)sorted[i].i, sorted[i].name);
    mem_free(&sorted);
    return st;
}

bool class_names_are_numbers(const ClassNames *names)
{
    char number[24];
    for (int64_t i = 0; i < names->count; ++i) {
        snprintf(number, sizeof number, "%lld", (long long)i);
        if (strcmp(names->name[i], number) != 0) return false;
    }
    return true;
}

/* Returns a list with copies of `count` names; release it with class_names_free. */
static ClassNames names_copy(const char *const *name, int64_t count)
{
    ClassNames names;
    size_t bytes = 0, used = 0;
    for (int64_t i = 0; i < count; ++i) bytes += strlen(name[i]) + 1;
    char *text = mem_new(bytes + 1);
    for (int64_t i = 0; i < count; ++i) {
        size_t n = strlen(name[i]) + 1;
        memcpy(text + used, name[i], n);
        used += n;
    }
    class_names_split(&names, text, bytes, 0);
    return names;
}

/* Removes the first `count` names, or all if there are fewer. */
static void names_drop(ClassNames *names, int64_t count)
{
    int64_t drop = count < names->count ? count : names->count;
    ClassNames rest = names_copy((const char *const *)names->name + drop, names->count - drop);
    class_names_free(names);
    *names = rest;
}

char *class_names_lines(const ClassNames *names)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory for the names of classes");
    for (int64_t i = 0; i < names->count; ++i) fprintf(out, "%s%s", i ? "\n" : "", names->name[i]);
    if (fclose(out) != 0) die_as(ERR_MEMORY, "out of memory for the names of classes");
    return text;
}

/* ---- matching two lists ---- */

/* How the names of a file match the names of the classes. */
typedef struct Match {
    /* entry i: index of the class name that is equal to name i of the file; -1: none; owned */
    int64_t *to;
    /* index of the first name of the file that is no class name; -1: none */
    int64_t first_unknown;
    /* number of names of the file that are no class names */
    int64_t unknown_count;
    /* index of the first class name that the file lacks; -1: none */
    int64_t first_missing;
    /* number of class names that the file lacks */
    int64_t missing_count;
    /* true: to[i] is i for all names of the file, so they are the first class names */
    bool is_identity;
} Match;

static void match_find(Match *match, const ClassNames *file_names, const ClassNames *classes)
{
    SortedName *sorted = names_sorted(classes);
    bool *matched = mem_new((size_t)classes->count + 1);
    *match = (Match){.first_unknown = -1, .first_missing = -1, .is_identity = true};
    match->to = mem_new((size_t)(file_names->count + 1) * sizeof *match->to);
    for (int64_t i = 0; i < file_names->count; ++i) {
        int64_t low = 0, high = classes->count;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(sorted[middle].name, file_names->name[i]) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        bool found = low < classes->count && strcmp(sorted[low].name, file_names->name[i]) == 0;
        match->to[i] = found ? sorted[low].i : -1;
        if (found) matched[sorted[low].i] = true;
        if (!found && match->unknown_count++ == 0) match->first_unknown = i;
        match->is_identity = match->is_identity && match->to[i] == i;
    }
    for (int64_t i = 0; i < classes->count; ++i)
        if (!matched[i] && match->missing_count++ == 0) match->first_missing = i;
    mem_free(&matched);
    mem_free(&sorted);
}

/* Returns ERR_DATA, with the message that each list has a name that the other lacks. path: path of
 * the file; classes_of: owner of `classes`, for the message. */
static Status match_fail(const Match *match, const char *path, const ClassNames *file_names,
                         const char *classes_of, const ClassNames *classes)
{
    char *set_name, *other_name;
    text_escape_pair(file_names->name[match->first_unknown], classes->name[match->first_missing],
                     &set_name, &other_name);
    Status st = fail(
        ERR_DATA,
        "%s: its classes are not those of %s: '%.160s' (class %lld) is not among them, "
        "and '%.160s' (their class %lld) is not among its own; labels are matched by name only if "
        "one of the two lists has all names of the other: give the classes one set of names",
        path, classes_of, set_name, (long long)match->first_unknown, other_name,
        (long long)match->first_missing);
    mem_free(&set_name);
    mem_free(&other_name);
    return st;
}

/* Returns whether each list has a name that the other lacks. */
static bool lists_conflict(const Match *match)
{
    return match->unknown_count > 0 && match->missing_count > 0;
}

/* Returns a message about how the names of the two lists differ, owned by the caller. */
static char *match_line(const Match *match, const char *path, const ClassNames *file_names,
                        const char *classes_of, const ClassNames *classes)
{
    if (match->unknown_count > 0)
        return mem_format("%s: labels are matched by the names of classes: %s has %lld of its %lld "
                          "classes and lacks '%.80s'%s, which no sample may have",
                          path, classes_of, (long long)(file_names->count - match->unknown_count),
                          (long long)file_names->count, file_names->name[match->first_unknown],
                          match->unknown_count > 1 ? " and others" : "");
    if (match->missing_count > 0)
        return mem_format("%s: labels are matched by the names of classes: it has %lld of the %lld "
                          "classes of %s and lacks '%.80s'%s",
                          path, (long long)file_names->count, (long long)classes->count, classes_of,
                          classes->name[match->first_missing],
                          match->missing_count > 1 ? " and others" : "");
    return mem_format("%s: labels are matched by the names of classes, which are in another order "
                      "than those of %s",
                      path, classes_of);
}

/* Returns whether the list has names other than the numbers 0, 1, 2, ... */
static bool names_classes(const ClassNames *names)
{
    return names->count > 0 && !class_names_are_numbers(names);
}

/* Returns a message that labels keep their numbers because one of the lists does not name classes,
 * owned by the caller. NULL: neither list names classes. */
static char *numbers_line(const char *path, const ClassNames *file_names, const char *classes_of,
                          const ClassNames *classes)
{
    if (names_classes(classes))
        return mem_format("%s: has no names of classes, so labels are matched by number: 0 is "
                          "'%.80s', as in %s",
                          path, classes->name[0], classes_of);
    if (names_classes(file_names))
        return mem_format("%s: labels are matched by number, since %s has no names of classes: 0 "
                          "is '%.80s' here",
                          path, classes_of, file_names->name[0]);
    return NULL;
}

/* ---- maps ---- */

static Status too_many_fail(const DataSet *set)
{
    return fail(ERR_DATA,
                "%s: labels of more than %d classes cannot be reordered; make the files with one "
                "order of classes (`weft data import folder --classes`)",
                set->path, DATA_LABELS);
}

/* Stores class[i], the class of label i, for i below count in set->class_of, and sets *map to the
 * range there. If another file of the set has an equal map, *map is that range. ERR_DATA: too many
 * classes. */
static Status map_store(DataSet *set, LabelMap *map, const uint16_t *class, int64_t count)
{
    int used = 0;
    for (int i = 0; i < set->file_count; ++i) {
        const LabelMap *m = &set->file[i].map;
        if (m->count == count && memcmp(set->class_of + m->first, class, (size_t)count * 2) == 0) {
            *map = *m;
            return OK;
        }
        if (m->first + m->count > used) used = m->first + m->count;
    }
    if (count > DATA_LABELS - used) return too_many_fail(set);
    *map = (LabelMap){used, (int)count};
    memcpy(set->class_of + used, class, (size_t)count * sizeof *class);
    return OK;
}

/* Composes two maps. Returns the class of each label by first the map `before` (count 0: a label is
 * its class) and then match->to, which has `count` entries. Owner: the caller. */
static uint16_t *map_compose(const DataSet *set, LabelMap before, const Match *match, int64_t count)
{
    int64_t n = before.count > 0 ? before.count : count;
    uint16_t *class = mem_new((size_t)(n + 1) * sizeof *class);
    for (int64_t i = 0; i < n; ++i) {
        int64_t at = before.count > 0 ? set->class_of[before.first + i] : i;
        int64_t to = at < count ? match->to[at] : -1;
        class[i] = to < 0 || to >= DATA_NO_CLASS ? DATA_NO_CLASS : (uint16_t)to;
    }
    return class;
}

/* Composes the map of the set, or each map of its files, with match->to, which has `count`
 * entries. */
static Status maps_compose(DataSet *set, const Match *match, int64_t count)
{
    DataSet *old = mem_new(sizeof *old);
    int maps = set->file_count ? set->file_count : 1;
    Status st = OK;
    *old = *set;
    for (int i = 0; i < set->file_count; ++i) set->file[i].map = (LabelMap){0, 0};
    for (int i = 0; st == OK && i < maps; ++i) {
        LabelMap before = set->file_count ? old->file[i].map : old->map;
        uint16_t *class = map_compose(old, before, match, count);
        st = map_store(set, set->file_count ? &set->file[i].map : &set->map, class,
                       before.count > 0 ? before.count : count);
        mem_free(&class);
    }
    mem_free(&old);
    return st;
}

Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line)
{
    Match match;
    Status st = OK;
    *line = NULL;
    if (file_names->count == 0 || classes->count == 0) {
        *line = numbers_line(set->path, file_names, classes_of, classes);
        return OK;
    }
    match_find(&match, file_names, classes);
    if (lists_conflict(&match)) {
        if (names_classes(file_names) && names_classes(classes))
            st = match_fail(&match, set->path, file_names, classes_of, classes);
        else
            *line = numbers_line(set->path, file_names, classes_of, classes);
        mem_free(&match.to);
        return st;
    }
    if (!match.is_identity)
        st = classes->count < DATA_NO_CLASS ? maps_compose(set, &match, file_names->count)
                                            : too_many_fail(set);
    if (st == OK && (!match.is_identity || match.missing_count > 0)) {
        *line = match_line(&match, set->path, file_names, classes_of, classes);
        /* If set->classes is above the number of the file's names, model.classes has set it, and it
         * is not reduced. */
        int64_t configured = set->classes > file_names->count ? set->classes : 0;
        set->classes = classes->count > configured ? classes->count : configured;
    }
    mem_free(&match.to);
    return st;
}

/* ---- the files of a set ---- */

/* Returns copies of a label field's class names; release them with class_names_free. */
static ClassNames field_names(const FieldClasses *classes)
{
    const char *name[FIELD_CLASSES];
    for (int i = 0; i < classes->count; ++i) name[i] = classes->name[i];
    return names_copy(name, classes->count);
}

/* Reads the names of the file's classes. If the names are numbers, the first label_base of them are
 * left out, since those labels are not classes. */
static Status names_read_file(ClassNames *names, const DataSet *file)
{
    *names = (ClassNames){0};
    if (data_has_label_fields(file) && file->field_set.classes.named)
        *names = field_names(&file->field_set.classes);
    else if (file->listed_classes == 0)
        return OK;
    else
        TRY(class_names_read(names, file->path));
    Status st = class_names_check(names, file->path);
    if (st == OK && file->label_base > 0 && class_names_are_numbers(names))
        names_drop(names, file->label_base);
    if (st != OK) class_names_free(names);
    return st;
}

/* Appends to `all` the names of `more` that it lacks, and sets match->to[i] of each such name to
 * its new index. */
static void names_append(ClassNames *all, const ClassNames *more, const Match *match)
{
    const char **name = mem_new((size_t)(all->count + more->count + 1) * sizeof *name);
    int64_t count = 0;
    for (; count < all->count; ++count) name[count] = all->name[count];
    for (int64_t i = 0; i < more->count; ++i)
        if (match->to[i] < 0) {
            match->to[i] = count;
            name[count++] = more->name[i];
        }
    ClassNames joined = names_copy(name, count);
    mem_free(&name);
    class_names_free(all);
    *all = joined;
}

void class_names_merge(ClassNames *all, const ClassNames *more)
{
    Match match;
    match_find(&match, more, all);
    if (!lists_conflict(&match)) names_append(all, more, &match);
    mem_free(&match.to);
}

/* Replaces `all` by `more`, which becomes empty. */
static void names_replace(ClassNames *all, ClassNames *more)
{
    class_names_free(all);
    *all = *more;
    *more = (ClassNames){0};
}

/* Joins two lists, of which at least one does not name classes: `all`, of the set, and
 * `file_names`, of `other`. Labels keep their numbers, and `all` becomes the list that names
 * classes, if there is one. *joined becomes true if there is such a list, and it has at least as
 * many names as the other side has classes. The other side is the set if `other` has the names,
 * else `other`. */
static void files_join_numbers(DataSet *set, ClassNames *all, const DataSet *other,
                               ClassNames *file_names, bool *joined)
{
    char *line = numbers_line(other->path, file_names, set->path, all);
    const int64_t names = names_classes(file_names) ? file_names->count : all->count;
    const int64_t unnamed = names_classes(file_names) ? set->classes : other->classes;
    *joined = unnamed <= names && (names_classes(file_names) || names_classes(all));
    if (*joined && set->classes < names) set->classes = names;
    if (line) log_info("%s", line);
    mem_free(&line);
    if (names_classes(file_names)) names_replace(all, file_names);
}

/* Joins two lists by name, and maps the labels of `other`. ERR_DATA: too many classes. */
static Status files_join_names(DataSet *set, ClassNames *all, DataSet *other,
                               const ClassNames *file_names, Match *match)
{
    bool equal = match->is_identity && match->missing_count == 0;
    bool is_identity = true;
    names_append(all, file_names, match);
    for (int64_t i = 0; i < file_names->count; ++i) is_identity &= match->to[i] == i;
    if (!is_identity) {
        if (all->count >= DATA_NO_CLASS) return too_many_fail(other);
        uint16_t *class = map_compose(set, (LabelMap){0, 0}, match, file_names->count);
        Status st = map_store(set, &other->map, class, file_names->count);
        mem_free(&class);
        TRY(st);
    }
    if (set->classes < all->count) set->classes = all->count;
    if (!equal)
        log_info("%s: labels are matched by the names of classes: with those of %s there are %lld",
                 other->path, set->path, (long long)all->count);
    return OK;
}

Status files_join_classes(DataSet *set, ClassNames *all, DataSet *other, bool *joined)
{
    ClassNames file_names;
    Match match = {0};
    Status st = OK;
    if (set->file_count == 1) TRY(names_read_file(all, set));
    TRY(names_read_file(&file_names, other));
    if (file_names.count == 0 || all->count == 0) {
        files_join_numbers(set, all, other, &file_names, joined);
        class_names_free(&file_names);
        return OK;
    }
    match_find(&match, &file_names, all);
    if (!lists_conflict(&match)) {
        st = files_join_names(set, all, other, &file_names, &match);
        *joined = st == OK;
    } else if (names_classes(&file_names) && names_classes(all)) {
        st = match_fail(&match, other->path, &file_names, set->path, all);
    } else {
        files_join_numbers(set, all, other, &file_names, joined);
    }
    mem_free(&match.to);
    class_names_free(&file_names);
    return st;
}

/* Joins the names of one more file of a set, `more`, to `all`, by the rule of files_join_classes.
 * Does nothing if each list has a name that the other lacks, unless only `more` has real names. */
static void names_join_file(ClassNames *all, ClassNames *more)
{
    Match match;
    match_find(&match, more, all);
    if (!lists_conflict(&match))
        names_append(all, more, &match);
    else if (names_classes(more) && !names_classes(all))
        names_replace(all, more);
    mem_free(&match.to);
}

Status data_set_class_names(const DataSet *set, ClassNames *names)
{
    DataSet *file = mem_new(sizeof *file);
    Status st = set->file_count ? OK : names_read_file(names, set);
    if (set->file_count) *names = (ClassNames){0};
    for (int i = 0; st == OK && i < set->file_count; ++i) {
        ClassNames more;
        data_set_file(set, i, file);
        st = names_read_file(&more, file);
        if (st == OK) names_join_file(names, &more);
        if (st == OK) class_names_free(&more);
    }
    if (st != OK) class_names_free(names);
    mem_free(&file);
    return st;
}
