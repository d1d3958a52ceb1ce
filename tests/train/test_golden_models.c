/* Ten training steps of whole models from given weights on given data against PyTorch's losses
 * (tests/golden/models.txt): forward, backward, fusion, layouts and SGD together. */
#include "golden.h"
#include "schedules.def"

typedef struct Images {
    int batch, channels, image;
} Images;

typedef struct Run {
    Config *config;
    World world;
    Backend *backend;
    Grid grid;
    bool grid_ready;
    Graph *graph;
    Schedule *schedule;
    Plan *plan;
    Comm *comm;
    Executor *executor;
    Optim *optim;
} Run;

/* One stage, one micro-batch. */
static Status make_plan(Run *r)
{
    PlanOptions options = {.shape = {1, 1, 1},
                           .channel_depth = 2,
                           .first = (const int[]){0, r->graph->node_count},
                           .bucket_bytes = 1 << 20};
    TRY(schedule_new(&r->schedule, SCHEDULE_1F1B, NULL, (ScheduleShape){1, 1, 1}));
    options.schedule = r->schedule;
    return plan_new(&r->plan, r->graph, &options);
}

static Status make_optimizer(Run *r)
{
    OptimRange *range = mem_new((size_t)r->graph->param_count * sizeof *range);
    int count = 0;
    for (int i = 0; i < r->graph->param_count; ++i) {
        const Param *p = &r->graph->param[i];
        if (!p->info.buffer)
            range[count++] = (OptimRange){.offset = r->plan->param_offset[i],
                                          .elements = p->elements,
                                          .decay = p->info.decay};
    }
    Status status =
        optim_new(&r->optim, r->config, r->backend, range, count, r->plan->param_elements);
    mem_free(&range);
    return status;
}

static Status run_open(Run *r, Golden *golden, Images images, const BackendTable *table, bool fuse)
{
    Shape shape = shape_of(4, images.batch, images.channels, images.image, images.image);
    r->config = golden_config(golden, "run: {seed: 1}");
    r->world = (World){
        .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    TRY(backend_open(&r->backend, table, (BackendOptions){.threads = 1}));
    TRY(graph_build(&r->graph, r->config, desc_plain(shape, DTYPE_F32), 10));
    if (fuse) TRY(graph_fuse(r->graph, &backend_cpu));
    TRY(graph_plan(r->graph, r->backend));
    TRY(make_plan(r));
    TRY(grid_init(&r->grid, &r->world, (GridShape){1, 1, 1}));
    r->grid_ready = true;
    TRY(comm_new(&r->comm, &r->grid.dp_world, r->backend, TRANSPORT_AUTO,
                 r->plan->micro_grad_elements));
    TRY(executor_new(&r->executor, r->plan, &r->grid, r->backend, r->comm,
                     (ExecutorOptions){.seed = 1}));
    TRY(make_optimizer(r));
    golden_params(r->graph, r->plan, executor_params(r->executor));
    executor_refresh(r->executor);
    return OK;
}

static void run_close(Run *r)
{
    optim_free(&r->optim);
    executor_free(&r->executor);
    comm_free(&r->comm);
    plan_free(&r->plan);
    if (r->schedule) schedule_free(&r->schedule);
    if (r->grid_ready) grid_fini(&r->grid);
    graph_free(&r->graph);
    backend_close(&r->backend);
    config_free(&r->config);
}

/* The same micro-batch again and again. */
static Status next_batch(void *user, const Batch **batch, double *wait_s)
{
    (void)wait_s;
    *batch = user;
    return OK;
}

static void release(void *user)
{
    (void)user;
}

static double train_once(Run *r, Batch *batch, int step)
{
    BatchSource source = {.user = batch, .next = next_batch, .release = release};
    double wait_s;
    StepOf of = {.step = (uint64_t)step, .scale = 1.0f / (float)batch->rows, .micros = 1};
    CHECK_OK(executor_forward_backward(r->executor, &source, &of, &wait_s));
    executor_reduce(r->executor, &of);
    const float *metrics = executor_metrics(r->executor, 0);
    double loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    optim_step(r->optim, executor_params(r->executor), executor_grads(r->executor),
               r->config->optim.lr, 1);
    executor_refresh(r->executor);
    return loss;
}

static void check_model(const char *model, const BackendTable *table, bool fuse)
{
    Golden golden;
    Run run = {0};
    int number[3];
    if (!golden_read("tests/golden/models.txt", "model", model, 3, number, &golden)) return;
    Images images = {number[0], number[1], number[2]};
    int64_t n = images.batch, pixels = (int64_t)images.channels * images.image * images.image;
    Batch batch = {.rows = images.batch,
                   .x = mem_new((size_t)(n * pixels) * sizeof(float)),
                   .labels = mem_new((size_t)n * sizeof(int32_t)),
                   .sample = mem_new((size_t)n * sizeof(int64_t))};
    for (int64_t i = 0; i < n * pixels; ++i)
        batch.x[i] = golden_noise(golden_hash("x"), (uint32_t)i) * 1.5f;
    for (int64_t i = 0; i < n; ++i) {
        batch.labels[i] = golden_draw('y', i, 10);
        batch.sample[i] = i;
    }
    Status status = run_open(&run, &golden, images, table, fuse);
    CHECK_OK(status);
    for (int s = 0; status == OK && s < GOLDEN_STEPS; ++s)
        golden_check(&golden, s, train_once(&run, &batch, s), GOLDEN_FLOOR_CORNERS);
    run_close(&run);
    mem_free(&batch.x);
    mem_free(&batch.labels);
    mem_free(&batch.sample);
}

static void lenet(void)
{
    check_model("lenet", &backend_cpu, true);
}
static void lenet_unfused(void)
{
    check_model("lenet", &backend_cpu, false);
}
static void lenet_poison(void)
{
    check_model("lenet", &backend_poison, true);
}
static void resnet18(void)
{
    check_model("resnet18", &backend_cpu, true);
}
static void resnet18_unfused(void)
{
    check_model("resnet18", &backend_cpu, false);
}
static void mobilenet_v2(void)
{
    check_model("mobilenet_v2", &backend_cpu, true);
}
static void mobilenet_v2_unfused(void)
{
    check_model("mobilenet_v2", &backend_cpu, false);
}

TEST_MAIN("golden models", {"lenet", lenet}, {"lenet, nothing fused", lenet_unfused},
          {"lenet, poisoned", lenet_poison}, {"resnet18", resnet18},
          {"resnet18, nothing fused", resnet18_unfused}, {"mobilenet_v2", mobilenet_v2},
          {"mobilenet_v2, nothing fused", mobilenet_v2_unfused})
