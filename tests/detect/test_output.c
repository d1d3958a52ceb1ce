/* Files of results, boxes drawn into pictures, and pictures written as PNG. */
#include "harness.h"
#include "detect.h"
#include "image/paint.h"

#include <math.h>

static char folder[] = "/tmp/weft-output-XXXXXX";

static const char *in_folder(const char *name)
{
    static char path[200];
    static bool made;
    if (!made && !mkdtemp(folder)) die("mkdtemp");
    made = true;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static void results_are_rounded(void)
{
    static const DetectedBox boxes[] = {{{1.23449, 2.5, -0.0001, 1e6 + 0.0625}, 0.123456, 1, 0},
                                        {{0, 10, 20, 30}, 1, 0, 1}};
    static const int64_t images[] = {139, 285}, categories[] = {1, 90};
    char *text;
    size_t bytes;
    const char *path = in_folder("results.json");
    CHECK_OK(coco_results_write(path, boxes, 2, images, categories));
    CHECK_OK(file_text(path, 1000, &text, &bytes));
    CU_ASSERT_STRING_EQUAL(
        text, "[{\"image_id\": 285, \"category_id\": 1, \"bbox\": [1.234, 2.5, 0, 1000000.062], "
              "\"score\": 0.12346},\n{\"image_id\": 139, \"category_id\": 90, \"bbox\": [0, 10, "
              "20, 30], \"score\": 1}]\n");
    mem_free(&text);
    CHECK_OK(coco_results_write(path, boxes, 0, images, categories));
    CHECK_OK(file_text(path, 1000, &text, &bytes));
    CU_ASSERT_STRING_EQUAL(text, "[]\n");
    mem_free(&text);
    unlink(path);
    CHECK_FAILS(coco_results_write("/nowhere/results.json", boxes, 1, images, categories), ERR_IO,
                "/nowhere/results.json: cannot be written");
}

static Image grey_image(int width, int height)
{
    Image image = {0};
    image_set_size(&image, width, height);
    memset(image.pixel, 100, 3 * (size_t)width * (size_t)height);
    return image;
}

static bool is_grey(const Image *image, int x, int y)
{
    const uint8_t *p = image->pixel + 3 * (y * image->width + x);
    return p[0] == 100 && p[1] == 100 && p[2] == 100;
}

static bool same_pixel(const Image *image, int x, int y, int other_x, int other_y)
{
    return memcmp(image->pixel + 3 * (y * image->width + x),
                  image->pixel + 3 * (other_y * image->width + other_x), 3) == 0;
}

static void boxes_are_drawn(void)
{
    Image image = grey_image(120, 100);
    static const char *const names[] = {"cat"};
    DetectedBox box = {{20, 40, 60, 50}, 0.875, 0, 0};
    detect_draw(&image, &box, 1, names, 1);
    /* the frame: its corners, and one pixel around and inside of it */
    for (int i = 0; i < 60; ++i) CU_ASSERT_TRUE(same_pixel(&image, 20 + i, 89, 20, 40));
    for (int i = 0; i < 50; ++i) CU_ASSERT_TRUE(same_pixel(&image, 20, 40 + i, 79, 40 + i));
    CU_ASSERT_FALSE(is_grey(&image, 20, 40));
    CU_ASSERT_TRUE(is_grey(&image, 21, 41));
    CU_ASSERT_TRUE(is_grey(&image, 78, 88));
    CU_ASSERT_TRUE(is_grey(&image, 80, 60));
    CU_ASSERT_TRUE(is_grey(&image, 20, 90));
    /* the strip above it has the letters of "cat 0.88", whose first is a c */
    static const char text[] = "cat 0.88";
    for (int k = 0; text[k]; ++k)
        for (int y = 0; y < FONT_HEIGHT; ++y)
            for (int x = 0; x < FONT_WIDTH; ++x)
                CU_ASSERT_EQUAL(same_pixel(&image, 21 + 6 * k + x, 32 + y, 20, 31),
                                !font_has_pixel((unsigned char)text[k], x, y));
    CU_ASSERT_TRUE(is_grey(&image, 20 + 6 * 8 + 1, 33));
    image_fini(&image);
}

/* A strip ends after its text, also with characters that are wide, or have no width, on a
 * terminal: each is drawn as one. */
static void strips_are_as_wide_as_their_text(void)
{
    static const char *const names[] = {"c", "\u4e2d", "e\u0301"};
    static const int characters[] = {1, 1, 2};
    for (int i = 0; i < 3; ++i) {
        Image image = grey_image(120, 100);
        DetectedBox box = {{20, 40, 10, 50}, 0.875, 0, i};
        detect_draw(&image, &box, 1, names, 3);
        const int end = 20 + (FONT_WIDTH + 1) * (characters[i] + 5) + 1;
        CU_ASSERT_FALSE(is_grey(&image, end - 1, 33));
        CU_ASSERT_TRUE(is_grey(&image, end, 33));
        image_fini(&image);
    }
}

/* A truth has a dashed frame, three pixels and three gaps, and its name inside, at the bottom. */
static void truths_are_dashed(void)
{
    Image image = grey_image(120, 100);
    static const char *const names[] = {"cat"};
    const TruthBox truth = {.box = {20, 40, 60, 50}, .category = 0};
    detect_draw_truths(&image, &truth, 1, names, 1);
    for (int i = 0; i < 59; ++i) CU_ASSERT_EQUAL(is_grey(&image, 20 + i, 40), i / 3 % 2 == 1);
    for (int i = 0; i < 40; ++i) CU_ASSERT_EQUAL(is_grey(&image, 79, 40 + i), i / 3 % 2 == 1);
    CU_ASSERT_EQUAL(image.pixel[3 * (40 * 120 + 20)], 255);
    for (int k = 0; k < 3; ++k)
        for (int y = 0; y < FONT_HEIGHT; ++y)
            for (int x = 0; x < FONT_WIDTH; ++x)
                CU_ASSERT_EQUAL(same_pixel(&image, 21 + 6 * k + x, 82 + y, 20, 81),
                                !font_has_pixel((unsigned char)names[0][k], x, y));
    CU_ASSERT_TRUE(is_grey(&image, 20 + 6 * 3 + 1, 82));
    image_fini(&image);
}

/* The better box, which is the first, covers the other; classes have different colours. */
static void better_boxes_are_on_top(void)
{
    Image both = grey_image(60, 60), one = grey_image(60, 60);
    DetectedBox box[] = {{{10, 20, 30, 30}, 0.9, 0, 0}, {{10, 20, 30, 30}, 0.8, 0, 1}};
    detect_draw(&both, box, 2, NULL, 0);
    detect_draw(&one, box, 1, NULL, 0);
    CU_ASSERT_EQUAL(memcmp(both.pixel, one.pixel, 3 * 60 * 60), 0);
    detect_draw(&one, box + 1, 1, NULL, 0);
    CU_ASSERT_NOT_EQUAL(memcmp(both.pixel, one.pixel, 3 * 60 * 60), 0);
    image_fini(&both);
    image_fini(&one);
}

/* Boxes may reach beyond the picture, be anywhere else, or be no numbers. */
static void boxes_outside_are_cut(void)
{
    static const double places[][4] = {
        {-5, -5, 30, 30},   {30, 30, 100, 100},  {-1e300, 0, 2e300, 5}, {NAN, NAN, NAN, NAN},
        {500, 500, 10, 10}, {INFINITY, 0, 1, 1}, {0, 0, -5, -5},        {39.9, 29.9, 0, 0}};
    static const char *const names[] = {"a name that is wider than the picture: \u00e9\u4e2d\xff"};
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        Image image = grey_image(40, 30);
        DetectedBox box = {.score = 0.5};
        memcpy(box.box, places[i], sizeof box.box);
        detect_draw(&image, &box, 1, names, 1);
        CU_ASSERT_EQUAL(image.width, 40);
        image_fini(&image);
    }
}

