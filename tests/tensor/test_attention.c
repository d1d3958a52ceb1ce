/* Attention over many tiles, forward and backward, against a plain implementation in double: every
 * instruction set, odd lengths and head widths, with and without rotary positions, padded samples,
 * large scores. The bits are the same for any number of threads, whether the work is cut by heads
 * or by tiles. (test_gradients.c has small shapes with finite differences,
 * tests/layers/test_golden.c PyTorch's values.) */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

typedef struct Shapes {
    int n, t, heads, width, rows;
    bool rotary;
    /* magnitude of the values of x */
    double scale;
    /* heads of keys and values; 0: equal to heads */
    int kv_heads;
    /* keys that a query attends to; 0: all */
    int window;
    /* slices of the query heads, by which gradients of keys are summed; 0: not cut */
    int slices;
} Shapes;

static int64_t keys_of(const Shapes *s)
{
    return s->kv_heads ? s->kv_heads : s->heads;
}

/* Elements of a row of x. */
static int64_t row_of(const Shapes *s)
{
    return (s->heads + 2 * keys_of(s)) * s->width;
}

static OpSpec spec_of(const Shapes *s)
{
    int64_t c = (int64_t)s->heads * s->width;
    OpSpec spec = {.kind = OP_ATTENTION,
                   .heads = s->heads,
                   .kv_heads = s->kv_heads,
                   .rotary = s->rotary,
                   .window = s->window,
                   .x_count = 1,
                   .need_dx = {true}};
    spec.slices = (SumSlices){.total = s->slices,
                              .count = s->slices,
                              .units = s->heads,
                              .first_unit_ratio = 1,
                              .parts = 1};
    spec.x[0] = desc_plain(shape_of(3, s->n, s->t, row_of(s), 1), DTYPE_F32);
    spec.y = desc_plain(shape_of(3, s->n, s->t, c, 1), DTYPE_F32);
    return spec;
}

/* Rows of one head, each `width` doubles: rotated queries and keys, values, their gradients,
 * outputs. */
typedef struct Head {
    int64_t t, width, window;
    double *q, *k, *v, *dq, *dk, *dv, *y;
} Head;

static double *zeros(int64_t n)
{
    return mem_new((size_t)n * sizeof(double));
}

static void turn(double *row, int64_t width, int64_t t, double sign)
{
    for (int64_t i = 0; i < width / 2; ++i) {
        double angle = sign * (double)t * pow(10000, -2.0 * (double)i / (double)width);
        double a = row[i], b = row[i + width / 2];
        row[i] = a * cos(angle) - b * sin(angle);
        row[i + width / 2] = b * cos(angle) + a * sin(angle);
    }
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += a[i] * b[i];
    return sum;
}

static void add_scaled(double *to, double by, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] += by * from[i];
}

/* Computes one query's output, and adds the contribution of its dy to the gradients. */
static void query(const Head *h, int64_t t, const double *dy)
{
    const int64_t w = h->width;
    const double scale = 1 / sqrt((double)w);
    double *p = zeros(t + 1), top = -INFINITY, total = 0;
    const int64_t first = h->window > 0 && t >= h->window ? t - h->window + 1 : 0;
    for (int64_t s = first; s <= t; ++s) {
        p[s] = scale * dot(h->q + t * w, h->k + s * w, w);
        top = fmax(top, p[s]);
    }
    for (int64_t s = first; s <= t; ++s) total += p[s] = exp(p[s] - top);
    for (int64_t s = first; s <= t; ++s) add_scaled(h->y + t * w, p[s] /= total, h->v + s * w, w);
    double delta = dot(dy, h->y + t * w, w);
    for (int64_t s = first; s <= t; ++s) {
        double ds = scale * p[s] * (dot(dy, h->v + s * w, w) - delta);
        add_scaled(h->dv + s * w, p[s], dy, w);
        add_scaled(h->dq + t * w, ds, h->k + s * w, w);
        add_scaled(h->dk + s * w, ds, h->q + t * w, w);
    }
    mem_free(&p);
}

