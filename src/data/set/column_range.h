/* Measures the columns of tables and compares those of two tables. */
#ifndef WEFT_DATA_COLUMN_RANGE_H
#define WEFT_DATA_COLUMN_RANGE_H

#include "../data_private.h"

/* Sums over the values of one column, from which its ColumnRange is computed. The functions below
 * take an array of them, one entry for each column. */
typedef struct ColumnSums ColumnSums;
/* Returns sums for the columns of a table; NULL: the set is no table, or has more than
 * DATA_COLUMNS_RANGED columns. Release with column_sums_end. */
ColumnSums *column_sums_new(const DataSet *set);
/* Adds `count` values of a row to the sums of the columns that begin with column `first`. */
void column_sums_add(ColumnSums *sums, int64_t first, int64_t count, const float *value);
/* Returns the ranges of all columns, [columns], owned by the caller. Frees the sums. */
ColumnRange *column_sums_end(ColumnSums **sums, int64_t columns);
/* Compares the columns of two tables; the arguments are those of data_ranges_difference. Returns a
 * warning about the first column that differs, owned by the caller; NULL: none differs. *differing:
 * number of columns that differ. */
char *column_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                               const char *like, const DataRanges *like_ranges, int64_t *differing);

#endif
