/* Hardware of made-up nodes: CPUs by hwloc's synthetic machines as XML, cards from a folder that
 * stands for /, GPUs by a made-up NVML (nvml.c); files of it, and ranks on it. */
#include "harness.h"
#include "topo.h"
#include "topo/layout.h"

#include <dlfcn.h>
#include <hwloc.h>
#include <sys/stat.h>

/* Returns the XML of a synthetic machine, owned by the caller. */
static char *synthetic_xml(const char *description, size_t *bytes)
{
    hwloc_topology_t topology;
    char *buffer, *copy;
    int length;
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_init(&topology), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_set_synthetic(topology, description), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_load(topology), 0);
    CU_ASSERT_EQUAL_FATAL(hwloc_topology_export_xmlbuffer(topology, &buffer, &length, 0), 0);
    copy = mem_text(buffer);
    *bytes = strlen(copy);
    hwloc_free_xmlbuffer(topology, buffer);
    hwloc_topology_destroy(topology);
    return copy;
}

static Hardware synthetic(const char *description)
{
    Hardware h;
    size_t bytes;
    char *xml = synthetic_xml(description, &bytes);
    CHECK_OK(hardware_from_xml(&h, "made-up", xml, bytes));
    mem_free(&xml);
    return h;
}

static void check_cpus(const cpu_set_t *cpus, const char *expected)
{
    char text[256];
    CU_ASSERT_STRING_EQUAL(cpus_write(text, sizeof text, cpus), expected);
}

static void test_cpus(void)
{
    static const char *const good[] = {"", "0", "0-3,8", "5,7,9-1023"};
    static const char *const bad[] = {"a",  "0-",   "-1",      "3-2", "0,",
                                      ",0", "1024", "0-1,...", "0 1", "99999999999999999999"};
    char text[32];
    cpu_set_t cpus;
    for (size_t i = 0; i < sizeof good / sizeof *good; ++i) {
        CU_ASSERT(cpus_read(good[i], &cpus));
        check_cpus(&cpus, good[i]);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) CU_ASSERT(!cpus_read(bad[i], &cpus));
    CU_ASSERT(cpus_read("0,2,4,6,8,10,12,14,16,18,20,22", &cpus));
    CU_ASSERT_STRING_EQUAL(cpus_write(text, sizeof text, &cpus), "0,2,4,6,8,10,12,14,16,18,20,...");
}

/* Two sockets, each with two NUMA nodes, each with one L3 of two cores with an L2 each. */
static void test_parts(void)
{
    Hardware h = synthetic("pack:2 group:2 [numa(memory=1073741824)] l3:1(size=33554432) "
                           "l2:2(size=1048576) core:1 pu:2");
    static const PartKind kinds[] = {PART_PACKAGE, PART_NUMA, PART_L3, PART_L2, PART_CORE};
    static const int counts[] = {2, 4, 4, 8, 8};
    for (int i = 0; i < 5; ++i) CU_ASSERT_EQUAL(hardware_count(&h, kinds[i]), counts[i]);
    CU_ASSERT_EQUAL_FATAL(h.parts, 26);
    for (int i = 0; i < 5; ++i) {
        CU_ASSERT_EQUAL(h.part[i].kind, kinds[i]);
        CU_ASSERT_EQUAL(h.part[i].parent, i - 1);
        CU_ASSERT_EQUAL(h.part[i].depth, i);
    }
    CU_ASSERT_EQUAL(h.part[1].bytes, 1073741824);
    CU_ASSERT_EQUAL(h.part[2].bytes, 33554432);
    CU_ASSERT_EQUAL(h.part[3].bytes, 1048576);
    check_cpus(&h.part[0].cpus, "0-7");
    check_cpus(&h.part[1].cpus, "0-3");
    check_cpus(&h.part[4].cpus, "0-1");
    CU_ASSERT_EQUAL(hardware_next(&h, -1, 1), 13);
    CU_ASSERT_EQUAL(hardware_next(&h, 13, 14), 14);
    CU_ASSERT_EQUAL(hardware_next(&h, -1, 14), -1);
    cpu_set_t cpus;
    CU_ASSERT(cpus_read("8-9", &cpus));
    CU_ASSERT_EQUAL(hardware_find(&h, PART_PACKAGE, &cpus), 13);
    CU_ASSERT(cpus_read("7-8", &cpus));
    CU_ASSERT_EQUAL(hardware_find(&h, PART_PACKAGE, &cpus), -1);
    hardware_fini(&h);

    /* a second NUMA node of the same CPUs contains nothing */
    h = synthetic("pack:1 [numa] [numa] core:2 pu:1");
    CU_ASSERT_EQUAL(hardware_count(&h, PART_NUMA), 2);
    CU_ASSERT_EQUAL(hardware_count(&h, PART_CORE), 2);
    for (int i = 0; i < h.parts; ++i)
        if (h.part[i].kind == PART_CORE) CU_ASSERT_EQUAL(h.part[h.part[i].parent].number, 0);
    hardware_fini(&h);

    h = synthetic("pack:4 [numa] pu:8");
    CU_ASSERT_EQUAL(hardware_count(&h, PART_CORE), 32);
    hardware_fini(&h);
}

