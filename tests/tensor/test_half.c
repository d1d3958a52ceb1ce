/* fp16 on the host: every value is converted there and back, and rounding; backends without a
 * precision refuse it. */
#include "tensor.h"

#include "harness.h"

#include <math.h>

enum { INFINITE = 0x7c00 };

static void there_and_back(void)
{
    for (uint32_t bits = 0; bits < 0x10000; ++bits) {
        F16 x = {(uint16_t)bits};
        F16 back = f16_of(f16_value(x));
        bool nan = (bits & 0x7fff) > INFINITE;
        CU_ASSERT_FATAL(nan ? isnan(f16_value(back)) : back.bits == bits);
    }
    CU_ASSERT_EQUAL(f16_value((F16){1}), 0x1p-24f);
    CU_ASSERT_EQUAL(f16_value((F16){INFINITE - 1}), 65504.0f);
}

/* Rounds to the nearer neighbour, halfway to the even one. */
static void rounding(void)
{
    for (uint32_t bits = 0; bits < INFINITE - 1; ++bits) {
        float low = f16_value((F16){(uint16_t)bits}), high = f16_value((F16){(uint16_t)(bits + 1)});
        float half = (low + high) / 2;
        uint16_t even = (uint16_t)(bits + (bits & 1));
        CU_ASSERT_EQUAL_FATAL(f16_of(half).bits, even);
        CU_ASSERT_EQUAL_FATAL(f16_of(-half).bits, even | 0x8000);
        CU_ASSERT_EQUAL_FATAL(f16_of(nextafterf(half, 0)).bits, bits);
        CU_ASSERT_EQUAL_FATAL(f16_of(nextafterf(half, high)).bits, bits + 1);
    }
    CU_ASSERT_EQUAL(f16_of(65519.0f).bits, INFINITE - 1);
    CU_ASSERT_EQUAL(f16_of(65520.0f).bits, INFINITE);
    CU_ASSERT_EQUAL(f16_of(-1e30f).bits, INFINITE | 0x8000);
}

static void refused(void)
{
    Backend *backend;
    CHECK_FAILS(backend_open(&backend, &backend_cpu,
                             (BackendOptions){.threads = 1, .precision = DTYPE_F16}),
                ERR_CONFIG, "fp16 needs a GPU");
    CHECK_FAILS(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1, .tf32 = true}),
                ERR_CONFIG, "tf32 needs a GPU");
}

TEST_MAIN("half", {"there and back", there_and_back}, {"rounding", rounding}, {"refused", refused})
