/* Every operation that is not a matrix product, against a scalar reference in double: the output, and the gradients of
 * each input and parameter against finite differences of that reference. All layouts, instruction sets, thread counts,
 * in place where allowed, fewer rows than samples, odd sizes; padding must stay zero. Runs on the poison backend. */
#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

typedef struct Case Case;
struct Case {
    OpSpec spec; /* x shapes, parameters and y shape in plain order */
    int rows;
    void (*reference)(const Case *c, double *const x[], double *const w[], double *y);
};

static int64_t hw_of(Shape s)
{
    return s.dim[2] * s.dim[3];
}

static double act_reference(Act act, double v)
{
    switch (act) {
    case ACT_RELU:
        return v > 0 ? v : 0;
    case ACT_RELU6:
        return v < 0 ? 0 : v > 6 ? 6 : v;
    case ACT_GELU:
        return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case ACT_SILU:
        return v / (1 + exp(-v));
    case ACT_NONE:
        break;
    }
    return v;
}

static void batch_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t hw = hw_of(s), channels = s.dim[1], count = c->rows * hw;
    for (int64_t i = 0; i < shape_count(s); ++i) y[i] = 0;
    for (int64_t ch = 0; ch < channels; ++ch) {
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < count; ++i) mean += x[0][(i / hw * channels + ch) * hw + i % hw];
        mean /= (double)count;
        for (int64_t i = 0; i < count; ++i)
            variance += pow(x[0][(i / hw * channels + ch) * hw + i % hw] - mean, 2);
        variance /= (double)count;
        for (int64_t i = 0; i < count; ++i) {
            int64_t at = (i / hw * channels + ch) * hw + i % hw;
            double v = (x[0][at] - mean) / sqrt(variance + c->spec.eps) * w[0][ch] + w[1][ch];
            y[at] = act_reference(c->spec.act, v + (c->spec.residual ? x[1][at] : 0));
        }
    }
}

static void layer_norm(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t n = s.dim[s.ndim - 1], rows = shape_count(s) / n;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * n;
        bool real = r < rows / s.dim[0] * c->rows;
        double mean = 0, variance = 0;
        for (int64_t i = 0; i < n; ++i) mean += row[i] / (double)n;
        for (int64_t i = 0; i < n; ++i) variance += pow(row[i] - mean, 2) / (double)n;
        for (int64_t i = 0; i < n; ++i)
            y[r * n + i] =
                real ? (row[i] - mean) / sqrt(variance + c->spec.eps) * w[0][i] + w[1][i] : 0;
    }
}

static void activation(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i)
        y[i] = act_reference(c->spec.act, x[0][i]);
}

static void add(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i) {
        double sum = 0;
        for (int k = 0; k < c->spec.x_count; ++k) sum += x[k][i];
        y[i] = act_reference(c->spec.act, sum);
    }
}

static void flatten(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    memcpy(y, x[0], (size_t)shape_count(c->spec.y.shape) * sizeof *y);
}

static void concat(const Case *c, double *const x[], double *const w[], double *y)
{
    (void)w;
    for (int64_t n = 0; n < c->spec.y.shape.dim[0]; ++n)
        for (int k = 0; k < c->spec.x_count; ++k) {
            int64_t part = shape_count(c->spec.x[k].shape) / c->spec.y.shape.dim[0];
            memcpy(y, x[k] + n * part, (size_t)part * sizeof *y);
            y += part;
        }
}

static void pool(const Case *c, double *const x[], double *const w[], double *y)
{
    const OpSpec *s = &c->spec;
    int64_t h = s->x[0].shape.dim[2], wide = s->x[0].shape.dim[3];
    bool global = s->pool == POOL_GLOBAL_AVG;
    (void)w;
    for (int64_t o = 0; o < shape_count(s->y.shape); ++o) {
        int64_t q = s->y.shape.dim[3], p = s->y.shape.dim[2], plane = o / (p * q);
        int64_t row = global ? 0 : o / q % p * s->stride[0] - s->pad[0];
        int64_t col = global ? 0 : o % q * s->stride[1] - s->pad[1];
        double sum = 0, best = -INFINITY, count = 0;
        for (int64_t i = row; i < row + (global ? h : s->kernel[0]); ++i)
            for (int64_t j = col; j < col + (global ? wide : s->kernel[1]); ++j) {
                if (i < 0 || j < 0 || i >= h || j >= wide) continue;
                double v = x[0][(plane * h + i) * wide + j];
                best = v > best ? v : best;
                sum += v;
                ++count;
            }
        y[o] = act_reference(s->act, s->pool == POOL_MAX ? best : sum / count);
    }
}

