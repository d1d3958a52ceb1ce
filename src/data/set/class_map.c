/* Maps labels to classes where two lists of class names are combined: those of several files, of a
 * training and a test set, or of a set and a checkpoint. Labels are matched by name if one list
 * contains all names of the other. A list that only counts (0, 1, 2, ...), as importers write if
 * they know no names, is used like any other if it matches; otherwise it is treated like a missing
 * list: labels keep their numbers, and a message says so. */
#include "base/escape.h"
#include "../data_private.h"

#include <stdlib.h>
#include <string.h>

/* ---- lists of names ---- */

typedef struct Place {
    const char *name;
    int64_t i;
} Place;

static int by_name(const void *a, const void *b)
{
    const Place *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    return order ? order : (left->i > right->i) - (left->i < right->i);
}

/* Owner: the caller. */
static Place *names_sorted(const ClassNames *names)
{
    Place *place = mem_new((size_t)(names->count + 1) * sizeof *place);
    for (int64_t i = 0; i < names->count; ++i) place[i] = (Place){names->name[i], i};
    qsort(place, (size_t)names->count, sizeof *place, by_name);
    return place;
}

Status class_names_check(const ClassNames *names, const char *path)
{
    Place *place = names_sorted(names);
    Status st = OK;
    for (int64_t i = 1; st == OK && i < names->count; ++i)
        if (strcmp(place[i].name, place[i - 1].name) == 0)
            st = fail(ERR_DATA,
                      "%s: classes %lld and %lld are both named '%.80s', so labels cannot be "
                      "matched by name; name each class once",
                      path, (long long)place[i - 1].i, (long long)place[i].i, place[i].name);
    mem_free(&place);
    return st;
}

bool class_names_count(const ClassNames *names)
{
    char number[24];
    for (int64_t i = 0; i < names->count; ++i) {
        snprintf(number, sizeof number, "%lld", (long long)i);
        if (strcmp(names->name[i], number) != 0) return false;
    }
    return true;
}

static ClassNames names_new(const char *const *name, int64_t count)
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
    class_names_take(&names, text, bytes, 0);
    return names;
}

/* Removes the first `least` names. */
static void names_drop(ClassNames *names, int64_t least)
{
    int64_t drop = least < names->count ? least : names->count;
    ClassNames rest = names_new((const char *const *)names->name + drop, names->count - drop);
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

/* ---- how two lists fit ---- */

typedef struct Fit {
    /* owned: for each name of the first list its index in the second; -1: absent */
    int64_t *to;
    /* first name of each list that the other lacks (-1: none), and the number of such names */
    int64_t unknown, missing, unknowns, missings;
    /* each name of the first list has the same index in the second */
    bool in_place;
} Fit;

static void fit_find(Fit *fit, const ClassNames *file_names, const ClassNames *classes)
{
    Place *place = names_sorted(classes);
    bool *matched = mem_new((size_t)classes->count + 1);
    *fit = (Fit){.unknown = -1, .missing = -1, .in_place = true};
    fit->to = mem_new((size_t)(file_names->count + 1) * sizeof *fit->to);
    for (int64_t i = 0; i < file_names->count; ++i) {
        int64_t low = 0, high = classes->count;
        while (low < high) {
            int64_t middle = (low + high) / 2;
            if (strcmp(place[middle].name, file_names->name[i]) < 0)
                low = middle + 1;
            else
                high = middle;
        }
        bool found = low < classes->count && strcmp(place[low].name, file_names->name[i]) == 0;
        fit->to[i] = found ? place[low].i : -1;
        if (found) matched[place[low].i] = true;
        if (!found && fit->unknowns++ == 0) fit->unknown = i;
        fit->in_place = fit->in_place && fit->to[i] == i;
    }
    for (int64_t i = 0; i < classes->count; ++i)
        if (!matched[i] && fit->missings++ == 0) fit->missing = i;
    mem_free(&matched);
    mem_free(&place);
}

static Status fit_fail(const Fit *fit, const char *path, const ClassNames *file_names,
                       const char *classes_of, const ClassNames *classes)
{
    char *set_name, *other_name;
    text_escape_pair(file_names->name[fit->unknown], classes->name[fit->missing], &set_name,
                     &other_name);
    Status st = fail(
        ERR_DATA,
        "%s: its classes are not those of %s: '%.160s' (class %lld) is not among them, "
        "and '%.160s' (their class %lld) is not among its own; labels are matched by name only if "
        "one of the two lists has all names of the other: give the classes one set of names",
        path, classes_of, set_name, (long long)fit->unknown, other_name, (long long)fit->missing);
    mem_free(&set_name);
    mem_free(&other_name);
    return st;
}

/* Does each list have a name that the other lacks? */
static bool fit_none(const Fit *fit)
{
    return fit->unknowns > 0 && fit->missings > 0;
}

/* Returns a line on how the names of the two lists differ. Owner: the caller. */
static char *fit_line(const Fit *fit, const char *path, const ClassNames *file_names,
                      const char *classes_of, const ClassNames *classes)
{
    if (fit->unknowns > 0)
        return mem_format("%s: labels are matched by the names of classes: %s has %lld of its %lld "
                          "classes and lacks '%.80s'%s, which no sample may be",
                          path, classes_of, (long long)(file_names->count - fit->unknowns),
                          (long long)file_names->count, file_names->name[fit->unknown],
                          fit->unknowns > 1 ? " and others" : "");
    if (fit->missings > 0)
        return mem_format("%s: labels are matched by the names of classes: it has %lld of the %lld "
                          "classes of %s and lacks '%.80s'%s",
                          path, (long long)file_names->count, (long long)classes->count, classes_of,
                          classes->name[fit->missing], fit->missings > 1 ? " and others" : "");
    return mem_format("%s: labels are matched by the names of classes, which are in another order "
                      "than those of %s",
                      path, classes_of);
}

/* Does the list name classes: is it present, and more than a count? */
static bool names_classes(const ClassNames *names)
{
    return names->count > 0 && !class_names_count(names);
}

/* Returns a line on labels that keep their numbers because one of the lists names no classes; NULL:
 * neither does. Owner: the caller. */
static char *numbers_line(const char *path, const ClassNames *file_names, const char *classes_of,
                          const ClassNames *classes)
{
    if (names_classes(classes))
        return mem_format("%s: names no classes, so its labels are taken by their numbers: 0 is "
                          "'%.80s', as in %s",
                          path, classes->name[0], classes_of);
    if (names_classes(file_names))
        return mem_format("%s: its labels are taken by their numbers, as %s names no classes: 0 is "
                          "'%.80s' here",
                          path, classes_of, file_names->name[0]);
    return NULL;
}

/* ---- maps ---- */

static Status too_many(const DataSet *set)
{
    return fail(ERR_DATA,
                "%s: labels of more than %d classes cannot be brought into another order; make the "
                "files with one order of classes (`weft data import folder --classes`)",
                set->path, DATA_LABELS);
}

static Status map_put(DataSet *set, LabelMap *map, const uint16_t *class, int64_t count)
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
    if (count > DATA_LABELS - used) return too_many(set);
    *map = (LabelMap){used, (int)count};
    memcpy(set->class_of + used, class, (size_t)count * sizeof *class);
    return OK;
}

