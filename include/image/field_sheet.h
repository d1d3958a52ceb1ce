/* Pictures of fields: panels with a colour for each value, a colour bar with numbers and a unit
 * below each of them. */
#ifndef WEFT_IMAGE_FIELD_SHEET_H
#define WEFT_IMAGE_FIELD_SHEET_H

#include "image/paint.h"

/* The least and the largest value of a colour map. diverging: from blue over white to red, with
 * white in the middle; else from dark violet over green to yellow, of rising lightness. */
typedef struct ColourRange {
    double low, high;
    bool diverging;
    /* above 0: values are classes, 0 to categories - 1, each with a colour of its own, and -1,
     * which is white; colours repeat, darker, after 8 */
    int categories;
} ColourRange;
/* Returns the colour of a value; values outside of the range get the colour of its end, NaN a
 * grey. */
Colour colour_of(const ColourRange *range, double value);
/* Extends the range by finite values; low > high: the range is empty. */
void colour_range_add(ColourRange *range, const float *value, int64_t count);

/* One panel; everything is borrowed. */
typedef struct FieldPanel {
    const char *title;
    /* (rows, columns); NaN: missing; NULL: the place stays empty */
    const float *value;
    ColourRange range;
} FieldPanel;
typedef struct FieldSheet {
    const char *title, *units;
    int rows, columns;
    /* the first row is drawn at the bottom: rows are latitudes from south to north */
    bool flip;
    /* panels, and how many stand side by side */
    const FieldPanel *panel;
    int panels, across;
    /* names of the categories; NULL: their numbers */
    const char *const *category;
} FieldSheet;
/* Draws a sheet; a value becomes several pixels if the grid is small, and if it is large, only some
 * values are drawn. */
void field_sheet_draw(Image *image, const FieldSheet *sheet);

#endif
