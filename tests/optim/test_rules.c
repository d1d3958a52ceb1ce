/* Rules that need whole tensors, and groups. Muon is compared with golden values
 * (tools/golden_optim.py: NumPy, from the paper, next to PyTorch's in bf16) and has the same bits
 * on any number of threads. Also: which rule updates which parameter; several rules in one
 * optimizer give the results that each gives alone. */
#include "golden.h"

#include <math.h>
#include <omp.h>

enum { UPDATES = 6, MOST = 16384, LINE = 4096, THREADS_MOST = 4 };
/* Single precision after five iterations, with values near 1. */
static const double TOLERANCE = 5e-6;

static Backend *backend_of(int threads)
{
    Backend *backend = NULL;
    omp_set_num_threads(threads);
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = threads}));
    return backend;
}

static void fill(float *to, const char *name, int64_t n)
{
    for (int64_t i = 0; i < n; ++i) to[i] = noise(name, (uint32_t)i);
}

/* "8x3x3x3" */
static Shape shape_from(const char *text)
{
    long long d[SHAPE_DIMS] = {1, 1, 1, 1};
    int n = sscanf(text, "%lldx%lldx%lldx%lld", &d[0], &d[1], &d[2], &d[3]);
    return shape_of(n, d[0], d[1], d[2], d[3]);
}

/* Updates one tensor as the script does. */
static void run_matrix(const Config *config, Shape shape, int threads, float *w)
{
    static float g[MOST];
    Optim *optim = NULL;
    Backend *backend = backend_of(threads);
    int64_t n = shape_count(shape);
    OptimRange range = {.elements = n,
                        .decay = true,
                        .tensor = {.name = "m", .shape = shape, .role = PARAM_WEIGHT}};
    CHECK_OK(optim_new(&optim, config, backend, &range, 1, MOST));
    fill(w, "w.m", n);
    for (int t = 0; t < UPDATES; ++t) {
        char name[16];
        snprintf(name, sizeof name, "g%d.m", t);
        fill(g, name, n);
        optim_step(optim, w, g, config->optim.lr * (1 - 0.1 * t), 1);
    }
    optim_free(&optim);
    backend_close(&backend);
    omp_set_num_threads(1);
}

static double worst_of(FILE *in, const float *w, int64_t n)
{
    double worst = 0, want;
    for (int64_t i = 0; i < n; ++i) {
        if (fscanf(in, "%lf", &want) != 1) return 1e9;
        worst = fmax(worst, fabs((double)w[i] - want) / fmax(1.0, fabs(want)));
    }
    return worst;
}

/* PyTorch's own result is as close to the golden values as bf16 allows. */
static void check_case(FILE *in, const char *title, Shape shape, const Config *config)
{
    static float w[MOST], again[MOST];
    double theirs = 1;
    int64_t n = shape_count(shape);
    run_matrix(config, shape, 1, w);
    double worst = worst_of(in, w, n);
    CU_ASSERT(worst < TOLERANCE);
    if (worst >= TOLERANCE) printf("  %s is off by %g\n", title, worst);
    CU_ASSERT_EQUAL(fscanf(in, "%lf", &theirs), 1);
    CU_ASSERT(theirs < 0.03);
    for (int threads = 2; threads <= THREADS_MOST; ++threads) {
        run_matrix(config, shape, threads, again);
        CU_ASSERT(memcmp(w, again, (size_t)n * sizeof *w) == 0);
    }
}

