/* Gradients of every layer kind, input and parameter against central differences of a random
 * projection of the output; and the promises of dropout's mask. Inputs stay away from kinks (relu,
 * max), so that derivatives exist. */
#include "gradient_cases.h"
#include "harness.h"

typedef struct Variant {
    const BackendTable *backend;
    int block;
} Variant;
static const Variant variants[] = {
    {&backend_cpu, 1}, {&backend_cpu, 8}, {&backend_cpu, 16}, {&backend_poison, 8}};

/* All numbers of one case, in plain order. */
typedef struct Numbers {
    int64_t y_count, x_count[3], w_count[SPEC_PARAMS];
    /* owned */
    float *x[3], *w[SPEC_PARAMS], *y, *projection;
} Numbers;

static float made_up(Fill fill, uint32_t seed, int64_t i, int64_t n)
{
    if (fill == FILL_DISTINCT)
        return 4.0f * (float)(i * 7919 % n) / (float)n - 2; /* 7919 is coprime to every n here */
    float v = rig_number(seed, i, fill == FILL_KINKS ? 8 : 1, fill == FILL_KINKS ? 1 : 0);
    if (fill == FILL_KINKS && (fabsf(v) < 0.2f || fabsf(v - 6) < 0.2f)) v += 0.5f;
    return v;
}

static float *make(Fill fill, uint32_t seed, int64_t n)
{
    float *out = mem_new((size_t)n * sizeof *out);
    for (int64_t i = 0; i < n; ++i) out[i] = made_up(fill, seed, i, n);
    return out;
}

static bool is_loss(const Rig *rig)
{
    return op_is_loss(op_info(rig->spec.kind));
}

/* For a loss the projection is the loss itself; padded samples contribute nothing. */
static void make_projection(Numbers *n, const Rig *rig)
{
    int64_t samples = rig->spec.x[0].shape.dim[0],
            real = n->y_count / samples * rig->run.sample_count;
    n->projection = make(FILL_PLAIN, 77, n->y_count);
    for (int64_t i = 0; i < n->y_count; ++i) {
        if (is_loss(rig)) n->projection[i] = i % LOSS_COLUMNS == 0 ? rig->run.loss_factor : 0;
        if (i >= real) n->projection[i] = 0;
    }
}

static Numbers numbers_new(const Rig *rig, const GradientCase *c)
{
    Numbers n = {.y_count = shape_count(rig->spec.y.shape)};
    for (int i = 0; i < rig->spec.x_count; ++i) {
        n.x_count[i] = shape_count(rig->spec.x[i].shape);
        n.x[i] = make(c->fill, 11 + (uint32_t)i, n.x_count[i]);
        if (rig->spec.x[i].dtype != DTYPE_I32) continue;
        for (int64_t k = 0; k < n.x_count[i]; ++k)
            ((int32_t *)n.x[i])[k] = (int32_t)(k * 3 % rig->size.rows);
    }
    for (int i = 0; i < rig->spec.w_count; ++i) {
        n.w_count[i] = shape_count(rig->spec.w[i]);
        n.w[i] = make(FILL_PLAIN, 31 + (uint32_t)i, n.w_count[i]);
    }
    n.y = mem_new((size_t)n.y_count * sizeof(float));
    make_projection(&n, rig);
    return n;
}

static void numbers_free(Numbers *n)
{
    for (int i = 0; i < 3; ++i) mem_free(&n->x[i]);
    for (int i = 0; i < SPEC_PARAMS; ++i) mem_free(&n->w[i]);
    mem_free(&n->y);
    mem_free(&n->projection);
}

static void give(Rig *rig, const Numbers *n)
{
    for (int i = 0; i < rig->spec.x_count; ++i) rig_set_x(rig, i, n->x[i]);
    for (int i = 0; i < rig->spec.w_count; ++i) rig_set_w(rig, i, n->w[i]);
}

