/* weft bench comm: times the ordered gradient sum over each transport. Compares the time with two
 * others. The first is a lower bound: a copy of the same number of bytes in the same memory, on one
 * rank, and on all ranks at the same time. The second is a sum in any order: the all-reduce of MPI
 * between CPUs, or of NCCL between GPUs. Each time is a median over repeats; a repeat ends when the
 * slowest rank has ended. Needs at least two ranks. */
#include "bench.h"
#include "../private.h"

#include <math.h>
#include <string.h>

enum { REPEATS_MAX = 101, REPEATS_MIN = 9, SIZES_MAX = 4 };
/* approximate time of each measurement */
static const double MEASURE_S = 0.4;

typedef struct CommArgs {
    int64_t ranks, repeats;
    bool json;
    /* size of the sum in MB */
    double mb;
    /* index in `devices` */
    int device;
    /* algorithm of the sums, a SumAlgorithm */
    int way;
} CommArgs;

static const BackendTable *const devices[] = {&backend_cpu, &backend_cuda};
_Static_assert(sizeof devices / sizeof *devices == 2, "one for each word of --device");
static const Flag flags[] = {
    FLAG_RANKS(CommArgs),
    {"--mb", FLAG_FIELD(CommArgs, mb), .value = "MB", .lo = 0.001, .hi = 4096, .default_text = "45",
     .help = "size of the sum"},
    {"--device", FLAG_FIELD(CommArgs, device), .value = "cpu|cuda", .default_text = "cpu",
     .help = "memory that holds the gradients; cuda needs one GPU for each rank"},
    {"--way", FLAG_FIELD(CommArgs, way), .value = "auto|all|halving", .default_text = "auto",
     .help = "how messages are exchanged: all: each rank with all others at once; halving: in "
             "log2 rounds"},
    {"--repeats", FLAG_FIELD(CommArgs, repeats), .value = "N", .lo = 0, .hi = REPEATS_MAX,
     .default_text = "0",
     .help = "how often each time is measured; 0: for half a second, but at least 9 times"},
    {"--json", FLAG_FIELD(CommArgs, json), .help = "one JSON object per line"},
};

/* The operations that are timed. */
typedef enum Timed {
    /* a copy on rank 0 while the other ranks wait */
    COPY_ALONE,
    /* a copy on all ranks at the same time */
    COPY_ALL,
    /* sums in shared memory */
    SUM_SHM,
    /* sums in shared memory inside nodes, and by MPI between nodes */
    SUM_NODES,
    /* sums by messages of MPI */
    SUM_MPI,
    /* sums of GPU memory, which is copied through host memory */
    SUM_STAGED,
    /* ordered sums of GPU memory by NCCL */
    SUM_NCCL,
    /* NCCL's own all-reduce, in any order */
    SUM_NCCL_ALLREDUCE,
    /* MPI's own all-reduce */
    SUM_MPI_ALLREDUCE,
    TIMED_COUNT,
    /* the first constant that is a sum; all constants after it are sums, too */
    FIRST_SUM = SUM_SHM
} Timed;
/* names of the operations */
static const struct TimedName {
    /* title of the column in the table */
    const char *title;
    /* first part of the key in JSON */
    const char *key;
} timed_names[TIMED_COUNT] = {{"copy", "memcpy"},
                              {"on all", "memcpy_all"},
                              {"shm", "shm"},
                              {"shm+mpi", "shm_mpi"},
                              {"mpi", "mpi"},
                              {"by host", "staged"},
                              {"nccl", "nccl"},
                              {"nccl ring", "nccl_ring"},
                              {"allreduce", "allreduce"}};

/* Results for one size. */
typedef struct CommTimes {
    size_t bytes;
    /* time of each operation in seconds; NaN: cannot be measured on these ranks */
    double s[TIMED_COUNT];
    /* number of messages of a sum by MPI, on the rank that sends most; NaN: not measured */
    double messages;
} CommTimes;

