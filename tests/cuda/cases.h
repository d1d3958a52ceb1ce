/* Parts that all tests of the CUDA backend share: the error bounds, the backends, random inputs,
 * and the table of relative errors that the program prints at its end. */
#ifndef WEFT_TEST_CUDA_CASES_H
#define WEFT_TEST_CUDA_CASES_H

#include "harness.h"
#include "next_step.h"
#include "op_rig.h"
#include "train/trainer.h"

enum { LARGEST = 1 << 19 };

/* Bound on the relative error of a tensor: the largest |cuda - cpu|, divided by the largest
 * |cpu|. */
typedef struct Bound {
    double fp32;
    /* bound in bf16 and fp16 for inputs that the type represents exactly, in units of the type's
     * rounding error */
    double roundings;
} Bound;

/* The bounds of all files of this folder. */
static const struct {
    /* results are integers */
    Bound equal;
    /* the same operations in the same order */
    Bound exact;
    /* arithmetic on one element at a time: fused multiply-adds, exp, tanh */
    Bound elementwise;
    /* sums in another order */
    Bound product;
    /* sums of thousands of terms in any order */
    Bound long_product;
    /* attention, which rounds the factors of its products */
    Bound attention;
    /* a product times gelu's slope, where the input of the slope was rounded, too. cuBLASLt's slope
     * in fp32 differed by up to 6.2e-6 on an H200 (cuBLASLt 13.1; seeds 1, 11 and 22487) */
    Bound gelu_product;
    /* convolutions, in which transforms of images and filters lose some bits; results are rounded
     * before and after the bias */
    Bound conv;
    /* gradients from an output that was rounded: sigmoid's slope y (1 - y) changes by up to half a
     * rounding, and its largest value is 1/4 */
    Bound from_output;
    /* gradients with slopes of up to 10, charbonnier's with eps 0.1, at an input that was
     * rounded */
    Bound steep;
    /* losses of pixels: exponentials, powers, and sums of them in another order */
    Bound pixel;
    /* exchanges, whose results are rounded before and after the bias */
    Bound exchange;
    /* bound on |cuda - cpu| of the loss in ten training steps */
    double loss;
    /* bound on the same difference for models in which batch norm over few samples amplifies
     * differences */
    double deep;
    /* bound on the same difference between bf16, fp16 or tf32 and fp32 */
    double loss_rounded;
    /* bound on the relative error of products whose factors TF32 rounds */
    double tf32;
} allowed = {.exact = {0, 1},
             .elementwise = {2e-6, 1},
             .product = {2e-6, 1.5},
             .long_product = {8e-6, 1.5},
             .attention = {2e-6, 3},
             .gelu_product = {1e-5, 2.5},
             .conv = {2e-5, 3},
             .from_output = {2e-6, 2.5},
             .steep = {2e-6, 8},
             .pixel = {4e-6, 1.5},
             .exchange = {2e-6, 2.5},
             .loss = 1e-4,
             .deep = 5e-3,
             .loss_rounded = 5e-2,
             .tf32 = 1e-2};

/* true: also run the tests that take too long on an emulated GPU */
static bool full;
/* seed of all inputs; printed at the start */
static uint32_t seed;
/* number of arrays filled so far; the key of the next array's random numbers */
static uint64_t draws;
static Backend *cpu, *gpu, *gpu_bf16, *gpu_fp16, *gpu_tf32;

/* Fills an array with random numbers that bf16 and fp16 represent exactly. */
static void fill(float *out, int64_t n, float scale)
{
    RngKey key = rng_key(seed, RNG_TEST, ++draws, 0);
    for (int64_t i = 0; i < n; ++i)
        out[i] = bf16_value(bf16_of((2 * rng_uniform(key, (uint64_t)i) - 1) * scale));
}

static void fill_tokens(int32_t *out, int64_t n, int64_t below)
{
    RngKey key = rng_key(seed, RNG_TEST, ++draws, 1);
    for (int64_t i = 0; i < n; ++i) out[i] = (int32_t)(rng_u32(key, (uint64_t)i) % (uint64_t)below);
}

