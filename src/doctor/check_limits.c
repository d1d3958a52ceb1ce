/* Checks two soft limits of each rank: that on open files and, if the node has InfiniBand cards,
 * that on locked memory. */
#include "measurements.h"
#include "private.h"

#include <sys/resource.h>

static double soft_limit(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return UNLIMITED;
    return (double)limit.rlim_cur;
}

static void measure(Doctor *d, void *mine)
{
    Limits *limits = mine;
    limits->open_files = soft_limit(RLIMIT_NOFILE);
    limits->locked_bytes = soft_limit(RLIMIT_MEMLOCK);
    limits->has_infiniband = proc_count_names(d->options->root, "/sys/class/infiniband") > 0;
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const double LOCKED_BYTES_MIN = 512e6, FILES_PER_RANK = 32;
    const Limits *limits = all;
    double need = check->threshold + FILES_PER_RANK * a->ranks;
    char text[2][16];
    if (limits[0].open_files < UNLIMITED)
        report_set_summary(report, "%.0f open files", limits[0].open_files);
    else
        report_set_summary(report, "any number of open files");
    for (int r = 0; r < a->ranks; ++r) {
        if (limits[r].open_files < need)
            report_add_rank(
                report, SEVERITY_WARN, r, "ulimit -n 65536",
                "%.0f open files at most, less than %.0f: each connection to another rank "
                "is an open file, too",
                limits[r].open_files, need);
        if (limits[r].has_infiniband && limits[r].locked_bytes < LOCKED_BYTES_MIN)
            report_add_rank(report, SEVERITY_FATAL, r,
                            "ulimit -l unlimited; in Slurm LimitMEMLOCK=infinity of slurmd",
                            "%s of locked memory, less than the %s that RDMA needs",
                            text_bytes(limits[r].locked_bytes, text[0]),
                            text_bytes(LOCKED_BYTES_MIN, text[1]));
    }
}

const Check check_limits = {
    .name = "limits",
    .threshold_meaning = "open files, in addition to 32 for each rank of the job",
    .threshold = 512,
    .limit_s = 2,
    .bytes = sizeof(Limits),
    .measure = measure,
    .judge = judge,
};