static void test_broken_xml(void)
{
    static const char *const texts[] = {"<", "<a/>", "<?xml version=\"1.0\"?><html></html>",
                                        "<topology version=\"2.0\"></topology>"};
    Hardware h;
    size_t bytes;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; ++i) {
        CHECK_FAILS(hardware_from_xml(&h, "broken.xml", texts[i], strlen(texts[i])), ERR_CONFIG,
                    "broken.xml: is no XML of hwloc");
        CU_ASSERT(!h.part && !h.cpu);
    }
    char *xml = synthetic_xml("pack:2 [numa] core:4 pu:2", &bytes);
    for (size_t cut = bytes - 20; cut > 0; cut -= cut < 97 ? cut : 97) {
        char *part = mem_text(xml);
        part[cut] = 0;
        CU_ASSERT_EQUAL(hardware_from_xml(&h, "cut.xml", part, cut), ERR_CONFIG);
        mem_free(&part);
    }
    mem_free(&xml);
    xml = synthetic_xml("pack:1 [numa] core:1025 pu:1", &bytes);
    CHECK_FAILS(hardware_from_xml(&h, "wide.xml", xml, bytes), ERR_CONFIG,
                "CPUs above 1023 are not supported");
    mem_free(&xml);
}

static char root[32];

/* Writes root/path, a small file in folders that may be missing. */
static void put(const char *path, const char *text)
{
    char *name = mem_format("%s%s", root, path), *slash = strrchr(name, '/');
    *slash = 0;
    CHECK_OK(file_make_folders(name));
    *slash = '/';
    FILE *out = fopen(name, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(text, out);
    fclose(out);
    mem_free(&name);
}

static void root_begin(void)
{
    snprintf(root, sizeof root, "/tmp/weft-root-XXXXXX");
    CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(root));
}

static void root_end(void)
{
    char *command = mem_format("rm -r %s", root);
    CU_ASSERT_EQUAL(system(command), 0);
    mem_free(&command);
}