/* Drawn with the scalar generator, one element at a time. */
static const int64_t sample_ids[8] = {900, 3, 77, 12345678901, 5, 6, 7, 8};
static void dropout(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = shape_count(s) / s.dim[0];
    (void)w;
    for (int64_t i = 0; i < shape_count(s); ++i) {
        uint64_t name[2] = {c->spec.seed_name, (uint64_t)sample_ids[i / per]};
        RngKey key = rng_key(11, RNG_DROPOUT, hash_bytes(name, sizeof name), 5);
        bool keep = rng_uniform(key, (uint64_t)(i % per)) >= c->spec.drop;
        y[i] = keep ? x[0][i] / (1 - (double)c->spec.drop) : 0;
    }
}

static const int32_t labels[16] = {3, 0, 6, 2, 1, 5, 4, 6, 0, 3, 2, 1, 4, 5, 6, 0};
static void softmax_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t k = s.dim[s.ndim - 1], rows = shape_count(s) / k;
    (void)w;
    for (int64_t r = 0; r < rows; ++r) {
        const double *row = x[0] + r * k, smooth = (double)c->spec.smoothing;
        double sum = 0, loss = 0, label_rank = 0, top = 0;
        for (int64_t i = 0; i < k; ++i) sum += exp(row[i]);
        for (int64_t i = 0; i < k; ++i) {
            double target = (i == labels[r] ? 1 - smooth : 0) + smooth / (double)k;
            loss -= target * (row[i] - log(sum));
            label_rank += row[i] > row[labels[r]];
            if (row[i] > row[(int64_t)top]) top = (double)i;
        }
        bool real = r < rows / s.dim[0] * c->rows;
        for (int i = 0; i < LOSS_COLUMNS; ++i)
            y[r * LOSS_COLUMNS + i] = real ? (double[]){loss, label_rank, top}[i] : 0;
    }
}

static float target_at(int64_t i)
{
    return (float)rig_random(99, i);
}
static void mse_loss(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    (void)w;
    for (int64_t r = 0; r < s.dim[0]; ++r) {
        y[r * LOSS_COLUMNS] = y[r * LOSS_COLUMNS + 1] = y[r * LOSS_COLUMNS + 2] = 0;
        for (int64_t i = 0; r < c->rows && i < s.dim[1]; ++i)
            y[r * LOSS_COLUMNS] +=
                pow(x[0][r * s.dim[1] + i] - target_at(r * s.dim[1] + i), 2) / (double)s.dim[1];
    }
}

static void positions(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.x[0].shape;
    int64_t per = s.dim[1] * s.dim[2];
    for (int64_t i = 0; i < shape_count(s); ++i)
        y[i] = i / per < c->rows ? x[0][i] + w[0][i % per] : 0;
}

/* Value `i` of the query or key at place t of a head, turned if the case wants that. */
static double turned(const Case *c, const double *head, int64_t t, int64_t i)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = stride / 3 / c->spec.heads;
    if (!c->spec.rotary) return head[t * stride + i];
    int64_t half = width / 2, low = i % half;
    double a = head[t * stride + low], b = head[t * stride + low + half];
    double angle = (double)t * pow(10000, -2.0 * (double)low / (double)width);
    return i < half ? a * cos(angle) - b * sin(angle) : b * cos(angle) + a * sin(angle);
}

/* One query: q of the head, its keys from `key` on, values from `value` on. */
static void attend(const Case *c, const double *q, const double *key, const double *value,
                   int64_t t, double *y)
{
    int64_t stride = c->spec.x[0].shape.dim[2], width = stride / 3 / c->spec.heads;
    double weight[16], total = 0;
    for (int64_t s = 0; s <= t; ++s) {
        double score = 0;
        for (int64_t i = 0; i < width; ++i) score += turned(c, q, t, i) * turned(c, key, s, i);
        weight[s] = exp(score / sqrt((double)width));
        total += weight[s];
    }
    for (int64_t i = 0; i < width; ++i) {
        y[i] = 0;
        for (int64_t s = 0; s <= t; ++s) y[i] += weight[s] / total * value[s * stride + i];
    }
}

