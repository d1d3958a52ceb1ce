/* The frame of a test program. Besides its test functions a program needs only one line:
 * TEST_MAIN("sampler", {"a name", function}, ...). The last line of its output, "SUITE: N passed, N
 * failed", gives the numbers of assertions. A test that cannot run calls TEST_SKIP("why"). Programs
 * whose names end in _npN, such as test_sum_np4, run under mpirun with N ranks. A failure on any
 * rank then fails the suite, and only rank 0 prints the last line. */
#ifndef WEFT_HARNESS_H
#define WEFT_HARNESS_H

#include <CUnit/Basic.h>
#include <CUnit/CUnit.h>
#include <stdio.h>
#include <string.h>
#include <stdlib.h>
#include <unistd.h>

/* Ends the test function, and prints that it was skipped and why. */
#define TEST_SKIP(why)                                                                             \
    do {                                                                                           \
        printf("  skipped: %s: %s\n", __func__, why);                                              \
        return;                                                                                    \
    } while (0)
/* Checks that a Status is OK; prints the error message if it is not. */
#define CHECK_OK(call)                                                                             \
    do {                                                                                           \
        Status check_st_ = (call);                                                                 \
        if (check_st_ != OK) printf("  %s:%d: %s\n", __FILE__, __LINE__, fail_message());          \
        CU_ASSERT_EQUAL(check_st_, OK);                                                            \
    } while (0)
/* Checks that a Status is `code`, and that the error message contains `text`. */
#define CHECK_FAILS(call, code, text)                                                              \
    do {                                                                                           \
        Status check_st_ = (call);                                                                 \
        CU_ASSERT_EQUAL(check_st_, code);                                                          \
        if (!strstr(fail_message(), text))                                                         \
            printf("  %s:%d: message lacks '%s': %s\n", __FILE__, __LINE__, text, fail_message()); \
        CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), text));                                      \
    } while (0)

typedef struct HarnessTest {
    const char *name;
    void (*run)(void);
} HarnessTest;

/* Runs the tests of a suite. test: [count]. rank: this rank; rank 0 prints. sum: returns the sum of
 * a number over all ranks, for tests under mpirun; NULL: there is one rank. Returns the exit
 * code. */
static int harness_run(const char *suite, const HarnessTest *test, int count, int rank,
                       int (*sum)(int))
{
    if (CU_initialize_registry() != CUE_SUCCESS) return 2;
    CU_pSuite s = CU_add_suite(suite, NULL, NULL);
    for (int i = 0; i < count; ++i) CU_add_test(s, test[i].name, test[i].run);
    CU_basic_set_mode(CU_BRM_SILENT);
    CU_basic_run_tests();
    if (CU_get_number_of_failures() > 0) CU_basic_show_failures(CU_get_failure_list());
    int bad = (int)CU_get_number_of_failures(), good = (int)CU_get_number_of_successes();
    CU_cleanup_registry();
    if (sum) {
        bad = sum(bad);
        good = sum(good);
    }
    if (rank == 0) printf("\n%s: %d passed, %d failed\n", suite, good, bad);
    return bad != 0 || good == 0;
}
/* Defines main for tests without MPI. */
#define TEST_MAIN(suite, ...)                                                                      \
    int main(int argc, char **argv)                                                                \
    {                                                                                              \
        static const HarnessTest tests[] = {__VA_ARGS__};                                          \
        (void)argc, (void)argv;                                                                    \
        return harness_run(suite, tests, (int)(sizeof tests / sizeof tests[0]), 0, NULL);          \
    }

#endif