/* ---- the table ---- */

static const struct {
    DType precision;
    const char *name;
    /* relative rounding error of one number */
    double rounding;
} table_type[] = {
    {DTYPE_F32, "fp32", 0x1p-24}, {DTYPE_BF16, "bf16", 0x1p-8}, {DTYPE_F16, "fp16", 0x1p-11}};
typedef enum Part { PART_Y, PART_DX, PART_DW, PARTS } Part;
enum { TYPES = sizeof table_type / sizeof *table_type, ROWS = 128 };

static struct {
    /* name of the operation; borrowed */
    const char *name;
    /* bounds, and largest errors so far; -1: not measured */
    double bound[TYPES], worst[TYPES][PARTS];
} table_row[ROWS];
static int table_rows;

static int type_of(const Backend *backend)
{
    int t = 0;
    while (table_type[t].precision != backend->options.precision) ++t;
    return t;
}

static int row_of(const char *name)
{
    int r = 0;
    while (r < table_rows && strcmp(table_row[r].name, name) != 0) ++r;
    if (r < table_rows) return r;
    if (table_rows == ROWS) {
        printf("  %s: the table is full: raise ROWS, %d, in tests/cuda/cases.h\n", name, ROWS);
        CU_FAIL_FATAL("the table of errors is full");
    }
    ++table_rows;
    table_row[r].name = name;
    for (int t = 0; t < TYPES; ++t) {
        table_row[r].bound[t] = -1;
        for (int part = 0; part < PARTS; ++part) table_row[r].worst[t][part] = -1;
    }
    return r;
}

/* Returns the largest |got - expected| divided by the largest |expected|: INFINITY if a value is
 * NaN, or if zeros are expected and a value differs. */
static double relative_error(const float *got, const float *expected, int64_t n)
{
    double off = 0, largest = 0;
    for (int64_t i = 0; i < n; ++i) {
        double d = fabs((double)got[i] - (double)expected[i]);
        if (!(d <= off)) off = isnan(d) ? INFINITY : d;
        largest = fmax(largest, fabs((double)expected[i]));
    }
    return off == 0 ? 0 : off / largest;
}

/* Compares a tensor and enters its error in row `name` of the table. If the error exceeds the
 * bound, `what` and `tensor` are printed. */
static void compare(const char *name, const Backend *backend, Part part, Bound bound,
                    const char *what, const char *tensor, const float *got, const float *expected,
                    int64_t n)
{
    int r = row_of(name), t = type_of(backend);
    double off = relative_error(got, expected, n);
    double most = t == 0 ? bound.fp32 : bound.roundings * table_type[t].rounding;
    if (!(off <= most))
        printf("  %s %s: %s differs by %.3g of its largest (allowed %.3g)\n", what,
               table_type[t].name, tensor, off, most);
    CU_ASSERT_TRUE(off <= most);
    table_row[r].bound[t] = fmax(table_row[r].bound[t], most);
    table_row[r].worst[t][part] = fmax(table_row[r].worst[t][part], off);
}

static void print_error(double error)
{
    if (error < 0)
        printf("%9s", "-");
    else if (error == 0)
        printf("%9s", "0");
    else
        printf("%9.1e", error);
}

static void print_table(void)
{
    printf("relative errors: the largest |cuda - cpu| of a tensor, divided by its largest |cpu|\n");
    printf("  %-15s", "");
    for (int t = 0; t < TYPES; ++t)
        printf("  %s: %3s%9s%9s%9s", table_type[t].name, "y", "dx", "dw", "allowed");
    for (int r = 0; r < table_rows; ++r) {
        printf("\n  %-15s", table_row[r].name);
        for (int t = 0; t < TYPES; ++t) {
            for (int part = 0; part < PARTS; ++part) print_error(table_row[r].worst[t][part]);
            print_error(table_row[r].bound[t]);
        }
    }
    putchar('\n');
}

#endif
