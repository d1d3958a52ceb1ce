/* A part of a JPEG that is decoded alone, and a part of a resampled picture that is computed alone,
 * have the same pixels as in the whole. */
#include "harness.h"
#include "image/picture.h"

static uint32_t state = 1;

static int below(int n)
{
    state = state * 1664525u + 1013904223u;
    return (int)((uint64_t)state * (uint64_t)n >> 32);
}

static ImageBox any_box(int width, int height)
{
    int w = 1 + below(width), h = 1 + below(height);
    return (ImageBox){below(width - w + 1), below(height - h + 1), w, h};
}

static const uint8_t *at(const Image *image, int x, int y)
{
    return image->pixel + ((size_t)y * (size_t)image->width + (size_t)x) * 3;
}

/* Counts rows of `box` in the whole that differ from the part, whose origin is (x, y). */
static int differ(const Image *whole, const Image *part, ImageBox box, int x, int y)
{
    int bad = 0;
    for (int r = 0; r < box.height; ++r)
        bad += memcmp(at(whole, box.x, box.y + r), at(part, box.x - x, box.y + r - y),
                      (size_t)box.width * 3) != 0;
    return bad;
}

static void decode_parts(const char *name)
{
    char path[80], *bytes;
    size_t count;
    ImageHeader head;
    Image whole = {0}, part = {0};
    ImageDecoder *decoder = image_decoder_new();
    int smaller = 0;
    snprintf(path, sizeof path, "tests/golden/image/%s.jpg", name);
    CHECK_OK(file_text(path, 1 << 20, &bytes, &count));
    CHECK_OK(image_read_header(&head, bytes, count, path));
    CHECK_OK(image_decode(decoder, &whole, bytes, count, path));
    for (int i = 0; i < 150; ++i) {
        ImageBox need = any_box(head.width, head.height), have;
        CHECK_OK(image_decode_part(decoder, &part, bytes, count, &head, need, &have, path));
        CU_ASSERT(have.x <= need.x && have.y <= need.y);
        CU_ASSERT(part.width == have.width && part.height == have.height);
        CU_ASSERT_EQUAL(differ(&whole, &part, need, have.x, have.y), 0);
        smaller += have.width < head.width && have.height < head.height;
    }
    CU_ASSERT(smaller > 10);
    image_decoder_free(&decoder);
    image_fini(&whole);
    image_fini(&part);
    mem_free(&bytes);
}

static void test_decode(void)
{
    char versions[200];
    image_versions(versions, sizeof versions);
    if (strstr(versions, "no libjpeg")) TEST_SKIP("weft was built without libjpeg-turbo");
    decode_parts("420");
    decode_parts("422");
    decode_parts("444");
    decode_parts("progressive");
    decode_parts("grey");
}

static void test_resample(void)
{
    Image from = {0}, whole = {0}, part = {0};
    ImageResampler *resampler = image_resampler_new();
    picture(&from, 8, 90, 70);
    for (int i = 0; i < 200; ++i) {
        ImageBox box = any_box(from.width, from.height);
        int width = i % 9 == 0 ? box.width : 1 + below(120);
        int height = i % 7 == 0 ? box.height : 1 + below(120);
        ImageBox keep = any_box(width, height);
        ImageFilter filter = i % 2 ? IMAGE_BICUBIC : IMAGE_BILINEAR;
        image_set_size(&whole, width, height);
        image_set_size(&part, keep.width, keep.height);
        image_resample(resampler, &from, box, &whole, filter);
        image_resample_part(resampler, &from, box, width, height, keep, &part, filter);
        CU_ASSERT_EQUAL(differ(&whole, &part, keep, keep.x, keep.y), 0);
    }
    image_resampler_free(&resampler);
    image_fini(&from);
    image_fini(&whole);
    image_fini(&part);
}

TEST_MAIN("parts", {"a part of a JPEG is decoded alone", test_decode},
          {"a part of a resampled picture is made alone", test_resample})
