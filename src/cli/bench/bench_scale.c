/* weft bench scale: measures how much faster steps are on more ranks. Steps are measured on one
 * replica, then on 2, 4, 8, ... replicas, and on all replicas of the job. A replica has grid.pp x
 * grid.tp ranks, and the same micro-batch in every measurement. Ranks that are not needed sleep. An
 * example with replicas of one rank:
 *
 *     ranks           0    1    2    3
 *     1 replica       step .    .    .
 *     2 replicas      step step .    .
 *     4 replicas      step step step step
 *
 * There are two tables. Strong scaling: all measurements have the same batch. Weak scaling: the
 * batch is in proportion to the number of ranks. */
#include "bench_scale.h"

#include <math.h>
#include <stdlib.h>

typedef struct ScaleOptions {
    int64_t ranks, steps, warmup;
    const char *input, *machine;
    bool json;
} ScaleOptions;

/* Forecasts the step of a row from the machine's times. If it cannot be forecast, sets the row's
 * forecast_note. Called on rank 0. */
static void forecast(const Scale *s, const Trainer *t, ScaleRow *row)
{
    Forecast result;
    Plan **plan = NULL;
    const ForecastMachine by = {&s->machine, s->machine_path, .median_only = true};
    Status st = train_plans(t, &plan);
    if (st == OK) st = train_forecast(t, (const Plan *const *)plan, &by, &result);
    train_plans_free(t, &plan);
    if (st == OK)
        row->forecast_s = result.step.median;
    else
        row->forecast_note = mem_text(fail_message());
}

/* Checks that less than half of the steps have the short batch at the end of an epoch. ERR_CONFIG:
 * the set has too few samples. */
static Status check_batch(const Trainer *t)
{
    int64_t samples = trainer_train_set(t)->samples, batch = trainer_sizes(t).batch;
    if (samples == batch || samples >= 2 * batch) return OK;
    return config_fail_key(trainer_config(t), "train.batch",
                           "the %lld samples of data.train are fewer than two batches of %lld, so "
                           "shorter batches would be timed: lower train.batch, or use --input",
                           (long long)samples, (long long)batch);
}

/* Measures a row on the ranks of `part`, and sets the fields of s about the model. Collective on
 * `part`; all ranks return the same Status. */
static Status measure(Scale *s, const World *part, ScaleRow *row)
{
    Trainer *t = NULL;
    BenchSteps times;
    s->config->train.batch = row->batch;
    Status st = trainer_new(&t, s->config, part);
    if (st == OK) st = check_batch(t);
    if (st == OK) st = bench_steps(&times, t, s->warmup, s->steps);
    if (st == OK) {
        TrainSizes sizes = trainer_sizes(t);
        s->micro_batch = sizes.micro_batch;
        s->counted_units_per_sample = sizes.counted_units_per_sample;
        s->row_name = bench_row_name(t);
        s->model = bench_model_name(t);
        s->precision = bench_precision_name(t);
        s->device = trainer_backend(t)->table->name;
        row->step_s = times.median_s;
        row->note = train_padding_text(t);
    }
    if (st == OK && part->rank == 0 && *s->machine_path) forecast(s, t, row);
    trainer_free(&t);
    return st;
}

/* Measures a row that is not the first. If the measurement fails, the row's note says why.
 * Collective on `part`. */
static void measure_further(Scale *s, const World *part, ScaleRow *row)
{
    int64_t micro_batches = row->batch / s->micro_batch;
    if (micro_batches < row->replicas)
        row->note =
            mem_format("%lld micro-batch%s cannot be divided among %d replicas: lower "
                       "train.micro_batch, or raise train.batch",
                       (long long)micro_batches, micro_batches == 1 ? "" : "es", row->replicas);
    else if (measure(s, part, row) != OK)
        row->note = mem_text(fail_message());
}

/* Measures row i of both tables. The first rows of the two tables are the same, so row 0 is
 * measured once. Collective. */
static Status measure_rows(Scale *s, const World *world, int i)
{
    World part;
    ScaleRow *strong = &s->strong[i], *weak = &s->weak[i];
    bool takes_part = world->rank < strong->ranks;
    Status st = OK;
    TRY(world_split(&part, world, takes_part));
    if (takes_part && i == 0) {
        st = measure(s, &part, strong);
        *weak = *strong;
        if (strong->note) weak->note = mem_text(strong->note);
        if (strong->forecast_note) weak->forecast_note = mem_text(strong->forecast_note);
    } else if (takes_part) {
        measure_further(s, &part, strong);
        measure_further(s, &part, weak);
    }
    /* ranks that do not take part sleep here */
    st = status_agree(world, st);
    world_part_fini(&part);
    return st;
}

