/* Draws detections into a picture: a frame in the colour of the class, and its name and score on a
 * strip of that colour. Lines and letters grow with the picture. */
#include "draw.h"

#include <math.h>
#include <string.h>

/* pixels of the longer side for each pixel of thickness of a line */
enum { PIXELS_PER_LINE = 300, LABEL_BYTES = 128 };

typedef struct Colour {
    uint8_t rgb[3];
} Colour;

/* Returns the colour of a class: hues that differ by the golden ratio, and so never repeat. */
static Colour class_colour(int32_t class)
{
    Colour c;
    double hue = fmod(0.05 + class * 0.6180339887498949, 1) * 6;
    for (int i = 0; i < 3; ++i) {
        /* distance on the circle of hues from this primary colour */
        double apart = fabs(fmod(hue - 2 * i + 9, 6) - 3);
        double part = apart < 1 ? 1 : apart > 2 ? 0 : 2 - apart;
        c.rgb[i] = (uint8_t)(55 + 200 * part);
    }
    return c;
}

/* Returns black or white, whichever is seen better on a colour. */
static Colour text_colour(Colour on)
{
    int luma = 299 * on.rgb[0] + 587 * on.rgb[1] + 114 * on.rgb[2];
    return luma > 128000 ? (Colour){{0, 0, 0}} : (Colour){{255, 255, 255}};
}

/* Fills the part of a rectangle that is inside of the picture. */
static void fill(Image *image, int x, int y, int width, int height, Colour colour)
{
    int left = x < 0 ? 0 : x, right = x + width > image->width ? image->width : x + width;
    int top = y < 0 ? 0 : y, bottom = y + height > image->height ? image->height : y + height;
    for (int i = top; i < bottom; ++i)
        for (int k = left; k < right; ++k)
            memcpy(image->pixel + 3 * ((size_t)i * (size_t)image->width + (size_t)k), colour.rgb,
                   3);
}

/* Writes a text with its top left corner at (x, y); a pixel of the font has `scale` pixels. */
static void draw_text(Image *image, const char *text, int x, int y, int scale, Colour colour)
{
    for (const unsigned char *c = (const unsigned char *)text; *c;) {
        for (int i = 0; i < FONT_WIDTH * FONT_HEIGHT; ++i) {
            int column = i % FONT_WIDTH, row = i / FONT_WIDTH;
            if (font_is_set(*c, column, row))
                fill(image, x + column * scale, y + row * scale, scale, scale, colour);
        }
        x += (FONT_WIDTH + 1) * scale;
        int bytes = utf8_bytes(c);
        c += bytes > 0 ? bytes : 1;
    }
}

/* Returns a number that is near the picture as a pixel; NaN becomes 0. */
static int to_pixel(double value, int side)
{
    if (!(value > -side)) return value <= -side ? -side : 0;
    return value > 2.0 * side ? 2 * side : (int)lround(value);
}

static void draw_box(Image *image, const DetectedBox *box, const char *name, int line)
{
    Colour colour = class_colour(box->category);
    int x = to_pixel(box->box[0], image->width), y = to_pixel(box->box[1], image->height);
    int right = to_pixel(box->box[0] + box->box[2], image->width);
    int bottom = to_pixel(box->box[1] + box->box[3], image->height);
    int width = right - x, height = bottom - y;
    fill(image, x, y, width, line, colour);
    fill(image, x, bottom - line, width, line, colour);
    fill(image, x, y, line, height, colour);
    fill(image, right - line, y, line, height, colour);
    char text[LABEL_BYTES];
    snprintf(text, sizeof text, "%.100s %.2f", name, box->score);
    int letters = utf8_columns(text), strip_height = (FONT_HEIGHT + 2) * line;
    int strip_width = ((FONT_WIDTH + 1) * letters + 1) * line;
    /* above the box, or inside of it at the picture's edge */
    if (x + strip_width > image->width) x = image->width - strip_width;
    if (x < 0) x = 0;
    y = y >= strip_height ? y - strip_height : y < 0 ? 0 : y;
    fill(image, x, y, strip_width, strip_height, colour);
    draw_text(image, text, x + line, y + line, line, text_colour(colour));
}

void detect_draw(Image *image, const DetectedBox *box, int64_t count, const char *const *name,
                 int64_t names)
{
    int longer = image->width > image->height ? image->width : image->height;
    int line = longer < 2 * PIXELS_PER_LINE ? 1 : longer / PIXELS_PER_LINE;
    /* the best, which are the first, on top */
    for (int64_t i = count - 1; i >= 0; --i) {
        char number[24];
        snprintf(number, sizeof number, "%d", box[i].category);
        draw_box(image, &box[i],
                 box[i].category >= 0 && box[i].category < names ? name[box[i].category] : number,
                 line);
    }
}
