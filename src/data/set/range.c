/* Measures a set's values: the least, the largest, mean and deviation, over samples that are spread
 * evenly. Two sets are compared by these statistics, to find different scales, such as 0 to 1 in
 * one set and 0 to 255 in the other. */
#include "column_range.h"

#include <math.h>
#include <string.h>

enum {
    /* largest number of samples that are measured */
    SAMPLES_MAX = 256,
    /* number of samples that are measured even if they have more than VALUES_MAX values together; a
     * smaller set is measured completely */
    SAMPLES_MIN = 16,
    /* largest number of values that the measured samples have together. Each sample is read
     * completely, because its beginning may be empty, such as the edge of a picture. */
    VALUES_MAX = 1 << 25,
    /* largest number of samples that are measured in a set of fields, where samples have many
     * values and resemble each other */
    FIELDS_MAX = 64,
    /* number of values of a sample that are converted together */
    BUFFER_VALUES = 1 << 16
};

/* Which values are measured. */
typedef enum RangeOf {
    /* inputs multiplied by the set's scale; for a set of fields the same as RANGE_INPUTS, because
     * its reader normalises them */
    RANGE_SCALED,
    /* inputs as the model reads them: scaled, and normalised by mean and deviation */
    RANGE_INPUTS,
    RANGE_TARGETS
} RangeOf;

typedef struct Measure {
    const DataSet *set;
    RangeOf of;
    Reader *reader;
    /* count: number of samples that are measured; all: number of values of a sample; with
     * RANGE_TARGETS, number of its targets */
    int64_t count, all;
    /* converted values of a sample, [BUFFER_VALUES] or fewer; owned */
    float *buffer;
    /* result; mean and deviation are set at the end */
    DataRange range;
    /* sum: sum of the finite values; squares: sum of their squares */
    double sum, squares;
    /* sums of each column of a table, borrowed; NULL: columns are not measured */
    ColumnSums *column;
} Measure;

static void measure_add(Measure *m, const float *value, int64_t count)
{
    DataRange range = m->range;
    double sum = m->sum, squares = m->squares;
    for (int64_t i = 0; i < count; ++i) {
        const double v = (double)value[i];
        if (!isfinite(v)) continue;
        if (range.count == 0) range.least = range.most = v;
        if (v < range.least) range.least = v;
        if (v > range.most) range.most = v;
        sum += v;
        squares += v * v;
        ++range.count;
    }
    m->range = range;
    m->sum = sum;
    m->squares = squares;
}

static void measure_end(Measure *m)
{
    DataRange *range = &m->range;
    if (range->count == 0) return;
    range->mean = m->sum / (double)range->count;
    range->deviation = sqrt(fmax(0, m->squares / (double)range->count - range->mean * range->mean));
}

/* Normalises values at, at + 1, ..., at + count - 1 of a sample by mean and deviation. value: these
 * values, [count]; all: number of values of the sample. */
static void normalise(const DataSet *set, float *value, int64_t at, int64_t count, int64_t all)
{
    const int64_t channels = set->channels, plane = all / channels;
    for (int64_t i = 0; i < count; ++i) {
        int64_t c = set->channels_last ? (at + i) % channels : (at + i) / plane;
        int k = set->stats_count > 1 ? (int)c : 0;
        value[i] = (value[i] - set->mean[k]) / set->std[k];
    }
}

/* Reads the sample that is measured as number i: its values as they are stored, or its targets. */
static Status read_sample(void *user, int64_t i, void *item)
{
    const Measure *m = user;
    const double last = (double)(m->set->samples - 1);
    const int64_t sample = m->count > 1 ? (int64_t)((double)i * last / (double)(m->count - 1)) : 0;
    return m->of == RANGE_TARGETS ? reader_get(m->reader, sample, NULL, NULL, item)
                                  : reader_get(m->reader, sample, item, NULL, NULL);
}

static Status measure_sample(void *user, int64_t i, const void *item)
{
    Measure *m = user;
    const DataSet *set = m->set;
    const size_t bytes = element_bytes(set->x.type);
    const int64_t all = m->all;
    (void)i;
    if (m->of == RANGE_TARGETS) {
        measure_add(m, item, all);
        return OK;
    }
    for (int64_t at = 0; at < all; at += BUFFER_VALUES) {
        int64_t n = all - at < BUFFER_VALUES ? all - at : BUFFER_VALUES;
        element_scale_row(set->x.type, m->buffer, 1, (const char *)item + (size_t)at * bytes, 1, n,
                          set->scale, 0.0F);
        /* The reader has normalised fields already. */
        const bool normalised = data_has_fields(set);
        if (m->of == RANGE_INPUTS && set->has_stats && !normalised)
            normalise(set, m->buffer, at, n, all);
        measure_add(m, m->buffer, n);
        if (m->column) column_sums_add(m->column, at, n, m->buffer);
    }
    return OK;
}

