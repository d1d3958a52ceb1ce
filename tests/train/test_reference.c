/* Compares one step of gpt2 and of ResNets with tests/reference, which computes the same loss in
 * double precision from the same parameters and shares no code with weft. The loss is compared
 * first. Then the gradient is compared with central differences of the reference along random
 * directions: (loss(w + h d) - loss(w - h d)) / 2h is the product of the gradient and d. For gpt2
 * each parameter has its own direction, so that none is left out. Tested with fusion, as in a run,
 * and without fusion on the backend that poisons memory. */
#include "one_rank.h"

#include "reference/forward.h"

#include <math.h>

enum { CLASSES = 10, SEED = 7, TOKENS = 12, VOCAB = 37, WIDTH = 24, HEADS = 3, DEPTH = 2 };

/* Relative tolerances, ten times the measured errors. Single precision rounds each number to 6e-8.
 * gpt2 is a smooth model of few layers; sums of such errors stay near that: 5e-8 in the loss, 4e-7
 * in the gradients. In a ResNet, batch norm divides by deviations of few numbers, and a relu may
 * fall on the other side of 0; the errors are 6e-7 and 1.2e-5. The error of a gradient is the error
 * of its product with a direction of 1 and -1, relative to the gradient's norm, which is the
 * typical size of such a product. */
static const double LOSS_SMOOTH = 5e-7, LOSS_CORNERS = 6e-6;
static const double SLOPE_SMOOTH = 4e-6, SLOPE_CORNERS = 1.2e-4;
/* The reference's step h along a direction. Rounding in double precision makes an error of 1e-16 /
 * h in a slope. In a ResNet with its millions of numbers, relus that change sides within the step
 * make a larger error; therefore its h is smaller. */
static const double STEP_SMOOTH = 1e-5, STEP_CORNERS = 1e-8;

/* Opens the model, fused unless the backend poisons memory. */
static Status open_model(OneRank *r, const char *model, Desc input, int64_t classes,
                         const BackendTable *table)
{
    Config *config;
    *r = (OneRank){0};
    config_use_words(model_words, MODEL_WORDS);
    TRY(config_parse(&config, "test", model, 0, NULL));
    return one_rank_open(r, config, input, classes, table, table == &backend_cpu ? table : NULL,
                         SEED);
}

/* ---- parameters ---- */

typedef struct Values {
    /* owned */
    ReferenceParam *list;
    /* value: numbers of each parameter; slope: their gradients, filled after a step; both owned */
    double **value, **slope;
    int64_t *elements;
    int count;
} Values;

/* Returns initial values, with changes:
 * - values that start as 0 or 1 (biases, norms) get noise, so that each of them has an effect;
 * - gpt2's matrices are scaled up: their deviation is meant for hundreds of columns, and with few
 *   columns layers would hardly change the residual stream;
 * - norms at the ends of bottlenecks are small (Goyal et al. 2017 start with 0): random blocks at
 *   full scale make a function of 50 layers on which no two precisions agree. */
static float *first_values(const OneRank *r, int param)
{
    const Param *p = &r->graph->param[param];
    float *plain = mem_new((size_t)shape_count(p->shape) * sizeof *plain);
    RngKey key = rng_key(SEED, RNG_TEST, (uint64_t)param, 1);
    float matrices = r->graph->input.dtype == DTYPE_I32 ? 6 : 1;
    float scale = p->shape.ndim == 2 ? matrices : strstr(p->name, ".bn3.weight") ? 0.25f : 1.0f;
    float noise = p->shape.ndim == 1 && !p->info.is_statistic ? 0.1f : 0.0f;
    param_init(r->graph, param, SEED, plain);
    for (int64_t i = 0; i < shape_count(p->shape); ++i)
        plain[i] = scale * (plain[i] + noise * rng_normal(key, (uint64_t)i));
    return plain;
}

/* Sets weft's parameters to first_values, and returns the same numbers as doubles, in plain order,
 * for the reference. Running statistics and tied parameters are not among them. Freed by
 * values_free. */
static Values values_new(OneRank *r)
{
    int count = r->graph->param_count;
    Values v = {.list = mem_new((size_t)count * sizeof *v.list),
                .value = mem_new((size_t)count * sizeof *v.value),
                .slope = mem_new((size_t)count * sizeof *v.slope),
                .elements = mem_new((size_t)count * sizeof *v.elements)};
    for (int i = 0; i < count; ++i) {
        const Param *p = &r->graph->param[i];
        if (p->tied_param >= 0) continue;
        int64_t n = shape_count(p->shape);
        float *plain = first_values(r, i);
        op_pack(r->graph->node[p->node].op, p->slot, plain,
                executor_params(r->executor) + r->plan->param_offset[i]);
        if (!p->info.is_statistic) {
            double *value = mem_new((size_t)n * sizeof *value);
            for (int64_t k = 0; k < n; ++k) value[k] = (double)plain[k];
            v.value[v.count] = value;
            v.elements[v.count] = n;
            v.list[v.count++] = (ReferenceParam){p->name, value};
        }
        mem_free(&plain);
    }
    executor_params_changed(r->executor);
    return v;
}