/* The ranks, the memory and the transport that a measurement uses. */
typedef struct Bench {
    const World *world;
    Backend *backend;
    Stream *stream;
    /* number of repeats of a measurement; 0: as many as fit into MEASURE_S, but at least
     * REPEATS_MIN */
    int repeats;
    /* size of `from`, and size of `to` */
    size_t bytes;
    /* arrays in the backend's memory; owned by bench_ranks */
    float *from, *to;
    /* communicator with the transport that is measured; owned by measure_sums */
    Comm *comm;
} Bench;
/* Function that makes, or queues on the stream, one copy or sum of `count` floats. */
typedef void (*BenchRun)(Bench *bench, int64_t count);

static void run_copy(Bench *bench, int64_t count)
{
    bench->backend->table->copy(bench->stream, bench->to, bench->from,
                                (size_t)count * sizeof(float));
}

static void run_copy_alone(Bench *bench, int64_t count)
{
    if (bench->world->rank == 0) run_copy(bench, count);
}

static void run_allreduce(Bench *bench, int64_t count)
{
    if (MPI_Allreduce(MPI_IN_PLACE, bench->to, (int)count, MPI_FLOAT, MPI_SUM,
                      bench->world->comm) != MPI_SUCCESS)
        die("MPI_Allreduce of %lld floats failed", (long long)count);
}

static void run_sum(Bench *bench, int64_t count)
{
    comm_allreduce_begin(bench->comm, 0, count);
    comm_wait(bench->comm);
}

/* Returns the seconds of one call of `run`, from a common start to the end of the slowest rank's
 * stream. Collective. */
static double time_once(Bench *bench, BenchRun run, int64_t count)
{
    world_barrier(bench->world);
    double start = clock_s();
    run(bench, count);
    bench->backend->table->sync(bench->stream);
    return bench_max_ranks(bench->world, clock_s() - start);
}

/* Returns the median time of a call of `run` in seconds. Two calls warm up; all repeats together
 * then take about MEASURE_S, unless the number of repeats is given. Collective; all ranks get the
 * same result. */
static double measure(Bench *bench, BenchRun run, int64_t count)
{
    time_once(bench, run, count);
    double once_s = time_once(bench, run, count), times[REPEATS_MAX];
    int repeats = once_s * REPEATS_MAX < MEASURE_S ? REPEATS_MAX : (int)(MEASURE_S / once_s);
    if (repeats < REPEATS_MIN) repeats = REPEATS_MIN;
    if (bench->repeats > 0) repeats = bench->repeats;
    for (int i = 0; i < repeats; ++i) times[i] = time_once(bench, run, count);
    return median(times, repeats);
}

/* Returns the number of floats. */
static int64_t count_of(const CommTimes *times)
{
    return (int64_t)(times->bytes / sizeof(float));
}

/* Returns the constant of the sum that a transport makes. bits: value of train.reproducible. */
static Timed timed_sum(const CommTable *table, int bits)
{
    return table == &comm_shm              ? SUM_SHM
           : table == &comm_nodes          ? SUM_NODES
           : table == &comm_staged         ? SUM_STAGED
           : table == &comm_mpi            ? SUM_MPI
           : bits == REPRODUCIBLE_ANY_GRID ? SUM_NCCL
                                           : SUM_NCCL_ALLREDUCE;
}

/* Measures the sums of all sizes over one transport. world: bench->world, or a world of the same
 * ranks with an NCCL communicator. times: results, [sizes]. */
static Status measure_sums(Bench *bench, const World *world, int transport, int bits,
                           CommTimes *times, int sizes)
{
    TRY(comm_new(&bench->comm, world, bench->backend, transport,
                 (int64_t)(bench->bytes / sizeof(float))));
    Timed timed = timed_sum(bench->comm->table, bits);
    for (int i = 0; i < sizes; ++i) {
        int64_t messages = bench->comm->message_count, sums = bench->comm->sums;
        times[i].s[timed] = measure(bench, run_sum, count_of(&times[i]));
        sums = bench->comm->sums - sums;
        double sum_messages = (double)(bench->comm->message_count - messages) / (double)sums;
        if (timed == SUM_MPI) times[i].messages = bench_max_ranks(world, sum_messages);
    }
    comm_free(&bench->comm);
    return OK;
}

