/* Every operation that is not a matrix product, against a scalar reference in double: the output, and the gradients of
 * each input and parameter against finite differences of that reference. All layouts, instruction sets, thread counts,
 * in place where allowed, fewer rows than samples, odd sizes; padding must stay zero. Runs on the poison backend. */
#include "kernel_rig.h"
#include "scalar_reference.h"
#include "tensor/cpu/simd/simd.h"

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
