/* Tests the loader: every sample once per epoch for any number of replicas and awkward sizes; a
 * loader that begins in the middle of an epoch gives the same batches as one that began the epoch;
 * padding; evaluation in order; several micro-batches in use at once; parts left out; errors are
 * returned; it can be stopped at any time. */
#include "fixture.h"

#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

static Loader *loader_of(const DataSet *set, const Config *c, LoaderPlan plan)
{
    Loader *l = NULL;
    CHECK_OK(loader_new(&l, set, c, plan));
    return l;
}

/* Takes micro-batches and releases each at once. */
static void pass_over(Loader *l, int count)
{
    const MicroBatch *b;
    for (int i = 0; i < count; ++i) {
        CHECK_OK(loader_next(l, &b, NULL));
        loader_release(l);
    }
}

/* Reads two epochs of one grid and counts how often each sample occurs. Replicas share
 * `micro_batches` micro-batches, in blocks or interleaved; the last ones may be padding. */
static void once_each(const DataSet *set, int replicas, int micro_batches, int micro, bool turns)
{
    int per_replica = (micro_batches + replicas - 1) / replicas;
    int *number = mem_new((size_t)per_replica * sizeof *number);
    Config c = config_plain();
    int64_t n = set->samples, batch = (int64_t)micro_batches * micro;
    int64_t steps = data_steps_per_epoch(n, batch);
    int *seen = mem_new((size_t)n * 2 * sizeof *seen), bad = 0;
    for (int r = 0; r < replicas; ++r) {
        for (int i = 0; i < per_replica; ++i)
            number[i] = turns ? i * replicas + r : r * per_replica + i;
        LoaderPlan plan = {.batch = batch,
                           .micro_batch = micro,
                           .micro_first = turns ? 0 : r * per_replica,
                           .micro_count = per_replica,
                           .micro = turns ? number : NULL,
                           .training = true,
                           .slots = 3,
                           .workers = 1 + (micro_batches + micro) % 3};
        Loader *l = loader_of(set, &c, plan);
        for (int64_t i = 0; l && i < 2 * steps * per_replica; ++i) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            int64_t epoch = i / (steps * per_replica), step = i / per_replica % steps;
            bad += b->epoch != epoch || b->step != step || b->micro != number[i % per_replica];
            for (int row = 0; row < b->rows; ++row) {
                int64_t s = b->sample[row],
                        want = sampler_at(n, 7, epoch, step * batch + b->micro * micro + row);
                bad += s != want || b->labels[row] != s % 3;
                bad += fabsf(b->x[row * 4] - (float)(uint8_t)s / 255) > 1e-6f;
                ++seen[epoch * n + s];
            }
            for (int64_t z = b->rows; z < micro; ++z)
                for (int k = 0; k < 4; ++k) bad += b->x[z * 4 + k] != 0.0f || b->labels[z] != 0;
            loader_release(l);
        }
        loader_free(&l);
    }
    for (int64_t i = 0; i < 2 * n; ++i) bad += seen[i] != 1;
    if (bad)
        printf("  n %lld, %d replicas, %d micro-batches of %d\n", (long long)n, replicas,
               micro_batches, micro);
    CU_ASSERT_EQUAL(bad, 0);
    mem_free(&number);
    mem_free(&seen);
}

static void every_sample_once(void)
{
    static const int n[] = {1, 7, 101, 256};
    for (size_t i = 0; i < sizeof n / sizeof n[0]; ++i) {
        DataSet set;
        CHECK_OK(data_set_open(&set, NULL, images_small("once.h5", n[i], 3, i % 2)));
        set.classes = 3;
        for (int replicas = 1; replicas <= 5; ++replicas)
            for (int micro_batches = 1; micro_batches <= 3 * replicas;
                 micro_batches += micro_batches < replicas ? 1 : 2)
                for (int micro = 1; micro <= 5; micro += 2)
                    once_each(&set, replicas, micro_batches, micro,
                              (replicas + micro_batches + micro) % 4 < 2);
    }
}

