/* Tests augmentation: compares it with a plain pixel-by-pixel version of its definition; it depends
 * on sample and epoch only; every choice occurs about equally often; and it is fast. */
#include "fixture.h"

#include <math.h>
#include <time.h>

enum { H = 9, W = 7, C = 2 };

static DataSet set_of(ElementType type, int64_t c, int64_t h, int64_t w)
{
    DataSet set = {.kind = DATA_IMAGE, .channels = c, .height = h, .width = w, .scale = 1.0f / 255};
    set.x.type = type;
    set.has_stats = true;
    set.stats_count = (int)c;
    for (int i = 0; i < c; ++i) set.mean[i] = 0.3f + 0.1f * (float)i, set.std[i] = 0.5f;
    return set;
}

/* Finds the crop and flip that give `out` by trying all; returns how many fit (1 if they give
 * different pictures). */
static int crops_that_fit(const uint8_t *raw, const DataSet *set, int pad, const float *out,
                          int *dy, int *dx, int *flip)
{
    int fits = 0;
    for (int y0 = -pad; y0 <= pad; ++y0)
        for (int x0 = -pad; x0 <= pad; ++x0)
            for (int f = 0; f < 2; ++f) {
                bool same = true;
                for (int i = 0; i < C * H * W && same; ++i) {
                    int c = i / (H * W), y = i / W % H + y0, x = i % W;
                    x = (f ? W - 1 - x : x) + x0;
                    bool inside = y >= 0 && y < H && x >= 0 && x < W;
                    double v = inside ? raw[c * H * W + y * W + x] / 255.0 : 0.0;
                    v = (v - (double)set->mean[c]) / (double)set->std[c];
                    same = fabs(v - (double)out[i]) < 1e-5;
                }
                if (same) ++fits, *dy = y0, *dx = x0, *flip = f;
            }
    return fits;
}

static void crop_and_flip(void)
{
    enum { PAD = 2, TURNS = 2000 };
    uint8_t raw[C * H * W];
    float out[C * H * W];
    int count[2 * PAD + 1][2 * PAD + 1][2] = {{{0}}}, dy = 0, dx = 0, flip = 0, wrong = 0;
    for (int i = 0; i < C * H * W; ++i) raw[i] = (uint8_t)(i * 2 + 1);
    DataSet set = set_of(ELEM_U8, C, H, W);
    Config c = config_plain();
    c.data.augment = AUGMENT_FLIP | AUGMENT_CROP;
    c.data.crop_pad = PAD;
    for (int s = 0; s < TURNS; ++s) {
        augment_sample(&set, &c, true, 3, s, raw, out);
        wrong += crops_that_fit(raw, &set, PAD, out, &dy, &dx, &flip) != 1;
        ++count[dy + PAD][dx + PAD][flip];
    }
    CU_ASSERT_EQUAL(wrong, 0);
    /* 40 of each are expected, with deviation 6.3. */
    for (int i = 0; i < 50; ++i) {
        int n = (&count[0][0][0])[i];
        CU_ASSERT_TRUE(n > 8 && n < 72);
    }
}

/* The picture is all ones and has no mean, so zeros show the square, whose centre may be
 * anywhere. */
static void cutout(void)
{
    enum { SIZE = 4, TURNS = 3000 };
    uint8_t raw[C * H * W];
    float out[C * H * W];
    int corner = 0, whole = 0;
    memset(raw, 255, sizeof raw);
    DataSet set = set_of(ELEM_U8, C, H, W);
    Config c = config_plain();
    c.data.augment = AUGMENT_CUTOUT;
    c.data.cutout_size = SIZE;
    for (int s = 0; s < TURNS; ++s) {
        int zero = 0, y0 = H, y1 = -1, x0 = W, x1 = -1;
        augment_sample(&set, &c, true, 0, s, raw, out);
        for (int i = 0; i < H * W; ++i) {
            if ((out[i] == 0.0f) != (out[H * W + i] == 0.0f)) CU_FAIL("channels differ");
            if (out[i] != 0.0f) continue;
            ++zero;
            y0 = i / W < y0 ? i / W : y0, y1 = i / W > y1 ? i / W : y1;
            x0 = i % W < x0 ? i % W : x0, x1 = i % W > x1 ? i % W : x1;
        }
        if (zero != (y1 - y0 + 1) * (x1 - x0 + 1)) CU_FAIL("not a rectangle");
        corner += y0 == 0 && x0 == 0 && zero == 4;
        whole += zero == SIZE * SIZE;
    }
    /* The square is cut in half by the edge. */
    CU_ASSERT_TRUE(corner > TURNS / (H * W) / 3);
    /* A share of (H-3)(W-3)/HW = 0.38 is expected. */
    CU_ASSERT_TRUE(whole > TURNS / 4);
}

