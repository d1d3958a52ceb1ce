/* Draws boxes into a picture. A detection gets a frame in the colour of its class, and the name of
 * the class and the score on a strip of that colour. A true box gets a white dashed frame and the
 * name of its class. Lines and letters grow with the picture. */
#include "detect.h"
#include "image/paint.h"

#include <math.h>
#include <string.h>

enum {
    /* a line is one pixel thick for each PIXELS_PER_LINE pixels of the picture's longer side */
    PIXELS_PER_LINE = 300,
    /* length of a dash divided by the thickness of its line */
    DASH_LINES = 3,
    /* bytes of the text of a strip */
    LABEL_BYTES = 128
};

/* Returns the colour of a class. From one class to the next the hue moves by 0.618 of the circle of
 * hues, which is 1 divided by the golden ratio, so no hue repeats. */
static Colour class_colour(int32_t class)
{
    Colour c;
    double hue = fmod(0.05 + class * 0.6180339887498949, 1) * 6;
    for (int i = 0; i < 3; ++i) {
        /* distance on the circle of hues from red, green or blue (i) */
        double apart = fabs(fmod(hue - 2 * i + 9, 6) - 3);
        double part = apart < 1 ? 1 : apart > 2 ? 0 : 2 - apart;
        c.rgb[i] = (uint8_t)(55 + 200 * part);
    }
    return c;
}

/* Returns black or white: the one that has more contrast to the colour `on`. */
static Colour text_colour(Colour on)
{
    int luma = 299 * on.rgb[0] + 587 * on.rgb[1] + 114 * on.rgb[2];
    return luma > 128000 ? (Colour){{0, 0, 0}} : (Colour){{255, 255, 255}};
}

/* Rounds a coordinate to a pixel, and limits it to values from -side to 2 * side. NaN becomes 0. */
static int to_pixel(double value, int side)
{
    if (!(value > -side)) return value <= -side ? -side : 0;
    return value > 2.0 * side ? 2 * side : (int)lround(value);
}

/* The frame around a box, in pixels of the picture. */
typedef struct Frame {
    /* left and upper edge */
    int x, y;
    /* right and lower edge: the first column and row after the frame */
    int right, bottom;
    /* thickness of lines */
    int line;
} Frame;

static Frame frame_of(const Image *image, const double box[4])
{
    const int longer = image->width > image->height ? image->width : image->height;
    return (Frame){.x = to_pixel(box[0], image->width),
                   .y = to_pixel(box[1], image->height),
                   .right = to_pixel(box[0] + box[2], image->width),
                   .bottom = to_pixel(box[1] + box[3], image->height),
                   .line = longer < 2 * PIXELS_PER_LINE ? 1 : longer / PIXELS_PER_LINE};
}

/* Writes a text on a strip of colour `colour`. The lower left corner of the strip is at (x,
 * bottom), but the strip is moved sideways if it would reach beyond the picture. line: pixels of
 * the picture for each pixel of the font. */
static void draw_strip(Image *image, const char *text, int x, int bottom, int line, Colour colour)
{
    const int height = (FONT_HEIGHT + 2) * line, y = bottom - height;
    const int width = paint_text_width(text, line) + line;
    if (x + width > image->width) x = image->width - width;
    if (x < 0) x = 0;
    paint_fill(image, x, y, width, height, colour);
    paint_text(image, text, x + line, y + line, line, text_colour(colour));
}

static void draw_box(Image *image, const DetectedBox *box, const char *name)
{
    const Colour colour = class_colour(box->category);
    const Frame f = frame_of(image, box->box);
    paint_fill(image, f.x, f.y, f.right - f.x, f.line, colour);
    paint_fill(image, f.x, f.bottom - f.line, f.right - f.x, f.line, colour);
    paint_fill(image, f.x, f.y, f.line, f.bottom - f.y, colour);
    paint_fill(image, f.right - f.line, f.y, f.line, f.bottom - f.y, colour);
    char text[LABEL_BYTES];
    snprintf(text, sizeof text, "%.100s %.2f", name, box->score);
    /* the strip is above the box, or inside of the box if there is no room above */
    const int strip = (FONT_HEIGHT + 2) * f.line;
    const int bottom = f.y >= strip ? f.y : f.y < 0 ? strip : f.y + strip;
    draw_strip(image, text, f.x, bottom, f.line, colour);
}

/* Returns the name of a class. If the class has no name, returns `number`, to which the number of
 * the class is written. */
static const char *name_of(int32_t class, const char *const *name, int64_t names, char number[24])
{
    snprintf(number, 24, "%d", class);
    return class >= 0 && class < names ? name[class] : number;
}

void detect_draw(Image *image, const DetectedBox *box, int64_t count, const char *const *name,
                 int64_t names)
{
    char number[24];
    /* the best boxes come first and are drawn last, on top */
    for (int64_t i = count - 1; i >= 0; --i)
        draw_box(image, &box[i], name_of(box[i].category, name, names, number));
}

void detect_draw_truths(Image *image, const TruthBox *truth, int64_t count, const char *const *name,
                        int64_t names)
{
    const Colour white = {{255, 255, 255}};
    char number[24], text[LABEL_BYTES];
    for (int64_t i = 0; i < count; ++i) {
        const Frame f = frame_of(image, truth[i].box);
        const int dash = DASH_LINES * f.line;
        for (int x = f.x; x < f.right; x += 2 * dash) {
            const int width = f.right - x < dash ? f.right - x : dash;
            paint_fill(image, x, f.y, width, f.line, white);
            paint_fill(image, x, f.bottom - f.line, width, f.line, white);
        }
        for (int y = f.y; y < f.bottom; y += 2 * dash) {
            const int height = f.bottom - y < dash ? f.bottom - y : dash;
            paint_fill(image, f.x, y, f.line, height, white);
            paint_fill(image, f.right - f.line, y, f.line, height, white);
        }
        snprintf(text, sizeof text, "%.100s%s", name_of(truth[i].category, name, names, number),
                 truth[i].crowd ? " (crowd)" : "");
        draw_strip(image, text, f.x, f.bottom, f.line, white);
    }
}
