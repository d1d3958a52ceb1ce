/* Writes and reads the file of data.stats, which `weft data stats` makes. It is YAML with a line
 * for each variable and level, and for each change that the set predicts:
 *   statistics:
 *     - {variable: "u", level: 500, units: "m s-1", mean: 3.2, deviation: 8.1}
 *     - {variable: "u", level: 500, change: "6h", units: "m s-1", mean: 0.01, deviation: 1.4}
 * If levels have no coordinate, key `number` has the level's number, counted from 0, in place of
 * `level`. Key `change` has a distance in time or, if frames have no times, a number of frames. */
#include "fields_private.h"
#include "config/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_BYTES = 4 << 20 };

/* A line of the file. */
typedef struct Entry {
    /* NULL: not given; borrowed from the file's YAML tree */
    const char *variable, *units, *change;
    /* NAN: not given */
    double level, number, mean, deviation;
} Entry;

/* ---- writing ---- */

/* Returns whether the lines of two rows would have the same variable, level and change. */
static bool same_name(const FieldSet *f, const FieldStat *a, const FieldStat *b)
{
    const FieldVariable *v = &f->variable[a->variable], *w = &f->variable[b->variable];
    return !strcmp(v->name, w->name) && v->level_index[a->level] == w->level_index[b->level] &&
           a->change == b->change;
}

static void print_row(const FieldSet *f, const FieldStat *row, FILE *out)
{
    const FieldVariable *v = &f->variable[row->variable];
    char text[FIELD_TIME_TEXT];
    fputs("  - {variable: ", out);
    text_quote(out, v->name);
    if (v->size[FIELD_LEVEL] > 1 && isnan(v->level_value[row->level]))
        fprintf(out, ", number: %d", v->level_index[row->level]);
    if (v->size[FIELD_LEVEL] > 1 && !isnan(v->level_value[row->level])) {
        fputs(", level: ", out);
        text_real(out, v->level_value[row->level]);
    }
    if (row->change) fprintf(out, ", change: \"%s\"", field_offset_text(f, row->change, text));
    fputs(", units: ", out);
    text_quote(out, v->units);
    fputs(", mean: ", out);
    text_real(out, row->mean);
    fputs(", deviation: ", out);
    text_real(out, row->deviation);
    fputs("}\n", out);
}

Status data_fields_stats_save(const DataSet *set, const FieldStats *stats, const char *path)
{
    const FieldSet *f = &set->field_set;
    char *part = mem_format("%s.part", path), from[FIELD_TIME_TEXT], to[FIELD_TIME_TEXT];
    const FieldSegment *last = &f->segment[f->segments - 1];
    FILE *out = fopen(part, "w");
    int error = out ? 0 : errno;
    if (out) {
        fprintf(out,
                "# Mean and deviation of fields, for data.stats: frames from %s to %s in %d "
                "file%s\nstatistics:\n",
                field_time_text(f, field_frame_time(f, f->segment[0].first), from),
                field_time_text(f, field_frame_time(f, last->first + last->frames - 1), to),
                f->files, f->files == 1 ? "" : "s");
        for (int i = 0; i < stats->count; ++i) {
            int same = 0;
            while (!same_name(f, &stats->row[same], &stats->row[i])) ++same;
            if (same == i) print_row(f, &stats->row[i], out);
        }
        error = file_finish_stream(out);
    }
    if (!error && rename(part, path) != 0) error = errno;
    Status st = error ? fail(ERR_IO, "%s: cannot be written: %s", path, file_error(error)) : OK;
    if (error && out) unlink(part);
    mem_free(&part);
    return st;
}

/* ---- reading ---- */

static Status read_number(const char *path, const YamlNode *node, double *value)
{
    char *end = NULL;
    *value = node->kind == YAML_SCALAR && *node->text ? strtod(node->text, &end) : NAN;
    if (end && !*end && isfinite(*value)) return OK;
    return fail(ERR_DATA, "%s:%d: expected a number", path, node->line);
}

