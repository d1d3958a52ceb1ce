/* Ranges of a set's values, and warnings if those of two sets differ. */
#ifndef WEFT_DATA_RANGES_H
#define WEFT_DATA_RANGES_H

#include "data/set.h"

/* Statistics of the finite values of an array. values: number of finite values. */
typedef struct DataRange {
    int64_t values;
    double least, most, mean, deviation;
} DataRange;
/* Statistics of the finite values of one column of a table. filled: number of values other than 0.
 * typical: geometric mean of their absolute values. */
typedef struct ColumnRange {
    float least, most, mean, deviation, typical, filled;
} ColumnRange;
/* COLUMN_RANGE_NUMBERS: floats of a ColumnRange; DATA_COLUMNS_RANGED: largest number of columns; of
 * a table with more columns, none is measured. */
enum { COLUMN_RANGE_NUMBERS = 6, DATA_COLUMNS_RANGED = 1 << 16 };
/* Ranges of a set's inputs as the model takes them, normalised by the set's mean and std if it has
 * them, and of its targets. inputs.values is 0 for tokens and encoded pictures, targets.values for
 * a set without targets. Release with data_ranges_fini. */
typedef struct DataRanges {
    DataRange inputs, targets;
    /* a table's columns, owned; columns 0: no table, more than DATA_COLUMNS_RANGED, or unknown */
    int64_t columns;
    ColumnRange *column;
} DataRanges;
/* Both functions measure samples spread evenly over the set: at most 256, of a set of fields 64; if
 * samples are large, fewer, but at least 16. data_set_measure_scaled measures inputs times the
 * set's scale, without mean and deviation, except fields, which are always read normalised. ERR_IO,
 * ERR_DATA. */
Status data_set_measure_scaled(const DataSet *set, DataRange *range);
Status data_set_measure(const DataSet *set, DataRanges *ranges);
/* Returns the ranges of `value`, (rows, set->channels), which must be normalised already. Targets
 * are not measured. Release with data_ranges_fini. */
DataRanges data_rows_ranges(const DataSet *set, const float *value, int64_t rows);
DataRange data_values_range(const float *value, int64_t count);
DataRanges data_ranges_copy(const DataRanges *ranges);
void data_ranges_fini(DataRanges *ranges);
/* Compare the ranges of values and of targets of two sets of one kind, or of a set's files with its
 * first file. *line: a warning about the first difference; NULL: the ranges are similar. Owner of
 * *line: the caller. */
Status data_sets_compare_ranges(const DataSet *set, const DataSet *like, char **line);
Status data_files_compare_ranges(const DataSet *set, char **line);
/* Compares `ranges` with like_ranges, which were measured earlier. set: a set with samples of the
 * same kind and shape. path and like name the data of `ranges` and like_ranges in the warning, such
 * as "new.h5" and "the training set". Returns a warning; NULL: the ranges are similar, or one is
 * unknown. Owner: the caller. */
char *data_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                             const char *like, const DataRanges *like_ranges);

#endif
