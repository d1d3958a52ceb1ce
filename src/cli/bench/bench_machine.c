/* weft bench machine: measures the operations in the steps of a configuration, messages and sums on
 * a node, messages between nodes, memory, and files. The times are saved in a file, from which weft
 * plan forecasts steps. All ranks compute at the same time, as in a run. If grid.pp and grid.tp are
 * 1, each rank trains a model of its own, so that sums do not disturb the times of operations. */
#include "bench.h"
#include "../private.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* WARMUP_STEPS: number of steps before the measured ones. MICROS_MAX: for each operation, at most
 * MICROS_MAX * steps measurements are kept. There is one measurement for each micro-batch. */
enum { WARMUP_STEPS = 3, MICROS_MAX = 64 };

typedef struct MachineOptions {
    int64_t ranks, steps;
    const char *save, *input;
} MachineOptions;

/* ---- operations ---- */

/* Seconds that this rank has spent so far in the phases of a step (base/phase.h). */
typedef struct PhaseTimes {
    double tasks_s, sums_s, messages_s, update_s;
} PhaseTimes;

static PhaseTimes phases_now(void)
{
    return (PhaseTimes){.tasks_s = phase_s(PHASE_FORWARD) + phase_s(PHASE_BACKWARD),
                        .sums_s = phase_s(PHASE_SUM),
                        .messages_s = phase_s(PHASE_MESSAGES) + phase_s(PHASE_EXCHANGE),
                        .update_s = phase_s(PHASE_UPDATE)};
}

/* If a rank that does not wait was on a core for less than this fraction of the time, it shared its
 * core with other processes. */
static const double BUSY_BELOW = 0.9;

/* Times of the measured steps. */
typedef struct StepTimes {
    /* time of each step, [steps]; owned */
    double *step_s;
    /* time of each step's update, [steps]; owned */
    double *update_s;
    /* rest of the time of each step, without tasks, sums, messages, the update and waiting for
     * data, [steps]; owned */
    double *rest_s;
    /* number of measured steps */
    int steps;
    /* time of all tasks of all steps together */
    double tasks_s;
    /* processor time of this process in all steps together */
    double processor_s;
    /* times of the operations; owned */
    OperationTimes *operations;
} StepTimes;

/* Makes a step and sets entry i of the arrays of times. */
static Status time_step(Trainer *t, StepTimes *times, int i)
{
    StepResult result;
    PhaseTimes before = phases_now();
    double wait_s = trainer_data_wait_s(t), begin_s = clock_s();
    TRY(train_step(t, &result));
    PhaseTimes after = phases_now();
    times->step_s[i] = clock_s() - begin_s;
    times->update_s[i] = after.update_s - before.update_s;
    times->rest_s[i] = times->step_s[i] - times->update_s[i] - (trainer_data_wait_s(t) - wait_s) -
                       (after.tasks_s - before.tasks_s) - (after.sums_s - before.sums_s) -
                       (after.messages_s - before.messages_s);
    if (times->rest_s[i] < 0) times->rest_s[i] = 0;
    times->tasks_s += after.tasks_s - before.tasks_s;
    return OK;
}

/* Returns the processor time of this process so far, in seconds. */
static double processor_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static Status time_steps(Trainer *t, StepTimes *times)
{
    int micro_batches = trainer_sizes(t).micro_batches_local;
    StepResult result;
    Status st = train_begin_steps(t);
    for (int i = 0; st == OK && i < WARMUP_STEPS; ++i) st = train_step(t, &result);
    times->operations = operation_times_new(
        trainer_graph(t)->node_count,
        times->steps * (micro_batches < MICROS_MAX ? micro_batches : MICROS_MAX));
    trainer_time_operations(t, times->operations);
    times->processor_s = -processor_s();
    for (int i = 0; st == OK && i < times->steps; ++i) st = time_step(t, times, i);
    times->processor_s += processor_s();
    trainer_time_operations(t, NULL);
    return st;
}

/* ---- the file ---- */

