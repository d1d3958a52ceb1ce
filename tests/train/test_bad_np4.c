/* Bad numbers in whole runs: samples that overflow, parameters and replicas whose memory was
 * changed behind the program's back, a loss far above the others. What a run does about them, what
 * it says, and that it does the same on every grid. */
#include "tiny_main.h"

#include "train/run.h"

#include <fcntl.h>
#include <float.h>
#include <math.h>
#include <sys/stat.h>

enum { SAMPLES = 24, CLASSES = 4, PIXELS = 16, BAD = 17, MANY = 300, WORDS = 24 };

static char good_path[64], bad_path[64], far_path[64], said_path[64];

/* Images of floats around 0, and one of them, number `odd`, all `value`. */
static void float_data(const char *path, int n, int odd, float value)
{
    float *x = mem_new((size_t)n * PIXELS * sizeof *x);
    int32_t *y = mem_new((size_t)n * sizeof *y);
    RngKey key = rng_key(11, RNG_TEST, 0, 0);
    for (int i = 0; i < n; ++i) {
        y[i] = (i + (i == odd)) % CLASSES;
        for (int k = 0; k < PIXELS; ++k) {
            float noise = rng_uniform(key, (uint64_t)(i * PIXELS + k)) - 0.5f;
            x[i * PIXELS + k] = i == odd ? value : noise + (k % CLASSES == y[i] ? 1.0f : 0.0f);
        }
    }
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    hsize_t dx[4] = {(hsize_t)n, 1, 4, 4};
    hid_t sx = H5Screate_simple(4, dx, NULL), sy = H5Screate_simple(1, dx, NULL);
    hid_t hx = H5Dcreate2(file, "/x", H5T_IEEE_F32LE, sx, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    hid_t hy = H5Dcreate2(file, "/y", H5T_STD_I32LE, sy, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    H5Dwrite(hx, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x);
    H5Dwrite(hy, H5T_NATIVE_INT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, y);
    H5Dclose(hx);
    H5Dclose(hy);
    H5Sclose(sx);
    H5Sclose(sy);
    H5Fclose(file);
    mem_free(&x);
    mem_free(&y);
}

/* A sample that comes late in the first epoch, in batches of one. */
static int late_sample(void)
{
    return (int)sampler_at(MANY, 3, 0, 250);
}

static void prepare(void)
{
    snprintf(good_path, sizeof good_path, "%s/good.h5", tiny_folder);
    snprintf(bad_path, sizeof bad_path, "%s/bad.h5", tiny_folder);
    snprintf(far_path, sizeof far_path, "%s/far.h5", tiny_folder);
    snprintf(said_path, sizeof said_path, "%s/said", tiny_folder);
    if (tiny_rank > 0) return;
    float_data(good_path, SAMPLES, -1, 0);
    float_data(bad_path, SAMPLES, BAD, FLT_MAX);
    float_data(far_path, MANY, late_sample(), 400.0f);
}

/* What became of a run. */
typedef struct Outcome {
    Status status;
    uint64_t hash;
    int64_t step, skipped;
    /* why it ended; what rank 0 said meanwhile */
    char message[2048], said[4096];
} Outcome;

typedef struct Case {
    const char *name, *data;
    int ranks;
    const char *more;
    /* before each step, on every rank; NULL: nothing is changed */
    void (*hurt)(Run *run);
} Case;

static Config *config_of(const Case *c)
{
    Config *config = NULL;
    char *text = mem_format("run: {seed: 3, dir: %s, name: %s}\n"
                            "model: {layers: [flatten, dense: {width: 64}, relu, dense: {width: "
                            "12}, relu, dense: {width: %d}]}\n"
                            "data: {train: %s}\n"
                            "train: {batch: 8, micro_batch: 2, threads: 1, steps: 12}\n"
                            "optim: {lr: 0.05, momentum: 0.9}\n"
                            "checkpoint: {every_s: 0, best: false}\n",
                            tiny_folder, c->name, CLASSES, c->data);
    char *words[WORDS], *copy = mem_text(c->more), *rest = copy;
    int count = 0;
    for (char *word; (word = strsep(&rest, " "));)
        if (*word) words[count++] = word;
    CHECK_OK(config_parse(&config, "bad.yaml", text, count, words));
    mem_free(&text);
    mem_free(&copy);
    return config;
}

static Status make_steps(const Case *c, Run *r, Outcome *out)
{
    Trainer *t = r->trainer;
    Status st = status_agree(
        r->world, r->world->rank == 0 ? run_dir_open(&r->dir, r->config->run.heartbeat_s) : OK);
    if (st == OK) st = run_resume(r);
    if (st == OK) run_bad_begin(r);
    while (st == OK && t->step < t->steps) {
        if (c->hurt) c->hurt(r);
        st = run_step(r);
    }
    if (st != OK) snprintf(out->message, sizeof out->message, "%s", fail_message());
    Status saved = run_save_wait(r);
    st = st == OK ? saved : st;
    out->step = t->step;
    out->skipped = t->skipped;
    out->hash = tiny_hash(t);
    return st;
}

/* As train_run makes one, without what it prints at the end. */
static void run_case(const Case *c, const World *world, Outcome *out)
{
    Config *config = config_of(c);
    Run r = {.config = config, .world = world, .best_saved = NAN};
    if (world->rank == 0) r.good = good_files_new();
    run_dir_init(&r.dir, config);
    run_time_begin(&r);
    out->status = trainer_new(&r.trainer, config, world);
    if (out->status == OK) out->status = make_steps(c, &r, out);
    run_time_end(&r);
    run_bad_end(&r);
    observer_free(&r.observer);
    train_save_free(&r.save);
    trainer_free(&r.trainer);
    run_dir_fini(&r.dir);
    good_files_free(&r.good);
    mem_free(&r.last);
    mem_free(&r.saving);
    config_free(&config);
}

/* On the first ranks; the outcome on all. */
static Outcome run(Case c)
{
    World sub;
    Outcome out = {0};
    fflush(stdout);
    int err = dup(2), words = dup(1), nothing = open("/dev/null", O_WRONLY),
        file = open(said_path, O_RDWR | O_CREAT | O_TRUNC, 0600);
    MPI_Barrier(MPI_COMM_WORLD);
    log_init(tiny_rank == 0);
    if (tiny_rank == 0) dup2(file, 2);
    dup2(nothing, 1);
    if (tiny_world(&sub, c.ranks)) run_case(&c, &sub, &out);
    tiny_world_fini(&sub);
    fflush(stdout);
    dup2(err, 2);
    dup2(words, 1);
    close(words);
    close(nothing);
    log_init(false);
    if (tiny_rank == 0 && pread(file, out.said, sizeof out.said - 1, 0) < 0) out.said[0] = 0;
    close(err);
    close(file);
    MPI_Bcast(&out, (int)sizeof out, MPI_BYTE, 0, MPI_COMM_WORLD);
    return out;
}

static void says(const char *text, const char *what)
{
    if (!strstr(text, what) && tiny_rank == 0) printf("  lacks '%s': %s\n", what, text);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, what));
}

