/* Rules for rows of sparse tables. A row touched by some steps has the same bits as under a dense
 * optimizer that makes those steps only. Adagrad with one number per row, and FTRL from zeros, are
 * compared with their formulas in double precision. Also: which rules refuse tables, and which
 * refuse everything else. */
#include "golden.h"

#include <math.h>

enum { STEPS = 12, WIDTH_MOST = 33, STATE_MOST = 3 * WIDTH_MOST };

static Config *config_from(const char *text)
{
    char *all = mem_format("optim: {%s}\n", text);
    Config *config = NULL;
    config_use_words(optim_words, OPTIM_WORDS);
    CHECK_OK(config_parse(&config, "rows.yaml", all, 0, NULL));
    mem_free(&all);
    return config;
}

static void fill(float *to, const char *what, int step, int n)
{
    char name[32];
    snprintf(name, sizeof name, "%s%d", what, step);
    for (int i = 0; i < n; ++i) to[i] = noise(name, (uint32_t)i);
}

static int state_floats(const RowState *state)
{
    int sum = 0;
    for (int s = 0; s < state->slots; ++s) {
        CU_ASSERT_PTR_NOT_NULL(state->name[s]);
        sum += state->floats[s];
    }
    return sum;
}

static double rate_of(const Config *config, int step)
{
    return config->optim.lr * (1 - 0.05 * step);
}

/* Makes one step on a row as its owner does. */
static void step_row(const Config *config, int step, float *w, float *state, const float *g,
                     int width)
{
    OptimRule rule = optim_rule(config, 0);
    rule.table->row_update(&rule, &(OptimRowArgs){.w = w,
                                                  .state = state,
                                                  .g = g,
                                                  .width = width,
                                                  .lr = (float)rate_of(config, step),
                                                  .grad_scale = 0.75f,
                                                  .decay = (float)config->optim.weight_decay});
}

/* ---- compared with the dense rule ---- */

/* True if step t touches the row. Kind 0: all steps do. */
static bool touches(int kind, int t)
{
    return kind == 0 || (t * 7 + kind) % 3 == 0;
}

static bool same_as_dense(const Config *config, Backend *backend, int width, int kind)
{
    float w[WIDTH_MOST], dense[64] = {0}, state[STATE_MOST] = {0}, g[64] = {0};
    OptimRange range = {.elements = width, .decay = true};
    Optim *optim = NULL;
    OptimRule rule = optim_rule(config, 0);
    RowState need = rule.table->row_state(rule.constants, width);
    CU_ASSERT_FATAL(state_floats(&need) <= STATE_MOST);
    CHECK_OK(optim_new(&optim, config, backend, &range, 1, 64));
    fill(w, "w", kind, width);
    fill(dense, "w", kind, width);
    for (int t = 0; t < STEPS; ++t) {
        if (!touches(kind, t)) continue;
        fill(g, "g", t, width);
        step_row(config, t, w, state, g, width);
        optim_step(optim, dense, g, rate_of(config, t), 0.75);
    }
    bool same = memcmp(w, dense, (size_t)width * sizeof *w) == 0;
    for (int s = 0; s < optim->slots; ++s)
        same = same && memcmp(state + s * width, optim->state[s], (size_t)width * sizeof *w) == 0;
    optim_free(&optim);
    return same;
}

static const char *const dense_rules[] = {
    "name: sgd, lr: 0.1",
    "name: sgd, lr: 0.1, weight_decay: 0.1",
    "name: adagrad, lr: 0.1, weight_decay: 0.1",
    "name: adagrad, lr: 0.1, eps: 1e-3",
    "name: adam, lr: 0.01, weight_decay: 0.1",
    "name: adam, lr: 0.01, beta1: 0.8, beta2: 0.95, eps: 1e-4",
    "name: adamw, lr: 0.01, weight_decay: 0.1",
    "name: ftrl, lr: 0.1, l1: 0.1, l2: 0.05, weight_decay: 0.01",
};

static void next_to_dense(void)
{
    static const int width[] = {1, 7, 10, 16, WIDTH_MOST};
    Backend *backend = NULL;
    CHECK_OK(backend_open(&backend, &backend_cpu, (BackendOptions){.threads = 1}));
    for (size_t r = 0; r < sizeof dense_rules / sizeof *dense_rules; ++r) {
        Config *config = config_from(dense_rules[r]);
        for (size_t i = 0; i < sizeof width / sizeof *width; ++i)
            for (int kind = 0; kind < 3; ++kind) {
                bool same = same_as_dense(config, backend, width[i], kind);
                CU_ASSERT(same);
                if (!same) printf("  %s, width %d, rows %d\n", dense_rules[r], width[i], kind);
            }
        config_free(&config);
    }
    backend_close(&backend);
}

