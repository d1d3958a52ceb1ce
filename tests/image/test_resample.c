/* Resampling against Pillow's bytes (written by tools/golden_resize.py), on every instruction
 * set. */
#include "harness.h"
#include "image/picture.h"

#include <inttypes.h>

typedef struct Golden {
    uint32_t seed;
    int width, height, to_width, to_height;
    ImageBox box;
    char filter[16];
    uint64_t hash;
    int shown[9];
} Golden;

static bool golden_read(FILE *f, Golden *g)
{
    int got = fscanf(f, "%" SCNu32 " %d %d %d %d %d %d %15s %d %d %" SCNx64, &g->seed, &g->width,
                     &g->height, &g->box.x, &g->box.y, &g->box.width, &g->box.height, g->filter,
                     &g->to_width, &g->to_height, &g->hash);
    for (int i = 0; i < 9; ++i) got += fscanf(f, "%d", &g->shown[i]);
    return got == 20;
}

static void compare(const Golden *g, const Image *to)
{
    int n = g->to_width * g->to_height, at[3] = {0, n / 2, n - 1};
    for (int i = 0; i < 9; ++i)
        CU_ASSERT_EQUAL(to->pixel[at[i / 3] * 3 + i % 3], (uint8_t)g->shown[i]);
    CU_ASSERT_EQUAL(fnv(to->pixel, n * 3), g->hash);
}

/* One resampler for all sizes: memory of one size must not affect the next. */
static void check_all(InstructionSet set)
{
    Image from = {0}, to = {0};
    Golden g;
    FILE *f = fopen("tests/golden/image/resize.txt", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(f);
    ImageResampler *resampler = image_resampler_new();
    cpu_set_limit(set);
    int cases = 0;
    for (; golden_read(f, &g); ++cases) {
        picture(&from, g.seed, g.width, g.height);
        image_set_size(&to, g.to_width, g.to_height);
        image_resample(resampler, &from, g.box, &to,
                       strcmp(g.filter, "bicubic") == 0 ? IMAGE_BICUBIC : IMAGE_BILINEAR);
        compare(&g, &to);
    }
    CU_ASSERT_EQUAL(cases, 60);
    fclose(f);
    cpu_set_limit(CPU_AUTO);
    image_resampler_free(&resampler);
    image_fini(&from);
    image_fini(&to);
}

static void test_plain(void)
{
    check_all(CPU_BASE);
}

static void test_vectors(void)
{
    if (cpu_best() < CPU_AVX2) TEST_SKIP("this processor lacks AVX2");
    check_all(CPU_AVX2);
}

TEST_MAIN("resample", {"plain loops give Pillow's bytes", test_plain},
          {"vector loops give Pillow's bytes", test_vectors})