/* Hashes `count` micro-batches of the stream from (epoch, step) on. */
static void stream(const DataSet *set, const Config *c, int64_t epoch, int64_t step, int count,
                   int slots, uint64_t *hash)
{
    Loader *l = loader_of(set, c,
                          (LoaderPlan){.batch = 24,
                                       .micro_batch = 4,
                                       .micro_first = 2,
                                       .micro_count = 3,
                                       .epoch = epoch,
                                       .step = step,
                                       .training = true,
                                       .slots = slots});
    for (int i = 0; l && i < count; ++i) {
        const MicroBatch *b;
        double wait = 0;
        CHECK_OK(loader_next(l, &b, &wait));
        hash[i] = hash_bytes(b->x, 16 * sizeof(float)) ^ hash_bytes(b->labels, 16) ^
                  hash_bytes(b->sample, 32) ^ ((uint64_t)b->rows << 60);
        CU_ASSERT_TRUE(wait >= 0);
        loader_release(l);
    }
    loader_free(&l);
}

static void resume(void)
{
    /* 101 samples: 5 steps of 24 */
    enum { STEPS = 5, PER = 3, ALL = STEPS * PER * 3 };
    DataSet set;
    Config c = config_plain();
    c.data.augment = AUGMENT_FLIP | AUGMENT_CROP | AUGMENT_CUTOUT;
    c.data.crop_pad = c.data.cutout_size = 1;
    uint64_t whole[ALL], part[ALL];
    CHECK_OK(data_set_open(&set, &c, images_small("resume.h5", 101, 3, false)));
    stream(&set, &c, 0, 0, ALL, 4, whole);
    for (int start = 1; start <= STEPS * 2; ++start) {
        int left = ALL - start * PER;
        stream(&set, &c, start / STEPS, start % STEPS, left, 2 + start, part);
        CU_ASSERT_EQUAL(memcmp(part, whole + start * PER, (size_t)left * sizeof *part), 0);
    }
    /* The end of an epoch is the start of the next. */
    stream(&set, &c, 0, STEPS, PER, 2, part);
    CU_ASSERT_EQUAL(memcmp(part, whole + STEPS * PER, PER * sizeof *part), 0);
}

static void evaluation(void)
{
    DataSet set;
    Config c = config_plain();
    /* An evaluation does not augment. */
    c.data.augment = AUGMENT_FLIP;
    CHECK_OK(data_set_open(&set, &c, images_small("eval.h5", 23, 3, false)));
    int64_t total = 0;
    for (int r = 0; r < 2; ++r) {
        Loader *l = loader_of(
            &set, &c,
            (LoaderPlan){
                .batch = 16, .micro_batch = 4, .micro_first = r * 2, .micro_count = 2, .slots = 2});
        const MicroBatch *b;
        int batches = 0;
        for (;; ++batches) {
            CHECK_OK(loader_next(l, &b, NULL));
            if (!b) break;
            int64_t first = b->step * 16 + b->micro * 4;
            for (int i = 0; i < b->rows; ++i) {
                CU_ASSERT_EQUAL(b->sample[i], first + i);
                CU_ASSERT_DOUBLE_EQUAL(b->x[i * 4 + 1], (double)(first + i + 1) / 255, 1e-6);
            }
            total += b->rows;
            loader_release(l);
        }
        CU_ASSERT_EQUAL(batches, 4);
        /* The loader stays at the end. */
        CHECK_OK(loader_next(l, &b, NULL));
        CU_ASSERT_PTR_NULL(b);
        loader_free(&l);
    }
    CU_ASSERT_EQUAL(total, 23);
}

/* All slots may be in use at once; micro-batches stay unchanged until they are released, oldest
 * first. */
