/* weft bench step: measures how long a training step takes, and compares its flop/s with the flop/s
 * of matrix products on the same machine. The step is the one that weft train runs, with loader,
 * sums and optimizer. With --input, random samples are generated. */
#include "bench.h"
#include "../private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Options and results of a measurement. */
typedef struct StepBench {
    /* number of steps that are timed */
    int steps;
    /* number of steps before the timed ones */
    int warmup;
    /* true: the result is printed as JSON */
    bool json;
    /* true: memory-bound operations are measured, too (bench_model) */
    bool kernels;
    /* path of the file with the times for which operations sleep instead of computing; NULL:
     * operations compute */
    const char *pretend;
    /* random data to generate, see bench_data_begin */
    Input input;
    BenchProduct product;
    BenchSteps times;
    /* samples or tokens per second (bench_row_name) */
    double rows_per_s;
    /* flop/s of the model */
    double flops;
    /* sum of the peak memory of all ranks' processes, in units of 10^6 bytes */
    double memory_mb;
    /* The next three fields are sums over all ranks' GPUs, in units of 10^6 bytes; NaN without
     * GPUs. */
    /* memory in use */
    double device_mb;
    /* planned memory */
    double device_planned_mb;
    /* memory that libraries and CUDA graphs use in addition to the plan */
    double device_unplanned_mb;
} StepBench;

/* Returns the model's flops for one micro-batch. Only matrix products of dense layers, convolutions
 * and attention are counted: those in forward, and those for the gradients of inputs and of trained
 * weights. For causal attention half of the square matrix is counted. Elementwise work and
 * recomputation are not counted. Collective. */
static double micro_flops(const Trainer *t)
{
    GridShape shape = trainer_shape(t);
    const Graph *graph = trainer_graph(t);
    double flops = 0;
    for (int i = 0; i < graph->node_count; ++i) {
        const Op *op = graph->node[i].op;
        const OpSpec *s = &op->spec;
        /* A layer with weights has one product in forward, one for the gradient of its input and
         * one for the gradient of its weights. Attention has no weights, but a product in forward
         * has two inputs, and backward has a product for the gradient of each. */
        int passes = s->w_count > 0 ? 1 + s->need_dx[0] + !s->frozen : s->need_dx[0] ? 3 : 1;
        if (op_info(s->kind)->macs) flops += op->flops_forward * passes;
    }
    return bench_sum_ranks(trainer_world(t), flops) / (shape.dp * shape.pp);
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
    json_text(&json, "model", bench_model_name(t));
    json_text(&json, "device", backend->table->name);
    json_text(&json, "precision", bench_precision_name(t));
    json_int(&json, "ranks", trainer_world(t)->size);
    json_format(&json, "grid", "%dx%dx%d", shape.dp, shape.pp, shape.tp);
    json_int(&json, "threads", backend->options.threads);
    json_int(&json, "batch", sizes.batch);
    json_int(&json, "micro_batch", sizes.micro_batch);
    json_fixed(&json, "step_s", 9, b->times.median_s);
    json_fixed(&json, "mean_step_s", 9, b->times.mean_s);
    snprintf(rate, sizeof rate, "%s_per_s", bench_row_name(t));
    json_fixed(&json, rate, 3, b->rows_per_s);
    json_fixed(&json, "gflops", 9, b->flops * 1e-9);
    json_fixed(&json, "product_gflops", 9, b->product.flops * 1e-9);
    json_int(&json, "product_size", b->product.size);
    json_fixed(&json, "share", 9, b->flops / b->product.flops);
    json_fixed(&json, "data_wait_share", 4, b->times.data_wait_fraction);
    json_fixed(&json, "sum_wait_share", 4, b->times.sum_wait_fraction);
    json_fixed(&json, "sum_waits", 1, b->times.sum_waits);
    json_fixed(&json, "memory_mb", 0, b->memory_mb);
    json_real(&json, "device_mb", b->device_mb);
    json_real(&json, "device_planned_mb", b->device_planned_mb);
    json_real(&json, "device_unplanned_mb", b->device_unplanned_mb);
    json_real(&json, "bubble", b->times.bubble);
    json_end(&json);
}

static void print_text(const Trainer *t, const StepBench *b)
{
    TrainSizes sizes = trainer_sizes(t);
    GridShape shape = trainer_shape(t);
    Backend *backend = trainer_backend(t);
    printf("%s, %s on %s, %d ranks as %dx%dx%d x %d threads, batch %lld in micro-batches of %lld: "
           "step %.6f s, %.1f %s/s, %.4g TFLOP/s of the model (of causal attention, half of the "
           "square) of %.4g TFLOP/s of products of %lld x %lld x %lld: %.3f; waiting for data %.4f "
           "of the time, for sums %.4f; peak memory of all ranks %.0f MB",
           bench_model_name(t), bench_precision_name(t), backend->table->name,
           trainer_world(t)->size, shape.dp, shape.pp, shape.tp, backend->options.threads,
           (long long)sizes.batch, (long long)sizes.micro_batch, b->times.median_s, b->rows_per_s,
           bench_row_name(t), b->flops * 1e-12, b->product.flops * 1e-12,
           (long long)b->product.size, (long long)b->product.size, (long long)b->product.size,
           b->flops / b->product.flops, b->times.data_wait_fraction, b->times.sum_wait_fraction,
           b->memory_mb);
    if (!isnan(b->device_mb))
        printf(", of their GPUs %.0f MB (%.0f planned; libraries and graphs %.0f more)",
               b->device_mb, b->device_planned_mb, b->device_unplanned_mb);
    if (shape.pp > 1 && !isnan(b->times.bubble))
        printf("; bubble %.4f (%s)", b->times.bubble, trainer_schedule(t)->name);
    printf("\n");
}

