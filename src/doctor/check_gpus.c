/* GPUs: each rank looks at the one that a run would give it. */
#include "figures.h"
#include "private.h"

#include <stddef.h>
#include <string.h>

static void measure(Doctor *d, void *mine)
{
    Gpus *g = mine;
    const char *why;
    g->cards = doctor_entries(d->options->root, "/proc/driver/nvidia/gpus") > 0;
    g->visible = cuda_device_count(&why);
    if (why) snprintf(g->why, sizeof g->why, "%s", why);
    if (g->visible > 0) g->answers = cuda_device_facts(d->world.node_rank, &g->facts);
}

/* Ranks of a node that have a GPU, and the number of different GPUs among them. */
typedef struct Node {
    int ranks, gpus;
} Node;

static Node node_sum(const Allocation *a, const Gpus *all, int first)
{
    Node node = {0};
    for (int r = first; r < a->ranks; ++r) {
        if (a->place[r].first != first || !all[r].answers) continue;
        bool again = false;
        for (int k = first; k < r && !again; ++k)
            again = a->place[k].first == first && !strcmp(all[k].facts.bus, all[r].facts.bus);
        ++node.ranks;
        node.gpus += !again;
    }
    return node;
}

static void judge_node(const Allocation *a, const Gpus *all, int r, Report *report)
{
    const Node node = node_sum(a, all, r);
    if (node.gpus < node.ranks)
        report_host(report, SEVERITY_WARN, r, "a rank for each GPU: srun --ntasks-per-node",
                    "%d ranks share %d GPU%s and take turns", node.ranks, node.gpus,
                    node.gpus == 1 ? "" : "s");
    else if (a->ranks > 1 && all[r].visible > node.gpus)
        report_host(report, SEVERITY_WARN, r, "a rank for each GPU: srun --ntasks-per-node",
                    "%d of %d GPUs have a rank", node.gpus, all[r].visible);
}

static void judge_rank(const Check *check, const Gpus *g, const char *most, int r, Report *report)
{
    char text[2][16];
    if (g->visible == 0 && g->cards)
        report_host(report, SEVERITY_WARN, r, "weft --version; `make info`; nvidia-smi",
                    "there are NVIDIA cards, but %s", g->why);
    if (g->visible > 0 && !g->answers)
        report_rank(report, SEVERITY_WARN, r, "nvidia-smi; another node (sbatch --exclude)",
                    "its GPU does not answer");
    if (!g->answers) return;
    if (strcmp(g->facts.model, most) != 0)
        report_host(report, SEVERITY_WARN, r, "nodes of one kind (sbatch -C)",
                    "has %s, most have %s: a run refuses to mix them", g->facts.model, most);
    if (g->facts.free_bytes < check->threshold * g->facts.bytes)
        report_rank(report, SEVERITY_WARN, r, "nvidia-smi; pkill -u $USER weft",
                    "GPU %s has %s free of %s: others use it", g->facts.bus,
                    text_bytes(g->facts.free_bytes, text[0]), text_bytes(g->facts.bytes, text[1]));
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const Gpus *g = all;
    const char *most =
        most_common(a, all, sizeof *g, offsetof(Gpus, facts) + offsetof(GpuFacts, model));
    if (most)
        report_summary(report, "%d for each process, %s", g->visible, most);
    else
        report_summary(report, "none");
    for (int r = 0; r < a->ranks; ++r) {
        judge_rank(check, &g[r], most, r, report);
        if (place_leads(a, r)) judge_node(a, g, r, report);
    }
}

const Check check_gpus = {
    .name = "GPUs",
    .what = "free fraction of a GPU's memory",
    .threshold = 0.9,
    .limit_s = 10,
    .bytes = sizeof(Gpus),
    .measure = measure,
    .judge = judge,
};
