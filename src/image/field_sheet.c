/* Draws sheets of fields (field_sheet.h). A sheet has panels, each with its title and with a colour
 * bar or the names of classes. A colour map interpolates linearly between a few colours. In the
 * sequential map the lightness rises evenly, so that the map can be read in grey and by
 * colour-blind people, too. */
#include "image/field_sheet.h"

#include <limits.h>
#include <math.h>
#include <string.h>

enum {
    /* smallest and largest width of a panel, in pixels */
    PANEL_LEAST = 360,
    PANEL_MOST = 1200,
    /* pixels between panels */
    GAP = 16,
    /* height of a colour bar, in pixels */
    BAR = 14,
    /* sizes of letters: pixels of the picture for each pixel of the font */
    LARGE = 2,
    SMALL = 1,
    /* bytes of a text */
    TEXT = 160
};

static const Colour white = {{255, 255, 255}}, black = {{30, 30, 30}}, frame = {{120, 120, 120}};
static const Colour missing = {{150, 150, 150}};
static const uint8_t sequential[][3] = {{45, 10, 80},   {55, 55, 130},  {40, 100, 140},
                                        {30, 140, 135}, {70, 180, 105}, {165, 212, 60},
                                        {252, 232, 50}};
static const uint8_t diverging[][3] = {{15, 50, 120},   {60, 125, 190},  {150, 195, 225},
                                       {245, 245, 245}, {240, 170, 140}, {205, 85, 75},
                                       {115, 10, 40}};
_Static_assert(sizeof sequential == sizeof diverging, "maps have the same number of colours");
enum { COLOURS = sizeof sequential / sizeof *sequential };
/* colours of classes: those of Okabe & Ito, with brown in place of black */
static const uint8_t categorical[][3] = {{0, 114, 178},   {230, 159, 0},  {0, 158, 115},
                                         {204, 121, 167}, {86, 180, 233}, {213, 94, 0},
                                         {240, 228, 66},  {115, 70, 40}};
enum { CATEGORIES = sizeof categorical / sizeof *categorical };

/* Returns the colour of a class; white if category is negative. Classes 0 to 7 have the eight
 * colours of the table, classes 8 to 15 these colours divided by 2, which makes them darker, and
 * classes 16 to 23 these colours divided by 3. Class 24 has the colour of class 0, and so on. */
static Colour category_colour(int category)
{
    Colour c = white;
    for (int i = 0; category >= 0 && i < 3; ++i)
        c.rgb[i] =
            (uint8_t)(categorical[category % CATEGORIES][i] / (1 + category / CATEGORIES % 3));
    return c;
}

Colour colour_of(const ColourRange *range, double value)
{
    const uint8_t(*map)[3] = range->diverging ? diverging : sequential;
    const double width = range->high - range->low;
    double at = width > 0 ? (value - range->low) / width : 0.5;
    Colour c;
    if (isnan(value)) return missing;
    if (range->categories > 0 && value >= INT_MAX) return missing;
    if (range->categories > 0) return category_colour(value <= -1 ? -1 : (int)value);
    at = fmin(fmax(at, 0), 1) * (COLOURS - 1);
    const int left = at >= COLOURS - 1 ? COLOURS - 2 : (int)at;
    for (int i = 0; i < 3; ++i)
        c.rgb[i] = (uint8_t)lround(map[left][i] + (at - left) * (map[left + 1][i] - map[left][i]));
    return c;
}

void colour_range_add(ColourRange *range, const float *value, int64_t count)
{
    for (int64_t i = 0; i < count; ++i) {
        if (!isfinite(value[i])) continue;
        const double v = (double)value[i];
        const bool empty = range->low > range->high;
        if (empty || v < range->low) range->low = v;
        if (empty || v > range->high) range->high = v;
    }
}

/* Sizes of a sheet. */
typedef struct Sizes {
    /* a value is drawn as zoom x zoom pixels */
    int zoom;
    /* only every skip-th value of every skip-th row is drawn; zoom is 1 if skip is above 1 */
    int skip;
    /* size of a panel's field in pixels */
    int width, height;
    /* height of a panel with its title and its colour bar, in pixels */
    int cell_height;
    /* height of the sheet's title, in pixels */
    int title_height;
} Sizes;

static Sizes sizes_of(const FieldSheet *s)
{
    Sizes z = {.zoom = 1, .skip = 1};
    while (z.zoom * s->columns < PANEL_LEAST) ++z.zoom;
    while (s->columns > z.skip * PANEL_MOST) ++z.skip;
    z.width = (s->columns + z.skip - 1) / z.skip * z.zoom;
    z.height = (s->rows + z.skip - 1) / z.skip * z.zoom;
    const int line = (FONT_HEIGHT + 3) * LARGE;
    z.title_height = line + GAP;
    z.cell_height = line + z.height + 6 + BAR + 4 + (FONT_HEIGHT + 2) * LARGE + GAP;
    return z;
}