/* Measures the sums of host memory, and MPI's own all-reduce. */
static Status measure_host_sums(Bench *bench, CommTimes *times, int sizes)
{
    for (int i = 0; i < sizes; ++i)
        times[i].s[SUM_MPI_ALLREDUCE] = measure(bench, run_allreduce, count_of(&times[i]));
    const World *world = bench->world;
    TRY(measure_sums(bench, world, TRANSPORT_MPI, REPRODUCIBLE_ANY_GRID, times, sizes));
    /* auto chooses a transport other than mpi only if ranks of a node share memory */
    if (!world->one_node && comm_group_width(world, TRANSPORT_AUTO) <= 1) return OK;
    return measure_sums(bench, world, TRANSPORT_AUTO, REPRODUCIBLE_ANY_GRID, times, sizes);
}

/* Measures sums between GPUs by NCCL. If NCCL cannot connect the GPUs because ranks share one, a
 * warning is logged, and sums through host memory are measured. bits: value of
 * train.reproducible. */
static Status measure_joined(Bench *bench, int bits, CommTimes *times, int sizes)
{
    Grid grid;
    GridShape shape = {.dp = bench->world->size, .pp = 1, .tp = 1};
    TRY(grid_init(&grid, bench->world, shape));
    Status st = grid_join_gpus(&grid, bench->backend, TRANSPORT_AUTO, bits);
    if (st == OK) st = measure_sums(bench, &grid.dp_world, TRANSPORT_AUTO, bits, times, sizes);
    grid_fini(&grid);
    return st;
}

/* Measures the sums of GPU memory: ordered sums by NCCL, NCCL's own all-reduce, and sums through
 * host memory. */
static Status measure_device_sums(Bench *bench, CommTimes *times, int sizes)
{
    TRY(measure_joined(bench, REPRODUCIBLE_ANY_GRID, times, sizes));
    if (isnan(times->s[SUM_NCCL])) return OK;
    TRY(measure_joined(bench, REPRODUCIBLE_SAME_GRID, times, sizes));
    return measure_sums(bench, bench->world, TRANSPORT_AUTO, REPRODUCIBLE_ANY_GRID, times, sizes);
}

static Status measure_all(Bench *bench, CommTimes *times, int sizes)
{
    for (int i = 0; i < sizes; ++i) {
        for (int k = 0; k < TIMED_COUNT; ++k) times[i].s[k] = (double)NAN;
        times[i].messages = (double)NAN;
        times[i].s[COPY_ALONE] = measure(bench, run_copy_alone, count_of(&times[i]));
        times[i].s[COPY_ALL] = measure(bench, run_copy, count_of(&times[i]));
    }
    if (bench->backend->table->host_memory) return measure_host_sums(bench, times, sizes);
    return measure_device_sums(bench, times, sizes);
}

/* Returns the "bus bandwidth" of NCCL's tests, in bytes per second: the bytes that each rank must
 * at least send, and receive, divided by the time of the sum. */
static double bus_rate(const Bench *bench, const CommTimes *t, int timed)
{
    double ranks = bench->world->size;
    return 2 * (ranks - 1) / ranks * (double)t->bytes / t->s[timed];
}

static void print_titles(const CommTimes *times, int first)
{
    for (int k = first; k < TIMED_COUNT; ++k)
        if (!isnan(times->s[k])) printf(" %9s", timed_names[k].title);
}

static void print_table(const Bench *bench, const CommTimes *times, int sizes)
{
    int threads = bench->backend->options.threads;
    bool counted = !isnan(times->messages);
    printf("ordered sums over %d ranks, %d on this node, %d thread%s each, in the memory of %s; "
           "milliseconds, medians; then sums divided by a copy on one rank, and GB/s that each "
           "rank sends (2 (n-1)/n of the bytes)%s\n",
           bench->world->size, bench->world->node_size, threads, threads == 1 ? "" : "s",
           bench->backend->table->name,
           counted ? "; messages of a sum over mpi, of the rank that sends most" : "");
    printf("%10s", "bytes");
    print_titles(times, 0);
    printf("   to a copy:");
    print_titles(times, FIRST_SUM);
    printf("   GB/s:");
    print_titles(times, FIRST_SUM);
    printf("%s\n", counted ? "   messages" : "");
    for (int i = 0; i < sizes; ++i) {
        const CommTimes *t = &times[i];
        printf("%10zu", t->bytes);
        for (int k = 0; k < TIMED_COUNT; ++k)
            if (!isnan(t->s[k])) printf(" %9.3f", 1e3 * t->s[k]);
        printf("%13s", "");
        for (int k = FIRST_SUM; k < TIMED_COUNT; ++k)
            if (!isnan(t->s[k])) printf(" %8.2fx", t->s[k] / t->s[COPY_ALONE]);
        printf("%8s", "");
        for (int k = FIRST_SUM; k < TIMED_COUNT; ++k)
            if (!isnan(t->s[k])) printf(" %9.2f", 1e-9 * bus_rate(bench, t, k));
        if (counted) printf(" %10.0f", t->messages);
        printf("\n");
    }
}

