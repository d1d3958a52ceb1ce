/* Colour changes against Pillow's bytes (written by tools/golden_pictures.py). */
#include "harness.h"
#include "image/picture.h"

#include <inttypes.h>

static void change(Image *image, const char *op, double by)
{
    if (strcmp(op, "brightness") == 0) image_brightness(image, (float)by);
    if (strcmp(op, "contrast") == 0) image_contrast(image, (float)by);
    if (strcmp(op, "saturation") == 0) image_saturation(image, (float)by);
    if (strcmp(op, "hue") == 0) image_hue(image, (int)by);
}

static void test_golden(void)
{
    Image image = {0};
    char op[16];
    double by;
    uint64_t want;
    int cases = 0;
    FILE *f = fopen("tests/golden/image/color.txt", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    for (; fscanf(f, "%15s %lf %" SCNx64, op, &by, &want) == 3; ++cases) {
        picture(&image, 2, 64, 48);
        change(&image, op, by);
        if (fnv(image.pixel, 64 * 48 * 3) != want) printf("  %s %g\n", op, by);
        CU_ASSERT_EQUAL(fnv(image.pixel, 64 * 48 * 3), want);
    }
    CU_ASSERT_EQUAL(cases, 24);
    fclose(f);
    image_fini(&image);
}

/* Grey has no hue, and a rotation by the whole circle changes nothing. */
static void test_grey(void)
{
    Image image = {0};
    picture(&image, 4, 16, 16);
    image_saturation(&image, 0);
    uint64_t before = fnv(image.pixel, 16 * 16 * 3);
    image_hue(&image, 77);
    CU_ASSERT_EQUAL(fnv(image.pixel, 16 * 16 * 3), before);
    for (int i = 0; i < 16 * 16 * 3; ++i) CU_ASSERT_EQUAL(image.pixel[i], image.pixel[i - i % 3]);
    image_fini(&image);
}

TEST_MAIN("color", {"Pillow's bytes", test_golden}, {"grey stays grey", test_grey})