/* Copies weft's gradients after a step to v->slope, in the order of v->value. */
static void values_slope(Values *v, OneRank *r)
{
    int at = 0;
    for (int i = 0; i < r->graph->param_count; ++i) {
        const Param *p = &r->graph->param[i];
        if (p->tied_param >= 0 || p->info.is_statistic) continue;
        float *plain = mem_new((size_t)v->elements[at] * sizeof *plain);
        op_unpack(r->graph->node[p->node].op, p->slot,
                  executor_grads(r->executor) +
                      plan_sum_offset(r->plan, r->plan->param_offset[i], 0),
                  plain);
        v->slope[at] = mem_new((size_t)v->elements[at] * sizeof(double));
        for (int64_t k = 0; k < v->elements[at]; ++k) v->slope[at][k] = (double)plain[k];
        mem_free(&plain);
        ++at;
    }
}

static void values_free(Values *v)
{
    for (int i = 0; i < v->count; ++i) {
        mem_free(&v->value[i]);
        mem_free(&v->slope[i]);
    }
    mem_free(&v->list);
    mem_free(&v->value);
    mem_free(&v->slope);
    mem_free(&v->elements);
}

/* ---- one step ---- */

/* Makes one step and returns weft's loss; the gradients stay in the executor. rows: expected number
 * of rows in the loss. */
static double program_loss(OneRank *r, MicroBatch *batch, int64_t rows)
{
    StepBatch of = {.scale = 1.0f / (float)rows, .micro_batches = 1};
    const float *metrics = one_rank_step(r, batch, of);
    CU_ASSERT_EQUAL((int64_t)metrics[METRIC_ROWS], rows);
    return (double)metrics[METRIC_LOSS] / (double)metrics[METRIC_ROWS];
}

/* The reference's loss as a function of its parameters, with the data that it needs; all pointers
 * are borrowed. */
typedef struct Oracle {
    Values *values;
    double (*loss)(const struct Oracle *oracle);
    ReferenceGpt2 gpt2;
    ReferenceResnet resnet;
    const double *image;
    const int *token, *label;
} Oracle;

static double gpt2_loss(const Oracle *o)
{
    ReferenceParams params = {o->values->list, o->values->count};
    return reference_gpt2(params, o->gpt2, o->token, o->label);
}

static double resnet_loss(const Oracle *o)
{
    ReferenceParams params = {o->values->list, o->values->count};
    return reference_resnet(params, o->resnet, o->image, o->label);
}

/* Returns the direction's value at a position, 1 or -1 by a hash. */
static double direction(int param, int64_t i)
{
    uint64_t h = ((uint64_t)i + ((uint64_t)param << 40)) * 0x9E3779B97F4A7C15u;
    h = (h ^ h >> 32) * 0xD6E8FEB86659FD93u;
    return h >> 63 ? 1 : -1;
}

static void move(Values *v, int first, int end, double by)
{
    for (int p = first; p < end; ++p)
        for (int64_t i = 0; i < v->elements[p]; ++i) v->value[p][i] += by * direction(p, i);
}

/* Compares weft's gradient with the reference's differences along one direction of the parameters
 * `first` to end - 1. h: step of the differences. */
static void check_slope(const Oracle *o, int first, int end, double h, double tolerance)
{
    Values *v = o->values;
    double slope = 0, squares = 0;
    for (int p = first; p < end; ++p)
        for (int64_t i = 0; i < v->elements[p]; ++i) {
            slope += v->slope[p][i] * direction(p, i);
            squares += v->slope[p][i] * v->slope[p][i];
        }
    move(v, first, end, h);
    double above = o->loss(o);
    move(v, first, end, -2 * h);
    double below = o->loss(o);
    move(v, first, end, h);
    double off = fabs((above - below) / (2 * h) - slope) / sqrt(squares);
    CU_ASSERT(squares > 0 && off <= tolerance);
    if (getenv("WEFT_TEST_VERBOSE") || !(off <= tolerance))
        printf("  %s and %d more: gradient off by %.1e, allowed %.1e\n", v->list[first].name,
               end - first - 1, off, tolerance);
}

static void check_loss(const char *what, double got, double wanted, double tolerance)
{
    double off = fabs(got - wanted) / wanted;
    CU_ASSERT(off <= tolerance);
    if (getenv("WEFT_TEST_VERBOSE") || !(off <= tolerance))
        printf("  %s: loss %.9g, reference %.9g: off by %.1e, allowed %.1e\n", what, got, wanted,
               off, tolerance);
}

/* ---- gpt2 ---- */