/* Measures at most `samples` samples, spread evenly over the set. Does nothing for tokens, encoded
 * pictures, and targets that the set does not have. column: as Measure.column. */
static Status measure(const DataSet *set, RangeOf of, int64_t samples, ColumnSums *column,
                      DataRange *range)
{
    Measure m = {.set = set, .of = of, .column = column};
    const bool targets = of == RANGE_TARGETS;
    *range = (DataRange){0};
    if (data_has_tokens(set)) return OK;
    if (targets ? set->target_width == 0 : set->encoded) return OK;
    m.all = targets ? set->target_width : set->x.sample_bytes / (int64_t)element_bytes(set->x.type);
    int64_t limit = VALUES_MAX / m.all < SAMPLES_MIN ? SAMPLES_MIN : VALUES_MAX / m.all;
    if (data_has_fields(set) && limit > FIELDS_MAX) limit = FIELDS_MAX;
    m.count = samples < limit ? samples : limit;
    if (set->samples < m.count) m.count = set->samples;
    TRY(reader_new(&m.reader, set));
    m.buffer = mem_new((size_t)(m.all < BUFFER_VALUES ? m.all : BUFFER_VALUES) * sizeof *m.buffer);
    const size_t bytes = targets ? (size_t)m.all * sizeof *m.buffer : (size_t)set->x.sample_bytes;
    Status st = worker_pool_ahead(m.count, bytes, read_sample, measure_sample, &m);
    mem_free(&m.buffer);
    reader_free(&m.reader);
    measure_end(&m);
    *range = m.range;
    return st;
}

Status data_set_measure_scaled(const DataSet *set, DataRange *range)
{
    return measure(set, RANGE_SCALED, SAMPLES_MAX, NULL, range);
}

/* Measures the inputs, a table's columns and the targets. *ranges is all zero on error. */
static Status measure_all(const DataSet *set, RangeOf of, int64_t samples, DataRanges *ranges)
{
    ColumnSums *column = column_sums_new(set);
    *ranges = (DataRanges){0};
    Status st = measure(set, of, samples, column, &ranges->inputs);
    if (column) ranges->column = column_sums_end(&column, set->channels);
    if (ranges->column) ranges->columns = set->channels;
    if (st == OK) st = measure(set, RANGE_TARGETS, samples, NULL, &ranges->targets);
    if (st != OK) data_ranges_fini(ranges);
    return st;
}

Status data_set_measure(const DataSet *set, DataRanges *ranges)
{
    return measure_all(set, RANGE_INPUTS, SAMPLES_MAX, ranges);
}

DataRanges data_rows_ranges(const DataSet *set, const float *value, int64_t rows)
{
    DataRanges ranges = {.inputs = data_values_range(value, rows * set->channels)};
    ColumnSums *column = column_sums_new(set);
    if (!column) return ranges;
    for (int64_t i = 0; i < rows; ++i)
        column_sums_add(column, 0, set->channels, value + i * set->channels);
    ranges.column = column_sums_end(&column, set->channels);
    ranges.columns = set->channels;
    return ranges;
}

DataRanges data_ranges_copy(const DataRanges *ranges)
{
    DataRanges copy = *ranges;
    const size_t bytes = (size_t)copy.columns * sizeof *copy.column;
    if (copy.columns > 0) copy.column = memcpy(mem_new(bytes), ranges->column, bytes);
    return copy;
}

void data_ranges_fini(DataRanges *ranges)
{
    mem_free(&ranges->column);
    *ranges = (DataRanges){0};
}

DataRange data_values_range(const float *value, int64_t count)
{
    Measure m = {.of = RANGE_INPUTS};
    measure_add(&m, value, count);
    measure_end(&m);
    return m.range;
}

/* Ranges of tables, of fields and of targets are alike if their deviations (for targets: their
 * largest absolute values) differ by at most the factor SPREAD, and their means by at most SHIFT
 * times the larger deviation. column_range.c has its own SPREAD and SHIFT, for single columns. */
static const double SPREAD = 8, SHIFT = 4;

/* Targets that are all 0 in one of the two sets count as alike, since they may be those of rare
 * events. */
static bool targets_are_alike(const DataRange *a, const DataRange *b)
{
    double x = fmax(fabs(a->least), fabs(a->most)), y = fmax(fabs(b->least), fabs(b->most));
    bool means_are_alike = fabs(a->mean - b->mean) <= SHIFT * fmax(a->deviation, b->deviation);
    return fmin(x, y) == 0 || (means_are_alike && fmax(x, y) <= SPREAD * fmin(x, y));
}

