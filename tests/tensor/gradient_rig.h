/* Compares one operation that is not a matrix product with a scalar reference in double. The output
 * is compared with the reference, and the gradients of each input and parameter are compared with
 * finite differences of the reference. Covers all layouts and instruction sets, one and two
 * threads, in-place runs where they are allowed, and micro-batches with padding samples. Padded
 * channels must stay zero. Runs on the poison backend. */
#ifndef WEFT_TEST_GRADIENT_RIG_H
#define WEFT_TEST_GRADIENT_RIG_H

#include "kernel_rig.h"
#include "tensor/cpu/simd/simd.h"

typedef struct Case Case;
struct Case {
    /* kind, attributes, and shapes of x, parameters and y, in plain order */
    OpSpec spec;
    /* number of real samples */
    int rows;
    /* set if spec.synced is true */
    const Replicas *replicas;
    void (*reference)(const Case *c, double *const x[], double *const w[], double *y);
};

static const int64_t sample_ids[8] = {900, 3, 77, 12345678901, 5, 6, 7, 8};
static const int32_t labels[16] = {3, 0, 6, 2, 1, 5, 4, 6, 0, 3, 2, 1, 4, 5, 6, 0};

static inline float target_at(int64_t i)
{
    return (float)rig_random(99, i);
}
static inline double act_reference(const OpSpec *s, double v)
{
    const double factor = (double)s->act_factor;
    switch (s->act) {
    case ACT_RELU:
        return v > 0 ? v : 0;
    case ACT_RELU6:
        return v < 0 ? 0 : v > 6 ? 6 : v;
    case ACT_GELU:
        return 0.5 * v * (1 + tanh(sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)));
    case ACT_SILU:
        return v / (1 + exp(-v));
    case ACT_TANH:
        return tanh(v);
    case ACT_SIGMOID:
        return 1 / (1 + exp(-v));
    case ACT_ELU:
        return v > 0 ? v : factor * expm1(v);
    case ACT_LEAKY_RELU:
        return v > 0 ? v : factor * v;
    case ACT_SOFTPLUS:
        return v > 0 ? v + log1p(exp(-v)) : log1p(exp(v));
    case ACT_MISH:
        return v * tanh(v > 30 ? v : log1p(exp(v)));
    case ACT_HARDSWISH:
        return v * fmin(fmax(v + 3, 0), 6) / 6;
    case ACT_NONE:
        break;
    }
    return v;
}

/* ---- expected values of a case ---- */
typedef struct Truth {
    double *x[SPEC_INPUTS], *w[SPEC_PARAMS], *y, *dy, *dx[SPEC_INPUTS], *dw[SPEC_PARAMS];
} Truth;
static const float LOSS_SCALE = 0.25f;

static inline bool is_loss(const OpSpec *s)
{
    return s->kind == OP_SOFTMAX_LOSS || s->kind == OP_POINT_LOSS;
}

/* Returns the number of trained parameters. The last two arrays of batch_norm are running
 * statistics. */
static inline int trained(const OpSpec *s)
{
    return s->kind == OP_BATCH_NORM ? 2 : s->w_count;
}

/* Computes y, and returns the number whose gradients are compared: sum(dy * y) or, for a loss,
 * LOSS_SCALE * sum(loss). */
static inline double objective(const Case *c, const Truth *t, double *y)
{
    double sum = 0;
    c->reference(c, t->x, t->w, y);
    for (int64_t i = 0; i < shape_count(c->spec.y.shape); ++i)
        sum += is_loss(&c->spec) ? (i % LOSS_COLUMNS == 0) * (double)LOSS_SCALE * y[i]
                                 : t->dy[i] * y[i];
    return sum;
}

static inline double *differences(const Case *c, const Truth *t, double *v, int64_t n)
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

static inline double *values(Shape s, uint64_t what, double scale, double shift)
{
    double *v = malloc((size_t)shape_count(s) * sizeof *v);
    for (int64_t i = 0; i < shape_count(s); ++i)
        v[i] = (double)(float)(shift + scale * rig_random(what, i)); /* rounded to a float */
    return v;
}

static inline Truth truth_new(const Case *c)
{
    const OpSpec *s = &c->spec;
    Truth t = {0};
    int64_t per = shape_count(s->x[0].shape) / s->x[0].shape.dim[0];
    const bool clips = s->act == ACT_RELU6 || s->act == ACT_HARDSWISH;
    for (int k = 0; k < s->x_count; ++k) {
        t.x[k] = values(s->x[k].shape, 20 + (uint64_t)k, clips ? 8 : 2, 0);
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

static inline void truth_free(Truth *t)
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
/* tolerance relative to the largest value; five times that for gradients */
static const double TOLERANCE = 2e-5;
static inline void near(const char *what, const char *how, const double *got, const double *want,
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

static inline void run_case(const Case *c, const Truth *t, int block, int threads, bool in_place)
{
    char how[96];
    Rig r = {.in_place = in_place};
    OpSpec spec = c->spec;
    for (int k = 0; k < spec.x_count; ++k) spec.x[k] = rig_desc(c->spec.x[k].shape, block);
    Desc preferred[SPEC_INPUTS];
    Backend *backend;
    Op *op;
    CHECK_OK(backend_open(&backend, &backend_poison, (BackendOptions){.threads = threads}));
    /* plans twice, as the planner does: the first time to get the preferred layouts */
    CHECK_OK(op_new(&op, backend, &spec, preferred));
    snprintf(how, sizeof how, "kind %d, %s, block %d, %d threads%s", (int)spec.kind,
             simd_table(DTYPE_F32)->name, block, threads, in_place ? ", in place" : "");
    op_free(&op);
    backend_close(&backend);
    memcpy(spec.x, preferred, sizeof preferred);
    rig_open(&r, &spec, &backend_poison, threads);
    OpRun *run = &r.run;
    run->sample_count = c->rows;
    run->labels = labels;
    run->sample = sample_ids;
    run->loss_factor = LOSS_SCALE;
    run->replicas = c->replicas;
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

static inline void check(Case c)
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

#endif
