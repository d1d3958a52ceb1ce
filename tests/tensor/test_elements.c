/* The bits of an element do not depend on its position in a vector: what a rank of a tensor group
 * computes on its slice of a tensor equals that part of the whole. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

enum { N = 1000, ARRAYS = 4 };

/* Elements first .. first + n - 1 of some arrays, as floats and rounded to the type of a table.
 * Kernels write `out`, and those that update arrays write `f`. */
typedef struct Elements {
    const SimdTable *simd;
    DType type;
    float f[ARRAYS][N];
    Bf16 half[ARRAYS][N];
    char out[2 * N * sizeof(float)];
} Elements;

static void *values_at(Elements *e, int array, int64_t i)
{
    return e->type == DTYPE_F32 ? (void *)&e->f[array][i] : (void *)&e->half[array][i];
}

static void *out_at(Elements *e, int64_t i)
{
    return e->out + i * (int64_t)dtype_bytes(e->type);
}

static const AdamArgs adam = {.lr = 0.01f,
                              .beta1 = 0.9f,
                              .beta2 = 0.999f,
                              .eps = 1e-8f,
                              .grad_scale = 0.7f,
                              .correct1 = 0.1f,
                              .correct2 = 0.001f};

/* Kernels of numbers that one array cannot express. */
/* Activations are the first kernels, then their gradients, then sums. */
enum { GRAD_0 = ACTS, ADD_0 = GRAD_0 + ACTS };
enum {
    KERNEL_MUL = ADD_0 + ACT_RELU6 + 1,
    ADD_FLOATS,
    ADD_INTO,
    FROM_FLOATS,
    TO_FLOATS,
    GRAD,
    GRAD_BASE_0,
    DIFFERENCE
};
enum { SCALE_ADD = DIFFERENCE + 1 };
enum { SGD = SCALE_ADD + 1, SGD_FIRST, ADAM, ADAMW, DIRECTION, DROPOUT, KERNELS };

static void run_floats(Elements *e, int kernel, int64_t i, int64_t n)
{
    const SimdTable *s = e->simd;
    float *out = (float *)(void *)e->out + i, *a = e->f[0] + i, *b = e->f[1] + i, *c = e->f[2] + i,
          *d = e->f[3] + i;
    AdamArgs decoupled = adam;
    const UpdatePiece piece = {.w = a,
                               .g = b,
                               .m = c,
                               .v = d,
                               .n = n,
                               .weight_decay = kernel == SGD || kernel == SGD_FIRST ? 0.01f : 0.1f};
    SgdArgs sgd = {.lr = 0.1f,
                   .momentum = 0.9f,
                   .grad_scale = 0.7f,
                   .nesterov = kernel == SGD,
                   .m_is_empty = kernel == SGD_FIRST};
    decoupled.decoupled = true;
    if (kernel == SCALE_ADD) s->scale_add(a, 0.3f, b, 0.7f, n);
    if (kernel == SGD || kernel == SGD_FIRST) s->sgd(&sgd, &piece);
    if (kernel == ADAM) s->adam(&adam, &piece);
    if (kernel == ADAMW) s->adam(&decoupled, &piece);
    if (kernel == DIRECTION) s->adam_direction(&decoupled, out, &piece);
    if (kernel == DROPOUT)
        s->dropout(rng_key(1, RNG_TEST, 2, 3), (uint64_t)i, (int)n, 1 << 22, 1.25f, out, 1);
}

static void run_kernel(Elements *e, int kernel, int64_t i, int64_t n)
{
    const SimdTable *s = e->simd;
    void *out = out_at(e, i), *a = values_at(e, 0, i), *b = values_at(e, 1, i);
    const SoftmaxGrad grad = {.x = a,
                              .dx = out,
                              .n = n,
                              .label = -1,
                              .lse = 1.7f,
                              .scale = 0.01f,
                              .base = kernel == GRAD ? 0.001f : 0.0f};
    if (kernel < GRAD_0)
        s->act((Act)kernel, 0.3f, out, a, n);
    else if (kernel < ADD_0)
        s->act_grad((Act)(kernel - GRAD_0), 0.3f, out, b, a, n);
    else if (kernel < KERNEL_MUL)
        s->add_act((Act)(kernel - ADD_0), out, a, b, n);
    else if (kernel == KERNEL_MUL)
        s->mul(out, a, e->f[2] + i, n);
    else if (kernel == ADD_FLOATS)
        s->add_floats(out, a, e->f[2] + i, n);
    else if (kernel == ADD_INTO)
        s->add_into(e->f[2] + i, a, n);
    else if (kernel == FROM_FLOATS)
        s->from_floats(out, e->f[2] + i, n);
    else if (kernel == TO_FLOATS)
        s->to_floats(e->f[2] + i, a, n);
    else if (kernel == GRAD || kernel == GRAD_BASE_0)
        s->softmax_grad(&grad);
    else if (kernel == DIFFERENCE)
        s->point_grad(&(PointArgs){.x = a, .target = e->f[2] + i, .n = n}, 0.15f, out);
    else
        run_floats(e, kernel, i, n);
}

