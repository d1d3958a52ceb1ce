/* weft bench step: measures how fast a training step is, next to the rate of the machine's own
 * matrix products. The step is the one that weft train runs, with loader, sums and optimizer;
 * missing data sets are made up. */
#include "bench.h"
#include "../private.h"

#include "data/import.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct StepBench {
    int steps, warmup;
    bool json, kernels;
    /* made-up data; no shape and no tokens: the configuration's data set */
    Input input;
    BenchProduct product;
    /* flops: model flop/s */
    double median_s, mean_s, rows_per_s, flops;
    /* shares of the steps' time: the host waits for data; the compute stream waits for sums */
    double data_share, sum_share;
    double sum_waits; /* waits of the compute stream for a sum, per step */
    double memory_mb;
    /* memory of all ranks' devices in MB: taken, planned, and taken by libraries and graphs outside
     * the plan; NaN: devices that use host memory */
    double device_mb, device_planned_mb, device_unplanned_mb;
    double bubble; /* share of the stages' time in which they wait for each other; NaN: not known */
} StepBench;

/* Model flops of one micro-batch: matrix products of dense layers, convolutions and causal
 * attention (half of the square), forward and backward, for gradients of inputs and of weights that
 * are trained. Neither elementwise work nor recomputation is counted. Slices of a tensor-parallel
 * group are summed. */
static double micro_flops(const Trainer *t)
{
    GridShape shape = trainer_shape(t);
    const Graph *graph = trainer_graph(t);
    double flops = 0;
    for (int i = 0; i < graph->node_count; ++i) {
        const Op *op = graph->node[i].op;
        const OpSpec *s = &op->spec;
        int passes = s->w_count > 0 ? 1 + s->need_dx[0] + !s->frozen : s->need_dx[0] ? 3 : 1;
        if (op_info(s->kind)->macs) flops += op->flops_forward * passes;
    }
    return bench_sum_ranks(trainer_world(t), flops) / (shape.dp * shape.pp);
}

/* seconds of the host so far */
typedef struct Counters {
    double data, work, messages;
} Counters;

static Counters counters_now(const Trainer *t)
{
    return (Counters){.data = trainer_data_wait_s(t),
                      .work = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD),
                      .messages = phase_s(PHASE_MESSAGES)};
}

/* Returns the share of idle time. The stage with the longest working and waiting time is idle only
 * before its first and after its last work, so its time is the span of the steps. NaN if work is
 * only queued, because then the host's times say nothing. */
static double bubble_of(const Trainer *t, Counters before)
{
    const World *world = trainer_world(t);
    Counters now = counters_now(t);
    double work = now.work - before.work;
    double span = bench_most_of_ranks(world, work + now.messages - before.messages);
    double all = bench_sum_ranks(world, work);
    return trainer_backend(t)->table->host_memory ? 1 - all / (span * world->size) : (double)NAN;
}

static Status run_steps(Trainer *t, Stopwatch *watch, int steps)
{
    StepResult result;
    Status st = train_begin_steps(t);
    for (int i = 0; st == OK && i < steps; ++i) {
        stopwatch_start(watch);
        st = train_step(t, &result);
        stopwatch_stop(watch);
    }
    return st;
}

/* waits: laps of waiting for sums over replicas; NULL: there are no sums. */
static void figures(const Trainer *t, StepBench *bench, Stopwatch *steps, Stopwatch *waits,
                    Counters before)
{
    const World *world = trainer_world(t);
    int count = stopwatch_laps(steps);
    double *time = mem_new((size_t)count * sizeof *time), total = 0;
    for (int i = 0; i < count; ++i) total += time[i] = stopwatch_period_s(steps, i);
    bench->mean_s = total / count;
    bench->median_s = median(time, count);
    bench->data_share = (trainer_data_wait_s(t) - before.data) / total;
    double waited = waits ? stopwatch_sum_s(waits) : 0;
    int laps = waits ? stopwatch_laps(waits) : 0;
    bench->sum_share = bench_most_of_ranks(world, waited / total);
    bench->sum_waits = bench_most_of_ranks(world, laps) / count;
    bench->bubble = bubble_of(t, before);
    mem_free(&time);
}

/* Uses the clock of the compute stream, so that the host does not wait for the GPU between
 * steps. */
static Status time_steps(Trainer *t, StepBench *bench)
{
    Backend *backend = trainer_backend(t);
    Stopwatch *steps = stopwatch_new(backend), *waits = stopwatch_new(backend);
    Status st = run_steps(t, steps, bench->warmup);
    backend->table->sync(backend->table->stream(backend));
    stopwatch_clear(steps);
    bool sums = trainer_watch_sums(t, waits);
    Counters before = counters_now(t);
    if (st == OK) st = run_steps(t, steps, bench->steps);
    if (st == OK) figures(t, bench, steps, sums ? waits : NULL, before);
    trainer_watch_sums(t, NULL);
    stopwatch_free(&steps);
    stopwatch_free(&waits);
    return st;
}

static const char *model_name(const Trainer *t)
{
    const Config *config = trainer_config(t);
    return config->model.name[0] ? config->model.name : "layers";
}

