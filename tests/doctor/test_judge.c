/* Tests the judges of weft doctor: each gets measurements without a fault, and measurements of
 * which one is beyond its threshold. Needs neither ranks nor hardware. */
#include "doctor/measurements.h"
#include "doctor/private.h"
#include "harness.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>

enum { NODES = 4, RANKS_A_NODE = 2, RANKS = NODES * RANKS_A_NODE };
static Place places[RANKS];
static Allocation allocation;

static void begin(void)
{
    for (int r = 0; r < RANKS; ++r) {
        places[r] = (Place){.leader = r / RANKS_A_NODE * RANKS_A_NODE, .node_size = RANKS_A_NODE};
        snprintf(places[r].host, HOST_BYTES, "n%d", r / RANKS_A_NODE + 1);
    }
    allocation =
        (Allocation){.ranks = RANKS, .nodes = NODES, .checkpoint_bytes = 1e9, .place = places};
}

static const Check *check_named(const char *name)
{
    for (int i = 0; i < check_count(); ++i)
        if (!strcmp(check_at(i)->name, name)) return check_at(i);
    printf("  no check '%s'\n", name);
    exit(1);
}

/* Returns the text that the check prints for the measurements, owned by the caller, and its
 * severity. */
static char *judge_text(const char *name, const void *all, Severity *worst)
{
    const Check *check = check_named(name);
    Report report = {0};
    char *text = NULL;
    size_t bytes = 0;
    check->judge(check, &allocation, all, &report);
    *worst = report_worst(&report);
    FILE *out = open_memstream(&text, &bytes);
    report_print(out, check->name, &allocation, &report);
    fclose(out);
    report_fini(&report);
    return text;
}

/* Expects `severity` and a text that contains all words up to NULL. */
static void expect(const char *name, const void *all, Severity severity, ...)
{
    Severity worst;
    char *text = judge_text(name, all, &worst);
    const char *word;
    va_list words;
    va_start(words, severity);
    CU_ASSERT_EQUAL(worst, severity);
    bool bad = worst != severity;
    while ((word = va_arg(words, const char *))) {
        CU_ASSERT_PTR_NOT_NULL(strstr(text, word));
        bad = bad || !strstr(text, word);
    }
    va_end(words);
    if (bad) printf("  %s: wanted severity %d, got %d and: %s", name, severity, worst, text);
    free(text);
}
#define ALL_WELL(name, all)       expect(name, all, SEVERITY_OK, "ok", NULL)
#define WELL_SAYS(name, all, ...) expect(name, all, SEVERITY_OK, "ok", __VA_ARGS__, NULL)
#define WARNS(name, all, ...)     expect(name, all, SEVERITY_WARN, "warn", __VA_ARGS__, NULL)
#define REFUSES(name, all, ...)   expect(name, all, SEVERITY_FATAL, "fatal", __VA_ARGS__, NULL)

static void launcher(void)
{
    Launch all[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r)
        all[r] =
            (Launch){.launched = true, .tasks = RANKS, .nodes = NODES, .mpi_version = "Open MPI"};
    ALL_WELL("launcher", all);
    all[0].nodes = NODES + 1;
    WARNS("launcher", all, "4 of the job's 5 nodes");
    all[0].nodes = NODES;
    places[6].leader = places[7].leader = 4;
    for (int r = 4; r < RANKS; ++r) places[r].node_size = 4;
    allocation.nodes = 3;
    all[0].nodes = 3;
    WARNS("launcher", all, "4 ranks on one node, 2 on another");
    begin();
    all[0] = (Launch){.tasks = 4, .mpi_version = "Open MPI"};
    allocation.ranks = allocation.nodes = 1;
    WARNS("launcher", all, "alone in a job of 4 tasks", "srun");
}

static void cores(void)
{
    Cores *all = mem_new(RANKS * sizeof *all);
    begin();
    for (int r = 0; r < RANKS; ++r) {
        all[r] = (Cores){
            .threads = 2, .limits = {.cores = 2, .cpus = 2, .launcher_cores = 4}, .slurm_cpus = 2};
        all[r].core[0] = r % 2 ? 0x0c : 0x03;
    }
    ALL_WELL("cores", all);
    all[2].slurm_cpus = 4;
    WARNS("cores", all, "rank 2 on n2: the job asked for 4 CPUs a task", "2; try: srun -c");
    all[2].slurm_cpus = 2;
    all[3].core[0] = 0x03;
    WARNS("cores", all, "n2: 2 ranks with 4 threads share 2 cores");
    all[3].core[0] = 0x0c;
    for (int r = 6; r < RANKS; ++r) all[r].limits.launcher_cores = 8;
    WARNS("cores", all, "n4: the ranks are bound to 4 of the 8 cores", "--bind-to none");
    mem_free(&all);
}

