/* The record of algorithms as text: what is written is read back, sorted for any order of
 * insertion; malformed texts are refused with the line's number. */
#include "harness.h"
#include "tensor.h"

#define HEAD "weft-algorithms 1\ngpu GPU A\nlibraries cuBLASLt 1, cuDNN 2\n"

static void test_text(void)
{
    static const char text[] = HEAD "a 1 = x\nb = y z\nc = 0.1\n";
    static const char *const key[] = {"c", "a 1", "b"}, *const value[] = {"0.1", "x", "y z"};
    AlgorithmRecord *r = algorithm_record_new("GPU A", "cuBLASLt 1, cuDNN 2"), *again = NULL;
    for (int i = 0; i < 3; ++i) algorithm_record_set(r, key[i], value[i]);
    char *written = algorithm_record_text(r);
    CU_ASSERT_STRING_EQUAL(written, text);
    CHECK_OK(algorithm_record_read(&again, text, "a file"));
    CU_ASSERT_EQUAL(algorithm_record_count(again), 3);
    CU_ASSERT_STRING_EQUAL(algorithm_record_gpu(again), "GPU A");
    CU_ASSERT_STRING_EQUAL(algorithm_record_libraries(again), "cuBLASLt 1, cuDNN 2");
    for (int i = 0; i < 3; ++i)
        CU_ASSERT_STRING_EQUAL(algorithm_record_find(again, key[i]), value[i]);
    CU_ASSERT_PTR_NULL(algorithm_record_find(again, "a"));
    CU_ASSERT_PTR_NULL(algorithm_record_find(again, "d"));
    mem_free(&written);
    algorithm_record_free(&again);
    algorithm_record_free(&r);
    algorithm_record_free(&r);
}

static void test_entries(void)
{
    AlgorithmRecord *r = algorithm_record_new("G", "L"), *other = algorithm_record_new("G", "L");
    char key[16];
    for (int i = 0; i < 100; ++i) {
        snprintf(key, sizeof key, "%d", i * 37 % 100);
        algorithm_record_set(r, key, "old");
    }
    algorithm_record_set(r, "5", "new");
    algorithm_record_set(other, "5", "theirs");
    algorithm_record_set(other, "x", "theirs");
    algorithm_record_merge(r, other);
    CU_ASSERT_EQUAL(algorithm_record_count(r), 101);
    CU_ASSERT_STRING_EQUAL(algorithm_record_find(r, "5"), "new");
    CU_ASSERT_STRING_EQUAL(algorithm_record_find(r, "6"), "old");
    CU_ASSERT_STRING_EQUAL(algorithm_record_find(r, "x"), "theirs");
    for (int i = 1; i < 101; ++i) {
        const char *before, *at, *algorithm;
        algorithm_record_entry(r, i - 1, &before, &algorithm);
        algorithm_record_entry(r, i, &at, &algorithm);
        CU_ASSERT(strcmp(before, at) < 0);
    }
    CU_ASSERT_PTR_NULL(algorithm_record_rejected(r));
    algorithm_record_reject(r, "7");
    algorithm_record_reject(r, "8");
    CU_ASSERT_STRING_EQUAL(algorithm_record_rejected(r), "7");
    algorithm_record_free(&other);
    algorithm_record_free(&r);
}

static void test_refusals(void)
{
    static const struct {
        const char *text, *why;
    } bad[] = {
        {"", "is not a record of algorithms"},
        {"weft-algorithms 2\ngpu A\nlibraries B\n", "is not a record of algorithms"},
        {"weft-algorithms 1\nlibraries B\ngpu A\n", "is not a record of algorithms"},
        {"weft-algorithms 1\ngpu A\n", "is not a record of algorithms"},
        {HEAD "a = 1\nb\n", "line 5 is not an entry"},
        {HEAD " = 1\n", "line 4 is not an entry"},
        {HEAD "a = \n", "line 4 is not an entry"},
        {HEAD "a = 1\nb = 2\na = 1\n", "line 6 repeats the key of an earlier line"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        AlgorithmRecord *r = NULL;
        CHECK_FAILS(algorithm_record_read(&r, bad[i].text, "some.txt"), ERR_DATA, bad[i].why);
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "some.txt"));
        CU_ASSERT_PTR_NULL(r);
    }
}

TEST_MAIN("algorithms", {"as text", test_text}, {"entries", test_entries},
          {"what is refused", test_refusals})
