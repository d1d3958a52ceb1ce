/* Patches: which rows and columns of the fields a sample has. */
#ifndef WEFT_DATA_FIELD_PATCH_H
#define WEFT_DATA_FIELD_PATCH_H

#include "field_slab.h"

/* Where a sample is: its frame, and rows and columns of inputs and of targets. Of a tile the first
 * rows and columns of the targets may belong to the tiles before it. */
typedef struct FieldPlace {
    int64_t frame;
    FieldWindow input, target;
    int64_t rows_before, columns_before;
} FieldPlace;
FieldPlace field_place(const FieldSet *f, int64_t epoch, int64_t sample);
/* Reads all selected levels of a variable at a frame in a window, as field_read_variable. */
Status field_read_window(FieldReader *reader, int variable, int64_t frame,
                         const FieldWindow *window, double *plane);
/* Makes the targets that belong to other tiles missing (NaN): plane is (rows, columns). */
void field_patch_leave_out(const FieldPlace *place, double *plane);

#endif