/* Copies rows, `stride` apart in the tensor, to a head, or with `out` adds the head's rows to the
 * tensor. */
static void part(const Head *h, double *rows, double *tensor, int64_t stride, bool out)
{
    for (int64_t t = 0; t < h->t; ++t)
        for (int64_t i = 0; i < h->width; ++i)
            if (out)
                tensor[t * stride + i] += rows[t * h->width + i];
            else
                rows[t * h->width + i] = tensor[t * stride + i];
}

/* x and dx belong to the sample, dy and y to the head. */
static void head_run(const Shapes *s, int head, double *x, double *dy, double *y, double *dx)
{
    const int64_t t = s->t, w = s->width, c = (int64_t)s->heads * w, n = t * w, row = row_of(s);
    const int64_t q = head * w, k = c + head * keys_of(s) / s->heads * w, v = k + keys_of(s) * w;
    double *all = zeros(8 * n), *grad = all + 7 * n;
    Head h = {t,           w,           s->window,   all,         all + n,
              all + 2 * n, all + 3 * n, all + 4 * n, all + 5 * n, all + 6 * n};
    part(&h, h.q, x + q, row, false);
    part(&h, h.k, x + k, row, false);
    part(&h, h.v, x + v, row, false);
    part(&h, grad, dy, c, false);
    for (int64_t i = 0; s->rotary && i < t; ++i) {
        turn(h.q + i * w, w, i, 1);
        turn(h.k + i * w, w, i, 1);
    }
    for (int64_t i = 0; i < t; ++i) query(&h, i, grad + i * w);
    for (int64_t i = 0; s->rotary && i < t; ++i) {
        turn(h.dq + i * w, w, i, -1);
        turn(h.dk + i * w, w, i, -1);
    }
    part(&h, h.y, y, c, true);
    part(&h, h.dq, dx + q, row, true);
    part(&h, h.dk, dx + k, row, true);
    part(&h, h.dv, dx + v, row, true);
    mem_free(&all);
}

typedef struct Truth {
    int64_t x_count, y_count;
    double *x, *dy, *y, *dx;
} Truth;

/* Padded samples have numbers in x and dy, too, which must not affect any result. */
static Truth truth_new(const Shapes *s)
{
    int64_t c = (int64_t)s->heads * s->width, per = (int64_t)s->t * c;
    Truth r = {.x_count = (int64_t)s->n * s->t * row_of(s), .y_count = s->n * per};
    r.x = zeros(r.x_count);
    r.dx = zeros(r.x_count);
    r.y = zeros(r.y_count);
    r.dy = zeros(r.y_count);
    for (int64_t i = 0; i < r.x_count; ++i) r.x[i] = (float)(s->scale * rig_random(1, i));
    for (int64_t i = 0; i < r.y_count; ++i) r.dy[i] = (float)rig_random(2, i);
    for (int64_t n = 0; n < s->rows; ++n)
        for (int64_t h = 0; h < s->heads; ++h) {
            int64_t at = n * per + h * s->width, x_at = n * s->t * row_of(s);
            head_run(s, h, r.x + x_at, r.dy + at, r.y + at, r.dx + x_at);
        }
    return r;
}

static void truth_free(Truth *r)
{
    mem_free(&r->x);
    mem_free(&r->dx);
    mem_free(&r->y);
    mem_free(&r->dy);
}

static void near(const char *what, const Shapes *s, const float *got, const double *want, int64_t n)
{
    double worst = 0, top = 0;
    for (int64_t i = 0; i < n; ++i) {
        double off = fabs(got[i] - want[i]);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
        top = fmax(top, fabs(want[i]));
    }
    const double tolerance = 4e-6 * fmax(1, s->scale * s->scale);
    if (!(worst <= tolerance * top))
        printf("  %s of %dx%d, %d heads (%d of keys) of %d, window %d, %s: off by %g of %g\n", what,
               s->n, s->t, s->heads, (int)keys_of(s), s->width, s->window,
               simd_table(DTYPE_F32)->name, worst, top);
    CU_ASSERT(worst <= tolerance * top);
}