static void memory(void)
{
    Memory all[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) all[r] = (Memory){.limit_bytes = 8e9, .free_bytes = 6e9};
    ALL_WELL("memory", all);
    all[4].free_bytes = 4e9;
    WARNS("memory", all, "n3: 4.0 GB free", "6.0 GB");
    all[4].free_bytes = 4e8;
    snprintf(all[4].group, sizeof all[4].group, "/a/memory.max");
    WARNS("memory", all, "n3: 200.0 MB a rank, limited by /a/memory.max");
}

static void shared_memory(void)
{
    ShmSpace all[RANKS];
    StaleFiles stale[RANKS] = {{0}};
    begin();
    for (int r = 0; r < RANKS; ++r) all[r] = (ShmSpace){.exists = true, .free_bytes = 1e9};
    ALL_WELL("/dev/shm", all);
    all[2].free_bytes = 83.9e6;
    WARNS("/dev/shm", all, "n2: 83.9 MB free", "84.0 MB", "--shm-size");
    all[2].exists = false;
    WARNS("/dev/shm", all, "n2: there is no /dev/shm");
    ALL_WELL("left in /dev/shm", stale);
    stale[0] = (StaleFiles){.count = 2, .bytes = 8192, .example = "/dev/shm/nccl-1"};
    stale[6] = stale[0];
    WARNS("left in /dev/shm", stale, "n1, n4: at least 2 files", "/dev/shm/nccl-1");
}

static void limits(void)
{
    Limits all[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) all[r] = (Limits){.open_files = 1024, .locked_bytes = 65536};
    ALL_WELL("limits", all);
    all[5].open_files = 512 + 32 * RANKS - 1;
    WARNS("limits", all, "rank 5 on n3: 767 open files", "768");
    all[5].has_infiniband = true;
    REFUSES("limits", all, "rank 5 on n3: 65.5 KB of locked memory", "ulimit -l");
    all[5] = (Limits){.open_files = 1e300, .locked_bytes = 1e300, .has_infiniband = true};
    ALL_WELL("limits", all);
}

static void versions(void)
{
    Versions *all = mem_new(RANKS * sizeof *all);
    begin();
    for (int r = 0; r < RANKS; ++r)
        snprintf(all[r].lines, sizeof all[r].lines, "weft 1\nCPU kernels: avx2\nCUDA: 2\nHDF5 1\n");
    ALL_WELL("versions", all);
    snprintf(all[0].lines, sizeof all[0].lines, "weft 1\nCPU kernels: avx2\nCUDA: 1\nHDF5 1\n");
    WARNS("versions", all, "rank 0 on n1: has 'CUDA: 1', most ranks have 'CUDA: 2'");
    snprintf(all[0].lines, sizeof all[0].lines, "weft 1\nCPU kernels: avx2\nCUDA: 2\nHDF5 12\n");
    REFUSES("versions", all, "rank 0 on n1: has 'HDF5 12', most ranks have 'HDF5 1'",
            "module list");
    snprintf(all[0].lines, sizeof all[0].lines, "weft 1\nCPU kernels: base\nCUDA: 2\nHDF5 1\n");
    REFUSES("versions", all, "has 'CPU kernels: base'", "train.cpu");
    mem_free(&all);
}

static void files_that_differ(void)
{
    Libraries *all = mem_new(RANKS * sizeof *all);
    Processor processor[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) {
        all[r] = (Libraries){2, {{"weft", 1}, {"libmpi.so.40", 2}}};
        snprintf(processor[r].model, CPU_MODEL, "EPYC");
    }
    ALL_WELL("libraries", all);
    ALL_WELL("processors", processor);
    all[0].file[1].hash = all[1].file[1].hash = 3;
    WARNS("libraries", all, "rank 0 on n1, rank 1 on n1: libmpi.so.40 differs from the file");
    all[7].file[0].hash = 3;
    REFUSES("libraries", all, "rank 7 on n4: weft differs from the file");
    snprintf(processor[4].model, CPU_MODEL, "Xeon");
    snprintf(processor[5].model, CPU_MODEL, "Xeon");
    WARNS("processors", processor, "has Xeon, most ranks have EPYC");
    mem_free(&all);
}

