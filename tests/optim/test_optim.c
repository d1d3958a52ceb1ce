/* Compares optimizers and learning-rate curves with golden values (tools/golden_optim.py: PyTorch;
 * LARS, LAMB, Lion and FTRL from their papers), joined ranges with single ones, and tests the
 * norm. */
#include "golden.h"

#include <math.h>

/* values near 1 after a few updates in single precision */
static const double TOLERANCE = 3e-6;

enum { TENSORS = 3, UPDATES = 6, ARENA = 80, LINE = 4096 };
static const struct {
    const char *name;
    OptimRange range;
} tensor[TENSORS] = {{"a", {.offset = 0, .elements = 7, .decay = true}},
                     {"b", {.offset = 16, .elements = 20, .decay = true}},
                     {"c", {.offset = 48, .elements = 5}}};

static void fill(float *arena, const char *prefix)
{
    char name[32];
    for (int t = 0; t < TENSORS; ++t) {
        snprintf(name, sizeof name, "%s.%s", prefix, tensor[t].name);
        for (int i = 0; i < tensor[t].range.elements; ++i)
            arena[tensor[t].range.offset + i] = noise(name, (uint32_t)i);
    }
}

static Optim *optim_of(const Config *config, Backend *backend)
{
    OptimRange range[TENSORS];
    Optim *optim = NULL;
    for (int t = 0; t < TENSORS; ++t) range[t] = tensor[t].range;
    CHECK_OK(optim_new(&optim, config, backend, range, TENSORS, ARENA));
    return optim;
}

/* Runs the script's updates: the rate falls from step to step; clipping as in
 * torch.nn.utils.clip_grad_norm_. */
static void run_updates(const Config *config, Backend *backend, float *w)
{
    Optim *optim = optim_of(config, backend);
    float g[ARENA] = {0};
    char name[16];
    fill(w, "w");
    for (int t = 0; t < UPDATES; ++t) {
        snprintf(name, sizeof name, "g%d", t);
        fill(g, name);
        double part[TENSORS], norm = 0, scale = 1, clip = config->optim.clip;
        optim_grad_squares(optim, g, part);
        for (int i = 0; i < TENSORS; ++i) norm += part[i];
        norm = sqrt(norm);
        if (clip > 0 && norm > clip) scale = clip / norm;
        optim_step(optim, w, g, config->optim.lr * (1 - 0.1 * t), scale);
    }
    CU_ASSERT_EQUAL(optim->step, UPDATES);
    optim_free(&optim);
    CU_ASSERT_PTR_NULL(optim);
}

static double worst_line(FILE *in, const float *w, int n)
{
    double worst = 0, want;
    for (int i = 0; i < n; ++i) {
        if (fscanf(in, "%lf", &want) != 1) return 1e9;
        worst = fmax(worst, fabs((double)w[i] - want) / fmax(1.0, fabs(want)));
    }
    return worst;
}