static void check_gpt2(const BackendTable *table)
{
    enum { SAMPLES = 3, PLACES = SAMPLES * TOKENS };
    int32_t token[PLACES], next[PLACES];
    int64_t sample[SAMPLES] = {0, 1, 2};
    MicroBatch batch = {.tokens = token, .labels = next, .sample = sample, .rows = SAMPLES};
    OneRank run;
    for (int i = 0; i < PLACES; ++i) {
        token[i] = (int32_t)(rng_u32(rng_key(SEED, RNG_TEST, 0, 3), (uint64_t)i) % VOCAB);
        next[i] = (int32_t)(rng_u32(rng_key(SEED, RNG_TEST, 0, 4), (uint64_t)i) % VOCAB);
    }
    char *model = mem_format("model: {name: gpt2, layers: %d, width: %d, heads: %d, context: %d}",
                             DEPTH, WIDTH, HEADS, TOKENS);
    Status status = open_model(
        &run, model, desc_plain(shape_of(2, SAMPLES, TOKENS, 1, 1), DTYPE_I32), VOCAB, table);
    CHECK_OK(status);
    mem_free(&model);
    if (status == OK) {
        Values values = values_new(&run);
        Oracle oracle = {.values = &values,
                         .loss = gpt2_loss,
                         .gpt2 = {SAMPLES, TOKENS, WIDTH, HEADS, DEPTH, VOCAB},
                         .token = token,
                         .label = next};
        double loss = program_loss(&run, &batch, PLACES);
        check_loss("gpt2", loss, oracle.loss(&oracle), LOSS_SMOOTH);
        values_slope(&values, &run);
        CU_ASSERT_EQUAL(values.count, 2 + 12 * DEPTH + 2);
        for (int p = 0; p < values.count; ++p)
            check_slope(&oracle, p, p + 1, STEP_SMOOTH, SLOPE_SMOOTH);
        values_free(&values);
    }
    one_rank_close(&run);
}

static void gpt2(void)
{
    check_gpt2(&backend_cpu);
}

static void gpt2_poison(void)
{
    check_gpt2(&backend_poison);
}

/* ---- ResNets ---- */

static void check_resnet(const char *model, ReferenceResnet m, const BackendTable *table)
{
    enum { SAMPLES_MOST = 8 };
    int32_t label[SAMPLES_MOST];
    int64_t sample[SAMPLES_MOST];
    int64_t n = (int64_t)m.N * m.C * m.H * m.W;
    OneRank run;
    MicroBatch batch = {
        .rows = m.N, .x = mem_new((size_t)n * sizeof(float)), .labels = label, .sample = sample};
    double *image = mem_new((size_t)n * sizeof *image);
    for (int64_t i = 0; i < n; ++i)
        image[i] = (double)(batch.x[i] = rng_normal(rng_key(SEED, RNG_TEST, 0, 5), (uint64_t)i));
    for (int i = 0; i < m.N; ++i) {
        label[i] = (i * 7 + 3) % CLASSES;
        sample[i] = i;
    }
    Shape shape = shape_of(4, m.N, m.C, m.H, m.W);
    Status status = open_model(&run, model, desc_plain(shape, DTYPE_F32), m.classes, table);
    CHECK_OK(status);
    if (status == OK) {
        Values values = values_new(&run);
        Oracle oracle = {
            .values = &values, .loss = resnet_loss, .resnet = m, .image = image, .label = label};
        double loss = program_loss(&run, &batch, m.N);
        check_loss(model, loss, oracle.loss(&oracle), LOSS_CORNERS);
        values_slope(&values, &run);
        check_slope(&oracle, 0, values.count, STEP_CORNERS, SLOPE_CORNERS);
        values_free(&values);
    }
    one_rank_close(&run);
    mem_free(&batch.x);
    mem_free(&image);
}

static const ReferenceResnet basic = {
    .N = 4, .C = 1, .H = 12, .W = 10, .blocks = {2, 2, 2, 2}, .small_stem = 1, .classes = CLASSES};
static const ReferenceResnet bottlenecks = {
    .N = 6, .C = 3, .H = 24, .W = 20, .blocks = {3, 4, 6, 3}, .bottleneck = 1, .classes = CLASSES};

static void resnet18(void)
{
    check_resnet("model: {name: resnet18, stem: small}", basic, &backend_cpu);
}

static void resnet18_poison(void)
{
    check_resnet("model: {name: resnet18, stem: small}", basic, &backend_poison);
}

static void resnet50(void)
{
    check_resnet("model: {name: resnet50}", bottlenecks, &backend_cpu);
}

/* Tests that the reference returns NaN if a parameter is missing in its list. */
static void missing(void)
{
    int token = 0;
    double loss = reference_gpt2((ReferenceParams){NULL, 0}, (ReferenceGpt2){1, 1, 2, 1, 0, 2},
                                 &token, &token);
    CU_ASSERT(isnan(loss));
}

TEST_MAIN("reference", {"gpt2", gpt2}, {"gpt2, poisoned", gpt2_poison}, {"resnet18", resnet18},
          {"resnet18, poisoned", resnet18_poison}, {"resnet50", resnet50}, {"missing", missing})
