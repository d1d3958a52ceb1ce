/* Tests the gradient noise scale. Its two estimates follow from the norms of the gradients of a
 * batch and of its micro-batches, each of which the test trains alone. They have the same bits on
 * every grid. Runs that cannot measure the scale are refused. */
#include "tiny_main.h"

#include <math.h>

enum { SAMPLES = 20, CLASSES = 5, BATCH = 8, MICRO = 2, MOST = 8 };

static char images_path[64], tokens_path[64];
static const char layers[] =
    "model: {layers: [conv2d: {channels: 6, kernel: 3}, relu, flatten, dense: {width: 12}, tanh, "
    "dense: {width: 5}]}\noptim: {name: sgd, lr: 1e-30}\n";
/* the embedding is also the head's matrix */
static const char gpt[] = "model: {name: gpt2, layers: 2, width: 24, heads: 3, context: 8}\n"
                          "optim: {name: adamw, lr: 3e-3, clip: 0.5}\n";

static void prepare(void)
{
    snprintf(images_path, sizeof images_path, "%s/images.h5", tiny_folder);
    snprintf(tokens_path, sizeof tokens_path, "%s/tokens.h5", tiny_folder);
    if (tiny_rank > 0) return;
    tiny_data(images_path, SAMPLES, 1, 8, 8, CLASSES);
    tiny_tokens(tokens_path, SAMPLES * 8 + 1, 29);
}

/* Makes a configuration, owned by the caller. keys: key=value words separated by spaces. */
static Config *config_of(const char *text, const char *keys)
{
    Config *config = NULL;
    char *all =
        mem_format("data.train=%s train.threads=1 %s %s", text == gpt ? tokens_path : images_path,
                   strstr(keys, "log_every") ? "" : "train.log_every=1", keys);
    char *rest = all, *words[20];
    int count = 0;
    for (char *word; count < 20 && (word = strsep(&rest, " "));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "noise.yaml", text, count, words));
    mem_free(&all);
    return config;
}

/* Trains and writes each step's result to result[steps]. */
static Status train(const Config *config, const World *world, int steps, StepResult *result)
{
    Trainer *t = NULL;
    Status st = trainer_new(&t, config, world);
    for (int i = 0; st == OK && i < steps; ++i) st = next_step(t, &result[i]);
    trainer_free(&t);
    return st;
}

static void run_alone(const char *text, const char *keys, int steps, StepResult *result)
{
    const World alone = world_alone();
    Config *config = config_of(text, keys);
    memset(result, 0, (size_t)steps * sizeof *result);
    CHECK_OK(train(config, &alone, steps, result));
    config_free(&config);
}

static bool near(double a, double b)
{
    return fabs(a - b) <= 1e-5 * fabs(b);
}

/* Checks the estimates by their definitions. The learning rate is so small that parameters do not
 * change in fp32; therefore steps with batches of MICRO samples have the gradients of the
 * micro-batches of a larger batch. */
static void definitions(void)
{
    enum { STEPS = 5 };
    const double large = BATCH, small = MICRO;
    StepResult whole[STEPS], part[2 * BATCH / MICRO], windows[STEPS];
    double square[2], variance[2];
    if (tiny_rank > 0) return;
    run_alone(layers, "train.batch=8 train.micro_batch=2 train.steps=5 train.grad_noise=true",
              STEPS, whole);
    run_alone(layers, "train.batch=2 train.micro_batch=2 train.steps=8", 8, part);
    for (int s = 0; s < 2; ++s) {
        double of_small = 0, of_large = whole[s].grad_norm * whole[s].grad_norm;
        for (int m = 0; m < BATCH / MICRO; ++m) {
            const double norm = part[s * BATCH / MICRO + m].grad_norm;
            of_small += norm * norm * MICRO / BATCH;
        }
        square[s] = (large * of_large - small * of_small) / (large - small);
        variance[s] = (of_small - of_large) / (1 / small - 1 / large);
        CU_ASSERT(near(whole[s].noise.square, square[s]));
        CU_ASSERT(near(whole[s].noise.variance, variance[s]));
        CU_ASSERT(near(whole[s].noise.scale, variance[s] / square[s]));
        CU_ASSERT(variance[s] > 0);
    }
    /* the third batch of an epoch is short */
    CU_ASSERT(isnan(whole[2].noise.square) && isnan(whole[2].noise.scale));
    /* the first and the last step are logged; the last one's estimates are means over the steps
     * since the first that have estimates */
    run_alone(layers,
              "train.batch=8 train.micro_batch=2 train.steps=5 train.grad_noise=true "
              "train.log_every=9",
              5, windows);
    CU_ASSERT(windows[0].noise.square == whole[0].noise.square);
    CU_ASSERT(isnan(windows[1].noise.square));
    const double sum = whole[1].noise.variance + whole[3].noise.variance + whole[4].noise.variance;
    CU_ASSERT_DOUBLE_EQUAL(windows[4].noise.variance, sum / 3, 1e-12 * sum);
    run_alone(layers, "train.batch=8 train.micro_batch=2 train.steps=3", 3, whole);
    CU_ASSERT(isnan(whole[0].noise.square));
}

