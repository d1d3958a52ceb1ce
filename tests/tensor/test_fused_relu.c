/* A relu that weft's own kernels fuse with a product or a convolution passes on NaN, so that a bad
 * number in a layer is not hidden from the checks of gradients and losses. oneDNN's fused relu
 * gives 0 for NaN, so the tests run with train.cpu: portable, which uses no sums of oneDNN. */
#include "base/cpu.h"
#include "op_cases.h"

/* All inputs and parameters are NaN. */
static double not_a_number(uint64_t what, int64_t i)
{
    (void)what;
    (void)i;
    return NAN;
}

/* Runs s, with relu, on NaN. Returns the number of elements of y that are not NaN. */
static int64_t hidden(OpSpec s)
{
    Rig r;
    int64_t count = 0;
    s.act = ACT_RELU;
    case_number = not_a_number;
    run(&r, preferring(s, DTYPE_F32), DTYPE_F32, 1);
    const Desc y = r.op->spec.y;
    for (int64_t i = 0; i < shape_count(y.shape); ++i) {
        const int64_t at = rig_place(y, i);
        count += !isnan(((const float *)r.run.y)[at]);
    }
    rig_close(&r);
    return count;
}

static void test_nan(void)
{
    InstructionSet set;
    if (cpu_choose(CPU_PORTABLE, &set) != OK) TEST_SKIP(fail_message());
    cpu_set_limit(set);
    const Case list[] = {
        {"dense, tile of rows", dense(33, 45, 67, false, ACT_NONE)},
        {"dense, many terms", dense(96, 800, 112, false, ACT_NONE)},
        {"dense, few rows", dense(3, 3000, 3, false, ACT_NONE)},
        {"dense, one column", dense(300, 40, 1, false, ACT_NONE)},
        {"dense, one term", dense(300, 1, 40, false, ACT_NONE)},
        {"conv 3x3", conv(32, 48, 1, 3, 1)},
        {"conv 3x3, stride 2", conv(32, 48, 1, 3, 2)},
        {"conv 1x1", conv(32, 64, 1, 1, 1)},
        {"conv 3x3 of raw data", conv(1, 32, 1, 3, 1)},
        {"conv 7x7 of raw data", conv(3, 32, 1, 7, 2)},
        {"conv by channel", conv(32, 32, 32, 3, 1)},
        {"conv of many channels", conv_of(4, 7, 256, 512, 1, 1, 2)},
    };
    for (size_t i = 0; i < sizeof list / sizeof *list; ++i) {
        const int64_t count = hidden(list[i].spec);
        if (count) printf("  %s: %lld outputs hide NaN\n", list[i].name, (long long)count);
        CU_ASSERT_EQUAL(count, 0);
    }
}

TEST_MAIN("fused relu", {"NaN", test_nan})
