/* Checks the memory per rank on each node: the memory available on the machine, but at most the
 * limit of the control groups, divided by the number of ranks on the node. */
#include "measurements.h"
#include "private.h"

#include <stddef.h>
#include <string.h>

/* Returns the bytes of MemAvailable in /proc/meminfo; 0 if it cannot be read. */
static double read_available_bytes(const char *root)
{
    char line[256], *path = mem_format("%s/proc/meminfo", root);
    double kilobytes = 0;
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lf", &kilobytes) == 1) break;
    if (file) fclose(file);
    mem_free(&path);
    return 1024 * kilobytes;
}

static void measure(Doctor *d, void *mine)
{
    Memory *m = mine;
    MemoryLimit limit = memory_limit(d->options->root);
    m->limit_bytes = limit.bytes;
    m->free_bytes = read_available_bytes(d->options->root);
    if (m->free_bytes == 0 || m->free_bytes > limit.bytes) m->free_bytes = limit.bytes;
    snprintf(m->group, sizeof m->group, "%.255s", limit.group);
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    /* A node is reported if its free memory is below this fraction of the nodes' median. The node
     * with the least memory limits the size of the model on all nodes. */
    static const double MEDIAN_FRACTION = 0.8;
    const Memory *m = all;
    double median_bytes = median_of_nodes(a, all, sizeof *m, offsetof(Memory, free_bytes));
    double smallest = 0;
    char text[2][16];
    for (int r = 0; r < a->ranks; ++r) {
        if (!is_node_leader(a, r)) continue;
        double per_rank = m[r].free_bytes / a->place[r].node_size;
        if (smallest == 0 || per_rank < smallest) smallest = per_rank;
        text_bytes(per_rank, text[0]);
        if (per_rank < check->threshold)
            report_add_host(report, SEVERITY_WARN, r, "fewer ranks a node; sbatch --mem=0",
                            "%s a rank%s%s", text[0], *m[r].group ? ", limited by " : "",
                            m[r].group);
        else if (m[r].free_bytes < MEDIAN_FRACTION * median_bytes)
            report_add_host(
                report, SEVERITY_WARN, r, "free -h; ps --sort=-rss -eo rss,user,comm | head",
                "%s free, the median of nodes is %s: the node with the least memory limits "
                "all ranks",
                text_bytes(m[r].free_bytes, text[0]), text_bytes(median_bytes, text[1]));
    }
    report_set_summary(report, "%s a rank%s%s", text_bytes(smallest, text[0]),
                       *m[0].group ? ", limited by " : "", m[0].group);
}

const Check check_memory = {
    .name = "memory",
    .threshold_meaning = "bytes per rank",
    .threshold = 256e6,
    .limit_s = 2,
    .bytes = sizeof(Memory),
    .measure = measure,
    .judge = judge,
};
