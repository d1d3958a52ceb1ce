/* Tests complete runs on one and two ranks: numbers of samples that batches do not divide,
 * resuming, which checkpoints are kept, and the ways in which a run may end. */
#include "tiny_main.h"

#include <fcntl.h>
#include <hdf5.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/wait.h>

static char data_path[64], few_path[64], wide_path[64];

enum { SAMPLES = 27, FEW = 5, CLASSES = 5 };

/* Makes a configuration, owned by the caller. more: overrides "a=b c=d"; "a=b;c=d" if values
 * contain spaces. */
static Config *config_of(const char *name, const char *more)
{
    Config *config = NULL;
    char *text = mem_format("run: {seed: 3, dir: %s, name: %s}\n"
                            "model: {layers: [conv2d: {channels: 4, kernel: 3}, batch_norm, relu, "
                            "flatten, dropout: {p: 0.2}, dense: {width: 5}]}\n"
                            "data: {train: %s, test: %s, augment: [flip]}\n"
                            "train: {batch: 8, micro_batch: 2, threads: 1, log_every: 1}\n"
                            "optim: {lr: 0.05}\n",
                            tiny_folder, name, data_path, data_path);
    char *words[16], *copy = mem_text(more), *rest = copy;
    const char *between = strchr(more, ';') ? ";" : " ";
    int count = 0;
    for (char *word; (word = strsep(&rest, between));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "run.yaml", text, count, words));
    mem_free(&text);
    mem_free(&copy);
    return config;
}

/* Trains a run on the first `ranks` ranks and discards its output. Returns the run's status on
 * ranks that take part, and OK on other ranks. Collective on MPI_COMM_WORLD. */
