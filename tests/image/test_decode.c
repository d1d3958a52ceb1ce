/* Every unusual picture of tests/image/pictures decodes to Pillow's pixels, rotated or not. A
 * truncated picture is refused, flipped bytes do no harm, and pictures that declare too many
 * pixels, or are none, are refused by name. */
#include "pictures.h"

static Golden golden[80];
static int goldens;

static void decodes_to_the_golden_pixels(void)
{
    Image image = {0}, spare = {0};
    ImageDecoder *decoder = image_decoder_new();
    char path[128];
    for (int i = 0; i < goldens; ++i) {
        const Golden *g = &golden[i];
        bool turned = strncmp(g->name, "turned/", 7) == 0;
        snprintf(path, sizeof path, PICTURES "%.60s", g->name + (turned ? 7 : 0));
        Bytes b = bytes_of(path);
        ImageHeader head;
        CHECK_OK(image_read_header(&head, b.at, b.count, path));
        CHECK_OK(image_decode(decoder, &image, b.at, b.count, path));
        if (turned)
            image_apply_orientation(&image, &spare, head.orientation);
        else
            CU_ASSERT_EQUAL(head.orientation, g->orientation);
        CU_ASSERT_EQUAL(image.width, g->width);
        CU_ASSERT_EQUAL(image.height, g->height);
        size_t bytes = (size_t)g->width * (size_t)g->height * 3, bad = 0;
        int worst = 0;
        for (size_t p = 0; p < bytes; ++p) {
            int off = abs(image.pixel[p] - g->pixel[p]);
            bad += off > 0;
            worst = off > worst ? off : worst;
        }
        CU_ASSERT_EQUAL(bad, 0);
        if (bad) printf("  %s: %zu of %zu differ, by up to %d\n", g->name, bad, bytes, worst);
        mem_free(&b.at);
    }
    CU_ASSERT_TRUE(goldens > 40);
    image_fini(&image);
    image_fini(&spare);
    image_decoder_free(&decoder);
}

/* A copy in its own allocation, so that a sanitizer reports reads beyond the end. */
static Status decode_part(ImageDecoder *decoder, const char *at, size_t count)
{
    Image image = {0};
    char *part = malloc(count ? count : 1);
    memcpy(part, at, count);
    Status st = image_decode(decoder, &image, part, count, "picture");
    free(part);
    image_fini(&image);
    return st;
}

static void a_cut_picture_is_refused(void)
{
    ImageDecoder *decoder = image_decoder_new();
    for (int i = 0; i < goldens; ++i) {
        char path[128];
        snprintf(path, sizeof path, PICTURES "%.60s", golden[i].name);
        if (strncmp(golden[i].name, "turned/", 7) == 0) continue;
        Bytes b = bytes_of(path);
        int taken = 0;
        size_t last = 0;
        /* no reader checks the checksum of a PNG's last chunk, which is empty */
        size_t end = b.count - (strstr(path, ".png") || strstr(path, "png.") ? 4 : 0);
        for (size_t cut = 0; cut < end; cut += cut + 60 < b.count ? 29 : 1)
            if (decode_part(decoder, b.at, cut) != ERR_DATA) ++taken, last = cut;
        if (taken) printf("  %s: cut to %zu of %zu bytes was taken\n", path, last, b.count);
        CU_ASSERT_EQUAL(taken, 0);
        mem_free(&b.at);
    }
    image_decoder_free(&decoder);
}

static void a_flipped_byte_breaks_nothing(void)
{
    ImageDecoder *decoder = image_decoder_new();
    int refused = 0;
    for (int i = 0; i < goldens; ++i) {
        char path[128];
        snprintf(path, sizeof path, PICTURES "%.60s", golden[i].name);
        if (strncmp(golden[i].name, "turned/", 7) == 0) continue;
        Bytes b = bytes_of(path);
        for (size_t at = 0; at < b.count; at += 11) {
            b.at[at] = (char)~b.at[at];
            ImageHeader head;
            Status st = image_read_header(&head, b.at, b.count, "picture");
            CU_ASSERT_TRUE(st == OK || st == ERR_DATA);
            if (st == OK && (int64_t)head.width * head.height < 1 << 20) {
                st = decode_part(decoder, b.at, b.count);
                CU_ASSERT_TRUE(st == OK || st == ERR_DATA);
            }
            refused += st != OK;
            b.at[at] = (char)~b.at[at];
        }
        mem_free(&b.at);
    }
    CU_ASSERT_TRUE(refused > 500);
    image_decoder_free(&decoder);
}

