/* Measures means and standard deviations of sets of fields, and reads and writes the file of
 * data.stats. Not collective. */
#ifndef WEFT_DATA_FIELD_STATS_H
#define WEFT_DATA_FIELD_STATS_H

#include "data/set.h"

/* Mean and deviation, over all frames of the segments of a set of fields, of its variables, and of
 * their changes from frame to frame where targets are such changes. They are measured in blocks of
 * frames, which may be divided among ranks; the results have the same bits with any number of
 * threads and ranks. A row is one mean with its deviation (FieldStat).
 * - data_fields_list_stats lists the rows that the set needs.
 * - data_fields_measure_blocks writes the moments of blocks first .. first + count - 1 to moments,
 *   FieldMoments[count][rows->count].
 * - data_fields_join computes means and deviations from the moments of all blocks.
 * - data_fields_use copies means and deviations to the set.
 * - data_fields_measure does all four steps in one process.
 * Errors: ERR_IO; ERR_DATA: a value is infinite, or a variable has only missing values. */
void data_fields_list_stats(const DataSet *set, FieldStats *rows);
/* Returns the number of the set's variables that have rows. These are its inputs, and its targets
 * unless the targets are classes. */
int data_fields_measured(const DataSet *set);
/* Returns the number of blocks of frames. */
int64_t data_fields_blocks(const DataSet *set);
Status data_fields_measure_blocks(const DataSet *set, const FieldStats *rows, int threads,
                                  int64_t first, int64_t count, FieldMoments *moments);
void data_fields_join(FieldStats *stats, const FieldMoments *moments, int64_t blocks);
Status data_fields_use(DataSet *set, const FieldStats *stats);
Status data_fields_measure(DataSet *set, int threads);
/* data_fields_stats_save writes the file of data.stats, and replaces an existing one.
 * data_fields_stats_load reads it, and sets *stats to the rows that the set needs. ERR_IO,
 * ERR_NOINPUT. ERR_CONFIG: the file is no valid YAML. ERR_DATA: a row is missing, or units
 * differ. */
Status data_fields_stats_save(const DataSet *set, const FieldStats *stats, const char *path);
Status data_fields_stats_load(const DataSet *set, FieldStats *stats, const char *path);
/* Sets the mean and deviation of the inputs and targets of a rollout's later steps to those of the
 * same fields in the first step. */
void data_fields_share_stats(DataSet *set);

#endif
