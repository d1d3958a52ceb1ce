/* Pictures of fields: panels with a colour for each value, and below each panel a colour bar with
 * numbers and a unit. */
#ifndef WEFT_IMAGE_FIELD_SHEET_H
#define WEFT_IMAGE_FIELD_SHEET_H

#include "image/paint.h"

/* The smallest and the largest value of a colour map. diverging, true: colours from blue through
 * white, in the middle, to red; false: from dark violet through green to yellow, with rising
 * lightness. */
typedef struct ColourRange {
    double low, high;
    bool diverging;
    /* above 0: values are classes 0 to categories - 1, or -1, which is drawn white. Classes 8 to 15
     * have the colours of classes 0 to 7, but darker, and classes 16 to 23 darker again; class 24
     * has the colour of class 0. */
    int categories;
} ColourRange;
/* Returns the colour of a value; values outside of the range get the colour of its end, NaN a
 * grey. */
Colour colour_of(const ColourRange *range, double value);
/* Extends the range so that it contains all finite values. A range with low > high is empty. */
void colour_range_add(ColourRange *range, const float *value, int64_t count);

/* One panel; everything is borrowed. */
typedef struct FieldPanel {
    const char *title;
    /* values (rows,columns), NaN where they are missing; value NULL: the panel's place stays
     * empty */
    const float *value;
    ColourRange range;
} FieldPanel;
typedef struct FieldSheet {
    const char *title, *units;
    int rows, columns;
    /* true: the first row is drawn at the bottom, because rows are latitudes from south to north */
    bool flip;
    /* `panels` panels, of which `across` are drawn side by side */
    const FieldPanel *panel;
    int panels, across;
    /* names of the categories for panels with ColourRange.categories; NULL: their numbers */
    const char *const *category;
} FieldSheet;
/* Draws a sheet, and sets the image's size to that of the sheet. In a small grid each value becomes
 * several pixels; of a large grid only every n-th row and column is drawn. */
void field_sheet_draw(Image *image, const FieldSheet *sheet);

#endif
