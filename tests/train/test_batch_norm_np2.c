/* Tests batch norm over a single number per channel. If every micro-batch has only one number per
 * channel, the model is refused. If only the last micro-batch of an epoch has, it is left out of
 * the running statistics. The expected statistics are computed here in double precision, from the
 * samples in the order of the sampler. */
#include "tiny_main.h"

#include <math.h>

enum { CHANNELS = 6, MOST = 40, CLASSES = 3 };
static float values[MOST][CHANNELS];

static void make_data(const char *path, int n)
{
    int32_t y[MOST];
    for (int i = 0; i < n; ++i) y[i] = CLASSES - 1 - i % CLASSES;
    if (tiny_rank == 0)
        tiny_images(path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, values, y, n, 1, 2, CHANNELS / 2);
    tiny_barrier();
}

static Config *config_of(const char *data, const char *layers, const char *train)
{
    Config *config = NULL;
    char *text = mem_format("run: {seed: 3}\nmodel: {layers: [flatten, %s, dense: {width: 3}]}\n"
                            "data: {train: %s}\ntrain: {%s, epochs: 2, threads: 1}\n",
                            layers, data, train);
    CHECK_OK(config_parse(&config, "norm.yaml", text, 0, NULL));
    mem_free(&text);
    return config;
}

typedef struct Case {
    int ranks, samples, batch, micro;
    bool synced;
} Case;

typedef struct Running {
    double mean[CHANNELS], variance[CHANNELS];
} Running;

/* Computes the running statistics after one step of `count` samples from position `first`.
 * Statistics are those of one micro-batch or, with sync_batch_norm, of one micro-batch of each
 * replica together. Statistics of a single sample are left out. */
static void want_step(const Case *c, int64_t epoch, int first, int count, Running *is)
{
    int turn = c->synced ? c->ranks * c->micro : c->micro, micro_batches = 0;
    double mean[CHANNELS] = {0}, variance[CHANNELS] = {0};
    for (int at = 0; at < count; at += turn) {
        int n = count - at < turn ? count - at : turn, parts = (n + c->micro - 1) / c->micro;
        if (n == 1) continue;
        micro_batches += parts;
        for (int k = 0; k < CHANNELS; ++k) {
            double sum = 0, square = 0;
            for (int i = 0; i < n; ++i)
                sum += values[sampler_at(c->samples, 3, epoch, first + at + i)][k];
            for (int i = 0; i < n; ++i) {
                double d = values[sampler_at(c->samples, 3, epoch, first + at + i)][k] - sum / n;
                square += d * d;
            }
            mean[k] += parts * sum / n;
            variance[k] += parts * square / (n - 1);
        }
    }
    for (int k = 0; micro_batches > 0 && k < CHANNELS; ++k) {
        is->mean[k] += 0.1 * (mean[k] / micro_batches - is->mean[k]);
        is->variance[k] += 0.1 * (variance[k] / micro_batches - is->variance[k]);
    }
}

static int compare(Trainer *t, const char *name, const double *want)
{
    int bad = 0;
    for (int i = 0; i < t->graph->param_count; ++i) {
        const char *end = strrchr(t->graph->param[i].name, '.');
        if (!end || strcmp(end + 1, name) != 0) continue;
        const float *is = tiny_own(t, i, -1);
        for (int k = 0; k < CHANNELS; ++k) bad += !(fabs(is[k] - want[k]) < 2e-5);
        return bad;
    }
    return CHANNELS;
}