static void keyed(void)
{
    uint8_t raw[C * H * W];
    float a[C * H * W], b[C * H * W];
    int differ_sample = 0, differ_epoch = 0, differ_seed = 0, again = 0, plain = 0;
    for (int i = 0; i < C * H * W; ++i) raw[i] = (uint8_t)(i * 2 + 1);
    DataSet set = set_of(ELEM_U8, C, H, W);
    Config c = config_plain(), other = config_plain();
    c.data.augment = other.data.augment = AUGMENT_FLIP | AUGMENT_CROP | AUGMENT_CUTOUT;
    c.data.crop_pad = other.data.crop_pad = 4;
    c.data.cutout_size = other.data.cutout_size = 3;
    other.run.seed = 8;
    for (int s = 199; s >= 0; --s) {
        augment_sample(&set, &c, true, 5, s, raw, a);
        augment_sample(&set, &c, true, 5, s + 1, raw, b);
        differ_sample += memcmp(a, b, sizeof a) != 0;
        augment_sample(&set, &c, true, 6, s, raw, b);
        differ_epoch += memcmp(a, b, sizeof a) != 0;
        augment_sample(&set, &other, true, 5, s, raw, b);
        differ_seed += memcmp(a, b, sizeof a) != 0;
        augment_sample(&set, &c, true, 5, s, raw, b);
        again += memcmp(a, b, sizeof a) == 0;
        augment_sample(&set, &c, false, s, s, raw, a);
        augment_sample(&set, &other, false, 1, 2, raw, b);
        plain += memcmp(a, b, sizeof a) == 0;
    }
    CU_ASSERT_TRUE(differ_sample > 180);
    CU_ASSERT_TRUE(differ_epoch > 180);
    CU_ASSERT_TRUE(differ_seed > 180);
    CU_ASSERT_EQUAL(again, 200);
    CU_ASSERT_EQUAL(plain, 200);
}

/* A vector with statistics per column, with one value for all, and without. */
static void vectors(void)
{
    float raw[3] = {1, 2, 3}, out[3];
    DataSet set = set_of(ELEM_F32, 3, 1, 1);
    set.kind = DATA_TABLE;
    set.scale = 2;
    augment_sample(&set, NULL, false, 0, 0, raw, out);
    for (int i = 0; i < 3; ++i)
        CU_ASSERT_DOUBLE_EQUAL(out[i], ((double)raw[i] * 2 - (0.3 + 0.1 * i)) / 0.5, 1e-5);
    set.stats_count = 1;
    augment_sample(&set, NULL, false, 0, 0, raw, out);
    CU_ASSERT_DOUBLE_EQUAL(out[2], (6 - 0.3) / 0.5, 1e-5);
    set.has_stats = false;
    set.stats_count = 0;
    augment_sample(&set, NULL, false, 0, 0, raw, out);
    CU_ASSERT_EQUAL(out[2], 6.0f);
}

/* The slow version: a branch and a division for each value. */
static void slow_sample(const DataSet *set, const volatile uint8_t *raw, volatile float *out)
{
    int64_t count = set->channels * set->height * set->width;
    for (int64_t i = 0; i < count; ++i)
        out[i] = raw[i] == 77 ? 0.0f : ((float)raw[i] / 255.0f - set->mean[0]) / 0.5f;
}

/* Returns the processor time of a sample in microseconds, the best of 20 turns; c NULL: that of
 * slow_sample. */
static double microseconds(const DataSet *set, const Config *c)
{
    static uint8_t raw[3 * 32 * 32];
    static float out[3 * 32 * 32];
    double best = 1e9;
    for (int turn = 0; turn < 20; ++turn) {
        clock_t begun = clock();
        for (int s = 0; s < 500; ++s) {
            if (c)
                augment_sample(set, c, true, turn, s, raw, out);
            else
                slow_sample(set, raw, out);
        }
        double us = (double)(clock() - begun) / CLOCKS_PER_SEC / 500 * 1e6;
        if (us < best) best = us;
    }
    return best;
}

/* Limits are generous and relative to a plain loop on this machine, so that a busy or slow machine
 * changes nothing. */
static void fast(void)
{
    DataSet grey = set_of(ELEM_U8, 1, 28, 28), colour = set_of(ELEM_U8, 3, 32, 32);
    Config c = config_plain();
    double plain = microseconds(&grey, &c);
    c.data.augment = AUGMENT_FLIP | AUGMENT_CROP;
    c.data.crop_pad = 4;
    double crop = microseconds(&grey, &c), crop_colour = microseconds(&colour, &c);
    printf("  1x28x28 plain %.2f us, crop and flip %.2f us; 3x32x32 %.2f us\n", plain, crop,
           crop_colour);
    double slow = microseconds(&grey, NULL), slow_colour = microseconds(&colour, NULL);
    CU_ASSERT_TRUE(plain < 4 * slow && crop < 8 * slow && crop_colour < 8 * slow_colour);
}

TEST_MAIN("augment", {"crop and flip", crop_and_flip}, {"cutout", cutout}, {"keyed", keyed},
          {"vectors", vectors}, {"fast", fast})
