/* Measures statistics of a set's values, and warns if those of two sets differ. Not collective. */
#ifndef WEFT_DATA_RANGES_H
#define WEFT_DATA_RANGES_H

#include "data/set.h"

/* Statistics of the finite values of an array. count: number of finite values. */
typedef struct DataRange {
    int64_t count;
    double least, most, mean, deviation;
} DataRange;
/* Statistics of the finite values of one column of a table. nonzero_count: number of nonzero
 * values. typical: geometric mean of the absolute values of all nonzero values. */
typedef struct ColumnRange {
    float least, most, mean, deviation, typical, nonzero_count;
} ColumnRange;
/* COLUMN_RANGE_NUMBERS: number of floats of a ColumnRange. DATA_COLUMNS_RANGED: the columns of a
 * table are measured only if there are at most this number. */
enum { COLUMN_RANGE_NUMBERS = 6, DATA_COLUMNS_RANGED = 1 << 16 };
/* Statistics of a set's inputs as the model takes them, normalised by the set's mean and std if it
 * has them, and of its targets. inputs.count is 0 for tokens and encoded pictures, targets.count
 * is 0 for a set without targets. Release with data_ranges_fini. */
typedef struct DataRanges {
    DataRange inputs, targets;
    /* number of entries of `column`; 0: the set is no table, has more than DATA_COLUMNS_RANGED
     * columns, or has not been measured */
    int64_t columns;
    /* statistics of each column of a table, [columns]; owned */
    ColumnRange *column;
} DataRanges;
/* Both functions measure up to 256 samples, or 64 of a set of fields, spread evenly over the set.
 * If samples are large, they measure fewer, but at least 16, or all of a smaller set.
 * data_set_measure_scaled measures inputs multiplied by the set's scale but not normalised, except
 * that fields are always normalised by their reader. ERR_IO, ERR_DATA. */
Status data_set_measure_scaled(const DataSet *set, DataRange *range);
Status data_set_measure(const DataSet *set, DataRanges *ranges);
/* Returns the statistics of the inputs `value`, (rows, set->channels), which must be normalised
 * already. Targets are not measured. Release with data_ranges_fini. */
DataRanges data_rows_ranges(const DataSet *set, const float *value, int64_t rows);
/* Returns the statistics of `count` values. */
DataRange data_values_range(const float *value, int64_t count);
/* Returns a copy with its own columns. Release with data_ranges_fini. */
DataRanges data_ranges_copy(const DataRanges *ranges);
void data_ranges_fini(DataRanges *ranges);
/* data_sets_compare_ranges compares the statistics of inputs and targets of two sets of one kind;
 * data_files_compare_ranges compares those of each file of a set with those of its first file.
 * *line: a warning about the first difference, owned by the caller; NULL: the statistics are
 * similar. */
Status data_sets_compare_ranges(const DataSet *set, const DataSet *like, char **line);
Status data_files_compare_ranges(const DataSet *set, char **line);
/* Compares `ranges` with like_ranges, which were measured earlier, and returns a warning, owned by
 * the caller; NULL: they are similar, or one is unknown. path: name of the first data in the
 * warning, for example "new.h5"; like_name: name of the second, for example "the training set".
 * set: a set with samples of the same kind and shape. */
char *data_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                             const char *like_name, const DataRanges *like_ranges);

#endif
