/* train.ema against the plain recurrence in double, for rules that move the average in their own
 * pass and for others, with state packed or not; any number of threads gives the same bits; the
 * swap restores both to the bit. The warm-up of biases' rates and of momentum against their
 * formulas. */
#include "golden.h"

#include <math.h>

enum { WEIGHT = 70000, BIAS = 20, MEAN = 24, AT_BIAS = 70000, AT_MEAN = 70032, ARENA = 70064 };
enum { UPDATES = 12 };

/* A weight that is longer than what a thread processes at a time, a bias, a running mean. */
static const OptimRange ranges[] = {
    {.elements = WEIGHT,
     .decay = true,
     .tensor = {.name = "fc.weight", .shape = {.ndim = 2, .dim = {700, 100, 1, 1}}}},
    {.offset = AT_BIAS,
     .elements = BIAS,
     .bias = true,
     .tensor = {.name = "fc.bias", .shape = {.ndim = 1, .dim = {BIAS, 1, 1, 1}}}},
    {.offset = AT_MEAN, .elements = MEAN, .statistic = true}};
enum { RANGES = 3, TRAINED = 2 };

typedef struct Job {
    Config *config;
    Backend *backend;
    Optim *optim;
    float *w, *g;
    /* the average in double */
    double *want;
} Job;

static Job job_open(const char *text, int threads, const int rule[TRAINED])
{
    Job job = {.w = mem_new(ARENA * sizeof *job.w),
               .g = mem_new(ARENA * sizeof *job.g),
               .want = mem_new(ARENA * sizeof *job.want)};
    OptimRange range[RANGES];
    config_use_words(optim_words, OPTIM_WORDS);
    CHECK_OK(config_parse(&job.config, "test.yaml", text, 0, NULL));
    CHECK_OK(backend_open(&job.backend, &backend_cpu, (BackendOptions){.threads = threads}));
    memcpy(range, ranges, sizeof range);
    for (int i = 0; i < TRAINED; ++i) range[i].rule = rule[i];
    CHECK_OK(optim_new(&job.optim, job.config, job.backend, range, RANGES, ARENA));
    for (int i = 0; i < RANGES; ++i)
        for (int k = 0; k < ranges[i].elements; ++k)
            job.w[ranges[i].offset + k] = noise("w", (uint32_t)(ranges[i].offset + k));
    optim_average_begin(job.optim, job.w);
    for (int i = 0; i < ARENA; ++i) job.want[i] = (double)job.w[i];
    return job;
}

static void job_close(Job *job)
{
    optim_free(&job->optim);
    config_free(&job->config);
    backend_close(&job->backend);
    mem_free(&job->w);
    mem_free(&job->g);
    mem_free(&job->want);
}

static const float *average_of(const Job *job, int range)
{
    return job->optim->average + job->optim->piece[range].average_offset;
}

/* Makes update number t; the running mean moves before it, as in a step. */
static void job_update(Job *job, int t)
{
    const double ema = job->config->train.ema, ramp = job->config->train.ema_ramp;
    const double decay = ramp > 0 ? ema * (1 - exp(-t / ramp)) : ema;
    char name[16];
    snprintf(name, sizeof name, "g%d", t);
    for (int i = 0; i < AT_MEAN; ++i) job->g[i] = noise(name, (uint32_t)i);
    for (int i = 0; i < MEAN; ++i) job->w[AT_MEAN + i] += noise(name, (uint32_t)i);
    optim_step(job->optim, job->w, job->g, job->config->optim.lr, 1);
    for (int i = 0; i < ARENA; ++i)
        job->want[i] = decay * job->want[i] + (1 - decay) * (double)job->w[i];
}

/* Largest difference between the averages and the recurrence. */
static double worst_of(const Job *job)
{
    double worst = 0;
    for (int i = 0; i < RANGES; ++i)
        for (int k = 0; k < ranges[i].elements; ++k)
            worst =
                fmax(worst, fabs((double)average_of(job, i)[k] - job->want[ranges[i].offset + k]));
    return worst;
}

static uint64_t hash_of(const Job *job)
{
    uint64_t hash = hash_bytes(job->w, ARENA * sizeof *job->w);
    for (int i = 0; i < RANGES; ++i) {
        uint64_t pair[] = {
            hash, hash_bytes(average_of(job, i), (size_t)ranges[i].elements * sizeof(float))};
        hash = hash_bytes(pair, sizeof pair);
    }
    return hash;
}

static uint64_t run(const char *text, int threads, const int rule[TRAINED])
{
    /* rounding of a few updates of values near 1 */
    static const double tolerance = 1e-6;
    Job job = job_open(text, threads, rule);
    for (int t = 1; t <= UPDATES; ++t) job_update(&job, t);
    const double worst = worst_of(&job);
    CU_ASSERT(worst < tolerance);
    if (worst >= tolerance) printf("  %s: differs by %g\n", text, worst);
    for (int i = 0; i < RANGES; ++i)
        CU_ASSERT_NOT_EQUAL(average_of(&job, i)[3], job.w[ranges[i].offset + 3]);
    uint64_t hash = hash_of(&job);
    job_close(&job);
    return hash;
}

