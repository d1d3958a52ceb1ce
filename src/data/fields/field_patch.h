/* Finds the place of a sample: which rows and columns of the fields it has (patches,
 * data.patch). */
#ifndef WEFT_DATA_FIELD_PATCH_H
#define WEFT_DATA_FIELD_PATCH_H

#include "field_slab.h"

/* The place of a sample. */
typedef struct FieldPlace {
    /* frame at the sample's own time, to which the offsets of data.window are added */
    int64_t frame;
    /* rows and columns of the inputs, and of the targets */
    FieldRect input, target;
    /* numbers of rows and of columns, at the beginning of a tile's targets, that belong to tiles
     * before it; 0 if samples are not tiles */
    int64_t rows_before, columns_before;
} FieldPlace;
/* Returns the place of a sample. In training, the place of a patch depends on the epoch. */
FieldPlace field_place(const FieldSet *f, int64_t epoch, int64_t sample);
/* field_reader.c. Does the same as field_read_variable for a window of rows and columns. */
Status field_read_window(FieldReader *reader, int variable, int64_t frame, const FieldRect *window,
                         double *plane);
/* Sets the targets of a tile that belong to tiles before it to NaN (missing). plane: one target
 * channel at this place, (rows, columns). */
void field_patch_leave_out(const FieldPlace *place, double *plane);

#endif
