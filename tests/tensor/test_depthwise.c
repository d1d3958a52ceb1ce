/* Depthwise convolutions against the naive one in double: every direction on every instruction set
 * of this processor, both strides, images from one pixel on, bias and relu. Outputs and scratch are
 * NaN first, and each tensor is surrounded by NaN. Any number of threads gives the same bits. Also
 * tests which convolutions use these kernels. */
#include "reference.h"

#include "harness.h"
#include "tensor/cpu/conv/depthwise.h"
#include "tensor/cpu/dnnl/linear.h"
#include "tensor/cpu/simd/simd.h"

/* tolerance relative to the largest value, at least twice the measured error */
static const double bound = 1.5e-6;
enum { THREADS = 3, OUTPUTS = 4, GUARD = 64, TAPS = DEPTHWISE_TAPS };
typedef enum Output { OUT_Y, OUT_DX, OUT_DW, OUT_DB } Output;

/* One convolution with its tensors in plain order; direction_run converts them for the kernels. */
typedef struct Case {
    RefConv v;
    bool relu, bias;
    int lanes;
    Shape x_shape, y_shape;
    int64_t count[OUTPUTS];
    float *x, *w, *b, *dy, *want[OUTPUTS];
} Case;

/* Allocates n floats with NaN before and behind them. */
static float *guarded(int64_t n)
{
    float *p = mem_new((size_t)(n + 2 * GUARD) * sizeof *p);
    memset(p, 0xff, (size_t)(n + 2 * GUARD) * sizeof *p);
    return p + GUARD;
}

static void guarded_free(float *p, int64_t n)
{
    float *from = p - GUARD;
    bool kept = true;
    for (int i = 0; i < GUARD; ++i) kept = kept && isnan(from[i]) && isnan(p[n + i]);
    CU_ASSERT(kept);
    mem_free(&from);
}

static void case_init(Case *c, const RefConv *v, bool relu, bool bias)
{
    const int64_t p = ref_conv_p(v), q = ref_conv_q(v);
    *c = (Case){.v = *v, .relu = relu, .bias = bias};
    c->x_shape = shape_of(4, v->n, v->c, v->h, v->w);
    c->y_shape = shape_of(4, v->n, v->c, p, q);
    c->count[OUT_Y] = shape_count(c->y_shape);
    c->count[OUT_DX] = shape_count(c->x_shape);
    c->count[OUT_DW] = v->c * TAPS;
    c->count[OUT_DB] = v->c;
    for (int i = 0; i < OUTPUTS; ++i)
        c->want[i] = mem_new((size_t)c->count[i] * sizeof *c->want[i]);
    float **const in[] = {&c->dy, &c->x, &c->w, &c->b};
    for (int i = 0; i < OUTPUTS; ++i) {
        *in[i] = mem_new((size_t)c->count[i] * sizeof **in[i]);
        ref_random(*in[i], c->count[i], (uint64_t)i);
    }
    ref_conv_run(v, ref_visit_y, c->x, c->w, c->want[OUT_Y], c->count[OUT_Y]);
    ref_bias(c->want[OUT_Y], bias ? c->b : NULL, v->n, v->c, p * q, relu);
    ref_conv_run(v, ref_visit_dx, c->dy, c->w, c->want[OUT_DX], c->count[OUT_DX]);
    ref_conv_run(v, ref_visit_dw, c->dy, c->x, c->want[OUT_DW], c->count[OUT_DW]);
    ref_bias_gradient(c->dy, c->want[OUT_DB], v->n, v->c, p * q);
}

static void case_fini(Case *c)
{
    float **const all[] = {&c->x, &c->w, &c->b, &c->dy};
    for (int i = 0; i < OUTPUTS; ++i) {
        mem_free(all[i]);
        mem_free(&c->want[i]);
    }
}

static Desc blocked(Shape shape, int lanes)
{
    Desc d = desc_plain(shape, DTYPE_F32);
    d.block = lanes;
    return d;
}

