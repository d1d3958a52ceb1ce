/* weft topo show: prints which ranks are on which nodes and CPUs, and the measured links between
 * them. */
#include "../private.h"
#include "topo_cli.h"

#include <string.h>

/* Matrices of more ranks are not printed. */
enum { MATRIX_RANKS_MAX = 32 };
static const double MEASURE_S = 8;

typedef struct ShowOptions {
    int64_t ranks;
    const char *from, *save;
    bool json;
} ShowOptions;

static const Flag flags[] = {
    FLAG_RANKS(ShowOptions),
    {"--from", FLAG_FIELD(ShowOptions, from), .value = "FILE",
     .help = "a file of --save, perhaps from another machine, instead of measuring"},
    {"--save", FLAG_FIELD(ShowOptions, save), .value = "FILE", .writes = true,
     .help = "write the topology to a JSON file"},
    {"--json", FLAG_FIELD(ShowOptions, json), .help = "print the content of that file"},
};

Status topo_run(const char *name, int argc, char **argv, const char *from, TopoUse *use,
                const void *options)
{
    World world;
    Topology topo = {0};
    if (argc > 0) return fail(ERR_USAGE, "%s: unknown argument %s", name, argv[0]);
    TRY(world_init(&world, NULL, NULL));
    Status status = OK;
    if (!from)
        status = topo_measure(&topo, &world, MEASURE_S);
    else if (world.rank == 0)
        status = topo_read(&topo, from);
    if (status == OK && world.rank == 0) status = use(&topo, options);
    status = status_agree(&world, status);
    topo_fini(&topo);
    world_fini(&world);
    return status;
}

static void print_nodes(const Topology *t)
{
    printf("%d rank%s on %d node%s\n", t->ranks, t->ranks == 1 ? "" : "s", t->nodes,
           t->nodes == 1 ? "" : "s");
    for (int n = 0; n < t->nodes; ++n) {
        const char *comma = ":";
        printf("  %s", t->host[n]);
        for (int r = 0; r < t->ranks; ++r) {
            if (t->node[r] != n) continue;
            printf("%s rank %d (CPUs %s)", comma, r, t->cpus[r]);
            comma = ",";
        }
        printf("\n");
    }
}

static void print_matrix(const Topology *t, const char *title, const double *matrix, double scale)
{
    printf("\n%s\n     ", title);
    for (int b = 0; b < t->ranks; ++b) printf(" %8d", b);
    printf("\n");
    for (int a = 0; a < t->ranks; ++a) {
        printf("%5d", a);
        for (int b = 0; b < t->ranks; ++b) {
            double value = matrix[(int64_t)a * t->ranks + b];
            if (a == b)
                printf(" %8s", "-");
            else
                printf(" %8.3g", scale * value);
        }
        printf("\n");
    }
}

static void print_slow_pairs(const Topology *t)
{
    SlowPair *pair;
    int count = topo_slow_pairs(t, &pair);
    for (int i = 0; i < count && i < 10; ++i)
        printf("%srank %d on %s and rank %d on %s: %.3g GB/s, the median of pairs %s is %.3g\n",
               i == 0 ? "\nslow links\n  " : "  ", pair[i].a, t->host[t->node[pair[i].a]],
               pair[i].b, t->host[t->node[pair[i].b]], 1e-9 * pair[i].bytes_s,
               t->node[pair[i].a] == t->node[pair[i].b] ? "within nodes" : "between nodes",
               1e-9 * pair[i].class_median);
    if (count > 10) printf("  and %d more\n", count - 10);
    mem_free(&pair);
}

static void print_text(const Topology *t)
{
    print_nodes(t);
    if (t->ranks > MATRIX_RANKS_MAX)
        printf("\nthe links of more than %d ranks are printed by --json\n", MATRIX_RANKS_MAX);
    if (t->ranks == 1 || t->ranks > MATRIX_RANKS_MAX) return;
    print_matrix(t, "latency of a small message, us", t->latency_s, 1e6);
    print_matrix(t, "rate of a pair alone, in each direction, GB/s", t->bytes_s, 1e-9);
    print_matrix(t, "rate while all ranks send, GB/s", t->together_bytes_s, 1e-9);
    print_slow_pairs(t);
}

static Status show(const Topology *t, const void *options)
{
    const ShowOptions *o = options;
    if (o->save) TRY(topo_write(t, o->save));
    if (o->json)
        topo_print(t, stdout);
    else
        print_text(t);
    return OK;
}

static Status run(int argc, char **argv, const void *options)
{
    const ShowOptions *o = options;
    return topo_run("topo show", argc, argv, o->from, show, options);
}

const Verb verb_topo_show = {
    .name = "topo show",
    .help = "prints the ranks of each node, and measured latency and rate between all ranks",
    VERB_FLAGS(ShowOptions, flags),
    .traits = VERB_PLAIN,
    .run = run,
};
