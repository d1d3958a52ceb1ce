/* Statistics of a set's values before mean and deviation are applied: least, largest, mean and
 * deviation over samples spread evenly. They show if two sets of one type use different scales,
 * such as 0 to 1 and 0 to 255. */
#include "data_private.h"

#include <math.h>

enum { RANGE_SAMPLES = 256, RANGE_VALUES = 1 << 16 };

static void range_add(DataRange *range, double *sum, double *squares, const float *value,
                      int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        double v = (double)value[i];
        if (!isfinite(v)) continue;
        if (range->values == 0) range->least = range->most = v;
        range->least = fmin(range->least, v);
        range->most = fmax(range->most, v);
        *sum += v;
        *squares += v * v;
        ++range->values;
    }
}

Status data_set_range(const DataSet *set, DataRange *range)
{
    Reader *reader;
    double sum = 0, squares = 0;
    const size_t bytes = element_bytes(set->x.type);
    *range = (DataRange){0};
    if (set->encoded || data_kind(set)->next_token) return OK;
    int64_t all = set->x.sample_bytes / (int64_t)bytes;
    int64_t each = all < RANGE_VALUES ? all : RANGE_VALUES;
    TRY(reader_new(&reader, set));
    uint8_t *raw = mem_new((size_t)set->x.sample_bytes);
    float *value = mem_new((size_t)each * sizeof *value);
    int64_t count = set->samples < RANGE_SAMPLES ? set->samples : RANGE_SAMPLES;
    Status st = OK;
    for (int64_t i = 0; st == OK && i < count; ++i) {
        int64_t sample =
            count > 1 ? (int64_t)((double)i * (double)(set->samples - 1) / (double)(count - 1)) : 0;
        st = reader_get(reader, sample, raw, NULL, NULL);
        if (st != OK) break;
        element_row(set->x.type, value, 1, raw, 1, each, set->scale, 0.0F);
        range_add(range, &sum, &squares, value, each);
    }
    mem_free(&value);
    mem_free(&raw);
    reader_free(&reader);
    if (range->values == 0) return st;
    range->mean = sum / (double)range->values;
    range->deviation = sqrt(fmax(0, squares / (double)range->values - range->mean * range->mean));
    return st;
}

/* Compares the ends of pictures' ranges, which pictures use fully, but mean and deviation of
 * tables, whose columns have outliers. */
static bool ranges_alike(const DataRange *a, const DataRange *b, bool pictures)
{
    const double ends = 0.25, spread = 8, shift = 4;
    double width = fmax(a->most, b->most) - fmin(a->least, b->least);
    double less = fmin(a->deviation, b->deviation), more = fmax(a->deviation, b->deviation);
    if (pictures)
        return fabs(a->least - b->least) <= ends * width && fabs(a->most - b->most) <= ends * width;
    return more <= spread * less && fabs(a->mean - b->mean) <= shift * more;
}

/* Compares the range of set with b, the range of like. */
static Status compare_range(const DataSet *set, const DataSet *like, const DataRange *b,
                            char **line)
{
    DataRange a;
    TRY(data_set_range(set, &a));
    if (a.values == 0 || b->values == 0 || ranges_alike(&a, b, data_kind(set)->augments)) return OK;
    *line = mem_format("%s: its values are %.6g to %.6g, mean %.6g, and those of %s are %.6g to "
                       "%.6g, mean %.6g: if the same numbers do not mean the same in both, store "
                       "them at one scale",
                       set->path, a.least, a.most, a.mean, like->path, b->least, b->most, b->mean);
    return OK;
}

Status data_ranges_compare(const DataSet *set, const DataSet *like, char **line)
{
    DataRange range;
    *line = NULL;
    TRY(data_set_range(like, &range));
    return compare_range(set, like, &range, line);
}

Status data_files_compare(const DataSet *set, char **line)
{
    DataRange range;
    *line = NULL;
    if (set->file_count < 2) return OK;
    DataSet *first = mem_new(sizeof *first), *file = mem_new(sizeof *file);
    data_set_file(set, 0, first);
    Status st = data_set_range(first, &range);
    for (int i = 1; st == OK && !*line && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = compare_range(file, first, &range, line);
    }
    mem_free(&first);
    mem_free(&file);
    return st;
}

void data_warn(char *line)
{
    if (line) log_warn("%s", line);
    mem_free(&line);
}