static void gpus(void)
{
    Gpus all[RANKS] = {0};
    begin();
    WELL_SAYS("GPUs", all, "none");
    for (int r = 0; r < RANKS; ++r) {
        all[r] = (Gpus){.visible = RANKS_A_NODE, .has_nvidia_gpu = true, .responds = true};
        all[r].facts = (GpuFacts){.free_bytes = 79e9, .bytes = 80e9};
        snprintf(all[r].facts.model, sizeof all[r].facts.model, "H100");
        snprintf(all[r].facts.bus, sizeof all[r].facts.bus, "%d", r % RANKS_A_NODE);
    }
    WELL_SAYS("GPUs", all, "2 for each process, H100");
    /* each rank sees only its own GPU, a setting of Slurm */
    for (int r = 0; r < RANKS; ++r) all[r].visible = 1;
    WELL_SAYS("GPUs", all, "1 for each process, H100");
    all[5].facts.free_bytes = 71e9;
    WARNS("GPUs", all, "rank 5 on n3: GPU 1 has 71.0 GB free of 80.0 GB: other processes use it");
    all[5].facts = all[4].facts;
    WARNS("GPUs", all, "n3: 2 ranks share 1 GPU and");
    all[5] = all[3];
    all[4].visible = 8;
    WARNS("GPUs", all, "n3: 2 of 8 GPUs have a rank");
    all[4].visible = 2;
    snprintf(all[4].facts.model, sizeof all[4].facts.model, "A100");
    WARNS("GPUs", all, "n3: has A100, most ranks have H100: a run refuses");
    all[4].responds = false;
    WARNS("GPUs", all, "rank 4 on n3: its GPU does not answer");
    all[4] = (Gpus){.has_nvidia_gpu = true, .reason = "built without CUDA"};
    WARNS("GPUs", all, "n3: the node has NVIDIA GPUs, but built without CUDA");
}

static void clocks(void)
{
    Clock all[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) all[r] = (Clock){.source = "tsc", .ahead_s = 1e-4};
    ALL_WELL("clocks", all);
    all[4].ahead_s = -3;
    WARNS("clocks", all, "n3: its clock is 3.0 s behind", "chrony");
    /* the first node's clock is wrong, and others are measured by it */
    for (int r = 0; r < RANKS; ++r) all[r].ahead_s = r < RANKS_A_NODE ? 0 : 5;
    WARNS("clocks", all, "n1: its clock is 5.0 s behind");
    for (int r = 0; r < RANKS; ++r) all[r].ahead_s = 0;
    snprintf(all[2].source, sizeof all[2].source, "hpet");
    WARNS("clocks", all, "n2: the kernel's clock is hpet");
}

static void speed(void)
{
    CoreSpeed all[RANKS];
    Triad triad[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) {
        all[r] = (CoreSpeed){.speed = 100 + r % 3, .run_fraction = 0.99, .cpu = r};
        triad[r] = (Triad){5e9};
    }
    ALL_WELL("speed of cores", all);
    all[6].speed = 92;
    WARNS("speed of cores", all, "rank 6 on n4: CPU 6 has 91 %");
    all[6].run_fraction = 0.5;
    WARNS("speed of cores", all, "rank 6 on n4: a thread ran for 50 % of the time, on CPU 6");
    ALL_WELL("memory bandwidth", triad);
    triad[3].bytes_per_s = 3.9e9;
    WARNS("memory bandwidth", triad, "n2: 8.9 GB/s", "is 10");
}

static void quota(void)
{
    Quota all[RANKS];
    begin();
    for (int r = 0; r < RANKS; ++r) all[r] = (Quota){.cores = 2, .elapsed_s = 5};
    ALL_WELL("processor quota", all);
    all[2].throttled_s = 0.2;
    WARNS("processor quota", all, "n2: processes waited for 0.2 s");
    all[2].cores = 1.5;
    WARNS("processor quota", all, "n2: control groups allow 1.5 cores for 2 ranks");
}

/* Makes a network in which all pairs of node leaders are equally fast. */
static Network *network_new(void)
{
    Network *all = mem_new(RANKS * sizeof *all);
    begin();
    for (int i = 0; i < NODES; ++i) {
        Network *n = &all[i * RANKS_A_NODE];
        for (int k = 0; k < NODES; ++k)
            if (k != i) n->pair[n->peers++] = (struct Pair){k * RANKS_A_NODE, 1e-5, 1e9};
        n->used = n->fastest = (Card){"eth0", 1e7, 1.25e9, 1500, true, true, -1, false};
    }
    return all;
}