/* ---- formulas ---- */

static void adagrad_of_rows(void)
{
    Config *config = config_from("name: adagrad_row, lr: 0.1, weight_decay: 0.2");
    OptimRule rule = optim_rule(config, 0);
    for (int width = 1; width <= WIDTH_MOST; width += 3) {
        float w[WIDTH_MOST], g[WIDTH_MOST], state = 0;
        double want[WIDTH_MOST], sum = 0, worst = 0;
        RowState need = rule.table->row_state(rule.constants, width);
        CU_ASSERT_EQUAL(state_floats(&need), 1);
        fill(w, "w", width, width);
        for (int i = 0; i < width; ++i) want[i] = (double)w[i];
        for (int t = 0; t < STEPS; ++t) {
            fill(g, "g", t, width);
            step_row(config, t, w, &state, g, width);
            double mean = 0, d[WIDTH_MOST];
            for (int i = 0; i < width; ++i) {
                d[i] = 0.75 * (double)g[i] + 0.2 * want[i];
                mean += d[i] * d[i] / width;
            }
            sum += mean;
            for (int i = 0; i < width; ++i)
                want[i] -= rate_of(config, t) * d[i] / (sqrt(sum) + 1e-10);
        }
        for (int i = 0; i < width; ++i) worst = fmax(worst, fabs((double)w[i] - want[i]));
        CU_ASSERT(worst < 1e-6);
        CU_ASSERT_DOUBLE_EQUAL((double)state, sum, 1e-5);
    }
    config_free(&config);
}

/* FTRL as published: from zeros, with one rate; z is never computed from w. */
static void published_ftrl(void)
{
    const double alpha = 0.2, l1 = 0.5, l2 = 0.1, beta = 1;
    char text[] = "optim.name=ftrl optim.lr=0.2 optim.l1=0.5 optim.l2=0.1";
    Config *config = config_of(text);
    OptimRule rule = optim_rule(config, 0);
    float w[WIDTH_MOST] = {0}, state[2 * WIDTH_MOST] = {0}, g[WIDTH_MOST];
    double want[WIDTH_MOST] = {0}, z[WIDTH_MOST] = {0}, n[WIDTH_MOST] = {0}, worst = 0;
    int zeros = 0;
    for (int t = 0; t < STEPS; ++t) {
        fill(g, "g", t, WIDTH_MOST);
        rule.table->row_update(&rule, &(OptimRowArgs){.w = w,
                                                      .state = state,
                                                      .g = g,
                                                      .width = WIDTH_MOST,
                                                      .lr = (float)alpha,
                                                      .grad_scale = 1});
        for (int i = 0; i < WIDTH_MOST; ++i) {
            double d = (double)g[i], sigma = (sqrt(n[i] + d * d) - sqrt(n[i])) / alpha;
            z[i] += d - sigma * want[i];
            n[i] += d * d;
            double sign = z[i] < 0 ? -1 : 1;
            want[i] =
                fabs(z[i]) <= l1 ? 0 : -(z[i] - sign * l1) / ((beta + sqrt(n[i])) / alpha + l2);
        }
    }
    for (int i = 0; i < WIDTH_MOST; ++i) {
        worst = fmax(worst, fabs((double)w[i] - want[i]));
        zeros += w[i] == 0;
    }
    CU_ASSERT(worst < 1e-6);
    CU_ASSERT(zeros > 3 && zeros < WIDTH_MOST - 3);
    config_free(&config);
}

/* A weight with an initial value keeps it without a gradient. */
static void ftrl_begins_anywhere(void)
{
    char text[] = "optim.name=ftrl optim.lr=0.1 optim.l1=0.5";
    Config *config = config_of(text);
    OptimRule rule = optim_rule(config, 0);
    float w[4] = {0.3f, -0.2f, 0, 0.5f}, g[4] = {0, 1e-30f, 0, 1e-6f}, state[8] = {0};
    OptimRowArgs args = {.w = w, .state = state, .g = g, .width = 4, .lr = 0.1f, .grad_scale = 1};
    for (int t = 0; t < 5; ++t) rule.table->row_update(&rule, &args);
    CU_ASSERT(w[0] == 0.3f && w[1] == -0.2f && w[2] == 0);
    CU_ASSERT_DOUBLE_EQUAL((double)w[3], 0.5, 1e-5);
    config_free(&config);
}