static const char *row_name(const Trainer *t)
{
    return data_kind(trainer_train_set(t))->next_token ? "tokens" : "samples";
}

static const char *precision_name(const Trainer *t)
{
    static const char *const names[] = {PRECISION_WORDS(LIST_NAME)};
    return names[trainer_config(t)->train.precision];
}

static void print_json(const Trainer *t, const StepBench *b)
{
    TrainSizes sizes = trainer_sizes(t);
    GridShape shape = trainer_shape(t);
    Backend *backend = trainer_backend(t);
    char rate[32];
    Json json = json_to(stdout, false);
    json_object(&json, NULL);
    json_text(&json, "bench", "step");
    json_text(&json, "model", model_name(t));
    json_text(&json, "device", backend->table->name);
    json_text(&json, "precision", precision_name(t));
    json_int(&json, "ranks", trainer_world(t)->size);
    json_format(&json, "grid", "%dx%dx%d", shape.dp, shape.pp, shape.tp);
    json_int(&json, "threads", backend->options.threads);
    json_int(&json, "batch", sizes.batch);
    json_int(&json, "micro_batch", sizes.micro_batch);
    json_fixed(&json, "step_s", 9, b->median_s);
    json_fixed(&json, "mean_step_s", 9, b->mean_s);
    snprintf(rate, sizeof rate, "%s_per_s", row_name(t));
    json_fixed(&json, rate, 3, b->rows_per_s);
    json_fixed(&json, "gflops", 9, b->flops * 1e-9);
    json_fixed(&json, "product_gflops", 9, b->product.flops * 1e-9);
    json_int(&json, "product_size", b->product.size);
    json_fixed(&json, "share", 9, b->flops / b->product.flops);
    json_fixed(&json, "data_wait_share", 4, b->data_share);
    json_fixed(&json, "sum_wait_share", 4, b->sum_share);
    json_fixed(&json, "sum_waits", 1, b->sum_waits);
    json_fixed(&json, "memory_mb", 0, b->memory_mb);
    json_real(&json, "device_mb", b->device_mb);
    json_real(&json, "device_planned_mb", b->device_planned_mb);
    json_real(&json, "device_unplanned_mb", b->device_unplanned_mb);
    json_real(&json, "bubble", b->bubble);
    json_end(&json);
}

static void print_text(const Trainer *t, const StepBench *b)
{
    TrainSizes sizes = trainer_sizes(t);
    GridShape shape = trainer_shape(t);
    Backend *backend = trainer_backend(t);
    printf("%s, %s on %s, %d ranks as %dx%dx%d x %d threads, batch %lld in micro-batches of %lld: "
           "step %.6f s, %.1f %s/s, %.4g TFLOP/s of %.4g that products of %lld x %lld x %lld reach "
           "(%.3f; the model's flops, attention's causal half); waiting for data %.4f, for sums "
           "%.4f; peak memory of all ranks %.0f MB",
           model_name(t), precision_name(t), backend->table->name, trainer_world(t)->size, shape.dp,
           shape.pp, shape.tp, backend->options.threads, (long long)sizes.batch,
           (long long)sizes.micro_batch, b->median_s, b->rows_per_s, row_name(t), b->flops * 1e-12,
           b->product.flops * 1e-12, (long long)b->product.size, (long long)b->product.size,
           (long long)b->product.size, b->flops / b->product.flops, b->data_share, b->sum_share,
           b->memory_mb);
    if (!isnan(b->device_mb))
        printf(", of their GPUs %.0f MB (%.0f planned; libraries and graphs %.0f more)",
               b->device_mb, b->device_planned_mb, b->device_unplanned_mb);
    if (shape.pp > 1 && !isnan(b->bubble))
        printf("; bubble %.4f (%s)", b->bubble, trainer_schedule(t)->name);
    printf("\n");
}

/* Measures the memory of all ranks' GPUs in MB: taken, planned, and outside the plan. */
static void measure_device(const Trainer *t, StepBench *bench)
{
    Backend *backend = trainer_backend(t);
    const World *world = trainer_world(t);
    double taken = 0, left;
    bench->device_mb = bench->device_planned_mb = bench->device_unplanned_mb = (double)NAN;
    if (!backend->table->memory) return;
    backend->table->memory(backend, &taken, &left);
    double planned = (double)train_bytes(t, trainer_plan(t)).all;
    bench->device_mb = round(bench_sum_ranks(world, taken) * 1e-6);
    bench->device_planned_mb = round(bench_sum_ranks(world, planned) * 1e-6);
    bench->device_unplanned_mb = round(bench_sum_ranks(world, trainer_device_unplanned(t)) * 1e-6);
}