static void several_out(void)
{
    /* 101 samples, 4 at a time */
    enum { SLOTS = 5, ALL = 26 };
    DataSet set;
    Config c = config_plain();
    const MicroBatch *out[ALL] = {0}, *more;
    uint64_t hash[ALL] = {0};
    int taken = 0, bad = 0;
    CHECK_OK(data_set_open(&set, &c, images_small("out.h5", 101, 3, false)));
    Loader *l = loader_of(
        &set, &c, (LoaderPlan){.batch = 4, .micro_batch = 4, .micro_count = 1, .slots = SLOTS});
    for (int back = 0; l && back < ALL; ++back) {
        for (; taken < ALL && taken < back + SLOTS; ++taken) {
            CHECK_OK(loader_next(l, &out[taken], NULL));
            bad += out[taken]->step != taken;
            hash[taken] = hash_bytes(out[taken]->x, 16 * sizeof(float));
        }
        if (back == 3) CHECK_FAILS(loader_next(l, &more, NULL), ERR_BUG, "all 5 micro-batches");
        bad += hash[back] != hash_bytes(out[back]->x, 16 * sizeof(float));
        bad += out[back]->step != back;
        loader_release(l);
    }
    CU_ASSERT_EQUAL(bad, 0);
    CHECK_OK(loader_next(l, &more, NULL));
    CU_ASSERT_PTR_NULL(more);
    loader_free(&l);
}

/* Parts that a rank does not need are not read (their data here lie beyond the file's end) and are
 * NULL. The other parts are unchanged. */
static void parts(void)
{
    for (int part = 0; part < 8; ++part) {
        bool training = part & 4, skips_inputs = part & 1, skips_labels = part & 2;
        DataSet set;
        Config c = config_plain();
        CHECK_OK(data_set_open(&set, &c, images_small("parts.h5", 23, 3, false)));
        if (skips_inputs) set.x.offset += 1 << 20;
        if (skips_labels) set.y.offset += 1 << 20;
        Loader *l = loader_of(&set, &c,
                              (LoaderPlan){.batch = 8,
                                           .micro_batch = 4,
                                           .micro_first = 1,
                                           .micro_count = 1,
                                           .training = training,
                                           .skips_inputs = skips_inputs,
                                           .skips_labels = skips_labels,
                                           .slots = 2});
        for (int64_t step = 0; l && step < 3; ++step) {
            const MicroBatch *b;
            CHECK_OK(loader_next(l, &b, NULL));
            CU_ASSERT(b->step == step && b->micro == 1 && b->rows == (step < 2 ? 4 : 3));
            CU_ASSERT_EQUAL(b->x == NULL, skips_inputs);
            CU_ASSERT_EQUAL(b->labels == NULL, skips_labels);
            for (int r = 0; r < b->rows; ++r) {
                int64_t at = step * 8 + 4 + r, want = training ? sampler_at(23, 7, 0, at) : at;
                CU_ASSERT_EQUAL(b->sample[r], want);
                if (b->x) CU_ASSERT_DOUBLE_EQUAL(b->x[r * 4], (double)want / 255, 1e-6);
                if (b->labels) CU_ASSERT_EQUAL(b->labels[r], want % 3);
            }
            loader_release(l);
        }
        loader_free(&l);
    }
}

