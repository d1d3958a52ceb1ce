/* Pictures of fields: the sequential colour map becomes lighter from step to step, the diverging
 * one is white in the middle, missing values are grey; a sheet shows each value in its colour,
 * the right way up. */
#include "harness.h"
#include "image/field_sheet.h"

#include <math.h>

static double lightness(Colour c)
{
    return 0.299 * c.rgb[0] + 0.587 * c.rgb[1] + 0.114 * c.rgb[2];
}

static void test_maps(void)
{
    const ColourRange rises = {.low = -2, .high = 6};
    const ColourRange change = {.low = -3, .high = 3, .diverging = true};
    for (int i = 1; i <= 64; ++i) {
        const double a = -2 + (i - 1) / 8.0, b = -2 + i / 8.0;
        CU_ASSERT(lightness(colour_of(&rises, b)) > lightness(colour_of(&rises, a)));
    }
    CU_ASSERT(lightness(colour_of(&change, 0)) > 240);
    const Colour below = colour_of(&change, -3), above = colour_of(&change, 3);
    CU_ASSERT(below.rgb[2] > below.rgb[0] && above.rgb[0] > above.rgb[2]);
    const Colour beyond = colour_of(&rises, 1e30), end = colour_of(&rises, 6);
    CU_ASSERT_EQUAL(memcmp(&beyond, &end, sizeof end), 0);
    const Colour grey = colour_of(&rises, NAN);
    CU_ASSERT(grey.rgb[0] == grey.rgb[1] && grey.rgb[1] == grey.rgb[2]);
}

/* Values that are no class: those below 0 are white, those that no int has are grey. */
static void test_no_classes(void)
{
    const ColourRange classes = {.categories = 3}, numbers = {.low = 0, .high = 1};
    const Colour grey = colour_of(&numbers, NAN), white = colour_of(&classes, -1);
    static const double large[] = {INFINITY, 1e30, 2147483648.0, NAN};
    static const double negative[] = {-INFINITY, -1e30, -2147483649.0};
    CU_ASSERT(white.rgb[0] == 255 && white.rgb[1] == 255 && white.rgb[2] == 255);
    for (size_t i = 0; i < sizeof large / sizeof *large; ++i) {
        const Colour c = colour_of(&classes, large[i]);
        CU_ASSERT_EQUAL(memcmp(&c, &grey, sizeof c), 0);
    }
    for (size_t i = 0; i < sizeof negative / sizeof *negative; ++i) {
        const Colour c = colour_of(&classes, negative[i]);
        CU_ASSERT_EQUAL(memcmp(&c, &white, sizeof c), 0);
    }
}

static void test_range(void)
{
    const float value[] = {NAN, 4, -1, INFINITY, 2};
    ColourRange range = {.low = 1, .high = 0};
    colour_range_add(&range, value, 1);
    CU_ASSERT(range.low > range.high);
    colour_range_add(&range, value, 5);
    CU_ASSERT(range.low == -1 && range.high == 4);
}

/* Returns the number of pixels of a colour. */
static int count(const Image *image, Colour colour, int from_row, int to_row)
{
    int n = 0;
    for (int64_t i = (int64_t)from_row * image->width; i < (int64_t)to_row * image->width; ++i)
        n += !memcmp(image->pixel + 3 * i, colour.rgb, 3);
    return n;
}

static void test_sheet(void)
{
    /* four columns of 90 pixels each */
    const float value[2][4] = {{1, 1, 1, 1}, {7, 7, 7, NAN}};
    const ColourRange range = {.low = 0, .high = 10};
    const FieldPanel panel[] = {{"one", &value[0][0], range}, {"empty", NULL, range}};
    for (int flip = 0; flip < 2; ++flip) {
        const FieldSheet sheet = {.title = "title",
                                  .units = "m",
                                  .rows = 2,
                                  .columns = 4,
                                  .flip = flip,
                                  .panel = panel,
                                  .panels = 2,
                                  .across = 2};
        Image image = {0};
        field_sheet_draw(&image, &sheet);
        const Colour first = colour_of(&range, 1), second = colour_of(&range, 7);
        int top = 0;
        while (top < image.height && count(&image, first, top, top + 1) < 4 * 90 &&
               count(&image, second, top, top + 1) < 3 * 90)
            ++top;
        CU_ASSERT_FATAL(top + 180 < image.height);
        CU_ASSERT_EQUAL(count(&image, flip ? second : first, top, top + 90),
                        flip ? 3 * 8100 : 4 * 8100);
        CU_ASSERT_EQUAL(count(&image, flip ? first : second, top + 90, top + 180),
                        flip ? 4 * 8100 : 3 * 8100);
        CU_ASSERT_EQUAL(count(&image, colour_of(&range, NAN), top, top + 180), 8100);
        image_fini(&image);
    }
}

