/* Lists what the numbers of a set of fields mean, and compares this with another set or with a
 * checkpoint's training set: units and levels of variables, the time between frames, and the order
 * of rows and columns. The list (DataColumns.lines) has a line "SUBJECT [FACT]" for each fact; FACT
 * is empty if the files do not tell it. Brackets in SUBJECT are written as ( and ). Lines that do
 * not fit into DATA_COLUMN_LINES bytes are left out. */
#include "fields_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The kinds of facts, by the beginning of their subjects. Units come last: their subject is the
 * name of the variable alone. */
static const struct {
    const char *begin;
    /* words between the subject without its beginning and the fact, and words after the fact */
    const char *link, *end;
    /* advice if the fact differs */
    const char *advice;
    /* if not 0: the fact is a number, and numbers are the same if they differ by at most this
     * fraction: times have rounding errors, and distances of frames are allowed some */
    double tolerance;
} kinds[] = {
    {.begin = "levels of ",
     .link = " at levels ",
     .end = "",
     .advice = "name the same levels in both (data.variables: levels) or, if the numbers mean the "
               "same, write the coordinates of levels alike in both"},
    {.begin = "seconds between frames",
     .link = "frames that are ",
     .end = " s apart",
     .advice = "offsets of data.window in steps are other times there: give them in hours, or name "
               "data with the same time between frames",
     .tolerance = 2e-3},
    {.begin = "order of rows",
     .link = "rows of ",
     .end = " coordinates",
     .advice = "the fields are mirrored: reverse the rows of all variables and of their coordinate "
               "(ncpdq)"},
    {.begin = "order of columns",
     .link = "columns of ",
     .end = " coordinates",
     .advice = "the fields are mirrored: reverse the columns of all variables and of their "
               "coordinate (ncpdq)"},
    {.begin = "",
     .link = " in ",
     .end = "",
     .advice = "convert its values or, if the numbers mean the same, write the attribute units "
               "alike in both (ncatted)"},
};

/* Returns the index of the kind of a subject. */
static int kind_of(const char *subject)
{
    int i = 0;
    while (strncmp(subject, kinds[i].begin, strlen(kinds[i].begin)) != 0) ++i;
    return i;
}

/* Returns whether a variable is an input, or a target of numbers. */
static bool has_channel(const FieldSet *f, int variable)
{
    for (int i = 0; i < f->inputs; ++i)
        if (f->input[i].variable == variable) return true;
    for (int i = 0; i < f->targets && f->classes.count == 0; ++i)
        if (f->target[i].variable == variable) return true;
    return false;
}

/* Returns a pointer to a subject's fact in a list, which "]" follows; *bytes: its length. Returns
 * NULL if the list does not have the subject. subject_bytes: length of the subject. */
static const char *find_fact(const char *lines, const char *subject, size_t subject_bytes,
                             int *bytes)
{
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        if (length < subject_bytes + 3 || line[length - 1] != ']') continue;
        if (strncmp(line, subject, subject_bytes) != 0 ||
            strncmp(line + subject_bytes, " [", 2) != 0)
            continue;
        *bytes = (int)(length - subject_bytes - 3);
        return line + subject_bytes + 2;
    }
    return NULL;
}

/* Appends a line to a list that does not have the subject yet. */
static void add_fact(char *lines, const char *begin, const char *name, const char *fact)
{
    char subject[sizeof((FieldDifference *)NULL)->subject];
    const size_t used = strlen(lines);
    int bytes;
    snprintf(subject, sizeof subject, "%s%s", begin, name);
    for (char *c = subject; *c; ++c) *c = *c == '[' ? '(' : *c == ']' ? ')' : *c;
    if (find_fact(lines, subject, strlen(subject), &bytes)) return;
    const int length = snprintf(lines + used, DATA_COLUMN_LINES - used, "%s%s [%s]",
                                used ? "\n" : "", subject, fact);
    if ((size_t)length >= DATA_COLUMN_LINES - used) lines[used] = 0;
}

/* Adds the selected levels of a variable: of more than LISTED the first and the last ones, their
 * number, and a hash of all. Levels are written with six digits, which are the same for values of
 * float and of double. */
static void add_levels(char *lines, const FieldVariable *v)
{
    enum { LISTED = 8, BEGUN = 3, NUMBER = 16 };
    char text[160] = "", all[FIELD_LEVELS * NUMBER] = "";
    int used = 0, all_used = 0;
    bool known = v->levels > 0;
    for (int i = 0; i < v->levels; ++i) known = known && isfinite(v->level_value[i]);
    for (int i = 0; known && i < v->levels; ++i) {
        char number[NUMBER];
        snprintf(number, sizeof number, "%s%.6g", i ? ", " : "", v->level_value[i]);
        all_used += snprintf(all + all_used, sizeof all - (size_t)all_used, "%s", number);
        if (i < (v->levels > LISTED ? BEGUN : LISTED))
            used += snprintf(text + used, sizeof text - (size_t)used, "%s", number);
    }
    if (known && v->levels > LISTED)
        snprintf(text + used, sizeof text - (size_t)used, ", ... %.6g (%d levels, hash %08x)",
                 v->level_value[v->levels - 1], v->levels, (unsigned)hash_text(all));
    add_fact(lines, "levels of ", v->name, text);
}

