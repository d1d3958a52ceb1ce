/* Measures the columns of tables and compares those of two tables. A column may be in metres in one
 * file and in kilometres in the other. The range of all values does not show this if another column
 * has larger numbers.
 *
 * Columns may be flags that are rarely 1, have long tails, or hold one value in all rows that are
 * compared. Therefore columns are compared by their typical values, together with their deviations,
 * extremes and means: see columns_are_alike. The typical value is the geometric mean of the
 * absolute values other than 0. Zeros do not change it, and outliers change it little. */
#include "column_range.h"

#include <float.h>
#include <math.h>

struct ColumnSums {
    /* count: number of finite values; nonzero_count: number of finite values other than 0 */
    int64_t count, nonzero_count;
    /* least, most: extremes of the values; logs: sum of the logarithms of the absolute values other
     * than 0 */
    double least, most, logs;
    /* first: the column's first value; sum: sum of the differences from it; squares: sum of their
     * squares */
    double first, sum, squares;
};

ColumnSums *column_sums_new(const DataSet *set)
{
    const DataKindInfo *kind = data_kind(set);
    const bool table = kind->x == X_ROWS;
    if (!table || set->channels > DATA_COLUMNS_RANGED) return NULL;
    return mem_new((size_t)set->channels * sizeof(ColumnSums));
}

void column_sums_add(ColumnSums *sums, int64_t first, int64_t count, const float *value)
{
    for (int64_t i = 0; i < count; ++i) {
        ColumnSums *s = &sums[first + i];
        const double v = (double)value[i];
        if (!isfinite(v)) continue;
        if (s->count++ == 0) s->first = s->least = s->most = v;
        if (v < s->least) s->least = v;
        if (v > s->most) s->most = v;
        s->sum += v - s->first;
        s->squares += (v - s->first) * (v - s->first);
        if (v == 0) continue;
        s->logs += (double)logf(fabsf(value[i]));
        ++s->nonzero_count;
    }
}

ColumnRange *column_sums_end(ColumnSums **sums, int64_t columns)
{
    ColumnRange *range = mem_new((size_t)columns * sizeof *range);
    for (int64_t i = 0; i < columns; ++i) {
        const ColumnSums *s = &(*sums)[i];
        if (s->count == 0) continue;
        const double mean = s->sum / (double)s->count;
        const double variance = fmax(0, s->squares / (double)s->count - mean * mean);
        range[i] = (ColumnRange){.least = (float)s->least,
                                 .most = (float)s->most,
                                 .mean = (float)(s->first + mean),
                                 .deviation = (float)fmin(sqrt(variance), FLT_MAX),
                                 .nonzero_count = (float)s->nonzero_count};
        if (s->nonzero_count > 0) range[i].typical = (float)exp(s->logs / (double)s->nonzero_count);
    }
    mem_free(sums);
    return range;
}

/* Returns the factor by which bounds are widened for a typical value that is computed from this
 * number of values: more than 1 if they are few, else 1. */
static double widening(float values)
{
    const float ENOUGH = 32;
    return values < ENOUGH ? sqrt((double)(ENOUGH / values)) : 1;
}

/* Returns whether two columns are alike. They are if one has no values other than 0, or if both
 * have fewer than FILLED_MIN values other than 0. Else they differ in three cases:
 * - both have at least FILLED_MIN values other than 0, and their typical values as well as their
 *   deviations differ by a factor above SPREAD;
 * - all absolute values of one column are below the typical value of the other, divided by SPREAD;
 * - the distance of their means is above half of the larger mean, and above SHIFT times the larger
 *   deviation.
 * A few values may be close to each other, or may all be small, by chance. So with few values
 * (widening), SPREAD is larger in comparisons with a typical value, and SHIFT is larger. SPREAD of
 * the deviations and half of the larger mean stay the same. SPREAD and SHIFT are those of columns;
 * range.c has its own for the range of all values. */
static bool columns_are_alike(const ColumnRange *a, const ColumnRange *b)
{
    const float FILLED_MIN = 4, SPREAD = 8, SHIFT = 4;
    const float few = fminf(a->nonzero_count, b->nonzero_count),
                many = fmaxf(a->nonzero_count, b->nonzero_count);
    if (few == 0 || many < FILLED_MIN) return true;
    const double wide = widening(few) * widening(many);
    const double deviation = (double)fmaxf(a->deviation, b->deviation);
    const double bound = (double)fmaxf(a->typical, b->typical) / wide / (double)SPREAD;
    const ColumnRange *low = a->typical < b->typical ? a : b;
    const double distance = fabs((double)a->mean - (double)b->mean);
    const double larger = fmax(fabs((double)a->mean), fabs((double)b->mean));
    bool deviations_differ = deviation > (double)SPREAD * (double)fminf(a->deviation, b->deviation);
    if (few >= FILLED_MIN && deviations_differ && bound > (double)low->typical) return false;
    if (bound > fmax(fabs((double)low->least), fabs((double)low->most))) return false;
    return distance <= larger / 2 || distance <= (double)SHIFT * wide * deviation;
}

/* Returns "column 'name'", or "column number N (from 0)" if the set does not name each of its
 * columns, or names this one with an empty text. Owner: the caller. */
static char *column_text(const DataSet *set, int64_t column)
{
    ClassNames names = {0};
    const bool named = class_names_read_list(&names, set->path, "columns") == OK &&
                       names.count == set->channels && *names.name[column];
    char *text = named ? mem_format("column '%.160s'", names.name[column])
                       : mem_format("column number %lld (from 0)", (long long)column);
    class_names_free(&names);
    return text;
}

char *column_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                               const char *like, const DataRanges *like_ranges, int64_t *differing)
{
    int64_t first = 0;
    *differing = 0;
    if (ranges->columns != like_ranges->columns) return NULL;
    for (int64_t i = 0; i < ranges->columns; ++i) {
        if (columns_are_alike(&ranges->column[i], &like_ranges->column[i])) continue;
        if ((*differing)++ == 0) first = i;
    }
    if (*differing == 0) return NULL;
    const ColumnRange *a = &ranges->column[first], *b = &like_ranges->column[first];
    char *name = column_text(set, first), more[64] = "";
    if (*differing > 1)
        snprintf(more, sizeof more, "; %lld more columns differ, too", (long long)*differing - 1);
    char *line = mem_format("%s: its %s is %.6g to %.6g, mean %.6g, and that of %s is %.6g to "
                            "%.6g, mean %.6g%s: if the same numbers do not mean the same in both, "
                            "store the column in one unit",
                            path, name, (double)a->least, (double)a->most, (double)a->mean, like,
                            (double)b->least, (double)b->most, (double)b->mean, more);
    mem_free(&name);
    return line;
}
