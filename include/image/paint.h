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
/* True if the glyph of a character has ink in column x and row y of the font. */
bool font_has_pixel(unsigned char character, int x, int y);
/* Writes a text with its top left corner at (x, y). Each font pixel becomes scale x scale pixels.
 * Every character is FONT_WIDTH + 1 font pixels wide; characters outside ASCII are drawn as
 * boxes. */
void paint_text(Image *image, const char *text, int x, int y, int scale, Colour colour);
/* Returns the width that paint_text gives a text, in pixels, with the gap after its last
 * character. */
int paint_text_width(const char *text, int scale);

#endif
