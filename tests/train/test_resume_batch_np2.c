/* Tests resuming with another train.batch, train.epochs or train.steps. Each sample is used once in
 * every epoch, the right number of steps is made, and the learning rate follows from the number of
 * samples done. Samples are one-hot, so the columns of the weights that a step changes tell which
 * samples it used. */
#include "tiny_main.h"

#include <math.h>

enum { SAMPLES = 40, CLASSES = 3, BATCH = 5, EPOCHS = 6 };
static char data_path[64], other_path[64];

/* Makes a configuration, owned by the caller. data: path of the set. length: "epochs: N" or "steps:
 * N". optim: further keys of optim. */
static Config *config_of(const char *data, int batch, const char *length, const char *optim)
{
    Config *config = NULL;
    int micro = batch % BATCH ? 1 : BATCH;
    char *text = mem_format("run: {seed: 3}\nmodel: {layers: [flatten, dense: {width: 3}]}\n"
                            "data: {train: %s}\n"
                            "train: {batch: %d, micro_batch: %d, %s, threads: 1}\n"
                            "optim: {name: sgd, lr: 0.4, momentum: 0, %s}\n",
                            data, batch, micro, length, optim);
    CHECK_OK(config_parse(&config, "batch.yaml", text, 0, NULL));
    mem_free(&text);
    return config;
}

typedef struct Job {
    World world;
    Config *config;
    Trainer *t;
} Job;

/* Makes a trainer on the first `ranks` ranks and loads the checkpoint `from` unless it is NULL.
 * Takes over config. Returns false on ranks that take no part and if no trainer was made; job_close
 * is needed in any case. */
static bool job_open(Job *job, int ranks, Config *config, const char *from)
{
    *job = (Job){.config = config};
    if (!tiny_world(&job->world, ranks)) return false;
    CHECK_OK(trainer_new(&job->t, config, &job->world));
    if (job->t && from) CHECK_OK(train_load(job->t, from, LOAD_RUN));
    return job->t != NULL;
}

static void job_close(Job *job)
{
    trainer_free(&job->t);
    config_free(&job->config);
    tiny_world_fini(&job->world);
    tiny_barrier();
}

static void train_to(Job *job, int64_t step, const char *path)
{
    StepResult result;
    while (job->t->step < step) CHECK_OK(next_step(job->t, &result));
    if (path) CHECK_OK(train_save(job->t, path));
}

/* Copies the weights, float[CLASSES][SAMPLES], to `plain`. */
static void weights(Trainer *t, float *plain)
{
    for (int i = 0; i < t->graph->param_count; ++i) {
        const Param *p = &t->graph->param[i];
        if (shape_count(p->shape) != CLASSES * SAMPLES) continue;
        float *stored = tiny_tensor(t, i, -1);
        op_unpack(t->graph->node[p->node].op, p->slot, stored, plain);
        mem_free(&stored);
    }
}

/* Makes one step, adds 1 to seen[i] for each sample i that it uses, and sets *lr to its rate. */
static void count_step(Job *job, int *seen, double *lr)
{
    float before[CLASSES * SAMPLES] = {0}, after[CLASSES * SAMPLES] = {0};
    StepResult result;
    weights(job->t, before);
    CHECK_OK(next_step(job->t, &result));
    weights(job->t, after);
    for (int i = 0; i < SAMPLES; ++i) seen[i] += before[i] != after[i];
    *lr = result.lr;
}

static int not_once(const int *seen, int times)
{
    int bad = 0;
    for (int i = 0; i < SAMPLES; ++i) bad += seen[i] != times;
    return bad;
}

static double cosine(double lr, double done)
{
    return lr * 0.5 * (1 + cos(acos(-1) * done));
}

/* Trains with batches of BATCH up to the middle of epoch 2, counting epochs from 1; resumes with
 * batches of `batch` until epoch 3 ends and for one more step; then resumes with batches of 4.
 * warmup: steps of BATCH samples. */
