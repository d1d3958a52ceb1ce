/* weft bench step: how fast a training step is, beside what the machine's own matrix products reach. The step is the one that
 * weft train runs, loader, sums and optimizer included; data sets it does not have are made up. */
#include "private.h"

#include "train.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct StepBench {
    int steps, warmup;
    bool json;
    Shape input; /* (1,C,H,W) of made-up data; ndim 0: the configuration's own data, or */
    bool tokens; /* made-up tokens */
    double median_s, rows_per_s, gflops, product_gflops, memory_mb, wait_share;
    double bubble; /* measured share of the stages' time in which they wait for each other */
} StepBench;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, int count)
{
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 2];
}

/* Peak resident memory of this process, MB. */
static double peak_memory(void)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[256];
    double kib = 0;
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "VmHWM: %lf", &kib) == 1) break;
    if (status) fclose(status);
    return kib / 1024;
}

static double sum_ranks(const World *world, double mine)
{
    double *all = mem_new((size_t)world->size * sizeof *all), sum = 0;
    world_gather(world, &mine, sizeof mine, all);
    for (int i = 0; i < world->size; ++i) sum += all[i];
    mem_free(&all);
    return sum;
}

static double most_of_ranks(const World *world, double mine)
{
    double *all = mem_new((size_t)world->size * sizeof *all), most = mine;
    world_gather(world, &mine, sizeof mine, all);
    for (int i = 0; i < world->size; ++i) most = all[i] > most ? all[i] : most;
    mem_free(&all);
    return most;
}

/* GFLOP/s of the ranks' dense operation at 1024 x 1024 x 1024 in the precision of the run, all at the same time. */
static Status product_rate(Backend *backend, const World *world, double *gflops)
{
    enum { N = 1024, ROUNDS = 9 };
    OpSpec spec = {.kind = OP_DENSE, .x_count = 1, .w_count = 1};
    spec.x[0] = spec.y = desc_plain(shape_of(2, N, N, 1, 1), backend->options.precision);
    spec.w[0] = shape_of(2, N, N, 1, 1);
    Desc wish[OP_INPUTS] = {spec.x[0]};
    Op *op = NULL;
    TRY(op_new(&op, backend, &spec, wish));
    size_t bytes = desc_bytes(op->spec.y);
    float *w = mem_pages_new((size_t)op->w_elements[0] * sizeof *w);
    void *x = mem_pages_new(bytes), *y = mem_pages_new(bytes);
    void *workspace = mem_pages_new(op->workspace_bytes + 1),
         *cache = mem_pages_new(op->cache_bytes + 1);
    OpRun run = {.x = {x}, .y = y, .w = {w}, .rows = N, .workspace = workspace, .cache = cache};
    double time[ROUNDS];
    op_refresh(op, &run);
    op_forward(op, &run);
    world_barrier(world);
    for (int i = 0; i < ROUNDS; ++i) {
        double start = clock_s();
        op_forward(op, &run);
        time[i] = clock_s() - start;
    }
    *gflops = sum_ranks(world, 2.0 * N * N * N / median(time, ROUNDS) * 1e-9);
    mem_pages_free(x, bytes);
    mem_pages_free(y, bytes);
    mem_pages_free(w, (size_t)op->w_elements[0] * sizeof *w);
    mem_pages_free(workspace, op->workspace_bytes + 1);
    mem_pages_free(cache, op->cache_bytes + 1);
    op_free(&op);
    return OK;
}

/* Operations of one micro-batch, as the running objects count them. */
static double micro_flops(const Graph *graph)
{
    double flops = 0;
    for (int i = 0; i < graph->node_count; ++i)
        flops += graph->node[i].op->flops_forward + graph->node[i].op->flops_backward;
    return flops;
}