static void golden_updates(void)
{
    FILE *in = fopen(golden_path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    char line[LINE], title[LINE];
    while (fgets(line, sizeof line, in)) {
        if (strncmp(line, "optim ", 6) != 0) continue;
        memcpy(title, line, sizeof title);
        float w[ARENA] = {0};
        Config *config = config_of(line + 6);
        run_updates(config, backend, w);
        for (int t = 0; t < TENSORS; ++t) {
            double worst =
                worst_line(in, w + tensor[t].range.offset, (int)tensor[t].range.elements);
            CU_ASSERT(worst < TOLERANCE);
            if (worst >= TOLERANCE)
                printf("  %s  tensor %s is off by %g\n", title, tensor[t].name, worst);
        }
        /* stays zero */
        int padding = 0;
        for (int i = 0; i < ARENA; ++i)
            padding += w[i] != 0 && ((i >= 7 && i < 16) || (i >= 36 && i < 48) || i >= 53);
        CU_ASSERT_EQUAL(padding, 0);
        config_free(&config);
    }
    backend_close(&backend);
    fclose(in);
}

/* Rules for rows only are tested in test_row_rules.c. */
static bool rows_only(int rule)
{
    Config config = {.optim.name = rule};
    const OptimTable *table = optim_rule(&config, 0).table;
    return !table->update && !table->update_pieces && !table->update_all;
}

static void every_case(void)
{
    golden_has_all(RULE_LIST, rows_only);
    golden_has_all(CURVE_LIST, NULL);
}

static double rate_at(const Config *config, int64_t step, int64_t steps, int64_t per_epoch)
{
    LrState state = lr_state_initial();
    return lr_at(config, &state, &(LrSteps){step, steps, per_epoch, 0});
}

static void golden_curves(void)
{
    FILE *in = fopen(golden_path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    char line[LINE], title[LINE];
    while (fgets(line, sizeof line, in)) {
        int steps, per_epoch, begin;
        if (sscanf(line, "curve %d %d %n", &steps, &per_epoch, &begin) != 2) continue;
        snprintf(title, sizeof title, "%.*s", (int)strcspn(line + begin, "\n"), line + begin);
        Config *config = config_of(line + begin);
        for (int s = 0; s < steps; ++s) {
            double want = -1, got = rate_at(config, s, steps, per_epoch);
            CU_ASSERT_EQUAL(fscanf(in, "%lf", &want), 1);
            const bool equal = fabs(got - want) <= 1e-12;
            if (!equal)
                printf("  curve %s, step %d of %d: got %.16g, want %.16g\n", title, s, steps, got,
                       want);
            CU_ASSERT_TRUE(equal);
        }
        config_free(&config);
    }
    fclose(in);
}

/* Metrics of evaluations give rates, equal to the bit. */
static void golden_plateaus(void)
{
    FILE *in = fopen(golden_path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    char line[LINE], title[LINE], better[8];
    int falls = 0;
    while (fgets(line, sizeof line, in)) {
        enum { MOST = 64 };
        double value[MOST], want = -1;
        int count, begin;
        if (sscanf(line, "plateau %d %7s %n", &count, better, &begin) != 2) continue;
        snprintf(title, sizeof title, "%.*s", (int)strcspn(line, "\n"), line);
        Config *config = config_of(line + begin);
        LrState state = lr_state_initial();
        CHECK_OK(lr_check(config));
        CU_ASSERT_TRUE(lr_depends_on_evaluations(config));
        CU_ASSERT_TRUE_FATAL(count <= MOST);
        for (int i = 0; i < count; ++i) CU_ASSERT_EQUAL(fscanf(in, "%lf", &value[i]), 1);
        for (int i = 0; i < count; ++i) {
            LrSteps at = {.step = 5 * i, .steps = 5 * count, .steps_per_epoch = 5};
            lr_evaluated(config, &state, &at, value[i], !strcmp(better, "max"));
            CU_ASSERT_EQUAL(fscanf(in, "%lf", &want), 1);
            const double got = lr_at(config, &state, &at);
            if (got != want)
                printf("  %s, evaluation %d: got %.17g, want %.17g\n", title, i, got, want);
            CU_ASSERT_EQUAL(got, want);
        }
        falls += (int)state.falls;
        config_free(&config);
    }
    CU_ASSERT(falls > 10);
    fclose(in);
}

/* Evaluations during warm-up do not count; a rate set by a request scales the curve. */
static void curve_states(void)
{
    char a[] = "optim.lr=0.5 optim.lr_schedule=plateau optim.patience=0 optim.warmup_steps=4";
    Config *config = config_of(a);
    LrState state = lr_state_initial();
    for (int64_t s = 1; s < 4; ++s) lr_evaluated(config, &state, &(LrSteps){s, 10, 2, 0}, 7, false);
    CU_ASSERT(isnan(state.best) && state.falls == 0);
    lr_evaluated(config, &state, &(LrSteps){4, 10, 2, 0}, 8, false);
    CU_ASSERT_EQUAL(lr_at(config, &state, &(LrSteps){4, 10, 2, 0}), 0.5);
    lr_evaluated(config, &state, &(LrSteps){5, 10, 2, 0}, 8, false);
    CU_ASSERT_EQUAL(lr_at(config, &state, &(LrSteps){5, 10, 2, 0}), 0.05);
    state.lr = 0.25;
    CU_ASSERT_EQUAL(lr_at(config, &state, &(LrSteps){5, 10, 2, 0}), 0.025);
    CU_ASSERT_EQUAL(lr_at(config, &state, &(LrSteps){1, 10, 2, 0}), 0.125);
    config_free(&config);
    char b[] = "optim.lr=0.5 optim.lr_schedule=linear optim.lr_end=0.1";
    config = config_of(b);
    CU_ASSERT_FALSE(lr_depends_on_evaluations(config));
    CU_ASSERT_DOUBLE_EQUAL(lr_at(config, &state, &(LrSteps){0, 10, 2, 0}), 0.25, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(lr_at(config, &state, &(LrSteps){10, 10, 2, 0}), 0.05, 1e-15);
    config_free(&config);
    char c[] = "optim.lr_schedule=plateau optim.gamma=1";
    config = config_of(c);
    CHECK_FAILS(lr_check(config), ERR_CONFIG, "must be below 1");
    config_free(&config);
}

/* Past the last step, and with a warm-up as long as the run; the rate of the last step is the
 * documented one, that of PyTorch's CosineAnnealingLR(T_max=30, eta_min=0.001) at its step 29. */
static void curve_ends(void)
{
    char last[] = "optim.lr=0.1 optim.lr_schedule=cosine optim.lr_end=0.001";
    Config *manual = config_of(last);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(manual, 29, 30, 5), 0.0012711661792704665, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(manual, 0, 30, 5), 0.1, 1e-15);
    config_free(&manual);
    char a[] = "optim.lr=0.5 optim.lr_schedule=cosine optim.lr_end=0.1";
    Config *config = config_of(a);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(config, 10, 10, 5), 0.1, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(config, 99, 10, 5), 0.1, 1e-12);
    config_free(&config);
    char b[] = "optim.lr=0.5 optim.lr_schedule=linear optim.warmup_steps=10";
    config = config_of(b);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(config, 0, 10, 5), 0.05, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(config, 9, 10, 5), 0.5, 1e-12);
    CU_ASSERT_DOUBLE_EQUAL(rate_at(config, 10, 10, 5), 0, 1e-12);
    config_free(&config);
}

/* Neighbouring ranges are updated as one if that changes nothing. */
static void joined(void)
{
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    static const struct {
        const char *options;
        int runs, slots;
    } row[] = {{"optim.name=sgd optim.momentum=0.9", 1, 1},
               {"optim.name=sgd optim.momentum=0", 1, 0},
               {"optim.name=sgd optim.momentum=0.9 optim.weight_decay=0.1", 2, 1},
               {"optim.name=adamw optim.weight_decay=0.1 optim.decay_all=true", 1, 2},
               {"optim.name=lamb", 3, 2},
               {"optim.name=lars", 3, 1}};
    for (size_t i = 0; i < sizeof row / sizeof row[0]; ++i) {
        char text[128];
        snprintf(text, sizeof text, "%s", row[i].options);
        Config *config = config_of(text);
        Optim *optim = optim_of(config, backend);
        CU_ASSERT_EQUAL(optim->joined_count, row[i].runs);
        CU_ASSERT_EQUAL(optim->range_count, TENSORS);
        CU_ASSERT_EQUAL(optim_slot_count(config), row[i].slots);
        CU_ASSERT_EQUAL(optim_state_bytes(optim), (size_t)row[i].slots * ARENA * sizeof(float));
        for (int s = 0; s < 2; ++s) CU_ASSERT_EQUAL(optim->state[s] != NULL, s < row[i].slots);
        optim_free(&optim);
        config_free(&config);
    }
    char text[] = "optim.name=sgd";
    Config *config = config_of(text);
    Optim *optim = NULL;
    CHECK_FAILS(
        optim_new(&optim, config, backend, (OptimRange[]){{.offset = 8, .elements = 4}}, 1, 64),
        ERR_BUG, "misplaced");
    CHECK_FAILS(
        optim_new(&optim, config, backend, (OptimRange[]){{.offset = 48, .elements = 20}}, 1, 64),
        ERR_BUG, "misplaced");
    CU_ASSERT_PTR_NULL(optim);
    config_free(&config);
    backend_close(&backend);
}

/* Sums the squares of two ranges that begin at `first` and `second` of an arena of n. */
static void squares_at(const float *g, int n, int64_t first, int64_t second, int64_t elements,
                       double part[2])
{
    Backend *backend = NULL;
    char text[] = "optim.name=sgd";
    Config *config = config_of(text);
    Optim *optim = NULL;
    OptimRange range[2] = {{.offset = first, .elements = elements, .decay = true},
                           {.offset = second, .elements = elements + 5}};
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    CHECK_OK(optim_new(&optim, config, backend, range, 2, n));
    optim_grad_squares(optim, g, part);
    optim_free(&optim);
    backend_close(&backend);
    config_free(&config);
}

/* Compared with plain sums, over several chunks; the same bits at any position of a range and with
 * any neighbours. */
static void squares(void)
{
    enum { N = 5 * FLAT_CHUNK, LONG = FLAT_CHUNK + 77, LATER = 2 * FLAT_CHUNK + 160 };
    static float g[N], h[N];
    double part[2], moved[2], sum[2] = {0};
    for (int i = 0; i < N; ++i) g[i] = noise("norm", (uint32_t)i);
    for (int i = 0; i < N; ++i) h[i] = noise("other", (uint32_t)i);
    for (int i = 0; i < LONG; ++i) sum[0] += (double)g[i] * (double)g[i];
    for (int i = 0; i < LONG + 5; ++i) sum[1] += (double)g[LATER + i] * (double)g[LATER + i];
    squares_at(g, N, 0, LATER, LONG, part);
    for (int i = 0; i < 2; ++i) CU_ASSERT_DOUBLE_EQUAL(part[i], sum[i], 1e-5 * sum[i]);
    memcpy(h + 48, g, LONG * sizeof *g);
    memcpy(h + LATER + 1024 + 16, g + LATER, (LONG + 5) * sizeof *g);
    squares_at(h, N, 48, LATER + 1024 + 16, LONG, moved);
    CU_ASSERT(part[0] == moved[0] && part[1] == moved[1]);
}

TEST_MAIN("optim", {"updates", golden_updates}, {"curves", golden_curves},
          {"plateaus", golden_plateaus}, {"every rule and curve", every_case},
          {"curve_states", curve_states}, {"curve ends", curve_ends}, {"joined ranges", joined},
          {"squares", squares})