static void give_rest(Rig *rig)
{
    int64_t rows = is_loss(rig) ? loss_labels(&rig->spec) : 0;
    int32_t *labels = mem_new(((size_t)rows + 1) * sizeof *labels);
    int64_t samples = rig->spec.x[0].shape.dim[0],
            *sample = mem_new((size_t)samples * sizeof *sample);
    const bool two = rig->spec.x[0].shape.dim[1] == 1;
    for (int64_t i = 0; i < rows; ++i) labels[i] = (int32_t)(2 * i % 5) % (two ? 2 : 5);
    /* the second pixel has no label */
    if (rig->spec.x[0].shape.ndim == 4 && rows > 1) labels[1] = -1;
    for (int64_t i = 0; i < samples; ++i) sample[i] = 100 + 7 * i;
    rig_set_samples(rig, sample, samples);
    if (op_info(rig->spec.kind)->reads == READS_LABELS) rig_set_labels(rig, labels, rows);
    if (op_info(rig->spec.kind)->reads == READS_TARGETS) {
        int64_t count = shape_count(rig->spec.x[0].shape);
        float *targets = make(FILL_PLAIN, 91, count);
        /* fields have missing targets, and weights with a 0 */
        if (rig->spec.x[0].shape.ndim > 2) {
            float *weights = make(FILL_PLAIN, 92, count / samples);
            for (int64_t i = 0; i < count; i += 4) targets[i] = NAN;
            for (int64_t i = 0; i < count / samples; ++i)
                weights[i] = i == 1 ? 0 : 0.1f + fabsf(weights[i]);
            rig_set_target_weights(rig, weights, count / samples, 0);
            mem_free(&weights);
        }
        rig_set_targets(rig, targets, count);
        mem_free(&targets);
    }
    if (op_info(rig->spec.kind)->reads == READS_BOXES) {
        const float tiny[2][BOX_NUMBERS] = {{1, 0.4f, 0.6f, 0.01f, 0.01f},
                                            {0, 0.2f, 0.9f, 0, 0.1f}};
        rig_set_boxes(rig, (const int32_t[]){0, 2, 2}, tiny[0], (const int32_t[]){0, 3, 5});
    }
    rig->run.seed = 5;
    rig->run.step = 9;
    rig->run.loss_factor = is_loss(rig) ? 0.5f : 1;
    mem_free(&labels);
    mem_free(&sample);
}

static double projected(Rig *rig, Numbers *n)
{
    double sum = 0;
    give(rig, n);
    rig_forward(rig);
    rig_get_y(rig, n->y);
    for (int64_t i = 0; i < n->y_count; ++i)
        if (n->projection[i] != 0) sum += (double)n->projection[i] * (double)n->y[i];
    return sum;
}

/* Compares one tensor's gradient element by element; prints the worst element if the error is too
 * large. */
static void check_tensor(Rig *rig, Numbers *n, const GradientCase *c, const char *what,
                         float *value, const float *gradient, int64_t count)
{
    double worst = 0, worst_got = 0, worst_expected = 0;
    for (int64_t i = 0; i < count; ++i) {
        float kept = value[i], up = kept + (float)c->step, down = kept - (float)c->step;
        value[i] = up;
        double high = projected(rig, n);
        value[i] = down;
        double low = projected(rig, n);
        value[i] = kept;
        double expected = (high - low) / ((double)up - (double)down);
        double off = fabs((double)gradient[i] - expected) / fmax(1, fabs(expected));
        if (off <= worst) continue;
        worst = isnan(off) ? INFINITY : off;
        worst_got = gradient[i];
        worst_expected = expected;
    }
    if (worst > c->tolerance)
        printf("  %s: off by %.3g (allowed %.3g): got %.6g, differences say %.6g\n", what, worst,
               c->tolerance, worst_got, worst_expected);
    CU_ASSERT_TRUE(worst <= c->tolerance);
}