static Status measure(const Config *config, const World *world, StepBench *bench)
{
    Trainer *t = NULL;
    TRY(trainer_new(&t, config, world));
    TrainSizes sizes = trainer_sizes(t);
    Status st = time_steps(t, bench);
    bench->memory_mb =
        bench_sum_ranks(world, proc_bytes("/proc/self/status", "VmHWM:") / (1 << 20));
    measure_device(t, bench);
    bench->rows_per_s = (double)(sizes.batch * sizes.rows_per_sample) / bench->median_s;
    bench->flops = micro_flops(t) * sizes.micros / bench->median_s;
    if (st == OK) st = bench_product(&bench->product, trainer_backend(t), world);
    if (st == OK && world->rank == 0) (bench->json ? print_json : print_text)(t, bench);
    if (st == OK && bench->kernels) bench_model(t, bench->json);
    trainer_free(&t);
    return st;
}

/* Made-up samples are written to a file, which run_job removes at the end, so that the loader works
 * as in training. */
static Status make_tokens(const Config *config, const char *path)
{
    int64_t vocab = config->model.vocab  ? config->model.vocab
                    : config->model.size ? GPT2_VOCAB
                                         : 256;
    int64_t context = config->model.context ? config->model.context : 1024;
    int64_t count = 4 * config->train.batch * context + 1;
    char *raw = mem_format("%s.raw", path);
    uint32_t *token = mem_new((size_t)count * sizeof *token);
    RngKey key = rng_key(1, RNG_TEST, 0, 0);
    for (int64_t i = 0; i < count; ++i) token[i] = rng_u32(key, (uint64_t)i) % (uint32_t)vocab;
    FILE *file = file_create_stream(raw);
    bool good = file && fwrite(token, sizeof *token, (size_t)count, file) == (size_t)count;
    good = file && fclose(file) == 0 && good;
    Status st = good ? OK : fail(ERR_IO, "%s: cannot be written", raw);
    if (good) st = data_import_tokens(raw, 32, vocab, path, NULL, 0, true);
    unlink(raw);
    mem_free(&token);
    mem_free(&raw);
    return st;
}

/* Writes a temporary file first, because the folder may belong to one node or be shared by all
 * nodes. */
static Status make_file(const Job *job, const StepBench *bench, const char *path)
{
    int64_t classes = job->config->model.classes ? job->config->model.classes : 10;
    int64_t samples = 4 * job->config->train.batch;
    char *rank_path = mem_format("%s.%d", path, job->world.rank);
    Status st = bench->input.tokens
                    ? make_tokens(job->config, rank_path)
                    : data_import_random(rank_path, bench->input.shape, classes, samples, 1);
    if (st == OK && rename(rank_path, path) != 0) st = fail(ERR_IO, "%s: cannot be written", path);
    mem_free(&rank_path);
    return st;
}

/* The first rank of every node makes the same file. */
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

static Status run_job(Job *job, StepBench *bench)
{
    char path[DATA_PATH] = "";
    Status st = OK;
    if (bench->input.shape.ndim || bench->input.tokens)
        st = make_data(job, bench, path, sizeof path);
    else if (!job->config->data.train)
        st = config_fail_key(
            job->config, "data.train",
            "no data: set data.train, or make some up with --input 3x224x224 or --input tokens");
    if (st == OK && job->config->grid.servers > 0)
        st =
            config_fail_key(job->config, "grid.servers",
                            "all ranks of weft bench compute: set 0, or read what weft train says");
    /* Log no step: a line in metrics.jsonl needs the gradient's norm, for which the host waits for
     * the GPU. */
    job->config->train.log_every = bench->warmup + bench->steps + 1;
    if (st == OK) st = measure(job->config, &job->world, bench);
    if (*path && job->world.node_rank == 0) unlink(path);
    return st;
}

typedef struct StepOptions {
    int64_t ranks, steps, warmup;
    const char *input;
    bool kernels, json;
} StepOptions;

static const Flag flags[] = {
    FLAG_RANKS(StepOptions),
    {"--input", FLAG_FIELD(StepOptions, input), .value = "CxHxW|tokens",
     .help = "random images of this shape, or random tokens, instead of data.train"},
    {"--steps", FLAG_FIELD(StepOptions, steps), .value = "S", .lo = 1, .hi = 1000000,
     .fallback = "20", .help = "steps to time"},
    {"--warmup", FLAG_FIELD(StepOptions, warmup), .value = "S", .hi = 1000000, .fallback = "5",
     .help = "untimed steps before them"},
    {"--kernels", FLAG_FIELD(StepOptions, kernels),
     .help = "also memory-bound kernels, each compared with a copy of as many bytes"},
    {"--json", FLAG_FIELD(StepOptions, json),
     .help = "one JSON object; with --kernels several, one per line"},
};

static Status run(int argc, char **argv, const void *options)
{
    const StepOptions *o = options;
    StepBench bench = {
        .steps = (int)o->steps, .warmup = (int)o->warmup, .json = o->json, .kernels = o->kernels};
    if (o->input) TRY(input_parse(o->input, &bench.input));
    if (bench.input.shape.ndim == 2)
        return fail(ERR_USAGE, "--input %s: only images and tokens are made up: give data.train",
                    o->input);
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, &bench);
    return job_close(&job, status);
}

const Verb verb_bench_step = {
    .name = "bench step",
    .words = "CONFIG [key=value ...]",
    .help = "measures training steps per second, and the machine's rate of matrix products",
    VERB_FLAGS(StepOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