static void attention(const Case *c, double *const x[], double *const w[], double *y)
{
    Shape s = c->spec.y.shape;
    int64_t width = s.dim[2] / c->spec.heads;
    (void)w;
    memset(y, 0, (size_t)shape_count(s) * sizeof *y);
    for (int64_t n = 0; n < c->rows; ++n)
        for (int h = 0; h < c->spec.heads; ++h)
            for (int64_t t = 0; t < s.dim[1]; ++t) {
                const double *q = x[0] + n * s.dim[1] * 3 * s.dim[2] + h * width;
                attend(c, q, q + s.dim[2], q + 2 * s.dim[2], t,
                       y + (n * s.dim[1] + t) * s.dim[2] + h * width);
            }
}

/* ---- what a case should give ---- */
typedef struct Truth {
    double *x[SPEC_INPUTS], *w[SPEC_PARAMS], *y, *dy, *dx[SPEC_INPUTS], *dw[SPEC_PARAMS];
} Truth;
static const float LOSS_SCALE = 0.25f;

static bool is_loss(const OpSpec *s)
{
    return s->kind == OP_SOFTMAX_LOSS || s->kind == OP_MSE_LOSS;
}

/* Trained parameters: batch_norm's last two are running statistics. */
static int trained(const OpSpec *s)
{
    return s->kind == OP_BATCH_NORM ? 2 : s->w_count;
}

/* The gradients are those of sum(dy * y); for a loss, of scale * sum(loss). */
static double objective(const Case *c, const Truth *t, double *y)
{
    double sum = 0;
    c->reference(c, t->x, t->w, y);
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i)
        sum += is_loss(&c->spec) ? (i % LOSS_COLUMNS == 0) * (double)LOSS_SCALE * y[i]
                                 : t->dy[i] * y[i];
    return sum;
}

static double *differences(const Case *c, const Truth *t, double *v, int64_t n)
{
    const double step = 1e-6;
    double *d = malloc((size_t)n * sizeof *d);
    double *y = malloc((size_t)shape_count(c->spec.y.shape) * sizeof *y);
    for (int64_t i = 0; i < n; ++i) {
        double old = v[i];
        v[i] = old + step;
        double up = objective(c, t, y);
        v[i] = old - step;
        d[i] = (up - objective(c, t, y)) / (2 * step);
        v[i] = old;
    }
    free(y);
    return d;
}

static double *values(Shape s, uint64_t what, double scale, double shift)
{
    double *v = malloc((size_t)shape_count(s) * sizeof *v);
    for (int64_t i = 0; i < shape_count(s); ++i)
        v[i] = (double)(float)(shift + scale * rig_random(what, i)); /* what a float holds */
    return v;
}

static Truth truth_new(const Case *c)
{
    const OpSpec *s = &c->spec;
    Truth t = {0};
    int64_t per = shape_count(s->x[0].shape) / s->x[0].shape.dim[0];
    for (int k = 0; k < s->x_count; ++k) {
        t.x[k] = values(s->x[k].shape, 20 + (uint64_t)k, s->act == ACT_RELU6 ? 8 : 2, 0);
        per = shape_count(s->x[k].shape) / s->x[k].shape.dim[0];
        for (int64_t i = c->rows * per; i < shape_count(s->x[k].shape); ++i) t.x[k][i] = 0;
    }
    for (int k = 0; k < trained(s); ++k)
        t.w[k] = values(s->w[k], 40 + (uint64_t)k, 2, s->kind == OP_BATCH_NORM && k == 1 ? 1 : 0);
    int64_t n = shape_count(s->y.shape), real = n / s->y.shape.dim[0] * c->rows;
    t.y = malloc((size_t)n * sizeof *t.y);
    t.dy = values(s->y.shape, 60, 1, 0);
    for (int64_t i = real; i < n && !is_loss(s); ++i) t.dy[i] = 0;
    for (int k = 0; k < s->x_count; ++k)
        t.dx[k] = differences(c, &t, t.x[k], shape_count(s->x[k].shape));
    for (int k = 0; k < trained(s); ++k) t.dw[k] = differences(c, &t, t.w[k], shape_count(s->w[k]));
    objective(c, &t, t.y);
    return t;
}

static void truth_free(Truth *t)
{
    for (int k = 0; k < SPEC_INPUTS; ++k) {
        free(t->x[k]);
        free(t->dx[k]);
    }
    for (int k = 0; k < SPEC_PARAMS; ++k) {
        free(t->w[k]);
        free(t->dw[k]);
    }
    free(t->y);
    free(t->dy);
}

