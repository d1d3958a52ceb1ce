/* Tests the guarantee: parameters, running statistics, optimizer state, losses, norms, evaluation
 * and checkpoints are the same to the bit on every grid, with every schedule, over every transport,
 * in fp32 and in bf16. Expected values: a run on one rank with the defaults. By default a sample of
 * the combinations is tested, in which every value of every axis occurs with every model; with
 * WEFT_MATRIX set (make matrix, grids.h), all combinations are tested. */
#include "grids.h"
#include "schedules.def"

enum { STEPS = 6 };

typedef struct Layout {
    int dp, pp;
    /* override of the batch, or "". Its 7 micro-batches are padded to 9, three for each of three
 * replicas. */
    const char *batch;
} Layout;

static const Layout layouts[] = {{1, 1, ""},
                                 {2, 1, ""},
                                 {1, 2, ""},
                                 {2, 2, ""},
                                 {4, 1, ""},
                                 {1, 4, ""},
                                 {3, 1, "train.batch=14"}};

/* An axis is a list of overrides. An override that ends in ':' gets the path of a schedule file for
 * the grid. */
static const char *const schedules[] = {"grid.pipeline_schedule=gpipe",
                                        "grid.pipeline_schedule=1f1b",
                                        "grid.pipeline_schedule=interleaved grid.chunks=2",
                                        "grid.pipeline_schedule=zero-bubble",
                                        "grid.pipeline_schedule=file:",
                                        "grid.pipeline_schedule=zb-v",
                                        "grid.pipeline_schedule=dualpipe-v",
                                        NULL};
static const char *const transports[] = {"grid.transport=shm",
                                         "grid.transport=mpi grid.bucket_mb=0.05", NULL};
static const char *const recomputes[] = {"grid.recompute=none", "grid.recompute=block", NULL};
static const char *const zeros[] = {"grid.zero=0", "grid.zero=1", "grid.zero=2", "grid.zero=3",
                                    NULL};
/* Positions in `axes`. At position 0, check_sample combines every value with several replicas. */
enum { ZERO_AXIS = 0, SCHEDULE_AXIS = 1, TRANSPORT_AXIS = 3 };
static const char *const *const axes[] = {zeros, schedules, recomputes, transports};
enum {
    AXES = sizeof axes / sizeof axes[0],
    LAYOUTS = sizeof layouts / sizeof layouts[0],
    MODELS = sizeof grid_models / sizeof grid_models[0]
};

static int axis_values(int axis)
{
    int n = 0;
    while (axes[axis][n]) ++n;
    return n;
}

/* Writes a zero-bubble schedule to a file, without its tasks that send and receive. Returns the
 * path, owned by the caller. Collective on MPI_COMM_WORLD. */
static char *schedule_file(const Layout *layout)
{
    int micro_batches = micro_batches_a_replica((layout->batch[0] ? 14 : 16) / 2, layout->dp);
    ScheduleShape shape = {
        .stages = layout->pp, .chunks_per_stage = 1, .micro_batches = micro_batches};
    Schedule *s = NULL;
    char *path = mem_format("%s/schedule-%dx%d.csv", tiny_folder, layout->dp, layout->pp);
    tiny_barrier();
    FILE *out = tiny_rank == 0 ? fopen(path, "w") : NULL;
    CHECK_OK(schedule_new(&s, SCHEDULE_ZERO_BUBBLE, NULL, shape));
    if (out) fprintf(out, "stage,task,chunk,micro\n");
    for (int stage = 0; out && stage < layout->pp; ++stage)
        for (int i = 0; i < s->count[stage]; ++i) {
            const Task *t = &s->task[stage][i];
            if (t->kind <= TASK_BACKWARD_WEIGHT)
                fprintf(out, "%d,%s,%d,%d\n", stage, task_names[t->kind], t->chunk, t->micro);
        }
    if (out) fclose(out);
    schedule_free(&s);
    tiny_barrier();
    return path;
}

/* The model and the settings that are trained on every grid. */
typedef struct Subject {
    /* index in grid_models */
    int model;
    const char *precision;
    /* true: checkpoints are compared as well (large ones take long) */
    bool save;
    /* number added to the positions in all axes, so that each subject tests another sample */
    int shift;
} Subject;

