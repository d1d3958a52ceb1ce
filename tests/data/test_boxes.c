/* Sets of boxes: what an import stores, reading it, squares with margins, and files whose labels
 * are damaged. tests/cli/import_boxes.sh has the formats and their errors. */
#include "folders.h"

#include <fcntl.h>

static const char labels[] =
    "{\"images\": [{\"id\": 30, \"file_name\": \"wide.png\", \"width\": 21, \"height\": 18},"
    " {\"id\": 4, \"file_name\": \"low.jpg\", \"width\": 12, \"height\": 9},"
    " {\"id\": 5, \"file_name\": \"wide.png\"}],"
    " \"annotations\": [{\"id\": 2, \"image_id\": 30, \"category_id\": 7, \"bbox\": [1, 2, 3.5, "
    "4]},"
    " {\"id\": 1, \"image_id\": 30, \"category_id\": 3, \"bbox\": [0, 0, 21, 18], \"area\": 50.25,"
    " \"iscrowd\": 1}, {\"id\": 9, \"image_id\": 4, \"category_id\": 3, \"bbox\": [2, 3, 4, 5]}],"
    " \"categories\": [{\"id\": 7, \"name\": \"b\"}, {\"id\": 3, \"name\": \"a\"}]}";

/* Imports the three pictures; side 0: as files. Returns the set's path. */
static const char *import_three(const char *name, int side)
{
    const char *dir = in_scratch("boxes"), *out = in_scratch(name);
    make_folder(dir);
    copy("plain.png", at(dir, "wide.png"));
    copy("exif6.jpg", at(dir, "low.jpg"));
    write_bytes(at(dir, "labels.json"), labels, strlen(labels));
    BoxImport import = {.format = &box_format_coco,
                        .images = dir,
                        .labels = at(dir, "labels.json"),
                        .out = out,
                        .side = side,
                        .force = true,
                        .threads = 2};
    CHECK_OK(data_import_boxes(&import, NULL));
    return out;
}

static void arrays_are_read(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet *set = mem_new(sizeof *set);
    DataBoxes b;
    CHECK_OK(data_set_open(set, NULL, import_three("boxes.h5", 0)));
    CU_ASSERT_TRUE(set->encoded);
    CU_ASSERT_EQUAL(set->samples, 3);
    CU_ASSERT_EQUAL(set->classes, 2);
    CU_ASSERT_FALSE(set->has_stats);
    CHECK_OK(data_set_check(set, 0));
    CHECK_OK(data_boxes_read(&b, set));
    CU_ASSERT_EQUAL_FATAL(b.pictures, 3);
    CU_ASSERT_EQUAL_FATAL(b.boxes, 3);
    CU_ASSERT_EQUAL(b.classes, 2);
    CU_ASSERT_PTR_NULL(b.fit);
    CU_ASSERT_EQUAL(memcmp(b.image_id, (int64_t[]){4, 5, 30}, 24), 0);
    CU_ASSERT_EQUAL(memcmp(b.start, (int64_t[]){0, 1, 1, 3}, 32), 0);
    CU_ASSERT_EQUAL(memcmp(b.size, (int32_t[]){9, 12, 18, 21, 18, 21}, 24), 0);
    CU_ASSERT_EQUAL(memcmp(b.id, (int64_t[]){9, 2, 1}, 24), 0);
    CU_ASSERT_EQUAL(memcmp(b.class, (int32_t[]){0, 1, 0}, 12), 0);
    CU_ASSERT_EQUAL(memcmp(b.area, (double[]){20, 14, 50.25}, 24), 0);
    CU_ASSERT_EQUAL(memcmp(b.crowd, (uint8_t[]){0, 0, 1}, 3), 0);
    CU_ASSERT_EQUAL(memcmp(b.category_id, (int64_t[]){3, 7}, 16), 0);
    CU_ASSERT_EQUAL(memcmp(b.box + 4, (double[]){1, 2, 3.5, 4}, 32), 0);
    data_boxes_free(&b);
    mem_free(&set);
}

