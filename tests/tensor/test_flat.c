/* Flat ranges: values against scalar loops in double, and the promise that a range may be cut
 * anywhere and computed by any number of threads with the same bits. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

#include <float.h>

enum { N = 70001, RANGES = 4 };

typedef struct Flat {
    Backend *backend;
    const FlatTable *t;
    Stream *s;
    float *v[RANGES];
} Flat;

static void fill(Flat *f)
{
    for (int k = 0; k < RANGES; ++k)
        for (int64_t i = 0; i < N; ++i) f->v[k][i] = (float)rig_random((uint64_t)k + 1, i);
    for (int64_t i = 0; i < N; ++i) f->v[3][i] = fabsf(f->v[3][i]);
}

static Flat open_flat(int threads)
{
    Flat f = {0};
    CHECK_OK(backend_open(&f.backend, &backend_cpu, (BackendOptions){.threads = threads}));
    f.t = f.backend->table->flat;
    f.s = f.backend->table->stream(f.backend);
    for (int k = 0; k < RANGES; ++k) f.v[k] = malloc(N * sizeof(float));
    fill(&f);
    return f;
}

static void close_flat(Flat *f)
{
    for (int k = 0; k < RANGES; ++k) free(f->v[k]);
    backend_close(&f->backend);
}

/* One call of each operation on elements [from, from + n) of the four ranges. */
typedef void (*Work)(const Flat *f, int64_t from, int64_t n);
static const float DECAY = 0.01f;
static const SgdArgs SGD = {.lr = 0.1f, .momentum = 0.9f, .grad_scale = 0.5f};
static const AdamArgs ADAM = {.lr = 0.1f,
                              .beta1 = 0.9f,
                              .beta2 = 0.99f,
                              .eps = 1e-6f,
                              .grad_scale = 0.5f,
                              .correct1 = 0.19f,
                              .correct2 = 0.0199f};

static void add_work(const Flat *f, int64_t from, int64_t n)
{
    f->t->add(f->s, f->v[0] + from, f->v[0] + from, f->v[1] + from, n);
}
static void scale_work(const Flat *f, int64_t from, int64_t n)
{
    f->t->scale_add(f->s, f->v[0] + from, 0.3f, f->v[1] + from, 0.7f, n);
}
/* Returns elements [from, from + n) of the four ranges as a piece of parameters. */
static UpdatePiece piece_of(const Flat *f, int64_t from, int64_t n)
{
    return (UpdatePiece){.w = f->v[0] + from,
                         .g = f->v[1] + from,
                         .m = f->v[2] + from,
                         .v = f->v[3] + from,
                         .n = n,
                         .weight_decay = DECAY};
}
static void sgd_with(const Flat *f, int64_t from, int64_t n, bool first, bool nesterov)
{
    SgdArgs a = SGD;
    a.m_is_empty = first;
    a.nesterov = nesterov;
    const UpdatePiece piece = piece_of(f, from, n);
    f->t->sgd(f->s, &a, &piece, 1);
}
static void sgd_work(const Flat *f, int64_t from, int64_t n)
{
    sgd_with(f, from, n, false, false);
}
static void first_work(const Flat *f, int64_t from, int64_t n)
{
    sgd_with(f, from, n, true, false);
}
static void nesterov_work(const Flat *f, int64_t from, int64_t n)
{
    sgd_with(f, from, n, false, true);
}
static void first_nesterov_work(const Flat *f, int64_t from, int64_t n)
{
    sgd_with(f, from, n, true, true);
}
static void plain_sgd_work(const Flat *f, int64_t from, int64_t n)
{
    SgdArgs a = SGD;
    a.momentum = 0;
    UpdatePiece piece = piece_of(f, from, n);
    piece.m = piece.v = NULL;
    f->t->sgd(f->s, &a, &piece, 1);
}
static void adam_work(const Flat *f, int64_t from, int64_t n)
{
    const UpdatePiece piece = piece_of(f, from, n);
    f->t->adam(f->s, &ADAM, &piece, 1);
}
static void adamw_work(const Flat *f, int64_t from, int64_t n)
{
    AdamArgs a = ADAM;
    a.decoupled = true;
    /* two pieces in one call */
    const UpdatePiece piece[] = {piece_of(f, from, n / 3), piece_of(f, from + n / 3, n - n / 3)};
    f->t->adam(f->s, &a, piece, 2);
}
/* The direction is written to range 0, whose old values serve as weights through a copy in range
 * 1. */