static void set_pair(Network *all, int a, int b, double latency_s, double bytes_per_s)
{
    for (int turn = 0; turn < 2; ++turn) {
        Network *n = &all[(turn ? b : a) * RANKS_A_NODE];
        for (int i = 0; i < n->peers; ++i)
            if (n->pair[i].peer == (turn ? a : b) * RANKS_A_NODE) {
                n->pair[i].latency_s = latency_s;
                n->pair[i].bytes_per_s = bytes_per_s;
            }
    }
}

static void network(void)
{
    Network *all = network_new();
    ALL_WELL("latency", all);
    ALL_WELL("bandwidth", all);
    set_pair(all, 0, 2, 1e-5, 0.79e9);
    WARNS("bandwidth", all, "n1: pair with n3: 790 MB/s, less than 80 % of 1000");
    ALL_WELL("latency", all);
    set_pair(all, 0, 2, 3.1e-5, 1e9);
    WARNS("latency", all, "n1: pair with n3: 31.0 us for 8 bytes, more than 3 times 10.0");
    /* a node that is slow in every pair is named, instead of the pairs */
    for (int i = 0; i < NODES; ++i)
        if (i != 1) set_pair(all, 1, i, 1e-4, 1e8);
    Severity worst;
    char *text = judge_text("bandwidth", all, &worst);
    CU_ASSERT_PTR_NOT_NULL(strstr(text, "n2: best pair 100 MB/s, less than 80 % of 1000"));
    CU_ASSERT_PTR_NULL(strstr(text, "with n2"));
    free(text);
    WARNS("latency", all, "n2: best pair 100.0 us");
    mem_free(&all);
}

static void network_card(void)
{
    Network *all = network_new();
    ALL_WELL("network card", all);
    all[2].fastest = (Card){"ib0", 1e4, 12.5e9, 2044, true, true, -1, false};
    WARNS("network card", all, "n2: messages go over eth0 (1250 MB/s), and ib0 (12500 MB/s)");
    all[2].fastest.sent_bytes = 5e7;
    ALL_WELL("network card", all);
    all[4].used.mtu = 1400;
    WARNS("network card", all, "n3: packets of 1400 bytes on eth0, on most nodes of 1500");
    snprintf(all[6].used.name, sizeof all[6].used.name, "docker0");
    WARNS("network card", all, "n4: messages go over docker0, on most nodes over eth0");
    mem_free(&all);
}

static FolderTest *files_new(void)
{
    FolderTest *all = mem_new(RANKS * sizeof *all);
    begin();
    for (int r = 0; r < RANKS; r += RANKS_A_NODE)
        all[r] = (FolderTest){.tested = true,
                              .answered = true,
                              .last_call = "end",
                              .type = "NFS",
                              .free_bytes = 3.1e9,
                              .inodes = 1e6,
                              .free_inodes = 1001,
                              .sync_s = 0.049,
                              .write_bytes_per_s = 1e8,
                              .read_bytes_per_s = 1e8};
    return all;
}

static void files(void)
{
    FolderTest *all = files_new();
    static const char *const names[] = {"file system", "space",      "inodes",   "file locks",
                                        "sync time",   "write rate", "read rate"};
    for (size_t i = 0; i < sizeof names / sizeof *names; ++i) ALL_WELL(names[i], all);
    all[2].free_bytes = 2.9e9;
    WARNS("space", all, "n2: 2.9 GB free, less than 3 checkpoints of 1.0 GB");
    all[2].free_bytes = 0.9e9;
    REFUSES("space", all, "less than 1 checkpoint of");
    all[4].free_inodes = 999;
    WARNS("inodes", all, "n3: room for 999 more files, of 1000000");
    all[4].flock_error = ENOLCK;
    WARNS("file locks", all, "n3: flock: No locks available", "HDF5_USE_FILE_LOCKING=FALSE");
    all[4].flock_error = 0;
    all[4].fcntl_error = ENOLCK;
    WARNS("file locks", all, "n3: fcntl: No locks available");
    all[0].sync_s = 0.051;
    WARNS("sync time", all, "n1: 51 ms");
    all[6].write_bytes_per_s = 4.9e7;
    WARNS("write rate", all, "n4: 49 MB/s, the median of nodes is 100");
    ALL_WELL("read rate", all);
    all[6].read_bytes_per_s = 1.9e7;
    WARNS("read rate", all, "n4: 19.0 MB/s");
    all[6].answered = false;
    snprintf(all[6].last_call, sizeof all[6].last_call, "statfs");
    REFUSES("file system", all, "n4: no answer within 6 s, at statfs");
    all[6].not_started = true;
    REFUSES("file system", all, "n4: the process that tests the folder cannot be started");
    mem_free(&all);
}

