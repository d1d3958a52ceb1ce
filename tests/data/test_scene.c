/* Tests scenes of a detector: boxes lie where their pixels are, in letterboxes, mosaics, scaled,
 * shifted and mirrored; micro-batches carry the same boxes in any cut, on any number of threads,
 * and count the matches of the whole batch. Each picture is black, and its boxes are white. */
#include "data/picture/scene.h"
#include "fixture.h"

#include <math.h>

enum { PICTURES = 12, SIDE = 64, BOXES = 2 * PICTURES, MOST = 8, TRIES = 40 };

typedef struct Arrays {
    uint8_t x[PICTURES][3][SIDE][SIDE];
    int32_t size[PICTURES][2], class[BOXES];
    double fit[PICTURES][3], box[BOXES][4], area[BOXES];
    int64_t start[PICTURES + 1], id[BOXES], image_id[PICTURES], category_id[3];
    uint8_t crowd[BOXES];
} Arrays;

/* Sizes of pictures as they were before they were resized to the square. */
static int wide_of(int i)
{
    return i % 3 == 0 ? 2 * SIDE : SIDE;
}

static int high_of(int i)
{
    return i % 3 == 1 ? SIDE / 2 : i % 3 == 0 ? SIDE : SIDE;
}

/* Draws picture i and its two boxes, of which the second is around a group in every fourth
 * picture. Boxes do not overlap, and the second is below the first. */
static void draw(Arrays *a, int i)
{
    const int width = wide_of(i), height = high_of(i);
    const ImageBox in = letterbox(width, height, SIDE);
    const int w = in.width, h = in.height, left = in.x, top = in.y;
    const double scale = (double)w / width;
    memset(a->x[i], LETTERBOX_GREY, sizeof a->x[i]);
    for (int c = 0; c < 3; ++c)
        for (int y = 0; y < h; ++y) memset(&a->x[i][c][top + y][left], 0, (size_t)w);
    a->size[i][0] = height, a->size[i][1] = width;
    a->fit[i][0] = scale, a->fit[i][1] = left, a->fit[i][2] = top;
    a->image_id[i] = 10 + 3 * i;
    a->start[i + 1] = 2 * (i + 1);
    for (int k = 0; k < 2; ++k) {
        const int box = 2 * i + k, x = 4 + 2 * i, y = k ? h / 2 + 2 : 2, bw = 20, bh = h / 2 - 6;
        for (int c = 0; c < 3; ++c)
            for (int r = y; r < y + bh; ++r)
                memset(&a->x[i][c][top + r][left + x], 255, (size_t)bw);
        const double at[4] = {x / scale, y / scale, bw / scale, bh / scale};
        memcpy(a->box[box], at, sizeof at);
        a->class[box] = (i + k) % 3;
        a->area[box] = 1;
        a->id[box] = box + 1;
        a->crowd[box] = k == 1 && i % 4 == 3;
    }
}

static DataSet *open_scenes(const Config *c)
{
    const char *path = in_scratch("scenes.h5");
    Arrays *a = mem_new(sizeof *a);
    DataSet *set = mem_new(sizeof *set);
    for (int i = 0; i < PICTURES; ++i) draw(a, i);
    for (int k = 0; k < 3; ++k) a->category_id[k] = 2 * k + 1;
    hid_t f = h5_new(path);
    h5_put_word(f, "format", "weft-data");
    h5_put_word(f, "kind", "boxes");
    h5_put_int(f, "version", 1);
    h5_put_int(f, "classes", 3);
    const hsize_t n = PICTURES, m = BOXES;
    const H5Array arrays[] = {
        {"x", H5T_STD_U8LE, H5T_NATIVE_UINT8, 4, {n, 3, SIDE, SIDE}, {0}, 0, a->x},
        {"size", H5T_STD_I32LE, H5T_NATIVE_INT32, 2, {n, 2}, {0}, 0, a->size},
        {"fit", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, {n, 3}, {0}, 0, a->fit},
        {"boxes", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 2, {m, 4}, {0}, 0, a->box},
        {"box_class", H5T_STD_I32LE, H5T_NATIVE_INT32, 1, {m}, {0}, 0, a->class},
        {"box_start", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {n + 1}, {0}, 0, a->start},
        {"box_area", H5T_IEEE_F64LE, H5T_NATIVE_DOUBLE, 1, {m}, {0}, 0, a->area},
        {"box_crowd", H5T_STD_U8LE, H5T_NATIVE_UINT8, 1, {m}, {0}, 0, a->crowd},
        {"box_id", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {m}, {0}, 0, a->id},
        {"image_id", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {n}, {0}, 0, a->image_id},
        {"category_id", H5T_STD_I64LE, H5T_NATIVE_INT64, 1, {3}, {0}, 0, a->category_id}};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; ++i) h5_put(f, arrays[i]);
    H5Fclose(f);
    mem_free(&a);
    CHECK_OK(data_set_open(set, c, path));
    return set;
}