static void run(Rig *r, const Shapes *s, const Truth *truth, int threads)
{
    OpSpec spec = spec_of(s);
    rig_open(r, &spec, &backend_poison, threads);
    r->run.sample_count = s->rows;
    rig_put(spec.x[0], truth->x, (float *)(uintptr_t)r->run.x[0]);
    rig_put(spec.y, truth->dy, r->run.dy);
    op_forward(r->op, &r->run);
    rig_backward(r);
}

static const Shapes shapes[] = {
    {1, 64, 1, 64, 1, false, 1, 0, 0, 0},   {2, 65, 2, 32, 2, true, 1, 0, 0, 0},
    {1, 200, 1, 80, 1, true, 1, 0, 0, 0},   {3, 130, 1, 24, 2, false, 1, 0, 0, 0},
    {1, 129, 2, 7, 1, false, 1, 0, 0, 0},   {1, 100, 1, 130, 1, true, 1, 0, 0, 0},
    {1, 150, 1, 64, 1, false, 8, 0, 0, 0},  {1, 193, 3, 48, 1, false, 1, 0, 0, 0},
    {1, 130, 4, 32, 1, true, 1, 2, 0, 0},   {2, 150, 3, 20, 2, true, 1, 1, 0, 0},
    {2, 64, 6, 16, 1, false, 1, 3, 0, 0},   {1, 130, 2, 16, 1, true, 1, 0, 1, 0},
    {2, 150, 1, 24, 2, true, 1, 0, 20, 0},  {1, 200, 2, 16, 1, false, 1, 1, 64, 0},
    {1, 193, 1, 32, 1, true, 8, 0, 65, 0},  {1, 260, 3, 20, 1, true, 1, 1, 70, 0},
    {1, 130, 1, 7, 1, false, 1, 0, 129, 0}, {1, 70, 1, 16, 1, true, 1, 0, 200, 0},
    {1, 130, 8, 16, 1, true, 1, 2, 0, 8},   {2, 150, 7, 20, 2, true, 1, 1, 70, 4},
    {1, 64, 4, 7, 1, false, 1, 2, 0, 4},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static void test_values(void)
{
    static const char *const isas[] = {"base", "avx2", "avx512"};
    const char *best = simd_table(DTYPE_F32)->name;
    for (int i = 0; i < SHAPES; ++i) {
        Truth truth = truth_new(&shapes[i]);
        for (int isa = 0; isa < 3; ++isa) {
            Rig r = {0};
            if (!simd_use(isas[isa])) continue;
            run(&r, &shapes[i], &truth, 1);
            near("y", &shapes[i], r.run.y, truth.y, truth.y_count);
            near("dx", &shapes[i], r.run.dx[0], truth.dx, truth.x_count);
            rig_close(&r);
        }
        simd_use(best);
        truth_free(&truth);
    }
}

static void test_threads(void)
{
    for (int i = 0; i < SHAPES; ++i) {
        Truth truth = truth_new(&shapes[i]);
        Rig one = {0};
        run(&one, &shapes[i], &truth, 1);
        for (int threads = 2; threads <= 5; ++threads) {
            Rig r = {0};
            run(&r, &shapes[i], &truth, threads);
            CU_ASSERT_EQUAL(memcmp(one.run.y, r.run.y, (size_t)truth.y_count * sizeof(float)), 0);
            CU_ASSERT_EQUAL(
                memcmp(one.run.dx[0], r.run.dx[0], (size_t)truth.x_count * sizeof(float)), 0);
            rig_close(&r);
        }
        rig_close(&one);
        truth_free(&truth);
    }
}

/* Copies columns first .. first + count - 1 of rows of `width` floats to `to`, whose rows have
 * to_width. */
static void copy_columns(const float *from, int64_t width, int64_t first, float *to,
                         int64_t to_width, int64_t to_first, int64_t count, int64_t rows)
{
    for (int64_t r = 0; r < rows; ++r)
        memcpy(to + r * to_width + to_first, from + r * width + first, (size_t)count * sizeof *to);
}

/* The query heads of rank r of `ranks`, and its key heads. */
static Shapes part_of(const Shapes *s, int r, int ranks)
{
    Shapes part = *s;
    part.heads = (int)(slice_first(s->heads, ranks, r + 1) - slice_first(s->heads, ranks, r));
    part.kv_heads = s->kv_heads > ranks ? s->kv_heads / ranks : 1;
    return part;
}

/* Runs attention of rank r's query heads with the inputs of `whole`; returns dx. */
static float *rank_run(const Shapes *s, const Rig *whole, int r, int ranks)
{
    const Shapes own = part_of(s, r, ranks);
    const int64_t rows = (int64_t)s->n * s->t, w = s->width, c = s->heads * w,
                  own_c = own.heads * w;
    const int64_t first = slice_first(s->heads, ranks, r) * w, keys = own.kv_heads * w;
    const int64_t key = c + (int64_t)s->kv_heads * r / ranks * w, value = key + s->kv_heads * w;
    OpSpec spec = spec_of(&own);
    Rig rig = {0};
    spec.slices = (SumSlices){.total = s->slices,
                              .first = s->slices / ranks * r,
                              .count = s->slices / ranks,
                              .units = s->heads,
                              .first_unit_ratio = 1,
                              .parts = 1};
    rig_open(&rig, &spec, &backend_poison, 1);
    float *x = (float *)(uintptr_t)rig.run.x[0];
    const float *from = whole->run.x[0];
    copy_columns(from, row_of(s), first, x, row_of(&own), 0, own_c, rows);
    copy_columns(from, row_of(s), key, x, row_of(&own), own_c, keys, rows);
    copy_columns(from, row_of(s), value, x, row_of(&own), own_c + keys, keys, rows);
    copy_columns(whole->run.dy, c, first, rig.run.dy, own_c, 0, own_c, rows);
    op_forward(rig.op, &rig.run);
    rig_backward(&rig);
    float *dx = mem_new((size_t)(rows * row_of(&own)) * sizeof *dx);
    memcpy(dx, rig.run.dx[0], (size_t)(rows * row_of(&own)) * sizeof *dx);
    rig_close(&rig);
    return dx;
}

/* dx of all ranks, whose sums of shared key heads are joined by the tree, has the bits of one
 * rank. */
static void check_ranks(const Shapes *s, int ranks)
{
    enum { RANKS = 8 };
    const int64_t rows = (int64_t)s->n * s->t, w = s->width, row = row_of(s);
    const int sharing = ranks > s->kv_heads ? ranks / s->kv_heads : 1;
    Truth truth = truth_new(s);
    Rig one = {0};
    float *dx[RANKS], *joined = mem_new((size_t)(rows * row) * sizeof *joined);
    run(&one, s, &truth, 1);
    for (int r = 0; r < ranks; ++r) {
        const Shapes own = part_of(s, r, ranks);
        dx[r] = rank_run(s, &one, r, ranks);
        copy_columns(dx[r], row_of(&own), 0, joined, row, slice_first(s->heads, ranks, r) * w,
                     own.heads * w, rows);
    }
    for (int step = 1; step < sharing; step *= 2)
        for (int r = 0; r < ranks; r += 2 * step) {
            const Shapes left = part_of(s, r, ranks), right = part_of(s, r + step, ranks);
            for (int64_t i = 0; i < rows; ++i)
                for (int64_t k = 0; k < 2 * w; ++k)
                    dx[r][i * row_of(&left) + left.heads * w + k] +=
                        dx[r + step][i * row_of(&right) + right.heads * w + k];
        }
    for (int r = 0; r < ranks; r += sharing) {
        const Shapes own = part_of(s, r, ranks);
        const int64_t keys = own.kv_heads * w, at = own.heads * w;
        const int64_t key = (s->heads + (int64_t)s->kv_heads * r / ranks) * w;
        copy_columns(dx[r], row_of(&own), at, joined, row, key, keys, rows);
        copy_columns(dx[r], row_of(&own), at + keys, joined, row, key + s->kv_heads * w, keys,
                     rows);
    }
    CU_ASSERT_EQUAL(memcmp(joined, one.run.dx[0], (size_t)(rows * row) * sizeof *joined), 0);
    for (int r = 0; r < ranks; ++r) mem_free(&dx[r]);
    mem_free(&joined);
    rig_close(&one);
    truth_free(&truth);
}

static void test_ranks(void)
{
    static const Shapes shared[] = {
        {1, 70, 8, 16, 1, true, 1, 2, 0, 8},
        {2, 70, 8, 12, 2, false, 1, 1, 20, 8},
        {1, 70, 14, 16, 1, true, 1, 2, 0, 8},
        {1, 70, 8, 16, 1, true, 1, 4, 0, 8},
    };
    for (size_t i = 0; i < sizeof shared / sizeof *shared; ++i)
        for (int ranks = 2; ranks <= shared[i].slices; ranks *= 2) check_ranks(&shared[i], ranks);
}

/* A later position never changes an earlier output. */
static void test_causal(void)
{
    const Shapes s = {1, 70, 1, 16, 1, true, 1, 0, 0, 0};
    const int64_t places[] = {15, 16, 63, 64, 69};
    Truth truth = truth_new(&s);
    Rig before = {0};
    run(&before, &s, &truth, 1);
    for (size_t i = 0; i < sizeof places / sizeof *places; ++i) {
        Rig after = {0};
        double kept = truth.x[places[i] * 48 + 16];
        truth.x[places[i] * 48 + 16] = 5;
        run(&after, &s, &truth, 1);
        size_t bytes = (size_t)places[i] * 16 * sizeof(float);
        CU_ASSERT_EQUAL(memcmp(before.run.y, after.run.y, bytes), 0);
        CU_ASSERT_NOT_EQUAL(
            memcmp((char *)before.run.y + bytes, (char *)after.run.y + bytes, 16 * sizeof(float)),
            0);
        truth.x[places[i] * 48 + 16] = kept;
        rig_close(&after);
    }
    rig_close(&before);
    truth_free(&truth);
}

static void test_bad_specs(void)
{
    const Shapes s = {1, 4, 2, 8, 1, false, 1, 0, 0, 0};
    Backend *backend;
    Op *op;
    Desc preferred[SPEC_INPUTS];
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    OpSpec spec = spec_of(&s);
    spec.heads = 3;
    CHECK_FAILS(op_new(&op, backend, &spec, preferred), ERR_CONFIG, "3 heads do not match");
    spec = spec_of(&s);
    spec.heads = 16;
    spec.rotary = true;
    CHECK_FAILS(op_new(&op, backend, &spec, preferred), ERR_CONFIG, "even width");
    spec = spec_of(&s);
    spec.kv_heads = 1;
    CHECK_FAILS(op_new(&op, backend, &spec, preferred), ERR_CONFIG, "2 heads do not match");
    spec = spec_of(&(Shapes){1, 4, 6, 8, 1, false, 1, 3, 0, 4});
    CHECK_FAILS(op_new(&op, backend, &spec, preferred), ERR_BUG, "4 slices of fp32");
    backend_close(&backend);
}

TEST_MAIN("attention", {"values", test_values}, {"threads", test_threads}, {"ranks", test_ranks},
          {"causal", test_causal}, {"bad specs", test_bad_specs})