/* Compares sample i, a square of `side`, with the picture resized to width x height at (left, top),
 * and with margins of 114. */
static void check_square(const uint8_t *x, const char *picture, int side, int width, int height)
{
    char path[200];
    size_t count;
    Image from = {0}, to = {0};
    ImageDecoder *decoder = image_decoder_new();
    ImageResampler *resampler = image_resampler_new();
    int left = (side - width) / 2, top = (side - height) / 2, bad = 0;
    snprintf(path, sizeof path, PICTURES "%s", picture);
    char *bytes = whole(path, &count);
    CHECK_OK(image_decode(decoder, &from, bytes, count, path));
    image_set_size(&to, width, height);
    image_resample(resampler, &from, (ImageBox){0, 0, from.width, from.height}, &to,
                   IMAGE_BILINEAR);
    for (int c = 0; c < 3; ++c)
        for (int i = 0; i < side; ++i)
            for (int k = 0; k < side; ++k, ++x) {
                bool inside = i >= top && i < top + height && k >= left && k < left + width;
                bad += *x != (inside ? to.pixel[3 * ((i - top) * width + k - left) + c] : 114);
            }
    CU_ASSERT_EQUAL(bad, 0);
    image_fini(&from);
    image_fini(&to);
    image_decoder_free(&decoder);
    image_resampler_free(&resampler);
    mem_free(&bytes);
}

static void squares_have_margins(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    static const struct {
        int side, wide[2], low[2];
    } cases[] = {{32, {32, 27}, {32, 24}}, {21, {21, 18}, {21, 16}}, {8, {8, 7}, {8, 6}}};
    for (int i = 0; i < 3; ++i) {
        const int side = cases[i].side;
        const char *out = import_three("squares.h5", side);
        DataSet *set = mem_new(sizeof *set);
        DataBoxes b;
        int64_t n;
        uint8_t *x = array_of(out, "/x", H5T_NATIVE_UINT8, 1, &n);
        CU_ASSERT_EQUAL_FATAL(n, 3 * 3 * side * side);
        check_square(x, "exif6.jpg", side, cases[i].low[0], cases[i].low[1]);
        check_square(x + 2 * 3 * side * side, "plain.png", side, cases[i].wide[0],
                     cases[i].wide[1]);
        CHECK_OK(data_set_open(set, NULL, out));
        CHECK_OK(data_boxes_read(&b, set));
        CU_ASSERT_DOUBLE_EQUAL(b.fit[0], side / 12.0, 1e-15);
        CU_ASSERT_EQUAL(b.fit[1], 0);
        CU_ASSERT_EQUAL(b.fit[2], (side - cases[i].low[1]) / 2);
        data_boxes_free(&b);
        mem_free(&set);
        mem_free(&x);
    }
}

static void damage(const char *path, int64_t offset, const void *bytes, size_t count)
{
    int fd = open(path, O_WRONLY);
    CU_ASSERT_EQUAL(pwrite(fd, bytes, count, (off_t)offset), (ssize_t)count);
    close(fd);
}

