/* Compares the columns of two tables: their names, how the import transformed and scaled them, and
 * whether the vocabularies of both are known. Tables of equal shape may differ in all of this. For
 * sets of fields, fields/field_meaning.c compares units and other facts instead. */
#include "base/escape.h"
#include "../fields/fields_private.h"

#include <string.h>

/* Compares the list `list` of names in both files. ERR_DATA names the first index at which the
 * names differ. If one list is longer, the names beyond the shorter list are not compared. */
static Status compare_names(const DataSet *set, const DataSet *like, const char *list)
{
    ClassNames a, b = {0};
    Status st = class_names_read_list(&a, set->path, list);
    if (st == OK) st = class_names_read_list(&b, like->path, list);
    for (int64_t i = 0; st == OK && i < a.count && i < b.count; ++i) {
        char *x, *y;
        if (strcmp(a.name[i], b.name[i]) == 0) continue;
        text_escape_pair(a.name[i], b.name[i], &x, &y);
        st = fail(ERR_DATA,
                  "%s: number %lld of its %s is '%.160s', but '%.160s' in %s: give both files the "
                  "same %s in one order",
                  set->path, (long long)i, list, x, y, like->path, list);
        mem_free(&x);
        mem_free(&y);
    }
    class_names_free(&a);
    class_names_free(&b);
    return st;
}

bool data_scaling_matches(const DataColumns *a, const DataColumns *b)
{
    return !a->scaling || !b->scaling || a->scaling == b->scaling;
}

Status data_columns_check(const DataSet *set, const DataSet *like)
{
    const DataColumns *a = &set->columns, *b = &like->columns;
    if (data_has_fields(set)) return field_meaning_check(set, like);
    if (a->names && b->names && a->names != b->names) {
        TRY(compare_names(set, like, "columns"));
        TRY(compare_names(set, like, "fields"));
    }
    if (set->fields > 0 && !set->vocabulary_hash != !like->vocabulary_hash)
        log_info("%s: cannot check that its ids have the vocabulary of %s, since only %s has the "
                 "vocabulary's hash (vocabulary_hash): equal ids are taken for the same word",
                 set->path, like->path, set->vocabulary_hash ? set->path : like->path);
    if (data_scaling_matches(a, b)) return OK;
    log_warn("%s: its columns were transformed, scaled or standardised in another way than those "
             "of %s, so the same numbers do not mean the same: import both by one schema in one "
             "call (--test-files), so that they share means and deviations",
             set->path, like->path);
    return OK;
}
