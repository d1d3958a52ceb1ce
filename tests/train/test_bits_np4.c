/* Tests replicas with unequal parts of the batch: three replicas, with full, short and empty
 * micro-batches in one step, give the same bits as one rank. All other tests of grids are in
 * test_grid_np4.c. */
#include "tiny_main.h"

static char data_path[64];

static const char *const model =
    "model: {layers: [conv2d: {channels: 12, kernel: 3, pad: 1}, relu, max_pool: {kernel: 2}, "
    "flatten, dropout: {p: 0.3}, "
    "dense: {width: 7}]}\noptim: {name: lamb, lr: 0.01, weight_decay: 0.01}\n";
static const char *const common =
    "run: {seed: 5}\n"
    "data: {augment: [flip, crop, cutout], crop_pad: 2, cutout_size: 4}\n";

static uint64_t run(int size, const char *train, const char *transport, int steps, double *losses)
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
    tiny_barrier();
    tiny_bcast(&hash, sizeof hash);
    return hash;
}

static void compare(const char *train, const int *sizes, int steps)
{
    double want_loss[16], loss[16];
    uint64_t want = run(1, train, "auto", steps, want_loss);
    CU_ASSERT_NOT_EQUAL(want, 0);
    for (const char *const *transport = (const char *const[]){"shm", "mpi", NULL}; *transport;
         ++transport)
        for (const int *size = sizes; *size; ++size) {
            uint64_t got = run(*size, train, *transport, steps, loss);
            if (got != want && tiny_rank == 0)
                printf("  %d ranks over %s differ on: %s", *size, *transport, train);
            CU_ASSERT_EQUAL(got, want);
            if (tiny_rank == 0)
                for (int i = 0; i < steps; ++i) CU_ASSERT_EQUAL(loss[i], want_loss[i]);
        }
}

static void test_layers(void)
{
    compare("train: {batch: 12, micro_batch: 2, steps: 10, threads: 1}\n", (int[]){3, 0}, 10);
}
static void test_odd_tail(void)
{
    compare("train: {batch: 24, micro_batch: 3, steps: 7, threads: 1}\n", (int[]){2, 4, 0}, 7);
}
/* Five micro-batches are divided among three and among four replicas, and four among three: the
 * last replicas have one less than the others, or none. */
static void test_padding(void)
{
    compare("train: {batch: 10, micro_batch: 2, steps: 7, threads: 1}\n", (int[]){3, 4, 0}, 7);
    compare("train: {batch: 16, micro_batch: 4, steps: 5, threads: 1}\n", (int[]){3, 0}, 5);
}

/* Six, seven and fifteen micro-batches: for some numbers of replicas, the number of micro-batches
 * of a replica is no power of two. */
static void test_subtrees(void)
{
    compare("train: {batch: 12, micro_batch: 2, steps: 5, threads: 1}\n", (int[]){2, 0}, 5);
    compare("train: {batch: 14, micro_batch: 2, steps: 5, threads: 1}\n", (int[]){3, 0}, 5);
    compare("train: {batch: 15, micro_batch: 1, steps: 5, threads: 1}\ngrid: {bucket_mb: 0.001}\n",
            (int[]){3, 0}, 5);
    compare("train: {batch: 13, micro_batch: 1, steps: 5, threads: 1}\ngrid: {zero: 1}\n",
            (int[]){2, 3, 0}, 5);
}

static void prepare(void)
{
    snprintf(data_path, sizeof data_path, "%s/data.h5", tiny_folder);
    if (tiny_rank == 0) tiny_data(data_path, 52, 3, 14, 14, 7);
}

TINY_MAIN("bits", prepare, {"three ranks", test_layers}, {"a partial micro-batch", test_odd_tail},
          {"micro-batches of padding", test_padding}, {"subtrees", test_subtrees})
