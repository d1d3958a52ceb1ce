/* Times training steps, for the benchmarks that make steps, and returns names for their output. */
#include "bench.h"

#include <math.h>

/* Times that this rank's host has spent so far. */
typedef struct Counters {
    /* time of waiting for data */
    double data_wait_s;
    /* time in forward and backward */
    double work_s;
    /* time of sending messages and waiting for them, between stages and in tensor-parallel
     * groups */
    double messages_s;
} Counters;

static Counters counters_now(const Trainer *t)
{
    return (Counters){.data_wait_s = trainer_data_wait_s(t),
                      .work_s = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD),
                      .messages_s = phase_s(PHASE_MESSAGES) + phase_s(PHASE_EXCHANGE)};
}

/* Returns the fraction of the time since `before` in which ranks were idle; mean over the ranks.
 * The total time is that of the rank that spent most time with work and messages. Returns NaN for
 * GPUs: the host only queues work for a GPU, so the host's times are not the times of the work.
 * Collective. */
static double bubble_of(const Trainer *t, Counters before)
{
    const World *world = trainer_world(t);
    Counters now = counters_now(t);
    double work_s = now.work_s - before.work_s;
    double total_s = bench_max_ranks(world, work_s + now.messages_s - before.messages_s);
    double sum_s = bench_sum_ranks(world, work_s);
    return trainer_backend(t)->table->host_memory ? 1 - sum_s / (total_s * world->size)
                                                  : (double)NAN;
}

/* Makes `steps` steps; each is a lap of the stopwatch. */
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

/* Computes the results. steps: stopwatch with a lap for each step. waits: stopwatch with a lap for
 * each wait for a sum over replicas; NULL if there are no sums. before: counters before the steps.
 * Collective. */
static void compute_results(const Trainer *t, BenchSteps *result, Stopwatch *steps,
                            Stopwatch *waits, Counters before)
{
    const World *world = trainer_world(t);
    int count = stopwatch_laps(steps);
    double *time = mem_new((size_t)count * sizeof *time), total = 0;
    for (int i = 0; i < count; ++i) total += time[i] = stopwatch_period_s(steps, i);
    result->mean_s = total / count;
    result->median_s = median(time, count);
    result->data_wait_fraction = (trainer_data_wait_s(t) - before.data_wait_s) / total;
    double wait_s = waits ? stopwatch_sum_s(waits) : 0;
    int laps = waits ? stopwatch_laps(waits) : 0;
    result->sum_wait_fraction = bench_max_ranks(world, wait_s / total);
    result->sum_waits = bench_max_ranks(world, laps) / count;
    result->bubble = bubble_of(t, before);
    mem_free(&time);
}

Status bench_steps(BenchSteps *result, Trainer *t, int warmup, int count)
{
    Backend *backend = trainer_backend(t);
    Stopwatch *steps = stopwatch_new(backend), *waits = stopwatch_new(backend);
    Status st = run_steps(t, steps, warmup);
    backend->table->sync(backend->table->stream(backend));
    stopwatch_clear(steps);
    bool sums = trainer_watch_sums(t, waits);
    Counters before = counters_now(t);
    if (st == OK) st = run_steps(t, steps, count);
    if (st == OK) compute_results(t, result, steps, sums ? waits : NULL, before);
    trainer_watch_sums(t, NULL);
    stopwatch_free(&steps);
    stopwatch_free(&waits);
    return st;
}

const char *bench_model_name(const Trainer *t)
{
    const Config *config = trainer_config(t);
    return config->model.name[0] ? config->model.name : "layers";
}

const char *bench_row_name(const Trainer *t)
{
    return data_has_tokens(trainer_train_set(t)) ? "tokens" : "samples";
}

const char *bench_precision_name(const Trainer *t)
{
    static const char *const names[] = {PRECISION_WORDS(LIST_NAME)};
    return names[trainer_config(t)->train.precision];
}

void bench_fix_threads(Config *config, const World *world)
{
    if (config->train.threads == 0)
        config->train.threads = world_min(world, threads_share(world->node_size));
}

Status bench_check_servers(const Config *config, const char *verb)
{
    if (config->grid.servers == 0) return OK;
    return config_fail_key(config, "grid.servers",
                           "all ranks of weft bench %s compute: set 0, or use the times that weft "
                           "train prints",
                           verb);
}
