/* Limits of a process: open files, and locked memory if there are InfiniBand cards. */
#include "figures.h"
#include "private.h"

#include <sys/resource.h>

static double limit_of(int resource)
{
    struct rlimit limit;
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 1e300;
    return (double)limit.rlim_cur;
}

static void measure(Doctor *d, void *mine)
{
    Limits *limits = mine;
    limits->files = limit_of(RLIMIT_NOFILE);
    limits->locked_bytes = limit_of(RLIMIT_MEMLOCK);
    limits->rdma = doctor_entries(d->options->root, "/sys/class/infiniband") > 0;
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    static const double LOCKED_BYTES = 512e6, FILES_A_RANK = 32;
    const Limits *limits = all;
    double need = check->threshold + FILES_A_RANK * a->ranks;
    char text[16];
    if (limits->files < 1e300)
        report_summary(report, "%.0f open files", limits->files);
    else
        report_summary(report, "any number of open files");
    for (int r = 0; r < a->ranks; ++r) {
        if (limits[r].files < need)
            report_rank(report, SEVERITY_WARN, r, "ulimit -n 65536",
                        "%.0f open files at most, less than %.0f: connections to other ranks are "
                        "files, too",
                        limits[r].files, need);
        if (limits[r].rdma && limits[r].locked_bytes < LOCKED_BYTES)
            report_rank(report, SEVERITY_FATAL, r,
                        "ulimit -l unlimited; in Slurm LimitMEMLOCK=infinity of slurmd",
                        "%s of locked memory, less than the 512 MB that RDMA needs",
                        text_bytes(limits[r].locked_bytes, text));
    }
}

const Check check_limits = {
    .name = "limits",
    .what = "open files, in addition to 32 for each rank of the job",
    .threshold = 512,
    .limit_s = 2,
    .bytes = sizeof(Limits),
    .measure = measure,
    .judge = judge,
};