static void test_cards(void)
{
    Hardware h = {0};
    root_begin();
    put("/sys/class/net/lo/operstate", "unknown\n");
    put("/sys/class/net/docker0/speed", "10000\n");
    put("/sys/class/net/eth1/speed", "-1\n");
    put("/sys/class/net/eth1/operstate", "down\n");
    put("/sys/class/net/eth1/device/numa_node", "-1\n");
    put("/sys/class/net/eth0/speed", "25000\n");
    put("/sys/class/net/eth0/operstate", "up\n");
    put("/sys/class/net/eth0/device/numa_node", "1\n");
    put("/sys/class/net/bond0/speed", "50000\n");
    put("/sys/class/net/bond0/operstate", "up\n");
    put("/sys/class/net/bond0/bonding/mode", "802.3ad 4\n");
    put("/sys/class/infiniband/mlx5_0/device/numa_node", "0\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
    put("/sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/mlx5_0/ports/2/rate", "10 Gb/sec (4X)\n");
    put("/sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
    hardware_add_cards(&h, root);
    static const Card expected[] = {
        {"mlx5_0", 0, 5e10, 0, true, true, 0, true},
        {"mlx5_0/2", 0, 1.25e9, 0, false, true, 0, true},
        {"bond0", 0, 6.25e9, 0, true, true, -1, false},
        {"eth0", 0, 3.125e9, 0, true, true, 1, false},
        {"eth1", 0, 0, 0, false, true, -1, false},
    };
    CU_ASSERT_EQUAL_FATAL(h.cards, 5);
    for (int i = 0; i < 5; ++i) {
        CU_ASSERT_STRING_EQUAL(h.card[i].name, expected[i].name);
        CU_ASSERT_EQUAL(h.card[i].bytes_per_s, expected[i].bytes_per_s);
        CU_ASSERT_EQUAL(h.card[i].up, expected[i].up);
        CU_ASSERT_EQUAL(h.card[i].numa, expected[i].numa);
    }
    hardware_fini(&h);
    root_end();
}

/* The made-up NVML is in the folder of this program. Once it is loaded, its name finds it. */
static void load_nvml(void)
{
    char path[512];
    CU_ASSERT_FATAL(program_path(path, sizeof path));
    snprintf(strrchr(path, '/'), 32, "/libnvidia-ml.so.1");
    if (!dlopen(path, RTLD_NOW)) printf("  %s\n", dlerror());
    CU_ASSERT_PTR_NOT_NULL_FATAL(dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_NOLOAD));
}

static void test_gpus(void)
{
    static const char *const words[4][4] = {{"X", "NV2", "PHB", "SYS"},
                                            {"NV2", "X", "SYS", "SYS"},
                                            {"PHB", "SYS", "X", "NV12"},
                                            {"SYS", "SYS", "NV12", "X"}};
    Hardware h = {0};
    load_nvml();
    root_begin();
    put("/sys/bus/pci/devices/0000:ba:00.0/numa_node", "1\n");
    hardware_add_gpus(&h, root);
    CU_ASSERT_EQUAL_FATAL(h.gpus, 4);
    CU_ASSERT_STRING_EQUAL(h.gpu[1].name, "Test GPU B");
    CU_ASSERT_STRING_EQUAL(h.gpu[1].bus, "0000:ba:00.0");
    CU_ASSERT_EQUAL(h.gpu[1].numa, 1);
    CU_ASSERT_EQUAL(h.gpu[0].numa, -1);
    CU_ASSERT_PTR_NULL(h.note);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) CU_ASSERT_STRING_EQUAL(h.gpu[a].link[b], words[a][b]);
    hardware_fini(&h);
    setenv("WEFT_TEST_NVML", "broken", 1);
    hardware_add_gpus(&h, root);
    unsetenv("WEFT_TEST_NVML");
    CU_ASSERT_EQUAL(h.gpus, 0);
    CU_ASSERT_PTR_NOT_NULL_FATAL(h.note);
    CU_ASSERT_PTR_NOT_NULL(strstr(h.note, "Driver/library version mismatch"));
    hardware_fini(&h);
    root_end();
}

/* Makes a folder root/path, and a link to it. */
static void put_device(const char *path, const char *link)
{
    char *folder = mem_format("%s%s", root, path), *name = mem_format("%s%s", root, link);
    char *slash = strrchr(name, '/');
    *slash = 0;
    CHECK_OK(file_make_folders(folder));
    CHECK_OK(file_make_folders(name));
    *slash = '/';
    CU_ASSERT_EQUAL(symlink(folder, name), 0);
    mem_free(&name);
    mem_free(&folder);
}

/* Two GPUs and four cards: under the GPU's switch, under another switch of its port, at its host
 * bridge, elsewhere; and one that is not on PCI. */
