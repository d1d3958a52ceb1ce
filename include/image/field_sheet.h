/* Draws pictures of fields: panels with a colour for each value. Below a panel of numbers is a
 * colour bar with numbers and a unit; below a panel of classes are boxes with the names of the
 * classes. Not collective. */
#ifndef WEFT_IMAGE_FIELD_SHEET_H
#define WEFT_IMAGE_FIELD_SHEET_H

#include "image/paint.h"

/* A colour map. */
typedef struct ColourRange {
    /* smallest and largest value */
    double low, high;
    /* true: colours go from blue through white, in the middle, to red; false: from dark violet
     * through green to yellow, with rising lightness */
    bool diverging;
    /* number of classes; 0: values are numbers, not classes. -1 (no class) and smaller values are
     * drawn white, and values from INT_MAX on, which are no classes, grey. Classes 8 to 15 have the
     * colours of classes 0 to 7, but darker, and classes 16 to 23 are darker again; class 24 has
     * the colour of class 0. */
    int categories;
} ColourRange;
/* Returns the colour of a value. NaN is grey. A number outside of the range has the colour of its
 * nearer end. If `low` equals `high`, all numbers have the colour in the middle. The colour of a
 * class does not depend on the range. */
Colour colour_of(const ColourRange *range, double value);
/* Extends the range so that it contains all finite values of value[0 .. count - 1]. A range with
 * low > high is empty. */
void colour_range_add(ColourRange *range, const float *value, int64_t count);

/* One panel of a sheet; everything is borrowed. */
typedef struct FieldPanel {
    const char *title;
    /* values, [FieldSheet.rows][FieldSheet.columns]; a missing value is NaN. NULL: the panel's
     * place stays empty. */
    const float *value;
    ColourRange range;
} FieldPanel;
/* A picture that consists of panels; everything is borrowed. */
typedef struct FieldSheet {
    const char *title, *units;
    /* size of the field in each panel */
    int rows, columns;
    /* true: the first row of a panel is drawn at the bottom, because rows are latitudes from south
     * to north */
    bool flip;
    /* panel: the panels, [panels]; across: number of panels in a row of the sheet */
    const FieldPanel *panel;
    int panels, across;
    /* names of the classes for panels with ColourRange.categories; NULL: their numbers are shown */
    const char *const *category;
} FieldSheet;
/* Draws a sheet, and sets the image to the sheet's size. If a field has few columns, each value is
 * drawn as several pixels. If it has many columns, only every n-th row and column is drawn. */
void field_sheet_draw(Image *image, const FieldSheet *sheet);

#endif