/* Measures all rows. Collective. */
static Status measure_all(const Config *config, const World *world, void *scale)
{
    Scale *s = scale;
    (void)config;
    TRY(measure_rows(s, world, 0));
    world_bcast(world, &s->micro_batch, sizeof s->micro_batch, 0);
    s->config->train.micro_batch = s->micro_batch;
    for (int i = 1; i < s->count; ++i) TRY(measure_rows(s, world, i));
    return OK;
}

/* Makes the rows of both tables: for 1, 2, 4, ... replicas, and for all replicas. batch: number of
 * samples in a batch on one replica. */
static void make_rows(Scale *s, GridShape shape, int64_t batch)
{
    enum { ROWS_MAX = 33 };
    s->strong = mem_new(ROWS_MAX * sizeof *s->strong);
    s->weak = mem_new(ROWS_MAX * sizeof *s->weak);
    for (int64_t next = 1, replicas = 0; replicas < shape.dp; next *= 2) {
        replicas = next < shape.dp ? next : shape.dp;
        s->strong[s->count] = (ScaleRow){.replicas = (int)replicas,
                                         .ranks = (int)replicas * shape.pp * shape.tp,
                                         .batch = batch,
                                         .step_s = NAN,
                                         .forecast_s = NAN};
        s->weak[s->count] = s->strong[s->count];
        s->weak[s->count++].batch = batch * replicas;
    }
}

static void scale_fini(Scale *s)
{
    for (int i = 0; i < s->count; ++i) {
        mem_free(&s->strong[i].note);
        mem_free(&s->strong[i].forecast_note);
        mem_free(&s->weak[i].note);
        mem_free(&s->weak[i].forecast_note);
    }
    mem_free(&s->strong);
    mem_free(&s->weak);
    machine_fini(&s->machine);
}

static Status run_job(Job *job, const ScaleOptions *o)
{
    Config *config = job->config;
    const int64_t batch = config->train.batch;
    Input input;
    char path[DATA_PATH];
    config->grid.dp = 0;
    Scale s = {.config = config,
               .machine_path = o->machine ? o->machine : config->run.machine,
               .warmup = (int)o->warmup,
               .steps = (int)o->steps};
    TRY(bench_check_servers(config, "scale"));
    TRY(bench_input_parse(o->input, &input));
    TRY(grid_shape(&s.shape, config, job->world.size));
    const bool reads = *s.machine_path && job->world.rank == 0;
    TRY(status_agree(&job->world, reads ? machine_read(&s.machine, s.machine_path) : OK));
    make_rows(&s, s.shape, batch);
    /* if random data are generated, there must be enough for the largest batch */
    config->train.batch = s.weak[s.count - 1].batch;
    Status st = bench_data_begin(job, &input, path);
    bench_fix_threads(config, &job->world);
    config->train.log_every = o->warmup + o->steps + 1;
    if (st == OK) st = train_with_rank_map(config, &job->world, measure_all, &s);
    if (st == OK && job->world.rank == 0) (o->json ? scale_print_json : scale_print_text)(&s);
    bench_data_end(job, path);
    scale_fini(&s);
    return st;
}

static const Flag flags[] = {
    FLAG_RANKS(ScaleOptions),
    BENCH_FLAG_INPUT(ScaleOptions),
    {"--steps", FLAG_FIELD(ScaleOptions, steps), .value = "S", .lo = 1, .hi = 1000000,
     .default_text = "20", .help = "steps to time for each row"},
    {"--warmup", FLAG_FIELD(ScaleOptions, warmup), .value = "S", .hi = 1000000, .default_text = "5",
     .help = "steps before the timed steps"},
    {"--machine", FLAG_FIELD(ScaleOptions, machine), .value = "FILE",
     .help = "times of weft bench machine, for a forecast of each row (default: run.machine)"},
    {"--json", FLAG_FIELD(ScaleOptions, json), .help = "one JSON object"},
};

static Status run(int argc, char **argv, const void *options)
{
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, options);
    return job_close(&job, status);
}

const Verb verb_bench_scale = {
    .name = "bench scale",
    .words = "CONFIG [key=value ...]",
    .help = "measures steps on 1, 2, 4, ... ranks: speed-up and efficiency, strong and weak",
    VERB_FLAGS(ScaleOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
