/* Tests that a run that stops in the middle of an epoch and resumes gives the bits of a run that
 * does not stop, on the same and on another number of ranks, with several optimizers. */
#include "tiny_main.h"

#include <hdf5.h>

static char data_path[64];

/* Returns the text of a configuration, owned by the caller. optim: keys of optim. */
static char *text_of(const char *optim)
{
    return mem_format(
        "run: {seed: 3}\nmodel: {layers: [conv2d: {channels: 8, kernel: 3}, batch_norm, relu, "
        "flatten, "
        "dropout: {p: 0.2}, dense: {width: 5}]}\ndata: {train: %s, augment: [flip, crop]}\n"
        "train: {batch: 8, micro_batch: 2, steps: 11, threads: 1}\noptim: {%s}\n",
        data_path, optim);
}

/* Trains on `size` ranks: loads the checkpoint `from` unless it is NULL, trains up to step `to`,
 * and saves to `path` unless it is NULL. Returns the hash of the trainer, the same on all ranks.
 * Collective on MPI_COMM_WORLD. */
static uint64_t part(int size, const char *optim, const char *from, int to, const char *path)
{
    World sub;
    uint64_t hash = 0;
    if (tiny_world(&sub, size)) {
        char *text = text_of(optim);
        Config *config = NULL;
        Trainer *t = NULL;
        StepResult result;
        CHECK_OK(config_parse(&config, "resume.yaml", text, 0, NULL));
        CHECK_OK(trainer_new(&t, config, &sub));
        if (t && from) CHECK_OK(train_load(t, from, LOAD_RUN));
        while (t && t->step < to) CHECK_OK(next_step(t, &result));
        if (t && path) CHECK_OK(train_save(t, path));
        if (t) hash = tiny_hash(t);
        trainer_free(&t);
        config_free(&config);
        mem_free(&text);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
    tiny_bcast(&hash, sizeof hash);
    return hash;
}

static void resume(const char *optim)
{
    char *path = mem_format("%s/step.h5", tiny_folder);
    uint64_t want = part(2, optim, NULL, 11, NULL);
    for (int before = 1; before <= 2; ++before)
        for (int after = 1; after <= 2; ++after) {
            part(before, optim, NULL, 5,
                 path); /* 27 samples, batch 8: step 5 lies in the second epoch */
            uint64_t got = part(after, optim, path, 11, NULL);
            if (got != want && tiny_rank == 0)
                printf("  %s: %d then %d ranks differ\n", optim, before, after);
            CU_ASSERT_EQUAL(got, want);
        }
    if (tiny_rank == 0) unlink(path);
    mem_free(&path);
}

static void test_sgd(void)
{
    resume("name: sgd, lr: 0.1, momentum: 0.9, lr_schedule: cosine, warmup_steps: 3");
}
/* Tests runs without momentum. They have no optimizer state, and their checkpoints hold zeros, with
 * and without sharding. Such a checkpoint can start a run with momentum, and a checkpoint with
 * momentum can start a run without. */
static void test_no_momentum(void)
{
    static const char none[] = "name: sgd, lr: 0.1, momentum: 0",
                      some[] = "name: sgd, lr: 0.1, momentum: 0.9",
                      divided[] = "name: sgd, lr: 0.1, momentum: 0}\ngrid: {zero: 2";
    char *path = mem_format("%s/momentum.h5", tiny_folder);
    resume(none);
    resume(divided);
    uint64_t want = part(1, some, NULL, 5, path);
    part(1, none, path, 5, path);
    CU_ASSERT_NOT_EQUAL(part(1, some, path, 5, path), want);
    uint64_t zeros = part(1, some, path, 6, NULL);
    part(2, divided, path, 5, path);
    CU_ASSERT_EQUAL(part(1, some, path, 6, NULL), zeros);
    if (tiny_rank == 0) unlink(path);
    mem_free(&path);
}
static void test_adam(void)
{
    resume("name: adam, lr: 0.01, lr_schedule: linear, lr_end: 0.001");
}
static void test_lars(void)
{
    resume("name: lars, lr: 0.1, momentum: 0.9, weight_decay: 1e-3");
}
static void test_lamb(void)
{
    resume("name: lamb, lr: 0.01, weight_decay: 1e-2, clip: 0.5");
}

/* Changes an attribute of a file's root group and returns its old value. */
static int64_t exchange(const char *path, const char *name, int64_t value)
{
    int64_t was = 0;
    hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t attr = H5Aopen(file, name, H5P_DEFAULT);
    CU_ASSERT(H5Aread(attr, H5T_NATIVE_INT64, &was) >= 0);
    CU_ASSERT(H5Awrite(attr, H5T_NATIVE_INT64, &value) >= 0);
    H5Aclose(attr);
    H5Fclose(file);
    return was;
}

/* Tests that an impossible position is refused. The true position is epoch 1, counted from 0, with
 * one step and 8 of 27 samples done in it. */
static void test_position(void)
{
    static const struct {
        const char *name;
        int64_t value;
    } other[] = {{"epoch", -3},         {"epoch", 6},          {"data_step", 1000000000000000},
                 {"data_step", 0},      {"data_step", -1},     {"epoch_samples", 27},
                 {"epoch_samples", 0},  {"epoch_samples", -1}, {"batch", 0},
                 {"schedule_batch", 0}, {"samples", 0}};
    char *path = mem_format("%s/position.h5", tiny_folder);
    part(1, "name: sgd, lr: 0.1", NULL, 5, path);
    for (size_t i = 0; tiny_rank == 0 && i < sizeof other / sizeof *other; ++i) {
        CheckpointMeta meta = {0};
        int64_t good = exchange(path, other[i].name, other[i].value);
        CHECK_FAILS(checkpoint_read_meta(path, &meta), ERR_DATA, "is missing or damaged");
        exchange(path, other[i].name, good);
        CHECK_OK(checkpoint_read_meta(path, &meta));
        CU_ASSERT_EQUAL(meta.epoch_samples, 8);
        CU_ASSERT_EQUAL(meta.samples, 27);
        CU_ASSERT_EQUAL(meta.batch, 8);
        checkpoint_meta_fini(&meta);
    }
    tiny_barrier();
    if (tiny_rank == 0) unlink(path);
    mem_free(&path);
}

/* Tests that a trainer can load its own checkpoint again in the middle of training. */
static void test_back(void)
{
    World sub;
    if (tiny_world(&sub, 1)) {
        char *path = mem_format("%s/back.h5", tiny_folder), *text = text_of("name: sgd, lr: 0.1");
        Config *config = NULL;
        Trainer *t = NULL;
        StepResult result;
        uint64_t hash[2] = {0, 1};
        CHECK_OK(config_parse(&config, "back.yaml", text, 0, NULL));
        CHECK_OK(trainer_new(&t, config, &sub));
        while (t && t->step < 3) CHECK_OK(next_step(t, &result));
        if (t) CHECK_OK(train_save(t, path));
        for (int time = 0; t && time < 2; ++time) {
            while (t->step < 8) CHECK_OK(next_step(t, &result));
            hash[time] = tiny_hash(t);
            CHECK_OK(train_load(t, path, LOAD_RUN));
        }
        CU_ASSERT_EQUAL(hash[0], hash[1]);
        trainer_free(&t);
        config_free(&config);
        mem_free(&path);
        mem_free(&text);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
}

static void prepare(void)
{
    snprintf(data_path, sizeof data_path, "%s/data.h5", tiny_folder);
    if (tiny_rank == 0) tiny_data(data_path, 27, 1, 10, 10, 5);
}

TINY_MAIN("resume", prepare, {"sgd", test_sgd}, {"no momentum", test_no_momentum},
          {"adam", test_adam}, {"lars", test_lars}, {"lamb", test_lamb},
          {"position", test_position}, {"back in the middle", test_back})
