/* Lists the hosts of a run for its first log lines, each with its ranks, their cores and their
 * GPUs. A core or GPU that several ranks use is counted once. */
#include "host_list.h"

#include <math.h>
#include <string.h>

/* number of hosts that are listed; of further hosts only the number is given */
enum { HOSTS_SHOWN = 8 };

typedef struct RankHost {
    char host[HOST_BYTES];
    /* model of the rank's GPU; "": the rank computes on the CPU */
    char gpu[64];
    /* bus address of the rank's GPU; "": the rank computes on the CPU */
    char bus[32];
    /* for the first rank of a host, number of ranks on the host; 0 for its other ranks */
    int ranks;
    /* number of cores that the ranks of the host may use */
    int cores;
} RankHost;

/* Returns the number of cores that at least one rank of this node may use, within the limits of its
 * control groups. Collective on the node's ranks. */
static int node_cores(const World *world)
{
    char core[NODE_CPUS_MAX] = {0};
    World node;
    int count = 0;
    ThreadsLimits limits = threads_limits("", core);
    int64_t *used = mem_new(NODE_CPUS_MAX * sizeof *used);
    for (int i = 0; i < NODE_CPUS_MAX; ++i) used[i] = core[i];
    world_node(&node, world);
    world_allreduce(&node, used, NODE_CPUS_MAX);
    world_part_fini(&node);
    for (int i = 0; i < NODE_CPUS_MAX; ++i) count += used[i] > 0;
    mem_free(&used);
    return limits.quota > 0 && limits.quota < count ? (int)ceil(limits.quota) : count;
}

static RankHost describe_rank(const Trainer *t)
{
    const World *world = t->world;
    RankHost rank = {.ranks = world->node_rank == 0 ? world->node_size : 0};
    GpuFacts gpu;
    host_name(rank.host, sizeof rank.host);
    rank.cores = node_cores(world);
    if (t->backend->table == &backend_cpu || !cuda_device_facts(world->node_rank, &gpu))
        return rank;
    snprintf(rank.gpu, sizeof rank.gpu, "%s", gpu.model);
    snprintf(rank.bus, sizeof rank.bus, "%s", gpu.bus);
    return rank;
}

/* Returns the number of different GPUs on the host whose first rank is `first`; ranks may share a
 * GPU. rank: all ranks, [count]. */
static int host_gpus(const RankHost *rank, int count, int first)
{
    int gpus = 0;
    for (int i = first; i < count; ++i) {
        bool known = !*rank[i].gpu || strcmp(rank[i].host, rank[first].host) != 0;
        for (int k = first; k < i && !known; ++k)
            known = !strcmp(rank[k].host, rank[i].host) && !strcmp(rank[k].bus, rank[i].bus);
        gpus += !known;
    }
    return gpus;
}

static const char *plural(int count)
{
    return count == 1 ? "" : "s";
}

static void print_host(FILE *out, const RankHost *rank, int count, int i)
{
    const RankHost *s = &rank[i];
    int gpus = host_gpus(rank, count, i);
    fprintf(out, "%s (%d rank%s, %d core%s", s->host, s->ranks, plural(s->ranks), s->cores,
            plural(s->cores));
    if (gpus > 0) fprintf(out, ", %d GPU%s: %s", gpus, plural(gpus), s->gpu);
    fputc(')', out);
}

static char *hosts_text(const RankHost *rank, int count)
{
    char *text;
    size_t bytes;
    int hosts = 0, shown = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (!out) die("out of memory for the list of hosts");
    for (int i = 0; i < count; ++i) hosts += rank[i].ranks > 0;
    fprintf(out, "%d rank%s on %d host%s: ", count, plural(count), hosts, plural(hosts));
    for (int i = 0; i < count && shown < HOSTS_SHOWN; ++i) {
        if (rank[i].ranks == 0) continue;
        if (shown++ > 0) fputs(", ", out);
        print_host(out, rank, count, i);
    }
    if (hosts > shown) fprintf(out, " and %d more", hosts - shown);
    fclose(out);
    return text;
}

char *train_host_list(const Trainer *trainer)
{
    const World *world = trainer->world;
    RankHost mine = describe_rank(trainer), *all = mem_new((size_t)world->size * sizeof *all);
    world_allgather(world, &mine, sizeof mine, all);
    char *text = world->rank == 0 ? hosts_text(all, world->size) : NULL;
    mem_free(&all);
    return text;
}