/* The times of one rank, for rank 0. */
typedef struct RankTimes {
    /* the next four fields have the meaning and unit of the fields of Machine with the same
     * names */
    double move_s_per_byte, action_s;
    TimeRange update_s, rest_s;
    /* size of the rank's packed operations (pack_operations) */
    size_t text_bytes;
} RankTimes;

/* Returns the number of parameter elements that a rank of this stage updates. With grid.zero it is
 * the mean over the replicas. */
static double trained_elements(const Trainer *t)
{
    const Plan *plan = trainer_plan(t);
    double elements = (double)plan->trained_elements;
    return plan->zero ? elements / plan->shape.dp : elements;
}

static RankTimes rank_times(const Trainer *t, StepTimes *times)
{
    OperationTotals all = operation_times_totals(times->operations);
    double elements = trained_elements(t),
           between_s = times->tasks_s - all.operations_s - all.moves_s - all.polls_s;
    RankTimes r = {.move_s_per_byte = all.moved_bytes > 0 ? all.moves_s / all.moved_bytes : 0,
                   .action_s = all.actions > 0 ? fmax(between_s / all.actions, 0) : 0};
    r.update_s = time_range(times->update_s, times->steps);
    r.rest_s = time_range(times->rest_s, times->steps);
    if (elements > 0) {
        r.update_s.low /= elements;
        r.update_s.median /= elements;
        r.update_s.high /= elements;
    }
    return r;
}

/* Adds the times of this rank's operations to a machine. */
static void add_operations(const Trainer *t, const OperationTimes *times, Machine *machine)
{
    const Graph *graph = trainer_graph(t);
    for (int i = 0; i < graph->node_count; ++i) {
        OperationTime time = {0};
        bool any = false;
        for (int p = 0; p < OPERATION_PART_COUNT; ++p) {
            time.has[p] = operation_times_range(times, i, (OperationPart)p, &time.part[p]);
            any = any || time.has[p];
        }
        if (!any) continue;
        time.key = operation_key(&graph->node[i].op->spec);
        machine_add(machine, &time);
        mem_free(&time.key);
    }
}

/* Packs the operations of a machine into bytes: for each operation an OperationTime, and then its
 * key with a zero byte. *bytes: their number. The caller owns the result. */
static char *pack_operations(const Machine *machine, size_t *bytes)
{
    char *text;
    FILE *out = open_memstream(&text, bytes);
    if (!out) die("out of memory for the times of operations");
    for (int i = 0; i < machine->operation_count; ++i) {
        const OperationTime *time = &machine->operation[i];
        fwrite(time, sizeof *time, 1, out);
        fwrite(time->key, strlen(time->key) + 1, 1, out);
    }
    fclose(out);
    return text;
}

/* Adds operations that pack_operations has packed to a machine. */
static void unpack_operations(Machine *machine, const char *packed, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        OperationTime time;
        memcpy(&time, packed + at, sizeof time);
        at += sizeof time;
        time.key = (char *)(uintptr_t)(packed + at);
        at += strlen(time.key) + 1;
        machine_add(machine, &time);
    }
}

/* Returns a + b / ranks. a: sum of such shares so far; b: times of another rank. After all ranks
 * the result is the mean. */
static TimeRange range_mean(TimeRange a, TimeRange b, int ranks)
{
    return (TimeRange){a.low + b.low / ranks, a.median + b.median / ranks, a.high + b.high / ranks};
}

/* Adds the operations of all other ranks to rank 0's machine, and sets its means over all ranks.
 * mine, packed: times and packed operations of this rank. Collective. */