static void lamb_work(const Flat *f, int64_t from, int64_t n)
{
    UpdatePiece piece = piece_of(f, from, n);
    piece.w = f->v[1] + from;
    f->t->adam_direction(f->s, &ADAM, f->v[0] + from, &piece);
}

/* The expected result of each operation for one element, in double: changes v[0..3] in place. */
typedef void (*Scalar)(double v[RANGES]);
static void add_scalar(double v[])
{
    v[0] += v[1];
}
static void scale_scalar(double v[])
{
    v[0] = (double)0.3f * v[1] + (double)0.7f * v[0];
}
static double sgd_gradient(const double v[])
{
    return (double)SGD.grad_scale * v[1] + (double)DECAY * v[0];
}
static void sgd_scalar(double v[])
{
    v[2] = (double)SGD.momentum * v[2] + sgd_gradient(v);
    v[0] -= (double)SGD.lr * v[2];
}
static void first_scalar(double v[])
{
    v[2] = sgd_gradient(v);
    v[0] -= (double)SGD.lr * v[2];
}
static void nesterov_scalar(double v[])
{
    double g = sgd_gradient(v);
    v[2] = (double)SGD.momentum * v[2] + g;
    v[0] -= (double)SGD.lr * (g + (double)SGD.momentum * v[2]);
}
static void first_nesterov_scalar(double v[])
{
    v[2] = sgd_gradient(v);
    v[0] -= (double)SGD.lr * v[2] * (1 + (double)SGD.momentum);
}
static void plain_sgd_scalar(double v[])
{
    v[0] -= (double)SGD.lr * sgd_gradient(v);
}
static void moments(double v[], double g)
{
    v[2] = (double)ADAM.beta1 * v[2] + (1 - (double)ADAM.beta1) * g;
    v[3] = (double)ADAM.beta2 * v[3] + (1 - (double)ADAM.beta2) * g * g;
}
static double ratio(const double v[])
{
    return v[2] / (double)ADAM.correct1 / (sqrt(v[3] / (double)ADAM.correct2) + (double)ADAM.eps);
}
static void adam_scalar(double v[])
{
    moments(v, (double)ADAM.grad_scale * v[1] + (double)DECAY * v[0]);
    v[0] -= (double)ADAM.lr * ratio(v);
}
static void adamw_scalar(double v[])
{
    v[0] *= 1 - (double)ADAM.lr * (double)DECAY;
    moments(v, (double)ADAM.grad_scale * v[1]);
    v[0] -= (double)ADAM.lr * ratio(v);
}
static void lamb_scalar(double v[])
{
    moments(v, (double)ADAM.grad_scale * v[1]);
    v[0] = ratio(v) + (double)DECAY * v[1];
}

static const struct {
    const char *name;
    Work work;
    Scalar scalar;
} works[] = {{"add", add_work, add_scalar},
             {"scale_add", scale_work, scale_scalar},
             {"sgd", sgd_work, sgd_scalar},
             {"sgd, first", first_work, first_scalar},
             {"sgd, nesterov", nesterov_work, nesterov_scalar},
             {"sgd, nesterov, first", first_nesterov_work, first_nesterov_scalar},
             {"sgd, no momentum", plain_sgd_work, plain_sgd_scalar},
             {"adam", adam_work, adam_scalar},
             {"adamw", adamw_work, adamw_scalar},
             {"lamb", lamb_work, lamb_scalar}};
enum { WORKS = sizeof works / sizeof *works };

static const char *const isas[] = {"base", "avx2", "avx512"};

static void test_values(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    Flat f = open_flat(2);
    for (int isa = 0; isa < 3; ++isa)
        for (int w = 0; w < WORKS; ++w) {
            if (!simd_use(isas[isa])) continue;
            fill(&f);
            works[w].work(&f, 0, N);
            double worst = 0;
            for (int64_t i = 0; i < N; ++i) {
                double v[RANGES];
                for (int k = 0; k < RANGES; ++k)
                    v[k] = (double)(float)rig_random((uint64_t)k + 1, i);
                v[3] = fabs(v[3]);
                works[w].scalar(v);
                for (int k = 0; k < RANGES; ++k) {
                    double off = fabs(f.v[k][i] - v[k]) / (1 + fabs(v[k]));
                    if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
                }
            }
            if (!(worst < 1e-6)) printf("  %s, %s: off by %g\n", works[w].name, isas[isa], worst);
            CU_ASSERT(worst < 1e-6);
        }
    simd_use(best);
    close_flat(&f);
}

