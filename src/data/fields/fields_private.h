/* Functions for sets of fields that files of the data module share. A comment that begins with the
 * name of a file says where the functions after it are defined. */
#ifndef WEFT_DATA_FIELDS_PRIVATE_H
#define WEFT_DATA_FIELDS_PRIVATE_H

#include "../data_private.h"
#include "data/field_read.h"

#include <xxhash.h>

/* field_set.c. Returns "time", "level", "rows" or "columns" for a FieldDim. */
const char *field_dim_name(int dim);
/* Opens paths, separated by line breaks, as one set of the variables in data.variables. Reads only
 * metadata, coordinates and, if there are several files, static variables and variables without
 * time; mean and deviation stay unknown. ERR_DATA, ERR_CONFIG, ERR_NOINPUT, ERR_IO. */
Status field_set_open(DataSet *set, const Config *config, const char *paths);
/* field_paths.c. Paths of files, owned. field_paths_find finds the files that `paths`, separated by
 * line breaks, names or matches by patterns. key: the configuration key of `paths`, for messages,
 * or NULL. Release with field_paths_free, also after an error. ERR_CONFIG: too many; ERR_NOINPUT:
 * no file matches. */
typedef struct FieldPaths {
    char **path;
    int count, room;
} FieldPaths;
Status field_paths_find(FieldPaths *list, const char *paths, const char *key);
void field_paths_free(FieldPaths *list);
/* field_set.c. Checks that a file can be opened and has all variables. ERR_DATA, ERR_NOINPUT,
 * ERR_IO. */
Status field_file_check(const Config *config, const char *path);
/* Checks that two files can be members of one set. ERR_DATA: path is unlike first, or damaged;
 * ERR_NOINPUT, ERR_IO. */
Status field_files_compare(const Config *config, const char *first, const char *path);
/* field_block.c. While a set is opened, its files, arrays, paths and segments are separate arrays.
 * field_block_make joins them into one block; field_block_drop_parts frees them instead. */
void field_block_make(FieldSet *f);
void field_block_drop_parts(FieldSet *f);
/* field_samples.c. Finds segments, the offsets of data.window in frames, and samples. times: of all
 * frames, in seconds; NULL: frames have no times. ERR_CONFIG; ERR_DATA: there is no sample, or
 * times have too many gaps. */
Status field_samples_find(DataSet *set, const Config *config, const double *times);
/* field_set.c. Sets the sizes of inputs and targets of a sample. */
void data_set_size_fields(DataSet *set, int64_t height, int64_t width, int64_t target_height,
                          int64_t target_width);
/* field_rollout.c. field_rollout_offsets adds the offsets of the targets of train.rollout's steps.
 * When the channels of the first step are known, field_rollout_inputs adds the inputs that later
 * steps read from the data. ERR_CONFIG. */
Status field_rollout_offsets(FieldSet *f, const Config *config);
Status field_rollout_inputs(FieldSet *f, const Config *config);
/* field_labels.c. field_labels_check checks that the other keys are possible with a target that has
 * labels. When the channels are known, field_labels_set sets the number of the set's classes and
 * the value that means no label; the names are set by field_labels_name. ERR_CONFIG. */
Status field_labels_check(const Config *config);
Status field_labels_set(DataSet *set, const Config *config);
/* field_extra.c. Returns the kind of extra channels (FieldExtra) with this name, or -1. */
int field_extra_find(const char *name);
/* Describes a variable that weft makes, except its size. ERR_CONFIG: there is no such kind, or
 * the entry selects levels. */
Status field_extra_init(FieldVariable *v, const Config *config, const ConfigVariable *entry);
/* Gives all variables that weft makes the size of the inputs. ERR_DATA: the set lacks the times or
 * the coordinate that one of them needs. */
Status field_extra_check(DataSet *set);
/* Writes the planes of a variable that weft makes, (levels, rows, columns), at a time as
 * field_frame_time returns it. */
void field_extra_fill(const FieldSet *f, const FieldVariable *v, double time, double *plane);
/* Returns the beginning of a channel's name, before the variable's name: "sin ", "cos " or "". */
const char *field_extra_part(const FieldVariable *v, int level);
/* field_units.c. field_units_list lists the units of a set's variables in DataSet.columns.
 * field_units_check compares the units of two sets, and logs units that only one of them has.
 * ERR_DATA: units differ. */
void field_units_list(DataSet *set);
Status field_units_check(const DataSet *set, const DataSet *like);
/* field_weights.c. field_weights_set sets the weights in losses of targets first to end - 1, which
 * are the levels of an entry of data.variables. When rows and the mask are known,
 * field_weights_check checks that they fit the keys, and sets f->latitude_weights. height, width:
 * size of the targets. ERR_CONFIG. */
Status field_weights_set(FieldSet *f, const Config *config, const ConfigVariable *entry, int first,
                         int end);
Status field_weights_check(FieldSet *f, const Config *config, int64_t height, int64_t width);
/* Returns the number of frames of all files. */
static inline int64_t field_frames(const FieldSet *f)
{
    return f->file[f->files - 1].first + f->file[f->files - 1].frames;
}
/* field_set.c. Returns the index of the file that holds a frame. */
int field_find_file(const FieldSet *f, int64_t frame);
/* field_forecast.c. Returns the coordinate of a variable's selected level; if levels have none, the
 * level's index in the files. */
double field_level(const FieldVariable *v, int level);
/* field_print.c. Print the set: as text, or as keys of an open JSON object. */
void field_print_text(const DataSet *set, FILE *out);
void field_print_json(const DataSet *set, Json *json);
/* field_check.c. Reads all frames of all variables. Warns of gaps, times that fall or repeat,
 * missing values, constant variables and values beyond the range of float32, and counts the labels
 * of each class. ERR_IO; ERR_DATA: a value is infinite or no class, a level of a variable has only
 * missing values, or no pixel has a label. */
Status field_check(const DataSet *set);

/* field_hash.c. Adds the content of a set to a hash: channels, times, classes, statistics of the
 * targets, and the values of samples that are spread evenly. ERR_IO, ERR_DATA. */
Status field_hash(XXH3_state_t *state, const DataSet *set);
/* Sets *layout to a hash of how a file's arrays are stored (h5_layout_hash), and sets the offsets
 * of the set's contiguous arrays in this file to the present ones. ERR_NOINPUT, ERR_DATA. */
Status field_hash_layout(DataSet *set, int file, uint64_t *layout);

#endif
