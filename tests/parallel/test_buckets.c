/* Tests that buckets cover the arena once, from the last tensor to the first, are cut only between
 * tensors, and have about the requested size. */
#include "harness.h"
#include "parallel.h"

static void check_cover(const Buckets *b, const int64_t *offset, int64_t elements)
{
    int64_t end = elements;
    for (int i = 0; i < b->count; ++i) {
        CU_ASSERT_EQUAL(b->offset[i] + b->elements[i], end);
        CU_ASSERT_TRUE(b->elements[i] > 0);
        end = b->offset[i];
        CU_ASSERT_EQUAL(end, b->first_tensor[i] == 0 ? 0 : offset[b->first_tensor[i]]);
        if (i > 0) CU_ASSERT_TRUE(b->first_tensor[i] < b->first_tensor[i - 1]);
    }
    CU_ASSERT_EQUAL(end, 0);
}

static void few_tensors(void)
{
    static const int64_t offset[] = {0, 100, 200, 300};
    Buckets b;
    buckets_init(&b, offset, 4, 410, 200 * sizeof(float));
    check_cover(&b, offset, 410);
    CU_ASSERT_EQUAL(b.count, 2);
    CU_ASSERT_EQUAL(b.first_tensor[0], 2);
    CU_ASSERT_EQUAL(b.elements[0], 210);
    buckets_fini(&b);
    CU_ASSERT_PTR_NULL(b.offset);
    buckets_init(&b, offset, 4, 410, 1);
    CU_ASSERT_EQUAL(b.count, 4);
    check_cover(&b, offset, 410);
    buckets_fini(&b);
    buckets_init(&b, offset, 4, 410, (size_t)1 << 30);
    CU_ASSERT_EQUAL(b.count, 1);
    check_cover(&b, offset, 410);
    buckets_fini(&b);
}

/* A small tensor is not in one bucket with a large tensor, for whose gradient it would wait. */
static void big_tensor_alone(void)
{
    static const int64_t offset[] = {0, 10, 1000010};
    Buckets b;
    buckets_init(&b, offset, 3, 1000010 + 900, 1000 * sizeof(float));
    check_cover(&b, offset, 1000010 + 900);
    CU_ASSERT_EQUAL(b.first_tensor[0], 2);
    CU_ASSERT_EQUAL(b.first_tensor[1], 1);
    buckets_fini(&b);
}

static void edges(void)
{
    Buckets b;
    buckets_init(&b, NULL, 0, 0, 100);
    CU_ASSERT_EQUAL(b.count, 0);
    buckets_fini(&b);
    /* no tensors, only padding elements */
    buckets_init(&b, NULL, 0, 16, 100);
    CU_ASSERT_EQUAL(b.count, 1);
    CU_ASSERT_EQUAL(b.elements[0], 16);
    buckets_fini(&b);
    /* the first tensor does not begin at 0, and one tensor is empty */
    static const int64_t offset[] = {16, 16, 32};
    buckets_init(&b, offset, 3, 48, 1);
    check_cover(&b, offset, 48);
    buckets_fini(&b);
}

static void random_tables(void)
{
    RngKey key = rng_key(11, RNG_TEST, 0, 0);
    for (int round = 0; round < 200; ++round) {
        int64_t offset[40], at = 0;
        int tensors = 1 + (int)(rng_u32(key, (uint64_t)round * 100) % 40);
        for (int t = 0; t < tensors; ++t) {
            offset[t] = at;
            at += (int64_t)(rng_u32(key, (uint64_t)round * 100 + 1 + (uint64_t)t) % 64) * 16;
        }
        Buckets b;
        buckets_init(&b, offset, tensors, at + 16,
                     1 + rng_u32(key, (uint64_t)round * 100 + 50) % 20000);
        check_cover(&b, offset, at + 16);
        buckets_fini(&b);
    }
}

TEST_MAIN("buckets", {"few tensors", few_tensors}, {"a big tensor alone", big_tensor_alone},
          {"edges", edges}, {"random tables", random_tables})