/* ---- one run of a case ---- */
static const double TOLERANCE = 2e-5; /* of the largest value; gradients: five times */
static void near(const char *what, const char *how, const double *got, const double *want,
                 int64_t n, double tolerance)
{
    double top = 1e-3, worst = 0;
    for (int64_t i = 0; i < n; ++i) {
        double off = fabs(got[i] - want[i]);
        if (!(off <= worst)) worst = isnan(off) ? INFINITY : off;
        if (fabs(want[i]) > top) top = fabs(want[i]);
    }
    if (!(worst <= tolerance * top)) printf("  %s, %s: off by %g of %g\n", what, how, worst, top);
    CU_ASSERT(worst <= tolerance * top);
}

static void run_case(const Case *c, const Truth *t, int block, int threads, bool in_place)
{
    char how[96];
    Rig r = {.in_place = in_place};
    OpSpec spec = c->spec;
    for (int k = 0; k < spec.x_count; ++k) spec.x[k] = rig_desc(c->spec.x[k].shape, block);
    Desc preferred[SPEC_INPUTS];
    Backend *backend;
    Op *op;
    CHECK_OK(backend_open(&backend, &backend_poison, (BackendOptions){.threads = threads}));
    CHECK_OK(
        op_new(&op, backend, &spec, preferred)); /* as the planner does: first ask what it wishes */
    snprintf(how, sizeof how, "kind %d, %s, block %d, %d threads%s", (int)spec.kind,
             simd_table(DTYPE_F32)->name, block, threads, in_place ? ", in place" : "");
    op_free(&op);
    backend_close(&backend);
    memcpy(spec.x, preferred, sizeof preferred);
    rig_open(&r, &spec, &backend_poison, threads);
    OpRun *run = &r.run;
    run->rows = c->rows;
    run->labels = labels;
    run->sample = sample_ids;
    run->loss_scale = LOSS_SCALE;
    float targets[64];
    for (int i = 0; i < 64; ++i) targets[i] = target_at(i);
    run->targets = targets;
    for (int k = 0; k < spec.x_count; ++k) rig_put(r.op->spec.x[k], t->x[k], (float *)run->x[k]);
    for (int k = 0; k < trained(&spec); ++k)
        rig_put(desc_plain(spec.w[k], DTYPE_F32), t->w[k], (float *)run->w[k]);
    int64_t n = shape_count(c->spec.y.shape), most = 1 << 16;
    double *got = malloc((size_t)most * sizeof *got);
    op_forward(r.op, run);
    rig_get(r.op->spec.y, run->y, got);
    near("y", how, got, t->y, n, TOLERANCE);
    if (!is_loss(&spec)) rig_put(r.op->spec.y, t->dy, run->dy);
    rig_backward(&r);
    for (int k = 0; k < spec.x_count; ++k) {
        rig_get(r.op->spec.x[k], run->dx[k], got);
        near("dx", how, got, t->dx[k], shape_count(spec.x[k].shape), 5 * TOLERANCE);
    }
    for (int k = 0; k < trained(&spec); ++k) {
        rig_get(desc_plain(spec.w[k], DTYPE_F32), run->dw[k], got);
        near("dw", how, got, t->dw[k], shape_count(spec.w[k]), 5 * TOLERANCE);
    }
    free(got);
    rig_close(&r);
}

static void check(Case c)
{
    static const char *const isas[] = {"base", "avx2", "avx512"};
    static const int blocks[] = {1, 8, 16, 0};
    const char *best = simd_table(DTYPE_F32)->name;
    Truth t = truth_new(&c);
    bool image = c.spec.x[0].shape.ndim == 4;
    for (int isa = 0; isa < 3; ++isa) {
        if (!simd_use(isas[isa])) continue;
        for (int b = 0; b < (image ? 4 : 1); ++b)
            for (int threads = 1; threads <= 2; ++threads)
                run_case(&c, &t, blocks[b], threads, threads == 2);
    }
    simd_use(best);
    truth_free(&t);
}

static Desc plain(int ndim, int64_t a, int64_t b, int64_t c, int64_t d)
{
    return desc_plain(shape_of(ndim, a, b, c, d), DTYPE_F32);
}

static void batch_norm_case(Desc x, Act act, bool residual, int rows)
{
    Case c = {.spec = {.kind = OP_BATCH_NORM,
                       .act = act,
                       .residual = residual,
                       .eps = 1e-5f,
                       .x_count = residual ? 2 : 1,
                       .w_count = 4,
                       .x = {x, x},
                       .y = x},
              .rows = rows,
              .reference = batch_norm};
    for (int i = 0; i < 4; ++i) c.spec.w[i] = shape_of(1, x.shape.dim[1], 1, 1, 1);
    check(c);
}

