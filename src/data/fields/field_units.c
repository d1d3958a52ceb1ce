/* Lists the units of a set's variables, and compares them with the units of another set or of a
 * checkpoint's training set. The list of units (DataColumns.lines) has a line "NAME [UNITS]" for
 * each variable that is an input or a target of numbers. UNITS is empty if the file gives no units.
 * Lines that do not fit into DATA_COLUMN_LINES bytes are left out. */
#include "fields_private.h"

#include <string.h>

/* Returns whether a variable is an input, or a target of numbers. */
static bool has_channel(const FieldSet *f, int variable)
{
    for (int i = 0; i < f->inputs; ++i)
        if (f->input[i].variable == variable) return true;
    for (int i = 0; i < f->targets && f->classes.count == 0; ++i)
        if (f->target[i].variable == variable) return true;
    return false;
}

/* Returns a pointer to the units of a variable in a list, which "]" follows; *bytes: their length.
 * Returns NULL if the list does not have the variable. name_bytes: length of the variable's
 * name. */
static const char *find_units(const char *lines, const char *name, size_t name_bytes, int *bytes)
{
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const size_t length = strcspn(line, "\n");
        if (length < name_bytes + 3 || line[length - 1] != ']') continue;
        if (strncmp(line, name, name_bytes) != 0 || strncmp(line + name_bytes, " [", 2) != 0)
            continue;
        *bytes = (int)(length - name_bytes - 3);
        return line + name_bytes + 2;
    }
    return NULL;
}

void field_units_list(DataSet *set)
{
    const FieldSet *f = &set->field_set;
    char *lines = set->columns.lines;
    for (int i = 0; i < f->stored; ++i) {
        const FieldVariable *v = &f->variable[i];
        const size_t used = strlen(lines);
        int bytes;
        if (!has_channel(f, i) || find_units(lines, v->name, strlen(v->name), &bytes)) continue;
        const int length = snprintf(lines + used, DATA_COLUMN_LINES - used, "%s%s [%s]",
                                    used ? "\n" : "", v->name, v->units);
        if ((size_t)length >= DATA_COLUMN_LINES - used) lines[used] = 0;
    }
    set->columns.names = hash_text(lines);
}

bool data_units_differ(const DataColumns *a, const DataColumns *b, bool unknown,
                       DataUnitsPair *pair)
{
    for (const char *line = a->lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        const char *text[2], *end = line;
        int bytes[2];
        while (*end && *end != '\n' && strncmp(end, " [", 2) != 0) ++end;
        const size_t name = (size_t)(end - line);
        text[0] = find_units(line, line, name, &bytes[0]);
        text[1] = text[0] ? find_units(b->lines, line, name, &bytes[1]) : NULL;
        if (!text[1]) continue;
        const bool differ = bytes[0] != bytes[1] || memcmp(text[0], text[1], (size_t)bytes[0]) != 0;
        if (!differ || unknown != (bytes[0] == 0 || bytes[1] == 0)) continue;
        snprintf(pair->variable, sizeof pair->variable, "%.*s", (int)name, line);
        for (int i = 0; i < 2; ++i)
            snprintf(pair->units[i], sizeof pair->units[i], "%.*s", bytes[i], text[i]);
        return true;
    }
    return false;
}

void data_units_log_unknown(const char *path, const DataColumns *now, const char *other,
                            const DataColumns *then)
{
    DataUnitsPair pair;
    if (data_units_differ(now, then, true, &pair))
        log_info(
            "%s: cannot check that %s has the units of %s, since only %s has units (%s): equal "
            "numbers are taken for the same",
            path, pair.variable, other, *pair.units[0] ? path : other,
            pair.units[*pair.units[0] ? 0 : 1]);
}

Status field_units_check(const DataSet *set, const DataSet *like)
{
    DataUnitsPair pair;
    data_units_log_unknown(set->path, &set->columns, like->path, &like->columns);
    if (!data_units_differ(&set->columns, &like->columns, false, &pair)) return OK;
    return fail(ERR_DATA,
                "%s: the units of %s are %s, but %s in %s: convert its values or, if the numbers "
                "mean the same, write the attribute units alike in both (ncatted)",
                set->path, pair.variable, pair.units[0], pair.units[1], like->path);
}
