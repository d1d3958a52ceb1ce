/* weft bench comm: how long the ordered gradient sum takes over each transport, beside a memcpy of as many bytes (the floor:
 * alone, and on all ranks at once) and beside MPI's own all-reduce. Times are medians over repeats, each repeat as slow as
 * its slowest rank. Needs at least two ranks. */
#include "private.h"

#include <stdlib.h>
#include <string.h>

enum { REPEATS_MAX = 101, REPEATS_MIN = 9, SMALLER_SIZES = 3 };
static const double SECONDS = 0.4; /* of each figure, about */

typedef struct CommArgs {
    bool json;
    double mb;
} CommArgs;

/* One size's figures, in seconds; negative where a transport cannot serve here. nodes: shm inside nodes, mpi between them. */
typedef struct CommTimes {
    size_t bytes;
    double memcpy_alone, memcpy_all, shm, nodes, mpi, allreduce;
} CommTimes;

/* What is measured, and what it works on. */
typedef struct Bench {
    const World *world;
    Backend *backend;
    size_t bytes; /* room in from and to */
    float *from, *to;
    Comm *comm; /* the transport under measurement */
} Bench;
typedef void (*BenchRun)(Bench *bench, int64_t count);

static void run_memcpy(Bench *bench, int64_t count)
{
    memcpy(bench->to, bench->from, (size_t)count * sizeof(float));
    /* The copy must happen although nobody reads it. */
    __asm__ volatile("" : : "r"(bench->to) : "memory");
}

static void run_memcpy_alone(Bench *bench, int64_t count)
{
    if (bench->world->rank == 0) run_memcpy(bench, count);
}

static void run_allreduce(Bench *bench, int64_t count)
{
    if (MPI_Allreduce(MPI_IN_PLACE, bench->to, (int)count, MPI_FLOAT, MPI_SUM,
                      bench->world->comm) != MPI_SUCCESS)
        die("MPI_Allreduce of %lld floats failed", (long long)count);
}

