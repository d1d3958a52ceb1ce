/* Checks GPUs: each rank examines the GPU that a run would give it. */
#include "measurements.h"
#include "private.h"

#include <stddef.h>
#include <string.h>

static void measure(Doctor *d, void *mine)
{
    Gpus *g = mine;
    const char *reason;
    g->has_nvidia_gpu = proc_count_names(d->options->root, "/proc/driver/nvidia/gpus") > 0;
    g->visible = cuda_device_count(&reason);
    if (reason) snprintf(g->reason, sizeof g->reason, "%s", reason);
    if (g->visible > 0) g->responds = cuda_device_facts(d->world.node_rank, &g->facts);
}

typedef struct Node {
    /* number of the node's ranks whose GPU responds */
    int ranks;
    /* number of different GPUs that these ranks have */
    int gpus;
} Node;

static Node count_node(const Allocation *a, const Gpus *all, int leader)
{
    Node node = {0};
    for (int r = leader; r < a->ranks; ++r) {
        if (a->place[r].leader != leader || !all[r].responds) continue;
        bool counted = false;
        for (int k = leader; k < r && !counted; ++k)
            counted = a->place[k].leader == leader && !strcmp(all[k].facts.bus, all[r].facts.bus);
        ++node.ranks;
        node.gpus += !counted;
    }
    return node;
}

static void judge_node(const Allocation *a, const Gpus *all, int leader, Report *report)
{
    const Node node = count_node(a, all, leader);
    if (node.gpus < node.ranks)
        report_add_host(report, SEVERITY_WARN, leader,
                        "a rank for each GPU: srun --ntasks-per-node",
                        "%d ranks share %d GPU%s and take turns", node.ranks, node.gpus,
                        node.gpus == 1 ? "" : "s");
    else if (a->ranks > 1 && all[leader].visible > node.gpus)
        report_add_host(report, SEVERITY_WARN, leader,
                        "a rank for each GPU: srun --ntasks-per-node", "%d of %d GPUs have a rank",
                        node.gpus, all[leader].visible);
}

/* Judges the GPU of rank r. usual: the most frequent GPU model. share: result of most_or_other for
 * that model. */
static void judge_rank(const Check *check, const Gpus *g, const char *usual, const char *share,
                       int r, Report *report)
{
    char text[2][16];
    if (g->visible == 0 && g->has_nvidia_gpu)
        report_add_host(report, SEVERITY_WARN, r, "weft --version; `make info`; nvidia-smi",
                        "the node has NVIDIA GPUs, but %s", g->reason);
    if (g->visible > 0 && !g->responds)
        report_add_rank(report, SEVERITY_WARN, r, "nvidia-smi; another node (sbatch --exclude)",
                        "its GPU does not answer");
    if (!g->responds) return;
    if (strcmp(g->facts.model, usual) != 0)
        report_add_host(report, SEVERITY_WARN, r, "nodes of one kind (sbatch -C)",
                        "has %s, %s ranks have %s: a run refuses to mix them", g->facts.model,
                        share, usual);
    if (g->facts.free_bytes < check->threshold * g->facts.bytes)
        report_add_rank(report, SEVERITY_WARN, r, "nvidia-smi; pkill -u $USER weft",
                        "GPU %s has %s free of %s: other processes use it", g->facts.bus,
                        text_bytes(g->facts.free_bytes, text[0]),
                        text_bytes(g->facts.bytes, text[1]));
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Gpus *g = all;
    const char *share,
        *usual = most_frequent_text(a, all, sizeof *g,
                                    offsetof(Gpus, facts) + offsetof(GpuFacts, model), &share);
    if (usual)
        report_set_summary(report, "%d for each process, %s", g[0].visible, usual);
    else
        report_set_summary(report, "none");
    for (int r = 0; r < a->ranks; ++r) {
        judge_rank(check, &g[r], usual, share, r, report);
        if (is_node_leader(a, r)) judge_node(a, g, r, report);
    }
}

const Check check_gpus = {
    .name = "GPUs",
    .threshold_meaning = "free fraction of a GPU's memory",
    .threshold = 0.9,
    .limit_s = 10,
    .bytes = sizeof(Gpus),
    .measure = measure,
    .judge = judge,
};
