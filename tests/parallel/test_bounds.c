/* Tests Bounds, which do not store empty shards. They give the same bounds for every rank as a list
 * with an entry for each rank, for few ranks and many, and for any distribution of the shards. */
#include "harness.h"
#include "parallel.h"

static void check(const int64_t *bound, int ranks)
{
    Bounds b;
    int64_t wrong = 0, longest = 0;
    int kept = 0;
    bounds_init(&b, bound, ranks);
    for (int r = 0; r < ranks; ++r) {
        int64_t length = bound[r + 1] - bound[r];
        longest = length > longest ? length : longest;
        wrong += bounds_at(&b, r) != bound[r] || bounds_length(&b, r) != length;
        wrong += length > 0 && (bounds_find(&b, r) != kept || b.rank[kept] != r);
        kept += length > 0;
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_EQUAL(bounds_at(&b, ranks), bound[ranks]);
    CU_ASSERT_EQUAL(bounds_longest(&b), longest);
    CU_ASSERT_EQUAL(b.count, kept);
    bounds_fini(&b);
    CU_ASSERT_PTR_NULL(b.begin);
}

static void say_what_the_list_says(void)
{
    enum { MOST = 300 };
    int64_t bound[MOST + 1];
    RngKey key = rng_key(5, RNG_TEST, 0, 0);
    uint64_t drawn = 0;
    for (int ranks = 1; ranks <= MOST; ++ranks)
        for (int filled = 1; filled <= 64; filled *= 4) {
            /* on average one of `filled` shards is not empty */
            bound[0] = 7;
            for (int r = 0; r < ranks; ++r) {
                uint32_t draw = rng_u32(key, drawn++);
                bound[r + 1] = bound[r] + (draw % (uint32_t)filled ? 0 : 1 + draw % 1000);
            }
            check(bound, ranks);
        }
}

static void all_is_one_ranks(void)
{
    enum { RANKS = 40 };
    int64_t bound[RANKS + 1];
    for (int owner = 0; owner < RANKS; ++owner) {
        for (int r = 0; r <= RANKS; ++r) bound[r] = r > owner ? 90 : 3;
        check(bound, RANKS);
    }
}

static void nobody_has_anything(void)
{
    check((const int64_t[]){5, 5, 5, 5}, 3);
}

TEST_MAIN("bounds", {"say what the list says", say_what_the_list_says},
          {"all is one rank's", all_is_one_ranks}, {"nobody has anything", nobody_has_anything})
