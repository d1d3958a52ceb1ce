/* Tests label fields. After three steps, the loss and the metrics of an evaluation have the same
 * bits on every grid and with any number of threads. Metrics are computed from a confusion
 * matrix. */
#include "tiny_main.h"

#include <math.h>

typedef struct Result {
    double loss;
    int64_t samples;
    LabelMetrics metrics;
} Result;

static Config *config_of(const char *target, const char *loss, const char *more)
{
    static const char text[] =
        "data: {train: tests/golden/fields/labels.nc, test: tests/golden/fields/labels.nc}\n"
        "model: {layers: [conv2d: {channels: 6, kernel: 3, pad: same}, tanh, conv2d: {channels: 4, "
        "kernel: 3, pad: same}, tanh, conv2d: {channels: CLASSES, kernel: 1}]}\n"
        "train: {batch: 8, micro_batch: 2, steps: 3}\noptim: {name: adam, lr: 1e-2}\n";
    Config *config = NULL;
    const bool two = strstr(target, "classes: 2") != NULL;
    char *whole = mem_text(text), *word[16] = {0};
    int count = 0;
    /* the last layer has a channel for each class */
    char *at = strstr(whole, "CLASSES");
    memset(at, ' ', strlen("CLASSES"));
    *at = two ? '2' : '3';
    word[count++] = mem_format("data.variables={inputs: [h, u], targets: [%s]}", target);
    word[count++] = mem_format("train.loss=%s", loss);
    char *rest = mem_text(more), *left = rest;
    for (char *key; count < 16 && (key = strsep(&left, " "));)
        if (*key) word[count++] = mem_text(key);
    CHECK_OK(config_parse(&config, "labels.yaml", whole, count, word));
    for (int i = 0; i < count; ++i) mem_free(&word[i]);
    mem_free(&rest);
    mem_free(&whole);
    return config;
}

static Status evaluate(const Config *config, const World *world, Result *result)
{
    Trainer *t = NULL;
    EvalLine line;
    StepResult step;
    Status st = trainer_new(&t, config, world);
    for (int i = 0; st == OK && i < 3; ++i) st = next_step(t, &step);
    if (st == OK) st = train_evaluate(t, &t->test_set, &line, NULL);
    if (st == OK) {
        CU_ASSERT(line.labels && !line.fields && isnan(line.top1));
        result->loss = line.loss;
        result->samples = line.samples;
        result->metrics = *line.labels;
        /* only rank 0 knows the names of classes */
        for (int i = 0; i < result->metrics.classes; ++i)
            memset(result->metrics.item[i].name, 0, sizeof result->metrics.item[i].name);
    }
    trainer_free(&t);
    return st;
}

/* Evaluates on a grid. result: the same on all ranks. Collective on MPI_COMM_WORLD. */
static void result_on(const char *target, const char *loss, const char *grid, int ranks,
                      Result *result)
{
    World sub;
    memset(result, 0, sizeof *result);
    if (tiny_world(&sub, ranks)) {
        Config *config = config_of(target, loss, grid);
        CHECK_OK(evaluate(config, &sub, result));
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(result, sizeof *result);
}

static void same_bits(void)
{
    static const struct {
        const char *target, *loss;
    } set[] = {{"{name: cover, classes: 3, ignore: 200}", "softmax"},
               {"{name: cover, classes: 3, ignore: 200}", "dice"},
               {"{name: mask, classes: 2}", "focal"}};
    static const struct {
        const char *grid;
        int ranks;
    } place[] = {{"train.threads=3", 1},
                 {"train.threads=1 grid.dp=2", 2},
                 {"train.threads=1 grid.dp=2 grid.pp=2", 4},
                 {"train.threads=1 grid.dp=4", 4}};
    Result *want = mem_new(sizeof *want), *got = mem_new(sizeof *got);
    for (size_t k = 0; k < sizeof set / sizeof *set; ++k) {
        result_on(set[k].target, set[k].loss, "train.threads=1", 1, want);
        CU_ASSERT(isfinite(want->loss) && isfinite(want->metrics.iou));
        CU_ASSERT_EQUAL(want->samples, 12);
        CU_ASSERT_EQUAL(want->metrics.pixels, k < 2 ? 12 * 128 - 64 : 12 * 128);
        for (size_t i = 0; i < sizeof place / sizeof *place; ++i) {
            result_on(set[k].target, set[k].loss, place[i].grid, place[i].ranks, got);
            const bool same = memcmp(got, want, sizeof *want) == 0;
            CU_ASSERT_TRUE(same);
            if (!same && tiny_rank == 0)
                printf("  %s, %s: loss %.17g, not %.17g\n", set[k].loss, place[i].grid, got->loss,
                       want->loss);
        }
    }
    mem_free(&want);
    mem_free(&got);
}

/* Tests the metrics of a given confusion matrix. A class that is only predicted has IoU 0; a class
 * that occurs nowhere has no IoU. */
static void metrics(void)
{
    static const int64_t confusion[16] = {6, 1, 1, 0, 2, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0};
    LabelMetrics *m = mem_new(sizeof *m);
    label_metrics_fill(m, 4, confusion);
    CU_ASSERT_EQUAL(m->pixels, 14);
    CU_ASSERT_DOUBLE_EQUAL(m->accuracy, 10.0 / 14, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(m->item[0].iou, 6.0 / 10, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(m->item[0].dice, 12.0 / 16, 1e-15);
    CU_ASSERT_DOUBLE_EQUAL(m->item[1].iou, 4.0 / 7, 1e-15);
    CU_ASSERT_EQUAL(m->item[2].iou, 0);
    CU_ASSERT(isnan(m->item[3].iou) && isnan(m->item[3].dice));
    CU_ASSERT_DOUBLE_EQUAL(m->iou, (0.6 + 4.0 / 7) / 3, 1e-15);
    label_metrics_fill(m, 2, (const int64_t[4]){0});
    CU_ASSERT(isnan(m->accuracy) && isnan(m->iou));
    mem_free(&m);
}

static void prepare(void)
{
    /* the files are in tests/golden */
}

TINY_MAIN("label fields", prepare, {"same bits", same_bits}, {"metrics", metrics})