/* Trains on a grid. noise: receives the estimates of each step, the same on all ranks. Collective
 * on MPI_COMM_WORLD. */
static void run_on(const char *text, const char *keys, int ranks, int steps, GradNoise *noise)
{
    World sub;
    StepResult result[MOST];
    memset(noise, 0, (size_t)steps * sizeof *noise);
    if (tiny_world(&sub, ranks)) {
        Config *config = config_of(text, keys);
        CHECK_OK(train(config, &sub, steps, result));
        for (int i = 0; i < steps; ++i) noise[i] = result[i].noise;
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_bcast(noise, (size_t)steps * sizeof *noise);
}

static void same_bits(void)
{
    static const struct {
        const char *grid;
        int ranks;
    } place[] = {{"grid.dp=2", 2},
                 {"grid.dp=3", 3},
                 {"grid.pp=2", 2},
                 {"grid.pp=2 grid.pipeline_schedule=zero-bubble", 2},
                 {"grid.dp=2 grid.zero=2 grid.transport=mpi", 2},
                 {"grid.dp=2 grid.zero=3 grid.transport=mpi grid.bucket_mb=0.01", 2},
                 {"grid.dp=4 grid.zero=1", 4},
                 {"grid.dp=2 grid.pp=2", 4}};
    const char *const text[] = {layers, gpt};
    enum { STEPS = 2 };
    for (int k = 0; k < 2; ++k) {
        const char *keys = "train.batch=8 train.micro_batch=1 train.steps=4 train.grad_noise=true";
        GradNoise want[STEPS], got[STEPS];
        run_on(text[k], keys, 1, STEPS, want);
        CU_ASSERT(isfinite(want[0].square) && want[1].variance > 0);
        for (size_t i = 0; i < sizeof place / sizeof *place; ++i) {
            char *all = mem_format("%s %s", keys, place[i].grid);
            run_on(text[k], all, place[i].ranks, STEPS, got);
            const bool same = memcmp(got, want, sizeof want) == 0;
            CU_ASSERT_TRUE(same);
            if (!same && tiny_rank == 0)
                printf("  %s: variance %.17g, not %.17g\n", place[i].grid, got[0].variance,
                       want[0].variance);
            mem_free(&all);
        }
    }
}

static void refused(void)
{
    static const struct {
        const char *keys, *message;
        int ranks;
    } row[] = {{"train.batch=8 train.micro_batch=8", "set train.micro_batch to less than 8", 1},
               {"train.batch=8 train.micro_batch=2 grid.tp=2", "needs grid.tp: 1", 2}};
    for (size_t i = 0; i < sizeof row / sizeof *row; ++i) {
        World sub;
        StepResult result[1];
        if (tiny_world(&sub, row[i].ranks)) {
            char *keys = mem_format("%s train.steps=1 train.grad_noise=true", row[i].keys);
            Config *config = config_of(gpt, keys);
            CU_ASSERT_EQUAL(train(config, &sub, 1, result), ERR_CONFIG);
            CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), row[i].message));
            if (!strstr(fail_message(), row[i].message)) printf("  '%s'\n", fail_message());
            config_free(&config);
            mem_free(&keys);
        }
        tiny_world_fini(&sub);
    }
}

TINY_MAIN("gradient noise", prepare, {"definitions", definitions}, {"same bits", same_bits},
          {"refused", refused})