static bool saved(const char *name, int step)
{
    char *path = mem_format("%s/%s/checkpoints/step-%08d.h5", tiny_folder, name, step);
    bool there = access(path, F_OK) == 0;
    mem_free(&path);
    return there;
}

/* ---- a sample that overflows ---- */

typedef struct Shape4 {
    const char *name;
    int ranks;
    const char *more;
} Shape4;
static const Shape4 shapes[] = {
    {"one", 1, ""},
    {"dp2", 2, "grid.dp=2"},
    {"pp2", 2, "grid.pp=2"},
    {"tp2", 2, "grid.tp=2"},
    {"dp2pp2", 4, "grid.pp=2 grid.pipeline_schedule=zero-bubble"},
    {"zero1", 4, "grid.zero=1"},
    {"zero2", 4, "grid.zero=2 grid.transport=mpi"},
    {"zero3", 4, "grid.zero=3 grid.transport=mpi"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static Outcome run_bad(const Shape4 *s, const char *kind, const char *more)
{
    char *name = mem_format("%s-%s", kind, s->name), *all = mem_format("%s %s", s->more, more);
    Outcome out = run((Case){name, bad_path, s->ranks, all, NULL});
    mem_free(&name);
    mem_free(&all);
    return out;
}

static void test_stop(void)
{
    char want[2048] = "";
    for (int i = 0; i < SHAPES; ++i) {
        Outcome out = run_bad(&shapes[i], "stop", "checkpoint.every_steps=1");
        CU_ASSERT_EQUAL(out.status, ERR_DATA);
        if (i == 0) snprintf(want, sizeof want, "%s", out.message);
        if (strcmp(shapes[i].name, "tp2") != 0) CU_ASSERT_STRING_EQUAL(out.message, want);
        says(out.message, ": the loss is ");
        says(out.message, "for sample 17");
        says(out.message, "output of layer ");
        CU_ASSERT(out.step > 0 && out.step <= 3);
        char *name = mem_format("stop-%s", shapes[i].name);
        CU_ASSERT_EQUAL(saved(name, (int)out.step), false);
        CU_ASSERT(out.step == 1 || saved(name, (int)out.step - 1));
        mem_free(&name);
    }
}

/* Four epochs of three steps, in each of which one step has it. */
static void test_skip(void)
{
    Outcome first = run_bad(&shapes[0], "skip", "train.on_bad=skip");
    CU_ASSERT_EQUAL(first.status, OK);
    CU_ASSERT(first.skipped == 4 && first.hash != 0);
    says(first.said, "skipped (4 so far)");
    for (int i = 1; i < SHAPES; ++i) {
        Outcome out = run_bad(&shapes[i], "skip", "train.on_bad=skip");
        bool rounds = strcmp(shapes[i].name, "tp2") == 0;
        CU_ASSERT(out.status == OK && out.skipped == 4 && out.step == first.step);
        CU_ASSERT(rounds || out.hash == first.hash);
    }
}

/* A skip is part of the state: a run that stops and goes on ends at the same bits. */
static void test_skip_resumes(void)
{
    const char *more = "train.on_bad=skip";
    Outcome whole = run((Case){"skip-whole", bad_path, 1, more, NULL});
    Outcome part =
        run((Case){"skip-parts", bad_path, 2,
                   "train.on_bad=skip checkpoint.every_steps=7 checkpoint.keep=0", NULL});
    CU_ASSERT(part.status == OK && part.hash == whole.hash);
    if (tiny_rank == 0) {
        char *path = mem_format("%s/skip-parts/checkpoints/step-00000012.h5", tiny_folder);
        CU_ASSERT_EQUAL(unlink(path), 0);
        mem_free(&path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    part = run((Case){"skip-parts", bad_path, 1, more, NULL});
    CU_ASSERT(part.status == OK && part.hash == whole.hash && part.skipped == 4);
}

static void test_skip_ends(void)
{
    Outcome out = run((Case){"skip-all", bad_path, 2,
                             "train.on_bad=skip train.batch=24 train.micro_batch=3", NULL});
    CU_ASSERT(out.status == ERR_DATA && out.step == 11 && out.skipped == 11);
    says(out.message, "the 10 steps before it were bad and skipped, too");
    says(out.message, "for sample 17");
}

/* The machine is not at fault. */
static void test_rollback_same(void)
{
    for (int i = 0; i < SHAPES; ++i) {
        Outcome out =
            run_bad(&shapes[i], "again", "train.on_bad=rollback checkpoint.every_steps=1");
        CU_ASSERT_EQUAL(out.status, ERR_DATA);
        says(out.said, "going back to step ");
        says(out.message, "with the same bits: it is the data or the model");
        says(out.message, "for sample 17");
    }
}

/* ---- memory that changes ---- */

static int hurt_step, hurt_rank, hurt_times;

enum { ANYBODY = -1 };

/* The first value of the first bias, on a rank that has it. */
static void set_value(Run *r, float value)
{
    Trainer *t = r->trainer;
    int64_t first, count;
    if (t->step != hurt_step || hurt_times == 0) return;
    --hurt_times;
    if (hurt_rank != ANYBODY && t->world->rank != hurt_rank) return;
    if (t->plan->param_offset[1] < 0) return;
    plan_shard(t->plan, 1, t->grid.dp_rank, &first, &count);
    if (count > 0) *executor_param(t->executor, 1) = value;
}

/* The relu behind it hides it from the loss. */
static void hide_nan(Run *r)
{
    set_value(r, NAN);
}

static void loud_nan(Run *r)
{
    set_value(r, INFINITY);
}

static void flip_bit(Run *r)
{
    Trainer *t = r->trainer;
    if (t->step != hurt_step || hurt_times == 0) return;
    --hurt_times;
    if (t->world->rank != hurt_rank) return;
    uint32_t bits;
    float *value = executor_param(t->executor, 2) + 5;
    memcpy(&bits, value, sizeof bits);
    bits ^= 1u << 31;
    memcpy(value, &bits, sizeof bits);
}

static void hurt(int step, int rank, int times)
{
    hurt_step = step;
    hurt_rank = rank;
    hurt_times = times;
}

static void test_hidden(void)
{
    hurt(4, 0, 1);
    Outcome out = run((Case){"hidden", good_path, 1, "train.check_every=5", hide_nan});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    CU_ASSERT_EQUAL(out.step, 5);
    says(out.message, "after step 5 /params/dense1.bias holds nan on rank 0, ");
    hurt(4, 0, 1);
    out = run((Case){"hidden0", good_path, 1, "train.check_every=0 train.steps=8", hide_nan});
    /* an epoch's end */
    CU_ASSERT(out.status == ERR_DATA && out.step == 6);
    CU_ASSERT_EQUAL(saved("hidden0", 6), false);
}

static void test_replicas(void)
{
    static const char more[] = "train.check_every=3 train.log_every=50 checkpoint.every_steps=5";
    hurt(7, 2, 1);
    Outcome out = run((Case){"flip4", good_path, 4, more, flip_bit});
    CU_ASSERT(out.status == ERR_DATA && out.step == 9);
    says(out.message, "after step 9 replicas differ in /params/dense2.weight: rank 2 on ");
    says(out.message, "has not what most have");
    CU_ASSERT(saved("flip4", 5) && !saved("flip4", 10));
    hurt(7, 1, 1);
    out = run((Case){"flip2", good_path, 2, more, flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "rank 0 on ");
    says(out.message, "rank 1 on ");
    says(out.message, "of one of them");
    hurt(7, 3, 1);
    out = run((Case){"flip-pp", good_path, 4,
                     "grid.pp=2 train.check_every=3 checkpoint.every_steps=5", flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "rank 3 on ");
}

/* What is wrong with a state of which one value is changed on one of three ranks, or "". */
static void check_state(const char *more, void (*change)(Trainer *t), const char *what)
{
    World sub;
    char text[512] = "";
    if (tiny_world(&sub, 3)) {
        Trainer *t = NULL;
        StepResult result;
        Config *config = config_of(&(Case){"state", good_path, 3, more, NULL});
        CHECK_OK(trainer_new(&t, config, &sub));
        CHECK_OK(train_step(t, &result));
        CHECK_OK(train_check(t));
        if (sub.rank == 1) change(t);
        if (train_check(t) != OK) snprintf(text, sizeof text, "%s", fail_message());
        trainer_free(&t);
        config_free(&config);
    }
    tiny_world_fini(&sub);
    MPI_Bcast(text, sizeof text, MPI_CHAR, 0, MPI_COMM_WORLD);
    if (*what)
        says(text, what);
    else
        CU_ASSERT_STRING_EQUAL(text, "");
}

static void change_state(Trainer *t)
{
    t->optim->state[0][t->optim->piece[1].state[0]] += 1;
}

static void spoil_state(Trainer *t)
{
    for (int i = 0; i < t->optim->range_count; ++i)
        if (t->optim->piece[i].elements > 0)
            t->optim->state[0][t->optim->piece[i].state[0]] = INFINITY;
}

static void change_value(Trainer *t)
{
    *executor_param(t->executor, 0) += 1;
}

/* Also what replicas have only in part is finite; what they have in common they do not compare. */
static void test_state(void)
{
    check_state("", change_state, "replicas differ in /optim/momentum/dense1.bias: rank 1 on ");
    check_state("", spoil_state, "holds inf on rank 1, ");
    check_state("grid.zero=1", spoil_state, "/optim/momentum/dense");
    check_state("grid.zero=1", change_state, "");
    check_state("grid.zero=1", change_value, "");
    check_state("grid.zero=1 grid.transport=mpi", change_value, "replicas differ in /params/");
    check_state("grid.zero=3 grid.transport=mpi", spoil_state, "/optim/momentum/dense");
}

/* A run that goes back ends where one ends that nothing happened to. */
static void goes_back(const char *name, int ranks, const char *grid, void (*how)(Run *run),
                      const char *said)
{
    char *more =
        mem_format("%s train.on_bad=rollback train.check_every=3 checkpoint.every_steps=5", grid);
    Outcome quiet =
        run((Case){"quiet", good_path, ranks, "checkpoint.resume=auto run.fresh=true", NULL});
    Outcome out = run((Case){name, good_path, ranks, more, how});
    if (out.status != OK && tiny_rank == 0) printf("  %s: %s\n", name, out.message);
    CU_ASSERT_EQUAL(out.status, OK);
    CU_ASSERT(out.hash == quiet.hash && out.hash != 0);
    says(out.said, said);
    says(out.said, "is good this time");
    mem_free(&more);
}

static void test_rollback_other(void)
{
    hurt(7, 1, 1);
    goes_back("back-flip", 4, "", flip_bit, "going back to step 5, ");
    hurt(7, 1, 1);
    goes_back("back-loud", 2, "", loud_nan, "second time other bits come from rank 1 on ");
    hurt(2, 0, 1);
    goes_back("back-begin", 2, "", loud_nan, "going back to step 0, and");
    hurt(6, 0, 1);
    goes_back("back-hidden", 1, "", hide_nan, "holds nan on rank 0");
    hurt(7, ANYBODY, 1);
    goes_back("back-zero", 4, "grid.zero=3 grid.transport=mpi", loud_nan, "going back to step 5");
    hurt(6, 0, 1);
    goes_back("back-pp", 2, "grid.pp=2", loud_nan, "second time other bits come from rank 0 on ");
}

/* Memory that fails again and again ends the run. */
static void test_rollback_twice(void)
{
    hurt(7, 1, 2);
    Outcome out =
        run((Case){"twice", good_path, 2,
                   "train.on_bad=rollback train.check_every=3 checkpoint.every_steps=5", flip_bit});
    CU_ASSERT_EQUAL(out.status, ERR_DATA);
    says(out.message, "replicas differ in ");
}

/* ---- a spike ---- */

static void test_spike(void)
{
    const char *base = "train.batch=1 train.micro_batch=1 train.steps=290 optim.lr=0.002";
    char *sample = mem_format("is that of sample %d", late_sample());
    char *more = mem_format("%s train.on_bad=stop", base);
    Outcome out = run((Case){"spike", far_path, 1, more, NULL});
    CU_ASSERT(out.status == ERR_DATA && out.step == 251);
    says(out.message, "a spike: 8 deviations above the last 200 losses");
    says(out.message, sample);
    mem_free(&more);
    more = mem_format("%s train.spike=0", base);
    out = run((Case){"no-spike", far_path, 1, more, NULL});
    CU_ASSERT(out.status == OK && out.skipped == 0);
    mem_free(&more);
    more = mem_format("%s train.on_bad=skip checkpoint.every_steps=240", base);
    Outcome whole = run((Case){"spike-skip", far_path, 1, more, NULL});
    CU_ASSERT(whole.status == OK && whole.skipped == 1);
    Outcome two = run((Case){"spike-skip2", far_path, 2, more, NULL});
    CU_ASSERT(two.status == OK && two.hash == whole.hash);
    if (tiny_rank == 0) {
        char *path = mem_format("%s/spike-skip2/checkpoints/step-00000290.h5", tiny_folder);
        CU_ASSERT_EQUAL(unlink(path), 0);
        mem_free(&path);
    }
    MPI_Barrier(MPI_COMM_WORLD);
    two = run((Case){"spike-skip2", far_path, 1, more, NULL});
    CU_ASSERT(two.status == OK && two.hash == whole.hash && two.skipped == 1);
    mem_free(&more);
    mem_free(&sample);
}

TINY_MAIN("bad numbers", prepare, {"stop", test_stop}, {"skip", test_skip},
          {"a skip and a resume", test_skip_resumes}, {"only bad steps", test_skip_ends},
          {"the same bits again", test_rollback_same}, {"hidden in a parameter", test_hidden},
          {"replicas that differ", test_replicas}, {"a state", test_state},
          {"other bits", test_rollback_other}, {"twice", test_rollback_twice},
          {"a spike", test_spike})