static void change_batch(int ranks, int batch, int warmup)
{
    char *path = mem_format("%s/batch.h5", tiny_folder);
    char *optim = mem_format("lr_schedule: cosine, warmup_steps: %d", warmup);
    int seen[SAMPLES] = {0}, last = (20 + batch - 1) / batch, all = (SAMPLES + batch - 1) / batch;
    double lr, from = warmup * BATCH, most = EPOCHS * SAMPLES;
    Job job;
    if (job_open(&job, ranks, config_of(data_path, BATCH, "epochs: 6", optim), NULL)) {
        train_to(&job, 8, NULL);
        for (int s = 0; s < 4; ++s) count_step(&job, seen, &lr);
        train_to(&job, 12, path);
    }
    job_close(&job);
    if (job_open(&job, ranks, config_of(data_path, batch, "epochs: 6", optim), path)) {
        CU_ASSERT_EQUAL(job.t->step, 12);
        CU_ASSERT_EQUAL(job.t->steps, 12 + last + 4 * all);
        for (int s = 0; s < last + all; ++s) {
            int within = s < last ? s * batch : (s - last) * batch;
            double done = s < last ? 60 + within : 80 + within;
            if (s == last) CU_ASSERT_EQUAL(not_once(seen, 1), 0);
            count_step(&job, seen, &lr);
            double want = done < from ? 0.4 * fmin(done / BATCH + 1, warmup) / warmup
                                      : cosine(0.4, (done - from) / (most - from));
            CU_ASSERT_DOUBLE_EQUAL(lr, want, 1e-12);
        }
        CU_ASSERT_EQUAL(not_once(seen, 2), 0);
        /* one more step, the first of epoch 4 */
        train_to(&job, job.t->step + 1, path);
    }
    job_close(&job);
    int rest = (SAMPLES - batch + 3) / 4;
    if (job_open(&job, ranks, config_of(data_path, 4, "epochs: 6", optim), path)) {
        CU_ASSERT_EQUAL(job.t->steps, job.t->step + rest + 2 * (SAMPLES / 4));
        count_step(&job, seen, &lr);
        double done = 3 * SAMPLES + batch;
        double want = done < from ? 0.4 * fmin(done / BATCH + 1, warmup) / warmup
                                  : cosine(0.4, (done - from) / (most - from));
        CU_ASSERT_DOUBLE_EQUAL(lr, want, 1e-12);
    }
    job_close(&job);
    mem_free(&optim);
    mem_free(&path);
}

static void test_batches(void)
{
    static const int batch[] = {10, 1, 7, 3, 40};
    for (int ranks = 1; ranks <= 2; ++ranks)
        for (int i = 0; i < 5; ++i) {
            change_batch(ranks, batch[i], 0);
            change_batch(ranks, batch[i], 30);
        }
}

static void delete_attributes(const char *path)
{
    static const char *const name[] = {"batch", "schedule_batch", "samples", "epoch_samples"};
    if (tiny_rank == 0) {
        hid_t file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
        for (int i = 0; i < 4; ++i) CU_ASSERT(H5Adelete(file, name[i]) >= 0);
        H5Fclose(file);
    }
    tiny_barrier();
}

/* Tests that one rank and two ranks give the same bits, also from the checkpoint of an older
 * version, which lacks the attributes that delete_attributes removes. */
static void test_grids_and_old_files(void)
{
    static const char optim[] = "lr_schedule: linear";
    char *path = mem_format("%s/old.h5", tiny_folder);
    uint64_t hash[4] = {0, 1, 2, 3};
    Job job;
    if (job_open(&job, 1, config_of(data_path, BATCH, "epochs: 6", optim), NULL))
        train_to(&job, 11, path);
    job_close(&job);
    for (int i = 0; i < 4; ++i) {
        if (i == 2) delete_attributes(path);
        if (job_open(&job, 1 + i % 2, config_of(data_path, 10, "epochs: 6", optim), path)) {
            /* 25 samples of epoch 2 are left */
            CU_ASSERT_EQUAL(job.t->steps, 11 + 3 + 4 * 4);
            train_to(&job, job.t->steps, NULL);
            hash[i] = tiny_hash(job.t);
        }
        job_close(&job);
        tiny_bcast(&hash[i], sizeof hash[i]);
        CU_ASSERT_EQUAL(hash[i], hash[0]);
    }
    mem_free(&path);
}

/* Tests a run that resumes with more epochs. With a constant rate it gives the same bits as a run
 * that had that length from the start; a cosine is stretched to the new length. */