/* Adds the time between frames, on which offsets in steps depend. */
static void add_step(char *lines, const FieldSet *f)
{
    char text[32] = "";
    if (f->step_s > 0) snprintf(text, sizeof text, "%.6g", f->step_s);
    add_fact(lines, "seconds between frames", "", text);
}

/* Adds whether coordinates rise or fall from each value to the next. */
static void add_order(char *lines, const char *subject, const FieldAxis *axis)
{
    bool rises = axis->count > 1, falls = rises;
    for (int i = 1; i < axis->count; ++i) {
        rises = rises && axis->value[i] > axis->value[i - 1];
        falls = falls && axis->value[i] < axis->value[i - 1];
    }
    add_fact(lines, subject, "", rises ? "rising" : falls ? "falling" : "");
}

static bool has_dim(const FieldVariable *v, FieldDim dim)
{
    return memchr(v->dim, dim, (size_t)v->ndim) != NULL;
}

void field_meaning_list(DataSet *set, const Config *config)
{
    const FieldSet *f = &set->field_set;
    const ConfigWindow *window = &config->data.window;
    char *lines = set->columns.lines;
    for (int i = 0; i < f->stored; ++i)
        if (has_channel(f, i)) add_fact(lines, "", f->variable[i].name, f->variable[i].units);
    if (window->is_set && !window->seconds) add_step(lines, f);
    add_order(lines, "order of rows", &f->rows);
    add_order(lines, "order of columns", &f->columns);
    for (int i = 0; i < f->stored; ++i)
        if (has_channel(f, i) && has_dim(&f->variable[i], FIELD_LEVEL))
            add_levels(lines, &f->variable[i]);
    set->columns.names = hash_text(lines);
}

/* Returns whether two facts of the subject are the same. */
static bool same_fact(const char *subject, const char *const text[2], const int bytes[2])
{
    if (bytes[0] == bytes[1] && memcmp(text[0], text[1], (size_t)bytes[0]) == 0) return true;
    const double tolerance = kinds[kind_of(subject)].tolerance;
    if (tolerance == 0 || bytes[0] == 0 || bytes[1] == 0) return false;
    const double a = strtod(text[0], NULL), b = strtod(text[1], NULL);
    return fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

bool data_fields_differ(const DataColumns *a, const DataColumns *b, bool unknown,
                        FieldDifference *difference)
{
    for (const char *line = a->lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *text[2], *end = line;
        int bytes[2];
        while (*end && *end != '\n' && strncmp(end, " [", 2) != 0) ++end;
        const size_t subject = (size_t)(end - line);
        text[0] = find_fact(line, line, subject, &bytes[0]);
        text[1] = text[0] ? find_fact(b->lines, line, subject, &bytes[1]) : NULL;
        if (!text[1]) continue;
        if (same_fact(line, text, bytes) || unknown != (bytes[0] == 0 || bytes[1] == 0)) continue;
        snprintf(difference->subject, sizeof difference->subject, "%.*s", (int)subject, line);
        for (int i = 0; i < 2; ++i)
            snprintf(difference->fact[i], sizeof difference->fact[i], "%.*s", bytes[i], text[i]);
        difference->advice = kinds[kind_of(difference->subject)].advice;
        return true;
    }
    return false;
}

void data_fields_difference_text(const FieldDifference *difference, int side, char *text,
                                 size_t bytes)
{
    const int kind = kind_of(difference->subject);
    const char *name = difference->subject + strlen(kinds[kind].begin);
    snprintf(text, bytes, "%s%s%s%s", name, kinds[kind].link, difference->fact[side],
             kinds[kind].end);
}

void data_fields_log_unknown(const char *path, const DataColumns *now, const char *other,
                             const DataColumns *then)
{
    FieldDifference d;
    char text[256];
    if (!data_fields_differ(now, then, true, &d)) return;
    const bool here = *d.fact[0];
    data_fields_difference_text(&d, here ? 0 : 1, text, sizeof text);
    log_info(
        "%s does not tell whether it has %s, which %s has: equal numbers are taken to mean the "
        "same",
        here ? other : path, text, here ? path : other);
}

Status field_meaning_check(const DataSet *set, const DataSet *like)
{
    FieldDifference d;
    char text[2][256];
    data_fields_log_unknown(set->path, &set->columns, like->path, &like->columns);
    if (!data_fields_differ(&set->columns, &like->columns, false, &d)) return OK;
    for (int i = 0; i < 2; ++i) data_fields_difference_text(&d, i, text[i], sizeof text[i]);
    return fail(ERR_DATA, "%s: has %s, but %s has %s: %s", set->path, text[0], like->path, text[1],
                d.advice);
}