/* The plain shape and the layout of a role's memory: a weight is treated as an image of 3x3 pixels,
 * a bias as one of a single pixel. */
static Desc role_desc(const Case *c, int role)
{
    switch (role) {
    case ROLE_X:
        return blocked(c->x_shape, c->lanes);
    case ROLE_Y:
        return blocked(c->y_shape, c->lanes);
    case ROLE_W:
        return blocked(shape_of(4, 1, c->v.c, 3, 3), c->lanes);
    default:
        return blocked(shape_of(4, 1, c->v.c, 1, 1), c->lanes);
    }
}

/* Runs one direction: out[role] is written in plain order; NULL for roles that are read. */
static void direction_run(const Case *c, KernelKind kind, int threads, float *const out[ROLES])
{
    const RefConv *v = &c->v;
    float *const in[ROLES] = {[ROLE_X] = c->x, [ROLE_W] = c->w, [ROLE_B] = c->b, [ROLE_Y] = c->dy};
    Depthwise *d = depthwise_new(&(DepthwiseSpec){.kind = kind,
                                                  .n = v->n,
                                                  .c = v->c,
                                                  .h = v->h,
                                                  .w = v->w,
                                                  .lanes = c->lanes,
                                                  .stride = (int)v->stride_h,
                                                  .relu = c->relu && kind == KERNEL_CONV_FORWARD,
                                                  .threads = threads});
    const int64_t scratch_n = (int64_t)(depthwise_scratch_bytes(d) / sizeof(float));
    float *scratch = guarded(scratch_n);
    void *data[ROLES] = {NULL};
    for (int r = 0; r < ROLES; ++r) {
        const Desc desc = role_desc(c, r);
        if (r == ROLE_B && (!c->bias || kind == KERNEL_CONV_DATA)) continue;
        data[r] = guarded(shape_count(desc.shape));
        if (!out[r]) ref_layout(desc, in[r], data[r], false);
    }
    depthwise_run(d, data, scratch);
    for (int r = 0; r < ROLES; ++r) {
        const Desc desc = role_desc(c, r);
        if (!data[r]) continue;
        if (out[r]) ref_layout(desc, out[r], data[r], true);
        guarded_free(data[r], shape_count(desc.shape));
    }
    guarded_free(scratch, scratch_n);
    depthwise_free(&d);
}

static void near(const Case *c, Output output, int threads, const float *got)
{
    static const char *const what[OUTPUTS] = {"y", "dx", "dw", "db"};
    const RefConv *v = &c->v;
    const double e = ref_error(got, c->want[output], c->count[output]);
    CU_ASSERT(e <= bound);
    if (!(e <= bound) || getenv("WEFT_TEST_VERBOSE"))
        printf("  %s off by %.1e: %s, %d threads, n%d c%d %dx%d/%d\n", what[output], e,
               simd_table(DTYPE_F32)->name, threads, (int)v->n, (int)v->c, (int)v->h, (int)v->w,
               (int)v->stride_h);
}

static void check_threads(const Case *c)
{
    float *first[OUTPUTS], *got[OUTPUTS];
    for (int threads = 1; threads <= THREADS; ++threads) {
        for (int i = 0; i < OUTPUTS; ++i) got[i] = mem_new((size_t)c->count[i] * sizeof *got[i]);
        direction_run(c, KERNEL_CONV_FORWARD, threads, (float *[ROLES]){[ROLE_Y] = got[OUT_Y]});
        direction_run(c, KERNEL_CONV_DATA, threads, (float *[ROLES]){[ROLE_X] = got[OUT_DX]});
        direction_run(c, KERNEL_CONV_WEIGHT, threads,
                      (float *[ROLES]){[ROLE_W] = got[OUT_DW], [ROLE_B] = got[OUT_DB]});
        for (int i = 0; i < OUTPUTS; ++i) {
            if (i != OUT_DB || c->bias) near(c, (Output)i, threads, got[i]);
            if (threads == 1) {
                first[i] = got[i];
                continue;
            }
            CU_ASSERT_EQUAL(memcmp(got[i], first[i], (size_t)c->count[i] * sizeof(float)), 0);
            mem_free(&got[i]);
        }
    }
    for (int i = 0; i < OUTPUTS; ++i) mem_free(&first[i]);
}

