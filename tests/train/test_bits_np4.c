/* The promise: one, two, three and four replicas, over any transport, end with the same bits, with batch norm, dropout,
 * augmentation, a short last batch and clipping. Expected value: the run of one rank. */
#include "tiny_main.h"

static char data_path[64];

static const char *const models[] = {
    "model: {name: resnet18, stem: small}\noptim: {name: sgd, lr: 0.05, momentum: 0.9, nesterov: "
    "true, weight_decay: 5e-4, clip: 1.0}\n",
    "model: {name: mobilenet_v2}\noptim: {name: adamw, lr: 1e-3, weight_decay: "
    "0.01}\n",
    "model: {layers: [conv2d: {channels: 12, kernel: 3, pad: 1}, relu, max_pool: {kernel: 2}, "
    "flatten, dropout: {p: 0.3}, "
    "dense: {width: 7}]}\noptim: {name: lamb, lr: 0.01, weight_decay: 0.01}\n",
};
static const char *const common =
    "run: {seed: 5}\n"
    "data: {augment: [flip, crop, cutout], crop_pad: 2, cutout_size: 4}\n";

static uint64_t run(int size, const char *model, const char *train, const char *transport,
                    int steps, double *losses)
{
    World sub;
    uint64_t hash = 0;
    if (tiny_world(&sub, size)) {
        char *text = mem_format("%s%s%s", common, model, train);
        char *path = mem_format("data.train=%s", data_path),
             *over = mem_format("grid.transport=%s", transport);
        char *const overrides[] = {path, over};
        hash = tiny_train(&sub, text, 2, overrides, steps, losses);
        mem_free(&text);
        mem_free(&path);
        mem_free(&over);
    }
    tiny_world_fini(&sub);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return hash;
}

static void compare(const char *model, const char *train, const int *sizes, int steps)
{
    double want_loss[16], loss[16];
    uint64_t want = run(1, model, train, "auto", steps, want_loss);
    CU_ASSERT_NOT_EQUAL(want, 0);
    for (const char *const *transport = (const char *const[]){"shm", "mpi", NULL}; *transport;
         ++transport)
        for (const int *size = sizes; *size; ++size) {
            uint64_t got = run(*size, model, train, *transport, steps, loss);
            if (got != want && tiny_rank == 0)
                printf("  %d ranks over %s differ on: %s", *size, *transport, model);
            CU_ASSERT_EQUAL(got, want);
            if (tiny_rank == 0)
                for (int i = 0; i < steps; ++i) CU_ASSERT_EQUAL(loss[i], want_loss[i]);
        }
}

/* 52 samples, batch 16: the fourth step of an epoch has 4 samples, so whole micro-batches are empty. */
static void test_resnet(void)
{
    compare(models[0], "train: {batch: 16, micro_batch: 4, steps: 6, threads: 1}\n",
            (int[]){2, 4, 0}, 6);
}
static void test_mobilenet(void)
{
    compare(models[1], "train: {batch: 8, micro_batch: 2, steps: 8, threads: 1}\n",
            (int[]){2, 4, 0}, 8);
}
static void test_layers(void)
{
    compare(models[2], "train: {batch: 12, micro_batch: 2, steps: 10, threads: 1}\n", (int[]){3, 0},
            10);
}
static void test_odd_tail(void)
{
    compare(models[2], "train: {batch: 24, micro_batch: 3, steps: 7, threads: 1}\n",
            (int[]){2, 4, 0}, 7);
}

static void prepare(void)
{
    snprintf(data_path, sizeof data_path, "%s/data.h5", tiny_folder);
    if (tiny_rank == 0) tiny_data(data_path, 52, 3, 14, 14, 7);
}

TINY_MAIN("bits", prepare, {"resnet18, short last batch", test_resnet},
          {"mobilenet_v2, dropout", test_mobilenet}, {"layers list on three ranks", test_layers},
          {"a partial micro-batch", test_odd_tail})