static void join_ranks(const World *world, const RankTimes *mine, char *packed, Machine *machine)
{
    RankTimes *all = mem_new((size_t)world->size * sizeof *all);
    size_t *bytes = mem_new((size_t)world->size * sizeof *bytes), total = 0;
    world_allgather(world, mine, sizeof *mine, all);
    for (int r = 0; r < world->size; ++r) total += bytes[r] = all[r].text_bytes;
    char *joined = mem_new(total + 1);
    world_collect(world, packed, bytes, 0, joined);
    if (world->rank == 0) {
        size_t at = 0;
        for (int r = 0; r < world->size; ++r) {
            if (r > 0) unpack_operations(machine, joined + at, bytes[r]);
            at += bytes[r];
            machine->move_s_per_byte += all[r].move_s_per_byte / world->size;
            machine->action_s += all[r].action_s / world->size;
            machine->update_s = range_mean(machine->update_s, all[r].update_s, world->size);
            machine->rest_s = range_mean(machine->rest_s, all[r].rest_s, world->size);
        }
    }
    mem_free(&joined);
    mem_free(&bytes);
    mem_free(&all);
}

/* ---- the verb ---- */

/* Sets the host, the processor, the date, the number of threads and the memory. */
static void describe(Machine *machine, int threads)
{
    char text[CPU_MODEL > 256 ? CPU_MODEL : 256];
    time_t now = time(NULL);
    struct tm utc;
    host_name(text, sizeof text);
    machine->host = mem_text(text);
    machine->cpu = mem_text(cpu_model(text));
    gmtime_r(&now, &utc);
    strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc);
    machine->measured = mem_text(text);
    machine->threads = threads;
    machine->memory_bytes = memory_limit("").bytes;
}

static void print(const Machine *m, double step_s, const char *path)
{
    if (m->nodes > 1) printf("%d nodes: ", m->nodes);
    printf("%d operations, %d rank%s at a time with %d thread%s each: step %.6f s\n"
           "  copies between operations %.2f GB/s, update %.3f ns a parameter, rest of a step %.1f "
           "us\n",
           m->operation_count, m->ranks, m->ranks == 1 ? "" : "s", m->threads,
           m->threads == 1 ? "" : "s", step_s,
           m->move_s_per_byte > 0 ? 1e-9 / m->move_s_per_byte : 0.0, 1e9 * m->update_s.median,
           1e6 * m->rest_s.median);
    printf("  memory of a node %.3g GB/s", 1e-9 * m->memory_bytes_per_s);
    if (m->read_bytes_per_s > 0)
        printf(", files %.3g GB/s reading and %.3g GB/s saving", 1e-9 * m->read_bytes_per_s,
               1e-9 * m->save_bytes_per_s);
    putchar('\n');
    if (m->has_message)
        printf("  messages %.2f us and %.2f GB/s\n", 1e6 * m->message_link.latency_s,
               1e-9 / m->message_link.s_per_byte);
    if (m->has_network)
        printf("  messages between nodes %.2f us and %.3f GB/s; computing takes %.3f times as long "
               "during sums\n",
               1e6 * m->network_link.latency_s, 1e-9 / m->network_link.s_per_byte,
               m->overlap_compute);
    for (int i = 0; i < m->sum_count; ++i)
        printf("  sums over %d ranks %.2f us and %.2f GB/s\n", m->sum_time[i].ranks,
               1e6 * m->sum_time[i].link.latency_s, 1e-9 / m->sum_time[i].link.s_per_byte);
    printf("wrote %s: weft plan CONFIG --machine %s\n", path, path);
}

/* Warns if each rank trains a model of its own, and one of them was on a core for less than
 * BUSY_BELOW of the time. Such a rank never waits for other ranks, so other processes had its core.
 * world, trainer_world: as in `measure`. Collective. */
static void warn_if_busy(const World *world, const World *trainer_world, const StepTimes *times)
{
    double step_s = 0;
    bool waits = trainer_world->size > 1;
    for (int i = 0; i < times->steps; ++i) step_s += times->step_s[i];
    double share = -bench_max_ranks(world, -times->processor_s / step_s);
    if (!waits && share < BUSY_BELOW)
        log_warn("a rank was on a core %.0f %% of the time: other processes ran on this node, so "
                 "these times are too long",
                 100 * share);
}

/* Measures steps, messages, sums, memory and files, and writes the file of times. world: all ranks.
 * trainer_world: the ranks of this rank's trainer, which are all ranks, or this rank alone.
 * Collective on world. */