static void check(int64_t n, int64_t blocks, int64_t h, int64_t w, int64_t stride, bool relu,
                  bool bias)
{
    static const struct {
        const char *name;
        int lanes;
    } sets[] = {{"avx2", 8}, {"avx512", 16}};
    const char *best = simd_table(DTYPE_F32)->name;
    for (size_t i = 0; i < sizeof sets / sizeof *sets; ++i) {
        const int64_t channels = blocks * sets[i].lanes;
        Case c;
        if (!simd_use(sets[i].name)) continue;
        case_init(&c, &(RefConv){n, channels, h, w, channels, 3, 3, stride, stride, 1, 1, channels},
                  relu, bias);
        c.lanes = sets[i].lanes;
        check_threads(&c);
        case_fini(&c);
    }
    simd_use(best);
}

static void sizes(void)
{
    for (int64_t stride = 1; stride <= 2; ++stride)
        for (int64_t h = 1; h <= 6; ++h)
            for (int64_t w = 1; w <= 11; ++w) check(2, 1, h, w, stride, (h + w) % 2, w % 3);
}

/* Rows and planes with more pixels than one partial sum of dw covers. */
static void large(void)
{
    for (int64_t stride = 1; stride <= 2; ++stride) {
        check(3, 3, 37, 29, stride, true, true);
        check(1, 1, 5, 611, stride, false, true);
    }
}

static void chosen_by(InstructionSet set, int64_t lanes)
{
    const struct {
        RefConv v;
        const char *text;
    } cases[] = {
        {{2, lanes, 9, 9, lanes, 3, 3, 1, 1, 1, 1, lanes}, "own:depthwise, own:depthwise, jit_dw"},
        {{2, lanes, 9, 9, lanes, 3, 3, 2, 2, 1, 1, lanes},
         lanes == 8 ? "jit_dw:avx2, own:depthwise, jit_dw"
                    : "own:depthwise, own:depthwise, jit_dw"},
        {{16, 32, 112, 112, 32, 3, 3, 1, 1, 1, 1, 32},
         "own:depthwise, own:depthwise, own:depthwise"},
        {{2, lanes, 9, 9, lanes, 3, 3, 3, 3, 1, 1, lanes}, "jit_dw"},
        {{2, lanes, 9, 9, lanes, 3, 3, 1, 1, 0, 0, lanes}, "jit_dw"},
        {{2, lanes, 9, 9, lanes, 5, 5, 1, 1, 2, 2, lanes}, "x64:gemm"},
    };
    cpu_set_limit(set);
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const RefConv *v = &cases[i].v;
        char text[256];
        RefOp r;
        OpSpec s = ref_conv_spec(v, true);
        CHECK_OK(ref_op_new(&r, backend, &s));
        linear_text(r.op, text);
        const bool right = strncmp(text, cases[i].text, strlen(cases[i].text)) == 0;
        if (!right) printf("  case %d: %s\n", (int)i, text);
        CU_ASSERT(right);
        ref_op_free(&r);
    }
    backend_close(&backend);
}

/* oneDNN can be limited to one instruction set per process only. */
static void chosen(void)
{
    if (cpu_best() < CPU_AVX2) TEST_SKIP("this processor has no AVX2");
    if (cpu_limit() != CPU_AVX2 && cpu_best() == CPU_AVX512)
        chosen_by(CPU_AVX512, 16);
    else
        chosen_by(CPU_AVX2, 8);
}

TEST_MAIN("depthwise", {"chosen", chosen}, {"sizes", sizes}, {"large", large})