/* Sets the fields about the memory of all ranks' GPUs. Collective. */
static void measure_device_memory(const Trainer *t, StepBench *bench)
{
    Backend *backend = trainer_backend(t);
    const World *world = trainer_world(t);
    double used = 0, left;
    bench->device_mb = bench->device_planned_mb = bench->device_unplanned_mb = (double)NAN;
    if (!backend->table->memory) return;
    backend->table->memory(backend, &used, &left);
    double planned = (double)train_bytes(t, trainer_plan(t)).all;
    bench->device_mb = round(bench_sum_ranks(world, used) * 1e-6);
    bench->device_planned_mb = round(bench_sum_ranks(world, planned) * 1e-6);
    bench->device_unplanned_mb = round(bench_sum_ranks(world, trainer_device_unplanned(t)) * 1e-6);
}

/* Reads the file of --pretend. *seconds: times for which operations sleep (train_part_times); the
 * caller owns them. */
static Status read_pretended(const Trainer *t, const char *path, PartSeconds **seconds)
{
    Machine machine;
    if (!trainer_backend(t)->table->host_memory)
        return fail(ERR_USAGE, "--pretend %s: operations sleep on CPUs only", path);
    TRY(machine_read(&machine, path));
    const ForecastMachine by = {&machine, path, .median_only = true};
    Status st = train_part_times(t, &by, seconds);
    machine_fini(&machine);
    return st;
}

/* Times the steps. If --pretend is given, operations sleep instead of computing. Collective. */
static Status time_steps_or_pretend(Trainer *t, StepBench *bench)
{
    PartSeconds *seconds = NULL;
    if (!bench->pretend) return bench_steps(&bench->times, t, bench->warmup, bench->steps);
    TRY(status_agree(trainer_world(t), read_pretended(t, bench->pretend, &seconds)));
    trainer_pretend(t, seconds);
    Status st = bench_steps(&bench->times, t, bench->warmup, bench->steps);
    trainer_pretend(t, NULL);
    mem_free(&seconds);
    return st;
}

static void print_pretended(const Trainer *t, const StepBench *b)
{
    GridShape shape = trainer_shape(t);
    printf("%d ranks as %dx%dx%d, operations sleep (--pretend %s): step %.6f s, %.1f %s/s\n",
           trainer_world(t)->size, shape.dp, shape.pp, shape.tp, b->pretend, b->times.median_s,
           b->rows_per_s, bench_row_name(t));
}

static Status measure(const Config *config, const World *world, void *step_bench)
{
    StepBench *bench = step_bench;
    Trainer *t = NULL;
    TRY(trainer_new(&t, config, world));
    TrainSizes sizes = trainer_sizes(t);
    if (config->run.map) train_log_ranks(t);
    Status st = time_steps_or_pretend(t, bench);
    bench->memory_mb = bench_sum_ranks(world, proc_bytes("/proc/self/status", "VmHWM:") / 1e6);
    measure_device_memory(t, bench);
    bench->rows_per_s =
        (double)(sizes.batch * sizes.counted_units_per_sample) / bench->times.median_s;
    bench->flops = micro_flops(t) * sizes.micro_batches / bench->times.median_s;
    if (st == OK && !bench->pretend) st = bench_product(&bench->product, trainer_backend(t), world);
    if (st == OK && world->rank == 0)
        (bench->pretend ? print_pretended : bench->json ? print_json : print_text)(t, bench);
    if (st == OK && bench->kernels) bench_model(t, bench->json);
    trainer_free(&t);
    return st;
}

static Status run_job(Job *job, StepBench *bench)
{
    char path[DATA_PATH];
    TRY(bench_data_begin(job, &bench->input, path));
    Status st = bench_check_servers(job->config, "step");
    /* No step is logged: a line in metrics.jsonl has the gradient's norm, and the host would wait
     * for the GPU to get it. */
    job->config->train.log_every = bench->warmup + bench->steps + 1;
    if (st == OK) st = train_with_rank_map(job->config, &job->world, measure, bench);
    bench_data_end(job, path);
    return st;
}

typedef struct StepOptions {
    int64_t ranks, steps, warmup;
    const char *input, *pretend;
    bool kernels, json, map;
} StepOptions;

static const Flag flags[] = {
    FLAG_RANKS(StepOptions),
    {"--input", FLAG_FIELD(StepOptions, input), .value = "CxHxW|tokens",
     .help = "random images of this shape, for a detector with boxes, or random tokens, instead of "
             "data.train"},
    {"--steps", FLAG_FIELD(StepOptions, steps), .value = "S", .lo = 1, .hi = 1000000,
     .default_text = "20", .help = "steps to time"},
    {"--warmup", FLAG_FIELD(StepOptions, warmup), .value = "S", .hi = 1000000, .default_text = "5",
     .help = "steps before the timed steps"},
    {"--kernels", FLAG_FIELD(StepOptions, kernels),
     .help = "also measure memory-bound kernels, each compared with a copy of as many bytes"},
    {"--pretend", FLAG_FIELD(StepOptions, pretend), .value = "FILE",
     .help =
         "operations sleep for their times in this file (see weft bench machine) instead of "
         "being computed: this measures messages and schedule for a machine that is not available"},
    FLAG_MAP(StepOptions),
    {"--json", FLAG_FIELD(StepOptions, json),
     .help = "one JSON object; with --kernels several, one per line"},
};

static Status run(int argc, char **argv, const void *options)
{
    const StepOptions *o = options;
    StepBench bench = {.steps = (int)o->steps,
                       .warmup = (int)o->warmup,
                       .json = o->json,
                       .kernels = o->kernels,
                       .pretend = o->pretend};
    TRY(bench_input_parse(o->input, &bench.input));
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK && o->map) job.config->run.map = true;
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