static Status measure(const Config *config, const World *world, const World *trainer_world,
                      const MachineOptions *o)
{
    Trainer *t = NULL;
    Machine machine = {.overlap_compute = 1};
    TRY(status_agree(world, trainer_new(&t, config, trainer_world)));
    StepTimes times = {.steps = (int)o->steps};
    size_t bytes = (size_t)o->steps * sizeof(double);
    times.step_s = mem_new(bytes);
    times.update_s = mem_new(bytes);
    times.rest_s = mem_new(bytes);
    world_barrier(world);
    Status st = status_agree(world, time_steps(t, &times));
    if (st == OK) {
        RankTimes mine = rank_times(t, &times);
        add_operations(t, times.operations, &machine);
        char *packed = pack_operations(&machine, &mine.text_bytes);
        join_ranks(world, &mine, packed, &machine);
        free(packed);
        describe(&machine, trainer_backend(t)->options.threads);
        machine.setup = train_settings_text(config);
        st = bench_measure_links(world, trainer_backend(t), &machine);
        if (st == OK && machine.nodes > 1) st = bench_measure_overlap(t, world, o->steps, &machine);
    }
    char *set = o->input ? NULL : mem_text(data_set_path(trainer_train_set(t), 0));
    /* The trainer is freed before files are measured, because the system keeps the pages of the
     * training set in memory while the trainer maps it. */
    trainer_free(&t);
    if (st == OK) bench_measure_rates(world, set, config->run.dir, &machine);
    mem_free(&set);
    if (st == OK && world->rank == 0) st = machine_write(&machine, o->save);
    st = status_agree(world, st);
    double step_s = st == OK ? bench_max_ranks(world, median(times.step_s, times.steps)) : 0;
    if (st == OK && world->rank == 0) print(&machine, step_s, o->save);
    if (st == OK) warn_if_busy(world, trainer_world, &times);
    machine_fini(&machine);
    mem_free(&times.step_s);
    mem_free(&times.update_s);
    mem_free(&times.rest_s);
    operation_times_free(&times.operations);
    return st;
}

static Status run_job(Job *job, const MachineOptions *o)
{
    Config *config = job->config;
    World alone = world_alone();
    Input input;
    char path[DATA_PATH];
    if (config->train.device == DEVICE_CUDA)
        return config_fail_key(config, "train.device",
                               "weft bench machine measures operations on CPUs only");
    TRY(bench_check_servers(config, "machine"));
    TRY(bench_input_parse(o->input, &input));
    TRY(bench_data_begin(job, &input, path));
    bool replicas_only = config->grid.pp * config->grid.tp == 1;
    if (replicas_only) config->grid.dp = 0;
    bench_fix_threads(config, &job->world);
    /* no step is logged: bench_measure_overlap makes two more steps for each measured one */
    config->train.log_every = WARMUP_STEPS + 3 * o->steps + 2;
    Status st = measure(config, &job->world, replicas_only ? &alone : &job->world, o);
    bench_data_end(job, path);
    return st;
}

static const Flag flags[] = {
    FLAG_RANKS(MachineOptions),
    BENCH_FLAG_INPUT(MachineOptions),
    {"--save", FLAG_FIELD(MachineOptions, save), .value = "FILE", .writes = true,
     .default_text = "machine.yaml", .help = "file for the times"},
    {"--steps", FLAG_FIELD(MachineOptions, steps), .value = "S", .lo = 1, .hi = 10000,
     .default_text = "20", .help = "steps to time, after 3 others"},
};

static Status run(int argc, char **argv, const void *options)
{
    Job job;
    Status status = job_open(&job, argc, argv);
    if (status == OK) status = run_job(&job, options);
    return job_close(&job, status);
}

const Verb verb_bench_machine = {
    .name = "bench machine",
    .words = "CONFIG [key=value ...]",
    .help = "measures operations, messages, sums, memory and files, for weft plan --machine",
    VERB_FLAGS(MachineOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
