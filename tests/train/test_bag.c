/* Tests a model with bags on one rank. The test provides the rows of the bags and checks their
 * gradients, with all schedules. An empty micro-batch, or a frozen table, changes no gradient. */
#include "one_rank.h"

enum { BATCH = 4, DENSE = 3, FIELDS = 2, WIDTH = 2, ROWS = 3 };

static const char model[] =
    "model: {layers: [bag: {width: 2}, concat: {input: [bag1, data]}, dense: {width: 2}]}\n";
static const char frozen[] = "model: {freeze: [bag1], layers: [bag: {width: 2}, concat: {input: "
                             "[bag1, data]}, dense: {width: 2}]}\n";

/* Runs one step of `rows` samples. grad: receives the gradients of the rows; each number is
 * `before` until the step writes it. */
static void step(const char *text, int schedule, int rows, float before, float *grad)
{
    static const int32_t first[BATCH * FIELDS + 1] = {0, 1, 2, 3, 5, 6, 6, 7, 8};
    static const int32_t row[] = {0, 1, 0, 2, 0, 1, 2, 2}, at[ROWS] = {2, 0, 1};
    OneRank r;
    Config *config = NULL;
    float x[BATCH * DENSE], value[ROWS * WIDTH];
    int32_t labels[BATCH] = {0, 1, 1, 0};
    int64_t sample[BATCH] = {0, 1, 2, 3};
    for (int i = 0; i < BATCH * DENSE; ++i) x[i] = (float)(i % 5) - 2;
    for (int i = 0; i < ROWS * WIDTH; ++i) value[i] = (float)(i % 3) - 1;
    for (int i = 0; i < ROWS * WIDTH; ++i) grad[i] = before;
    BagInput bag = {
        .first = first, .row = row, .rows = ROWS, .value = value, .at = at, .grad = grad};
    MicroBatch batch = {.x = x, .labels = labels, .sample = sample, .rows = rows, .bag = &bag};
    config_use_words(layers_words, LAYERS_WORDS);
    config_use_words(model_words, MODEL_WORDS);
    CHECK_OK(config_parse(&config, "test.yaml", text, 0, NULL));
    CHECK_OK(one_rank_open_ids(&r, config, desc_plain(shape_of(2, BATCH, DENSE, 1, 1), DTYPE_F32),
                               (GraphIds){.fields = FIELDS}, 2, &backend_poison, &backend_cpu, 1,
                               schedule));
    const Graph *g = r.graph;
    for (int i = 0; i < g->param_count; ++i)
        for (int64_t k = 0; k < g->param[i].elements; ++k)
            executor_params(r.executor)[r.plan->param_offset[i] + k] = (float)(k % 5) / 4 - 0.5f;
    executor_params_changed(r.executor);
    one_rank_step(&r, &batch, (StepBatch){.step = 0, .scale = 1});
    one_rank_close(&r);
}

static void test_schedules(void)
{
    static const int schedules[] = {SCHEDULE_1F1B, SCHEDULE_GPIPE, SCHEDULE_ZERO_BUBBLE};
    float grad[3][ROWS * WIDTH], sum = 0;
    for (int s = 0; s < 3; ++s) step(model, schedules[s], BATCH, NAN, grad[s]);
    for (int s = 0; s < 3; ++s) CU_ASSERT_EQUAL(memcmp(grad[0], grad[s], sizeof grad[0]), 0);
    for (int i = 0; i < ROWS * WIDTH; ++i) sum += fabsf(grad[0][i]);
    CU_ASSERT_TRUE(sum > 0.1f);
}

static void test_left_alone(void)
{
    float grad[ROWS * WIDTH];
    step(model, SCHEDULE_1F1B, 0, 7, grad);
    for (int i = 0; i < ROWS * WIDTH; ++i) CU_ASSERT_EQUAL(grad[i], 7);
    step(frozen, SCHEDULE_1F1B, BATCH, 7, grad);
    for (int i = 0; i < ROWS * WIDTH; ++i) CU_ASSERT_EQUAL(grad[i], 7);
}

TEST_MAIN("bag in a step", {"schedules", test_schedules}, {"left alone", test_left_alone})