/* Returns a new map: the map `before` (count 0: a label is its class) followed by fit->to[]. Owner:
 * the caller. */
static uint16_t *map_follow(const DataSet *set, LabelMap before, const Fit *fit, int64_t count)
{
    int64_t n = before.count > 0 ? before.count : count;
    uint16_t *class = mem_new((size_t)(n + 1) * sizeof *class);
    for (int64_t i = 0; i < n; ++i) {
        int64_t at = before.count > 0 ? set->class_of[before.first + i] : i;
        int64_t to = at < count ? fit->to[at] : -1;
        class[i] = to < 0 || to >= DATA_NO_CLASS ? DATA_NO_CLASS : (uint16_t)to;
    }
    return class;
}

static Status maps_follow(DataSet *set, const Fit *fit, int64_t count)
{
    DataSet *old = mem_new(sizeof *old);
    int maps = set->file_count ? set->file_count : 1;
    Status st = OK;
    *old = *set;
    for (int i = 0; i < set->file_count; ++i) set->file[i].map = (LabelMap){0, 0};
    for (int i = 0; st == OK && i < maps; ++i) {
        LabelMap before = set->file_count ? old->file[i].map : old->map;
        uint16_t *class = map_follow(old, before, fit, count);
        st = map_put(set, set->file_count ? &set->file[i].map : &set->map, class,
                     before.count > 0 ? before.count : count);
        mem_free(&class);
    }
    mem_free(&old);
    return st;
}

Status data_set_use_classes(DataSet *set, const ClassNames *file_names, const ClassNames *classes,
                            const char *classes_of, char **line)
{
    Fit fit;
    Status st = OK;
    *line = NULL;
    if (file_names->count == 0 || classes->count == 0) {
        *line = numbers_line(set->path, file_names, classes_of, classes);
        return OK;
    }
    fit_find(&fit, file_names, classes);
    if (fit_none(&fit)) {
        if (names_classes(file_names) && names_classes(classes))
            st = fit_fail(&fit, set->path, file_names, classes_of, classes);
        else
            *line = numbers_line(set->path, file_names, classes_of, classes);
        mem_free(&fit.to);
        return st;
    }
    if (!fit.in_place)
        st = classes->count < DATA_NO_CLASS ? maps_follow(set, &fit, file_names->count)
                                            : too_many(set);
    if (st == OK && (!fit.in_place || fit.missings > 0)) {
        *line = fit_line(&fit, set->path, file_names, classes_of, classes);
        int64_t least = set->classes > file_names->count ? set->classes : 0;
        set->classes = classes->count > least ? classes->count : least;
    }
    mem_free(&fit.to);
    return st;
}

