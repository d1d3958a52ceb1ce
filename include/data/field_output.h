/* Writes predicted fields to a NetCDF-4 file: the targets of a set of fields, with the coordinates,
 * units and times of the set's files. */
#ifndef WEFT_DATA_FIELD_OUTPUT_H
#define WEFT_DATA_FIELD_OUTPUT_H

#include "data/field_read.h"

typedef struct FieldOutput FieldOutput;
typedef struct FieldOutputPlan {
    /* samples must be whole fields; borrowed until the output is freed */
    const DataSet *set;
    /* path of the file, borrowed for the call */
    const char *path;
    /* true: an existing file is replaced; false: it is ERR_USAGE */
    bool force;
    /* true: also write the truth, as variables NAME_truth */
    bool truth;
    /* number of samples that will be written */
    int64_t samples;
    /* leads: number of leads, the times for which each sample has fields. channels: number of
     * targets at one lead; they are the first targets of the set. */
    int leads, channels;
    /* [leads]: offset of each lead from the sample's time, in frames; borrowed for the call */
    const int64_t *lead;
    /* label fields: names of the classes, separated by spaces; NULL: classes have no names;
     * borrowed for the call */
    const char *meanings;
    /* attributes title and source of the file; borrowed for the call */
    const char *title, *source;
} FieldOutputPlan;
/* Lays out the file as path.part. With one lead, the time of a field is the time that is predicted;
 * with several leads, it is the time of the sample, and fields have a dimension lead. ERR_USAGE:
 * the file exists, and FieldOutputPlan.force is false; ERR_IO, ERR_DATA. Nothing needs to be
 * released if it fails. */
Status field_output_new(FieldOutput **output, const FieldOutputPlan *plan);
/* Writes a sample of the set as the next sample of the file. predicted, truth: (leads, channels, H,
 * W) in the variables' units, or numbers of classes, NaN: missing. truth is read only if
 * FieldOutputPlan.truth is set. Classes are written as integers, -1: missing. */
Status field_output_put(FieldOutput *output, int64_t sample, const float *predicted,
                        const float *truth);
/* field_output_finish completes the file and renames it to path. field_output_drop removes what has
 * been written; *output may be NULL. Both free the output. */
Status field_output_finish(FieldOutput **output);
void field_output_drop(FieldOutput **output);

#endif
