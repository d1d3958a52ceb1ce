/* First convolutions against the naive one in double: forward and the weight's gradient on every
 * instruction set of this processor, several kernels, strides and paddings, row widths that are no
 * multiple of a product's pixels, one unit and several, bias and relu. Outputs and scratch are NaN
 * first. Any number of threads gives the same bits. Also tests which convolutions use these
 * kernels. */
#include "reference.h"

#include "harness.h"
#include "tensor/cpu/conv/first_conv.h"
#include "tensor/cpu/dnnl/linear.h"
#include "tensor/cpu/simd/simd.h"

/* tolerance relative to the largest value, at least twice the measured error */
static const double bound = 1e-6;
enum { BLOCK = FIRST_BLOCK, THREADS = 3, OUTPUTS = 3 };

/* One convolution in plain order, except dy_b in blocks and w_b in the kernels' order. */
typedef struct Case {
    RefConv v;
    bool relu, bias;
    Desc y_desc;
    int64_t x_n, w_n, y_n;
    float *x, *w, *b, *w_b, *dy, *dy_b;
    /* expected y, dw and db */
    float *want[OUTPUTS];
} Case;

static float *floats(int64_t n)
{
    return mem_new((size_t)n * sizeof(float));
}

/* Converts between [O][C][R][S] and [O/8][R][S][C][8 of O]. */
static void weight_layout(const RefConv *v, float *plain, float *stored, bool to_plain)
{
    const int64_t taps = v->r * v->s;
    for (int64_t i = 0; i < v->o * v->c * taps; ++i) {
        const int64_t o = i / taps / v->c, c = i / taps % v->c, tap = i % taps;
        float *in = &stored[((o / BLOCK * taps + tap) * v->c + c) * BLOCK + o % BLOCK];
        if (to_plain)
            plain[i] = *in;
        else
            *in = plain[i];
    }
}

static void case_init(Case *c, const RefConv *v, bool relu, bool bias)
{
    const int64_t p = ref_conv_p(v), q = ref_conv_q(v);
    *c = (Case){.v = *v, .relu = relu, .bias = bias};
    c->y_desc = desc_plain(shape_of(4, v->n, v->o, p, q), DTYPE_F32);
    c->y_desc.block = BLOCK;
    c->x_n = v->n * v->c * v->h * v->w;
    c->y_n = v->n * v->o * p * q;
    c->w_n = v->o * v->c * v->r * v->s;
    c->x = floats(c->x_n), c->w = floats(c->w_n), c->w_b = floats(c->w_n), c->b = floats(v->o);
    c->dy = floats(c->y_n), c->dy_b = floats(c->y_n);
    c->want[0] = floats(c->y_n), c->want[1] = floats(c->w_n), c->want[2] = floats(v->o);
    ref_random(c->x, c->x_n, 1);
    ref_random(c->w, c->w_n, 2);
    ref_random(c->b, v->o, 3);
    ref_random(c->dy, c->y_n, 4);
    ref_conv_run(v, ref_visit_y, c->x, c->w, c->want[0], c->y_n);
    ref_bias(c->want[0], bias ? c->b : NULL, v->n, v->o, p * q, relu);
    ref_conv_run(v, ref_visit_dw, c->dy, c->x, c->want[1], c->w_n);
    ref_bias_gradient(c->dy, c->want[2], v->n, v->o, p * q);
    ref_layout(c->y_desc, c->dy, c->dy_b, false);
    weight_layout(v, c->w, c->w_b, false);
}

static void case_fini(Case *c)
{
    float **const all[] = {&c->x,    &c->w,       &c->w_b,     &c->b,      &c->dy,
                           &c->dy_b, &c->want[0], &c->want[1], &c->want[2]};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) mem_free(all[i]);
}

