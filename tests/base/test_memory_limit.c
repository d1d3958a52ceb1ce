/* Limits of control groups, read below a folder that stands for the root: both versions, nested
 * groups, mounts of a part. */
#include "base.h"
#include "harness.h"

#include <sys/stat.h>

static char root[64];

/* Writes text to root/path and makes the folders on the way. */
static void put(const char *path, const char *text)
{
    char *name = mem_format("%s%s", root, path);
    for (char *at = name + strlen(root) + 1; *at; ++at) {
        if (*at != '/') continue;
        *at = 0;
        mkdir(name, 0777);
        *at = '/';
    }
    FILE *file = fopen(name, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(file);
    fputs(text, file);
    fclose(file);
    mem_free(&name);
}

static void begin(void)
{
    snprintf(root, sizeof root, "/tmp/weft-limit-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
}

static void end(double bytes, const char *group)
{
    MemoryLimit limit = memory_limit(root);
    if (bytes < 0) bytes = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGE_SIZE);
    CU_ASSERT_EQUAL(limit.bytes, bytes);
    CU_ASSERT_STRING_EQUAL(limit.group, group);
    char *command = mem_format("rm -r %s", root);
    CU_ASSERT_EQUAL(system(command), 0);
    mem_free(&command);
}

#define V2_MOUNT "31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
#define V1_MOUNTS                                                                                  \
    "22 1 8:1 / / rw - ext4 /dev/sda1 rw\n"                                                        \
    "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n"                          \
    "35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"

static void no_groups(void)
{
    begin();
    end(-1, "");
}

static void version_2(void)
{
    begin();
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/proc/self/cgroup", "0::/slurm/job_7/step_0\n");
    put("/sys/fs/cgroup/slurm/job_7/step_0/memory.max", "max\n");
    put("/sys/fs/cgroup/slurm/job_7/memory.max", "300000000\n");
    put("/sys/fs/cgroup/slurm/memory.max", "900000000\n");
    end(3e8, "/sys/fs/cgroup/slurm/job_7/memory.max");
}

/* The step's limit is less than the job's, and a group above limits both. */
static void least_of_all(void)
{
    begin();
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/proc/self/cgroup", "0::/job/step\n");
    put("/sys/fs/cgroup/job/step/memory.max", "500000\n");
    put("/sys/fs/cgroup/job/memory.max", "700000\n");
    end(5e5, "/sys/fs/cgroup/job/step/memory.max");
    begin();
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/proc/self/cgroup", "0::/job/step\n");
    put("/sys/fs/cgroup/job/step/memory.max", "500000\n");
    put("/sys/fs/cgroup/memory.max", "400000\n");
    end(4e5, "/sys/fs/cgroup/memory.max");
}

static void unlimited(void)
{
    begin();
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/proc/self/cgroup", "0::/a\n");
    put("/sys/fs/cgroup/a/memory.max", "max\n");
    end(-1, "");
    begin();
    put("/proc/self/mountinfo", V1_MOUNTS);
    put("/proc/self/cgroup", "4:memory:/a\n");
    put("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712\n");
    end(-1, "");
}

/* Version 1 next to a version 2 without the memory controller. */
static void version_1(void)
{
    begin();
    put("/proc/self/mountinfo",
        V1_MOUNTS "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "5:devices:/x\n4:cpuset,memory:/slurm/job_7\n0::/\n");
    put("/sys/fs/cgroup/memory/slurm/job_7/memory.limit_in_bytes", "200000\n");
    put("/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "100000\n");
    end(1e5, "/sys/fs/cgroup/memory/slurm/memory.limit_in_bytes");
}

/* A container sees its own part of the groups, but the path may be the whole one, or one outside of
 * the mount. */
static void part_of_the_tree(void)
{
    begin();
    put("/proc/self/mountinfo",
        "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/proc/self/cgroup", "4:memory:/docker/ab/inner\n");
    put("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", "900\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "800\n");
    end(800, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
    begin();
    put("/proc/self/mountinfo", V2_MOUNT);
    put("/proc/self/cgroup", "0::/../other\n");
    put("/sys/fs/cgroup/memory.max", "700\n");
    put("/sys/fs/other/memory.max", "100\n");
    end(700, "/sys/fs/cgroup/memory.max");
    begin();
    put("/proc/self/mountinfo",
        "35 31 0:32 /docker/ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
    put("/proc/self/cgroup", "4:memory:/docker/abc\n");
    put("/sys/fs/cgroup/memory/memory.limit_in_bytes", "600\n");
    put("/sys/fs/cgroup/memoryc/memory.limit_in_bytes", "500\n");
    end(600, "/sys/fs/cgroup/memory/memory.limit_in_bytes");
}

static void mounted_elsewhere(void)
{
    begin();
    put("/proc/self/mountinfo", "31 23 0:28 / /mnt/my\\040groups rw - cgroup2 none rw\n");
    put("/proc/self/cgroup", "0::/a b\n");
    put("/mnt/my groups/a b/memory.max", "4096\n");
    end(4096, "/mnt/my groups/a b/memory.max");
}

TEST_MAIN("memory limit", {"no groups", no_groups}, {"version 2", version_2},
          {"the least of all", least_of_all}, {"unlimited", unlimited}, {"version 1", version_1},
          {"a part of the tree", part_of_the_tree}, {"mounted elsewhere", mounted_elsewhere})