/* Returns the overrides of a layout and of one value of each axis. value: positions in the axes,
 * int[AXES]. Owned by the caller. */
static char *overrides_of(const Subject *subject, const Layout *layout, const int *value)
{
    char *all = mem_format("train.precision=%s grid.dp=%d grid.pp=%d %s", subject->precision,
                           layout->dp, layout->pp, layout->batch);
    for (int axis = 0; axis < AXES; ++axis) {
        const char *one = axes[axis][value[axis]];
        char *path = one[strlen(one) - 1] == ':' ? schedule_file(layout) : mem_text("");
        char *more = mem_format("%s %s%s", all, one, path);
        mem_free(&all);
        mem_free(&path);
        all = more;
    }
    return all;
}

/* Trains on one rank with the defaults, and writes the checkpoint to `save`. */
static Outcome reference(const Subject *subject, const char *batch, const char *save)
{
    char *more = mem_format("train.precision=%s %s", subject->precision, batch);
    Outcome out = grid_train(&(GridPart){.model = &grid_models[subject->model],
                                         .ranks = 1,
                                         .more = more,
                                         .to = STEPS,
                                         .save = save});
    mem_free(&more);
    return out;
}

typedef struct Reference {
    /* outcome with the usual batch, and with the batch that three replicas pad; the checkpoints of
     * both are in `path` */
    Outcome outcome[2];
    char *path[2];
} Reference;

static void check(const Subject *subject, const Layout *layout, const int *value,
                  const Reference *want)
{
    const GridModel *model = &grid_models[subject->model];
    int which = layout->batch[0] != 0;
    char *more = overrides_of(subject, layout, value);
    char *path = mem_format("%s/got.h5", tiny_folder);
    Outcome got = grid_train(&(GridPart){.model = model,
                                         .ranks = layout->dp * layout->pp,
                                         .more = more,
                                         .to = STEPS,
                                         .save = subject->save ? path : NULL});
    bool same = outcome_same(&got, &want->outcome[which]);
    CU_ASSERT(same);
    if (!same) {
        char *what = mem_format("%s, %s", model->name, more);
        outcome_explain(what, &got, &want->outcome[which]);
        mem_free(&what);
    }
    if (subject->save && tiny_rank == 0) CU_ASSERT(grid_same_files(path, want->path[which]));
    tiny_barrier();
    mem_free(&more);
    mem_free(&path);
}

/* Checks a sample in which every value of every axis occurs at least once. There are as many
 * schedules as layouts; steps of 3 pair each layout with another schedule. */
static void check_sample(const Subject *subject, const Reference *want)
{
    CU_ASSERT_EQUAL(axis_values(SCHEDULE_AXIS), LAYOUTS);
    for (int i = 0, value[AXES]; i < LAYOUTS; ++i) {
        for (int axis = 0; axis < AXES; ++axis) {
            int at = axis == SCHEDULE_AXIS ? 3 * i : i + i / 2 * axis;
            value[axis] = (at + subject->shift) % axis_values(axis);
        }
        check(subject, &layouts[i], value, want);
    }
}

/* Returns whether the combination differs from all simpler ones: one rank uses no transport, and
 * one replica shards nothing. */
static bool means_something(const Layout *layout, const int *value)
{
    return (layout->dp > 1 || value[ZERO_AXIS] == 0) &&
           (layout->dp * layout->pp > 1 || value[TRANSPORT_AXIS] == 0);
}

/* Checks all combinations, counted as digits of a number. */
static void check_all(const Subject *subject, const Reference *want)
{
    int all = LAYOUTS;
    for (int axis = 0; axis < AXES; ++axis) all *= axis_values(axis);
    for (int number = 0; number < all; ++number) {
        int value[AXES], rest = number / LAYOUTS;
        for (int axis = 0; axis < AXES; ++axis) {
            value[axis] = rest % axis_values(axis);
            rest /= axis_values(axis);
        }
        const Layout *layout = &layouts[number % LAYOUTS];
        if (means_something(layout, value)) check(subject, layout, value, want);
    }
}