/* Values of many magnitudes, zeros of both signs; the last array has no negative
 * values. */
static void fill(Elements *e, const SimdTable *simd, DType type)
{
    memset(e, 0, sizeof *e);
    e->simd = simd;
    e->type = type;
    for (int a = 0; a < ARRAYS; ++a)
        for (int i = 0; i < N; ++i) {
            static const float special[] = {0.0f, -0.0f};
            const int64_t s = rng_u32(rng_key(3, RNG_TEST, (uint64_t)a, 0), (uint64_t)i) % 16;
            float v = (float)(rig_random((uint64_t)a, i) * pow(2, 12 * rig_random(9, i)));
            if (s < 2) v = special[s];
            e->f[a][i] = a == ARRAYS - 1 ? fabsf(v) : v;
            e->half[a][i] = bf16_of(v);
        }
}

static void check_kernels(const char *set, DType type)
{
    static Elements whole, slices;
    const SimdTable *simd = simd_table(type);
    for (int kernel = 0; kernel < KERNELS; ++kernel) {
        fill(&whole, simd, type);
        run_kernel(&whole, kernel, 0, N);
        /* slices of 1, 2, ... elements, so that an element is at each place of a vector */
        for (int step = 1; step < 20; ++step) {
            fill(&slices, simd, type);
            for (int64_t i = 0, n = 1 + step % 3; i < N; i += n, n = step < N - i ? step : N - i)
                run_kernel(&slices, kernel, i, n);
            const bool same = memcmp(&whole, &slices, sizeof whole) == 0;
            CU_ASSERT(same);
            if (!same) printf("  %s, %s: kernel %d, %d\n", set, dtype_name(type), kernel, step);
            if (!same) break;
        }
    }
}

/* swiglu's row has the gate first; a slice of the row is the same slice of gate and values. */
static void check_swiglu(const char *set, DType type)
{
    enum { W = 96, MOST = 2 * W };
    const SimdTable *simd = simd_table(type);
    const size_t bytes = dtype_bytes(type);
    for (int slice = 1; slice < W; ++slice) {
        char x[MOST * 4], dy[W * 4], y[2][W * 4], dx[2][MOST * 4], part[MOST * 4], got[MOST * 4];
        float f[MOST];
        for (int i = 0; i < MOST; ++i) f[i] = (float)(8 * rig_random(3, i));
        simd->from_floats(x, f, MOST);
        simd->from_floats(dy, f + 7, W);
        simd->swiglu(y[0], x, W);
        simd->swiglu_grad(dx[0], dy, x, W);
        for (int at = 0; at < W; at += slice) {
            const size_t n = (size_t)(W - at < slice ? W - at : slice), a = (size_t)at;
            memcpy(part, x + a * bytes, n * bytes);
            memcpy(part + n * bytes, x + (W + a) * bytes, n * bytes);
            simd->swiglu(y[1] + a * bytes, part, (int64_t)n);
            simd->swiglu_grad(got, dy + a * bytes, part, (int64_t)n);
            memcpy(dx[1] + a * bytes, got, n * bytes);
            memcpy(dx[1] + (W + a) * bytes, got + n * bytes, n * bytes);
        }
        bool same = memcmp(y[0], y[1], W * bytes) == 0 && memcmp(dx[0], dx[1], MOST * bytes) == 0;
        CU_ASSERT(same);
        if (!same) printf("  %s, %s: swiglu in slices of %d\n", set, dtype_name(type), slice);
        if (!same) break;
    }
}

/* ---- accuracy of activations ---- */

