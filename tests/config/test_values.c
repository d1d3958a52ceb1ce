/* Kinds of values: numbers, sizes in bytes, times, widths of layers. */
#include "fixture.h"

static void test_numbers(void)
{
    static const struct {
        const char *word;
        double want;
    } good[] = {{"optim.lr=5e-4", 5e-4},    {"optim.lr=.5", .5}, {"optim.lr=5.", 5},
                {"optim.lr=1E+2", 100},     {"optim.lr=+3", 3},  {"optim.lr=1", 1},
                {"optim.lr=1e-300", 1e-300}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        Config *c = override(NULL, good[i].word);
        CU_ASSERT_EQUAL(c->optim.lr, good[i].want);
        config_free(&c);
    }
    Config *c = override(NULL, "run.seed=9223372036854775807");
    CU_ASSERT_EQUAL(c->run.seed, INT64_MAX);
    config_free(&c);
    c = override(NULL, "data.mean=[]");
    CU_ASSERT_EQUAL(c->data.mean.count, 0);
    config_free(&c);
    c = parse("data: {mean: [-0.5, 0, 1], std: [1, 2, 3]}\n");
    CU_ASSERT_EQUAL_FATAL(c->data.mean.count, 3);
    CU_ASSERT_EQUAL(c->data.mean.value[0], -0.5);
    config_free(&c);
}

static void test_bytes(void)
{
    static const struct {
        const char *word;
        double want;
    } good[] = {{"8GB", 8e9},
                {"500MB", 5e8},
                {"2GiB", 2147483648.0},
                {"1.5 GB", 1.5e9},
                {"4096", 4096},
                {"1e9", 1e9},
                {"10kB", 10000},
                {"10KB", 10000},
                {"4KiB", 4096},
                {"1TB", 1e12},
                {"1e3MB", 1e9},
                {"3mib", 3145728},
                {"2TiB", 2199023255552.0},
                {"7B", 7},
                {"0.5kB", 500}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        char word[64];
        snprintf(word, sizeof word, "train.memory=%s", good[i].word);
        Config *c = override(NULL, word);
        CU_ASSERT_EQUAL(c->train.memory, good[i].want);
        config_free(&c);
    }
    Config *c = parse("train: {memory: 1.5 GiB}\n");
    CU_ASSERT_EQUAL(c->train.memory, 1610612736.0);
    config_free(&c);
}

static void test_max_time(void)
{
    static const struct {
        const char *word;
        double want;
    } good[] = {{"90s", 90},
                {"30m", 1800},
                {"12h", 43200},
                {"2d", 172800},
                {"1.5h", 5400},
                {"1h30m", 5400},
                {"1d2h3m4s", 93784},
                {"0.5s", 0.5},
                {"100h", 360000},
                {"12:00:00", 43200},
                {"100:00:01", 360001},
                {"1-12:00:00", 129600},
                {"1-12:30", 131400},
                {"2-6", 194400},
                {"none", 0},
                {"0", 0},
                {"0s", 0}};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; ++i) {
        char word[64];
        snprintf(word, sizeof word, "run.max_time=%s", good[i].word);
        Config *c = override(NULL, word);
        CU_ASSERT_EQUAL(c->run.max_time, good[i].want);
        config_free(&c);
    }
    Config *c = parse("run: {max_time: \"12:00:00\"}\n");
    CU_ASSERT_EQUAL(c->run.max_time, 43200);
    config_free(&c);
    c = parse("run:\n  max_time: 1-12:00:00 # a day and a half\n");
    CU_ASSERT_EQUAL(c->run.max_time, 129600);
    config_free(&c);
}

static void bad_widths(const char *text, const char *message)
{
    Config *c = NULL;
    CHECK_FAILS(config_parse(&c, "bad.yaml", text, 0, NULL), ERR_CONFIG, message);
}

static void test_widths(void)
{
    char *words[] = {"model.widths={conv1: 5, a.b: 6}"};
    Config *c = NULL, *other = parse("run: {seed: 1}\n");
    CHECK_OK(config_parse(&c, "good.yaml", "model: {widths: {x: 1}}", 1, words));
    CU_ASSERT(c->model.widths.count == 2 && c->model.widths.item[1].channels == 6);
    CU_ASSERT_STRING_EQUAL(c->model.widths.item[1].layer, "a.b");
    config_set_width(c, "a.b", 4);
    config_set_width(c, "new", 9);
    CU_ASSERT(config_copy_widths(other, c) && !config_copy_widths(other, c));
    CU_ASSERT(!config_copy_widths(c, other));
    CU_ASSERT(other->model.widths.count == 3 && other->model.widths.item[1].channels == 4);
    config_free(&c);
    config_free(&other);
    bad_widths("model: {widths: {a: 0}}", "bad.yaml:1:21: model.widths: a: 0 is out of range");
    bad_widths("model: {widths: {a: 1, a: 2}}", "'a' is given twice");
    bad_widths("model: {widths: {a: [1]}}", "a: expected a single value");
    bad_widths("model: {widths: {'': 1}}", "a layer's name is empty");
    bad_widths("model: {widths: [a]}", "expected layers with their channels");
    bad_widths("model: {widths: {a: 1.5}}", "'1.5' is not a whole number");
}

TEST_MAIN("values", {"words of modules", use_test_words}, {"numbers", test_numbers},
          {"sizes in bytes", test_bytes}, {"max_time", test_max_time}, {"widths", test_widths})
