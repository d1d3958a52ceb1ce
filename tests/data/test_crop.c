/* Tests the choice of a picture's part: sizes and offsets like torchvision's, the distribution of
 * random resized crops and erased rectangles, and mixing in pairs. Seeds are fixed. */
#include "data/data_private.h"
#include "encoded.h"

#include <math.h>

static DataSet set_of(int side)
{
    return (DataSet){.kind = DATA_IMAGE,
                     .encoded = true,
                     .channels = 3,
                     .height = side,
                     .width = side,
                     .path = "set"};
}

/* Expected values are torchvision's Resize(n) and CenterCrop(c) of width x height. */
static void test_evaluation(void)
{
    static const struct {
        int width, height, resize, crop, to_width, to_height, x, y;
    } want[] = {
        {500, 375, 256, 224, 341, 256, 58, 16},
        {375, 500, 256, 224, 256, 341, 16, 58},
        {500, 375, 232, 224, 309, 232, 42, 4},
        {33, 47, 7, 6, 7, 9, 0, 2},
        {47, 33, 8, 5, 11, 8, 3, 2},
        {64, 64, 30, 37, 30, 30, -3, -3},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; ++i) {
        DataSet set = set_of(want[i].crop);
        Config c = config_pictures();
        c.data.resize = want[i].resize;
        c.data.center_crop = want[i].crop;
        PictureView v;
        CHECK_OK(view_choose_evaluation(&v, &set, &c, want[i].width, want[i].height, "picture"));
        CU_ASSERT(v.width == want[i].to_width && v.height == want[i].to_height);
        CU_ASSERT(v.kept.x == want[i].x && v.kept.y == want[i].y);
    }
    /* 224 out of 256 is the default. */
    DataSet set = set_of(224);
    Config c = config_pictures();
    c.data.random_resized_crop = 224;
    PictureView v;
    CHECK_OK(view_choose_evaluation(&v, &set, &c, 500, 375, "picture"));
    CU_ASSERT(v.height == 256 && v.width == 341 && v.kept.width == 224);
}

/* One pixel by ten million, resized to 256, would exceed an int. */
static void test_thread(void)
{
    enum { LONG = 10000000 };
    DataSet set = set_of(224);
    Config c = config_pictures();
    PictureView v;
    c.data.resize = 256;
    c.data.random_crop = 224;
    CHECK_FAILS(view_choose_evaluation(&v, &set, &c, 1, LONG, "picture"), ERR_DATA,
                "picture: 1x10000000 pixels are too narrow to be resized to 256");
    CHECK_FAILS(view_choose_training(&v, &set, &c, augment_key(&c, 0, 1), LONG, 1, "picture"),
                ERR_DATA, "picture: 10000000x1 pixels are too narrow to be resized to 256");
    /* A long picture whose size fits an int is accepted; only its centre is made. */
    CHECK_OK(view_choose_evaluation(&v, &set, &c, LONG, 2, "picture"));
    CU_ASSERT(v.width == 1280000000 && v.height == 256 && v.kept.x == 639999888);
}

typedef struct Moments {
    double sum, squares;
    int count;
} Moments;

static void add(Moments *m, double v)
{
    m->sum += v;
    m->squares += v * v;
    ++m->count;
}

/* Returns how many standard errors the mean is from `want`. */
static double off(const Moments *m, double want)
{
    double mean = m->sum / m->count, variance = m->squares / m->count - mean * mean;
    return fabs(mean - want) / sqrt(variance / m->count);
}

/* In a square every first try fits unless the area is large; with scale up to .5 and no extreme
 * ratio all fit, so area, ratio and position are as drawn. */
static void test_resized_crop(void)
{
    enum { N = 20000, SIDE = 1000 };
    double scale[] = {0.1, 0.5}, ratio[] = {0.75, 4.0 / 3};
    Config c = config_pictures();
    DataSet set = set_of(224);
    Moments area = {0}, area2 = {0}, aspect = {0}, aspect2 = {0}, x = {0}, y = {0};
    c.data.random_resized_crop = 224;
    c.data.crop_scale = (ConfigList){2, scale};
    c.data.crop_ratio = (ConfigList){2, ratio};
    for (int i = 0; i < N; ++i) {
        PictureView v;
        CHECK_OK(view_choose_training(&v, &set, &c, augment_key(&c, 1, i), SIDE, SIDE, "picture"));
        double a = (double)v.box.width * v.box.height / ((double)SIDE * SIDE);
        double r = log((double)v.box.width / v.box.height) / log(4.0 / 3);
        add(&area, a);
        add(&area2, (a - 0.3) * (a - 0.3));
        add(&aspect, r);
        add(&aspect2, r * r);
        add(&x, (double)v.box.x / (SIDE - v.box.width));
        add(&y, (double)v.box.y / (SIDE - v.box.height));
        CU_ASSERT(v.box.x >= 0 && v.box.x + v.box.width <= SIDE);
        CU_ASSERT(v.width == 224 && v.kept.width == 224);
    }
    CU_ASSERT(off(&area, 0.3) < 4 && off(&area2, 0.16 / 12) < 4);
    CU_ASSERT(off(&aspect, 0) < 4 && off(&aspect2, 1.0 / 3) < 4);
    CU_ASSERT(off(&x, 0.5) < 4 && off(&y, 0.5) < 4);
}

