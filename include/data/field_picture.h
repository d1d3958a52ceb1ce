/* Pictures of the fields of a sample. */
#ifndef WEFT_DATA_FIELD_PICTURE_H
#define WEFT_DATA_FIELD_PICTURE_H

#include "data/field_read.h"
#include "image/field_sheet.h"

/* One target of a sample; everything is borrowed. */
typedef struct FieldPicture {
    const DataSet *set;
    /* index of the target in FieldSet.target */
    int target;
    const char *title;
    /* (rows, columns), in the variables' units; predicted and true labels as numbers of classes;
     * NaN: missing. input and truth may be NULL: the panel is empty */
    const float *input, *predicted, *truth;
    /* labels: names of all classes; NULL: numbers */
    const char *const *class_name;
} FieldPicture;
/* Draws four panels: input, prediction, truth, and prediction - truth; for labels the last panel is
 * the prediction where it is wrong. */
void field_picture_draw(Image *image, const FieldPicture *picture);

/* Sets the sheet's size to that of the set's targets, and flips it if the coordinate of rows rises,
 * so that south, or the lowest coordinate, is at the bottom. */
void field_sheet_fit(FieldSheet *sheet, const DataSet *set);
/* Writes prediction - truth to `to`, and extends a range, which is symmetrical about 0, to these
 * differences. */
void field_subtract(const float *predicted, const float *truth, int64_t count, float *to,
                    ColourRange *range);
/* Does a field have any values? False: all are missing, or field is NULL. */
bool field_has_values(const float *field, int64_t count);
/* Returns the input channel that pictures of labels show: of the channels at the last offset, the
 * first that is a field of the files and not static; -1: there is none, or targets have another
 * size. */
int field_shown_input(const DataSet *set);

#endif
