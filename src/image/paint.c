/* Fills rectangles of pictures, and writes texts with the font of font.c. */
#include "image/paint.h"

#include <string.h>

void paint_fill(Image *image, int x, int y, int width, int height, Colour colour)
{
    int left = x < 0 ? 0 : x, right = x + width > image->width ? image->width : x + width;
    int top = y < 0 ? 0 : y, bottom = y + height > image->height ? image->height : y + height;
    for (int i = top; i < bottom; ++i)
        for (int k = left; k < right; ++k)
            memcpy(image->pixel + 3 * ((size_t)i * (size_t)image->width + (size_t)k), colour.rgb,
                   3);
}

void paint_text(Image *image, const char *text, int x, int y, int scale, Colour colour)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        for (int i = 0; i < FONT_WIDTH * FONT_HEIGHT; ++i) {
            int column = i % FONT_WIDTH, row = i / FONT_WIDTH;
            if (font_has_pixel(*c, column, row))
                paint_fill(image, x + column * scale, y + row * scale, scale, scale, colour);
        }
        x += (FONT_WIDTH + 1) * scale;
        int bytes = utf8_bytes(c);
        c += bytes > 0 ? bytes : 1;
    }
}

int paint_text_width(const char *text, int scale)
{
    int characters = 0;
    for (const unsigned char *c = (const unsigned char *)text; *c; ++characters) {
        int bytes = utf8_bytes(c);
        c += bytes > 0 ? bytes : 1;
    }
    return characters * (FONT_WIDTH + 1) * scale;
}
