/* Rounding to bf16 on the CPU gives the same bits on every instruction set, including gelu and sums
 * of gradients. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

/* ---- rounding ---- */

/* Rounds by arithmetic: to the nearer of the two neighbours, at a tie to the even one. NaN keeps
 * its sign and upper bits. */
static uint16_t slow_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t low = (uint16_t)(bits >> 16);
    if (isnan(value)) return low | 0x40;
    if (isinf(value) || (bits & 0xffff) == 0) return low;
    uint32_t rest = bits & 0xffff;
    bool up = rest > 0x8000 || (rest == 0x8000 && (low & 1));
    /* may carry into the exponent, up to infinity */
    return (uint16_t)(low + up);
}

/* Bit patterns of floats: edge cases first, then random ones. */
static float pattern(int64_t i)
{
    static const uint32_t edge[] = {
        0x00000000, 0x80000000, 0x3f808000, 0x3f818000, 0x3f808001, 0x3f807fff, 0xbf818000,
        0x00000001, 0x00007fff, 0x00008000, 0x00008001, 0x00018000, 0x007fffff, 0x807f8000,
        0x00800000, 0x7f7f7fff, 0x7f7f8000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
        0x7f800001, 0xff80ffff, 0x7fc00000, 0x7fffffff, 0xffffffff, 0x7fa00000};
    uint32_t bits = (uint64_t)i < sizeof edge / sizeof *edge
                        ? edge[i]
                        : rng_u32(rng_key(3, RNG_TEST, 1, 0), (uint64_t)i);
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

enum { PATTERNS = 100003 };
/* instruction sets with kernels for bf16 */
static const char *const sets[] = {"avx512"};
enum { SETS = sizeof sets / sizeof *sets };

/* Compares one rounding path with slow_bits. */
static void check_rounding(const char *set, const char *path, const float *x, const Bf16 *y)
{
    int64_t wrong = 0;
    for (int64_t i = 0; i < PATTERNS; ++i)
        if (y[i].bits != slow_bits(x[i]) && ++wrong == 1)
            printf("  %s, %s: %a becomes %04x, not %04x\n", set, path, (double)x[i], y[i].bits,
                   slow_bits(x[i]));
    CU_ASSERT_EQUAL(wrong, 0);
}

/* Rounding in loops (from_floats) and in vectors (batch_norm_apply, which adds: y = (0 - 0) * 1 +
 * shift). */
static void check_set(const char *set, const float *x, Bf16 *y)
{
    const SimdTable *simd = simd_table(DTYPE_BF16);
    simd->from_floats(y, x, PATTERNS);
    check_rounding(set, "loop", x, y);
    float *back = malloc(PATTERNS * sizeof *back), zero[SIMD_LANES] = {0}, one[SIMD_LANES];
    simd->to_floats(back, y, PATTERNS);
    for (int64_t i = 0; i < PATTERNS; ++i)
        CU_ASSERT_FATAL(bf16_of(back[i]).bits == y[i].bits && bf16_of(x[i]).bits == y[i].bits);
    for (int l = 0; l < SIMD_LANES; ++l) one[l] = 1;
    const Bf16 none[SIMD_LANES] = {{0}};
    for (int64_t i = 0; i < PATTERNS; i += SIMD_LANES) {
        int lanes = PATTERNS - i < SIMD_LANES ? (int)(PATTERNS - i) : SIMD_LANES;
        simd->batch_norm_apply(&(BatchNormApply){.x = none,
                                                 .mean = zero,
                                                 .scale = one,
                                                 .shift = x + i,
                                                 .y = y + i,
                                                 .rows = 1,
                                                 .lanes = lanes});
    }
    /* -0 + 0 is 0, and a signalling NaN comes out quiet, before any rounding */
    float *sum = malloc(PATTERNS * sizeof *sum);
    for (int64_t i = 0; i < PATTERNS; ++i) sum[i] = x[i] + 0.0f;
    check_rounding(set, "vector", sum, y);
    free(sum);
    free(back);
}

static void test_rounding(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    float *x = malloc(PATTERNS * sizeof *x);
    Bf16 *y = malloc(PATTERNS * sizeof *y);
    for (int64_t i = 0; i < PATTERNS; ++i) x[i] = pattern(i);
    for (int s = 0; s < SETS; ++s) {
        if (!simd_use(sets[s]) || !simd_table(DTYPE_BF16)) {
            printf("  skipped %s: not built in, or not on this CPU\n", sets[s]);
            continue;
        }
        check_set(sets[s], x, y);
    }
    CU_ASSERT(simd_use(best));
    free(x);
    free(y);
}

/* ---- gelu ---- */

static double gelu(double x)
{
    return x / (1.0 + exp(-1.5957691216057308 * (x + 0.044715 * x * x * x)));
}

/* gelu of every bf16 except NaN. Its shorter exponential may move a result near the middle of two
 * neighbours to the other one, but no further, and at most once in a hundred. Below 1e-30 only the
 * magnitude is checked. */
static void check_gelu(const char *set, const Bf16 *x, const Bf16 *y)
{
    int64_t other = 0, wrong = 0;
    for (int64_t i = 0; i < 1 << 16; ++i) {
        const double value = (double)bf16_value(x[i]), got = (double)bf16_value(y[i]);
        if (isnan(value)) {
            wrong += !isnan(got);
            continue;
        }
        /* the range where the largest exponential matters */
        if (value < -1e6) continue;
        const double want = gelu(value);
        const int off = (int)y[i].bits - (int)bf16_of((float)want).bits;
        const bool small = fabs(want) < 1e-30;
        const bool right = small ? fabs(got) < 1e-29 : abs(off) <= 1;
        other += !small && off != 0;
        if (!right && ++wrong == 1) printf("  %s: gelu(%g) is %g, not %g\n", set, value, got, want);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT(other <= (1 << 16) / 100);
}

static void test_gelu(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    Bf16 *x = malloc(2 * sizeof *x << 16), *y = x + (1 << 16);
    for (int64_t i = 0; i < 1 << 16; ++i) x[i].bits = (uint16_t)i;
    for (int s = 0; s < SETS; ++s) {
        if (!simd_use(sets[s]) || !simd_table(DTYPE_BF16)) continue;
        simd_table(DTYPE_BF16)->act(ACT_GELU, 0.0f, y, x, 1 << 16);
        check_gelu(sets[s], x, y);
    }
    CU_ASSERT(simd_use(best));
    free(x);
}

/* ---- sums of gradients ---- */

static void test_flat_add(void)
{
    enum { N = 10001 };
    if (!simd_table(DTYPE_BF16)) TEST_SKIP("this processor has no bf16 instructions");
    Bf16 *a = malloc(N * sizeof *a), *b = malloc(N * sizeof *b), *out = malloc(N * sizeof *out);
    for (int i = 0; i < N; ++i) {
        a[i] = bf16_of((float)rig_random(1, i));
        b[i] = bf16_of((float)rig_random(2, i));
    }
    backend_cpu.flat->add_bf16(NULL, out, a, b, N);
    for (int i = 0; i < N; ++i)
        CU_ASSERT_FATAL(out[i].bits == bf16_of(bf16_value(a[i]) + bf16_value(b[i])).bits);
    free(a);
    free(b);
    free(out);
}

TEST_MAIN("bf16 rounding", {"rounding", test_rounding}, {"gelu", test_gelu},
          {"sum of gradients", test_flat_add})