static void check_case(Rig *rig, const GradientCase *c, const char *what)
{
    if (c->rows) rig->run.sample_count = c->rows;
    give_rest(rig);
    Numbers n = numbers_new(rig, c);
    float *dx[3] = {NULL}, *dw[SPEC_PARAMS] = {NULL};
    char name[160];
    projected(rig, &n);
    rig_backward(rig, is_loss(rig) ? NULL : n.projection);
    for (int i = 0; i < rig->spec.x_count; ++i) {
        if (!rig->spec.need_dx[i]) continue;
        dx[i] = mem_new((size_t)n.x_count[i] * sizeof(float));
        rig_get_dx(rig, i, dx[i]);
    }
    for (int i = 0; i < rig->spec.w_count; ++i) {
        if (rig->param[i].is_statistic) continue;
        dw[i] = mem_new((size_t)n.w_count[i] * sizeof(float));
        rig_get_dw(rig, i, dw[i]);
    }
    for (int i = 0; i < rig->spec.x_count; ++i) {
        snprintf(name, sizeof name, "%s: dx[%d]", what, i);
        if (dx[i]) check_tensor(rig, &n, c, name, n.x[i], dx[i], n.x_count[i]);
        mem_free(&dx[i]);
    }
    for (int i = 0; i < rig->spec.w_count; ++i) {
        snprintf(name, sizeof name, "%s: d%s", what, rig->param[i].name ? rig->param[i].name : "w");
        if (dw[i]) check_tensor(rig, &n, c, name, n.w[i], dw[i], n.w_count[i]);
        mem_free(&dw[i]);
    }
    numbers_free(&n);
}

static Status open_case(Rig *rig, Backend *backend, const GradientCase *c, int block)
{
    *rig = (Rig){0};
    TRY(rig_spec(rig, backend, c->kind, c->attrs));
    rig->spec.x_count = c->x_count;
    rig->spec.residual = c->residual;
    for (int i = 0; i < c->x_count; ++i) {
        rig->spec.x[i] =
            desc_plain(c->x[i], strcmp(c->kind, "embedding") == 0 ? DTYPE_I32 : DTYPE_F32);
        if (c->x[i].ndim == 4) rig->spec.x[i].block = block;
    }
    return rig_open(rig, c->kind);
}

static void run_case(Backend *backend, const GradientCase *c, int block)
{
    char what[128], shape[64];
    snprintf(what, sizeof what, "%s %s on %s (%s, block %d)", c->kind, c->attrs,
             shape_text(c->x[0], shape), backend->table->name, block);
    Rig rig;
    Status st = open_case(&rig, backend, c, block);
    if (st != OK) printf("  %s: %s\n", what, fail_message());
    CU_ASSERT_EQUAL(st, OK);
    if (st == OK) check_case(&rig, c, what);
    rig_close(&rig);
}

/* Operations that are layers by themselves, on an image with more channels than a block and on a
 * sequence. */
static void run_own(Backend *backend, int block)
{
    const LayerKind *kind;
    for (int i = 0; (kind = layer_kind_at(i)); ++i) {
        if (op_info(kind->op)->layer_inputs == 0) continue;
        GradientCase c = {kind->name, "", kind->inputs, {{0}}, FILL_KINKS, false, 0, 1e-2, 2e-3};
        for (int k = 0; k < c.x_count; ++k) c.x[k] = shape_of(4, 2, 9, 3, 2);
        run_case(backend, &c, block);
        for (int k = 0; k < c.x_count; ++k) c.x[k] = shape_of(3, 2, 3, 5, 1);
        run_case(backend, &c, block);
    }
}

static void run_cases(const Variant *v)
{
    Backend *backend;
    CHECK_OK(backend_open(&backend, v->backend, (BackendOptions){.threads = 1}));
    for (size_t i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; ++i)
        run_case(backend, &gradient_cases[i], v->block);
    run_own(backend, v->block);
    backend_close(&backend);
}

static void test_plain(void)
{
    run_cases(&variants[0]);
}
static void test_blocks_of_8(void)
{
    run_cases(&variants[1]);
}
static void test_blocks_of_16(void)
{
    run_cases(&variants[2]);
}
static void test_poison(void)
{
    run_cases(&variants[3]);
}

static void test_every_kind(void)
{
    const LayerKind *kind;
    for (int k = 0; (kind = layer_kind_at(k)); ++k) {
        /* tested in run_own and test_bag.c */
        bool here = op_info(kind->op)->layer_inputs > 0 || op_info(kind->op)->reads == READS_IDS;
        for (size_t i = 0; i < sizeof gradient_cases / sizeof gradient_cases[0]; ++i)
            here = here || strcmp(kind->name, gradient_cases[i].kind) == 0;
        if (!here) printf("  no case of %s\n", kind->name);
        CU_ASSERT_TRUE(here);
    }
}

/* ---- dropout ---- */

enum { CHANNELS = 12, SIDE = 16, PER_SAMPLE = CHANNELS * SIDE * SIDE };