static void test_batch_norm(void)
{
    batch_norm_case(plain(4, 4, 19, 5, 3), ACT_NONE, false, 4);
    batch_norm_case(plain(4, 3, 5, 3, 7), ACT_RELU, true, 2);
    batch_norm_case(plain(4, 3, 33, 2, 2), ACT_RELU6, false, 3);
    batch_norm_case(plain(4, 2, 16, 4, 4), ACT_RELU6, true, 1);
    batch_norm_case(plain(2, 6, 21, 1, 1), ACT_RELU, false, 5);
    batch_norm_case(plain(4, 3, 5, 2, 2), ACT_NONE, true, 3);
}

static void test_layer_norm(void)
{
    Case c = {.spec = {.kind = OP_LAYER_NORM, .eps = 1e-5f, .x_count = 1, .w_count = 2},
              .rows = 2,
              .reference = layer_norm};
    c.spec.x[0] = c.spec.y = plain(3, 3, 5, 37, 1);
    c.spec.w[0] = c.spec.w[1] = shape_of(1, 37, 1, 1, 1);
    check(c);
    c.rows = 7;
    c.spec.x[0] = c.spec.y = plain(2, 7, 64, 1, 1);
    c.spec.w[0] = c.spec.w[1] = shape_of(1, 64, 1, 1, 1);
    check(c);
}

static void test_activation(void)
{
    for (Act act = ACT_RELU; act <= ACT_SILU; ++act) {
        Desc x = plain(4, 2, 19, 3, 5);
        check((Case){.spec = {.kind = OP_ACTIVATION, .act = act, .x_count = 1, .x = {x}, .y = x},
                     .rows = 2,
                     .reference = activation});
    }
}

static void pool_case(PoolMode mode, Act act, int kernel, int stride, int pad, int64_t h, int64_t w)
{
    bool global = mode == POOL_GLOBAL_AVG;
    Case c = {.spec = {.kind = OP_POOL,
                       .pool = mode,
                       .act = act,
                       .kernel = {kernel, kernel},
                       .stride = {stride, stride},
                       .pad = {pad, pad},
                       .x_count = 1,
                       .x = {plain(4, 2, 19, h, w)}},
              .rows = 2,
              .reference = pool};
    c.spec.y = global ? plain(4, 2, 19, 1, 1)
                      : plain(4, 2, 19, (h + 2 * pad - kernel) / stride + 1,
                              (w + 2 * pad - kernel) / stride + 1);
    check(c);
}

static void test_pool(void)
{
    pool_case(POOL_MAX, ACT_NONE, 2, 2, 0, 5, 4);
    pool_case(POOL_MAX, ACT_RELU, 3, 2, 1, 6, 5);
    pool_case(POOL_MAX, ACT_NONE, 3, 1, 1, 4, 5);
    pool_case(POOL_MAX, ACT_RELU, 2, 3, 0, 8, 7);
    pool_case(POOL_MAX, ACT_NONE, 2, 2, 1, 5, 5);
    pool_case(POOL_AVG, ACT_NONE, 3, 2, 1, 5, 6);
    pool_case(POOL_AVG, ACT_RELU, 2, 2, 0, 6, 5);
    pool_case(POOL_GLOBAL_AVG, ACT_NONE, 0, 0, 0, 5, 3);
    pool_case(POOL_GLOBAL_AVG, ACT_RELU, 0, 0, 0, 3, 3);
}

static void test_add(void)
{
    const Act acts[] = {ACT_NONE, ACT_RELU, ACT_RELU6};
    for (int i = 0; i < 3; ++i) {
        Desc x = plain(4, 3, 19, 2, 5);
        check((Case){
            .spec = {.kind = OP_ADD, .act = acts[i], .x_count = 2 + i, .x = {x, x, x, x}, .y = x},
            .rows = 3,
            .reference = add});
    }
}

static void test_concat(void)
{
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 3,
                          .x = {plain(4, 2, 16, 3, 2), plain(4, 2, 32, 3, 2), plain(4, 2, 5, 3, 2)},
                          .y = plain(4, 2, 53, 3, 2)},
                 .rows = 2,
                 .reference = concat});
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 2,
                          .x = {plain(4, 2, 7, 3, 2), plain(4, 2, 9, 3, 2)},
                          .y = plain(4, 2, 16, 3, 2)},
                 .rows = 2,
                 .reference = concat});
    check((Case){.spec = {.kind = OP_CONCAT,
                          .x_count = 2,
                          .x = {plain(2, 3, 7, 1, 1), plain(2, 3, 4, 1, 1)},
                          .y = plain(2, 3, 11, 1, 1)},
                 .rows = 3,
                 .reference = concat});
}