static void targets(void)
{
    const char *path = in_scratch("targets.h5");
    float x[10], t[10];
    for (int i = 0; i < 10; ++i) x[i] = (float)i, t[i] = (float)-i;
    hid_t file = h5_new(path);
    h5_put(file, (H5Array){"x", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {5, 2}, {0}, 0, x});
    h5_put(file, (H5Array){"y", H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, 2, {5, 2}, {0}, 0, t});
    H5Fclose(file);
    DataSet set;
    Config c = config_plain();
    const MicroBatch *b;
    Loader *l = NULL;
    CHECK_OK(data_set_open(&set, &c, path));
    LoaderPlan plan = {
        .batch = 4, .micro_batch = 4, .micro_count = 1, .training = true, .slots = 2};
    CHECK_FAILS(loader_new(&l, &set, &c, plan), ERR_DATA, "train.loss");
    CU_ASSERT_PTR_NULL(l);
    c.train.loss = loss_number("mse");
    l = loader_of(&set, &c, plan);
    for (int i = 0; i < 4; ++i) {
        CHECK_OK(loader_next(l, &b, NULL));
        CU_ASSERT_PTR_NULL(b->labels);
        for (int r = 0; r < 4; ++r)
            for (int k = 0; k < 2; ++k)
                CU_ASSERT_EQUAL(b->targets[r * 2 + k],
                                r < b->rows ? (float)-(b->sample[r] * 2 + k) : 0.0f);
        loader_release(l);
    }
    loader_free(&l);
    c.data.augment = AUGMENT_FLIP;
    CHECK_FAILS(loader_new(&l, &set, &c, plan), ERR_CONFIG, "data.augment");
}

/* data_sample_at gives the samples of training, also if chunks are shuffled. */
static void sample_at_a_position(void)
{
    enum { N = 40, BATCH = 8 };
    DataSet set;
    Config c = config_plain();
    const MicroBatch *b;
    int wrong = 0, others = 0;
    c.data.shuffle = SHUFFLE_CHUNKS;
    CHECK_OK(data_set_open(&set, &c, images_small("chunks.h5", N, 20, true)));
    Loader *l = loader_of(
        &set, &c,
        (LoaderPlan){
            .batch = BATCH, .micro_batch = BATCH, .micro_count = 1, .training = true, .slots = 2});
    for (int64_t at = 0; at < 2 * N; at += BATCH) {
        CHECK_OK(loader_next(l, &b, NULL));
        for (int64_t r = 0; r < BATCH; ++r) {
            int64_t position = (at + r) % N, epoch = at / N;
            wrong += b->sample[r] != data_sample_at(&set, &c, epoch, position);
            others += b->sample[r] != sampler_at(N, (uint64_t)c.run.seed, epoch, position);
        }
        loader_release(l);
    }
    CU_ASSERT_EQUAL(wrong, 0);
    CU_ASSERT_TRUE(others > 0);
    loader_free(&l);
}

/* With a bad label in the middle, the good micro-batches before it are returned first, then the
 * error, again and again. */
static void errors_come_out(void)
{
    DataSet set;
    Config c = config_plain();
    const MicroBatch *b;
    CHECK_OK(data_set_open(&set, &c, images_small("bad.h5", 40, 20, false)));
    set.classes = 13;
    Loader *l = loader_of(&set, &c,
                          (LoaderPlan){.batch = 4, .micro_batch = 4, .micro_count = 1, .slots = 2});
    pass_over(l, 3);
    CHECK_FAILS(loader_next(l, &b, NULL), ERR_DATA, "bad.h5: sample 13");
    CU_ASSERT_PTR_NULL(b);
    CHECK_FAILS(loader_next(l, &b, NULL), ERR_DATA, "bad.h5: sample 13");
    loader_free(&l);
    CU_ASSERT_PTR_NULL(l);
    loader_free(&l);
    LoaderPlan wrong = {.batch = 5, .micro_batch = 4, .micro_count = 1, .slots = 2};
    CHECK_FAILS(loader_new(&l, &set, &c, wrong), ERR_BUG, "impossible plan");
}

/* A NaN, or a value beyond float32, in samples or targets of any storage type ends the run when it
 * would be used. */
