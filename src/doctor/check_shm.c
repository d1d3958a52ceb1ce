/* Checks the free space in /dev/shm, where MPI and NCCL keep the memory that ranks of a node share.
 * If there is too little space, ranks die of SIGBUS in their first large message. The shared memory
 * that weft itself allocates is not in /dev/shm. */
#include "measurements.h"
#include "private.h"

#include <sys/statvfs.h>

/* bytes needed on each node, in addition to the threshold for each rank */
static const double BASE_BYTES = 64e6;

static void measure(Doctor *d, void *mine)
{
    ShmSpace *space = mine;
    struct statvfs fs;
    char *path = mem_format("%s/dev/shm", d->options->root);
    space->exists = statvfs(path, &fs) == 0;
    if (space->exists) space->free_bytes = (double)fs.f_bavail * (double)fs.f_frsize;
    mem_free(&path);
}

static void judge(const Check *check, const Allocation *a, const void *all, Report *report)
{
    const ShmSpace *space = all;
    double smallest = -1;
    char text[2][16];
    for (int r = 0; r < a->ranks; ++r) {
        if (!is_node_leader(a, r)) continue;
        double need = BASE_BYTES + check->threshold * a->place[r].node_size;
        if (!space[r].exists)
            report_add_host(report, SEVERITY_WARN, r, "mount -t tmpfs shm /dev/shm",
                            "there is no /dev/shm, which MPI and NCCL need");
        else if (space[r].free_bytes < need)
            report_add_host(
                report, SEVERITY_WARN, r,
                "docker run --shm-size=1g or --ipc=host; mount -o remount,size=1g /dev/shm",
                "%s free, less than %s: ranks of MPI and NCCL may die of SIGBUS",
                text_bytes(space[r].free_bytes, text[0]), text_bytes(need, text[1]));
        if (smallest < 0 || space[r].free_bytes < smallest) smallest = space[r].free_bytes;
    }
    report_set_summary(report, "%s free", text_bytes(smallest, text[0]));
}

const Check check_shm = {
    .name = "/dev/shm",
    .threshold_meaning = "bytes per rank, in addition to 64 MB",
    .threshold = 10e6,
    .limit_s = 2,
    .bytes = sizeof(ShmSpace),
    .measure = measure,
    .judge = judge,
};
