/* Memory available to a rank: on the machine, and within its control groups. */
#include "figures.h"
#include "private.h"

#include <stddef.h>
#include <string.h>

static double available(const char *root)
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
    m->free_bytes = available(d->options->root);
    if (m->free_bytes == 0 || m->free_bytes > limit.bytes) m->free_bytes = limit.bytes;
    snprintf(m->group, sizeof m->group, "%.255s", limit.group);
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    /* share of the nodes' median; the node with least memory decides what all ranks may use */
    static const double SHARE = 0.8;
    const Memory *m = all;
    double middle = median_of_nodes(a, all, sizeof *m, offsetof(Memory, free_bytes));
    double least = 0;
    char text[2][16];
    for (int r = 0; r < a->ranks; ++r) {
        if (!place_leads(a, r)) continue;
        double each = m[r].free_bytes / a->place[r].node_size;
        if (least == 0 || each < least) least = each;
        text_bytes(each, text[0]);
        if (each < check->threshold)
            report_host(report, SEVERITY_WARN, r, "fewer ranks a node; sbatch --mem=0",
                        "%s a rank%s%s", text[0], *m[r].group ? ", by " : "", m[r].group);
        else if (m[r].free_bytes < SHARE * middle)
            report_host(report, SEVERITY_WARN, r,
                        "free -h; ps --sort=-rss -eo rss,user,comm | head",
                        "%s free, on most nodes %s: what fits here decides for all",
                        text_bytes(m[r].free_bytes, text[0]), text_bytes(middle, text[1]));
    }
    report_summary(report, "%s a rank%s%s", text_bytes(least, text[0]), *m[0].group ? ", by " : "",
                   m[0].group);
}

const Check check_memory = {
    .name = "memory",
    .what = "bytes per rank",
    .threshold = 256e6,
    .limit_s = 2,
    .bytes = sizeof(Memory),
    .measure = measure,
    .judge = judge,
};
