/* point_loss against sums in double: samples of several pieces, missing targets, weights; the same
 * bits with any number of threads, and for each sample alone. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

enum { N = 3, MOST = 5000 };

typedef struct Sample {
    float x[N * MOST], target[N * MOST], weight[MOST], y[N * LOSS_COLUMNS], dx[N * MOST];
} Sample;

static const float size = 0.5f;

static double value(PointLoss loss, double e)
{
    const double a = fabs(e), s = (double)size;
    switch (loss) {
    case POINT_ABSOLUTE:
        return a;
    case POINT_HUBER:
        return a <= s ? e * e / 2 : s * (a - s / 2);
    case POINT_CHARBONNIER:
        return sqrt(e * e + s * s) - s;
    case POINT_SQUARE:
        break;
    }
    return e * e;
}

static double slope(PointLoss loss, double e)
{
    const double s = (double)size;
    switch (loss) {
    case POINT_ABSOLUTE:
        return (e > 0) - (e < 0);
    case POINT_HUBER:
        return fmin(fmax(e, -s), s);
    case POINT_CHARBONNIER:
        return e / sqrt(e * e + s * s);
    case POINT_SQUARE:
        break;
    }
    return 2 * e;
}

/* Runs `count` samples from sample `first` on, and copies y and dx. */
static void run(Sample *s, PointLoss loss, int first, int count, int width, bool weighted,
                int threads)
{
    const size_t row = (size_t)width;
    OpSpec spec = {.kind = OP_POINT_LOSS,
                   .point = loss,
                   .delta = size,
                   .eps = size,
                   .x_count = 1,
                   .x = {desc_plain(shape_of(3, count, 1, width, 1), DTYPE_F32)},
                   .need_dx = {true},
                   .y = desc_plain(shape_of(2, count, LOSS_COLUMNS, 1, 1), DTYPE_F32)};
    Rig r = {0};
    rig_open(&r, &spec, &backend_poison, threads);
    memcpy((void *)(uintptr_t)r.run.x[0], s->x + first * width, (size_t)count * row * 4);
    r.run.targets = s->target + first * width;
    r.run.target_weights = weighted ? s->weight : NULL;
    r.run.loss_factor = 0.25f;
    op_forward(r.op, &r.run);
    rig_backward(&r);
    memcpy(s->y + first * LOSS_COLUMNS, r.run.y, (size_t)count * LOSS_COLUMNS * 4);
    memcpy(s->dx + first * width, r.run.dx[0], (size_t)count * row * 4);
    rig_close(&r);
}

static void fill(Sample *s, int width, bool missing)
{
    for (int i = 0; i < N * width; ++i) {
        s->x[i] = (float)rig_random(1, i);
        s->target[i] = (float)rig_random(2, i);
        /* the third sample has no targets */
        if (missing && (i % 3 == 1 || i >= 2 * width)) s->target[i] = NAN;
    }
    for (int i = 0; i < width; ++i) s->weight[i] = i % 5 == 2 ? 0 : (float)rig_random(3, i) + 1;
}

static void compare(const Sample *s, PointLoss loss, int width, bool weighted)
{
    double worst = 0;
    for (int r = 0; r < N; ++r) {
        double sum = 0, all = 0;
        for (int i = 0; i < width; ++i) {
            const double t = (double)s->target[r * width + i];
            const double w = isnan(t) ? 0 : weighted ? (double)s->weight[i] : 1;
            if (w > 0) sum += w * value(loss, (double)s->x[r * width + i] - t);
            all += w;
        }
        const double y = all > 0 ? sum / all : 0;
        worst = fmax(worst, fabs((double)s->y[r * LOSS_COLUMNS] - y) / fmax(y, 1e-30));
        for (int i = 0; i < width; ++i) {
            const double t = (double)s->target[r * width + i];
            const double w = isnan(t) ? 0 : weighted ? (double)s->weight[i] : 1;
            const double e = (double)s->x[r * width + i] - t;
            const double dx = w > 0 ? 0.25 * w / all * slope(loss, e) : 0;
            const double off = fabs((double)s->dx[r * width + i] - dx);
            worst = fmax(worst, off / fmax(fabs(dx), 1e-30));
        }
    }
    /* a piece is a sum of POINT_PIECE numbers in fp32 */
    CU_ASSERT(worst <= 4e-6);
    if (!(worst <= 4e-6)) printf("loss %d, width %d: off by %.2g\n", (int)loss, width, worst);
}

static void check(PointLoss loss, int width, bool weighted, bool missing)
{
    static Sample one, two, alone;
    fill(&one, width, missing);
    two = alone = one;
    run(&one, loss, 0, N, width, weighted, 1);
    compare(&one, loss, width, weighted);
    run(&two, loss, 0, N, width, weighted, 2);
    CU_ASSERT(memcmp(&two, &one, sizeof one) == 0);
    for (int r = 0; r < N; ++r) run(&alone, loss, r, 1, width, weighted, 2);
    CU_ASSERT(memcmp(&alone, &one, sizeof one) == 0);
}

static void test_losses(void)
{
    static const char *const isas[] = {"base", "avx2", "avx512"};
    static const int widths[] = {1, 7, POINT_PIECE, POINT_PIECE + 1, MOST};
    const char *best = simd_table(DTYPE_F32)->name;
    for (int isa = 0; isa < 3; ++isa)
        for (int loss = 0; loss < POINT_LOSS_COUNT && simd_use(isas[isa]); ++loss)
            for (int w = 0; w < 5; ++w)
                for (int how = 0; how < 4; ++how)
                    check((PointLoss)loss, widths[w], how & 1, how & 2);
    simd_use(best);
}

/* Numbers without a target do not count, even if they are not finite; others do. */
static void test_not_finite(void)
{
    static Sample s;
    fill(&s, 8, true);
    for (int i = 0; i < N * 8; ++i)
        if (isnan(s.target[i])) s.x[i] = i % 2 ? NAN : INFINITY;
    run(&s, POINT_CHARBONNIER, 0, N, 8, false, 1);
    for (int i = 0; i < N * 8; ++i) CU_ASSERT(isnan(s.target[i]) ? s.dx[i] == 0 : s.dx[i] != 0);
    CU_ASSERT(isfinite(s.y[0]) && isfinite(s.y[LOSS_COLUMNS]));
    s.x[0] = NAN;
    run(&s, POINT_CHARBONNIER, 0, N, 8, false, 1);
    CU_ASSERT(isnan(s.y[0]) && isfinite(s.y[LOSS_COLUMNS]));
}

TEST_MAIN("point loss", {"losses", test_losses}, {"not finite", test_not_finite})
