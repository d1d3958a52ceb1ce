/* Declares functions for sets of fields that several files of the data module use. A comment that
 * begins with the name of a file says where the functions after it are defined. */
#ifndef WEFT_DATA_FIELDS_PRIVATE_H
#define WEFT_DATA_FIELDS_PRIVATE_H

#include "../data_private.h"
#include "data/field_read.h"

#include <xxhash.h>

/* field_set.c. Returns "time", "level", "rows" or "columns" for a FieldDim. */
const char *field_dim_name(int dim);
/* Opens `paths`, a path or pattern per line, as one set of the variables in data.variables. Reads
 * metadata and coordinates. If there are several files, also reads the values of variables that are
 * static or have no time, to compare the files. Does not compute means and deviations. ERR_DATA,
 * ERR_CONFIG, ERR_NOINPUT, ERR_IO. */
Status field_set_open(DataSet *set, const Config *config, const char *paths);
/* field_paths.c. A list of paths; owns its arrays. */
typedef struct FieldPaths {
    char **path;
    /* number of paths */
    int count;
    /* capacity of `path` */
    int room;
} FieldPaths;
/* Lists the files that `paths`, a path or pattern per line, names or matches. key: the
 * configuration key of `paths`, for messages, or NULL. Release with field_paths_free, also after an
 * error. ERR_CONFIG: there are too many files; ERR_NOINPUT: a pattern matches no file, or a path is
 * too long. */
Status field_paths_find(FieldPaths *list, const char *paths, const char *key);
void field_paths_free(FieldPaths *list);
/* field_set.c. Checks that the file `path` can be opened and has all variables. ERR_CONFIG,
 * ERR_DATA, ERR_NOINPUT, ERR_IO. */
Status field_file_check(const Config *config, const char *path);
/* Checks that two files can be members of one set. ERR_DATA: the file `path` differs from the file
 * `first`, or is damaged; ERR_CONFIG, ERR_NOINPUT, ERR_IO. */
Status field_files_compare(const Config *config, const char *first, const char *path);
/* field_block.c. While a set is being opened, FieldSet.file, array, text and segment are four
 * allocations. field_block_make joins them into one block; field_block_drop_parts frees them
 * instead. */
void field_block_make(FieldSet *f);
void field_block_drop_parts(FieldSet *f);
/* field_samples.c. Finds the segments, converts the offsets of data.window to frames, and numbers
 * the samples. times: times of all frames, in seconds; NULL: frames have no times. ERR_CONFIG;
 * ERR_DATA: there is no sample, or times have too many gaps. */
Status field_samples_find(DataSet *set, const Config *config, const double *times);
/* field_set.c. Sets the height and width of the inputs and of the targets of a sample, and the
 * sizes that follow from them. */
void field_set_sizes(DataSet *set, int64_t height, int64_t width, int64_t target_height,
                     int64_t target_width);
/* field_rollout.c. Appends to f->offset[FIELD_TARGET] the target's offset of each step of
 * train.rollout after the first. ERR_CONFIG. */
Status field_rollout_offsets(FieldSet *f, const Config *config);
/* Adds the inputs that later steps read from the data. The channels of the first step are listed
 * before. ERR_CONFIG. */
Status field_rollout_inputs(FieldSet *f, const Config *config);
/* field_labels.c. A label field is a target whose pixels have classes. If data.variables has one,
 * checks that no configuration key excludes it, such as data.predict, train.rollout or data.mask.
 * ERR_CONFIG. */
Status field_labels_check(const Config *config);
/* If there is a label field, sets the number of classes and the value that means "no label". The
 * channels are listed before; field_labels_name sets the names of the classes. ERR_CONFIG. */
Status field_labels_set(DataSet *set, const Config *config);
/* field_extra.c. An extra variable is one that weft computes from coordinates and times
 * (FieldVariable.extra_kind is above 0); its levels are extra channels. Returns the FieldExtra with
 * this name, or -1. */
int field_extra_find(const char *name);
/* Fills in an extra variable, except its size. ERR_CONFIG: there is no such kind, or the entry
 * selects levels. */
Status field_extra_init(FieldVariable *v, const Config *config, const ConfigVariable *entry);
/* Sets the size of each extra variable to the size of the inputs. ERR_DATA: the set lacks the times
 * or the coordinate that an extra variable needs. */
Status field_extra_check(DataSet *set);
/* Computes an extra variable at one time and writes it to `plane`, (levels, rows, columns). time:
 * as field_frame_time returns it. */
void field_extra_fill(const FieldSet *f, const FieldVariable *v, double time, double *plane);
/* Returns the prefix of the name of an extra channel: "sin ", "cos " or "". */
const char *field_extra_part(const FieldVariable *v, int level);
/* field_meaning.c. Lists what the numbers of a set mean in DataSet.columns. */
void field_meaning_list(DataSet *set, const Config *config);
/* Compares what the numbers of two sets mean (data_fields_differ), and logs the first fact that is
 * known in only one of them. ERR_DATA: a fact differs. */
Status field_meaning_check(const DataSet *set, const DataSet *like);
/* field_weights.c. Sets the weights in losses of targets `first` to end - 1, one for each level of
 * `entry`. ERR_CONFIG. */
Status field_weights_set(FieldSet *f, const Config *config, const ConfigVariable *entry, int first,
                         int end);
/* Checks train.latitude_weights and data.mask, and sets f->latitude_weights. The coordinate of rows
 * and the mask are found before. height, width: size of the targets. ERR_CONFIG. */
Status field_weights_check(FieldSet *f, const Config *config, int64_t height, int64_t width);
/* Returns the number of frames of all files together. */
static inline int64_t field_frames(const FieldSet *f)
{
    return f->file[f->files - 1].first_frame + f->file[f->files - 1].frames;
}
/* field_set.c. Returns the index of the file that has a frame. */
int field_find_file(const FieldSet *f, int64_t frame);
/* field_forecast.c. Returns the coordinate of a selected level or, if levels have no coordinate,
 * the level's index in the files. selected: index among the selected levels
 * (FieldVariable.level_index). */
double field_level(const FieldVariable *v, int selected);
/* field_print.c. field_print_text prints a description of the set; field_print_json adds it, as
 * keys, to an open JSON object. */
void field_print_text(const DataSet *set, FILE *out);
void field_print_json(const DataSet *set, Json *json);
/* field_check.c. Reads all frames of all variables. Warns of gaps, times that fall or repeat,
 * missing values, constant variables and values beyond the range of float32, and counts the labels
 * of each class. ERR_IO; ERR_DATA: a value is infinite, a label is not one of the classes, a level
 * of a variable has only missing values, or no pixel has a label. */
Status field_check(const DataSet *set);

/* field_hash.c. Adds the content of a set to a hash: channels, times, classes, statistics of the
 * targets, and the values of samples that are spread evenly over the set. ERR_IO, ERR_DATA. */
Status field_hash(XXH3_state_t *state, const DataSet *set);
/* Sets *layout to a hash of how a file's arrays are stored (h5_layout_hash). Also replaces the
 * offsets of the contiguous arrays of this file in the set by those that the file has now.
 * ERR_NOINPUT, ERR_DATA. */
Status field_refresh_layout(DataSet *set, int file, uint64_t *layout);

#endif
