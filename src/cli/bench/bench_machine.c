/* weft bench machine: measures the operations of a configuration's steps, messages and sums on a
 * node, and messages between nodes. The times are saved in a file from which weft plan forecasts
 * steps. All ranks compute at the same time, as in a run. If the grid has neither pipeline stages
 * nor tensor-parallel groups, each rank trains a model of its own, so that sums do not disturb the
 * times of operations. */
#include "bench.h"
#include "../private.h"

#include "machine.h"

#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WARMUP_STEPS = 3, MESSAGE_REPEATS = 201, SUM_REPEATS = 41, MICROS_MAX = 64 };

typedef struct MachineOptions {
    int64_t ranks, steps;
    const char *save, *input;
} MachineOptions;

/* ---- operations ---- */

/* Seconds that this rank has spent in phases so far. */
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

/* A rank that was on a core for less than this fraction of the time shared its core with other
 * processes. */
static const double BUSY_BELOW = 0.9;

/* Times of the measured steps. */
typedef struct StepTimes {
    /* time of each step, [steps]; owned */
    double *step_s;
    /* time of each step's update, [steps]; owned */
    double *update_s;
    /* time of each step outside of tasks, sums, messages, the update and waiting for data, [steps];
     * owned */
    double *rest_s;
    int steps;
    /* time in the tasks of all steps */
    double tasks_s;
    /* processor time of this process in all steps */
    double processor_s;
    OperationTimes *operations;
} StepTimes;

static void step_times_fini(StepTimes *times)
{
    mem_free(&times->step_s);
    mem_free(&times->update_s);
    mem_free(&times->rest_s);
    operation_times_free(&times->operations);
}

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
    int micros = trainer_sizes(t).micros_local;
    StepResult result;
    Status st = train_begin_steps(t);
    for (int i = 0; st == OK && i < WARMUP_STEPS; ++i) st = train_step(t, &result);
    times->operations = operation_times_new(
        trainer_graph(t)->node_count, times->steps * (micros < MICROS_MAX ? micros : MICROS_MAX));
    trainer_time_operations(t, times->operations);
    times->processor_s = -processor_s();
    for (int i = 0; st == OK && i < times->steps; ++i) st = time_step(t, times, i);
    times->processor_s += processor_s();
    trainer_time_operations(t, NULL);
    return st;
}

/* ---- the file ---- */

/* Times that a rank sends to rank 0. */
typedef struct RankTimes {
    double move_s_per_byte, action_s;
    TimeRange update_s, rest_s;
    /* bytes of the operations of the rank, as pack_operations returns them */
    size_t text_bytes;
} RankTimes;

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

/* Adds the measured operations of this rank's nodes to a machine. */
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

/* Returns the operations as bytes, owned by the caller: for each an OperationTime, and then its key
 * with a zero byte. */
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

static TimeRange range_mean(TimeRange a, TimeRange b, int ranks)
{
    return (TimeRange){a.low + b.low / ranks, a.median + b.median / ranks, a.high + b.high / ranks};
}