static Status time_steps(Trainer *t, StepBench *bench)
{
    double *time = mem_new((size_t)bench->steps * sizeof *time), wait = 0, start = 0;
    double work = 0, messages = 0;
    Status st = OK;
    for (int i = -bench->warmup; st == OK && i < bench->steps; ++i) {
        StepResult result;
        if (i == 0) {
            wait = t->data_wait_s;
            work = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD);
            messages = phase_s(PHASE_MESSAGES);
        }
        start = clock_s();
        st = train_step(t, &result);
        if (i >= 0) time[i] = clock_s() - start;
    }
    double total = 0;
    for (int i = 0; i < bench->steps; ++i) total += time[i];
    bench->wait_share = (t->data_wait_s - wait) / total;
    bench->median_s = median(time, bench->steps);
    /* the first stage begins first and ends last: it is never idle but between its own first and last work */
    work = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD) - work;
    messages = phase_s(PHASE_MESSAGES) - messages;
    double span = most_of_ranks(t->world, work + messages);
    bench->bubble = 1 - sum_ranks(t->world, work) / (span * t->world->size);
    mem_free(&time);
    return st;
}

static const char *model_name(const Trainer *t)
{
    return t->config->model.name[0] ? t->config->model.name : "layers";
}

static double product_share(const StepBench *b)
{
    return b->product_gflops > 0 ? b->gflops / b->product_gflops : 0;
}

static const char *row_name(const Trainer *t)
{
    return t->train_set.kind == DATA_TOKENS ? "tokens" : "samples";
}

static void print_json(const Trainer *t, const StepBench *b)
{
    printf("{\"bench\":\"step\",\"model\":\"%s\",\"ranks\":%d,\"grid\":\"%dx%dx%d\","
           "\"threads\":%d,\"batch\":%lld,\"micro_batch\":%lld,\"step_s\":%.6f,"
           "\"%s_per_s\":%.1f,\"gflops\":%.1f,\"product_gflops\":%.1f,\"share\":%.3f,"
           "\"data_wait_share\":%.4f,\"memory_mb\":%.0f,\"bubble\":%.4f}\n",
           model_name(t), t->world->size, t->shape.dp, t->shape.pp, t->shape.tp,
           t->backend->options.threads, (long long)t->batch, (long long)t->micro_batch, b->median_s,
           row_name(t), b->rows_per_s, b->gflops, b->product_gflops, product_share(b),
           b->wait_share, b->memory_mb, b->bubble);
}

static void print_text(const Trainer *t, const StepBench *b)
{
    printf("%s, %d ranks as %dx%dx%d x %d threads, batch %lld in micro-batches of %lld: step %.6f "
           "s, %.1f %s/s, %.1f GFLOP/s of %.1f that matrix products reach (%.3f); waiting for data "
           "%.4f; peak memory of all ranks %.0f MB",
           model_name(t), t->world->size, t->shape.dp, t->shape.pp, t->shape.tp,
           t->backend->options.threads, (long long)t->batch, (long long)t->micro_batch, b->median_s,
           b->rows_per_s, row_name(t), b->gflops, b->product_gflops, product_share(b),
           b->wait_share, b->memory_mb);
    if (t->shape.pp > 1) printf("; bubble %.4f (%s)", b->bubble, t->schedule->name);
    printf("\n");
}

static Status measure(const Config *config, const World *world, StepBench *bench)
{
    Trainer *t = NULL;
    TRY(trainer_new(&t, config, world));
    Status st = time_steps(t, bench);
    bench->memory_mb = sum_ranks(world, peak_memory());
    bench->rows_per_s = (double)(t->batch * t->rows_per_sample) / bench->median_s;
    bench->gflops = micro_flops(t->graph) * t->micros / bench->median_s * 1e-9;
    if (st == OK && t->backend->table->host_memory)
        st = product_rate(t->backend, world, &bench->product_gflops);
    if (st == OK && world->rank == 0) (bench->json ? print_json : print_text)(t, bench);
    trainer_free(&t);
    return st;
}

/* Made-up data lives in a file of its own, which `run` removes at the end: real samples, so that the loader works as in a
 * run. */