static Status run_on(int ranks, const char *name, const char *more)
{
    World sub;
    Status status = OK;
    if (tiny_world(&sub, ranks)) {
        Config *config = config_of(name, more);
        fflush(stdout);
        int out = dup(1), nothing = open("/dev/null", O_WRONLY);
        dup2(nothing, 1);
        if (config) status = train_run(config, &sub);
        fflush(stdout);
        dup2(out, 1);
        close(out);
        close(nothing);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
    return status;
}

static bool takes_part(int ranks)
{
    return tiny_rank < ranks;
}

static char *path_of(const char *name, const char *file)
{
    return mem_format("%s/%s/%s", tiny_folder, name, file);
}

static bool exists(const char *name, const char *file)
{
    char *path = path_of(name, file);
    bool there = access(path, F_OK) == 0;
    mem_free(&path);
    return there;
}

/* The numbers in a run's metrics.jsonl that are tested. */
typedef struct Metrics {
    int steps, evals;
    /* true: the steps are 1, 2, 3, ... */
    bool in_order;
    /* loss of the last step */
    double loss;
    double eval_loss;
} Metrics;

static Metrics metrics_of(const char *name)
{
    Metrics m = {.in_order = true};
    char *path = path_of(name, "metrics.jsonl"), line[1024];
    FILE *file = fopen(path, "r");
    CU_ASSERT_PTR_NOT_NULL(file);
    while (file && fgets(line, sizeof line, file)) {
        const char *step = strstr(line, "\"step\":"), *eval = strstr(line, "\"eval_loss\":"),
                   *loss = strstr(line, "\"loss\":");
        if (eval) {
            m.evals++;
            m.eval_loss = strtod(eval + strlen("\"eval_loss\":"), NULL);
        } else if (step && loss) {
            m.in_order &= strtol(step + strlen("\"step\":"), NULL, 10) == ++m.steps;
            m.loss = strtod(loss + strlen("\"loss\":"), NULL);
        }
    }
    if (file) fclose(file);
    mem_free(&path);
    return m;
}

static bool same_checkpoints(const char *a, const char *b, const char *file)
{
    char *pa = path_of(a, file), *pb = path_of(b, file);
    FILE *nothing = fopen("/dev/null", "w");
    bool equal = false;
    CHECK_OK(checkpoint_diff(pa, pb, nothing, &equal));
    fclose(nothing);
    mem_free(&pa);
    mem_free(&pb);
    return equal;
}

/* Tests five samples in batches of eight: each epoch has one short step; of two ranks, one has a
 * single sample. */
static void test_fewer_than_a_batch(void)
{
    char *more = mem_format("data.train=%s data.test=%s train.epochs=3", few_path, few_path);
    CHECK_OK(run_on(1, "few1", more));
    CHECK_OK(run_on(2, "few2", more));
    if (tiny_rank == 0) {
        Metrics m = metrics_of("few1");
        CU_ASSERT(m.steps == 3 && m.in_order && m.evals == 3);
        CU_ASSERT(same_checkpoints("few1", "few2", "checkpoints/step-00000003.h5"));
    }
    mem_free(&more);
}

static void test_less_than_an_epoch(void)
{
    CHECK_OK(run_on(2, "short", "train.steps=2"));
    if (tiny_rank > 0) return;
    Metrics m = metrics_of("short");
    CU_ASSERT(m.steps == 2 && m.in_order && m.evals == 1);
    CU_ASSERT(exists("short", "checkpoints/step-00000002.h5"));
    CU_ASSERT(exists("short", "checkpoints/best.h5"));
}

static EvalLine evaluate_on(int ranks, int batch, int micro, int64_t *confusion)
{
    EvalLine line = {0};
    World sub;
    if (tiny_world(&sub, ranks)) {
        char *more = mem_format("train.batch=%d train.micro_batch=%d", batch, micro);
        Config *config = config_of("never", more);
        Trainer *t = NULL;
        CHECK_OK(trainer_new(&t, config, &sub));
        if (t)
            CHECK_OK(train_evaluate(t, &t->test_set, &line, &(EvalExtras){.confusion = confusion}));
        trainer_free(&t);
        config_free(&config);
        mem_free(&more);
    }
    tiny_world_fini(&sub);
    tiny_barrier();
    return line;
}

/* Tests that every sample is evaluated once, whatever the batch, with the same bits on one rank and
 * on two. */
static void test_evaluation(void)
{
    static const int size[][2] = {{8, 2}, {2, 1}, {32, 16}, {64, 32}, {6, 3}};
    int64_t first[CLASSES * CLASSES] = {0};
    EvalLine want = evaluate_on(1, 4, 2, first);
    for (size_t i = 0; i < sizeof size / sizeof *size; ++i) {
        int64_t one[CLASSES * CLASSES] = {0}, two[CLASSES * CLASSES] = {0};
        EvalLine a = evaluate_on(1, size[i][0], size[i][1], one);
        EvalLine b = evaluate_on(2, size[i][0], size[i][1], two);
        if (!takes_part(1)) continue;
        CU_ASSERT(a.samples == SAMPLES && b.samples == SAMPLES);
        CU_ASSERT(a.loss == b.loss && a.top1 == b.top1 && a.top5 == b.top5);
        CU_ASSERT(memcmp(one, two, sizeof one) == 0 && memcmp(one, first, sizeof one) == 0);
        CU_ASSERT(fabs(a.loss - want.loss) < 1e-6 && a.top1 == want.top1 && a.top5 == 1);
    }
}

/* Tests a run that resumes in its middle, on other ranks, because its later checkpoints were
 * removed. */
static void test_resume(void)
{
    const char *more = "train.steps=11 checkpoint.every_steps=5 checkpoint.keep=0";
    CHECK_OK(run_on(2, "whole", more));
    CHECK_OK(run_on(1, "parts", more));
    if (tiny_rank == 0) {
        static const char *const gone[] = {"checkpoints/step-00000010.h5",
                                           "checkpoints/step-00000011.h5"};
        for (int i = 0; i < 2; ++i) {
            char *path = path_of("parts", gone[i]);
            CU_ASSERT_EQUAL(unlink(path), 0);
            mem_free(&path);
        }
    }
    tiny_barrier();
    CHECK_OK(run_on(2, "parts", more));
    if (tiny_rank > 0) return;
    Metrics whole = metrics_of("whole"), parts = metrics_of("parts");
    CU_ASSERT(parts.steps == 11 && parts.in_order);
    CU_ASSERT(parts.evals == whole.evals);
    CU_ASSERT(parts.loss == whole.loss && parts.eval_loss == whole.eval_loss);
    CU_ASSERT(same_checkpoints("whole", "parts", "checkpoints/step-00000011.h5"));
}

/* Tests that a run that started from another run's file resumes from its own checkpoints when the
 * same command is given again. */
static void test_begin_from_file(void)
{
    char *from = path_of("whole", "checkpoints/step-00000005.h5");
    char *last = path_of("fresh", "checkpoints/step-00000011.h5");
    char *more = mem_format("train.steps=11 checkpoint.every_steps=1 checkpoint.resume=%s", from);
    CHECK_OK(run_on(2, "fresh", more));
    tiny_barrier();
    if (tiny_rank == 0) {
        CU_ASSERT(same_checkpoints("whole", "fresh", "checkpoints/step-00000011.h5"));
        CU_ASSERT_EQUAL(unlink(last), 0);
    }
    tiny_barrier();
    CHECK_OK(run_on(2, "fresh", more));
    if (tiny_rank == 0) {
        CU_ASSERT(same_checkpoints("whole", "fresh", "checkpoints/step-00000011.h5"));
    }
    mem_free(&from);
    mem_free(&last);
    mem_free(&more);
}

static void test_keep(void)
{
    CHECK_OK(run_on(1, "keep", "train.steps=6 checkpoint.every_steps=1 checkpoint.keep=2"));
    if (tiny_rank > 0) return;
    for (int step = 1; step <= 6; ++step) {
        char file[64];
        snprintf(file, sizeof file, "checkpoints/step-%08d.h5", step);
        CU_ASSERT_EQUAL(exists("keep", file), step > 4);
    }
    CU_ASSERT(exists("keep", "checkpoints/best.h5"));
}

/* Starts a process that holds the lease of a run's folder until it is killed. Returns its id, or
 * -1. */
static pid_t own_elsewhere(const char *name)
{
    char *path = path_of(name, "");
    int ready[2];
    char byte;
    if (pipe(ready) != 0) return -1;
    pid_t child = fork();
    if (child == 0) {
        Lease *lease;
        bool good = lease_take(&lease, path, 5) == OK;
        if (write(ready[1], good ? "y" : "n", 1) == 1) pause();
        _exit(0);
    }
    bool good = read(ready[0], &byte, 1) == 1 && byte == 'y';
    CU_ASSERT(good);
    close(ready[0]);
    close(ready[1]);
    mem_free(&path);
    return child;
}

static void test_in_use(void)
{
    pid_t other = tiny_rank == 0 ? own_elsewhere("keep") : -1;
    tiny_barrier();
    Status status = run_on(2, "keep", "train.steps=6 checkpoint.every_steps=1 checkpoint.keep=2");
    CHECK_FAILS(status, ERR_CONFIG, "another run is using this folder");
    if (other > 0) {
        kill(other, SIGKILL);
        waitpid(other, NULL, 0);
    }
}

static atomic_bool waiting;

/* Thread that sends a stop request (SIGTERM) to this process as soon as `file`, which the first
 * evaluation writes, exists, or when `waiting` is false. */
static void *request_stop(void *file)
{
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, NULL);
    while (waiting && access(file, R_OK) != 0) usleep(1000);
    kill(getpid(), SIGTERM);
    return NULL;
}