static void test_ways(void)
{
    static const char *const words[2][5] = {{"PIX", "PXB", "PHB", "SYS", ""},
                                            {"SYS", "SYS", "SYS", "NODE", ""}};
#define PORT "/sys/devices/pci0000:00/0000:00:01.0/"
    Hardware h = {0};
    root_begin();
    put_device(PORT "0000:01:00.0/0000:02:00.0/0000:03:00.0", "/sys/bus/pci/devices/0000:03:00.0");
    put_device("/sys/devices/pci0000:80/0000:81:00.0", "/sys/bus/pci/devices/0000:81:00.0");
    put_device(PORT "0000:01:00.0/0000:02:01.0/0000:04:00.0", "/sys/class/infiniband/a/device");
    put_device(PORT "0000:01:00.0/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0",
               "/sys/class/infiniband/b/device");
    put_device("/sys/devices/pci0000:00/0000:00:02.0", "/sys/class/net/c/device");
    put_device("/sys/devices/pci0000:c0/0000:c1:00.0", "/sys/class/net/d/device");
    put("/sys/class/net/d/device/numa_node", "1\n");
    put_device("/sys/devices/virtual/e", "/sys/class/net/e/device");
    put("/sys/class/infiniband/a/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/b/ports/1/state", "4: ACTIVE\n");
    put("/sys/class/infiniband/b/ports/2/state", "4: ACTIVE\n");
    hardware_add_cards(&h, root);
    hardware_add_gpu(&h, mem_text("GPU"), mem_text("0000:03:00.0"), 0);
    hardware_add_gpu(&h, mem_text("GPU"), mem_text("0000:81:00.0"), 1);
    hardware_join_cards(&h, root);
    CU_ASSERT_EQUAL_FATAL(h.cards, 6);
    CU_ASSERT_STRING_EQUAL(h.card[2].name, "b/2");
    for (int i = 0; i < 2; ++i)
        for (int k = 0; k < 6; ++k)
            CU_ASSERT_STRING_EQUAL(h.gpu[i].card[k], words[i][k < 2 ? k : k - 1]);
    hardware_fini(&h);
    root_end();
}

/* Makes a topology of two nodes of one kind with two ranks each. cpus: of the four ranks. */
static Topology make(const char *const cpus[4])
{
    Topology t = {.ranks = 4, .nodes = 2, .kinds = 1};
    t.host = mem_new(2 * sizeof *t.host);
    t.switches = mem_new(2 * sizeof *t.switches);
    t.kind = mem_new(2 * sizeof *t.kind);
    t.node = mem_new(4 * sizeof *t.node);
    t.cpus = mem_new(4 * sizeof *t.cpus);
    t.hardware = mem_new(sizeof *t.hardware);
    t.hardware[0] = synthetic("pack:2 [numa] l2:2(size=1048576) core:1 pu:2");
    for (int n = 0; n < 2; ++n) {
        t.host[n] = mem_format("host%d", n);
        t.switches[n] = mem_text("s0.s1");
    }
    for (int r = 0; r < 4; ++r) {
        t.node[r] = r / 2;
        t.cpus[r] = mem_text(cpus[r]);
    }
    return t;
}

static void check_ranks(const Topology *t, int node, const char *cpus, const char *expected)
{
    cpu_set_t set;
    CU_ASSERT(cpus_read(cpus, &set));
    char *ranks = topo_ranks_on(t, node, &set, 2);
    CU_ASSERT_STRING_EQUAL(ranks, expected);
    mem_free(&ranks);
}