static void run(const Subject *subject)
{
    static const char *const batch[2] = {"", "train.batch=14"};
    Reference want;
    for (int i = 0; i < 2; ++i) {
        want.path[i] = mem_format("%s/want-%d.h5", tiny_folder, i);
        want.outcome[i] = reference(subject, batch[i], want.path[i]);
    }
    bool all = grid_whole_matrix(grid_models[subject->model].name);
    (all ? check_all : check_sample)(subject, &want);
    for (int i = 0; i < 2; ++i) mem_free(&want.path[i]);
}

static void test_resnet(void)
{
    run(&(Subject){0, "fp32", false, 0});
}
static void test_mobilenet(void)
{
    run(&(Subject){1, "fp32", grid_whole_matrix("mobilenet_v2"), 1});
}
static void test_gpt(void)
{
    run(&(Subject){2, "fp32", true, 2});
}
static void test_layers(void)
{
    run(&(Subject){3, "fp32", true, 3});
}
static void test_llama(void)
{
    run(&(Subject){4, "fp32", true, 1});
}
static void test_group_norm(void)
{
    run(&(Subject){5, "fp32", true, 2});
}

static void test_frozen(void)
{
    run(&(Subject){6, "fp32", true, 1});
}

/* Checks the V-shaped schedules. The first stage has the first and the last chunk, therefore the
 * input, the loss and both uses of tied parameters. Between the two chunks of the last stage, where
 * the V turns, nothing is sent. */
static void test_v(void)
{
    static const struct {
        int layout, value[AXES];
    } all[] = {{2, {0, 5, 0, 0}}, {2, {0, 6, 1, 1}}, {3, {2, 5, 1, 1}}, {3, {3, 6, 0, 1}},
               {3, {1, 6, 0, 0}}, {5, {0, 5, 1, 1}}, {5, {0, 6, 0, 0}}};
    Subject subject = {2, "fp32", true, 0};
    Reference want = {.path[0] = mem_format("%s/want-v.h5", tiny_folder)};
    want.outcome[0] = reference(&subject, "", want.path[0]);
    for (size_t i = 0; i < sizeof all / sizeof all[0]; ++i)
        check(&subject, &layouts[all[i].layout], all[i].value, &want);
    mem_free(&want.path[0]);
}

/* Runs a subject in which activations, their gradients and messages between stages are bf16. Skips
 * it if the backend cannot compute in bf16. */
static void run_bf16(const Subject *subject)
{
    Backend *backend;
    BackendOptions options = {.threads = 1, .precision = DTYPE_BF16};
    if (backend_open(&backend, &backend_cpu, options) != OK) TEST_SKIP(fail_message());
    backend_close(&backend);
    run(subject);
}
static void test_resnet_bf16(void)
{
    run_bf16(&(Subject){0, "bf16", false, 2});
}
static void test_mobilenet_bf16(void)
{
    run_bf16(&(Subject){1, "bf16", false, 1});
}
static void test_gpt_bf16(void)
{
    run_bf16(&(Subject){2, "bf16", true, 3});
}

static void test_llama_bf16(void)
{
    run_bf16(&(Subject){4, "bf16", true, 0});
}
static void test_group_norm_bf16(void)
{
    run_bf16(&(Subject){5, "bf16", true, 1});
}

static void test_frozen_bf16(void)
{
    run_bf16(&(Subject){6, "bf16", false, 2});
}

TINY_MAIN("grid", grid_data, {"resnet18", test_resnet}, {"mobilenet_v2", test_mobilenet},
          {"gpt2", test_gpt}, {"layers", test_layers}, {"V-shaped schedules", test_v},
          {"resnet18, bf16", test_resnet_bf16}, {"mobilenet_v2, bf16", test_mobilenet_bf16},
          {"gpt2, bf16", test_gpt_bf16}, {"llama", test_llama}, {"group_norm", test_group_norm},
          {"llama, bf16", test_llama_bf16}, {"group_norm, bf16", test_group_norm_bf16},
          {"frozen layers", test_frozen}, {"frozen layers, bf16", test_frozen_bf16})
