/* A tool, not a test: writes the logits of a checkpoint's model. tools/check_onnx.py compares them
 * with the logits of an exported model. Build: make build/tests/train/logits. Usage: logits CONFIG
 * CHECKPOINT OUT SAMPLES [key=value ...]. OUT contains four int64, then all samples, then all
 * logits. The four are the number of samples, 1 if samples are tokens, and how many numbers a
 * sample and its logits have. */
#include "train/trainer.h"

#include <stdlib.h>

typedef struct Run {
    Trainer *trainer;
    FILE *out;
    int64_t each, outputs;
    MicroBatch batch;
} Run;

static void fill(Run *r, int64_t sample)
{
    const RngKey key = rng_key(1, RNG_GENERATE, (uint64_t)sample, 0);
    for (int64_t i = 0; i < r->each; ++i) {
        float u = rng_uniform(key, (uint64_t)i);
        if (r->batch.tokens)
            r->batch.tokens[i] = (int32_t)(u * (float)trainer_graph(r->trainer)->classes);
        else
            r->batch.x[i] = 4 * u - 2;
    }
}

static Status logits(Run *r, int64_t samples)
{
    const Desc input = trainer_graph(r->trainer)->input;
    const bool tokens = input.dtype == DTYPE_I32;
    const Graph *graph = trainer_graph(r->trainer);
    r->each = shape_count(input.shape);
    r->outputs = shape_count(graph->node[graph->logits_node].spec.y.shape);
    void *data = mem_new((size_t)r->each * sizeof(float));
    r->batch = (MicroBatch){.x = tokens ? NULL : data, .tokens = tokens ? data : NULL, .rows = 1};
    r->batch.labels = mem_new((size_t)r->each * sizeof *r->batch.labels);
    r->batch.sample = mem_new(sizeof *r->batch.sample);
    fwrite((int64_t[]){samples, tokens, r->each, r->outputs}, sizeof(int64_t), 4, r->out);
    for (int64_t n = 0; n < samples; ++n) {
        fill(r, n);
        fwrite(data, sizeof(float), (size_t)r->each, r->out);
    }
    for (int64_t n = 0; n < samples; ++n) {
        const float *of;
        fill(r, n);
        TRY(train_logits(r->trainer, &r->batch, &of));
        fwrite(of, sizeof(float), (size_t)r->outputs, r->out);
    }
    return fclose(r->out) == 0 ? OK : fail(ERR_IO, "cannot be written");
}

int main(int argc, char **argv)
{
    World world;
    Config *config = NULL;
    Run r = {0};
    if (argc < 5 || world_init(&world, &argc, &argv) != OK) return 2;
    train_use_words();
    Status st = config_load(&config, argv[1], argc - 5, argv + 5);
    if (st == OK) {
        config->train.batch = config->train.micro_batch = 1;
        st = trainer_new(&r.trainer, config, &world);
    }
    if (st == OK) st = train_load(r.trainer, argv[2], LOAD_PARAMS);
    r.out = fopen(argv[3], "wb");
    if (st == OK) st = logits(&r, strtol(argv[4], NULL, 10));
    if (st != OK) fprintf(stderr, "%s\n", fail_message());
    trainer_free(&r.trainer);
    world_fini(&world);
    return st;
}