static void test_cuts(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    const int64_t cuts[] = {0, 1, 14, 63, 4096, 20011, 37000, 37003, N};
    Flat one = open_flat(1), two = open_flat(2);
    for (int isa = 0; isa < 3; ++isa)
        for (int w = 0; w < WORKS; ++w) {
            if (!simd_use(isas[isa])) continue;
            fill(&one);
            fill(&two);
            for (size_t c = 0; c + 1 < sizeof cuts / sizeof *cuts; ++c)
                works[w].work(&one, cuts[c], cuts[c + 1] - cuts[c]);
            works[w].work(&two, 0, N);
            for (int k = 0; k < RANGES; ++k)
                CU_ASSERT_EQUAL(memcmp(one.v[k], two.v[k], N * sizeof(float)), 0);
        }
    simd_use(best);
    close_flat(&one);
    close_flat(&two);
}

static void test_squares(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    enum { CHUNKS = (N + FLAT_CHUNK - 1) / FLAT_CHUNK };
    double first[CHUNKS], sums[CHUNKS];
    Flat f = open_flat(2);
    for (int isa = 0; isa < 3; ++isa) {
        if (!simd_use(isas[isa])) continue;
        f.t->squares(f.s, sums, f.v[0], N);
        if (isa == 0) memcpy(first, sums, sizeof sums);
        /* the same on every instruction set */
        CU_ASSERT_EQUAL(memcmp(first, sums, sizeof sums), 0);
        for (int c = 0; c < CHUNKS; ++c) {
            double want = 0, one;
            int64_t end = (c + 1) * FLAT_CHUNK < N ? (c + 1) * FLAT_CHUNK : N;
            for (int64_t i = c * FLAT_CHUNK; i < end; ++i) want += (double)f.v[0][i] * f.v[0][i];
            CU_ASSERT_DOUBLE_EQUAL(sums[c], want, 1e-9);
            memmove(f.v[1] + 3, f.v[0] + c * FLAT_CHUNK,
                    (size_t)(end - c * FLAT_CHUNK) * sizeof(float));
            f.t->squares(f.s, &one, f.v[1] + 3, end - c * FLAT_CHUNK);
            CU_ASSERT_EQUAL(memcmp(&one, &sums[c], sizeof one), 0);
        }
    }
    simd_use(best);
    close_flat(&f);
}

/* The exact sum of x in slices of `step` elements, the last slice first. */
static SquareSum sum_of_slices(const Flat *f, const float *x, int64_t n, int64_t step)
{
    SquareSum sum = {0}, all[(N + FLAT_CHUNK - 1) / FLAT_CHUNK + 1], joined;
    for (int64_t at = (n - 1) / step * step; at >= 0; at -= step) {
        const int64_t count = n - at < step ? n - at : step;
        const int64_t first[] = {0, (count + FLAT_CHUNK - 1) / FLAT_CHUNK};
        double value;
        f->t->exact_squares(f->s, all, x + at, count);
        f->t->join_squares(f->s, &joined, &value, all, first, 1);
        CU_ASSERT(value == square_sum_value(&joined) || isnan(value));
        square_sum_add(&sum, &joined);
    }
    return sum;
}

/* Exact sums do not depend on slices, their order, or the instruction set, for numbers of any
 * magnitude; and they equal sums in long double. */
static void test_exact_squares(void)
{
    const char *best = simd_table(DTYPE_F32)->name;
    static const double spread[] = {0, 8, 60, 250};
    Flat f = open_flat(2);
    for (size_t k = 0; k < sizeof spread / sizeof *spread; ++k) {
        SquareSum want = {0};
        long double right = 0;
        for (int64_t i = 0; i < N; ++i) {
            const double exponent = spread[k] * (rig_random(4, i / 700) - 1) / 2 + spread[k] / 2;
            f.v[0][i] = (float)(rig_random(5, i) * exp2(exponent / 2));
            right += (long double)f.v[0][i] * (long double)f.v[0][i];
        }
        for (int isa = 0; isa < 3; ++isa) {
            if (!simd_use(isas[isa])) continue;
            for (int64_t step = 1; step < N; step = 3 * step + 1) {
                SquareSum got = sum_of_slices(&f, f.v[0], N, step);
                if (want.scale == 0) want = got;
                CU_ASSERT_EQUAL(memcmp(&got, &want, sizeof got), 0);
            }
        }
        CU_ASSERT(want.scale > 0);
        CU_ASSERT(fabsl((long double)square_sum_value(&want) - right) <= right * 1e-15L);
    }
    for (int isa = 0; isa < 3; ++isa) {
        static const float edge[] = {FLT_MAX, 1e-45f, -FLT_MIN, 0, INFINITY, NAN};
        if (!simd_use(isas[isa])) continue;
        SquareSum sum = sum_of_slices(&f, edge, 4, 4);
        CU_ASSERT_EQUAL(square_sum_value(&sum), (double)FLT_MAX * FLT_MAX);
        sum = sum_of_slices(&f, edge + 1, 1, 1);
        CU_ASSERT_EQUAL(square_sum_value(&sum), 0x1p-298);
        sum = sum_of_slices(&f, edge, 5, 2);
        CU_ASSERT_EQUAL(square_sum_value(&sum), INFINITY);
        sum = sum_of_slices(&f, edge, 6, 3);
        CU_ASSERT(isnan(square_sum_value(&sum)));
    }
    simd_use(best);
    close_flat(&f);
}

