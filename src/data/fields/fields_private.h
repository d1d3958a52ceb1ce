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
/* Returns the index of the file that holds a frame. */
int field_find_file(const FieldSet *f, int64_t frame);

/* Reads samples of a set of fields. Several threads may read with one reader. */
typedef struct FieldReader FieldReader;
Status field_reader_new(FieldReader **reader, const DataSet *set);
void field_reader_free(FieldReader **reader);
/* Reads one sample: x (C,H,W) and targets (C',H',W'), either may be NULL. normalised: by the set's
 * means and deviations, missing inputs become 0 (the mean) and missing targets NaN; else values in
 * the variables' units, missing ones NaN. NaN in a file means missing, too. ERR_IO; ERR_DATA: a
 * value is infinite. */
Status field_read(FieldReader *reader, int64_t sample, bool normalised, float *x, float *target);

/* Adds the content of a set to a hash: channels, times, and the values of samples that are spread
 * evenly. ERR_IO, ERR_DATA. */
Status field_hash(XXH3_state_t *state, const DataSet *set);
/* Sets *layout to a hash of the addresses of a file's arrays, and the offsets of the set's arrays
 * to those that the file has now. */
Status field_hash_layout(DataSet *set, int file, uint64_t *layout);

#endif