/* Tests a stop request that only one rank receives: both ranks stop and leave a checkpoint. */
static void test_stop(void)
{
    pthread_t thread;
    char *best = path_of("stop", "checkpoints/best.h5");
    stop_begin();
    waiting = true;
    if (tiny_rank == 1) pthread_create(&thread, NULL, request_stop, best);
    Status status = run_on(2, "stop", "train.steps=1000000 train.log_every=1000");
    waiting = false;
    if (tiny_rank == 1) pthread_join(thread, NULL);
    stop_end();
    mem_free(&best);
    CHECK_FAILS(status, ERR_STOPPED, "start the same command again");
    if (tiny_rank > 0) return;
    char *dir = path_of("stop", "checkpoints"), *newest = NULL;
    CHECK_OK(checkpoint_newest(dir, NULL, &newest));
    CU_ASSERT_PTR_NOT_NULL(newest);
    mem_free(&newest);
    mem_free(&dir);
}

/* Tests a stop request that a rank receives before the run has started: no checkpoint is written,
 * and the next run is not affected. */
static void test_stop_early(void)
{
    stop_begin();
    if (tiny_rank == 1) kill(getpid(), SIGHUP);
    Status status = run_on(2, "early", "train.steps=1");
    stop_end();
    CHECK_FAILS(status, ERR_STOPPED, "before the first step");
    CU_ASSERT(!exists("early", "checkpoints"));
    tiny_barrier();
    CHECK_OK(run_on(2, "early", "train.steps=1"));
}

