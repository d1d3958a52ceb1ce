/* Tests the doctor's measurements on a made-up machine, whose /proc, /sys and /dev are folders of
 * files; and the pairing of nodes. */
#include "doctor/measurements.h"
#include "doctor/private.h"
#include "harness.h"

#include <sys/resource.h>
#include <sys/stat.h>
#include <utime.h>

static char root[64];
static DoctorOptions options;
static Doctor doctor;

static void begin(void)
{
    snprintf(root, sizeof root, "/tmp/weft-doctor-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
    options = (DoctorOptions){.folder = ".", .versions = "", .root = root, .is_first_task = true};
    doctor = (Doctor){.options = &options, .is_leader = true};
    CHECK_OK(world_init(&doctor.world, NULL, NULL));
    doctor.leaders = doctor.world;
}

static void end(void)
{
    char *command = mem_format("rm -r %s", root);
    CU_ASSERT_EQUAL(system(command), 0);
    mem_free(&command);
}

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

/* Measures, and judges the result as the only rank. */
static void expect(const char *name, Severity severity, const char *word)
{
    static const Place place = {.host = "here", .node_size = 1};
    static const Allocation alone = {.ranks = 1, .nodes = 1, .place = &place};
    const Check *check = NULL;
    for (int i = 0; i < check_count(); ++i)
        if (!strcmp(check_at(i)->name, name)) check = check_at(i);
    CU_ASSERT_PTR_NOT_NULL_FATAL(check);
    char *mine = mem_new(check->bytes), *text = NULL;
    size_t bytes = 0;
    Report report = {0};
    check->measure(&doctor, mine);
    check->judge(check, &alone, mine, &report);
    FILE *out = open_memstream(&text, &bytes);
    report_print(out, name, &alone, &report);
    fclose(out);
    CU_ASSERT_EQUAL(report_worst(&report), severity);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, word));
    if (!strstr(text, word)) printf("  lacks '%s': %s", word, text);
    report_fini(&report);
    mem_free(&mine);
    free(text);
}

static void memory_of_a_group(void)
{
    begin();
    put("/proc/meminfo", "MemTotal: 16000000 kB\nMemAvailable:    1000000 kB\n");
    expect("memory", SEVERITY_OK, "1.0 GB a rank");
    put("/proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n");
    put("/proc/self/cgroup", "0::/job\n");
    put("/sys/fs/cgroup/job/memory.max", "200000000\n");
    expect("memory", SEVERITY_WARN, "200.0 MB a rank, limited by /sys/fs/cgroup/job/memory.max");
    end();
}

static void quota_of_a_group(void)
{
    begin();
    expect("processor quota", SEVERITY_OK, "no limit");
    put("/proc/self/cgroup", "0::/job\n");
    put("/sys/fs/cgroup/job/cpu.max", "150000 100000\n");
    put("/sys/fs/cgroup/job/cpu.stat", "usage_usec 5\nnr_throttled 2\nthrottled_usec 900000\n");
    doctor.begin_s = clock_s() - 10;
    doctor.throttled_s = 0.9;
    expect("processor quota", SEVERITY_OK, "1.5 cores");
    doctor.throttled_s = 0;
    expect("processor quota", SEVERITY_WARN, "waited for 0.9 s because of a limit of 1.5 cores");
    put("/sys/fs/cgroup/job/cpu.max", "50000 100000\n");
    expect("processor quota", SEVERITY_WARN, "0.5 cores for 1 rank");
    end();
    begin();
    put("/proc/self/cgroup", "3:cpu,cpuacct:/job\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_quota_us", "120000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.cfs_period_us", "100000\n");
    put("/sys/fs/cgroup/cpu/job/cpu.stat", "nr_throttled 2\nthrottled_time 900000000\n");
    doctor.begin_s = clock_s() - 10;
    expect("processor quota", SEVERITY_WARN, "waited for 0.9 s because of a limit of 1.2 cores");
    end();
}

static void clock_source(void)
{
    begin();
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc\n");
    expect("clocks", SEVERITY_OK, "tsc");
    put("/sys/devices/system/clocksource/clocksource0/current_clocksource", "acpi_pm\n");
    expect("clocks", SEVERITY_WARN, "acpi_pm");
    end();
}