/* y for an input of ones and the given samples; out has samples * PER_SAMPLE elements. */
static void drop(Backend *backend, const char *kind, int block, const int64_t *sample, int samples,
                 uint64_t step, bool training, float *out)
{
    Rig rig = {0};
    int64_t count = (int64_t)samples * PER_SAMPLE;
    float *ones = mem_new((size_t)count * sizeof *ones);
    for (int64_t i = 0; i < count; ++i) ones[i] = 1;
    CHECK_OK(rig_spec(&rig, backend, kind, "p=0.25"));
    rig.spec.seed_name = hash_text("a layer");
    rig.spec.x_count = 1;
    rig.spec.x[0] = desc_plain(shape_of(4, samples, CHANNELS, SIDE, SIDE), DTYPE_F32);
    rig.spec.x[0].block = block;
    CHECK_OK(rig_open(&rig, kind));
    rig_set_x(&rig, 0, ones);
    rig_set_samples(&rig, sample, samples);
    rig.run.seed = 3;
    rig.run.step = step;
    rig.run.training = training;
    rig_forward(&rig);
    rig_get_y(&rig, out);
    rig_close(&rig);
    mem_free(&ones);
}

/* The mask of dropout, in which each element is kept or dropped, or of dropout2d, in which all
 * elements of a channel of a sample are (`unit` elements). */
static void check_mask(Backend *backend, const char *kind, int unit)
{
    const int64_t four[] = {50, 9, 2, 70}, two[] = {2, 70};
    static float a[4 * PER_SAMPLE], b[4 * PER_SAMPLE];
    drop(backend, kind, 1, four, 4, 1, true, a);
    int64_t kept = 0, others = 0, equal = 0;
    for (int i = 0; i < 4 * PER_SAMPLE; ++i) {
        kept += fabsf(a[i] - 1 / 0.75f) < 1e-6f;
        others += a[i] != 0 && fabsf(a[i] - 1 / 0.75f) >= 1e-6f;
        others += a[i] != a[i / unit * unit];
    }
    CU_ASSERT_EQUAL(others, 0);
    const double throws = 4.0 * PER_SAMPLE / unit, deviation = sqrt(0.25 * 0.75 / throws);
    CU_ASSERT_DOUBLE_EQUAL((double)kept / (4.0 * PER_SAMPLE), 0.75, 6 * deviation);
    for (int i = 0; i < PER_SAMPLE; ++i) equal += (a[i] != 0) == (a[PER_SAMPLE + i] != 0);
    /* independent masks agree on 0.625 */
    CU_ASSERT_TRUE(equal < (unit > 1 ? 1 : 0.75) * PER_SAMPLE);

    /* the layout does not matter */
    drop(backend, kind, 8, four, 4, 1, true, b);
    CU_ASSERT_EQUAL(memcmp(a, b, sizeof a), 0);
    /* the sample's place in the micro-batch does not matter */
    drop(backend, kind, 16, two, 2, 1, true, b);
    CU_ASSERT_EQUAL(memcmp(a + 2 * PER_SAMPLE, b, 2 * PER_SAMPLE * sizeof a[0]), 0);
    /* another step has another mask */
    drop(backend, kind, 1, four, 4, 2, true, b);
    CU_ASSERT_NOT_EQUAL(memcmp(a, b, sizeof a), 0);
    drop(backend, kind, 1, four, 4, 1, false, b);
    for (int i = 0; i < 4 * PER_SAMPLE; ++i) CU_ASSERT_EQUAL_FATAL(b[i], 1.0f);
}

static void test_dropout_mask(void)
{
    const BackendTable *tables[] = {&backend_cpu, &backend_poison};
    for (int i = 0; i < 2; ++i) {
        Backend *backend;
        CHECK_OK(backend_open(&backend, tables[i], (BackendOptions){.threads = 1}));
        check_mask(backend, "dropout", 1);
        check_mask(backend, "dropout2d", SIDE * SIDE);
        backend_close(&backend);
    }
}

TEST_MAIN("layer gradients", {"plain", test_plain}, {"blocks of 8", test_blocks_of_8},
          {"blocks of 16", test_blocks_of_16}, {"poison", test_poison},
          {"every kind", test_every_kind}, {"dropout's mask", test_dropout_mask})