static void test_layouts(void)
{
    static const char *const alike[] = {"0-1", "2-3", "0-1", "2-3"};
    static const char *const other[] = {"0-1", "0-7", "2", "1-4"};
    Topology t = make(alike);
    int count, *layout = topo_layouts(&t, &count);
    CU_ASSERT(count == 1 && layout[0] == 0 && layout[1] == 0);
    mem_free(&layout);
    check_ranks(&t, 0, "0-1", "0");
    check_ranks(&t, 1, "3", "3");
    check_ranks(&t, 1, "0-7", "2 3");
    check_ranks(&t, 1, "4", "");
    topo_fini(&t);

    t = make(other);
    layout = topo_layouts(&t, &count);
    CU_ASSERT(count == 2 && layout[1] == 1);
    mem_free(&layout);
    char *unbound = topo_ranks_unbound(&t, 0, 2);
    CU_ASSERT_STRING_EQUAL(unbound, "1");
    mem_free(&unbound);
    check_ranks(&t, 0, "0-7", "0");
    check_ranks(&t, 1, "2", "2 3");
    int core;
    int64_t l2_bytes;
    CU_ASSERT(hardware_is_core(&t.hardware[0], 2, &core, &l2_bytes));
    CU_ASSERT(core == 3 && l2_bytes == 1048576);
    CU_ASSERT(!hardware_is_core(&t.hardware[0], 0, &core, &l2_bytes));
    char text[16];
    CU_ASSERT_STRING_EQUAL(memory_text(1 << 20, text), "1 MiB");
    CU_ASSERT_STRING_EQUAL(memory_text(1 << 30, text), "1 GiB");
    CU_ASSERT_STRING_EQUAL(memory_text(1000, text), "0.977 KiB");
    topo_fini(&t);
}

/* Fills the matrices: links are as fast as their class says. */
static void measure(Topology *t, const double rate[LINK_CLASS_COUNT], int package_of[4])
{
    t->latency_s = mem_new(16 * sizeof *t->latency_s);
    t->bytes_s = mem_new(16 * sizeof *t->bytes_s);
    t->together_bytes_s = mem_new(16 * sizeof *t->together_bytes_s);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            bool near = package_of[a] == package_of[b];
            LinkClass class = a / 2 != b / 2 ? LINK_SWITCH : near ? LINK_PACKAGE : LINK_NODE;
            if (a == b) continue;
            t->bytes_s[4 * a + b] = rate[class];
            t->together_bytes_s[4 * a + b] = rate[class] / 2;
            t->latency_s[4 * a + b] = 1e-6;
        }
}

/* A link between sockets is slower than one within a socket, and that is no fault. */
static void test_classes(void)
{
    static const char *const cpus[] = {"0-1", "2-3", "0-1", "4-5"};
    static const double rate[] = {8e9, 4e9, 1e9, 0};
    int package[] = {0, 0, 0, 1};
    LinkSummary summary[LINK_CLASS_COUNT];
    SlowPair *pair;
    Topology t = make(cpus);
    measure(&t, rate, package);
    topo_summarize(&t, summary);
    static const int pairs[] = {1, 1, 4, 0};
    for (int i = 0; i < LINK_CLASS_COUNT; ++i) CU_ASSERT_EQUAL(summary[i].pairs, pairs[i]);
    CU_ASSERT(summary[LINK_PACKAGE].bytes_s == 8e9 && summary[LINK_NODE].bytes_s == 4e9);
    CU_ASSERT(summary[LINK_SWITCH].together_bytes_s == 5e8);
    CU_ASSERT_EQUAL(topo_slow_pairs(&t, &pair), 0);
    mem_free(&pair);
    t.bytes_s[4 * 0 + 2] = t.bytes_s[4 * 2 + 0] = 7e8;
    CU_ASSERT_EQUAL_FATAL(topo_slow_pairs(&t, &pair), 1);
    CU_ASSERT(pair[0].a == 0 && pair[0].b == 2 && pair[0].class == LINK_SWITCH);
    mem_free(&pair);
    topo_summarize(&t, summary);
    CU_ASSERT(summary[LINK_SWITCH].bytes_s_min == 7e8 && summary[LINK_SWITCH].bytes_s_max == 1e9);
    topo_fini(&t);
}

