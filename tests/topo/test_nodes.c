/* Topologies of two made-up nodes: layouts of ranks, classes of links, files, broken files. */
#include "synthetic.h"
#include "topo/layout.h"

/* Makes a topology of two nodes of one kind with two ranks each. cpus: of the four ranks. */
static Topology make(const char *const cpus[4])
{
    Topology t = {.ranks = 4, .nodes = 2, .hardware_count = 1};
    t.host = mem_new(2 * sizeof *t.host);
    t.switches = mem_new(2 * sizeof *t.switches);
    t.hardware_index = mem_new(2 * sizeof *t.hardware_index);
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
    t.hardware_index[0] = t.hardware_index[1] =
        -1; /* not described: one layout, whatever the ranks' CPUs are */
    layout = topo_layouts(&t, &count);
    CU_ASSERT_EQUAL(count, 1);
    mem_free(&layout);
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
    t->bytes_per_s = mem_new(16 * sizeof *t->bytes_per_s);
    t->together_bytes_per_s = mem_new(16 * sizeof *t->together_bytes_per_s);
    for (int a = 0; a < 4; ++a)
        for (int b = 0; b < 4; ++b) {
            bool near = package_of[a] == package_of[b];
            LinkClass class = a / 2 != b / 2 ? LINK_SWITCH : near ? LINK_PACKAGE : LINK_NODE;
            if (a == b) continue;
            t->bytes_per_s[4 * a + b] = rate[class];
            t->together_bytes_per_s[4 * a + b] = rate[class] / 2;
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
    CU_ASSERT(summary[LINK_PACKAGE].bytes_per_s == 8e9 && summary[LINK_NODE].bytes_per_s == 4e9);
    CU_ASSERT(summary[LINK_SWITCH].together_bytes_per_s == 5e8);
    CU_ASSERT_EQUAL(topo_slow_pairs(&t, &pair), 0);
    mem_free(&pair);
    t.bytes_per_s[4 * 0 + 2] = t.bytes_per_s[4 * 2 + 0] = 7e8;
    CU_ASSERT_EQUAL_FATAL(topo_slow_pairs(&t, &pair), 1);
    CU_ASSERT(pair[0].a == 0 && pair[0].b == 2 && pair[0].class == LINK_SWITCH);
    mem_free(&pair);
    topo_summarize(&t, summary);
    CU_ASSERT(summary[LINK_SWITCH].bytes_per_s_min == 7e8 &&
              summary[LINK_SWITCH].bytes_per_s_max == 1e9);
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
    h->card[h->card_count++] = (Card){"ib<0>", 0, 1.25e9, 0, true, true, 1, true};
    hardware_add_gpu(h, mem_text("GPU"), mem_text("0000:01:00.0"), -1);
    hardware_add_gpu(h, mem_text("GPU"), mem_text("0000:02:00.0"), 1);
    hardware_join_cards(h, "/nowhere");
    mem_free(&h->gpu[1].card_link[0]);
    h->gpu[1].card_link[0] = mem_text("PHB");
    t.hardware_index[1] = -1;
    CHECK_OK(topo_write(&t, path));
    CHECK_OK(file_text(path, 1 << 20, &first, &bytes));
    CHECK_OK(topo_read(&back, path));
    CU_ASSERT(back.ranks == 4 && back.hardware_count == 1 && back.hardware_index[1] == -1 &&
              !back.bytes_per_s);
    CU_ASSERT_STRING_EQUAL(back.switches[1], "s0.s1");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[1].gpu_link[0], "SYS");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[0].card_link[0], "");
    CU_ASSERT_STRING_EQUAL(back.hardware[0].gpu[1].card_link[0], "PHB");
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
    CU_ASSERT(t.ranks == 0 && t.nodes == 1 && t.hardware_count == 1);
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
        {FILE_OF("[]", "[0]"), ":2:16: expected -1, not 0"},
        {FILE_OF("[]", "[0, 0]"), ":2:15: expected a number for each node"},
        {FILE_OF("[7]", "[0]"), ":3:13: expected a mapping"},
        {FILE_OF("[{cpu: x}]", "[0]"), ":3:13: key `parts` is missing"},
        {FILE_OF("[{cpus: x}]", "[0]"), ":3:14: unknown key"},
        {NODE_OF("7", "[]", "[]"), ":3:40: expected a list"},
        {NODE_OF("[{kind: die}]", "[]", "[]"), ":3:41: key `number` is missing"},
        {NODE_OF("[{kind: die, number: 0, parent: -1, cpus: 0}]", "[]", "[]"),
         "expected package, numa"},
        {NODE_OF("[{kind: core, number: 0, parent: 0, cpus: 0}]", "[]", "[]"),
         "expected -1, not 0"},
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
         "expected 1 texts, one for each GPU, not 0"},
        {NODE_OF("[]", "[]", "[{name: g, bus: [], numa: 0, links: [X], cards: []}]"),
         "expected a text, not a list"},
        {NODE_OF("[]", "[]", "[{name: g, bus: b, numa: 0, links: [X], cards: [PIX]}]"),
         "expected 0 texts, one for each network card, not 1"},
        {NODE_OF("[]", "[{name: x, bytes_s: 1, up: true, numa: 0}]",
                 "[{name: g, bus: b, numa: 0, links: [X], cards: [near]}]"),
         "expected PIX, PXB"},
        {"{weft_topology: 1, hosts: [a], node: [0], cpus: ['0'], hardware: []}",
         ":1:1: key `hardware_of` is missing: hardware and hardware_of go"},
        {"{weft_topology: 1, hosts: [a], node: [0], cpus: ['0'], switches: []}",
         "expected 1 texts, one for each node, not 0"},
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

TEST_MAIN("nodes", {"layouts", test_layouts}, {"classes of links", test_classes},
          {"files", test_round_trip}, {"broken files", test_broken_files})
