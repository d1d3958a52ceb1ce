/* Writes predicted fields to a NetCDF-4 file: the targets of a set of fields, with the coordinates,
 * units and times of the set's files. */
#ifndef WEFT_DATA_FIELD_OUTPUT_H
#define WEFT_DATA_FIELD_OUTPUT_H

#include "data/field_read.h"

typedef struct FieldOutput FieldOutput;
typedef struct FieldOutputPlan {
    /* borrowed */
    const DataSet *set;
    /* path of the file; whether it replaces an existing one */
    const char *path;
    bool force;
    /* also write the truth, as variables NAME_truth */
    bool truth;
    /* number of samples; of fields in time for each, and their offsets from its time, in frames;
     * of targets at one offset, which are the first ones of the set; borrowed for the call */
    int64_t samples;
    int leads, channels;
    const int64_t *lead;
    /* label fields: names of the classes, separated by spaces; NULL: they have none; borrowed for
     * the call */
    const char *meanings;
    /* attributes title and source of the file; borrowed for the call */
    const char *title, *source;
} FieldOutputPlan;
/* Lays out the file, which gets its name in field_output_finish. With one lead a field's time is
 * its own; with several it is that of the sample, and there is a dimension lead. ERR_USAGE: the
 * file exists; ERR_IO, ERR_DATA. Nothing needs to be released if it fails. */
Status field_output_new(FieldOutput **output, const FieldOutputPlan *plan);
/* Writes the next sample, whose own time is that of a frame of the set. predicted, truth: (leads,
 * channels, H, W) in the variables' units, or numbers of classes, NaN: missing; truth is not read
 * unless it is written. Classes are written as integers, -1: missing. */
Status field_output_put(FieldOutput *output, int64_t sample, const float *predicted,
                        const float *truth);
/* Both free the output. field_output_drop removes what has been written; NULL is allowed. */
Status field_output_finish(FieldOutput **output);
void field_output_drop(FieldOutput **output);

#endif