static void files_that_fail(void)
{
    FolderTest *all = files_new();
    SharedFile shared[RANKS];
    static const char *const later[] = {"space",     "inodes",     "file locks",
                                        "sync time", "write rate", "read rate"};
    for (int r = 0; r < RANKS; ++r)
        snprintf(all[r].existing_parent, sizeof all[r].existing_parent, "/scratch/me");
    WELL_SAYS("file system", all, "NFS; the folder does not exist: checked /scratch/me");
    all[2].open_error = EACCES;
    REFUSES("file system", all, "n2: cannot make the folder in /scratch/me: Permission denied");
    for (int r = 0; r < RANKS; ++r) all[r].existing_parent[0] = 0;
    all[2].open_error = EROFS;
    REFUSES("file system", all, "n2: cannot make a file: Read-only file system");
    all[2].open_error = ENOENT;
    REFUSES("file system", all, "mkdir");
    all[2].open_error = 0;
    all[2].write_error = EDQUOT;
    REFUSES("file system", all, "n2: cannot write: Disk quota exceeded", "quota -s");
    all[2].write_error = 0;
    all[2].read_error = EIO;
    REFUSES("file system", all, "n2: cannot read: Input/output error", "dmesg");
    all[2].read_error = 0;
    all[2].space_error = ENOSYS;
    all[2].free_bytes = all[2].inodes = all[2].free_inodes = 0;
    WARNS("file system", all, "n2: the free space is not known: statfs: Function not implemented");
    ALL_WELL("space", all);
    all[2].space_error = 0;
    snprintf(all[2].type, sizeof all[2].type, "tmpfs");
    WARNS("file system", all, "n2: the folder is on tmpfs, the first node's on NFS");
    for (int r = 0; r < RANKS; ++r) shared[r] = (SharedFile){r % RANKS_A_NODE == 0, true};
    ALL_WELL("shared folder", shared);
    for (int r = 0; r < RANKS; ++r) all[r] = (FolderTest){.tested = all[r].tested};
    for (size_t i = 0; i < sizeof later / sizeof *later; ++i)
        expect(later[i], all, SEVERITY_SKIP, "skip", "not measured", NULL);
    shared[4].found = false;
    REFUSES("shared folder", shared, "n3: a file of the first node, n1, is not visible");
    mem_free(&all);
}

/* Equal findings are printed once, and many hosts as a few names and a number. */
static void grouped(void)
{
    enum { MANY = 100 };
    Place *many = mem_new(MANY * sizeof *many);
    ShmSpace *all = mem_new(MANY * sizeof *all);
    for (int r = 0; r < MANY; ++r) {
        many[r] = (Place){.leader = r, .node_size = 1};
        snprintf(many[r].host, HOST_BYTES, "n%d", r);
        all[r] = (ShmSpace){.exists = true, .free_bytes = r ? 1e6 : 1e9};
    }
    allocation = (Allocation){.ranks = MANY, .nodes = MANY, .place = many};
    WARNS("/dev/shm", all, "n1, n2, n3, n4, n5, n6 and 93 more: 1.0 MB free");
    mem_free(&all);
    mem_free(&many);
}

/* Every row names its threshold, and either measures or follows a row that does and has a struct of
 * the same size. */
static void table(void)
{
    size_t bytes = 0;
    for (int i = 0; i < check_count(); ++i) {
        const Check *check = check_at(i);
        CU_ASSERT(check->judge && check->name && check->threshold_meaning);
        if (check->measure)
            bytes = check->bytes;
        else
            CU_ASSERT_EQUAL(check->bytes, bytes);
        CU_ASSERT(!check->measure || check->limit_s > 0);
    }
}

TEST_MAIN("judge", {"launcher", launcher}, {"cores", cores}, {"memory", memory},
          {"shared memory", shared_memory}, {"limits", limits}, {"versions", versions},
          {"files that differ", files_that_differ}, {"GPUs", gpus}, {"clocks", clocks},
          {"speed", speed}, {"quota", quota}, {"network", network}, {"network card", network_card},
          {"files", files}, {"files that fail", files_that_fail}, {"grouped", grouped},
          {"table", table})