static void rdma_without_locked_memory(void)
{
    struct rlimit before, small = {65536, 65536};
    begin();
    getrlimit(RLIMIT_MEMLOCK, &before);
    small.rlim_max = before.rlim_max;
    setrlimit(RLIMIT_MEMLOCK, &small);
    expect("limits", SEVERITY_OK, "open files");
    put("/sys/class/infiniband/mlx5_0/node_type", "1: CA\n");
    expect("limits", SEVERITY_FATAL, "65.5 KB of locked memory");
    setrlimit(RLIMIT_MEMLOCK, &before);
    end();
}

/* A file that is left behind: old, of this user, and mapped by no process. Others are young, in
 * use, or of another user. */
static void left_behind(void)
{
    struct utimbuf old = {1000000, 1000000};
    begin();
    put("/dev/shm/vader_segment.a.1", "1234");
    put("/dev/shm/data", "1234");
    put("/proc/12/maps", "7f00-7f01 rw-s 0 0:1 2 /elsewhere\n");
    expect("left in /dev/shm", SEVERITY_OK, "nothing");
    char *path = mem_format("%s/dev/shm/vader_segment.a.1", root);
    CU_ASSERT_EQUAL(utime(path, &old), 0);
    expect("left in /dev/shm", SEVERITY_WARN, "at least 1 file of earlier jobs");
    char *maps = mem_format("7f00-7f01 rw-s 0 0:1 2 %s\n", path);
    put("/proc/12/maps", maps);
    expect("left in /dev/shm", SEVERITY_OK, "nothing");
    mem_free(&maps);
    mem_free(&path);
    end();
}

static void put_card(const char *name, const char *sent, const char *speed, const char *state)
{
    static const char *const files[] = {"statistics/tx_bytes", "speed", "operstate", "mtu"};
    const char *texts[] = {sent, speed, state, "1500\n"};
    for (int i = 0; i < 4; ++i) {
        char *path = mem_format("/sys/class/net/%s/%s", name, files[i]);
        put(path, texts[i]);
        mem_free(&path);
    }
}

static void cards(void)
{
    Card before[CARDS_MAX], after[CARDS_MAX];
    Network network;
    begin();
    put_card("lo", "0\n", "100000\n", "unknown\n");
    put_card("eth0", "1000\n", "1000\n", "up\n");
    put_card("eth1", "1000\n", "25000\n", "down\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "1000\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    int count = cards_read(root, before);
    CU_ASSERT_EQUAL(count, 3);
    put_card("lo", "99000000\n", "100000\n", "unknown\n");
    put_card("eth0", "9001000\n", "1000\n", "up\n");
    int count_after = cards_read(root, after);
    cards_compare(before, count, after, count_after, 1e6, &network);
    CU_ASSERT_STRING_EQUAL(network.used.name, "eth0");
    CU_ASSERT_EQUAL(network.used.sent_bytes, 9e6);
    CU_ASSERT_EQUAL(network.used.bytes_per_s, 125e6);
    CU_ASSERT_STRING_EQUAL(network.fastest.name, "mlx5_0");
    CU_ASSERT_EQUAL(network.fastest.bytes_per_s, 12.5e9);
    CU_ASSERT_EQUAL(network.fastest.sent_bytes, 0);
    put("/sys/class/infiniband/mlx5_0/ports/1/counters/port_xmit_data", "5001000\n");
    count_after = cards_read(root, after);
    cards_compare(before, count, after, count_after, 1e6, &network);
    CU_ASSERT_STRING_EQUAL(network.used.name, "mlx5_0");
    CU_ASSERT_EQUAL(network.used.sent_bytes, 2e7);
    cards_compare(after, count_after, after, count_after, 1e6, &network);
    CU_ASSERT_STRING_EQUAL(network.used.name, "");
    end();
}

TEST_MAIN("measure", {"memory of a group", memory_of_a_group},
          {"quota of a group", quota_of_a_group}, {"clock source", clock_source},
          {"RDMA without locked memory", rdma_without_locked_memory}, {"left behind", left_behind},
          {"cards", cards})