static Config config_of(int64_t side, double mosaic, double *scale, double shift, bool flip)
{
    Config c = config_plain();
    c.data.letterbox = side;
    c.data.mosaic = mosaic;
    if (scale) c.data.affine_scale = (ConfigList){.value = scale, .count = 2};
    c.data.affine_shift = shift;
    c.data.augment = flip ? AUGMENT_FLIP : 0;
    c.run.seed = 5;
    c.train.loss = loss_number("yolo");
    return c;
}

/* ---- geometry ---- */

static void test_letterbox(void)
{
    Config c = config_of(32, 0, NULL, 0, false);
    DataSet *set = open_scenes(&c);
    DataBoxes boxes;
    CHECK_OK(data_boxes_read(&boxes, set));
    CU_ASSERT(set->height == 32 && set->width == 32 && set->box_most == 2);
    const SceneSource source = {set, &c, &boxes};
    float row[MOST][5];
    /* 128 x 64 pixels become 32 x 16, with margins of 8 above and below */
    Scene s = scene_choose(&source, true, 3, 6);
    CU_ASSERT(s.count == 1 && !s.changed && !s.flip && s.part[0].place.y0 == 8 &&
              s.part[0].place.x1 == 32 && s.part[0].place.y1 == 24);
    CU_ASSERT_EQUAL(scene_rows(&source, &s, row[0]), 2);
    /* the first box: x 32, y 4, 40 x 20 of 128 x 64 */
    const float want[5] = {0, 52.0f / 128, (8 + 14.0f / 4) / 32, 40.0f / 128, 20.0f / 4 / 32};
    for (int i = 0; i < 5; ++i) CU_ASSERT_DOUBLE_EQUAL(row[0][i], want[i], 1e-6);
    const BoxFit fit = data_box_fit(set, 128, 64);
    CU_ASSERT(fit.left == 0 && fit.top == 8 && fit.scale[0] == 0.25 && fit.scale[1] == 0.25);
    /* a box around a group is left out */
    s = scene_choose(&source, false, 0, 3);
    CU_ASSERT_EQUAL(scene_rows(&source, &s, row[0]), 1);
    data_boxes_free(&boxes);
    mem_free(&set);
}

/* Mean of a channel of a rectangle of an input, in pixels. */
static double mean_of(const float *x, int side, double x0, double y0, double x1, double y1)
{
    double sum = 0;
    int count = 0;
    for (int y = (int)ceil(y0); y < (int)floor(y1); ++y)
        for (int i = (int)ceil(x0); i < (int)floor(x1); ++i, ++count)
            sum += (double)x[y * side + i];
    return count > 0 ? sum / count : NAN;
}

/* Pixels inside of boxes are white, and those just outside are not. */
static void check_pixels(const float *x, int side, const float *row)
{
    const double cx = (double)row[1] * side, cy = (double)row[2] * side;
    const double w = (double)row[3] * side / 2, h = (double)row[4] * side / 2;
    const double in = mean_of(x, side, cx - w + 1.5, cy - h + 1.5, cx + w - 1.5, cy + h - 1.5);
    if (!isnan(in)) CU_ASSERT(in > 0.95);
    const double left = cx - w - 4, right = cx + w + 4;
    if (left >= 0) CU_ASSERT(mean_of(x, side, left, cy - h + 1, left + 2.5, cy + h - 1) < 0.5);
    if (right < side) CU_ASSERT(mean_of(x, side, right - 2.5, cy - h + 1, right, cy + h - 1) < 0.5);
}

static void check_scenes(const Config *c, bool several)
{
    DataSet *set = open_scenes(c);
    DataBoxes boxes;
    Reader *reader;
    const int side = (int)set->height;
    CHECK_OK(data_boxes_read(&boxes, set));
    CHECK_OK(reader_new(&reader, set));
    PictureConverter *converter = picture_converter_new(set, c);
    const SceneSource source = {set, c, &boxes};
    float *x = mem_new((size_t)(3 * side * side) * sizeof *x), row[MOST][5];
    int64_t rows = 0, flips = 0;
    for (int t = 0; t < TRIES; ++t) {
        const Scene s = scene_choose(&source, true, t, t % PICTURES);
        const int64_t n = scene_rows(&source, &s, row[0]);
        CHECK_OK(picture_prepare_scene(converter, reader, &boxes, true, t, t % PICTURES, x));
        CU_ASSERT_EQUAL(s.count, several ? 4 : 1);
        CU_ASSERT(n <= data_box_most(set, c, true));
        for (int64_t k = 0; k < n; ++k) check_pixels(x, side, row[k]);
        rows += n;
        flips += s.flip;
    }
    CU_ASSERT(rows > TRIES);
    CU_ASSERT((flips > TRIES / 4 && flips < 3 * TRIES / 4) == (c->data.augment != 0));
    mem_free(&x);
    picture_converter_free(&converter);
    reader_free(&reader);
    data_boxes_free(&boxes);
    mem_free(&set);
}