static void run_sum(Bench *bench, int64_t count)
{
    comm_sum_begin(bench->comm, 0, count);
    comm_wait(bench->comm);
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* One run from a common start to the end of the slowest rank, in seconds. Collective. */
static double time_once(Bench *bench, BenchRun run, int64_t count)
{
    world_barrier(bench->world);
    double start = clock_s();
    run(bench, count);
    double mine = clock_s() - start, slowest = mine;
    double *all = mem_new((size_t)bench->world->size * sizeof(double));
    world_gather(bench->world, &mine, sizeof mine, all);
    for (int r = 0; r < bench->world->size; ++r)
        if (all[r] > slowest) slowest = all[r];
    mem_free(&all);
    return slowest;
}

/* The median; as many repeats as fit SECONDS, after two that only warm up. Collective: all ranks know the same times. */
static double measure(Bench *bench, BenchRun run, int64_t count)
{
    time_once(bench, run, count);
    double once = time_once(bench, run, count), times[REPEATS_MAX];
    int repeats = once * REPEATS_MAX < SECONDS ? REPEATS_MAX : (int)(SECONDS / once);
    if (repeats < REPEATS_MIN) repeats = REPEATS_MIN;
    for (int i = 0; i < repeats; ++i) times[i] = time_once(bench, run, count);
    qsort(times, (size_t)repeats, sizeof *times, compare);
    return times[repeats / 2];
}

static Status measure_sums(Bench *bench, int transport, CommTimes *times, int sizes)
{
    TRY(comm_new(&bench->comm, bench->world, bench->backend, transport,
                 (int64_t)(bench->bytes / sizeof(float))));
    for (int i = 0; i < sizes; ++i) {
        double median = measure(bench, run_sum, (int64_t)(times[i].bytes / sizeof(float)));
        const CommTable *table = bench->comm->table;
        *(table == &comm_shm     ? &times[i].shm
          : table == &comm_nodes ? &times[i].nodes
                                 : &times[i].mpi) = median;
    }
    comm_free(&bench->comm);
    return OK;
}

static Status measure_all(Bench *bench, CommTimes *times, int sizes)
{
    for (int i = 0; i < sizes; ++i) {
        int64_t count = (int64_t)(times[i].bytes / sizeof(float));
        times[i].memcpy_alone = measure(bench, run_memcpy_alone, count);
        times[i].memcpy_all = measure(bench, run_memcpy, count);
        times[i].allreduce = measure(bench, run_allreduce, count);
        times[i].shm = times[i].nodes = -1;
    }
    TRY(measure_sums(bench, TRANSPORT_MPI, times, sizes));
    bool other = bench->world->one_node || comm_group_width(bench->world, TRANSPORT_AUTO) > 1;
    return other ? measure_sums(bench, TRANSPORT_AUTO, times, sizes) : OK;
}

static void print_ms(double seconds)
{
    if (seconds < 0)
        printf(" %9s", "-");
    else
        printf(" %9.3f", 1e3 * seconds);
}

static void print_ratio(double seconds, double floor_s)
{
    if (seconds < 0)
        printf(" %7s", "-");
    else
        printf(" %6.2fx", seconds / floor_s);
}

static void print_table(const Bench *bench, const CommTimes *times, int sizes)
{
    printf("ordered sums over %d ranks, %d on this node, %d thread%s each; milliseconds, medians\n",
           bench->world->size, bench->world->node_size, bench->backend->options.threads,
           bench->backend->options.threads == 1 ? "" : "s");
    printf("%10s %9s %9s %9s %9s %9s %9s   to a memcpy alone: shm, shm+mpi, mpi, MPI\n", "bytes",
           "memcpy", "on all", "shm", "shm+mpi", "mpi", "allreduce");
    for (int i = 0; i < sizes; ++i) {
        const CommTimes *t = &times[i];
        printf("%10zu", t->bytes);
        print_ms(t->memcpy_alone);
        print_ms(t->memcpy_all);
        print_ms(t->shm);
        print_ms(t->nodes);
        print_ms(t->mpi);
        print_ms(t->allreduce);
        printf("  ");
        print_ratio(t->shm, t->memcpy_alone);
        print_ratio(t->nodes, t->memcpy_alone);
        print_ratio(t->mpi, t->memcpy_alone);
        print_ratio(t->allreduce, t->memcpy_alone);
        printf("\n");
    }
}

static void json_field(const char *name, double value)
{
    printf(", \"%s\": ", name);
    json_number(stdout, value);
}

static void print_json(const Bench *bench, const CommTimes *t)
{
    double none = strtod("nan", NULL);
    printf(
        "{\"bench\": \"comm\", \"ranks\": %d, \"node_ranks\": %d, \"threads\": %d, \"bytes\": %zu",
        bench->world->size, bench->world->node_size, bench->backend->options.threads, t->bytes);
    json_field("memcpy_s", t->memcpy_alone);
    json_field("memcpy_all_s", t->memcpy_all);
    json_field("shm_s", t->shm >= 0 ? t->shm : none);
    json_field("shm_mpi_s", t->nodes >= 0 ? t->nodes : none);
    json_field("mpi_s", t->mpi);
    json_field("allreduce_s", t->allreduce);
    json_field("shm_to_memcpy", t->shm >= 0 ? t->shm / t->memcpy_alone : none);
    json_field("shm_mpi_to_memcpy", t->nodes >= 0 ? t->nodes / t->memcpy_alone : none);
    json_field("mpi_to_memcpy", t->mpi / t->memcpy_alone);
    json_field("allreduce_to_memcpy", t->allreduce / t->memcpy_alone);
    printf("}\n");
}

static Status args_read(CommArgs *args, int argc, char **argv)
{
    *args = (CommArgs){.mb = 45};
    const char *mb = NULL;
    const Flag flags[] = {{.name = "--json", .on = &args->json}, {.name = "--mb", .value = &mb}};
    TRY(flags_take(&argc, argv, flags, 2));
    if (argc > 0)
        return fail(ERR_USAGE, "bench comm: unknown word %s; it takes --mb MB and --json", argv[0]);
    if (!mb) return OK;
    char *end;
    args->mb = strtod(mb, &end);
    if (*end || end == mb || !(args->mb >= 0.001 && args->mb <= 4096))
        return fail(ERR_USAGE, "bench comm: --mb %s: give a number from 0.001 to 4096", mb);
    return OK;
}

static Status bench_ranks(const World *world, Backend *backend, const CommArgs *args)
{
    /* The size asked for, and what small layers and single buckets look like beside it. */
    CommTimes times[SMALLER_SIZES + 1] = {{.bytes = 4096}, {.bytes = 262144}, {.bytes = 4194304}};
    size_t asked = (size_t)(args->mb * 1e6 / sizeof(float)) * sizeof(float);
    int sizes = 0;
    while (sizes < SMALLER_SIZES && times[sizes].bytes < asked) ++sizes;
    times[sizes++].bytes = asked;
    Bench bench = {.world = world, .backend = backend, .bytes = asked};
    bench.from = mem_pages_new(asked);
    bench.to = mem_pages_new(asked);
    memset(bench.from, 0, asked);
    Status status = measure_all(&bench, times, sizes);
    mem_pages_free(bench.from, asked);
    mem_pages_free(bench.to, asked);
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
    BackendOptions options = {.threads = threads_share(world->node_size)};
    TRY(status_agree(world, backend_open(&backend, &backend_cpu, options)));
    Status status = bench_ranks(world, backend, args);
    backend_close(&backend);
    return status;
}

/* argv holds what follows `comm`. */
Status bench_comm(int argc, char **argv)
{
    CommArgs args;
    TRY(args_read(&args, argc, argv));
    World world;
    TRY(world_init(&world, NULL, NULL));
    Status status = bench_world(&world, &args);
    world_fini(&world);
    return status;
}