/* Classes have colours of their own, -1 is white; the bar has a box for each class. */
static void test_categories(void)
{
    const float value[1][4] = {{0, 1, -1, NAN}};
    const ColourRange range = {.categories = 2};
    const char *const names[] = {"sea", "land"};
    const FieldPanel panel[] = {{"classes", &value[0][0], range}};
    const FieldSheet sheet = {.title = "title",
                              .units = "",
                              .rows = 1,
                              .columns = 4,
                              .panel = panel,
                              .panels = 1,
                              .across = 1,
                              .category = names};
    Image image = {0};
    const Colour white = colour_of(&range, -1), sea = colour_of(&range, 0);
    CU_ASSERT(white.rgb[0] == 255 && white.rgb[1] == 255 && white.rgb[2] == 255);
    for (int a = 0; a < 24; ++a)
        for (int b = 0; b < a; ++b) {
            const Colour x = colour_of(&range, a), y = colour_of(&range, b);
            CU_ASSERT_NOT_EQUAL(memcmp(&x, &y, sizeof x), 0);
        }
    field_sheet_draw(&image, &sheet);
    /* 90 x 90 pixels of the value, and a box of half the width below */
    CU_ASSERT_EQUAL(count(&image, sea, 0, image.height), 90 * 90 + 180 * 14);
    CU_ASSERT_EQUAL(count(&image, colour_of(&range, NAN), 0, image.height), 90 * 90);
    image_fini(&image);
}

/* Returns the number of texts side by side in rows, which are at least 10 pixels apart. */
static int count_texts(const Image *image, int from_row, int to_row)
{
    const uint8_t ink[] = {30, 30, 30};
    int texts = 0, gap = 10;
    for (int x = 0; x < image->width; ++x) {
        bool has_ink = false;
        for (int y = from_row; y < to_row; ++y)
            has_ink |= !memcmp(image->pixel + 3 * ((int64_t)y * image->width + x), ink, 3);
        texts += has_ink && gap >= 10;
        gap = has_ink ? 0 : gap + 1;
    }
    return texts;
}

/* The numbers of a bar stand apart, however long they are; if there is no room, that of the middle
 * is left out. */
static void test_bar_numbers(void)
{
    const float value[1][4] = {{8.077e-6F, 8.077e-6F, 8.077e-6F, 8.077e-6F}};
    static const struct {
        double low, high;
        const char *units;
        int texts;
    } row[] = {{8.0771e-6, 8.0774e-6, "K/s", 3},
               {-1.234e-5, 1.234e-5, "", 3},
               {-1, 1, "", 3},
               {-1.234e-5, 1.235e-5, "per_second_per_metre_and_per_kelvin", 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        const ColourRange range = {.low = row[i].low, .high = row[i].high};
        const FieldPanel panel[] = {{"one", &value[0][0], range}};
        const FieldSheet sheet = {.title = "",
                                  .units = row[i].units,
                                  .rows = 1,
                                  .columns = 4,
                                  .panel = panel,
                                  .panels = 1,
                                  .across = 1};
        Image image = {0};
        field_sheet_draw(&image, &sheet);
        /* the numbers are the last lines, above a gap of 16 */
        CU_ASSERT_EQUAL(count_texts(&image, image.height - 16 - 18, image.height), row[i].texts);
        image_fini(&image);
    }
}

TEST_MAIN("field_sheet", {"colour maps", test_maps}, {"categories", test_categories},
          {"values that are no class", test_no_classes}, {"numbers of a bar", test_bar_numbers},
          {"ranges", test_range}, {"sheets", test_sheet})
