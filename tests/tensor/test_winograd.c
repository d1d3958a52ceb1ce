/* Winograd's convolution against the naive one in double: every direction on every instruction set
 * of this processor, image sizes that are no multiple of a tile, both paddings, one pass and
 * several, bias and relu. Outputs and scratch are NaN first. Any number of threads gives the same
 * bits. Also tests which convolutions use it. */
#include "reference.h"

#include "harness.h"
#include "tensor/cpu/dnnl/linear.h"
#include "tensor/cpu/simd/simd.h"
#include "tensor/cpu/conv/winograd.h"

#include <sys/wait.h>
#include <unistd.h>

/* tolerance relative to the largest value, at least twice the measured error */
static const double bound = 5e-6;
enum { TAPS = 9, THREADS = 3 };

/* One convolution: inputs and expected values in plain order, or in blocks if the name ends in
 * _b. */
typedef struct Case {
    /* channels of a block */
    int lanes;
    RefConv v;
    bool relu;
    Shape x_shape, y_shape;
    int64_t x_n, w_n, y_n;
    float *x, *w, *b, *y, *dy, *dx, *dw, *db;
    float *x_b, *w_b, *dy_b;
} Case;

static float *floats(int64_t n)
{
    return mem_new((size_t)n * sizeof(float));
}

static Desc blocked(const Case *c, Shape shape)
{
    Desc d = desc_plain(shape, DTYPE_F32);
    d.block = c->lanes;
    return d;
}

/* Converts between [O][C][9] and [O/L][C/L][9][L of C][L of O]. */
static void weight_layout(const Case *k, float *plain, float *stored, bool to_plain)
{
    const RefConv *v = &k->v;
    const int lanes = k->lanes;
    for (int64_t o = 0; o < v->o; ++o)
        for (int64_t c = 0; c < v->c; ++c)
            for (int tap = 0; tap < TAPS; ++tap) {
                const int64_t square = (o / lanes * (v->c / lanes) + c / lanes) * TAPS + tap;
                float *in = &stored[(square * lanes + c % lanes) * lanes + o % lanes];
                float *out = &plain[(o * v->c + c) * TAPS + tap];
                if (to_plain)
                    *out = *in;
                else
                    *in = *out;
            }
}

/* Channels of u are in blocks. */
static void case_init(Case *c, const RefConv *u, bool relu, int lanes)
{
    *c = (Case){.lanes = lanes, .v = *u, .relu = relu};
    c->v.c *= lanes, c->v.o *= lanes;
    const RefConv *v = &c->v;
    const int64_t p = ref_conv_p(v), q = ref_conv_q(v);
    c->x_shape = shape_of(4, v->n, v->c, v->h, v->w);
    c->y_shape = shape_of(4, v->n, v->o, p, q);
    c->x_n = shape_count(c->x_shape);
    c->y_n = shape_count(c->y_shape);
    c->w_n = v->o * v->c * TAPS;
    float **const xs[] = {&c->x, &c->dx, &c->x_b}, **const ys[] = {&c->y, &c->dy, &c->dy_b};
    float **const ws[] = {&c->w, &c->dw, &c->w_b};
    for (int i = 0; i < 3; ++i) {
        *xs[i] = floats(c->x_n);
        *ys[i] = floats(c->y_n);
        *ws[i] = floats(c->w_n);
    }
    c->b = floats(v->o);
    c->db = floats(v->o);
    ref_random(c->x, c->x_n, 1);
    ref_random(c->w, c->w_n, 2);
    ref_random(c->b, v->o, 3);
    ref_random(c->dy, c->y_n, 4);
    ref_conv_run(v, ref_visit_y, c->x, c->w, c->y, c->y_n);
    ref_bias(c->y, c->b, v->n, v->o, p * q, relu);
    ref_conv_run(v, ref_visit_dx, c->dy, c->w, c->dx, c->x_n);
    ref_conv_run(v, ref_visit_dw, c->dy, c->x, c->dw, c->w_n);
    ref_bias_gradient(c->dy, c->db, v->n, v->o, p * q);
    ref_layout(blocked(c, c->x_shape), c->x, c->x_b, false);
    ref_layout(blocked(c, c->y_shape), c->dy, c->dy_b, false);
    weight_layout(c, c->w, c->w_b, false);
}

static void case_fini(Case *c)
{
    float **const all[] = {&c->x,  &c->w,  &c->b,   &c->y,   &c->dy,  &c->dx,
                           &c->dw, &c->db, &c->x_b, &c->w_b, &c->dy_b};
    for (size_t i = 0; i < sizeof all / sizeof *all; ++i) mem_free(all[i]);
}