static Status read_entry(const char *path, const YamlNode *node, Entry *entry)
{
    *entry = (Entry){.level = NAN, .number = NAN, .mean = NAN, .deviation = NAN};
    for (int i = 0; node->kind == YAML_MAP && i < node->count; ++i) {
        const char *key = node->key[i]->text;
        const YamlNode *item = node->item[i];
        double *number = !strcmp(key, "level")       ? &entry->level
                         : !strcmp(key, "number")    ? &entry->number
                         : !strcmp(key, "mean")      ? &entry->mean
                         : !strcmp(key, "deviation") ? &entry->deviation
                                                     : NULL;
        const char **text = !strcmp(key, "variable") ? &entry->variable
                            : !strcmp(key, "units")  ? &entry->units
                            : !strcmp(key, "change") ? &entry->change
                                                     : NULL;
        if (!number && !text)
            return fail(ERR_DATA, "%s:%d: unknown key '%s'", path, item->line, key);
        if (number) TRY(read_number(path, item, number));
        if (text && item->kind != YAML_SCALAR)
            return fail(ERR_DATA, "%s:%d: %s: expected a text", path, item->line, key);
        if (text) *text = item->text;
    }
    if (entry->variable && !isnan(entry->mean) && entry->deviation >= 0) return OK;
    return fail(ERR_DATA,
                "%s:%d: expected a variable with mean and deviation, {variable: t2m, mean: 280, "
                "deviation: 20}",
                path, node->line);
}

/* Returns whether `text`, the key `change` of an entry (NULL: not given), means a change over
 * `change` frames. */
static bool same_change(const FieldSet *f, const char *text, int change)
{
    double seconds;
    if (!text) return change == 0;
    if (f->step_s == 0) return change != 0 && atoi(text) == change;
    const double sign = *text == '-' ? -1 : 1;
    return text_read_seconds(text + (*text == '-'), &seconds) &&
           fabs(sign * seconds - change * f->step_s) < 1e-3 * f->step_s;
}

static bool entry_fits(const FieldSet *f, const Entry *e, const FieldStat *row)
{
    const FieldVariable *v = &f->variable[row->variable];
    const double level = v->level_value[row->level];
    if (strcmp(e->variable, v->name) != 0 || !same_change(f, e->change, row->change)) return false;
    if (v->size[FIELD_LEVEL] == 1) return true;
    if (isnan(level)) return e->number == (double)v->level_index[row->level];
    return fabs(e->level - level) <= 1e-6 * fmax(1, fabs(level));
}

/* Finds the entry of each row, and copies the entry's mean and deviation. ERR_DATA: a row has no
 * entry, or the entry has other units. */
static Status find_rows(const DataSet *set, FieldStats *stats, const char *path,
                        const YamlNode *list)
{
    const FieldSet *f = &set->field_set;
    for (int i = 0; i < stats->count; ++i) stats->row[i].mean = NAN;
    for (int i = 0; i < list->count; ++i) {
        Entry e;
        TRY(read_entry(path, list->item[i], &e));
        for (int k = 0; k < stats->count; ++k) {
            FieldStat *row = &stats->row[k];
            const FieldVariable *v = &f->variable[row->variable];
            if (!entry_fits(f, &e, row)) continue;
            if (e.units && strcmp(e.units, v->units) != 0)
                return fail(ERR_DATA, "%s:%d: the units of %s are '%s', but '%s' in %s", path,
                            list->item[i]->line, v->name, e.units, v->units, set->path);
            row->mean = e.mean;
            row->deviation = e.deviation;
        }
    }
    for (int k = 0; k < stats->count; ++k) {
        const FieldStat *row = &stats->row[k];
        const FieldVariable *v = &f->variable[row->variable];
        char level[40] = "", over[FIELD_TIME_TEXT] = "";
        if (!isnan(row->mean)) continue;
        if (v->size[FIELD_LEVEL] > 1 && !isnan(v->level_value[row->level]))
            snprintf(level, sizeof level, " at level %g", v->level_value[row->level]);
        else if (v->size[FIELD_LEVEL] > 1)
            snprintf(level, sizeof level, " at level number %d", v->level_index[row->level]);
        if (row->change) field_offset_text(f, row->change, over);
        return fail(ERR_DATA,
                    "%s: has no mean and deviation of %s%s%s%s%s: make it again with weft data "
                    "stats",
                    path, row->change ? "the change of " : "", v->name, level,
                    row->change ? " over " : "", over);
    }
    return OK;
}

Status data_fields_stats_load(const DataSet *set, FieldStats *stats, const char *path)
{
    char *text;
    size_t bytes;
    YamlNode *root;
    data_fields_list_stats(set, stats);
    TRY(file_text(path, FILE_BYTES, &text, &bytes));
    Status st = yaml_parse(&root, path, text, bytes);
    mem_free(&text);
    TRY(st);
    const bool good = root->kind == YAML_MAP && root->count == 1 &&
                      !strcmp(root->key[0]->text, "statistics") && root->item[0]->kind == YAML_LIST;
    st = good ? find_rows(set, stats, path, root->item[0])
              : fail(ERR_DATA, "%s: expected a list, statistics: [...], of weft data stats", path);
    yaml_node_free(&root);
    return st;
}