static void running_of(const Case *c)
{
    char *path = mem_format("%s/running.h5", tiny_folder);
    char *train = mem_format("batch: %d, micro_batch: %d%s", c->batch, c->micro,
                             c->synced ? ", sync_batch_norm: true" : "");
    World sub;
    Trainer *t = NULL;
    StepResult result;
    Running want = {.mean = {0}};
    for (int k = 0; k < CHANNELS; ++k) want.variance[k] = 1;
    make_data(path, c->samples);
    if (tiny_world(&sub, c->ranks)) {
        Config *config = config_of(path, "batch_norm", train);
        CHECK_OK(trainer_new(&t, config, &sub));
        for (int s = 0; t && s < t->steps; ++s) {
            int first = (int)(s % t->steps_per_epoch) * c->batch, left = c->samples - first;
            want_step(c, s / t->steps_per_epoch, first, left < c->batch ? left : c->batch, &want);
            CHECK_OK(next_step(t, &result));
            int bad =
                compare(t, "running_mean", want.mean) + compare(t, "running_var", want.variance);
            CU_ASSERT_EQUAL(bad, 0);
            if (bad)
                printf("  %d ranks, %d samples, batch %d, micro-batch %d, synced %d: step %d\n",
                       c->ranks, c->samples, c->batch, c->micro, c->synced, s);
        }
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
    mem_free(&train);
    mem_free(&path);
}

static void test_running(void)
{
    static const Case cases[] = {
        {1, 33, 32, 32, false}, {1, 33, 32, 8, false}, {1, 33, 36, 4, false},
        {1, 34, 32, 32, false}, {2, 33, 32, 8, false}, {2, 33, 12, 4, false},
        {2, 5, 4, 2, true},     {2, 7, 4, 2, true},    {2, 5, 6, 2, true},
        {2, 9, 4, 1, true},     {1, 5, 4, 2, true},    {1, 9, 6, 2, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) running_of(&cases[i]);
}

static void refuse(int samples, int ranks, const char *layers, const char *train, const char *text)
{
    char *path = mem_format("%s/refused.h5", tiny_folder);
    World sub;
    make_data(path, samples);
    if (tiny_world(&sub, ranks)) {
        Config *config = config_of(path, layers, train);
        Trainer *t = NULL;
        if (text)
            CHECK_FAILS(trainer_new(&t, config, &sub), ERR_CONFIG, text);
        else
            CHECK_OK(trainer_new(&t, config, &sub));
        trainer_free(&t);
        /* an evaluation uses the running statistics, so it accepts any micro-batch */
        if (text && !strncmp(layers, "batch_norm", 10))
            CHECK_OK(trainer_new_to_load(&t, config, &sub, NULL, NULL));
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
    mem_free(&path);
}

static void test_refused(void)
{
    refuse(8, 1, "batch_norm", "batch: 4, micro_batch: 1",
           "train.micro_batch: is 1, too few samples for layer batch_norm1");
    refuse(8, 2, "batch_norm", "batch: 37", "set it to 37");
    refuse(8, 1, "batch_norm", "batch: 1", "train.batch: is 1, too few samples for layer");
    refuse(1, 1, "batch_norm", "batch: 4, micro_batch: 4", "has one sample, too few for layer");
    refuse(8, 1, "batch_norm", "batch: 4, micro_batch: 1, sync_batch_norm: true", "is 1, too few");
    refuse(8, 2, "batch_norm", "batch: 4, micro_batch: 1, sync_batch_norm: true", NULL);
    refuse(8, 1, "batch_norm", "batch: 4, micro_batch: 2", NULL);
    refuse(8, 1, "dense: {width: 1}, layer_norm", "batch: 4", "layer_norm got one column");
    refuse(8, 1, "dense: {width: 1}, rms_norm", "batch: 4", "rms_norm got one column");
    refuse(8, 1, "dense: {width: 2}, layer_norm, rms_norm", "batch: 4", NULL);
}

static void prepare(void)
{
    for (int i = 0; i < MOST; ++i)
        for (int k = 0; k < CHANNELS; ++k)
            values[i][k] =
                3 * rng_uniform(rng_key(5, RNG_TEST, (uint64_t)i, 0), (uint64_t)k) + (float)k;
}

TINY_MAIN("batch norm", prepare, {"running statistics", test_running}, {"refused", test_refused})
