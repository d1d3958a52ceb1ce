/* Ten training steps of whole models from given weights on given data against PyTorch's losses (tests/golden/models.txt,
 * made by tools/golden_models.py): forward, backward, fusion, layouts and SGD together.
 *
 * Rounding differences grow from step to step, by a factor that is the model's own (deep batch norms on 8 samples: a
 * lot). The file says beside each loss how far PyTorch's single precision is from its double precision, which measures
 * that growth. Allowed here, relative to the double: FLOOR (one relu that falls on the other side of 0 moves the loss by
 * 2e-5), or SPREAD times the largest such distance up to this step. */
#include "train.h"

#include "harness.h"

#include <math.h>

static const double FLOOR = 1e-4, SPREAD = 8;
enum { STEPS = 10, LINE = 512 };

static uint32_t fnv(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; ++text) h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

/* The script's formula: element i of the name that hashes to `name`, in [-1, 1), a multiple of 2^-23. */
static float noise(uint32_t name, uint32_t i)
{
    uint32_t h = i * 0x9E3779B9u + name;
    h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
    h = (h ^ (h >> 13)) * 0xC2B2AE35u;
    h ^= h >> 16;
    return ((float)(h >> 8) - 8388608.0f) * 0x1p-23f;
}

typedef struct Golden {
    char name[64], options[LINE];
    int batch, channels, image;
    double loss[STEPS], strays[STEPS];
} Golden;

static bool golden_read(const char *model, Golden *g)
{
    char line[LINE];
    bool found = false;
    FILE *in = fopen("tests/golden/models.txt", "r");
    CU_ASSERT_PTR_NOT_NULL_FATAL(in);
    while (!found && fgets(line, sizeof line, in))
        found = sscanf(line, "model %63s %d %d %d %511[^\n]", g->name, &g->batch, &g->channels,
                       &g->image, g->options) == 5 &&
                strcmp(g->name, model) == 0;
    for (int s = 0; found && s < STEPS; ++s)
        found = fscanf(in, "%lf %lf", &g->loss[s], &g->strays[s]) == 2;
    fclose(in);
    CU_ASSERT_TRUE(found);
    return found;
}

static Config *config_of(char *options)
{
    enum { MAX = 16 };
    char *word[MAX];
    int count = 0;
    Config *config = NULL;
    for (char *w; count < MAX && (w = strsep(&options, " "));) word[count++] = w;
    CHECK_OK(config_parse(&config, "test.yaml", "run: {seed: 1}", count, word));
    return config;
}

/* Weights: uniform with He's variance; norms' scales 1 +- 0.1; biases and shifts +- 0.1; running statistics 0 and 1. */
static void set_params(const Graph *graph, float *arena)
{
    for (int i = 0; i < graph->param_count; ++i) {
        const Param *p = &graph->param[i];
        int64_t n = shape_count(p->shape);
        bool weight = strstr(p->name, ".weight") != NULL;
        float scale = p->shape.ndim > 1 ? (float)sqrt(6.0 / (double)(n / p->shape.dim[0])) : 0.1f;
        float shift = p->shape.ndim == 1 && weight ? 1.0f : 0.0f;
        float *plain = mem_new((size_t)n * sizeof *plain);
        uint32_t name = fnv(p->name);
        for (int64_t k = 0; k < n; ++k) {
            float v = noise(name, (uint32_t)k) * scale;
            plain[k] = p->info.buffer ? (float)(p->info.init == INIT_ONE) : v + shift;
        }
        param_set(graph, i, plain, arena);
        mem_free(&plain);
    }
}

typedef struct Run {
    Config *config;
    World world;
    Backend *backend;
    Graph *graph;
    Plan *plan;
    Comm *comm;
    Executor *executor;
    Optim *optim;
} Run;

static Status make_optimizer(Run *r)
{
    OptimRange *range = mem_new((size_t)r->graph->param_count * sizeof *range);
    int count = 0;
    for (int i = 0; i < r->graph->param_count; ++i) {
        const Param *p = &r->graph->param[i];
        if (!p->info.buffer) range[count++] = (OptimRange){p->offset, p->elements, p->info.decay};
    }
    Status status =
        optim_new(&r->optim, r->config, r->backend, range, count, r->graph->arena_elements);
    mem_free(&range);
    return status;
}

