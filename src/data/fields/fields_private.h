/* Functions that files of the data module share about sets of fields. */
#ifndef WEFT_DATA_FIELDS_PRIVATE_H
#define WEFT_DATA_FIELDS_PRIVATE_H

#include "../data_private.h"

#include <xxhash.h>

/* Returns "time", "level", "rows" or "columns". */
const char *field_dim_name(int dim);
/* Opens paths, separated by line breaks, as one set of the variables in data.variables. Reads only
 * metadata and coordinates; mean and deviation stay unknown. ERR_DATA, ERR_CONFIG, ERR_NOINPUT. */
Status field_set_open(DataSet *set, const Config *config, const char *paths);
/* Finds segments and samples from the times of all frames, in seconds; NULL: frames have none. */
Status field_samples_find(DataSet *set, const Config *config, const double *times);
/* Returns the frame of a sample at its own time. */
int64_t field_sample_frame(const FieldSet *f, int64_t sample);
/* Returns the index of the file that holds a frame, and of its segment. */
int field_find_file(const FieldSet *f, int64_t frame);
int field_find_segment(const FieldSet *f, int64_t frame);
/* Returns the time of a frame, in seconds since 1970-01-01 of the calendar; its number if frames
 * have no times. */
double field_frame_time(const FieldSet *f, int64_t frame);
/* Write a time of field_frame_time, "2001-01-31 06:00:00", and a distance of frames in time,
 * "-6h"; returns text. */
enum { FIELD_TIME_TEXT = 40 };
const char *field_time_text(const FieldSet *f, double time, char text[FIELD_TIME_TEXT]);
const char *field_offset_text(const FieldSet *f, int64_t frames, char text[FIELD_TIME_TEXT]);
/* Print the set: as text, or as keys of an open JSON object. */
void field_print_text(const DataSet *set, FILE *out);
void field_print_json(const DataSet *set, Json *json);
/* Reads all frames of all variables. Warns of gaps, times that fall or repeat, missing values,
 * constant variables and values beyond the range of float32. ERR_IO; ERR_DATA: a value is infinite,
 * or a variable has only missing values. */
Status field_check(const DataSet *set);

/* Reads samples of a set of fields. Several threads may read with one reader. */
typedef struct FieldReader FieldReader;
Status field_reader_new(FieldReader **reader, const DataSet *set);
void field_reader_free(FieldReader **reader);
/* Reads one sample: x (C,H,W) and targets (C',H',W'), either may be NULL. normalised: by the set's
 * means and deviations, missing inputs become 0 (the mean) and missing targets NaN; else values in
 * the variables' units, missing ones NaN. NaN in a file means missing, too. ERR_IO; ERR_DATA: a
 * value is infinite. */
Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target);
/* Reads all selected levels of a variable at a frame of the set, (levels, rows, columns), in double
 * precision, missing values as NaN. A static variable has one frame. ERR_IO, ERR_DATA. */
Status field_read_variable(FieldReader *reader, int variable, int64_t frame, double *plane);

/* Adds the content of a set to a hash: channels, times, and the values of samples that are spread
 * evenly. ERR_IO, ERR_DATA. */
Status field_hash(XXH3_state_t *state, const DataSet *set);
/* Sets *layout to a hash of the addresses of a file's arrays, and the offsets of the set's arrays
 * to those that the file has now. */
Status field_hash_layout(DataSet *set, int file, uint64_t *layout);

#endif
