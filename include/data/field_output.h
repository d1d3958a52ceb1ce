/* Writes predicted fields to a NetCDF-4 file: the targets of a set of fields, with the coordinates,
 * units and times of the set's files. */
#ifndef WEFT_DATA_FIELD_OUTPUT_H
#define WEFT_DATA_FIELD_OUTPUT_H

#include "data/field_read.h"

typedef struct FieldOutput FieldOutput;
/* Arguments of field_output_new. */
typedef struct FieldOutputPlan {
    /* the set, whose samples must be whole fields; borrowed until the output is freed */
    const DataSet *set;
    /* path of the file; borrowed for the call */
    const char *path;
    /* true: an existing file is replaced; false: an existing file is ERR_USAGE */
    bool force;
    /* true: the truth is written, too, as variables NAME_truth */
    bool writes_truth;
    /* number of samples that will be written */
    int64_t samples;
    /* leads: number of leads; a sample has predicted fields for each lead. channels: number of
     * targets at one lead; these are the first targets of the set */
    int leads, channels;
    /* offset of each lead from the sample's time, in frames, [leads]; borrowed for the call */
    const int64_t *lead;
    /* label fields: names of the classes, separated by spaces; borrowed for the call; NULL: the
     * classes have no names */
    const char *meanings;
    /* values of the file's attributes `title` and `source`; borrowed for the call */
    const char *title, *source;
} FieldOutputPlan;
/* Lays out the file as PATH.part. With one lead, the time of a field is the time that is predicted;
 * with several leads, it is the time of the sample, and fields have a dimension `lead`. ERR_USAGE:
 * the file exists, and FieldOutputPlan.force is false. ERR_IO: the file cannot be written.
 * ERR_DATA: a file of the set is damaged. After an error nothing needs to be released. */
Status field_output_new(FieldOutput **output, const FieldOutputPlan *plan);
/* Writes a sample of the set as the next sample of the file. predicted, truth: (leads, channels, H,
 * W) in the variables' units, or numbers of classes, NaN: the value is missing. truth is read only
 * if FieldOutputPlan.writes_truth is true. Classes are written as integers; -1: the class is
 * missing. */
Status field_output_put(FieldOutput *output, int64_t sample, const float *predicted,
                        const float *truth);
/* field_output_finish completes the file and renames it to the path of the plan. field_output_drop
 * removes PATH.part; *output may be NULL. Both free the output. */
Status field_output_finish(FieldOutput **output);
void field_output_drop(FieldOutput **output);

#endif