static void put_time(Json *json, int timed, const char *unit, double value)
{
    char key[64];
    snprintf(key, sizeof key, "%s%s", timed_names[timed].key, unit);
    json_real(json, key, value);
}

static void print_json(const Bench *bench, const CommTimes *t)
{
    Json json = json_to(stdout, true);
    json_object(&json, NULL);
    json_text(&json, "bench", "comm");
    json_text(&json, "device", bench->backend->table->name);
    json_int(&json, "ranks", bench->world->size);
    json_int(&json, "node_ranks", bench->world->node_size);
    json_int(&json, "threads", bench->backend->options.threads);
    json_int(&json, "bytes", (int64_t)t->bytes);
    for (int k = 0; k < TIMED_COUNT; ++k) put_time(&json, k, "_s", t->s[k]);
    json_real(&json, "mpi_messages", t->messages);
    for (int k = FIRST_SUM; k < TIMED_COUNT; ++k) {
        put_time(&json, k, "_to_memcpy", t->s[k] / t->s[COPY_ALONE]);
        put_time(&json, k, "_gb_per_s", 1e-9 * bus_rate(bench, t, k));
    }
    json_end(&json);
}

static Status bench_ranks(const World *world, Backend *backend, const CommArgs *args)
{
    /* sizes of small layers and of single buckets, for comparison; the requested size is added */
    CommTimes times[SIZES_MAX] = {{.bytes = 4096}, {.bytes = 262144}, {.bytes = 4194304}};
    const BackendTable *table = backend->table;
    size_t largest = (size_t)(args->mb * 1e6 / sizeof(float)) * sizeof(float);
    int sizes = 0;
    while (sizes < SIZES_MAX - 1 && times[sizes].bytes < largest) ++sizes;
    times[sizes++].bytes = largest;
    Bench bench = {.world = world,
                   .backend = backend,
                   .stream = table->stream(backend),
                   .repeats = (int)args->repeats,
                   .bytes = largest};
    bench.from = table->alloc(backend, largest);
    bench.to = table->alloc(backend, largest);
    table->flat->fill(bench.stream, bench.from, 0, (int64_t)(largest / sizeof(float)));
    Status status = measure_all(&bench, times, sizes);
    table->release(backend, bench.from, largest);
    table->release(backend, bench.to, largest);
    if (status != OK || world->rank != 0) return status;
    if (!args->json) print_table(&bench, times, sizes);
    for (int i = 0; args->json && i < sizes; ++i) print_json(&bench, &times[i]);
    return OK;
}

static Status bench_world(const World *world, const CommArgs *args)
{
    if (world->size < 2)
        return fail(ERR_USAGE, "bench comm measures sums between ranks: start it with "
                               "`weft bench comm -n 2`");
    Backend *backend = NULL;
    BackendOptions options = {.threads = threads_share(world->node_size),
                              .device = world->node_rank};
    TRY(status_agree(world, backend_open(&backend, devices[args->device], options)));
    Status status = bench_ranks(world, backend, args);
    backend_close(&backend);
    return status;
}

static Status run(int argc, char **argv, const void *options)
{
    World world;
    if (argc > 0)
        return fail(ERR_USAGE, "bench comm: unknown argument %s; it takes only flags", argv[0]);
    comm_set_sum_algorithm((SumAlgorithm)((const CommArgs *)options)->way);
    TRY(world_init(&world, NULL, NULL));
    Status status = bench_world(&world, options);
    world_fini(&world);
    return status;
}

const Verb verb_bench_comm = {
    .name = "bench comm",
    .help = "times gradient sums between ranks, and compares them with a memory copy and "
            "MPI_Allreduce",
    VERB_FLAGS(CommArgs, flags),
    .traits = VERB_THREADS,
    .run = run,
};