/* One element that is infinite or NaN, at any place; and the largest finite numbers. */
static void test_overflow(void)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    const char *best = simd_table(DTYPE_F32)->name;
    Flat f = open_flat(2);
    for (int64_t i = 0; i < N; ++i) f.v[0][i] = i % 3 ? FLT_MAX : -FLT_MAX;
    f.v[0][1] = -0.0f;
    f.v[0][2] = 1e-45f;
    for (int isa = 0; isa < 3; ++isa) {
        if (!simd_use(isas[isa])) continue;
        float found = 0;
        f.t->find_not_finite(f.s, &found, f.v[0], N);
        CU_ASSERT_EQUAL(found, 0);
        for (int64_t i = 0; i < N; i += i < 70 || i > N - 70 ? 1 : 997) {
            float was = f.v[0][i], before = 0;
            f.v[0][i] = bad[i % 4];
            f.t->find_not_finite(f.s, &found, f.v[0], N);
            f.t->find_not_finite(f.s, &before, f.v[0], i);
            CU_ASSERT(found == 1 && before == 0);
            f.v[0][i] = was;
            found = 0;
        }
    }
    simd_use(best);
    close_flat(&f);
}

/* Ranges that begin and end anywhere; elements outside them stay unchanged. */
static void test_find_and_copy(void)
{
    enum { ENDS = 40, LENGTH = 100 };
    static float from[ENDS + LENGTH], to[ENDS + LENGTH + 1];
    const char *best = simd_table(DTYPE_F32)->name;
    for (int i = 0; i < ENDS + LENGTH; ++i) from[i] = (float)i - 0.5f;
    for (int isa = 0; isa < 3; ++isa) {
        if (!simd_use(isas[isa])) continue;
        for (int first = 0; first < ENDS; ++first)
            for (int n = 0; n <= LENGTH; n += n < ENDS ? 1 : 7) {
                memset(to, 0xff, sizeof to);
                CU_ASSERT(!backend_cpu.flat->find_and_copy(to + first, from + n % 5, n));
                CU_ASSERT(memcmp(to + first, from + n % 5, (size_t)n * sizeof *to) == 0);
                const float *end = to + first + n;
                CU_ASSERT(isnan(end[0]) && (first == 0 || isnan(to[first - 1])));
                if (n == 0) continue;
                float *one = &from[(first * 7 + n) % n], was = *one;
                *one = first % 2 ? -INFINITY : NAN;
                CU_ASSERT(backend_cpu.flat->find_and_copy(to + first, from, n));
                CU_ASSERT(backend_cpu.flat->find_and_copy(NULL, from, n));
                *one = was;
            }
    }
    simd_use(best);
}

static void test_overwrite(void)
{
    Flat f = open_flat(1);
    for (int64_t i = 0; i < N; ++i) f.v[0][i] = NAN;
    /* with beta 0 the old y is not read */
    f.t->scale_add(f.s, f.v[0], 2.0f, f.v[1], 0.0f, N);
    CU_ASSERT_EQUAL(f.v[0][N - 1], 2.0f * f.v[1][N - 1]);
    f.t->add(f.s, f.v[0], f.v[1], f.v[2], 0);
    CU_ASSERT_EQUAL(f.v[0][0], 2.0f * f.v[1][0]);
    close_flat(&f);
}

TEST_MAIN("flat", {"values", test_values}, {"cuts and threads", test_cuts},
          {"squares", test_squares}, {"exact squares", test_exact_squares},
          {"overflow", test_overflow}, {"finding and copying", test_find_and_copy},
          {"overwriting", test_overwrite})