static void damaged_labels_are_refused(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    static const struct {
        BoxArray array;
        int64_t row, value;
        const char *why;
    } cases[] = {{BOX_ARRAY_START, 1, 4, "/box_start does not rise"},
                 {BOX_ARRAY_START, 3, 2, "/box_start does not rise"},
                 {BOX_ARRAY_CLASS, 1, 2, "box 1 has no class"},
                 {BOX_ARRAY_CROWD, 2, 2, "box 2 is neither around a group nor not"},
                 {BOX_ARRAY_IMAGE_ID, 1, 4, "picture 1 has an /image_id that does not rise"},
                 {BOX_ARRAY_CATEGORY_ID, 1, 3, "class 1 has a /category_id that does not rise"},
                 {BOX_ARRAY_AREA, 0, -1, "box 0 has an impossible area"},
                 {BOX_ARRAY_SIZE, 2, 0, "picture 2 has an impossible /size"}};
    DataSet *set = mem_new(sizeof *set);
    char before[DATA_FINGERPRINT], after[DATA_FINGERPRINT];
    DataBoxes b;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const char *out = import_three("damaged.h5", 0);
        CHECK_OK(data_set_open(set, NULL, out));
        CHECK_OK(data_set_fingerprint(set, before));
        const DataArray *a = &set->box[cases[i].array];
        damage(out, a->offset + cases[i].row * a->sample_bytes, &cases[i].value,
               a->type == ELEM_U8    ? 1
               : a->type == ELEM_I32 ? 4
                                     : 8);
        CHECK_FAILS(data_boxes_read(&b, set), ERR_DATA, cases[i].why);
        CU_ASSERT_NOT_EQUAL(data_set_check(set, 0), OK);
        CHECK_OK(data_set_fingerprint(set, after));
        CU_ASSERT_STRING_NOT_EQUAL(before, after);
    }
    /* another size than the picture has */
    const char *out = import_three("damaged.h5", 0);
    CHECK_OK(data_set_open(set, NULL, out));
    damage(out, set->box[BOX_ARRAY_SIZE].offset, (int32_t[]){10}, 4);
    CHECK_OK(data_boxes_read(&b, set));
    data_boxes_free(&b);
    CHECK_FAILS(data_set_check(set, 0), ERR_DATA,
                "sample 0: has 12x9 pixels, its boxes are of 12x10");
    mem_free(&set);
}

static void check_boxes(const char *out, int64_t count, const double *box, const int32_t *class)
{
    DataSet *set = mem_new(sizeof *set);
    DataBoxes b;
    CHECK_OK(data_set_open(set, NULL, out));
    CHECK_OK(data_boxes_read(&b, set));
    CU_ASSERT_EQUAL_FATAL(b.boxes, count);
    for (int64_t i = 0; i < 4 * count; ++i) CU_ASSERT_DOUBLE_EQUAL(b.box[i], box[i], 1e-12);
    CU_ASSERT_EQUAL(memcmp(b.class, class, (size_t)count * sizeof *class), 0);
    data_boxes_free(&b);
    mem_free(&set);
}

static void yolo_is_read(void)
{
    static const char lines[] = "2 0.5 0.5 1 0.5\n\n 0 .1 .2 .5 .2 .3 1 \r\n1 0.5 0.5 0.2 nan\n";
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    const char *dir = in_scratch("yolo"), *out = in_scratch("yolo.h5");
    make_folder(dir);
    copy("plain.png", at(dir, "a.png"));
    write_bytes(at(dir, "a.txt"), lines, strlen(lines));
    BoxImport import = {.format = &box_format_yolo,
                        .images = dir,
                        .out = out,
                        .allow_empty = true,
                        .force = true,
                        .threads = 1};
    CHECK_FAILS(data_import_boxes(&import, NULL), ERR_DATA, "a.txt: line 4: a number is not");
    import.skip_broken = true;
    CHECK_OK(data_import_boxes(&import, NULL));
    check_boxes(out, 2, (double[]){0, 4.5, 21, 9, 2.1, 3.6, 8.4, 14.4}, (int32_t[]){2, 0});
}