/* Runs one direction. The result, in plain order, is owned by the caller: y, or dw and db. */
static void direction_run(const Case *c, KernelKind kind, int threads, float *out[OUTPUTS])
{
    const RefConv *v = &c->v;
    const bool forward = kind == KERNEL_CONV_FORWARD;
    FirstConvRun *f = first_conv_new(&(FirstConvSpec){.kind = kind,
                                                      .n = v->n,
                                                      .c = v->c,
                                                      .h = v->h,
                                                      .w = v->w,
                                                      .o = v->o,
                                                      .kernel = {v->r, v->s},
                                                      .stride = {v->stride_h, v->stride_w},
                                                      .pad = {v->pad_h, v->pad_w},
                                                      .relu = c->relu && forward,
                                                      .threads = threads});
    const size_t bytes = first_conv_scratch_bytes(f);
    void *scratch = mem_new(bytes);
    memset(scratch, 0xff, bytes);
    const int64_t n[OUTPUTS] = {c->y_n, c->w_n, v->o};
    float *written[OUTPUTS];
    for (int i = 0; i < OUTPUTS; ++i)
        memset(written[i] = floats(n[i]), 0xff, (size_t)n[i] * sizeof(float));
    first_conv_run(f,
                   (void *const[ROLES]){[ROLE_X] = c->x,
                                        [ROLE_W] = forward ? c->w_b : written[1],
                                        [ROLE_B] = !c->bias  ? NULL
                                                   : forward ? c->b
                                                             : written[2],
                                        [ROLE_Y] = forward ? written[0] : c->dy_b},
                   scratch);
    if (forward)
        ref_layout(c->y_desc, out[0] = floats(c->y_n), written[0], true);
    else
        weight_layout(v, out[1] = floats(c->w_n), written[1], true);
    if (!forward && c->bias)
        memcpy(out[2] = floats(v->o), written[2], (size_t)v->o * sizeof(float));
    for (int i = 0; i < OUTPUTS; ++i) mem_free(&written[i]);
    mem_free(&scratch);
    first_conv_free(&f);
}

static void near(const Case *c, int output, int threads, const float *got)
{
    static const char *const what[OUTPUTS] = {"y", "dw", "db"};
    const RefConv *v = &c->v;
    const int64_t n[OUTPUTS] = {c->y_n, c->w_n, v->o};
    const double e = ref_error(got, c->want[output], n[output]);
    CU_ASSERT(e <= bound);
    if (!(e <= bound) || getenv("WEFT_TEST_VERBOSE"))
        printf("  %s off by %.1e: %s, %d threads, n%d c%d %dx%d o%d %dx%d/%d p%d\n", what[output],
               e, simd_table(DTYPE_F32)->name, threads, (int)v->n, (int)v->c, (int)v->h, (int)v->w,
               (int)v->o, (int)v->r, (int)v->s, (int)v->stride_w, (int)v->pad_w);
}

static void check_threads(const Case *c)
{
    const int64_t n[OUTPUTS] = {c->y_n, c->w_n, c->v.o};
    float *first[OUTPUTS] = {NULL}, *got[OUTPUTS] = {NULL};
    for (int threads = 1; threads <= THREADS; ++threads) {
        direction_run(c, KERNEL_CONV_FORWARD, threads, got);
        direction_run(c, KERNEL_CONV_WEIGHT, threads, got);
        for (int i = 0; i < OUTPUTS; ++i) {
            if (!got[i]) continue;
            near(c, i, threads, got[i]);
            if (threads == 1) {
                first[i] = got[i];
                continue;
            }
            CU_ASSERT_EQUAL(memcmp(got[i], first[i], (size_t)n[i] * sizeof(float)), 0);
            mem_free(&got[i]);
        }
    }
    for (int i = 0; i < OUTPUTS; ++i) mem_free(&first[i]);
}

