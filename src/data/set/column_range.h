/* Measures the columns of tables and compares those of two tables. */
#ifndef WEFT_DATA_COLUMN_RANGE_H
#define WEFT_DATA_COLUMN_RANGE_H

#include "../data_private.h"

/* Sums over the values of one column, from which its ColumnRange is computed. The functions take an
 * array with the sums of each column. */
typedef struct ColumnSums ColumnSums;
/* Returns sums for the columns of a table; NULL: the set is no table, or has more than
 * DATA_COLUMNS_RANGED columns. Release with column_sums_end. */
ColumnSums *column_sums_new(const DataSet *set);
/* Adds `count` values of a row to the sums of the columns from `first` on. */
void column_sums_add(ColumnSums *sums, int64_t first, int64_t count, const float *value);
/* Frees the sums and returns the ranges of the columns. Owner: the caller. */
ColumnRange *column_sums_end(ColumnSums **sums, int64_t columns);
/* Compares columns as data_ranges_difference does. Returns a warning about the first column that
 * differs, or NULL; *differing: number of columns that differ. Owner: the caller. */
char *column_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                               const char *like, const DataRanges *like_ranges, int64_t *differing);

#endif
