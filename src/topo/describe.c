/* Describes ranks and nodes without measuring. One rank of each node describes the node's hardware.
 * Equal descriptions are one kind, which is sent only once. */
#include "hardware_file.h"
#include "topo.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

enum { SWITCHES_BYTES = 256 };

/* Host, CPUs and network switches of a rank. */
typedef struct RankPlace {
    char host[HOST_BYTES], switches[SWITCHES_BYTES];
    cpu_set_t cpus;
} RankPlace;

/* Copies Slurm's address of this node without its last component to `out`: "s0.s4" of
 * "s0.s4.node07". `out` must be empty, and stays empty if there is no such address or if it is too
 * long. */
static void read_switches(char out[SWITCHES_BYTES])
{
    const char *address = getenv("SLURM_TOPOLOGY_ADDR");
    const char *end = address ? strrchr(address, '.') : NULL;
    if (end && end - address < SWITCHES_BYTES) memcpy(out, address, (size_t)(end - address));
}

/* Numbers the nodes in the order of their first ranks, and sets their names and switches and each
 * rank's node and CPUs. Ranks are on one node if their hosts have the same name. */
static void number_nodes(Topology *t, const RankPlace *place)
{
    char cpus[CPUS_TEXT_BYTES];
    t->host = mem_new((size_t)t->ranks * sizeof *t->host);
    t->switches = mem_new((size_t)t->ranks * sizeof *t->switches);
    t->node = mem_new((size_t)t->ranks * sizeof *t->node);
    t->cpus = mem_new((size_t)t->ranks * sizeof *t->cpus);
    for (int r = 0, last = 0; r < t->ranks; ++r) {
        /* tries the node of the previous rank first, since neighbours are often on one node */
        int node = r > 0 && strcmp(t->host[last], place[r].host) == 0 ? last : 0;
        while (node < t->nodes && strcmp(t->host[node], place[r].host) != 0) ++node;
        if (node == t->nodes) {
            t->switches[node] = mem_text(place[r].switches);
            t->host[t->nodes++] = mem_text(place[r].host);
        }
        t->node[r] = last = node;
        t->cpus[r] = mem_text(cpus_write(cpus, sizeof cpus, &place[r].cpus));
    }
}

void topo_describe(Topology *t, const World *world)
{
    RankPlace mine = {.host = ""}, *place = mem_new((size_t)world->size * sizeof *place);
    *t = (Topology){.ranks = world->size};
    host_name(mine.host, sizeof mine.host);
    CPU_ZERO(&mine.cpus);
    (void)sched_getaffinity(0, sizeof mine.cpus, &mine.cpus);
    read_switches(mine.switches);
    world_allgather(world, &mine, sizeof mine, place);
    number_nodes(t, place);
    mem_free(&place);
}

/* Describes this node as JSON. The caller releases *text with free. */
static Status describe_node(bool gpus, char **text, size_t *bytes)
{
    Hardware hardware;
    *text = NULL;
    TRY(hardware_read(&hardware, gpus));
    FILE *out = open_memstream(text, bytes);
    if (!out) die_as(ERR_MEMORY, "out of memory for the description of a node");
    Json json = json_to(out, false);
    hardware_print(&json, &hardware);
    fclose(out);
    hardware_fini(&hardware);
    return OK;
}

/* Adds the kind of hardware that rank `root` has described in `text`. Collective. */
static Status add_kind(Topology *t, const World *world, int root, char *text, size_t bytes)
{
    YamlNode *tree = NULL;
    world_bcast(world, &bytes, sizeof bytes, root);
    char *copy = mem_new(bytes + 1);
    if (world->rank == root) memcpy(copy, text, bytes);
    world_bcast(world, copy, bytes, root);
    t->hardware = mem_resize(t->hardware, ((size_t)t->hardware_count + 1) * sizeof *t->hardware);
    Status st = yaml_parse(&tree, "description of a node", copy, bytes);
    if (st == OK)
        st = hardware_from_yaml(&t->hardware[t->hardware_count], "description of a node", tree);
    if (st == OK) ++t->hardware_count;
    yaml_node_free(&tree);
    mem_free(&copy);
    return st;
}

/* Finds the kinds of hardware. first: the lowest rank of each node. hash: hash of the text of each
 * rank, [ranks]. text: the description that this rank has made of its node; NULL if the rank is not
 * the lowest of its node. Collective. */
static Status add_kinds(Topology *t, const World *world, const int *first, const uint64_t *hash,
                        char *text, size_t bytes)
{
    for (int n = 0; n < t->nodes; ++n) {
        int equal = 0;
        while (equal < n && hash[first[equal]] != hash[first[n]]) ++equal;
        t->hardware_index[n] = equal < n ? t->hardware_index[equal] : t->hardware_count;
        if (equal == n) TRY(add_kind(t, world, first[n], text, bytes));
    }
    return OK;
}

Status topo_describe_hardware(Topology *t, const World *world, bool gpus)
{
    char *text = NULL;
    size_t bytes = 0;
    int *first = mem_new((size_t)t->nodes * sizeof *first);
    uint64_t mine = 0, *hash = mem_new((size_t)world->size * sizeof *hash);
    for (int r = t->ranks - 1; r >= 0; --r) first[t->node[r]] = r;
    Status st =
        first[t->node[world->rank]] == world->rank ? describe_node(gpus, &text, &bytes) : OK;
    st = status_agree(world, st);
    if (st == OK) {
        if (text) mine = XXH3_64bits(text, bytes);
        world_allgather(world, &mine, sizeof mine, hash);
        t->hardware_index = mem_new((size_t)t->nodes * sizeof *t->hardware_index);
        st = add_kinds(t, world, first, hash, text, bytes);
    }
    if (st != OK) topo_fini_hardware(t);
    free(text);
    mem_free(&hash);
    mem_free(&first);
    return st;
}