/* A file that is read and written again has the same content, with and without ranks. */
static void test_round_trip(void)
{
    static const char *const cpus[] = {"0-1", "2-3", "0-1", "2-3"};
    Topology t = make(cpus), back;
    Hardware *h = &t.hardware[0];
    char path[] = "/tmp/weft-topo-XXXXXX", *first = NULL, *second = NULL;
    size_t bytes;
    close(mkstemp(path));
    mem_free(&h->note);
    mem_free(&h->card);
    h->note = mem_text("a \"note\"");
    h->card = mem_new(sizeof *h->card);
    h->card[h->cards++] = (Card){"ib<0>", 0, 1.25e9, 0, true, true, 1, true};
    hardware_add_gpu(h, mem_text("GPU"), mem_text("0000:01:00.0"), -1);
    hardware_add_gpu(h, mem_text("GPU"), mem_text("0000:02:00.0"), 1);
    hardware_join_cards(h, "/nowhere");
    mem_free(&h->gpu[1].card[0]);
    h->gpu[1].card[0] = mem_text("PHB");
    t.kind[1] = -1;
    CHECK_OK(topo_write(&t, path));
    CHECK_OK(file_text(path, 1 << 20, &first, &bytes));
    CHECK_OK(topo_read(&back, path));
    CU_ASSERT(back.ranks == 4 && back.kinds == 1 && back.kind[1] == -1 && !back.bytes_s);
    CU_ASSERT_STRING_EQUAL(back.switches[1], "s0.s1");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[1].link[0], "SYS");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[0].card[0], "");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[1].card[0], "PHB");
    CHECK_OK(topo_write(&back, path));
    CHECK_OK(file_text(path, 1 << 20, &second, &bytes));
    CU_ASSERT_STRING_EQUAL(first, second);
    mem_free(&first);
    mem_free(&second);
    topo_fini(&back);
    topo_fini(&t);

    char *xml = synthetic_xml("pack:2 [numa] core:4 pu:2", &bytes);
    FILE *out = fopen(path, "w");
    CU_ASSERT_PTR_NOT_NULL_FATAL(out);
    fputs(xml, out);
    fclose(out);
    mem_free(&xml);
    CHECK_OK(topo_read(&t, path));
    CU_ASSERT(t.ranks == 0 && t.nodes == 1 && t.kinds == 1);
    CU_ASSERT_EQUAL(hardware_count(&t.hardware[0], PART_CORE), 8);
    CHECK_OK(topo_write(&t, path));
    CHECK_OK(topo_read(&back, path));
    CU_ASSERT(back.ranks == 0 && hardware_count(&back.hardware[0], PART_CORE) == 8);
    topo_fini(&back);
    topo_fini(&t);
    unlink(path);
}

