/* Rectangles and texts in pictures. */
#ifndef WEFT_IMAGE_PAINT_H
#define WEFT_IMAGE_PAINT_H

#include "image.h"

typedef struct Colour {
    uint8_t rgb[3];
} Colour;

/* Fills the part of a rectangle that is inside of the picture. */
void paint_fill(Image *image, int x, int y, int width, int height, Colour colour);

enum { FONT_WIDTH = 5, FONT_HEIGHT = 7 };
/* Is this pixel of a character's glyph set? */
bool font_is_set(unsigned char character, int x, int y);
/* Writes a text with its top left corner at (x, y); a pixel of the font has `scale` pixels. A
 * character takes FONT_WIDTH + 1 of them; those beyond ASCII are boxes. */
void paint_text(Image *image, const char *text, int x, int y, int scale, Colour colour);
/* Returns the width of a text in pixels. */
int paint_text_width(const char *text, int scale);

#endif