/* Writes a text in large letters if it then fits into `width` pixels, else in small letters. */
static void put_text(Image *image, const char *text, int x, int y, int width)
{
    const int scale = paint_text_width(text, LARGE) <= width ? LARGE : SMALL;
    paint_text(image, text, x, y + (LARGE - scale) * FONT_HEIGHT / 2, scale, black);
}

/* The numbers at the beginning, in the middle and at the end of a colour bar. */
typedef struct BarNumbers {
    /* the numbers; the last one has the units, too */
    char text[3][TEXT];
    /* widths of the texts in pixels */
    int width[3];
    /* size of letters */
    int scale;
    /* true: there is room for the number in the middle */
    bool has_middle;
} BarNumbers;

/* Chooses the largest letters that leave a gap of two characters between the numbers. If even small
 * letters leave no such gap, the bar has small letters and no number in the middle. */
static BarNumbers bar_numbers(const ColourRange *range, const char *units, int width)
{
    const double width_value = range->high - range->low, middle = (range->low + range->high) / 2;
    const double number[] = {range->low, fabs(middle) < 1e-9 * width_value ? 0 : middle,
                             range->high};
    BarNumbers b = {.scale = LARGE + 1};
    for (int i = 0; i < 3; ++i)
        snprintf(b.text[i], sizeof b.text[i], "%.4g%s%.36s", number[i], i == 2 && *units ? " " : "",
                 i == 2 ? units : "");
    while (!b.has_middle && b.scale > SMALL) {
        --b.scale;
        for (int i = 0; i < 3; ++i) b.width[i] = paint_text_width(b.text[i], b.scale);
        const int wider = b.width[0] > b.width[2] ? b.width[0] : b.width[2];
        b.has_middle = wider + b.width[1] / 2 + 2 * (FONT_WIDTH + 1) * b.scale <= width / 2;
    }
    return b;
}

/* Draws a colour bar with the numbers at its ends and in its middle, and the units. */
static void put_bar(Image *image, const ColourRange *range, const char *units, int x, int y,
                    int width)
{
    const BarNumbers b = bar_numbers(range, units, width);
    const double width_value = range->high - range->low;
    for (int i = 0; i < width; ++i)
        paint_fill(image, x + i, y, 1, BAR,
                   colour_of(range, range->low + width_value * (i + 0.5) / width));
    for (int i = 0; i < 3; ++i) {
        paint_fill(image, x + (width - 1) * i / 2, y + BAR, 1, 3, black);
        if (i == 1 && !b.has_middle) continue;
        paint_text(image, b.text[i], x + (width - b.width[i] + b.scale) * i / 2, y + BAR + 4,
                   b.scale, black);
    }
}

/* Draws a box for each category, with its name if there is room. */
static void put_categories(Image *image, const FieldSheet *s, int categories, int x, int y,
                           int width)
{
    for (int c = 0; c < categories; ++c) {
        const int left = width * c / categories, wide = width * (c + 1) / categories - left;
        char text[TEXT];
        paint_fill(image, x + left, y, wide, BAR, category_colour(c));
        if (s->category)
            snprintf(text, sizeof text, "%s", s->category[c]);
        else
            snprintf(text, sizeof text, "%d", c);
        const int scale = paint_text_width(text, LARGE) <= wide ? LARGE : SMALL;
        const int text_width = paint_text_width(text, scale);
        if (text_width > wide) continue;
        paint_text(image, text, x + left + (wide - text_width) / 2, y + BAR + 4, scale, black);
    }
}

static void put_panel(Image *image, const FieldSheet *s, const Sizes *z, const FieldPanel *p, int x,
                      int y)
{
    const int top = y + (FONT_HEIGHT + 3) * LARGE;
    if (!p->value) return;
    put_text(image, p->title, x, y, z->width);
    paint_fill(image, x - 1, top - 1, z->width + 2, z->height + 2, frame);
    for (int i = 0; i < z->height; ++i)
        for (int k = 0; k < z->width; ++k) {
            const int row = i / z->zoom * z->skip, column = k / z->zoom * z->skip;
            const int from = s->flip ? s->rows - 1 - row : row;
            const Colour c =
                colour_of(&p->range, (double)p->value[(int64_t)from * s->columns + column]);
            memcpy(image->pixel + 3 * ((int64_t)(top + i) * image->width + x + k), c.rgb, 3);
        }
    const int bar = top + z->height + 6;
    if (p->range.categories > 0)
        put_categories(image, s, p->range.categories, x, bar, z->width);
    else
        put_bar(image, &p->range, s->units, x, bar, z->width);
}

void field_sheet_draw(Image *image, const FieldSheet *s)
{
    const Sizes z = sizes_of(s);
    const int down = (s->panels + s->across - 1) / s->across;
    image_set_size(image, GAP + s->across * (z.width + GAP),
                   GAP + z.title_height + down * z.cell_height);
    paint_fill(image, 0, 0, image->width, image->height, white);
    put_text(image, s->title, GAP, GAP, image->width - 2 * GAP);
    for (int i = 0; i < s->panels; ++i)
        put_panel(image, s, &z, &s->panel[i], GAP + i % s->across * (z.width + GAP),
                  GAP + z.title_height + i / s->across * z.cell_height);
}
