/* Pictures of the fields of a sample. */
#ifndef WEFT_DATA_FIELD_PICTURE_H
#define WEFT_DATA_FIELD_PICTURE_H

#include "data/field_read.h"
#include "image/field_sheet.h"

/* One target of a sample; everything is borrowed. */
typedef struct FieldPicture {
    const DataSet *set;
    /* number of the target */
    int target;
    const char *title;
    /* (rows, columns), in the variables' units, of labels the numbers of the classes; NaN: missing.
     * NULL: there is none */
    const float *input, *predicted, *truth;
    /* labels: names of all classes; NULL: numbers */
    const char *const *class_name;
} FieldPicture;
/* Draws four panels: input, prediction, truth, and prediction - truth, of labels the prediction
 * where it is wrong. */
void field_picture_draw(Image *image, const FieldPicture *picture);

/* Sets the sheet's size to that of the set's targets; south is at the bottom. */
void field_sheet_fit(FieldSheet *sheet, const DataSet *set);
/* Writes prediction - truth to `to`, and extends a range that is symmetrical about 0 by it. */
void field_subtract(const float *predicted, const float *truth, int64_t count, float *to,
                    ColourRange *range);
/* Does a field have a value that is not missing? */
bool field_has_values(const float *field, int64_t count);
/* Returns the input that stands for the inputs in pictures of labels: the first one at the last of
 * their times that is not static and is stored; -1: there is none, or targets have another size. */
int field_shown_input(const DataSet *set);

#endif