static void test_flatten(void)
{
    check((Case){.spec = {.kind = OP_FLATTEN,
                          .x_count = 1,
                          .x = {plain(4, 2, 19, 3, 2)},
                          .y = plain(2, 2, 114, 1, 1)},
                 .rows = 2,
                 .reference = flatten});
    check((Case){.spec = {.kind = OP_FLATTEN,
                          .x_count = 1,
                          .x = {plain(4, 2, 32, 1, 1)},
                          .y = plain(2, 2, 32, 1, 1)},
                 .rows = 2,
                 .reference = flatten});
}

static void test_dropout(void)
{
    Desc image = plain(4, 3, 19, 5, 15), flat = plain(2, 4, 333, 1, 1);
    check((Case){.spec = {.kind = OP_DROPOUT,
                          .drop = 0.3f,
                          .seed_name = 42,
                          .x_count = 1,
                          .x = {image},
                          .y = image},
                 .rows = 3,
                 .reference = dropout});
    check((Case){.spec = {.kind = OP_DROPOUT,
                          .drop = 0.5f,
                          .seed_name = 43,
                          .x_count = 1,
                          .x = {flat},
                          .y = flat},
                 .rows = 4,
                 .reference = dropout});
}

static void test_positions(void)
{
    Case c = {.spec = {.kind = OP_POSITIONS, .x_count = 1, .w_count = 1},
              .rows = 2,
              .reference = positions};
    c.spec.x[0] = c.spec.y = plain(3, 3, 5, 19, 1);
    c.spec.w[0] = shape_of(2, 7, 19, 1, 1);
    check(c);
    c.rows = 4;
    c.spec.x[0] = c.spec.y = plain(3, 4, 3, 32, 1);
    c.spec.w[0] = shape_of(2, 3, 32, 1, 1);
    check(c);
}

static void test_attention(void)
{
    static const struct {
        int n, t, heads, width, rows;
        bool rotary;
    } table[] = {{3, 7, 1, 32, 2, false}, {1, 5, 2, 64, 1, true}, {2, 3, 1, 80, 1, true},
                 {2, 5, 3, 5, 2, false},  {2, 9, 2, 16, 2, true}, {1, 1, 1, 8, 1, false}};
    for (size_t i = 0; i < sizeof table / sizeof *table; ++i) {
        int64_t c = (int64_t)table[i].heads * table[i].width;
        check((Case){.spec = {.kind = OP_ATTENTION,
                              .heads = table[i].heads,
                              .rotary = table[i].rotary,
                              .x_count = 1,
                              .x = {plain(3, table[i].n, table[i].t, 3 * c, 1)},
                              .y = plain(3, table[i].n, table[i].t, c, 1)},
                     .rows = table[i].rows,
                     .reference = attention});
    }
}

static void test_losses(void)
{
    for (int smooth = 0; smooth < 2; ++smooth) {
        Case c = {.spec = {.kind = OP_SOFTMAX_LOSS,
                           .smoothing = smooth ? 0.1f : 0.0f,
                           .x_count = 1,
                           .x = {plain(2, 5, 7, 1, 1)},
                           .y = plain(2, 5, LOSS_COLUMNS, 1, 1)},
                  .rows = 4,
                  .reference = softmax_loss};
        check(c);
        c.spec.x[0] = plain(3, 3, 4, 33, 1);
        c.spec.y = plain(2, 12, LOSS_COLUMNS, 1, 1);
        c.rows = 2;
        check(c);
    }
    check((Case){.spec = {.kind = OP_MSE_LOSS,
                          .x_count = 1,
                          .x = {plain(2, 4, 9, 1, 1)},
                          .y = plain(2, 4, LOSS_COLUMNS, 1, 1)},
                 .rows = 3,
                 .reference = mse_loss});
}

TEST_MAIN("gradients", {"batch_norm", test_batch_norm}, {"layer_norm", test_layer_norm},
          {"activation", test_activation}, {"pool", test_pool}, {"add", test_add},
          {"concat", test_concat}, {"flatten", test_flatten}, {"dropout", test_dropout},
          {"positions", test_positions}, {"attention", test_attention}, {"losses", test_losses})