/* ---- the files of a list ---- */

/* Reads the names of the file's classes. If they are numbers, those below label_base are
 * removed. */
static Status names_of_file(ClassNames *names, const DataSet *file)
{
    *names = (ClassNames){0};
    if (file->named == 0) return OK;
    TRY(class_names_read(names, file->path));
    Status st = class_names_check(names, file->path);
    if (st == OK && file->label_base > 0 && class_names_count(names))
        names_drop(names, file->label_base);
    if (st != OK) class_names_free(names);
    return st;
}

/* Appends the names of `more` that `all` lacks and sets their fit->to[]. fit->to stays the
 * caller's. */
static void names_add(ClassNames *all, const ClassNames *more, const Fit *fit)
{
    const char **name = mem_new((size_t)(all->count + more->count + 1) * sizeof *name);
    int64_t count = 0;
    for (; count < all->count; ++count) name[count] = all->name[count];
    for (int64_t i = 0; i < more->count; ++i)
        if (fit->to[i] < 0) {
            fit->to[i] = count;
            name[count++] = more->name[i];
        }
    ClassNames joined = names_new(name, count);
    mem_free(&name);
    class_names_free(all);
    *all = joined;
}

static bool in_place(const Fit *fit, int64_t count)
{
    for (int64_t i = 0; i < count; ++i)
        if (fit->to[i] != i) return false;
    return true;
}

void class_names_join(ClassNames *all, const ClassNames *more)
{
    Fit fit;
    fit_find(&fit, more, all);
    if (!fit_none(&fit)) names_add(all, more, &fit);
    mem_free(&fit.to);
}

/* Replaces a list of numbers by a list of names. */
static void names_replace(ClassNames *all, ClassNames *more)
{
    class_names_free(all);
    *all = *more;
    *more = (ClassNames){0};
}

/* Joins two lists of which at least one names no classes: labels keep their numbers, and the other
 * list names them. *joined: that list has a name for each class of the unnamed set. */
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

/* Joins by name: classes that only `file_names` has are appended. */
static Status files_join_names(DataSet *set, ClassNames *all, DataSet *other,
                               const ClassNames *file_names, Fit *fit)
{
    bool equal = fit->in_place && fit->missings == 0;
    names_add(all, file_names, fit);
    if (!in_place(fit, file_names->count)) {
        if (all->count >= DATA_NO_CLASS) return too_many(other);
        uint16_t *class = map_follow(set, (LabelMap){0, 0}, fit, file_names->count);
        Status st = map_put(set, &other->map, class, file_names->count);
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
    Fit fit = {0};
    Status st = OK;
    if (set->file_count == 1) TRY(names_of_file(all, set));
    TRY(names_of_file(&file_names, other));
    if (file_names.count == 0 || all->count == 0) {
        files_join_numbers(set, all, other, &file_names, joined);
        class_names_free(&file_names);
        return OK;
    }
    fit_find(&fit, &file_names, all);
    if (!fit_none(&fit)) {
        st = files_join_names(set, all, other, &file_names, &fit);
        *joined = st == OK;
    } else if (names_classes(&file_names) && names_classes(all)) {
        st = fit_fail(&fit, other->path, &file_names, set->path, all);
    } else {
        files_join_numbers(set, all, other, &file_names, joined);
    }
    mem_free(&fit.to);
    class_names_free(&file_names);
    return st;
}

/* Adds the names of one more file of a list to `all`, as files_join_classes does. */
static void names_join_file(ClassNames *all, ClassNames *more)
{
    Fit fit;
    fit_find(&fit, more, all);
    if (!fit_none(&fit))
        names_add(all, more, &fit);
    else if (names_classes(more) && !names_classes(all))
        names_replace(all, more);
    mem_free(&fit.to);
}

Status data_set_class_names(const DataSet *set, ClassNames *names)
{
    DataSet *file = mem_new(sizeof *file);
    Status st = set->file_count ? OK : names_of_file(names, set);
    if (set->file_count) *names = (ClassNames){0};
    for (int i = 0; st == OK && i < set->file_count; ++i) {
        ClassNames more;
        data_set_file(set, i, file);
        st = names_of_file(&more, file);
        if (st == OK) names_join_file(names, &more);
        if (st == OK) class_names_free(&more);
    }
    if (st != OK) class_names_free(names);
    mem_free(&file);
    return st;
}