static void near(const Case *c, const char *what, int threads, const float *got, const float *want,
                 int64_t n)
{
    const double e = ref_error(got, want, n);
    const RefConv *v = &c->v;
    CU_ASSERT(e <= bound);
    if (!(e <= bound) || getenv("WEFT_TEST_VERBOSE"))
        printf("  %s off by %.1e: %s, %d threads, n%d c%d %dx%d o%d p%dx%d\n", what, e,
               simd_table(DTYPE_F32)->name, threads, (int)v->n, (int)v->c, (int)v->h, (int)v->w,
               (int)v->o, (int)v->pad_h, (int)v->pad_w);
}

/* Runs one direction. out: the roles that are written; in plain order on return. */
static void direction_run(const Case *c, KernelKind kind, int threads, float *out[ROLES])
{
    const RefConv *v = &c->v;
    Winograd *w = winograd_new(&(WinogradSpec){.kind = kind,
                                               .n = v->n,
                                               .c = v->c,
                                               .h = v->h,
                                               .w = v->w,
                                               .o = v->o,
                                               .pad = {v->pad_h, v->pad_w},
                                               .relu = c->relu && kind == KERNEL_CONV_FORWARD,
                                               .threads = threads});
    const size_t scratch_bytes = winograd_scratch_bytes(w);
    void *scratch = NULL;
    CU_ASSERT_EQUAL_FATAL(posix_memalign(&scratch, 64, scratch_bytes), 0);
    memset(scratch, 0xff, scratch_bytes);
    void *data[ROLES] = {c->x_b, c->w_b, c->b, c->dy_b};
    const int64_t sizes[ROLES] = {c->x_n, c->w_n, v->o, c->y_n};
    for (int r = 0; r < ROLES; ++r)
        if (out[r]) memset(data[r] = floats(sizes[r]), 0xff, (size_t)sizes[r] * sizeof(float));
    winograd_run(w, data, scratch);
    if (out[ROLE_X]) ref_layout(blocked(c, c->x_shape), out[ROLE_X], data[ROLE_X], true);
    if (out[ROLE_Y]) ref_layout(blocked(c, c->y_shape), out[ROLE_Y], data[ROLE_Y], true);
    if (out[ROLE_W]) weight_layout(c, out[ROLE_W], data[ROLE_W], true);
    if (out[ROLE_B]) memcpy(out[ROLE_B], data[ROLE_B], (size_t)v->o * sizeof(float));
    for (int r = 0; r < ROLES; ++r)
        if (out[r]) mem_free(&data[r]);
    free(scratch);
    winograd_free(&w);
}

static void check_threads(const Case *c)
{
    const int64_t sizes[] = {c->y_n, c->x_n, c->w_n, c->v.o};
    const float *const want[] = {c->y, c->dx, c->dw, c->db};
    static const char *const what[] = {"y", "dx", "dw", "db"};
    float *first[4], *got[4];
    for (int threads = 1; threads <= THREADS; ++threads) {
        for (int i = 0; i < 4; ++i) got[i] = floats(sizes[i]);
        direction_run(c, KERNEL_CONV_FORWARD, threads, (float *[ROLES]){[ROLE_Y] = got[0]});
        direction_run(c, KERNEL_CONV_DATA, threads, (float *[ROLES]){[ROLE_X] = got[1]});
        direction_run(c, KERNEL_CONV_WEIGHT, threads,
                      (float *[ROLES]){[ROLE_W] = got[2], [ROLE_B] = got[3]});
        for (int i = 0; i < 4; ++i) {
            near(c, what[i], threads, got[i], want[i], sizes[i]);
            if (threads == 1)
                first[i] = got[i];
            else
                CU_ASSERT_EQUAL(memcmp(got[i], first[i], (size_t)sizes[i] * sizeof(float)), 0);
            if (threads > 1) mem_free(&got[i]);
        }
    }
    for (int i = 0; i < 4; ++i) mem_free(&first[i]);
}

/* Channels are in blocks. */
static void check(const RefConv *v, bool relu)
{
    static const char *const sets[] = {"base", "avx2", "avx512"};
    const char *best = simd_table(DTYPE_F32)->name;
    for (int i = 0; i < 3; ++i) {
        if (!simd_use(sets[i]) || !simd_table(DTYPE_F32)->winograd_input) continue;
        Case c;
        case_init(&c, v, relu, simd_table(DTYPE_F32)->conv_lanes);
        check_threads(&c);
        case_fini(&c);
    }
    simd_use(best);
}

static void edges_and_pads(void)
{
    for (int64_t pad_h = 0; pad_h <= 1; ++pad_h)
        for (int64_t pad_w = 0; pad_w <= 1; ++pad_w)
            for (int64_t side = 3; side <= 10; ++side)
                check(&(RefConv){2, 1, side, 13 - side, 2, 3, 3, 1, 1, pad_h, pad_w, 1},
                      (side + pad_h) % 2);
}