/* The activation of x, or its derivative, in double. alpha and slope are 0.3f. */
static double exact(Act act, bool slope, double x)
{
    const double factor = (double)0.3f, e = exp(x), s = 1 / (1 + exp(-x));
    const double t = tanh(x > 40 ? x : log1p(e)), inner = fmin(fmax(x + 3, 0), 6);
    switch (act) {
    case ACT_TANH:
        return slope ? 1 / (cosh(x) * cosh(x)) : tanh(x);
    case ACT_SIGMOID:
        return slope ? s * (1 - s) : s;
    case ACT_ELU:
        return x > 0 ? (slope ? 1 : x) : factor * (slope ? e : expm1(x));
    case ACT_LEAKY_RELU:
        return (x > 0 ? 1 : factor) * (slope ? 1 : x);
    case ACT_SOFTPLUS:
        return slope ? s : x > 40 ? x : log1p(e);
    case ACT_MISH:
        return slope ? t + x * (1 - t * t) * s : x * t;
    case ACT_HARDSWISH:
        return !slope ? x * inner / 6 : fabs(x) < 3 ? x / 3 + 0.5 : x > 0;
    case ACT_SILU:
        return slope ? s * (1 + x * (1 - s)) : x * s;
    default:
        die("no exact value of %s", act_name(act));
    }
}

/* Values of fp32 activations are as accurate as numbers of fp32, except near zeros of mish and
 * hardswish, whose terms cancel; derivatives are as accurate as numbers of about 1. */
static void check_accuracy(const char *set, Act act, bool slope)
{
    enum { POINTS = 40000 };
    static float x[POINTS], at[POINTS], out[POINTS];
    const SimdTable *simd = simd_table(DTYPE_F32);
    const bool cancels = slope || act == ACT_HARDSWISH;
    double worst = 0, where = 0;
    for (int i = 0; i < POINTS; ++i)
        x[i] = (float)(i % 2 ? 90.0 * i / POINTS - 45 : rig_random(5, i) * pow(2, -(i % 40)));
    simd->act(act, 0.3f, out, x, POINTS);
    if (slope) {
        const bool from_y = act_facts(act) & ACT_FROM_Y;
        memcpy(at, from_y ? out : x, sizeof at);
        for (int i = 0; i < POINTS; ++i) out[i] = 1;
        simd->act_grad(act, 0.3f, out, out, at, POINTS);
    }
    for (int i = 0; i < POINTS; ++i) {
        const double want = exact(act, slope, (double)x[i]), size = cancels ? 1 : fabs(want);
        const double off = fabs((double)out[i] - want) / fmax(size, 1e-30);
        if (off <= worst) continue;
        worst = isnan(off) ? INFINITY : off;
        where = (double)x[i];
    }
    const double allowed = 0x1p-20;
    if (getenv("WEFT_TEST_VERBOSE") || worst > allowed)
        printf("  %s, %s%s: off by %.3g at %g\n", set, act_name(act), slope ? "'" : "", worst,
               where);
    CU_ASSERT(worst <= allowed);
}

static void test_accuracy(void)
{
    static const char *const sets[] = {"base", "avx2", "avx512"};
    const char *best = simd_table(DTYPE_F32)->name;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; ++s)
        for (int act = ACT_TANH; act < ACTS && simd_use(sets[s]); ++act)
            for (int slope = 0; slope < 2; ++slope) check_accuracy(sets[s], (Act)act, slope == 1);
    CU_ASSERT(simd_use(best));
}

static void test_elements(void)
{
    static const char *const sets[] = {"base", "avx2", "avx512"};
    const char *best = simd_table(DTYPE_F32)->name;
    for (size_t s = 0; s < sizeof sets / sizeof *sets; ++s) {
        if (!simd_use(sets[s])) {
            printf("  skipped %s: not built in, or not on this CPU\n", sets[s]);
            continue;
        }
        check_kernels(sets[s], DTYPE_F32);
        check_swiglu(sets[s], DTYPE_F32);
        if (!simd_table(DTYPE_BF16)) continue;
        check_kernels(sets[s], DTYPE_BF16);
        check_swiglu(sets[s], DTYPE_BF16);
    }
    CU_ASSERT(simd_use(best));
}

TEST_MAIN("elements", {"elements", test_elements}, {"accuracy", test_accuracy})