static void not_finite(void)
{
    double x[24], large[24], fine[24] = {0}, y[12];
    float single[24];
    const MicroBatch *b;
    for (int i = 0; i < 24; ++i) single[i] = (float)(x[i] = large[i] = i % 7), y[i / 2] = i;
    x[13] = single[13] = NAN, large[13] = 1e39, y[9] = INFINITY;
    const struct {
        const char *name;
        hid_t type;
        const void *x;
        const char *says;
    } file[] = {{"nan64.h5", H5T_NATIVE_DOUBLE, x, "nan64.h5: sample 6 of /x"},
                {"nan32.h5", H5T_NATIVE_FLOAT, single, "nan32.h5: sample 6 of /x"},
                {"large.h5", H5T_NATIVE_DOUBLE, large, "or beyond what float32 holds"},
                {"inf.h5", H5T_NATIVE_DOUBLE, fine, "inf.h5: sample 9 of /y"}};
    for (int i = 0; i < 4; ++i) {
        DataSet set;
        Config c = config_plain();
        c.train.loss = loss_number("mse");
        const char *path = in_scratch(file[i].name);
        hid_t h5 = h5_new(path);
        h5_put(h5, (H5Array){"x", file[i].type, file[i].type, 2, {12, 2}, {0}, 0, file[i].x});
        h5_put(h5, (H5Array){"y", H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE, 1, {12}, {0}, 0, y});
        H5Fclose(h5);
        CHECK_OK(data_set_open(&set, &c, path));
        Loader *l = loader_of(
            &set, &c, (LoaderPlan){.batch = 3, .micro_batch = 3, .micro_count = 1, .slots = 2});
        pass_over(l, i < 3 ? 2 : 3);
        CHECK_FAILS(loader_next(l, &b, NULL), ERR_DATA, file[i].says);
        loader_free(&l);
    }
}

/* The file is truncated while the thread reads ahead. */
static void file_shrinks(void)
{
    DataSet set;
    Config c = config_plain();
    const MicroBatch *b;
    Status st = OK;
    const char *path = images_small("gone.h5", 60000, 3, false);
    CHECK_OK(data_set_open(&set, &c, path));
    Loader *l = loader_of(
        &set, &c,
        (LoaderPlan){
            .batch = 64, .micro_batch = 64, .micro_count = 1, .training = true, .slots = 2});
    pass_over(l, 1);
    CU_ASSERT_EQUAL(truncate(path, 4096), 0);
    for (int i = 0; i < 100 && st == OK; ++i) {
        st = loader_next(l, &b, NULL);
        if (st == OK) loader_release(l);
    }
    CU_ASSERT_EQUAL(st, ERR_DATA);
    CU_ASSERT_PTR_NOT_NULL(strstr(fail_message(), "gone.h5"));
    loader_free(&l);
}

static volatile sig_atomic_t in_main;
static pthread_t main_thread;
static void on_signal(int s)
{
    (void)s;
    in_main += pthread_equal(pthread_self(), main_thread) ? 1 : 100;
}

static void stops_any_time(void)
{
    DataSet set;
    Config c = config_plain();
    main_thread = pthread_self();
    signal(SIGUSR1, on_signal);
    CHECK_OK(data_set_open(&set, &c, images_small("stop.h5", 500, 3, true)));
    for (int i = 0; i < 60; ++i) {
        Loader *l = loader_of(&set, &c,
                              (LoaderPlan){.batch = 32,
                                           .micro_batch = 8,
                                           .micro_count = 4,
                                           .training = true,
                                           .slots = 2 + i % 5});
        kill(getpid(), SIGUSR1);
        pass_over(l, i % 7);
        if (i % 3 == 0) usleep(300);
        loader_free(&l);
    }
    CU_ASSERT_EQUAL(in_main, 60);
}

TEST_MAIN("loader", {"sample at a position", sample_at_a_position},
          {"every sample once an epoch", every_sample_once}, {"begun in the middle", resume},
          {"evaluation", evaluation}, {"several are out", several_out},
          {"without x, without y", parts}, {"targets", targets},
          {"errors come out", errors_come_out}, {"not finite", not_finite},
          {"the file shrinks", file_shrinks}, {"stops at any time", stops_any_time})