static void test_runs_away(void)
{
    Status status =
        run_on(2, "away", "train.steps=9 optim.lr=1e30 checkpoint.every_steps=1 checkpoint.keep=0");
    CHECK_FAILS(status, ERR_DATA, "lower optim.lr");
    if (tiny_rank > 0) return;
    CU_ASSERT(exists("away", "checkpoints/step-00000001.h5"));
    CU_ASSERT(!exists("away", "checkpoints/step-00000009.h5"));
    CU_ASSERT(!exists("away", "checkpoints/best.h5"));
}

/* Sets the first number of a tensor in a checkpoint to NaN and deletes the tensor's checksum. */
static void make_sick(const char *name, const char *file, const char *tensor)
{
    char *path = path_of(name, file);
    hid_t stored = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    hid_t set = H5Dopen2(stored, tensor, H5P_DEFAULT), space = H5Dget_space(set);
    hsize_t first[2] = {0, 0}, one[1] = {1};
    hid_t memory = H5Screate_simple(1, one, NULL);
    float value = NAN;
    H5Sselect_elements(space, H5S_SELECT_SET, 1, first);
    CU_ASSERT(H5Dwrite(set, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, &value) >= 0);
    CU_ASSERT(H5Adelete(set, "xxh64") >= 0);
    H5Sclose(memory);
    H5Sclose(space);
    H5Dclose(set);
    H5Fclose(stored);
    mem_free(&path);
}

/* Tests a NaN in the first layer that does not pass its relu, so that loss and gradient are finite.
 * Still no checkpoint with the NaN is saved. */
static void test_hidden_nan(void)
{
    static const char model[] =
        "model.layers=[flatten, dense: {width: 6}, relu, dense: {width: 5}]";
    for (int ranks = 1; ranks <= 2; ++ranks) {
        char *more = mem_format("%s;train.steps=3", model);
        CHECK_OK(run_on(2, ranks == 1 ? "well1" : "well2", more));
        mem_free(&more);
        const char *name = ranks == 1 ? "well1" : "well2", *sick = ranks == 1 ? "sick1" : "sick2";
        if (tiny_rank == 0)
            make_sick(name, "checkpoints/step-00000003.h5", "/params/dense1.weight");
        char *from = path_of(name, "checkpoints/step-00000003.h5");
        more = mem_format("%s;train.steps=9;checkpoint.every_steps=1;checkpoint.keep=1;"
                          "checkpoint.resume=%s",
                          model, from);
        tiny_barrier();
        Status status = run_on(ranks, sick, more);
        if (takes_part(ranks)) CHECK_FAILS(status, ERR_DATA, "/params/dense1.weight holds nan");
        if (tiny_rank == 0) CU_ASSERT(!exists(sick, "checkpoints/step-00000004.h5"));
        mem_free(&from);
        mem_free(&more);
    }
}

/* Tests that a test set with more classes than the model is refused before the folder of
 * checkpoints is made. */
static void test_other_test_set(void)
{
    char *more = mem_format("data.test=%s", wide_path);
    Status status = run_on(2, "other", more);
    CHECK_FAILS(status, ERR_DATA, "model.classes");
    CU_ASSERT(!exists("other", "checkpoints"));
    mem_free(&more);
}

static void prepare(void)
{
    snprintf(data_path, sizeof data_path, "%s/data.h5", tiny_folder);
    snprintf(few_path, sizeof few_path, "%s/few.h5", tiny_folder);
    snprintf(wide_path, sizeof wide_path, "%s/wide.h5", tiny_folder);
    if (tiny_rank > 0) return;
    tiny_data(data_path, SAMPLES, 1, 8, 8, CLASSES);
    tiny_data(few_path, FEW, 1, 8, 8, CLASSES);
    tiny_data(wide_path, 60, 1, 8, 8, 2 * CLASSES);
}

TINY_MAIN("run", prepare, {"fewer samples than a batch", test_fewer_than_a_batch},
          {"less than an epoch", test_less_than_an_epoch}, {"evaluation", test_evaluation},
          {"going on in the middle", test_resume}, {"beginning from a file", test_begin_from_file},
          {"what is kept", test_keep}, {"a folder in use", test_in_use}, {"stopped", test_stop},
          {"stopped early", test_stop_early}, {"running away", test_runs_away},
          {"a NaN that hides", test_hidden_nan}, {"another test set", test_other_test_set})
