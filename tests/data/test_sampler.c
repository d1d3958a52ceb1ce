/* Tests the sampler: it is a permutation for every n, differs by epoch and seed, and mixes
 * evenly. */
#include "data.h"
#include "harness.h"

#include <math.h>

static bool is_permutation(int64_t n, uint64_t seed, int64_t epoch)
{
    uint8_t *seen = mem_new((size_t)n);
    bool good = true;
    for (int64_t i = 0; i < n && good; ++i) {
        int64_t s = sampler_at(n, seed, epoch, i);
        good = s >= 0 && s < n && !seen[s];
        if (good) seen[s] = 1;
    }
    mem_free(&seen);
    return good;
}

static void small(void)
{
    int bad = 0;
    for (int64_t n = 1; n <= 2000; ++n) bad += !is_permutation(n, (uint64_t)n * 31, n % 7);
    CU_ASSERT_EQUAL(bad, 0);
}

static void large(void)
{
    static const int64_t n[] = {4095, 4096, 4097, 60000, 65537, 1000003};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; ++i) CU_ASSERT_TRUE(is_permutation(n[i], 1, 3));
    for (int64_t p = 0; p < 1000;
         /* far beyond what can be listed: still in range, distinct */
         ++p) {
        int64_t huge = ((int64_t)1 << 45) + 12345;
        int64_t a = sampler_at(huge, 5, 0, p), b = sampler_at(huge, 5, 0, p + 1);
        if (a < 0 || a >= huge || a == b) CU_FAIL("huge");
    }
    CU_PASS("huge");
}

static void keyed(void)
{
    int same_epoch = 0, same_seed = 0, again = 0, fixed = 0;
    for (int64_t i = 0; i < 1000; ++i) {
        int64_t s = sampler_at(1000, 1, 0, i);
        same_epoch += s == sampler_at(1000, 1, 1, i);
        same_seed += s == sampler_at(1000, 2, 0, i);
        again += s == sampler_at(1000, 1, 0, i);
        fixed += s == i;
    }
    CU_ASSERT_TRUE(same_epoch < 10);
    CU_ASSERT_TRUE(same_seed < 10);
    CU_ASSERT_TRUE(fixed < 10);
    CU_ASSERT_EQUAL(again, 1000);
}

/* Returns how far chi-squared is from chance: over many epochs every sample should come about
 * equally often in every tenth of the order. */
static double spread(int64_t n, int epochs)
{
    double chi = 0;
    int64_t *count = mem_new((size_t)n * 10 * sizeof *count);
    for (int e = 0; e < epochs; ++e)
        for (int64_t i = 0; i < n; ++i) ++count[sampler_at(n, 99, e, i) * 10 + i * 10 / n];
    double expect = epochs / 10.0;
    for (int64_t i = 0; i < n * 10; ++i)
        chi += ((double)count[i] - expect) * ((double)count[i] - expect) / expect;
    mem_free(&count);
    double freedom = (double)n * 9 - 9;
    return (chi - freedom) / sqrt(2 * freedom); /* approximately standard normal */
}

static void balanced(void)
{
    static const int64_t n[] = {10, 20, 100, 250, 1000};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; ++i) {
        double z = spread(n[i], 1000);
        if (fabs(z) >= 5) printf("  n = %lld: %.1f deviations\n", (long long)n[i], z);
        CU_ASSERT_TRUE(fabs(z) < 5);
    }
}

/* Neighbours in the order are not neighbours in the file: the serial correlation is that of
 * chance. */
static void uncorrelated(void)
{
    int64_t n = 10000;
    double sum = 0, mean = (double)(n - 1) / 2, variance = ((double)n * (double)n - 1) / 12;
    for (int64_t i = 0; i + 1 < n; ++i)
        sum +=
            ((double)sampler_at(n, 3, 4, i) - mean) * ((double)sampler_at(n, 3, 4, i + 1) - mean);
    CU_ASSERT_TRUE(fabs(sum / variance / sqrt((double)n)) < 5);
}

/* Checks that each sample occurs exactly once, and that no window touches more chunks than it
 * holds, plus the short one and one cut at each end. */
static bool chunks_good(int64_t n, int64_t chunk, int64_t window, int64_t epoch)
{
    uint8_t *seen = mem_new((size_t)n), *touched = mem_new((size_t)n);
    bool good = true;
    int64_t chunks = 0;
    for (int64_t i = 0; i < n && good; ++i) {
        if (i % window == 0) {
            memset(touched, 0, (size_t)n);
            chunks = 0;
        }
        int64_t s = sampler_in_chunks(n, chunk, window, 11, epoch, i);
        good = s >= 0 && s < n && !seen[s];
        if (!good) break;
        seen[s] = 1;
        chunks += !touched[s / chunk];
        touched[s / chunk] = 1;
        good = chunks <= window / chunk + 2;
    }
    mem_free(&seen);
    mem_free(&touched);
    return good;
}

static void in_chunks(void)
{
    int bad = 0, moved = 0;
    for (int64_t n = 1; n <= 90; ++n)
        for (int64_t chunk = 1; chunk <= 9; ++chunk)
            for (int64_t epoch = 0; epoch < 2; ++epoch)
                bad += !chunks_good(n, chunk, chunk * 4, epoch);
    CU_ASSERT_EQUAL(bad, 0);
    CU_ASSERT_TRUE(chunks_good(100003, 64, 64 * 16, 2));
    for (int64_t i = 0; i < 1000; ++i)
        moved +=
            sampler_in_chunks(1000, 10, 100, 1, 0, i) != sampler_in_chunks(1000, 10, 100, 1, 1, i);
    CU_ASSERT_TRUE(moved > 980);
}

TEST_MAIN("sampler", {"chunks: once each, few at a time", in_chunks},
          {"a permutation for n = 1..2000", small}, {"large n", large},
          {"keyed by seed and epoch", keyed}, {"balanced", balanced},
          {"uncorrelated", uncorrelated})