static void test_pixels(void)
{
    double scale[2] = {0.6, 1.6};
    const Config plain = config_of(96, 0, NULL, 0, true), mosaic = config_of(96, 1, NULL, 0, false);
    const Config all = config_of(96, 1, scale, 0.2, true), one = config_of(96, 0, scale, 0.2, true);
    check_scenes(&plain, false);
    check_scenes(&mosaic, true);
    check_scenes(&all, true);
    check_scenes(&one, false);
}

/* ---- micro-batches ---- */

/* grids of 8 x 8 and 4 x 4 cells, with two anchors each */
static const BoxGrid grids[2] = {
    {.columns = 8, .rows = 8, .anchors = 2, .anchor = {{2, 2}, {4, 3}}},
    {.columns = 4, .rows = 4, .anchors = 2, .anchor = {{2, 2}, {4, 3}}}};

enum { STEPS = 5, BATCH = 8 };
/* Boxes of all samples of some steps, and the matches of each step. */
typedef struct Seen {
    int64_t count[STEPS][BATCH], matches[STEPS][3];
    float row[STEPS][BATCH][MOST][5];
} Seen;

static void read_steps(Seen *seen, const DataSet *set, const Config *c, int micro, int workers)
{
    LoaderPlan plan = {.batch = BATCH,
                       .micro_batch = micro,
                       .micro_count = BATCH / micro,
                       .training = true,
                       .slots = 3,
                       .workers = workers,
                       .grid = {grids[0], grids[1]},
                       .levels = 2};
    Loader *l;
    const MicroBatch *b;
    memset(seen, 0, sizeof *seen);
    CHECK_OK(loader_new(&l, set, c, plan));
    for (int i = 0; i < STEPS * BATCH / micro; ++i) {
        CHECK_OK(loader_next(l, &b, NULL));
        const int step = i / (BATCH / micro);
        memcpy(seen->matches[step], b->matches, sizeof seen->matches[step]);
        CU_ASSERT_EQUAL(b->box_start[0], 0);
        for (int r = 0; r < micro; ++r) {
            const int64_t n = b->box_start[r + 1] - b->box_start[r];
            const int at = b->micro * micro + r;
            CU_ASSERT_FATAL(n >= 0 && n <= MOST && (r < b->rows || n == 0));
            seen->count[step][at] = n;
            memcpy(seen->row[step][at], b->box_row + b->box_start[r] * 5,
                   (size_t)n * 5 * sizeof(float));
        }
        loader_release(l);
    }
    loader_free(&l);
}

/* Steps 1 and 3 are the second half of an epoch, with 4 samples. */
static void test_micro_batches(void)
{
    double scale[2] = {0.5, 1.5};
    Config c = config_of(SIDE, 0.5, scale, 0.1, true);
    DataSet *set = open_scenes(&c);
    Seen *want = mem_new(sizeof *want), *got = mem_new(sizeof *got);
    read_steps(want, set, &c, BATCH, 1);
    for (int s = 0; s < STEPS; ++s) {
        int64_t sum[3] = {0, 0, s % 2 ? PICTURES - BATCH : BATCH};
        for (int i = 0; i < BATCH; ++i)
            for (int l = 0; l < 2; ++l)
                sum[l] += yolo_count(&grids[l], want->row[s][i][0], want->count[s][i]);
        CU_ASSERT(memcmp(sum, want->matches[s], sizeof sum) == 0);
        CU_ASSERT(sum[0] > 0 && sum[1] > 0);
    }
    for (int micro = 1; micro <= 4; micro *= 2) {
        read_steps(got, set, &c, micro, micro);
        CU_ASSERT(memcmp(want, got, sizeof *want) == 0);
    }
    mem_free(&want);
    mem_free(&got);
    mem_free(&set);
}

static void test_refused(void)
{
    Config c = config_of(SIDE, 0, NULL, 0, false);
    c.data.center_crop = 32;
    const char *path = in_scratch("scenes.h5");
    DataSet *set = mem_new(sizeof *set);
    CHECK_FAILS(data_set_open(set, &c, path), ERR_CONFIG, "data.center_crop");
    c.data.center_crop = 0;
    c.data.augment = AUGMENT_CROP;
    CHECK_FAILS(data_set_open(set, &c, path), ERR_CONFIG, "data.augment");
    c.data.augment = 0;
    CHECK_OK(data_set_open(set, &c, path));
    c.train.loss = loss_number("softmax");
    Loader *l = NULL;
    LoaderPlan plan = {
        .batch = 2, .micro_batch = 2, .micro_count = 1, .training = true, .slots = 2};
    CHECK_FAILS(loader_new(&l, set, &c, plan), ERR_CONFIG, "set train.loss: yolo");
    mem_free(&set);
}

TEST_MAIN("scenes", {"letterbox", test_letterbox},
          {"boxes are where their pixels are", test_pixels}, {"micro-batches", test_micro_batches},
          {"refused", test_refused})