static void png_is_read_again(void)
{
    char versions[256];
    image_versions(versions, sizeof versions);
    if (strstr(versions, "no libspng")) TEST_SKIP("weft was built without libspng");
    Image image = {0}, read = {0};
    ImageDecoder *decoder = image_decoder_new();
    static const int sizes[][2] = {{1, 1}, {7, 5}, {640, 3}, {33, 200}};
    for (int i = 0; i < 4; ++i) {
        char *bytes;
        size_t count;
        const char *path = in_folder("picture.png");
        image_set_size(&image, sizes[i][0], sizes[i][1]);
        const size_t n = 3 * (size_t)image.width * (size_t)image.height;
        for (size_t k = 0; k < n; ++k) image.pixel[k] = (uint8_t)(k * 2654435761U >> 13);
        CHECK_OK(image_write_png(&image, path));
        CHECK_OK(file_text(path, 1 << 20, &bytes, &count));
        CHECK_OK(image_decode(decoder, &read, bytes, count, path));
        CU_ASSERT_EQUAL(read.width, image.width);
        CU_ASSERT_EQUAL(read.height, image.height);
        CU_ASSERT_EQUAL(memcmp(read.pixel, image.pixel, n), 0);
        mem_free(&bytes);
        unlink(path);
    }
    CHECK_FAILS(image_write_png(&image, "/nowhere/x.png"), ERR_IO, "/nowhere/x.png: cannot be");
    image_decoder_free(&decoder);
    image_fini(&image);
    image_fini(&read);
    rmdir(folder);
}

TEST_MAIN("output", {"results are rounded", results_are_rounded},
          {"boxes are drawn", boxes_are_drawn},
          {"strips are as wide as their text", strips_are_as_wide_as_their_text},
          {"truths are dashed", truths_are_dashed},
          {"better boxes are on top", better_boxes_are_on_top},
          {"boxes outside are cut", boxes_outside_are_cut},
          {"png is read again", png_is_read_again})