static void voc_is_read(void)
{
    static const char xml[] =
        "<annotation><filename>b.png</filename><size><width>21</width><height>18</height></size>"
        "<object><name>z</name><bndbox><xmax>21</xmax><xmin>1</xmin><ymin>3</ymin><ymax>3</ymax>"
        "</bndbox></object><object><name>&lt;a&gt;</name><bndbox><xmin>2</xmin><ymin>1.5</ymin>"
        "<xmax>4</xmax><ymax>18</ymax></bndbox></object></annotation>";
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    const char *dir = in_scratch("voc"), *out = in_scratch("voc.h5");
    make_folder(dir);
    make_folder(at(dir, "Annotations"));
    make_folder(at(dir, "JPEGImages"));
    copy("plain.png", at(dir, "JPEGImages/b.png"));
    BoxImport import = {
        .format = &box_format_voc, .images = dir, .out = out, .force = true, .threads = 1};
    /* each beginning of the file is refused, and none is read beyond its end */
    for (size_t bytes = 0; bytes < strlen(xml); bytes += 7) {
        write_bytes(at(dir, "Annotations/b.xml"), xml, bytes);
        CU_ASSERT_EQUAL(data_import_boxes(&import, NULL), ERR_DATA);
    }
    write_bytes(at(dir, "Annotations/b.xml"), xml, strlen(xml));
    CHECK_OK(data_import_boxes(&import, NULL));
    check_boxes(out, 2, (double[]){0, 2, 21, 1, 1, 0.5, 3, 17.5}, (int32_t[]){1, 0});
    CU_ASSERT_TRUE(class_is(out, 0, "<a>"));
}

static void labels_of_samples_are_refused(void)
{
    if (pictures_missing()) TEST_SKIP("weft was built without a decoder");
    DataSet *set = mem_new(sizeof *set);
    char list[600];
    const char *out = import_three("refused.h5", 16);
    CHECK_OK(data_set_open(set, NULL, out));
    CHECK_OK(data_set_check_labels(set));
    Reader *reader;
    int32_t label;
    uint8_t x[3 * 16 * 16];
    CHECK_OK(reader_new(&reader, set));
    CHECK_FAILS(reader_get(reader, 0, x, &label, NULL), ERR_DATA, "is a set of boxes");
    CHECK_OK(reader_get(reader, 0, x, NULL, NULL));
    reader_free(&reader);
    snprintf(list, sizeof list, "%s\n%s", out, import_three("refused2.h5", 16));
    CHECK_FAILS(data_set_open(set, NULL, list), ERR_DATA, "must be one file");
    mem_free(&set);
}

/* Random boxes, for benchmarks, are about as many as COCO's, of all classes, and inside. */
static void random_boxes_are_usual(void)
{
    DataSet *set = mem_new(sizeof *set);
    const char *out = in_scratch("random.h5");
    DataBoxes b;
    CHECK_OK(data_import_random_boxes(out, shape_of(4, 1, 3, 40, 40), 5, 200, 1));
    CHECK_OK(data_set_open(set, NULL, out));
    CHECK_OK(data_set_check(set, 0));
    CHECK_OK(data_boxes_read(&b, set));
    CU_ASSERT_EQUAL(set->classes, 5);
    CU_ASSERT_TRUE(b.boxes > 6 * 200 && b.boxes < 8 * 200);
    int seen = 0;
    double least = 40, most = 0;
    for (int64_t k = 0; k < b.boxes; ++k) {
        const double *box = b.box + 4 * k;
        seen |= 1 << b.class[k];
        for (int i = 0; i < 2; ++i) {
            CU_ASSERT_TRUE(box[i] >= 0 && box[2 + i] >= 2 && box[i] + box[2 + i] <= 40 + 1e-9);
            if (box[2 + i] < least) least = box[2 + i];
            if (box[2 + i] > most) most = box[2 + i];
        }
    }
    CU_ASSERT_EQUAL(seen, 31);
    CU_ASSERT_TRUE(least < 2.5 && most > 35);
    data_boxes_free(&b);
    mem_free(&set);
}

TEST_MAIN("boxes", {"arrays are read", arrays_are_read},
          {"squares have margins", squares_have_margins},
          {"damaged labels are refused", damaged_labels_are_refused},
          {"yolo is read", yolo_is_read}, {"voc is read", voc_is_read},
          {"labels of samples are refused", labels_of_samples_are_refused},
          {"random boxes are usual", random_boxes_are_usual})