static Status make_tokens(const Config *config, const char *path)
{
    int64_t vocab = config->model.vocab ? config->model.vocab : config->model.size ? 50257 : 256;
    int64_t context = config->model.context ? config->model.context : 1024;
    int64_t count = 4 * config->train.batch * context + 1;
    char *raw = mem_format("%s.raw", path);
    uint32_t *token = mem_new((size_t)count * sizeof *token);
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    for (int64_t i = 0; i < count; ++i) token[i] = rng_u32(key, (uint64_t)i) % (uint32_t)vocab;
    FILE *file = fopen(raw, "wb");
    bool good = file && fwrite(token, sizeof *token, (size_t)count, file) == (size_t)count;
    good = file && fclose(file) == 0 && good;
    Status st = good ? OK : fail(ERR_IO, "%s: cannot be written", raw);
    if (good) st = data_import_tokens(raw, 32, vocab, path, NULL, 0, true);
    unlink(raw);
    mem_free(&token);
    mem_free(&raw);
    return st;
}

/* Under a name of its own first: the folder may be each node's, or all nodes'. */
static Status make_file(const Job *job, const StepBench *bench, const char *path)
{
    int64_t classes = job->config->model.classes ? job->config->model.classes : 10;
    int64_t samples = 4 * job->config->train.batch;
    char *own = mem_format("%s.%d", path, job->world.rank);
    Status st = bench->tokens ? make_tokens(job->config, own)
                              : data_import_random(own, bench->input, classes, samples, 1);
    if (st == OK && rename(own, path) != 0) st = fail(ERR_IO, "%s: cannot be written", path);
    mem_free(&own);
    return st;
}

/* Every node's first rank makes the same file. */
static Status make_data(Job *job, const StepBench *bench, char *path, size_t room)
{
    const char *folder = getenv("TMPDIR");
    if (job->world.rank == 0)
        snprintf(path, room, "%s/weft-bench-%d.h5", folder ? folder : "/tmp", (int)getpid());
    world_bcast(&job->world, path, room, 0);
    TRY(status_agree(&job->world, job->world.node_rank == 0 ? make_file(job, bench, path) : OK));
    mem_free(&job->config->data.train);
    mem_free(&job->config->data.test);
    job->config->data.train = mem_text(path);
    return OK;
}

static Status parse_input(const char *text, StepBench *bench)
{
    int c, h, w, end = 0;
    if (strcmp(text, "tokens") == 0) {
        bench->tokens = true;
        return OK;
    }
    if (sscanf(text, "%dx%dx%d%n", &c, &h, &w, &end) != 3 || text[end] != 0 || c < 1 || h < 1 ||
        w < 1)
        return fail(ERR_USAGE,
                    "--input %s: wanted channels x height x width, like 3x224x224, or tokens",
                    text);
    bench->input = shape_of(4, 1, c, h, w);
    return OK;
}

static Status parse_steps(const char *text, int *steps)
{
    char *end;
    long value = strtol(text, &end, 10);
    if (*end != 0 || end == text || value < 1 || value > 1000000)
        return fail(ERR_USAGE, "--steps %s: wanted a number from 1 to 1000000", text);
    *steps = (int)value;
    return OK;
}

static Status run(Job *job, StepBench *bench)
{
    char path[DATA_PATH] = "";
    Status st = OK;
    if (bench->input.ndim || bench->tokens)
        st = make_data(job, bench, path, sizeof path);
    else if (!job->config->data.train)
        st = config_fail_key(
            job->config, "data.train",
            "no data: set data.train, or make some up with --input 3x224x224 or --input tokens");
    if (st == OK) st = measure(job->config, &job->world, bench);
    if (*path && job->world.node_rank == 0) unlink(path);
    return st;
}

Status bench_step(int argc, char **argv)
{
    StepBench bench = {.steps = 20, .warmup = 3};
    const char *input = NULL, *steps = NULL;
    const Flag flags[] = {
        {"--input", &input, NULL}, {"--steps", &steps, NULL}, {"--json", NULL, &bench.json}};
    TRY(flags_take(&argc, argv, flags, 3));
    if (input) TRY(parse_input(input, &bench));
    if (steps) TRY(parse_steps(steps, &bench.steps));
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run(&job, &bench);
    return job_close(&job, status);
}