/* ---- which rules apply to what ---- */

static const OptimTensor tensors[] = {
    {"top.weight", {2, {50, 8, 1, 1}}, PARAM_WEIGHT, false},
    {"top.bias", {1, {50, 1, 1, 1}}, PARAM_BIAS, false},
    {"ids", {2, {1, 10, 1, 1}}, PARAM_SPARSE_TABLE, false},
    {"wide.3", {2, {1000001, 1, 1, 1}}, PARAM_SPARSE_TABLE, false},
};
enum { TENSORS = sizeof tensors / sizeof tensors[0] };

static void check_rules(const char *text, const int *want)
{
    Config *config = config_from(text);
    int rule[TENSORS] = {0};
    CHECK_OK(optim_assign(config, tensors, TENSORS, rule));
    for (int i = 0; i < TENSORS; ++i) CU_ASSERT_EQUAL(rule[i], want[i]);
    config_free(&config);
}

static void assignment(void)
{
    check_rules("name: sgd", (const int[]){0, 0, 0, 0});
    check_rules("name: sgd, momentum: 0.9, groups: [{roles: table, name: adagrad_row, lr: 0.1}]",
                (const int[]){0, 0, 1, 1});
    check_rules("name: lamb, groups: [{match: 'wide.*', name: ftrl}, {match: ids, name: adamw}]",
                (const int[]){0, 0, 2, 1});
    check_rules("name: adagrad_row, groups: [{roles: [weight, bias], name: lion}]",
                (const int[]){1, 1, 0, 0});
}

static void refused(const char *text, const char *why)
{
    Config *config = config_from(text);
    int rule[TENSORS];
    CHECK_FAILS(optim_assign(config, tensors, TENSORS, rule), ERR_CONFIG, why);
    config_free(&config);
}

/* The message names exactly those rules whose table has row_update. */
static void rules_of_rows(void)
{
    refused("name: lamb", "cannot update the rows of a sparse table");
    const char *word, *list = strrchr(fail_message(), '(');
    CU_ASSERT_PTR_NOT_NULL_FATAL(list);
    char *rules = mem_format(", %.*s,", (int)strcspn(list + 1, ")"), list + 1);
    for (int i = 0; (word = optim_words[RULE_LIST].word(i).word); ++i) {
        Config config = {.optim.name = i};
        char *item = mem_format(", %s,", word);
        CU_ASSERT_EQUAL(strstr(rules, item) != NULL,
                        optim_rule(&config, 0).table->row_update != NULL);
        mem_free(&item);
    }
    mem_free(&rules);
}

/* Every rule that updates rows is compared with something: with its dense update, or a formula. */
static void every_row_rule(void)
{
    const char *word;
    for (int i = 0; (word = optim_words[RULE_LIST].word(i).word); ++i) {
        Config config = {.optim.name = i};
        char *want = mem_format("name: %s,", word);
        bool found = !optim_rule(&config, 0).table->row_update || !strcmp(word, "adagrad_row");
        for (size_t r = 0; r < sizeof dense_rules / sizeof *dense_rules; ++r)
            found = found || !strncmp(dense_rules[r], want, strlen(want));
        CU_ASSERT_TRUE(found);
        if (!found) printf("  no case of %s\n", word);
        mem_free(&want);
    }
}

static void refusals(void)
{
    refused("name: lars", "optim.name: lars cannot update the rows of a sparse table, and ids is");
    rules_of_rows();
    refused("name: lion", "lion cannot update the rows");
    refused("name: adam, groups: [{roles: table, name: muon}]", "muon cannot update the rows");
    refused("name: sgd, momentum: 0.9", "ids is one, without momentum only");
    refused("name: adagrad_row", "which top.weight is not");
}

TEST_MAIN("rules for rows", {"next to dense", next_to_dense}, {"adagrad of rows", adagrad_of_rows},
          {"published ftrl", published_ftrl}, {"ftrl begins anywhere", ftrl_begins_anywhere},
          {"every rule", every_row_rule}, {"assignment", assignment}, {"refusals", refusals})