static void golden_matrices(void)
{
    FILE *in = fopen(golden_path, "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    char line[LINE], title[LINE], shape[64];
    int begin;
    while (fgets(line, sizeof line, in)) {
        if (sscanf(line, "matrix %63s %n", shape, &begin) != 1) continue;
        memcpy(title, line, sizeof title);
        Config *config = config_of(line + begin);
        check_case(in, title, shape_from(shape), config);
        config_free(&config);
    }
    fclose(in);
}

/* A gradient of zeros moves nothing and causes no division by zero. */
static void zero_gradient(void)
{
    char text[] = "optim.name=muon";
    Config *config = config_of(text);
    Backend *backend = backend_of(1);
    Optim *optim = NULL;
    float w[64], g[64] = {0};
    OptimRange range = {.elements = 64, .tensor = {.name = "m", .shape = shape_of(2, 8, 8, 1, 1)}};
    CHECK_OK(optim_new(&optim, config, backend, &range, 1, 64));
    fill(w, "w", 64);
    optim_step(optim, w, g, 0.1, 1);
    for (int i = 0; i < 64; ++i) CU_ASSERT_EQUAL(w[i], noise("w", (uint32_t)i));
    optim_free(&optim);
    backend_close(&backend);
    config_free(&config);
}

static void never(void *user, double *chunk, int sets)
{
    (void)user, (void)chunk, (void)sets;
}

/* A rule that needs whole tensors is refused a part of one. */
static void no_parts(void)
{
    char text[] = "optim.name=muon";
    Config *config = config_of(text);
    Backend *backend = backend_of(1);
    Optim *optim = NULL;
    const int64_t first = 0, count = 32, at = 0;
    OptimShard share = {
        .first = &first, .count = &count, .value_offset = &at, .grad_arena_offset = &at};
    OptimRange range = {.elements = 64, .tensor = {.name = "m", .shape = shape_of(2, 8, 8, 1, 1)}};
    share.gather = never;
    CHECK_FAILS(optim_new_shard(&optim, config, backend, &range, 1, &share), ERR_BUG,
                "is divided over ranks");
    CU_ASSERT_PTR_NULL(optim);
    backend_close(&backend);
    config_free(&config);
}

/* ---- groups ---- */

static const OptimTensor tensors[] = {
    {"wte.weight", {2, {50, 8, 1, 1}}, PARAM_EMBEDDING, false},
    {"h.0.ln.weight", {1, {8, 1, 1, 1}}, PARAM_NORM, false},
    {"h.0.fc.weight", {2, {16, 8, 1, 1}}, PARAM_WEIGHT, false},
    {"h.0.fc.bias", {1, {16, 1, 1, 1}}, PARAM_BIAS, false},
    {"h.1.fc.weight", {2, {16, 8, 1, 1}}, PARAM_WEIGHT, false},
    {"head.weight", {2, {50, 8, 1, 1}}, PARAM_HEAD, false},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static Status parse(Config **config, const char *text)
{
    char *all = mem_format("optim: {%s}\n", text);
    config_use_words(optim_words, OPTIM_WORDS);
    Status status = config_parse(config, "groups.yaml", all, 0, NULL);
    mem_free(&all);
    return status;
}

static void check_rules(const char *text, const int *want)
{
    Config *config = NULL;
    int rule[TENSORS];
    CHECK_OK(parse(&config, text));
    CHECK_OK(optim_assign(config, tensors, TENSORS, rule));
    for (int i = 0; i < TENSORS; ++i) CU_ASSERT_EQUAL(rule[i], want[i]);
    config_free(&config);
}

static void assignment(void)
{
    check_rules("name: sgd", (const int[]){0, 0, 0, 0, 0, 0});
    check_rules("name: muon, groups: [{roles: [embedding, head, norm, bias], name: adamw}]",
                (const int[]){1, 1, 0, 1, 0, 1});
    check_rules("groups: [{match: 'h.0.*', lr: 1}, {match: ['*.weight', 'h.*'], lr: 2}]",
                (const int[]){2, 1, 1, 1, 2, 2});
    check_rules("groups: [{match: 'h.*', roles: weight, lr_scale: 0.1}]",
                (const int[]){0, 0, 1, 0, 1, 0});
}

/* A rule that could not update a tensor is accepted if the tensor is frozen. */
static void frozen(void)
{
    Config *config = NULL;
    OptimTensor own[TENSORS];
    int rule[TENSORS];
    memcpy(own, tensors, sizeof own);
    CHECK_OK(parse(&config, "name: muon"));
    own[0].frozen = own[1].frozen = own[3].frozen = true;
    CHECK_FAILS(optim_assign(config, own, TENSORS, rule), ERR_CONFIG, "head.weight");
    own[5].frozen = true;
    CHECK_OK(optim_assign(config, own, TENSORS, rule));
    config_free(&config);
}

/* Rates fall by decay^(last - depth group), except in groups; updates use them. */
static void depth_groups(void)
{
    enum { APART = 64, COUNT = 4 };
    Config *config = NULL;
    Optim *optim = NULL;
    Backend *backend = backend_of(1);
    OptimRange range[COUNT];
    float w[COUNT * APART] = {0}, g[COUNT * APART];
    CHECK_OK(parse(&config, "lr: 0.5, layer_decay: 0.75, groups: [{match: x, lr_scale: 4}]"));
    CU_ASSERT_DOUBLE_EQUAL(optim_depth_scale(config, 0, 3, 4), 1, 0);
    CU_ASSERT_DOUBLE_EQUAL(optim_depth_scale(config, 0, 1, 4), 0.5625, 0);
    CU_ASSERT_DOUBLE_EQUAL(optim_depth_scale(config, 1, 0, 4), 1, 0);
    for (int i = 0; i < COUNT; ++i)
        range[i] = (OptimRange){.offset = i * APART,
                                .elements = APART,
                                .rule = i == COUNT - 1,
                                .lr_scale = optim_depth_scale(config, i == COUNT - 1, i, COUNT)};
    for (int i = 0; i < COUNT * APART; ++i) g[i] = -1;
    CHECK_OK(optim_new(&optim, config, backend, range, COUNT, COUNT * APART));
    optim_step(optim, w, g, 0.5, 1);
    const float want[COUNT] = {0.2109375f, 0.28125f, 0.375f, 2};
    for (int i = 0; i < COUNT * APART; ++i) CU_ASSERT_EQUAL(w[i], want[i / APART]);
    optim_free(&optim);
    backend_close(&backend);
    config_free(&config);
}

static void refused(const char *text, const char *why)
{
    Config *config = NULL;
    int rule[TENSORS];
    Status status = parse(&config, text);
    if (status == OK) status = optim_assign(config, tensors, TENSORS, rule);
    CHECK_FAILS(status, ERR_CONFIG, why);
    config_free(&config);
}

static void refusals(void)
{
    refused("groups: [{match: 'h.2.*', lr: 1}]", "'h.2.*' matches no parameter");
    refused("groups: [{match: 'h.*', lr: 1}, {match: 'h.0.*', lr: 2}]", "group 2 has no parameter");
    refused("groups: [{lr: 1}]", "neither match nor roles");
    refused("groups: [{match: 'h.*', lr: 1, lr_scale: 2}]", "both lr and lr_scale");
    refused("groups: [{match: 'h.*', lr_scale: 0}]", "above 0");
    refused("groups: [{match: 'h.*', mach: 1}]", "did you mean 'match'");
    refused("groups: [{match: 'h.*', lr_factor: 2}]", "write lr_scale");
    refused("layer_decay: 1.5", "layer_decay");
    refused("layer_decay: 0", "layer_decay");
    refused("groups: [{match: 'h.*', clip: 1}]", "has no key 'clip'");
    refused("groups: [{match: 'h.*', name: sdg}]", "did you mean 'sgd'");
    refused("groups: [{match: 'h.*', roles: heads}]", "did you mean 'head'");
    refused("groups: [{match: 'h.*', name: adamw, momentum: 0.9}]", "adamw has no momentum");
    refused("groups: [{match: 'h.*', nesterov: true}]", "momentum above 0");
    refused("groups: [h]", "expected a group");
    refused("groups: {match: h}", "expected a list of groups");
    refused("groups: [{match: 'h.*', match: x}]", "twice");
    refused("name: muon", "wte.weight is embedding 50x8");
    refused("groups: [{match: '*', name: muon}]", "a group of another rule");
}

/* A group with another rule starts from that rule's constants; keys that the group does not set are
 * those of optim. */
static void constants(void)
{
    Config *config = NULL;
    CHECK_OK(parse(
        &config, "name: adamw, lr: 0.01, beta2: 0.95, weight_decay: 0.1, groups: [{match: a, name: "
                 "lion, beta1: 0.8}, {match: b, lr: 0.5, eps: 1e-6}, {match: c, name: muon, "
                 "lr_scale: 2, decay_all: true}]"));
    const OptimGroup *g = config->optim.group;
    CU_ASSERT(g[0].options.beta1 == 0.8 && g[0].options.beta2 == 0.99 &&
              g[0].options.weight_decay == 0.1);
    CU_ASSERT(g[1].options.beta2 == 0.95 && g[1].options.eps == 1e-6 && g[1].options.lr == 0.5);
    CU_ASSERT(g[2].options.momentum == 0.95 && g[2].options.nesterov && g[2].options.lr == 0.02);
    CU_ASSERT(g[2].options.decay_all && !g[1].options.decay_all);
    CU_ASSERT_EQUAL(optim_rule(config, 2).lr_ratio, 50);
    CU_ASSERT_EQUAL(optim_rule(config, 1).slots, 1);
    CU_ASSERT_EQUAL(optim_rule(config, 0).slots, 2);
    char *text = config_text(config), *again = NULL;
    Config *second = NULL;
    CHECK_OK(config_parse(&second, "again.yaml", text, 0, NULL));
    if (second) again = config_text(second);
    CU_ASSERT(again && strcmp(text, again) == 0);
    mem_free(&text);
    mem_free(&again);
    config_free(&config);
    config_free(&second);
}

/* ---- side by side ---- */

enum { PART = 200, PARTS = 4, ARENA = PARTS * 208 };

static void train_parts(const char *text, const int *rule, const bool *with, float *w,
                        size_t *bytes)
{
    Config *config = NULL;
    Optim *optim = NULL;
    Backend *backend = backend_of(1);
    OptimRange range[PARTS];
    static float g[ARENA];
    int count = 0;
    CHECK_OK(parse(&config, text));
    for (int i = 0; i < PARTS; ++i)
        if (with[i])
            range[count++] = (OptimRange){.offset = i * 208,
                                          .elements = PART,
                                          .rule = rule[i],
                                          .decay = true,
                                          .tensor = {"x", shape_of(2, 10, 20, 1, 1), PARAM_WEIGHT}};
    CHECK_OK(optim_new(&optim, config, backend, range, count, ARENA));
    for (int t = 0; t < UPDATES; ++t) {
        for (int i = 0; i < PARTS; ++i) fill(g + i * 208, t % 2 ? "odd" : "even", PART);
        optim_step(optim, w, g, config->optim.lr * (1 - 0.1 * t), 0.5);
    }
    *bytes = optim_state_bytes(optim);
    optim_free(&optim);
    backend_close(&backend);
    config_free(&config);
}

/* Four rules in one optimizer: each tensor has the bits, and the amount of state, that an optimizer
 * of that rule alone gives it. */
static void side_by_side(void)
{
    static const char *const alone[PARTS] = {"name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1",
                                             "name: lamb, lr: 0.05, weight_decay: 0.1",
                                             "name: muon, lr: 0.2, weight_decay: 0.1",
                                             "name: adamw, lr: 0.1, eps: 1e-6, weight_decay: 0.1"};
    static float mixed[ARENA], single[ARENA];
    size_t bytes;
    for (int i = 0; i < PARTS; ++i) fill(mixed + i * 208, "w", PART);
    memcpy(single, mixed, sizeof mixed);
    train_parts(
        "name: sgd, lr: 0.1, momentum: 0.9, weight_decay: 0.1, groups: [{match: a, name: "
        "lamb, lr: 0.05}, {match: b, name: muon, lr: 0.2}, {match: c, name: adamw, eps: 1e-6}]",
        (const int[]){0, 1, 2, 3}, (const bool[]){true, true, true, true}, mixed, &bytes);
    CU_ASSERT_EQUAL(bytes, (1 + 2 + 1 + 2) * 208 * sizeof(float));
    for (int i = 0; i < PARTS; ++i) {
        bool with[PARTS] = {false};
        with[i] = true;
        train_parts(alone[i], (const int[]){0, 0, 0, 0}, with, single, &bytes);
        CU_ASSERT(memcmp(mixed + i * 208, single + i * 208, PART * sizeof *mixed) == 0);
    }
}

TEST_MAIN("optimizer rules", {"matrices", golden_matrices}, {"no gradient", zero_gradient},
          {"no parts", no_parts}, {"assignment", assignment}, {"frozen", frozen},
          {"depth_groups", depth_groups}, {"refusals", refusals}, {"constants", constants},
          {"side by side", side_by_side})
