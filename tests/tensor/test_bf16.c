/* bf16 on the CPU: every operation in bf16 on the poison backend compared with the same operation
 * in fp32 on the same rounded inputs; refusals. Rounding is tested in test_bf16_rounding.c. */
#include "op_cases.h"
#include "tensor/cpu/simd/simd.h"

/* instruction sets with kernels for bf16 */
static const char *const sets[] = {"avx512"};
enum { SETS = sizeof sets / sizeof *sets };

/* ---- comparison with fp32 ---- */

/* Largest difference allowed, relative to the largest value. An output is rounded once: half a unit
 * in bf16's last place, at most 2^-8 of the value (0.0039), plus a little for another order of
 * sums. In backward some operations read a rounded output (attention) or add rounded dx. Attention
 * also rounds the factors of its inner products: rotated queries and keys, probabilities.
 * conv_transpose2d rounds its sums, and again with the bias. The slope of sigmoid, y (1 - y), is at
 * most 1/4, and y is rounded by up to 2^-9 where it is near 1. */
static const double y_off = 0.004, attention_off = 0.012, biased_off = 0.008, dx_off = 0.006,
                    sigmoid_off = 0.012, dw_off = 0.004;

static double number(Desc d, const void *from, int64_t i)
{
    int64_t at = rig_place(d, i);
    return (double)(d.dtype == DTYPE_BF16 ? bf16_value(((const Bf16 *)from)[at])
                                          : ((const float *)from)[at]);
}

static void compare(const char *what, const char *name, Desc a, const void *x, Desc b,
                    const void *y, double allowed)
{
    double top = 0, worst = 0;
    for (int64_t i = 0; i < shape_count(a.shape); ++i) {
        double want = number(a, x, i), off = fabs(number(b, y, i) - want);
        if (fabs(want) > top) top = fabs(want);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
    }
    if (!(worst <= allowed * top)) printf("  %s, %s: off by %g of %g\n", name, what, worst, top);
    CU_ASSERT(worst <= allowed * top);
}

static void compare_weights(const char *name, const Rig *f, const Rig *h, int k)
{
    Desc d = desc_plain(f->op->spec.w[k], DTYPE_F32);
    float *want = malloc(desc_bytes(d)), *got = malloc(desc_bytes(d));
    op_unpack(f->op, k, f->run.dw[k], want);
    op_unpack(h->op, k, h->run.dw[k], got);
    compare("dw", name, d, want, d, got, dw_off);
    free(want);
    free(got);
}

/* Skips operations with more than one right answer: the arg max of a pool is compared only where
 * inputs have no ties. */
static void compare_with_fp32(const char *name, OpSpec s)
{
    Rig f, h;
    run(&f, s, DTYPE_F32, 1);
    run(&h, s, DTYPE_BF16, 2);
    bool loss = op_is_loss(op_info(s.kind));
    CU_ASSERT_EQUAL(h.op->spec.y.dtype, loss ? DTYPE_F32 : DTYPE_BF16);
    compare("y", name, f.op->spec.y, f.run.y, h.op->spec.y, h.run.y,
            s.kind == OP_ATTENTION          ? attention_off
            : s.kind == OP_CONV_TRANSPOSE2D ? biased_off
                                            : y_off);
    for (int k = 0; k < s.x_count; ++k)
        if (s.x[k].dtype != DTYPE_I32 && s.need_dx[k])
            compare("dx", name, f.op->spec.x[k], f.run.dx[k], h.op->spec.x[k], h.run.dx[k],
                    s.act == ACT_SIGMOID ? sigmoid_off : dx_off);
    for (int k = 0; k < s.w_count; ++k) compare_weights(name, &f, &h, k);
    rig_close(&f);
    rig_close(&h);
}

static void test_compare_with_fp32(void)
{
    int count;
    const Case *c = cases(&count);
    for (int i = 0; have_bf16() && i < count; ++i) compare_with_fp32(c[i].name, c[i].spec);
}

/* Attention's products have their own instruction with AVX512_BF16. */
static void test_attention_sets(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    for (int set = 0; have_bf16() && set < SETS; ++set) {
        if (!simd_use(sets[set])) continue;
        compare_with_fp32(sets[set], attention(150, 32, false));
        compare_with_fp32(sets[set], attention(70, 21, false));
    }
    CU_ASSERT(simd_use(best));
}

/* An op prefers fp32 data as bf16; a reorder converts it and its gradient, with or without a change
 * of layout. */
static void test_reorder(void)
{
    if (!have_bf16()) return;
    Desc from = plain(4, 2, 20, 5, 7), to = image(2, 20, 5, 7), same = from;
    to.dtype = same.dtype = DTYPE_BF16;
    for (int layout = 0; layout < 2; ++layout) {
        OpSpec s = one(OP_REORDER, from, layout ? to : same);
        Rig r = {.precision = DTYPE_BF16};
        rig_open(&r, &s, &backend_poison, 2);
        fill(from, r.run.x[0], 1, 3);
        op_forward(r.op, &r.run);
        for (int64_t i = 0; i < shape_count(from.shape); ++i)
            CU_ASSERT_EQUAL(number(s.y, r.run.y, i), number(from, r.run.x[0], i));
        fill(s.y, r.run.dy, 2, 3);
        rig_backward(&r);
        for (int64_t i = 0; i < shape_count(from.shape); ++i)
            CU_ASSERT_EQUAL(number(s.y, r.run.dy, i), number(from, r.run.dx[0], i));
        rig_close(&r);
    }
    OpSpec s = dense(16, 20, 30, false, ACT_NONE);
    Rig r = {.precision = DTYPE_BF16};
    rig_open(&r, &s, &backend_cpu, 1);
    CU_ASSERT_EQUAL(r.preferred[0].dtype, DTYPE_BF16);
    rig_close(&r);
}

static void test_refused(void)
{
    Backend *backend;
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    BackendTable without = backend_cpu;
    without.bf16 = UNSUPPORTED;
    without.name = "other";
    CHECK_FAILS(backend_open(&backend, &without, options), ERR_CONFIG,
                "the other backend has no bf16");
    if (dnnl_bf16_check() != OK)
        CHECK_FAILS(backend_open(&backend, &backend_cpu, options), ERR_CONFIG, "AVX512_BF16");
}

TEST_MAIN("bf16", {"compared with fp32", test_compare_with_fp32},
          {"attention on every instruction set", test_attention_sets}, {"reorder", test_reorder},
          {"refused", test_refused})
