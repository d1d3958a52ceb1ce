/* A file of times is read as it was written. */
#include "machine.h"
#include "../harness.h"

/* Writes a machine to a file, reads it into `to`, and removes the file. */
static void write_and_read(const Machine *from, Machine *to)
{
    char path[64];
    snprintf(path, sizeof path, "/tmp/weft_times_%d.yaml", (int)getpid());
    CHECK_OK(machine_write(from, path));
    CHECK_OK(machine_read(to, path));
    remove(path);
}

static Machine described(int nodes)
{
    static char host[] = "a", cpu[] = "b", measured[] = "c", setup[] = "d";
    return (Machine){.host = host,
                     .cpu = cpu,
                     .measured = measured,
                     .setup = setup,
                     .ranks = 2,
                     .threads = 1,
                     .nodes = nodes,
                     .memory_bytes_per_s = 4,
                     .read_bytes_per_s = nodes > 1 ? 8 : 0,
                     .save_bytes_per_s = nodes > 1 ? 16 : 0,
                     .has_network = nodes > 1,
                     .network_link = {0.5, 0.25},
                     .overlap_compute = 1.0625};
}

static void test_nodes(void)
{
    Machine from = described(3), to;
    write_and_read(&from, &to);
    CU_ASSERT_EQUAL(to.nodes, 3);
    CU_ASSERT_EQUAL(to.network_link.latency_s, 0.5);
    CU_ASSERT_EQUAL(to.network_link.s_per_byte, 0.25);
    CU_ASSERT_DOUBLE_EQUAL(to.overlap_compute, 1.0625, 1e-3);
    CU_ASSERT_EQUAL(to.read_bytes_per_s, 8);
    CU_ASSERT_EQUAL(to.save_bytes_per_s, 16);
    machine_fini(&to);
}

/* The file of one node has no factor. */
static void test_one_node(void)
{
    Machine from = described(1), to;
    write_and_read(&from, &to);
    CU_ASSERT_EQUAL(to.nodes, 1);
    CU_ASSERT_EQUAL(to.overlap_compute, 1);
    CU_ASSERT_EQUAL(to.memory_bytes_per_s, 4);
    CU_ASSERT_EQUAL(to.read_bytes_per_s, 0);
    machine_fini(&to);
}

TEST_MAIN("files of times", {"several nodes", test_nodes}, {"one node", test_one_node})