/* Joins the times of all ranks on rank 0. Collective. */
static void join_ranks(const World *world, const RankTimes *mine, char *packed, Machine *machine)
{
    RankTimes *all = mem_new((size_t)world->size * sizeof *all);
    size_t *bytes = mem_new((size_t)world->size * sizeof *bytes), total = 0;
    world_gather(world, mine, sizeof *mine, all);
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

/* ---- links ---- */

/* Returns latency and rate from the times of a small and of a large message, by a straight line. If
 * the small message took longer, because other processes ran, latency and rate are both computed
 * from the time of the large message. */
static Link link_through(double small_s, double large_s, double small, double large)
{
    if (large_s <= small_s) return (Link){.latency_s = large_s, .s_per_byte = large_s / large};
    double s_per_byte = (large_s - small_s) / (large - small);
    return (Link){.latency_s = fmax(small_s - small * s_per_byte, 0), .s_per_byte = s_per_byte};
}

/* Waits until channel `to` has a free slot, writes all bytes of a message into it as a stage does,
 * and sends the message. */
static void send_message(Channels *channels, int to, const char *from, size_t bytes)
{
    char *slot;
    for (double begin_s = clock_s(); !(slot = channel_slot(channels, to));) {
        channels_progress(channels);
        channels_wait(channels, clock_s() - begin_s);
    }
    memcpy(slot, from, bytes);
    channel_send(channels, to);
}

static void receive_message(Channels *channels, int from, char *to, size_t bytes)
{
    const char *message;
    for (double begin_s = clock_s(); !(message = channel_message(channels, from));) {
        channels_progress(channels);
        channels_wait(channels, clock_s() - begin_s);
    }
    memcpy(to, message, bytes);
    channel_release(channels, from);
}

/* Measures the time of a message from its sender's first byte to its receiver's last: half of the
 * round-trip time between ranks 0 and 1. Collective. */
static Status time_message(const World *world, size_t bytes, double *seconds)
{
    const ChannelSpec spec[] = {{.from = 0, .to = 1, .depth = 2, .bytes = bytes},
                                {.from = 1, .to = 0, .depth = 2, .bytes = bytes}};
    Channels *channels;
    TRY(channels_new(&channels, world, spec, 2, TRANSPORT_AUTO));
    char *from = mem_new(bytes), *to = mem_new(bytes);
    double *time = mem_new(MESSAGE_REPEATS * sizeof *time);
    memset(from, 1, bytes);
    world_barrier(world);
    for (int i = 0; i < MESSAGE_REPEATS && world->rank < 2; ++i) {
        double begin_s = clock_s();
        if (world->rank == 0) send_message(channels, 0, from, bytes);
        receive_message(channels, world->rank == 0 ? 1 : 0, to, bytes);
        if (world->rank == 1) send_message(channels, 1, from, bytes);
        time[i] = (clock_s() - begin_s) / 2;
    }
    *seconds = median(time, MESSAGE_REPEATS);
    world_barrier(world);
    mem_free(&time);
    mem_free(&to);
    mem_free(&from);
    channels_free(&channels);
    return OK;
}

static Status measure_messages(const World *world, Link *link)
{
    enum { SMALL = 4096, LARGE = 1 << 20 };
    double small_s, large_s;
    TRY(time_message(world, SMALL, &small_s));
    TRY(time_message(world, LARGE, &large_s));
    *link = link_through(small_s, large_s, SMALL, LARGE);
    return OK;
}

/* Returns the median time of a sum of `count` floats. Collective; the result is the same on all
 * ranks. */
static double time_sum(const World *world, Comm *comm, int64_t count)
{
    double time[SUM_REPEATS];
    for (int i = 0; i < SUM_REPEATS; ++i) {
        world_barrier(world);
        double begin_s = clock_s();
        comm_allreduce_begin(comm, 0, count);
        comm_wait(comm);
        time[i] = bench_max_ranks(world, clock_s() - begin_s);
    }
    return median(time, SUM_REPEATS);
}

static Status measure_sum(const World *world, Backend *backend, SumTime *sum)
{
    enum { SMALL = 16384, LARGE = 1 << 20 };
    Comm *comm;
    TRY(comm_new(&comm, world, backend, TRANSPORT_AUTO, LARGE));
    double small_s = time_sum(world, comm, SMALL), large_s = time_sum(world, comm, LARGE);
    comm_free(&comm);
    *sum = (SumTime){world->size,
                     link_through(small_s, large_s, SMALL * sizeof(float), LARGE * sizeof(float))};
    return OK;
}

/* Measures messages and sums between the ranks of a node. Collective on node. */
static Status measure_node(const World *node, Backend *backend, Machine *machine)
{
    if (node->size == 1) return OK;
    machine->sum = mem_new(sizeof *machine->sum);
    machine->sum_count = 1;
    machine->has_message = true;
    TRY(measure_messages(node, &machine->message));
    return measure_sum(node, backend, machine->sum);
}

/* Measures messages between rank 0 and the first rank of another node. node: the ranks of this
 * rank's node. Collective. */
static Status measure_network(const World *world, const World *node, Machine *machine)
{
    World pair;
    bool with_first = world_least(node, world->rank) == 0;
    int other = world_least(world, with_first ? INT_MAX : world->rank);
    bool sends = world->rank == 0 || world->rank == other;
    TRY(world_split(&pair, world, sends ? 0 : 1 + world->rank));
    Status st = sends ? measure_messages(&pair, &machine->network) : OK;
    machine->has_network = st == OK;
    world_part_fini(&pair);
    return status_agree(world, st);
}

/* Measures messages and sums, and counts nodes and their ranks. ERR_USAGE: the nodes have different
 * numbers of ranks. Collective. */
static Status measure_links(const World *world, Backend *backend, Machine *machine)
{
    World node;
    world_node(&node, world);
    machine->nodes = (int)bench_sum_ranks(world, node.rank == 0);
    machine->ranks = node.size;
    Status st = OK;
    if (machine->nodes * node.size != world->size)
        st = fail(ERR_USAGE, "the nodes have different numbers of ranks: start as many on each");
    st = status_agree(world, st);
    if (st == OK) st = status_agree(world, measure_node(&node, backend, machine));
    if (st == OK && machine->nodes > 1) st = measure_network(world, &node, machine);
    world_part_fini(&node);
    return st;
}

/* ---- the verb ---- */

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
    if (m->has_message)
        printf("  messages %.2f us and %.2f GB/s\n", 1e6 * m->message.latency_s,
               1e-9 / m->message.s_per_byte);
    if (m->has_network)
        printf("  messages between nodes %.2f us and %.3f GB/s\n", 1e6 * m->network.latency_s,
               1e-9 / m->network.s_per_byte);
    for (int i = 0; i < m->sum_count; ++i)
        printf("  sums over %d ranks %.2f us and %.2f GB/s\n", m->sum[i].ranks,
               1e6 * m->sum[i].link.latency_s, 1e-9 / m->sum[i].link.s_per_byte);
    printf("wrote %s: weft plan CONFIG --machine %s\n", path, path);
}