/* Returns whether two ranges are alike. Pictures use their range fully, so the least and the
 * largest values are compared; uint8 values may differ more, since pictures may be dark. For other
 * sets mean and deviation are compared, because columns of tables have outliers. A small deviation
 * of range a is ignored if a has few values, which may be close to each other by chance. */
static bool ranges_are_alike(const DataSet *set, RangeOf of, const DataRange *a, const DataRange *b)
{
    enum { FEW_VALUES = 32 };
    /* accepted difference of the least, and of the largest values, as a fraction of `width`, the
     * width of both ranges together */
    const double tolerance = set->x.type == ELEM_U8 ? 0.9 : 0.25;
    double width = fmax(a->most, b->most) - fmin(a->least, b->least);
    double deviation = fmax(a->deviation, b->deviation);
    if (of == RANGE_TARGETS) return targets_are_alike(a, b);
    if (data_has_images(set))
        return fabs(a->least - b->least) <= tolerance * width &&
               fabs(a->most - b->most) <= tolerance * width;
    return (a->count < FEW_VALUES || b->deviation <= SPREAD * a->deviation) &&
           a->deviation <= SPREAD * b->deviation && fabs(a->mean - b->mean) <= SHIFT * deviation;
}

/* Compares range a, of the samples that are named `path`, with range b, of those that are named
 * `like`. Returns a warning, owned by the caller; NULL: the ranges are alike, or one has no
 * values. */
static char *compare(const char *path, const DataSet *set, RangeOf of, const DataRange *a,
                     const char *like, const DataRange *b)
{
    const bool normal = of == RANGE_INPUTS && set->has_stats;
    if (a->count == 0 || b->count == 0 || ranges_are_alike(set, of, a, b)) return NULL;
    return mem_format("%s: its %s are %.6g to %.6g, mean %.6g%s, and those of %s are %.6g to "
                      "%.6g, mean %.6g: if the same numbers do not mean the same in both, store "
                      "them at one scale",
                      path, of == RANGE_TARGETS ? "targets" : "values", a->least, a->most, a->mean,
                      normal ? ", after data.mean and data.std" : "", like, b->least, b->most,
                      b->mean);
}

/* Compares the inputs, a table's columns, and the targets of two sets, and returns one warning,
 * owned by the caller, or NULL. A warning about a column is preferred to one about all values,
 * unless there are several columns and all of them differ. */
static char *compare_all(const char *path, const DataSet *set, RangeOf of, const DataRanges *a,
                         const char *like, const DataRanges *b)
{
    int64_t differing = 0;
    char *line = compare(path, set, of, &a->inputs, like, &b->inputs);
    char *column = column_ranges_difference(path, set, a, like, b, &differing);
    bool all_differ = line && differing > 1 && differing == a->columns;
    if (column && !all_differ) {
        mem_free(&line);
        return column;
    }
    mem_free(&column);
    return line ? line : compare(path, set, RANGE_TARGETS, &a->targets, like, &b->targets);
}

char *data_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                             const char *like_name, const DataRanges *like_ranges)
{
    return compare_all(path, set, RANGE_INPUTS, ranges, like_name, like_ranges);
}

Status data_sets_compare_ranges(const DataSet *set, const DataSet *like, char **line)
{
    DataRanges a, b;
    *line = NULL;
    TRY(measure_all(like, RANGE_SCALED, SAMPLES_MAX, &b));
    Status st = measure_all(set, RANGE_SCALED, SAMPLES_MAX, &a);
    if (st == OK) *line = compare_all(set->path, set, RANGE_SCALED, &a, like->path, &b);
    data_ranges_fini(&a);
    data_ranges_fini(&b);
    return st;
}

Status data_files_compare_ranges(const DataSet *set, char **line)
{
    DataRanges first, other;
    *line = NULL;
    if (set->file_count < 2) return OK;
    int64_t samples = SAMPLES_MAX / set->file_count;
    if (samples < SAMPLES_MIN) samples = SAMPLES_MIN;
    DataSet *file = mem_new(sizeof *file);
    data_set_file(set, 0, file);
    Status st = measure_all(file, RANGE_SCALED, samples, &first);
    for (int i = 1; st == OK && !*line && i < set->file_count; ++i) {
        data_set_file(set, i, file);
        st = measure_all(file, RANGE_SCALED, samples, &other);
        if (st == OK)
            *line = compare_all(file->path, file, RANGE_SCALED, &other, set->path, &first);
        data_ranges_fini(&other);
    }
    data_ranges_fini(&first);
    mem_free(&file);
    return st;
}

void data_warn(char *line)
{
    if (line) log_warn("%s", line);
    mem_free(&line);
}
