/* Hardware of made-up nodes by hwloc's synthetic machines as XML: CPUs and parts; and that of this
 * machine. */
#include "synthetic.h"

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
    CU_ASSERT_STRING_EQUAL(cpus_write(text, 6, &cpus), "0,...");
    CU_ASSERT_STRING_EQUAL(cpus_write(text, 5, &cpus), "...");
    CU_ASSERT_STRING_EQUAL(cpus_write(text, 3, &cpus), "..");
}

/* Two sockets, each with two NUMA nodes, each with one L3 of two cores with an L2 each. */
static void test_parts(void)
{
    Hardware h = synthetic("pack:2 group:2 [numa(memory=1073741824)] l3:1(size=33554432) "
                           "l2:2(size=1048576) core:1 pu:2");
    static const PartKind kinds[] = {PART_PACKAGE, PART_NUMA, PART_L3, PART_L2, PART_CORE};
    static const int counts[] = {2, 4, 4, 8, 8};
    for (int i = 0; i < 5; ++i) CU_ASSERT_EQUAL(hardware_count(&h, kinds[i]), counts[i]);
    CU_ASSERT_EQUAL_FATAL(h.part_count, 26);
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
    for (int i = 0; i < h.part_count; ++i)
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

/* This machine: every CPU of this process is in one core at least. */
static void test_here(void)
{
    Hardware h;
    cpu_set_t mine, cores;
    CHECK_OK(hardware_read(&h, false));
    CU_ASSERT_EQUAL_FATAL(sched_getaffinity(0, sizeof mine, &mine), 0);
    CPU_ZERO(&cores);
    for (int i = 0; i < h.part_count; ++i)
        if (h.part[i].kind == PART_CORE) CPU_OR(&cores, &cores, &h.part[i].cpus);
    CU_ASSERT(cpus_inside(&mine, &cores));
    hardware_fini(&h);
}

TEST_MAIN("hardware", {"CPUs", test_cpus}, {"parts", test_parts}, {"broken XML", test_broken_xml},
          {"here", test_here})
