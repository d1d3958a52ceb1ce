/* Random numbers: Random123's known answers for Philox4x32-10, independence of keys, ranges,
 * moments; XXH64's published values. */
#include "base/philox.h"
#include "harness.h"

#include <math.h>

static void check_block(RngKey key, const uint32_t counter[4], const uint32_t want[4])
{
    uint32_t out[4];
    philox4x32(key, counter, out);
    for (int i = 0; i < 4; ++i) CU_ASSERT_EQUAL(out[i], want[i]);
}

/* kat_vectors of Random123 1.14 */
static void test_known_answers(void)
{
    check_block((RngKey){{0, 0}}, (uint32_t[4]){0, 0, 0, 0},
                (uint32_t[4]){0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
    check_block((RngKey){{~0u, ~0u}}, (uint32_t[4]){~0u, ~0u, ~0u, ~0u},
                (uint32_t[4]){0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
    check_block((RngKey){{0xa4093822, 0x299f31d0}},
                (uint32_t[4]){0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
                (uint32_t[4]){0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

static void test_block_and_element(void)
{
    RngKey key = rng_key(7, RNG_TEST, 3, 4);
    for (uint64_t e = 0; e < 64; ++e) {
        uint32_t out[4];
        rng_block(key, e / 4, out);
        CU_ASSERT_EQUAL(rng_u32(key, e), out[e % 4]);
    }
    uint32_t near[4], far[4];
    rng_block(key, 1, near);
    rng_block(key, 1 | (uint64_t)1 << 32, far);
    CU_ASSERT_NOT_EQUAL(near[0], far[0]);
}

/* Every argument of a key matters, including its high half and the order. */
static void test_keys_differ(void)
{
    const RngKey keys[] = {
        rng_key(1, RNG_TEST, 2, 3),          rng_key(2, RNG_TEST, 2, 3),
        rng_key(1, RNG_INIT, 2, 3),          rng_key(1, RNG_TEST, 3, 2),
        rng_key(1, RNG_TEST, 2, 4),          rng_key(1, RNG_TEST, 2ull << 32, 3),
        rng_key(1ull << 32, RNG_TEST, 2, 3), rng_key(1, RNG_TEST, 2, 3ull << 32),
    };
    int count = (int)(sizeof keys / sizeof keys[0]);
    for (int i = 0; i < count; ++i)
        for (int j = 0; j < i; ++j) CU_ASSERT(memcmp(&keys[i], &keys[j], sizeof keys[0]) != 0);
    RngKey again = rng_key(1, RNG_TEST, 2, 3);
    CU_ASSERT(memcmp(&keys[0], &again, sizeof again) == 0);
}

static void test_uniform(void)
{
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    enum { N = 200000 };
    double sum = 0, squares = 0;
    int outside = 0;
    for (uint64_t i = 0; i < N; ++i) {
        double u = rng_uniform(key, i);
        outside += u < 0 || u >= 1;
        sum += u;
        squares += u * u;
    }
    CU_ASSERT_EQUAL(outside, 0);
    CU_ASSERT_DOUBLE_EQUAL(sum / N, 0.5, 0.003);
    CU_ASSERT_DOUBLE_EQUAL(squares / N, 1.0 / 3, 0.003);
}

static void test_normal(void)
{
    RngKey key = rng_key(1, RNG_TEST, 5, 0);
    enum { N = 200000 };
    double moment[5] = {0}, neighbours = 0, last = 0;
    for (uint64_t i = 0; i < N; ++i) {
        double v = rng_normal(key, i);
        CU_ASSERT_FATAL(isfinite(v));
        moment[1] += v;
        moment[2] += v * v;
        moment[3] += v * v * v;
        moment[4] += v * v * v * v;
        neighbours += v * last;
        last = v;
    }
    CU_ASSERT_DOUBLE_EQUAL(moment[1] / N, 0, 0.01);
    CU_ASSERT_DOUBLE_EQUAL(moment[2] / N, 1, 0.02);
    CU_ASSERT_DOUBLE_EQUAL(moment[3] / N, 0, 0.05);
    CU_ASSERT_DOUBLE_EQUAL(moment[4] / N, 3, 0.15);
    CU_ASSERT_DOUBLE_EQUAL(neighbours / N, 0, 0.01);
}

static void test_normals(void)
{
    RngKey key = rng_key(2, RNG_TEST, 6, 0);
    enum { BLOCKS = 50000 };
    int off = 0;
    for (uint64_t block = 0; block < BLOCKS; ++block) {
        float four[4];
        rng_normals(key, block, four);
        for (uint64_t i = 0; i < 4; ++i) off += four[i] != rng_normal(key, 4 * block + i);
    }
    CU_ASSERT_EQUAL(off, 0);
}

static void test_hash(void)
{
    CU_ASSERT_EQUAL(hash_text(""), 0xEF46DB3751D8E999ull);
    CU_ASSERT_EQUAL(hash_text("a"), 0xD24EC4F1A98C6E5Bull);
    CU_ASSERT_EQUAL(hash_bytes("abc", 3), 0x44BC2CF5AD770999ull);
    CU_ASSERT_EQUAL(hash_bytes("abc", 3), hash_text("abc"));
}

TEST_MAIN("rng", {"known answers", test_known_answers},
          {"blocks and elements", test_block_and_element}, {"keys differ", test_keys_differ},
          {"uniform", test_uniform}, {"normal", test_normal}, {"four at a time", test_normals},
          {"hash", test_hash})
