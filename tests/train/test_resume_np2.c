/* Stopping and going on equals not stopping, to the bit: from the middle of an epoch, on the same and on another number of
 * ranks, for every optimizer. */
#include "harness.h"
#include "tiny.h"

static char folder[] = "/tmp/weft-resume-XXXXXX";
static char data_path[64];
static int world_rank;

/* Loads `from` if given, trains to step `to`, saves to `path` if given. */
static uint64_t part(int size, const char *optim, const char *from, int to, const char *path)
{
    World sub;
    uint64_t hash = 0;
    if (tiny_world(&sub, size)) {
        char *text = mem_format(
            "run: {seed: 3}\nmodel: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, "
            "flatten, "
            "dropout: {p: 0.2}, dense: {width: 5}]}\ndata: {train: %s, augment: [flip, crop]}\n"
            "train: {batch: 8, micro_batch: 2, steps: 11, threads: 1}\noptim: {%s}\n",
            data_path, optim);
        Config *config = NULL;
        Trainer *t = NULL;
        StepResult result;
        CHECK_OK(config_parse(&config, "resume.yaml", text, 0, NULL));
        CHECK_OK(trainer_new(&t, config, &sub));
        if (t && from) CHECK_OK(train_load(t, from, false));
        while (t && t->step < to) CHECK_OK(train_step(t, &result));
        if (t && path) CHECK_OK(train_save(t, path));
        if (t) hash = tiny_hash(t);
        trainer_free(&t);
        config_free(&config);
        mem_free(&text);
    }
    tiny_world_fini(&sub);
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_Bcast(&hash, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return hash;
}

static void resume(const char *optim)
{
    char *path = mem_format("%s/step.h5", folder);
    uint64_t want = part(2, optim, NULL, 11, NULL);
    for (int before = 1; before <= 2; ++before)
        for (int after = 1; after <= 2; ++after) {
            part(before, optim, NULL, 5,
                 path); /* 27 samples, batch 8: step 5 lies in the second epoch */
            uint64_t got = part(after, optim, path, 11, NULL);
            if (got != want && world_rank == 0)
                printf("  %s: %d then %d ranks differ\n", optim, before, after);
            CU_ASSERT_EQUAL(got, want);
        }
    if (world_rank == 0) unlink(path);
    mem_free(&path);
}

static void test_sgd(void)
{
    resume("name: sgd, lr: 0.1, momentum: 0.9, schedule: cosine, warmup_steps: 3");
}
static void test_adam(void)
{
    resume("name: adam, lr: 0.01, schedule: linear, lr_end: 0.001");
}
static void test_lars(void)
{
    resume("name: lars, lr: 0.1, momentum: 0.9, weight_decay: 1e-3");
}
static void test_lamb(void)
{
    resume("name: lamb, lr: 0.01, weight_decay: 1e-2, clip: 0.5");
}

static int sum_ranks(int value)
{
    int sum;
    MPI_Allreduce(&value, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    return sum;
}

int main(int argc, char **argv)
{
    World world;
    if (world_init(&world, &argc, &argv) != OK) return 2;
    world_rank = world.rank;
    log_init(world.rank == 0);
    if (world.rank == 0 && !mkdtemp(folder)) return 2;
    world_bcast(&world, folder, sizeof folder, 0);
    snprintf(data_path, sizeof data_path, "%s/data.h5", folder);
    if (world.rank == 0) tiny_data(data_path, 27, 1, 10, 10, 5);
    world_barrier(&world);
    const HarnessTest tests[] = {
        {"sgd", test_sgd}, {"adam", test_adam}, {"lars", test_lars}, {"lamb", test_lamb}};
    int rc = harness_run("resume", tests, 4, world.rank, sum_ranks);
    world_barrier(&world);
    if (world.rank == 0) {
        unlink(data_path);
        rmdir(folder);
    }
    world_fini(&world);
    return rc;
}