static void test_broken_files(void)
{
#define FILE_OF(kinds, of)                                                                         \
    "{weft_topology: 1, hosts: [a], node: [0], cpus: ['0'],\n hardware_of: " of                    \
    ",\n hardware: " kinds "}"
#define NODE_OF(parts, cards, gpus)                                                                \
    FILE_OF("[{cpu: '', note: '', parts: " parts ", cards: " cards ", gpus: " gpus "}]", "[0]")
#define PACKAGE "{kind: package, number: 0, parent: -1, cpus: 0-3}"
    static const struct {
        const char *text, *message;
    } bad[] = {
        {FILE_OF("{}", "[0]"), ":3:12: expected a list of at most one kind"},
        {FILE_OF("[]", "[0]"), ":2:16: expected a number from -1 to -1"},
        {FILE_OF("[]", "[0, 0]"), ":2:15: expected a number for each node"},
        {FILE_OF("[7]", "[0]"), ":3:13: expected a mapping"},
        {FILE_OF("[{cpu: x}]", "[0]"), ":3:13: key `parts` is missing"},
        {FILE_OF("[{cpus: x}]", "[0]"), ":3:14: unknown key"},
        {NODE_OF("7", "[]", "[]"), ":3:40: expected a list"},
        {NODE_OF("[{kind: die}]", "[]", "[]"), ":3:41: key `number` is missing"},
        {NODE_OF("[{kind: die, number: 0, parent: -1, cpus: 0}]", "[]", "[]"),
         "expected package, numa"},
        {NODE_OF("[{kind: core, number: 0, parent: 0, cpus: 0}]", "[]", "[]"),
         "expected a number from -1 to -1"},
        {NODE_OF("[{kind: core, number: 0.5, parent: -1, cpus: 0}]", "[]", "[]"), "whole number"},
        {NODE_OF("[{kind: core, number: 0, parent: -1, cpus: 0-}]", "[]", "[]"), "expected CPUs"},
        {NODE_OF("[{kind: core, number: 0, parent: -1, cpus: ''}]", "[]", "[]"), "expected CPUs"},
        {NODE_OF("[" PACKAGE ", {kind: core, number: 0, parent: 0, cpus: 4}]", "[]", "[]"),
         "the parent does not contain"},
        {NODE_OF("[{kind: core, number: 0, parent: -1, cpus: 0}, {kind: core, number: 0, parent: "
                 "0, cpus: 0}]",
                 "[]", "[]"),
         "a core, or a part at depth 8"},
        {NODE_OF("[]", "[{name: x, bytes_s: -1, up: true, numa: 0}]", "[]"),
         "expected a number from 0"},
        {NODE_OF("[]", "[{name: x, bytes_s: 1, up: yes, numa: 0}]", "[]"),
         "expected true or false"},
        {NODE_OF("[]",
                 "[{name: xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx, bytes_s: 1, up: true, "
                 "numa: 0}]",
                 "[]"),
         "a name of at most 47 bytes"},
        {NODE_OF("[]", "[]", "[{name: g, bus: b, numa: 0, links: [NV1], cards: []}]"),
         "expected X for the GPU"},
        {NODE_OF("[]", "[]", "[{name: g, bus: b, numa: 0, links: [], cards: []}]"),
         "wrong number of texts"},
        {NODE_OF("[]", "[]", "[{name: g, bus: [], numa: 0, links: [X], cards: []}]"),
         "expected a text"},
        {NODE_OF("[]", "[]", "[{name: g, bus: b, numa: 0, links: [X], cards: [PIX]}]"),
         "wrong number of texts"},
        {NODE_OF("[]", "[{name: x, bytes_s: 1, up: true, numa: 0}]",
                 "[{name: g, bus: b, numa: 0, links: [X], cards: [near]}]"),
         "expected PIX, PXB"},
        {"{weft_topology: 1, hosts: [a], node: [0], cpus: ['0'], hardware: []}",
         ":1:1: only one of hardware"},
        {"{weft_topology: 1, hosts: [a], node: [0], cpus: ['0'], switches: []}",
         "wrong number of texts"},
    };
    char path[] = "/tmp/weft-topo-XXXXXX";
    close(mkstemp(path));
    for (size_t i = 0; i < sizeof bad / sizeof *bad; ++i) {
        Topology t;
        FILE *out = fopen(path, "w");
        CU_ASSERT_PTR_NOT_NULL_FATAL(out);
        fputs(bad[i].text, out);
        fclose(out);
        CHECK_FAILS(topo_read(&t, path), ERR_CONFIG, bad[i].message);
    }
    unlink(path);
}

/* This machine: every CPU of this process is in one core at least. */
static void test_here(void)
{
    Hardware h;
    cpu_set_t mine, cores;
    CHECK_OK(hardware_read(&h, false));
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&cores);
    for (int i = 0; i < h.parts; ++i)
        if (h.part[i].kind == PART_CORE) CPU_OR(&cores, &cores, &h.part[i].cpus);
    CU_ASSERT(cpus_inside(&mine, &cores));
    hardware_fini(&h);
}

TEST_MAIN("hardware", {"CPUs", test_cpus}, {"parts", test_parts}, {"broken XML", test_broken_xml},
          {"cards", test_cards}, {"GPUs", test_gpus}, {"ways to cards", test_ways},
          {"layouts", test_layouts}, {"classes of links", test_classes}, {"files", test_round_trip},
          {"broken files", test_broken_files}, {"here", test_here})
