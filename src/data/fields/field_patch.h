/* Patches: which rows and columns of the fields a sample has. */
#ifndef WEFT_DATA_FIELD_PATCH_H
#define WEFT_DATA_FIELD_PATCH_H

#include "field_slab.h"

/* The place of a sample: its frame, and its rows and columns of inputs and of targets. The first
 * rows_before rows and columns_before columns of a tile's targets belong to the tiles before it. */
typedef struct FieldPlace {
    int64_t frame;
    FieldWindow input, target;
    int64_t rows_before, columns_before;
} FieldPlace;
/* Returns the place of a sample; that of a patch in training depends on the epoch. */
FieldPlace field_place(const FieldSet *f, int64_t epoch, int64_t sample);
/* Does the same as field_read_variable for a window of rows and columns. */
Status field_read_window(FieldReader *reader, int variable, int64_t frame,
                         const FieldWindow *window, double *plane);
/* Sets the targets that belong to other tiles to NaN (missing). plane: (rows,columns) of the
 * place. */
void field_patch_leave_out(const FieldPlace *place, double *plane);

#endif
