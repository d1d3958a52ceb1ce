/* Functions of column_range.c. */
#ifndef WEFT_DATA_COLUMN_RANGE_H
#define WEFT_DATA_COLUMN_RANGE_H

#include "../data_private.h"

typedef struct ColumnSums ColumnSums;
/* Returns sums for the columns of a table; NULL: the set is no table, or has more than
 * DATA_COLUMNS_RANGED columns. Release with column_sums_end. */
ColumnSums *column_sums_new(const DataSet *set);
/* Adds values of a row to the columns from `first` on. */
void column_sums_add(ColumnSums *sums, int64_t first, int64_t count, const float *value);
/* Frees the sums and returns the ranges of the columns. Owner: the caller. */
ColumnRange *column_sums_end(ColumnSums **sums, int64_t columns);
/* Compares the columns of the samples in path, which are like those of set, with those of `like`.
 * Returns a line that names the first column in which they differ, or NULL; *differ: the number of
 * such columns. Owner: the caller. */
char *column_ranges_difference(const char *path, const DataSet *set, const DataRanges *ranges,
                               const char *like, const DataRanges *then, int64_t *differ);

#endif