static Status run_open(Run *r, Golden *golden, const BackendTable *table, bool fuse)
{
    Shape shape = shape_of(4, golden->batch, golden->channels, golden->image, golden->image);
    r->config = config_of(golden->options);
    r->world = (World){
        .size = 1, .node_size = 1, .one_node = true, .comm = MPI_COMM_NULL, .node = MPI_COMM_NULL};
    TRY(backend_open(&r->backend, table, (BackendOptions){.threads = 1}));
    TRY(graph_build(&r->graph, r->config, desc_plain(shape, DTYPE_F32), 10));
    if (fuse) TRY(graph_fuse(r->graph));
    TRY(graph_plan(r->graph, r->backend));
    TRY(plan_new(&r->plan, r->graph, 1, 1 << 20));
    TRY(comm_new(&r->comm, &r->world, r->backend, TRANSPORT_AUTO,
                 r->graph->arena_elements + METRIC_PAD));
    TRY(executor_new(&r->executor, r->plan, r->backend, r->comm,
                     (ExecutorOptions){.micros = 1, .seed = 1}));
    TRY(make_optimizer(r));
    set_params(r->graph, executor_params(r->executor));
    executor_refresh(r->executor);
    return OK;
}

static void run_close(Run *r)
{
    optim_free(&r->optim);
    executor_free(&r->executor);
    comm_free(&r->comm);
    plan_free(&r->plan);
    graph_free(&r->graph);
    backend_close(&r->backend);
    config_free(&r->config);
}

static double train_once(Run *r, const Batch *batch, int step)
{
    executor_train(r->executor, batch, 0, (uint64_t)step, 1.0f / (float)batch->rows);
    const float *metrics = executor_finish(r->executor);
    double loss = (double)(metrics[METRIC_LOSS] / metrics[METRIC_ROWS]);
    optim_step(r->optim, executor_params(r->executor), executor_grads(r->executor),
               r->config->optim.lr, 1);
    executor_refresh(r->executor);
    return loss;
}

static void check_curve(Run *r, const Golden *g, const Batch *batch)
{
    double spread = 0;
    for (int s = 0; s < STEPS; ++s) {
        double loss = train_once(r, batch, s), off = fabs(loss - g->loss[s]) / g->loss[s];
        spread = fmax(spread, g->strays[s]);
        double allowed = fmax(FLOOR, SPREAD * spread);
        CU_ASSERT(off <= allowed);
        if (getenv("WEFT_TEST_VERBOSE") || !(off <= allowed))
            printf("  %s step %d: loss %.9g, PyTorch %.9g: off by %.1e, allowed %.1e\n", g->name, s,
                   loss, g->loss[s], off, allowed);
    }
}

static void check_model(const char *model, const BackendTable *table, bool fuse)
{
    Golden golden;
    Run run = {0};
    char label[32];
    if (!golden_read(model, &golden)) return;
    int64_t n = golden.batch, pixels = (int64_t)golden.channels * golden.image * golden.image;
    Batch batch = {.rows = golden.batch,
                   .x = mem_new((size_t)(n * pixels) * sizeof(float)),
                   .labels = mem_new((size_t)n * sizeof(int32_t)),
                   .sample = mem_new((size_t)n * sizeof(int64_t))};
    for (int64_t i = 0; i < n * pixels; ++i) batch.x[i] = noise(fnv("x"), (uint32_t)i) * 1.5f;
    for (int64_t i = 0; i < n; ++i) {
        snprintf(label, sizeof label, "y%lld", (long long)i);
        batch.labels[i] = (int32_t)(fnv(label) % 10);
        batch.sample[i] = i;
    }
    Status status = run_open(&run, &golden, table, fuse);
    CHECK_OK(status);
    if (status == OK) check_curve(&run, &golden, &batch);
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