static void recurrence(void)
{
    static const struct {
        const char *text;
        int rule[TRAINED];
    } cases[] = {
        {"{name: sgd, lr: 0.1}", {0, 0}},
        {"{name: sgd, lr: 0.1, momentum: 0.9, nesterov: true, weight_decay: 0.01}", {0, 0}},
        {"{name: adamw, lr: 0.01}", {0, 0}},
        {"{name: lars, lr: 0.1, momentum: 0.9, weight_decay: 0.1}", {0, 0}},
        {"{name: lamb, lr: 0.01}", {0, 0}},
        {"{name: lion, lr: 0.01}", {0, 0}},
        {"{name: sgd, lr: 0.1, momentum: 0.9, groups: [{roles: weight, name: muon, lr: 0.1}]}",
         {1, 0}},
        {"{name: adam, lr: 0.01, groups: [{roles: bias, name: sgd, lr: 0.1}]}", {0, 1}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
        for (int ramp = 0; ramp < 2; ++ramp) {
            char *text =
                mem_format("train: {ema: 0.9, ema_ramp: %d}\noptim: %s\n", ramp * 5, cases[i].text);
            uint64_t one = run(text, 1, cases[i].rule);
            if (ramp) CU_ASSERT_EQUAL(run(text, 3, cases[i].rule), one);
            mem_free(&text);
        }
}

/* The average changes no bit of the parameters, and is not there without the key. */
static void changes_nothing(void)
{
    static const int rule[TRAINED] = {0, 0};
    Job with = job_open("train: {ema: 0.9}\noptim: {name: adamw, lr: 0.01}", 2, rule);
    Job without = job_open("optim: {name: adamw, lr: 0.01}", 2, rule);
    for (int t = 1; t <= UPDATES; ++t) {
        job_update(&with, t);
        job_update(&without, t);
    }
    CU_ASSERT_EQUAL(memcmp(with.w, without.w, ARENA * sizeof *with.w), 0);
    CU_ASSERT_PTR_NULL(without.optim->average);
    CU_ASSERT_EQUAL(optim_bytes(with.optim) - optim_bytes(without.optim), ARENA * sizeof(float));
    job_close(&with);
    job_close(&without);
}

static void swap(void)
{
    static const int rule[TRAINED] = {0, 0};
    Job job = job_open("train: {ema: 0.99, ema_ramp: 3}\noptim: {name: sgd, lr: 0.1}", 2, rule);
    for (int t = 1; t <= UPDATES; ++t) job_update(&job, t);
    float *before = mem_new(ARENA * sizeof *before);
    memcpy(before, job.w, ARENA * sizeof *before);
    const uint64_t hash = hash_of(&job);
    optim_average_swap(job.optim, job.w);
    CU_ASSERT(worst_of(&job) > 1e-3);
    for (int i = 0; i < RANGES; ++i) {
        const int64_t at = ranges[i].offset, n = ranges[i].elements;
        CU_ASSERT_EQUAL(memcmp(average_of(&job, i), before + at, (size_t)n * sizeof(float)), 0);
        CU_ASSERT(fabs((double)job.w[at + n - 1] - job.want[at + n - 1]) < 1e-6);
    }
    optim_average_swap(job.optim, job.w);
    CU_ASSERT_EQUAL(hash_of(&job), hash);
    mem_free(&before);
    job_close(&job);
}

/* ---- warm-up ---- */

enum { WARM = 4, STEPS = 10 };

static UpdateRates rates_of(const Config *config, int step)
{
    const LrState state = lr_state_initial();
    return rates_at(config, &state, &(LrSteps){.step = step, .steps = STEPS, .steps_per_epoch = 5});
}

/* The rates of a step, from the formulas in docs/optimizers.md. */
static void rates(void)
{
    Config *config = NULL;
    config_use_words(optim_words, OPTIM_WORDS);
    CHECK_OK(config_parse(&config, "test.yaml",
                          "optim: {lr: 0.5, lr_schedule: linear, warmup_steps: 4, warmup_bias_lr: "
                          "2, momentum: 0.9, warmup_momentum: 0.8}",
                          0, NULL));
    for (int step = 0; step < STEPS; ++step) {
        const double f = step < WARM ? (step + 1.0) / WARM : 1;
        const double lr = step < WARM ? 0.5 * f : 0.5 * (STEPS - step) / (STEPS - WARM);
        const UpdateRates r = rates_of(config, step);
        CU_ASSERT_DOUBLE_EQUAL(r.lr, lr, 1e-15);
        CU_ASSERT_DOUBLE_EQUAL(r.bias_lr, step < WARM ? 2 + (0.5 - 2) * f : lr, 1e-15);
        CU_ASSERT_EQUAL(r.warm, f);
    }
    /* a rate that a hook has requested scales all */
    LrState state = lr_state_initial();
    state.lr = 0.25;
    CU_ASSERT_DOUBLE_EQUAL(rates_at(config, &state, &(LrSteps){1, STEPS, 5, 0}).bias_lr,
                           (2 + (0.5 - 2) / 2) / 2, 1e-15);
    config_free(&config);
    CHECK_OK(config_parse(&config, "test.yaml", "optim: {lr: 0.5, warmup_steps: 4}", 0, NULL));
    for (int step = 0; step < STEPS; ++step)
        CU_ASSERT_EQUAL(rates_of(config, step).bias_lr, rates_of(config, step).lr);
    config_free(&config);
}

/* SGD with a momentum and a rate of biases that change in each update, against the recurrence in
 * double. */
static void sgd_warms(void)
{
    static const int rule[TRAINED] = {0, 0};
    Job job = job_open("optim: {name: sgd, lr: 0.1, warmup_steps: 4, warmup_bias_lr: 1, momentum: "
                       "0.9, warmup_momentum: 0.6}",
                       2, rule);
    double *w = job.want, *m = mem_new(ARENA * sizeof *m), worst = 0;
    for (int step = 0; step < STEPS; ++step) {
        const double f = step < WARM ? (step + 1.0) / WARM : 1, lr = 0.1 * f;
        const double bias_lr = 1 + (0.1 - 1) * f, momentum = 0.6 + (0.9 - 0.6) * f;
        const UpdateRates r = rates_of(job.config, step);
        for (int i = 0; i < AT_MEAN; ++i) job.g[i] = noise("g", (uint32_t)(i + step));
        optim_begin(job.optim, &r, 1);
        optim_update(job.optim, job.w, job.g);
        for (int i = 0; i < AT_BIAS + BIAS; ++i) {
            m[i] = momentum * m[i] + (double)job.g[i];
            w[i] -= (i < AT_BIAS ? lr : bias_lr) * m[i];
            worst = fmax(worst, fabs(w[i] - (double)job.w[i]));
        }
    }
    CU_ASSERT(worst < 1e-5);
    mem_free(&m);
    job_close(&job);
}

/* Adam's beta1 and its correction follow, as in PyTorch's OneCycleLR. */
static void adam_warms(void)
{
    static const int rule[TRAINED] = {0, 0};
    Job job = job_open("optim: {name: adam, lr: 0.1, warmup_steps: 4, beta1: 0.9, beta2: 0.99, "
                       "warmup_momentum: 0.5}",
                       1, rule);
    double *w = job.want, m[BIAS] = {0}, v[BIAS] = {0}, worst = 0;
    for (int step = 0; step < STEPS; ++step) {
        const double f = step < WARM ? (step + 1.0) / WARM : 1, beta = 0.5 + 0.4 * f;
        const UpdateRates r = rates_of(job.config, step);
        for (int i = 0; i < AT_MEAN; ++i) job.g[i] = noise("g", (uint32_t)(i + step));
        optim_begin(job.optim, &r, 1);
        optim_update(job.optim, job.w, job.g);
        for (int i = 0; i < BIAS; ++i) {
            const double g = (double)job.g[AT_BIAS + i];
            m[i] = beta * m[i] + (1 - beta) * g;
            v[i] = 0.99 * v[i] + 0.01 * g * g;
            const double mhat = m[i] / (1 - pow(beta, step + 1));
            const double vhat = v[i] / (1 - pow(0.99, step + 1));
            w[AT_BIAS + i] -= 0.1 * f * mhat / (sqrt(vhat) + 1e-8);
            worst = fmax(worst, fabs(w[AT_BIAS + i] - (double)job.w[AT_BIAS + i]));
        }
    }
    CU_ASSERT(worst < 1e-5);
    job_close(&job);
}

/* Keys of the warm-up that would have no effect are refused. */
static void refused(void)
{
    static const struct {
        const char *text, *why;
    } cases[] = {
        {"optim: {warmup_bias_lr: 1}", "warmup_bias_lr"},
        {"optim: {momentum: 0.9, warmup_momentum: 0.8}", "during a warm-up only"},
        {"optim: {warmup_steps: 3, warmup_momentum: 0.8}", "needs a rule with momentum"},
        {"optim: {name: ftrl, warmup_steps: 3, warmup_momentum: 0.8}",
         "needs a rule with momentum"},
    };
    OptimTensor tensor = {.name = "fc.weight"};
    int rule;
    config_use_words(optim_words, OPTIM_WORDS);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
        Config *config = NULL;
        CHECK_OK(config_parse(&config, "test.yaml", cases[i].text, 0, NULL));
        CHECK_FAILS(optim_assign(config, &tensor, 1, &rule), ERR_CONFIG, cases[i].why);
        config_free(&config);
    }
}

TEST_MAIN("averages and warm-ups", {"recurrence", recurrence},
          {"changes no parameter", changes_nothing}, {"swap", swap}, {"rates", rates},
          {"sgd", sgd_warms}, {"adam", adam_warms}, {"refused", refused})