static void test_longer(void)
{
    char *path = mem_format("%s/longer.h5", tiny_folder);
    uint64_t hash[2] = {0, 1};
    int seen[SAMPLES] = {0};
    double lr;
    Job job;
    for (int i = 0; i < 2; ++i) {
        const char *length = i ? "epochs: 5" : "epochs: 3";
        if (job_open(&job, 1, config_of(data_path, BATCH, length, "lr_schedule: constant"), NULL))
            train_to(&job, i ? 40 : 24, path);
        if (i == 1 && job.t) hash[0] = tiny_hash(job.t);
        job_close(&job);
        if (i == 1) break;
        if (job_open(&job, 1, config_of(data_path, BATCH, "epochs: 5", "lr_schedule: constant"),
                     path)) {
            train_to(&job, 40, NULL);
            hash[1] = tiny_hash(job.t);
        }
        job_close(&job);
        if (job_open(&job, 1, config_of(data_path, BATCH, "epochs: 5", "lr_schedule: cosine"),
                     path)) {
            count_step(&job, seen, &lr);
            CU_ASSERT_DOUBLE_EQUAL(lr, cosine(0.4, 24.0 / 40), 1e-12);
        }
        job_close(&job);
    }
    if (tiny_rank == 0) CU_ASSERT_EQUAL(hash[0], hash[1]);
    mem_free(&path);
}

/* Tests that train.steps, and with it the curve of the rate, counts steps whatever their batch;
 * milestones are epochs. */
static void test_steps(void)
{
    char *path = mem_format("%s/steps.h5", tiny_folder);
    static const char fall[] = "lr_schedule: multistep, milestones: [2], gamma: 0.5";
    int seen[SAMPLES] = {0};
    double lr;
    Job job;
    if (job_open(&job, 1, config_of(data_path, BATCH, "steps: 20", "lr_schedule: cosine"), NULL))
        train_to(&job, 12, path);
    job_close(&job);
    if (job_open(&job, 1, config_of(data_path, 10, "steps: 24", "lr_schedule: cosine"), path)) {
        CU_ASSERT_EQUAL(job.t->steps, 24);
        count_step(&job, seen, &lr);
        CU_ASSERT_DOUBLE_EQUAL(lr, cosine(0.4, 12.0 / 24), 1e-12);
        count_step(&job, seen, &lr);
        CU_ASSERT_DOUBLE_EQUAL(lr, cosine(0.4, 13.0 / 24), 1e-12);
    }
    job_close(&job);
    if (job_open(&job, 1, config_of(data_path, 10, "steps: 24", fall), path))
        for (int s = 12; s < 17; ++s) {
            count_step(&job, seen, &lr);
            CU_ASSERT_DOUBLE_EQUAL(lr, s < 14 ? 0.4 : 0.2, 1e-12);
        }
    job_close(&job);
    mem_free(&path);
}

/* Tests that a run that resumes with other data starts its current epoch again, and makes the same
 * number of epochs in all. */
static void test_other_data(void)
{
    char *path = mem_format("%s/other.h5", tiny_folder);
    Job job;
    if (job_open(&job, 1, config_of(data_path, BATCH, "epochs: 6", ""), NULL))
        train_to(&job, 12, path);
    job_close(&job);
    if (job_open(&job, 1, config_of(other_path, BATCH, "epochs: 6", ""), path)) {
        /* 11 samples: three steps in each of five epochs */
        CU_ASSERT_EQUAL(job.t->steps, 12 + 5 * 3);
        train_to(&job, job.t->steps, NULL);
    }
    job_close(&job);
    mem_free(&path);
}

static void one_hot(const char *path, int n)
{
    float *x = mem_new((size_t)(n * SAMPLES) * sizeof *x);
    int32_t *y = mem_new((size_t)n * sizeof *y);
    for (int i = 0; i < n; ++i) {
        x[i * SAMPLES + i] = 1;
        y[i] = i % CLASSES;
    }
    tiny_images(path, H5T_IEEE_F32LE, H5T_NATIVE_FLOAT, x, y, n, 1, 5, SAMPLES / 5);
    mem_free(&x);
    mem_free(&y);
}

static void prepare(void)
{
    snprintf(data_path, sizeof data_path, "%s/data.h5", tiny_folder);
    snprintf(other_path, sizeof other_path, "%s/few.h5", tiny_folder);
    if (tiny_rank == 0) one_hot(data_path, SAMPLES), one_hot(other_path, 11);
}

TINY_MAIN("resume_batch", prepare, {"another batch", test_batches},
          {"grids, old files", test_grids_and_old_files}, {"longer", test_longer},
          {"steps", test_steps}, {"other data", test_other_data})