static void what_is_no_picture_is_refused_by_name(void)
{
    ImageDecoder *decoder = image_decoder_new();
    Image image = {0};
    CHECK_FAILS(image_decode(decoder, &image, "", 0, "a/empty.jpg"), ERR_DATA,
                "a/empty.jpg: no picture: it is empty");
    CHECK_FAILS(image_decode(decoder, &image, "GIF89a", 6, "a.gif"), ERR_DATA,
                "a.gif: no picture: it does not begin like a JPEG, a PNG or a WebP");
    CHECK_FAILS(image_decode(decoder, &image, "\0\0\0\0\0\0\0\0\0\0\0\0", 12, "zeros"), ERR_DATA,
                "zeros: no picture");
    CHECK_FAILS(image_decode(decoder, &image, "\xff\xd8\xff\xd9", 4, "b.jpg"), ERR_DATA,
                "b.jpg: a broken JPEG picture");
    CHECK_FAILS(image_decode(decoder, &image, "\x89PNG\r\n\x1a\n", 8, "c.png"), ERR_DATA,
                "c.png: a broken PNG picture");
    CHECK_FAILS(image_decode(decoder, &image, "RIFF\x4\0\0\0WEBP", 12, "d.webp"), ERR_DATA,
                "d.webp: a broken WebP picture");
    CU_ASSERT_PTR_NULL(image.pixel);
    image_fini(&image);
    image_decoder_free(&decoder);
}

/* A real file's header with another size in it. */
static void one_that_claims_too_much_takes_no_memory(void)
{
    Image image = {0};
    ImageDecoder *decoder = image_decoder_new();
    Bytes b = bytes_of(PICTURES "plain.jpg");
    char *sof = NULL;
    for (size_t i = 0; i + 8 < b.count && !sof; ++i)
        if (memcmp(b.at + i, "\xff\xc0\0\x11\x08", 5) == 0) sof = b.at + i + 5;
    CU_ASSERT_PTR_NOT_NULL_FATAL(sof);
    memcpy(sof, "\xff\x00\xff\x00", 4);
    CHECK_FAILS(image_decode(decoder, &image, b.at, b.count, "bomb.jpg"), ERR_DATA,
                "65280x65280 pixels, more than the 178956970");
    mem_free(&b.at);
    /* 178,956,970 pixels and one more row; with a correct CRC, or libspng reports that first */
    static const uint8_t ihdr[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\1\0\0\0\1\0\0\x08\2\0\0\0";
    uint8_t png[33];
    uint32_t crc = 0xffffffff;
    memcpy(png, ihdr, 29);
    for (int i = 12; i < 29; ++i) {
        crc ^= png[i];
        for (int bit = 0; bit < 8; ++bit) crc = crc & 1 ? crc >> 1 ^ 0xedb88320 : crc >> 1;
    }
    crc = ~crc;
    for (int i = 0; i < 4; ++i) png[29 + i] = (uint8_t)(crc >> (24 - 8 * i));
    CHECK_FAILS(image_decode(decoder, &image, png, sizeof png, "bomb.png"), ERR_DATA,
                "65536x65536 pixels, more than");
    CU_ASSERT_PTR_NULL(image.pixel);
    image_fini(&image);
    image_decoder_free(&decoder);
}

/* Repeats two scans until there are too many. */
static void a_jpeg_of_a_thousand_scans_is_refused(void)
{
    ImageDecoder *decoder = image_decoder_new();
    Bytes b = bytes_of(PICTURES "progressive.jpg");
    size_t first = 0, second = 0;
    for (size_t i = 0; i + 4 < b.count; ++i) {
        if (memcmp(b.at + i, "\xff\xda", 2) != 0) continue;
        if (!first)
            first = i;
        else if (!second)
            second = i;
    }
    CU_ASSERT_TRUE_FATAL(first && second > first);
    size_t scan = second - first, room = b.count + 1000 * scan, count = first;
    char *many = malloc(room);
    memcpy(many, b.at, first);
    for (int i = 0; i < 1000; ++i, count += scan) memcpy(many + count, b.at + first, scan);
    memcpy(many + count, b.at + first, b.count - first);
    Image image = {0};
    CHECK_FAILS(image_decode(decoder, &image, many, room, "scans.jpg"), ERR_DATA,
                "more than 500 scans");
    free(many);
    mem_free(&b.at);
    image_fini(&image);
    image_decoder_free(&decoder);
}

static void versions_name_every_library(void)
{
    char text[120];
    image_versions(text, sizeof text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "libjpeg-turbo"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "libspng"));
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "libwebp"));
}

int main(void)
{
    static const HarnessTest tests[] = {
        {"every odd picture decodes to Pillow's pixels", decodes_to_the_golden_pixels},
        {"a cut picture is refused", a_cut_picture_is_refused},
        {"a flipped byte breaks nothing", a_flipped_byte_breaks_nothing},
        {"what is no picture is refused by name", what_is_no_picture_is_refused_by_name},
        {"one that claims too much takes no memory", one_that_claims_too_much_takes_no_memory},
        {"a JPEG of a thousand scans is refused", a_jpeg_of_a_thousand_scans_is_refused},
        {"versions name every library", versions_name_every_library},
    };
    goldens = golden_load(golden, 80);
    int rc = pictures_run("decode", tests, (int)(sizeof tests / sizeof tests[0]));
    uint8_t *pixels = (uint8_t *)(uintptr_t)golden[0].pixel;
    mem_free(&pixels);
    return rc;
}