static void check(const RefConv *v, bool relu, bool bias)
{
    static const char *const sets[] = {"base", "avx2", "avx512"};
    const char *best = simd_table(DTYPE_F32)->name;
    Case c;
    case_init(&c, v, relu, bias);
    for (int i = 0; i < 3; ++i)
        if (simd_use(sets[i]) && simd_table(DTYPE_F32)->first_forward) check_threads(&c);
    simd_use(best);
    case_fini(&c);
}

/* Rows of 3 to 10 pixels, and paddings larger than the kernel. */
static void edges_and_pads(void)
{
    for (int64_t pad = 0; pad <= 4; ++pad)
        for (int64_t side = 7; side <= 12; ++side)
            for (int64_t stride = 1; stride <= 2; ++stride)
                check(&(RefConv){2, 1, 15 - side, side, 8, 3, 3, stride, stride, pad, pad, 1},
                      side % 2, pad % 2);
}

static void kernels(void)
{
    for (int64_t c = 1; c <= 3; ++c) {
        check(&(RefConv){3, c, 11, 14, 16, 5, 5, 1, 1, 2, 2, 1}, true, true);
        check(&(RefConv){3, c, 19, 13, 16, 7, 7, 2, 2, 3, 3, 1}, false, true);
        check(&(RefConv){3, c, 9, 17, 16, 1, 9, 2, 3, 0, 4, 1}, true, false);
        check(&(RefConv){3, c, 17, 9, 16, 5, 2, 3, 1, 1, 0, 1}, false, true);
    }
}

static void channels(void)
{
    for (int64_t o = 8; o <= 72; o += 8)
        check(&(RefConv){2, 1, 9, 8, o, 3, 3, 1, 1, 1, 1, 1}, o % 16, o % 24);
}

/* More units than pieces, of several rows and of one; the last unit of an image is shorter. */
static void several_units(void)
{
    check(&(RefConv){37, 1, 23, 21, 8, 3, 3, 1, 1, 1, 1, 1}, true, true);
    check(&(RefConv){1, 2, 67, 131, 16, 3, 3, 1, 1, 1, 1, 1}, false, true);
}

/* Checks conv2d's choice when oneDNN is limited to AVX2. */
static void chosen(void)
{
    static const struct {
        RefConv v;
        bool need_dx, own;
    } cases[] = {
        {{4, 1, 28, 28, 32, 3, 3, 1, 1, 1, 1, 1}, false, true},
        {{4, 2, 28, 28, 8, 7, 7, 2, 2, 3, 3, 1}, false, true},
        {{4, 3, 28, 28, 32, 3, 3, 1, 1, 1, 1, 1}, false, false},
        {{4, 1, 28, 28, 32, 3, 3, 1, 1, 1, 1, 1}, true, false},
        {{4, 1, 28, 28, 12, 3, 3, 1, 1, 1, 1, 1}, false, false},
        {{4, 1, 28, 28, 32, 1, 1, 1, 1, 0, 0, 1}, false, false},
        {{4, 1, 28, 4, 32, 3, 3, 1, 1, 1, 0, 1}, false, false},
    };
    if (cpu_best() < CPU_AVX2) TEST_SKIP("this processor has no AVX2");
    cpu_set_limit(CPU_AVX2);
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        const RefConv *v = &cases[i].v;
        char text[256];
        RefOp r;
        OpSpec s = ref_conv_spec(v, cases[i].need_dx);
        CHECK_OK(ref_op_new(&r, backend, &s));
        linear_text(r.op, text);
        if ((strcmp(text, "own:first, -, own:first") == 0) != cases[i].own)
            printf("  case %d: %s\n", (int)i, text);
        CU_ASSERT_EQUAL(strcmp(text, "own:first, -, own:first") == 0, cases[i].own);
        CU_ASSERT_EQUAL(strstr(text, "own:first") != NULL, cases[i].own);
        ref_op_free(&r);
    }
    backend_close(&backend);
}

TEST_MAIN("first convolutions", {"chosen", chosen}, {"edges and pads", edges_and_pads},
          {"kernels", kernels}, {"channels", channels}, {"several units", several_units})