/* No try fits a strip: the centre is used, cropped as the ratio requires. */
static void test_strip(void)
{
    double scale[] = {1, 1};
    Config c = config_pictures();
    DataSet set = set_of(224);
    PictureView v;
    c.data.random_resized_crop = 224;
    c.data.crop_scale = (ConfigList){2, scale};
    CHECK_OK(view_choose_training(&v, &set, &c, augment_key(&c, 0, 1), 1000, 100, "picture"));
    CU_ASSERT(v.box.width == 133 && v.box.height == 100 && v.box.x == 433 && v.box.y == 0);
    CHECK_OK(view_choose_training(&v, &set, &c, augment_key(&c, 0, 1), 90, 900, "picture"));
    CU_ASSERT(v.box.width == 90 && v.box.height == 120 && v.box.y == 390);
}

static void test_random_crop(void)
{
    Config c = config_pictures();
    DataSet set = set_of(224);
    PictureView v;
    int least = 1000, most = -1;
    c.data.random_crop = 224;
    c.data.resize = 256;
    for (int i = 0; i < 2000; ++i) {
        CHECK_OK(view_choose_training(&v, &set, &c, augment_key(&c, 0, i), 500, 375, "picture"));
        CU_ASSERT(v.width == 341 && v.height == 256 && v.box.width == 500);
        if (v.kept.x < least) least = v.kept.x;
        if (v.kept.x > most) most = v.kept.x;
    }
    CU_ASSERT(least == 0 && most == 341 - 224);
    c.data.resize = 200;
    CHECK_FAILS(
        view_choose_training(&v, &set, &c, augment_key(&c, 0, 0), 500, 375, "picture"), ERR_DATA,
        "picture: is 500x375, and resized to data.resize it is too small for data.random_crop 224");
}

static void test_erasing(void)
{
    enum { N = 20000, SIDE = 200 };
    Config c = config_pictures();
    DataSet set = set_of(SIDE);
    Moments share = {0}, area = {0};
    c.data.erasing = 0.25;
    for (int i = 0; i < N; ++i) {
        ImageBox b = choose_erasing(&set, &c, augment_key(&c, 3, i));
        add(&share, b.height > 0);
        if (b.height) add(&area, (double)b.width * b.height / ((double)SIDE * SIDE));
        CU_ASSERT(b.x >= 0 && b.y >= 0 && b.x + b.width <= SIDE && b.y + b.height <= SIDE);
    }
    CU_ASSERT(off(&share, 0.25) < 4);
    CU_ASSERT(off(&area, (0.02 + 0.33) / 2) < 4);
}

/* Shares follow Beta(a, a): mean 1/2, variance 1 / (4 (2a + 1)); a cut's share is the area outside
 * its box. */
static void test_mix_shares(void)
{
    static const double alpha[] = {0.2, 1, 3};
    DataSet set = set_of(64);
    for (int k = 0; k < 3; ++k) {
        Config c = config_pictures();
        Moments mean = {0}, spread = {0};
        int cuts = 0;
        c.data.mixup = c.data.cutmix = alpha[k];
        for (int i = 0; i < 20000; ++i) {
            MicroBatch b = {.epoch = 1, .step = i / 4, .micro = i % 4};
            Mix m = mix_choose(&set, &c, &b);
            cuts += m.is_cutmix;
            if (m.is_cutmix)
                CU_ASSERT(fabs(1 - (double)m.box.width * m.box.height / 4096 - (double)m.share) <
                          1e-6);
            if (m.is_cutmix) continue;
            add(&mean, (double)m.share);
            add(&spread, ((double)m.share - 0.5) * ((double)m.share - 0.5));
        }
        CU_ASSERT(off(&mean, 0.5) < 4);
        CU_ASSERT(off(&spread, 1 / (4 * (2 * alpha[k] + 1))) < 4);
        CU_ASSERT(cuts > 9700 && cuts < 10300);
    }
}

/* Each row is mixed with the one before it, the first with the last; only real rows. */
static void test_mix_rows(void)
{
    DataSet set = {.kind = DATA_IMAGE, .channels = 1, .height = 2, .width = 2};
    float x[16] = {1, 1, 1, 1, 2, 2, 2, 2, 4, 4, 4, 4, 0, 0, 0, 0}, spare[4];
    int32_t label[4] = {5, 6, 7, 0}, other[4] = {0};
    MicroBatch b = {.x = x, .labels = label, .labels_other = other, .rows = 3};
    mix_images(&(Mix){.share = 0.75f}, &set, &b, spare);
    mix_labels(&b);
    CU_ASSERT(x[0] == 1.75f && x[4] == 1.75f && x[8] == 3.5f && x[12] == 0);
    CU_ASSERT(other[0] == 7 && other[1] == 5 && other[2] == 6 && other[3] == 0);
    mix_images(&(Mix){.is_cutmix = true, .box = {1, 0, 1, 2}}, &set, &b, spare);
    CU_ASSERT(x[0] == 1.75f && x[1] == 3.5f && x[3] == 3.5f && x[9] == 1.75f && x[8] == 3.5f);
}

TEST_MAIN("view", {"evaluation's sizes and offsets", test_evaluation}, {"a thread", test_thread},
          {"random resized crops", test_resized_crop}, {"no crop fits", test_strip},
          {"random crops", test_random_crop}, {"erased rectangles", test_erasing},
          {"shares of mixed images", test_mix_shares}, {"mixed rows", test_mix_rows})
