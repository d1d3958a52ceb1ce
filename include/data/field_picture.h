/* Pictures of the fields of a sample. */
#ifndef WEFT_DATA_FIELD_PICTURE_H
#define WEFT_DATA_FIELD_PICTURE_H

#include "data/field_read.h"
#include "image/field_sheet.h"

/* A target of a sample to draw; everything is borrowed. */
typedef struct FieldPicture {
    const DataSet *set;
    /* index of the target in FieldSet.target */
    int target;
    const char *title;
    /* input, predicted, truth: values of the last input, of the prediction and of the truth, (rows,
     * columns), in the variables' units; labels as numbers of classes; NaN: the value is missing.
     * If input or truth is NULL, its panel stays empty. */
    const float *input, *predicted, *truth;
    /* label fields: names of all classes; NULL: the numbers are shown */
    const char *const *class_name;
} FieldPicture;
/* Draws four panels: input, prediction, truth, and prediction - truth. For labels the last panel is
 * the prediction at the pixels where it is wrong. */
void field_picture_draw(Image *image, const FieldPicture *picture);

/* Sets the sheet's rows and columns to the size of the set's targets. Sets its `flip` if the
 * coordinate of rows rises, so that south, or the lowest coordinate, is at the bottom. */
void field_sheet_fit(FieldSheet *sheet, const DataSet *set);
/* Writes predicted - truth to `to`, and extends a range, which is symmetrical about 0, so that it
 * contains these differences. */
void field_subtract(const float *predicted, const float *truth, int64_t count, float *to,
                    ColourRange *range);
/* Returns true if a field has a value; false if all values are missing or field is NULL. */
bool field_has_values(const float *field, int64_t count);
/* Returns the input channel that pictures of labels show: the first channel at the last offset that
 * is a variable of the files with rows and columns and is not static. Returns -1 if there is none,
 * or if targets have another size than inputs. */
int field_shown_input(const DataSet *set);

#endif