/* Panels of one, two and three blocks, and parts of several. */
static void channels(void)
{
    for (int64_t blocks = 1; blocks <= 7; ++blocks)
        check(&(RefConv){2, 9 - blocks, 6, 7, blocks, 3, 3, 1, 1, 1, 1, 1}, blocks % 2);
    check(&(RefConv){2, 10, 9, 8, 9, 3, 3, 1, 1, 0, 1, 1}, false);
}

/* More tiles than one pass has: the last pass is shorter. */
static void several_passes(void)
{
    check(&(RefConv){7, 1, 55, 39, 1, 3, 3, 1, 1, 1, 1, 1}, true);
}

/* Images and channels for vectors of 8 floats; for wider vectors both grow. */
static const struct {
    RefConv v;
    bool winograd;
} choices[] = {
    {{8, 8, 4, 4, 8, 3, 3, 1, 1, 1, 1, 1}, true},
    {{2, 64, 14, 14, 128, 3, 3, 1, 1, 0, 0, 1}, true},
    {{16, 16, 6, 6, 16, 3, 3, 1, 1, 1, 1, 1}, true},
    /* too few tiles; tiles that are too empty */
    {{7, 64, 4, 4, 64, 3, 3, 1, 1, 1, 1, 1}, false},
    {{16, 16, 5, 5, 16, 3, 3, 1, 1, 1, 1, 1}, false},
    /* a row of taps lies on padding only */
    {{16, 16, 1, 28, 16, 3, 3, 1, 1, 1, 1, 1}, false},
    /* other convolutions, and blocks that are not full */
    {{8, 16, 8, 8, 16, 3, 3, 2, 2, 1, 1, 1}, false},
    {{8, 16, 8, 8, 16, 3, 3, 1, 1, 1, 1, 2}, false},
    {{8, 16, 8, 8, 16, 1, 3, 1, 1, 0, 1, 1}, false},
    {{8, 16, 8, 8, 16, 3, 3, 1, 1, 2, 2, 1}, false},
    {{8, 12, 8, 8, 16, 3, 3, 1, 1, 1, 1, 1}, false},
};

/* Whether conv2d chooses Winograd. */
static bool chooses(Backend *backend, RefConv v, bool winograd)
{
    static const char all[] = "own:winograd, own:winograd, own:winograd";
    const int wider = dnnl_vector_floats() / 8;
    char text[256];
    RefOp r;
    v.n *= wider, v.c *= wider, v.o *= wider;
    OpSpec s = ref_conv_spec(&v, true);
    CHECK_OK(ref_op_new(&r, backend, &s));
    linear_text(r.op, text);
    const bool right =
        (strcmp(text, all) == 0) == winograd && (strstr(text, "own:winograd") != NULL) == winograd;
    if (!right) printf("  n%d c%d %dx%d: %s\n", (int)v.n, (int)v.c, (int)v.h, (int)v.w, text);
    ref_op_free(&r);
    return right;
}

/* Number of wrong choices if weft and oneDNN are limited to that set; bf16 never uses Winograd. */
static int wrong_choices(InstructionSet set)
{
    int wrong = 0;
    cpu_set_limit(set);
    for (int bf16 = 0; bf16 <= (set == CPU_AVX512); ++bf16) {
        Backend *backend = NULL;
        const DType precision = bf16 ? DTYPE_BF16 : DTYPE_F32;
        const BackendOptions options = {.threads = 1, .precision = precision};
        if (backend_open(&backend, &backend_cpu, options) != OK) {
            printf("  skipped: %s: %s\n", __func__, fail_message());
            wrong += !bf16;
            continue;
        }
        for (size_t i = 0; i < sizeof choices / sizeof *choices; ++i)
            wrong += !chooses(backend, choices[i].v, choices[i].winograd && !bf16);
        backend_close(&backend);
    }
    return wrong;
}

/* oneDNN can be limited once per process, so each set has its own process. */
static void check_choices(InstructionSet set)
{
    int status = -1;
    if (cpu_best() < set) TEST_SKIP("this processor has not this instruction set");
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) exit(wrong_choices(set) != 0);
    CU_ASSERT_FATAL(child > 0 && waitpid(child, &status, 0) == child);
    CU_ASSERT_EQUAL(status, 0);
}
static void chosen_avx512(void)
{
    check_choices(CPU_AVX512);
}
static void chosen_avx2(void)
{
    check_choices(CPU_AVX2);
}

TEST_MAIN("winograd", {"chosen with AVX-512", chosen_avx512}, {"chosen with AVX2", chosen_avx2},
          {"edges and pads", edges_and_pads}, {"channels", channels},
          {"several passes", several_passes})
