/* Draws rectangles and texts in pictures. Not collective. */
#ifndef WEFT_IMAGE_PAINT_H
#define WEFT_IMAGE_PAINT_H

#include "image.h"

typedef struct Colour {
    uint8_t rgb[3];
} Colour;

/* Fills a rectangle with a colour, as far as it is inside of the picture. */
void paint_fill(Image *image, int x, int y, int width, int height, Colour colour);

/* pixels of a character of the font */
enum { FONT_WIDTH = 5, FONT_HEIGHT = 7 };
/* Returns true if the glyph of a character covers the font pixel in column x and row y. */
bool font_has_pixel(unsigned char character, int x, int y);
/* Writes a text with its top left corner at (x, y). Each pixel of the font becomes scale x scale
 * pixels of the picture. Every character is FONT_WIDTH + 1 font pixels wide; characters outside
 * ASCII are drawn as boxes. */
void paint_text(Image *image, const char *text, int x, int y, int scale, Colour colour);
/* Returns the width of a text that paint_text writes, in pixels, including the gap after its last
 * character. */
int paint_text_width(const char *text, int scale);

#endif