/* If each rank trains a model of its own, warns if a rank was on a core for less than BUSY_BELOW of
 * the time: it never waits for other ranks, so other processes had the core. Collective. */
static void warn_if_busy(const World *world, const World *job, const StepTimes *times)
{
    double step_s = 0;
    bool waits = job->size > 1;
    for (int i = 0; i < times->steps; ++i) step_s += times->step_s[i];
    double share = -bench_max_ranks(world, -times->processor_s / step_s);
    if (!waits && share < BUSY_BELOW)
        log_warn("a rank was on a core %.0f %% of the time: other processes ran on this node, so "
                 "these times are too long",
                 100 * share);
}

/* Measures steps, messages and sums, and writes the file. world: the ranks of the measurement; job:
 * the ranks of this rank's trainer: all ranks, or this rank alone. */
static Status measure(const Config *config, const World *world, const World *job,
                      const MachineOptions *o)
{
    Trainer *t = NULL;
    Machine machine = {0};
    TRY(status_agree(world, trainer_new(&t, config, job)));
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
        machine.setup = train_setup(config);
        st = measure_links(world, trainer_backend(t), &machine);
    }
    if (st == OK && world->rank == 0) st = machine_write(&machine, o->save);
    st = status_agree(world, st);
    double step_s = st == OK ? bench_max_ranks(world, median(times.step_s, times.steps)) : 0;
    if (st == OK && world->rank == 0) print(&machine, step_s, o->save);
    if (st == OK) warn_if_busy(world, job, &times);
    machine_fini(&machine);
    step_times_fini(&times);
    trainer_free(&t);
    return st;
}

static Status check_job(const Job *job)
{
    const Config *config = job->config;
    if (config->train.device == DEVICE_CUDA)
        return config_fail_key(config, "train.device",
                               "weft bench machine measures operations on CPUs only");
    return bench_check_servers(config, "machine");
}

static Status run_job(Job *job, const MachineOptions *o)
{
    Config *config = job->config;
    World alone = world_alone();
    Input input;
    char path[DATA_PATH];
    TRY(check_job(job));
    TRY(bench_input_parse(o->input, &input));
    TRY(bench_data_begin(job, &input, path));
    bool replicas_only = config->grid.pp * config->grid.tp == 1;
    if (replicas_only) config->grid.dp = 0;
    bench_fix_threads(config, &job->world);
    config->train.log_every = WARMUP_STEPS + o->steps + 1;
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
    .help = "measures operations, messages and sums on these nodes, for weft plan --machine",
    VERB_FLAGS(MachineOptions, flags),
    .traits = VERB_CONFIG | VERB_THREADS,
    .run = run,
};
